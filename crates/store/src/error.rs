//! What can go wrong.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::{Entry, Revision};

/// Why a store did not open.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process (or another part of this one) has the store open.
    #[error("store {} is in use by {}", path.display(), holder(*pid))]
    HeldBy {
        /// The store's file.
        path: PathBuf,
        /// The holder's process id, where it could be read.
        pid: Option<u32>,
    },
    /// The file is not a store, or part of it is damaged.
    #[error("store {} is damaged: {detail}", path.display())]
    Corrupt {
        /// The store's file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The file was written by another version of this program.
    #[error("store {} has format {found}, this program reads format {supported}", path.display())]
    Format {
        /// The store's file.
        path: PathBuf,
        /// The file's format.
        found: u64,
        /// The only format that can be read.
        supported: u64,
    },
    /// Reading or writing the file failed.
    #[error("store {} cannot be opened: {source}", path.display())]
    Io {
        /// The store's file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
}

impl OpenError {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            OpenError::HeldBy { .. } => "stop that process, or use another data directory",
            OpenError::Corrupt { .. } => {
                "keep a copy of the file, then salvage what is readable into a new store"
            }
            OpenError::Format { .. } => "use the program version that wrote it",
            OpenError::Io { .. } => "check the path, its permissions and the free space",
        }
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// History from before a revision is gone.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("revision {requested} has been compacted, the oldest available is {oldest}")]
pub struct Compacted {
    /// The revision that was asked for.
    pub requested: Revision,
    /// The oldest revision that can be listed or watched from.
    pub oldest: Revision,
}

/// Why a read failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The revision asked for is too old.
    #[error(transparent)]
    Compacted(#[from] Compacted),
    /// The revision asked for does not exist yet.
    #[error("revision {requested} is in the future, the current one is {current}")]
    Future {
        /// The revision that was asked for.
        requested: Revision,
        /// The latest revision there is.
        current: Revision,
    },
}

/// Why a write was not made.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// There already is an object at the key of a create.
    #[error("{key} already exists")]
    Exists {
        /// The key.
        key: String,
        /// What is there.
        current: Entry,
    },
    /// There is no object to update or delete.
    #[error("{key} does not exist")]
    NotFound {
        /// The key.
        key: String,
    },
    /// The object changed since the caller last saw it.
    #[error("{key} is at revision {}, not {expected}", current.modified)]
    Conflict {
        /// The key.
        key: String,
        /// The revision the caller last saw.
        expected: Revision,
        /// What is there.
        current: Entry,
    },
    /// The disk or the quota is full; the store serves reads and takes writes again once there is
    /// space. Whether this write was made is unknown until the object is read again.
    #[error("no space left for the store: {detail}")]
    Full {
        /// The operating system's reason.
        detail: String,
    },
    /// The file could not be written; later writes try again. Whether this write was made is
    /// unknown until the object is read again.
    #[error("the store's file cannot be written: {detail}")]
    Storage {
        /// The reason.
        detail: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// Why a watch ended.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchError {
    /// The watcher was so slow that events it had not read were compacted: list again.
    #[error(transparent)]
    Compacted(#[from] Compacted),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}
