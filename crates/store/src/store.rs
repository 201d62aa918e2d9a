//! The store's handle: reads from memory, hands writes to the committing thread.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::disk::{self, Disk, Opener};
use crate::hold::{self, Hold};
use crate::state::State;
use crate::writer::{Command, Writer};
use crate::{
    Entry, ListRequest, OpenError, Options, Page, ReadError, Revision, Sizes, Watch, Write, WriteError,
    Written,
};

/// A store; clones share it. It closes when the last clone is dropped, or with [`Store::close`].
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    options: Options,
    /// The committing thread; a store in memory has none.
    thread: Option<Thread>,
}

struct Thread {
    commands: mpsc::Sender<Command>,
    handle: Mutex<Option<JoinHandle<()>>>,
}

/// The state, as handles, watches and the committing thread share it.
pub(crate) struct Shared(RwLock<State>);

impl Shared {
    // A panic while the lock was held is a bug that has been reported; the state stays readable.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// Opens the store in a file, making it if there is none. Blocks while reading all of it.
    pub fn open(path: &Path, options: Options) -> Result<Store, OpenError> {
        let hold = Hold::take(path)?;
        let fresh = !path.exists();
        if fresh {
            hold::create_private(path)?;
        }
        let opener = disk::file_opener(path, options.file_cache);
        let store = Store::on_disk(path, opener, Some(hold), options)?;
        if fresh {
            hold::sync_directory(path);
        }
        Ok(store)
    }

    /// A store that keeps nothing: the same behaviour without a file or a thread.
    pub fn in_memory(options: Options) -> Store {
        let shared = Arc::new(Shared(RwLock::default()));
        Store { inner: Arc::new(Inner { shared, options, thread: None }) }
    }

    pub(crate) fn on_disk(
        path: &Path,
        opener: Opener,
        hold: Option<Hold>,
        options: Options,
    ) -> Result<Store, OpenError> {
        let (disk, state) = Disk::load(path, opener, hold)?;
        let shared = Arc::new(Shared(RwLock::new(state)));
        let (commands, receiver) = mpsc::channel(options.queue.max(1));
        let writer = Writer { shared: Arc::clone(&shared), disk, options, commands: receiver };
        let handle = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        let thread = Some(Thread { commands, handle: Mutex::new(Some(handle)) });
        Ok(Store { inner: Arc::new(Inner { shared, options, thread }) })
    }

    /// The object at a key.
    pub fn get(&self, key: &str) -> Result<Option<Entry>, ReadError> {
        Ok(self.inner.shared.read().get(key))
    }

    /// One page of a list, as of one revision.
    pub fn list(&self, request: ListRequest<'_>) -> Result<Page, ReadError> {
        self.inner.shared.read().list(request)
    }

    /// Makes a change; resolves when it is durable and visible to readers. A change whose caller
    /// stops waiting may still be made.
    pub async fn write(&self, write: Write) -> Result<Written, WriteError> {
        match &self.inner.thread {
            None => self.write_in_memory(write),
            Some(thread) => thread.ask(|reply| Command::Write(write, reply)).await?,
        }
    }

    /// The events under a prefix after a revision (0: all that are retained, if none was dropped).
    pub fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, ReadError> {
        let mut state = self.inner.shared.write();
        state.check_readable(after)?;
        let latest = state.subscribe(prefix);
        drop(state);
        Ok(Watch::new(Arc::clone(&self.inner.shared), prefix, after, latest))
    }

    /// The latest revision.
    pub fn revision(&self) -> Revision {
        self.inner.shared.read().revision()
    }

    /// How much is held; walks over all objects.
    pub fn sizes(&self) -> Sizes {
        self.inner.shared.read().sizes()
    }

    /// The oldest revision that can still be listed or watched from.
    pub fn compacted(&self) -> Revision {
        self.inner.shared.read().compacted()
    }

    /// Drops history beyond the retention's bounds. Writes do so as well; call this now and then
    /// so that history ages while there are none.
    pub async fn compact(&self) -> Result<(), WriteError> {
        self.compact_to(None).await
    }

    /// Drops history before a revision.
    pub async fn compact_before(&self, revision: Revision) -> Result<(), WriteError> {
        self.compact_to(Some(revision)).await
    }

    /// Finishes the writes that are queued and lets go of the file; further writes fail, watches
    /// end, reads still see the last state.
    pub async fn close(&self) {
        match &self.inner.thread {
            None => self.inner.shared.write().close(),
            Some(thread) => {
                // An error means that the thread is gone, which is what was asked for.
                let _ = thread.ask(Command::Close).await;
            }
        }
    }

    async fn compact_to(&self, to: Option<Revision>) -> Result<(), WriteError> {
        if let Some(thread) = &self.inner.thread {
            return thread.ask(|reply| Command::Compact(to, reply)).await?;
        }
        let mut state = self.inner.shared.write();
        let compaction = match to {
            Some(to) => state.compaction_to(to),
            None => state.due_compaction(&self.inner.options.retention, Instant::now()),
        };
        if let Some(compaction) = compaction {
            state.compact(compaction.to);
        }
        Ok(())
    }

    fn write_in_memory(&self, write: Write) -> Result<Written, WriteError> {
        let mut state = self.inner.shared.write();
        if state.closed {
            return Err(WriteError::Closed);
        }
        let previous = state.get(write.key());
        let revision = state.revision() + 1;
        let event = State::judge(write, previous.clone(), revision)?;
        let now = Instant::now();
        state.apply([Arc::new(event)], now);
        if let Some(compaction) = state.due_compaction(&self.inner.options.retention, now) {
            state.compact(compaction.to);
        }
        Ok(Written { revision, previous })
    }
}

impl Thread {
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, WriteError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| WriteError::Closed)?;
        answer.await.map_err(|_| WriteError::Closed)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        match self.thread.take() {
            None => self.shared.write().close(),
            Some(Thread { commands, handle }) => {
                drop(commands);
                let handle = handle.into_inner().unwrap_or_else(PoisonError::into_inner);
                // Wait, so that whoever opens the file next finds it free.
                if let Some(Err(_)) = handle.map(JoinHandle::join) {
                    tracing::error!("the store's thread panicked");
                }
            }
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.inner.shared.read();
        formatter
            .debug_struct("Store")
            .field("objects", &state.len())
            .field("revision", &state.revision())
            .field("compacted", &state.compacted())
            .finish_non_exhaustive()
    }
}
