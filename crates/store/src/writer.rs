//! The thread that commits writes: it takes what has queued up while the last commit was running,
//! judges it in order, and makes it durable in one transaction.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::disk::Disk;
use crate::state::State;
use crate::store::Shared;
use crate::{Entry, Event, EventKind, Options, Revision, Write, WriteError, Written};

/// Something for the thread to do; the sender hears when it is done.
pub(crate) enum Command {
    Write(Write, oneshot::Sender<Result<Written, WriteError>>),
    /// Compact to a revision, or as the retention asks.
    Compact(Option<Revision>, oneshot::Sender<Result<(), WriteError>>),
    Close(oneshot::Sender<()>),
}

/// The thread's possessions.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) disk: Disk,
    pub(crate) options: Options,
    pub(crate) commands: mpsc::Receiver<Command>,
}

type Reply = (oneshot::Sender<Result<Written, WriteError>>, Result<Written, WriteError>);

impl Writer {
    /// Works until the store is closed or dropped.
    pub(crate) fn run(mut self) {
        let mut closing = None;
        let mut batch = Vec::new();
        while closing.is_none() {
            let Some(mut command) = self.commands.blocking_recv() else { break };
            loop {
                match command {
                    Command::Write(write, reply) => batch.push((write, reply)),
                    Command::Compact(to, reply) => {
                        self.commit(&mut batch);
                        // A caller that stopped waiting needs no answer, here and below.
                        let _ = reply.send(self.compact(to));
                    }
                    Command::Close(reply) => {
                        closing = Some(reply);
                        break;
                    }
                }
                if batch.len() >= self.options.batch {
                    break;
                }
                let Ok(next) = self.commands.try_recv() else { break };
                command = next;
            }
            self.commit(&mut batch);
        }
        let Writer { shared, disk, commands, .. } = self;
        drop(commands);
        drop(disk);
        shared.write().close();
        if let Some(reply) = closing {
            let _ = reply.send(());
        }
    }

    fn commit(&mut self, batch: &mut Vec<(Write, oneshot::Sender<Result<Written, WriteError>>)>) {
        if batch.is_empty() {
            return;
        }
        if let Err(error) = self.recover() {
            for (_, reply) in batch.drain(..) {
                let _ = reply.send(Err(error.clone()));
            }
            return;
        }
        let now = Instant::now();
        let (events, replies, compaction) = {
            let state = self.shared.read();
            let (events, replies) = judge(&state, batch);
            (events, replies, state.due_compaction(&self.options.retention, now))
        };
        if !events.is_empty() || compaction.is_some() {
            // A verdict may rest on an earlier write of the same batch, so all fail together.
            if let Err(error) = self.disk.commit(&events, compaction.as_ref()) {
                for (reply, _) in replies {
                    let _ = reply.send(Err(error.clone()));
                }
                return;
            }
            let mut state = self.shared.write();
            state.apply(events, now);
            if let Some(compaction) = compaction {
                state.compact(compaction.to);
            }
        }
        for (reply, outcome) in replies {
            let _ = reply.send(outcome);
        }
    }

    fn compact(&mut self, to: Option<Revision>) -> Result<(), WriteError> {
        self.recover()?;
        let now = Instant::now();
        loop {
            let compaction = {
                let state = self.shared.read();
                match to {
                    Some(to) => state.compaction_to(to),
                    None => state.due_compaction(&self.options.retention, now),
                }
            };
            let Some(compaction) = compaction else { return Ok(()) };
            self.disk.commit(&[], Some(&compaction))?;
            self.shared.write().compact(compaction.to);
        }
    }

    fn recover(&mut self) -> Result<(), WriteError> {
        if self.disk.recover()? {
            self.disk.catch_up(&mut self.shared.write())?;
        }
        Ok(())
    }
}

/// Decides each write given the ones before it; accepted ones become events with their revisions.
fn judge(
    state: &State,
    batch: &mut Vec<(Write, oneshot::Sender<Result<Written, WriteError>>)>,
) -> (Vec<Arc<Event>>, Vec<Reply>) {
    let mut pending: HashMap<Arc<str>, Option<Entry>> = HashMap::new();
    let mut events: Vec<Arc<Event>> = Vec::with_capacity(batch.len());
    let mut replies = Vec::with_capacity(batch.len());
    for (write, reply) in batch.drain(..) {
        let current = match pending.get(write.key()) {
            Some(current) => current.clone(),
            None => state.get(write.key()),
        };
        let revision = state.revision() + 1 + events.len() as Revision;
        let outcome = State::judge(write, current.clone(), revision).map(|event| {
            pending.insert(Arc::clone(&event.key), after(&event));
            events.push(Arc::new(event));
            Written { revision, previous: current }
        });
        replies.push((reply, outcome));
    }
    (events, replies)
}

fn after(event: &Event) -> Option<Entry> {
    (event.kind == EventKind::Put).then(|| Entry {
        key: Arc::clone(&event.key),
        value: event.value.clone(),
        created: event.created,
        modified: event.revision,
    })
}
