//! Watches: each is a cursor over the shared history, so a slow watcher costs no memory. It wakes
//! only for events under its prefix, and fails when those it has not read are compacted.

use std::sync::Arc;

use tokio::sync::watch;

use crate::store::Shared;
use crate::{Compacted, Event, Revision, WatchError};

/// How many events one call returns at most.
const BATCH: usize = 256;

/// The events under a prefix from some revision on. Dropping it ends it.
pub struct Watch {
    shared: Arc<Shared>,
    prefix: Box<str>,
    /// Everything up to here was returned.
    cursor: Revision,
    /// The revision of the last event under the prefix.
    latest: watch::Receiver<Revision>,
}

impl Watch {
    pub(crate) fn new(
        shared: Arc<Shared>,
        prefix: &str,
        after: Revision,
        latest: watch::Receiver<Revision>,
    ) -> Watch {
        Watch { shared, prefix: prefix.into(), cursor: after, latest }
    }

    /// Waits for events, and returns those there are, oldest first; never an empty list.
    /// Cancel-safe: an event is either returned or still to come.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event>>, WatchError> {
        loop {
            if let Some(events) = self.try_next()? {
                return Ok(events);
            }
            self.latest.changed().await.map_err(|_| WatchError::Closed)?;
        }
    }

    /// The events there are now, if any, without waiting.
    pub fn try_next(&mut self) -> Result<Option<Vec<Arc<Event>>>, WatchError> {
        let state = self.shared.read();
        let latest = *self.latest.borrow_and_update();
        if latest <= self.cursor {
            if state.closed {
                return Err(WatchError::Closed);
            }
            self.cursor = self.cursor.max(state.revision());
            return Ok(None);
        }
        if self.cursor < state.compacted() {
            let oldest = state.compacted();
            return Err(Compacted { requested: self.cursor, oldest }.into());
        }
        let mut events = Vec::new();
        for event in state.events_after(self.cursor) {
            self.cursor = event.revision;
            if event.key.starts_with(&*self.prefix) {
                events.push(Arc::clone(event));
                if events.len() == BATCH {
                    break;
                }
            }
        }
        Ok((!events.is_empty()).then_some(events))
    }

    /// The revision up to which every event was returned: what a bookmark may promise.
    pub fn revision(&self) -> Revision {
        let state = self.shared.read();
        if *self.latest.borrow() <= self.cursor { self.cursor.max(state.revision()) } else { self.cursor }
    }
}
