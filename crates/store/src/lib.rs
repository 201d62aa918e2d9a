//! A durable, revisioned, watchable key-value store in one file.
//!
//! Every write gets its own revision from one counter; a write that was acknowledged survives
//! `kill -9`; any reader can list a past revision or watch from one, until history that old is
//! compacted. Current objects and the recent history live in memory, so reads never touch the file;
//! the file (a `redb` database, see [`disk`](crate::disk)) holds one log of records by revision, from which
//! memory is rebuilt when the store opens.
//!
//! The store deliberately knows nothing about the values: no JSON, no resource versions inside
//! them, no kinds. It starts no task and needs no runtime; a store on a file has one thread of its
//! own that commits batches.

mod disk;
mod entry;
mod error;
#[cfg(test)]
mod full_disk_tests;
mod hold;
mod salvage;
mod state;
mod store;
mod watch;
mod writer;

pub use entry::{
    Entry, Event, EventKind, ListRequest, Options, Page, Retention, Revision, Sizes, Write, Written,
};
pub use error::{Compacted, OpenError, ReadError, WatchError, WriteError};
pub use salvage::Salvaged;
pub use store::Store;
pub use watch::Watch;
