//! What goes into the store and what comes out of it.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;

/// A point in the store's history: one counter for the whole store, raised by one for each write.
pub type Revision = u64;

/// One object as of some revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The object's key.
    pub key: Arc<str>,
    /// The bytes last written.
    pub value: Bytes,
    /// The revision that created the object.
    pub created: Revision,
    /// The revision that wrote `value`.
    pub modified: Revision,
}

/// What an [`Event`] did to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The object was created or updated.
    Put,
    /// The object was deleted.
    Delete,
}

/// One write, as watchers see it; shared between all of them.
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The object's key.
    pub key: Arc<str>,
    /// The new value or, for a deletion, the object's final state.
    pub value: Bytes,
    /// The value before this event; `None` when the event created the object.
    pub previous: Option<Bytes>,
    /// The revision that wrote `previous`.
    pub previous_revision: Option<Revision>,
    /// The revision that created the object.
    pub created: Revision,
    /// This event's own revision.
    pub revision: Revision,
    memo: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Event {
    pub(crate) fn new(
        kind: EventKind,
        key: Arc<str>,
        value: Bytes,
        revision: Revision,
        before: Option<&Entry>,
    ) -> Event {
        Event {
            kind,
            key,
            value,
            previous: before.map(|entry| entry.value.clone()),
            previous_revision: before.map(|entry| entry.modified),
            created: before.map_or(revision, |entry| entry.created),
            revision,
            memo: OnceLock::new(),
        }
    }

    /// Whether this event created its object.
    pub fn is_create(&self) -> bool {
        self.kind == EventKind::Put && self.previous.is_none()
    }

    /// Something derived from this event (its decoded or encoded form), made once by whichever
    /// watcher asks first and shared with all others; `None` if another type was kept before.
    pub fn memo<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Option<Arc<T>> {
        let kept = self.memo.get_or_init(|| Arc::new(make()));
        Arc::clone(kept).downcast().ok()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Event")
            .field("kind", &self.kind)
            .field("key", &self.key)
            .field("revision", &self.revision)
            .field("created", &self.created)
            .field("previous_revision", &self.previous_revision)
            .field("bytes", &self.value.len())
            .finish_non_exhaustive()
    }
}

/// One change to ask for.
#[derive(Clone, Debug)]
pub enum Write {
    /// Add an object; fails if there is one at `key`.
    Create {
        /// The object's key.
        key: String,
        /// The object's bytes.
        value: Bytes,
    },
    /// Replace an object that is still as it was at a revision.
    Update {
        /// The object's key.
        key: String,
        /// The object's new bytes.
        value: Bytes,
        /// The revision the caller last saw (`Entry::modified`).
        expected: Revision,
    },
    /// Remove an object.
    Delete {
        /// The object's key.
        key: String,
        /// The revision the caller last saw, or `None` to delete whatever is there.
        expected: Option<Revision>,
        /// The object's final state, for the watchers.
        last: Bytes,
    },
}

impl Write {
    /// The key this change is about.
    pub fn key(&self) -> &str {
        match self {
            Write::Create { key, .. } | Write::Update { key, .. } | Write::Delete { key, .. } => key,
        }
    }
}

/// A change that was made and will last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The change's own revision.
    pub revision: Revision,
    /// The object before the change; `None` after a create.
    pub previous: Option<Entry>,
}

/// Which objects to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListRequest<'a> {
    /// Only keys that start with this.
    pub prefix: &'a str,
    /// Only keys after this one: the last key of the page before.
    pub start_after: Option<&'a str>,
    /// At most so many entries; 0 for all.
    pub limit: usize,
    /// The state as of this revision instead of the latest.
    pub revision: Option<Revision>,
    /// Whether to count what comes after a page that is cut short (costs a walk over those keys).
    pub count_remaining: bool,
}

/// Part of a list, all of it as of one revision.
#[derive(Clone, Debug)]
pub struct Page {
    /// The entries, in key order.
    pub entries: Vec<Entry>,
    /// The revision this page shows; ask for it again to continue consistently.
    pub revision: Revision,
    /// Whether there are entries after the last one.
    pub more: bool,
    /// How many entries come after the last one, if that was asked for.
    pub remaining: Option<usize>,
}

/// How much a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The objects there are.
    pub objects: usize,
    /// The bytes of their values.
    pub object_bytes: usize,
    /// The events of the retained history.
    pub events: usize,
    /// The memory that the history keeps alive, about.
    pub history_bytes: usize,
    /// The watches.
    pub watchers: usize,
}

/// How much history to keep; whichever bound is reached first is what compacts.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Keep at most about so many events.
    pub events: usize,
    /// Keep at most about so many bytes of values that are no longer current.
    pub bytes: usize,
    /// Keep no event longer than this (by `tokio`'s clock, checked on writes and by
    /// [`Store::compact`](crate::Store::compact)).
    pub age: Duration,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { events: 16 * 1024, bytes: 16 * 1024 * 1024, age: Duration::from_secs(5 * 60) }
    }
}

/// How to run a store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How much history to keep.
    pub retention: Retention,
    /// How many bytes of the file to cache in memory; objects are in memory anyway.
    pub file_cache: usize,
    /// How many writes may wait for the committing thread before callers have to.
    pub queue: usize,
    /// How many writes at most are committed together.
    pub batch: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { retention: Retention::default(), file_cache: 4 * 1024 * 1024, queue: 1024, batch: 512 }
    }
}
