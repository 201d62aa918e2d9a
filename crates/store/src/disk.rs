//! The store's file: a `redb` database with one log of records by revision.
//!
//! The log holds, for each retained revision, its event, and for each object that was last written
//! before history begins, that write. Events carry no previous value: it is in the log too, since a
//! record is removed only when compaction passes the record that replaced it. A transaction adds a
//! batch of records at the end, so commits touch few pages.
//!
//! After a failed commit `redb` refuses further work, so the database is closed and opened again
//! before the next one; what the file holds then decides whether the failed batch was written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use redb::{Builder, Database, DatabaseError, ReadableDatabase, TableDefinition};
use tokio::time::Instant;

use crate::hold::Hold;
use crate::state::{Compaction, State};
use crate::{Entry, Event, EventKind, OpenError, Revision, WriteError};

pub(crate) const LOG: TableDefinition<'_, Revision, &[u8]> = TableDefinition::new("log");
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const FORMAT: &str = "format";
pub(crate) const COMPACTED: &str = "compacted";
const SUPPORTED: u64 = 1;

/// How the database is opened, again after each failed commit.
pub(crate) type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send>;

/// A store's file, held.
pub(crate) struct Disk {
    path: PathBuf,
    opener: Opener,
    /// `None` after a failed commit, until it could be opened again.
    database: Option<Database>,
    _hold: Option<Hold>,
}

/// Opens the file at a path, making it if there is none.
pub(crate) fn file_opener(path: &Path, cache: usize) -> Opener {
    let path = path.to_owned();
    Box::new(move || Builder::new().set_cache_size(cache).create(&path))
}

impl Disk {
    /// Opens the database and reads all of it.
    pub(crate) fn load(path: &Path, opener: Opener, hold: Option<Hold>) -> Result<(Disk, State), OpenError> {
        let load = || {
            let database = opener()?;
            initialize(&database)?;
            let mut state = State::default();
            read_all(&database, &mut state)?;
            Ok((database, state))
        };
        let (database, state) = contain(load).map_err(|error| error.opening(path))?;
        let disk = Disk { path: path.to_owned(), opener, database: Some(database), _hold: hold };
        Ok((disk, state))
    }

    /// Makes events, and what their compaction removes, durable. After an error the state is to be
    /// brought up to date with [`Disk::recover`] before the next commit.
    pub(crate) fn commit(
        &mut self,
        events: &[Arc<Event>],
        compaction: Option<&Compaction>,
    ) -> Result<(), WriteError> {
        let Some(database) = &self.database else {
            return Err(WriteError::Storage { detail: "the database is not open".to_owned() });
        };
        contain(|| commit(database, events, compaction)).map_err(|error| {
            tracing::warn!(path = %self.path.display(), %error, "commit failed");
            self.database = None;
            error.writing()
        })
    }

    /// After a failed commit, opens the database again and takes over what it holds beyond `state`.
    pub(crate) fn recover(&mut self) -> Result<bool, WriteError> {
        if self.database.is_some() {
            return Ok(false);
        }
        let database = contain(|| Ok((self.opener)()?)).map_err(Failure::writing)?;
        self.database = Some(database);
        tracing::info!(path = %self.path.display(), "opened the database again");
        Ok(true)
    }

    /// Applies the records that the file has and the state does not.
    pub(crate) fn catch_up(&mut self, state: &mut State) -> Result<(), WriteError> {
        let Some(database) = &self.database else { return Ok(()) };
        contain(|| {
            read_tail(database, state)?;
            // The failed commit may have been a compaction, and the file's must never go back.
            state.compact(read_compacted(database)?);
            Ok(())
        })
        .map_err(|error| {
            self.database = None;
            error.writing()
        })
    }
}

/// What can go wrong with the database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Database(redb::Error),
    #[error("{0}")]
    Damaged(String),
    #[error("format {0}")]
    Format(u64),
}

impl<E: Into<redb::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Database(error.into())
    }
}

impl Failure {
    /// This failure, as the reason why a store does not open.
    pub(crate) fn opening(self, path: &Path) -> OpenError {
        let path = path.to_owned();
        match self {
            Failure::Format(found) => OpenError::Format { path, found, supported: SUPPORTED },
            Failure::Damaged(detail) => OpenError::Corrupt { path, detail },
            Failure::Database(redb::Error::DatabaseAlreadyOpen) => OpenError::HeldBy { path, pid: None },
            Failure::Database(redb::Error::Io(source)) if !is_damage(&source) => {
                OpenError::Io { path, source }
            }
            Failure::Database(other) => OpenError::Corrupt { path, detail: other.to_string() },
        }
    }

    fn writing(self) -> WriteError {
        match self {
            Failure::Database(redb::Error::Io(error)) if is_full(&error) => {
                WriteError::Full { detail: error.to_string() }
            }
            other => WriteError::Storage { detail: other.to_string() },
        }
    }
}

/// What `redb` reports for a file that is too short or is none of its own.
fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Runs a database operation; `redb` panics on some damage, which must not take the process down.
pub(crate) fn contain<T>(operation: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(operation)).unwrap_or_else(|panic| {
        let detail = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("unknown reason");
        Err(Failure::Damaged(format!("the database gave up: {detail}")))
    })
}

/// Makes the tables of a new file; checks the format of an old one.
pub(crate) fn initialize(database: &Database) -> Result<(), Failure> {
    if let Ok(meta) = database.begin_read()?.open_table(META)
        && let Some(format) = meta.get(FORMAT)?
    {
        return match format.value() {
            SUPPORTED => Ok(()),
            other => Err(Failure::Format(other)),
        };
    }
    let transaction = database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(FORMAT, SUPPORTED)?;
        meta.insert(COMPACTED, 0)?;
        transaction.open_table(LOG)?;
    }
    transaction.commit()?;
    Ok(())
}

fn commit(
    database: &Database,
    events: &[Arc<Event>],
    compaction: Option<&Compaction>,
) -> Result<(), Failure> {
    let transaction = database.begin_write()?;
    {
        let mut log = transaction.open_table(LOG)?;
        for event in events {
            let record = Record {
                revision: event.revision,
                kind: event.kind,
                created: event.created,
                key: &event.key,
                value: &event.value,
            };
            let mut space = log.insert_reserve(event.revision, record.encoded_len())?;
            record.encode(space.as_mut());
        }
        if let Some(compaction) = compaction {
            for revision in &compaction.obsolete {
                log.remove(revision)?;
            }
            transaction.open_table(META)?.insert(COMPACTED, compaction.to)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn read_all(database: &Database, state: &mut State) -> Result<(), Failure> {
    let transaction = database.begin_read()?;
    let compacted = read_compacted(database)?;
    let log = transaction.open_table(LOG)?;
    for item in log.range(..=compacted)? {
        let (revision, bytes) = item?;
        let record = Record::decode(revision.value(), bytes.value())?;
        if record.kind == EventKind::Put {
            state.restore(record.entry());
        }
    }
    state.begin_at(compacted);
    read_tail(database, state)
}

fn read_compacted(database: &Database) -> Result<Revision, Failure> {
    let meta = database.begin_read()?.open_table(META)?;
    let compacted = meta.get(COMPACTED)?;
    compacted
        .map(|revision| revision.value())
        .ok_or_else(|| Failure::Damaged("it does not say where history begins".to_owned()))
}

fn read_tail(database: &Database, state: &mut State) -> Result<(), Failure> {
    let transaction = database.begin_read()?;
    let log = transaction.open_table(LOG)?;
    let now = Instant::now();
    for item in log.range(state.revision() + 1..)? {
        let (revision, bytes) = item?;
        let revision = revision.value();
        if revision != state.revision() + 1 {
            let expected = state.revision() + 1;
            return Err(Failure::Damaged(format!("revision {expected} is missing")));
        }
        let record = Record::decode(revision, bytes.value())?;
        let before = state.get(record.key);
        let key = before.as_ref().map_or_else(|| record.key.into(), |entry| Arc::clone(&entry.key));
        let value = Bytes::copy_from_slice(record.value);
        let event = Event::new(record.kind, key, value, revision, before.as_ref());
        if event.created != record.created {
            return Err(Failure::Damaged(format!("revision {revision} does not follow")));
        }
        state.apply([Arc::new(event)], now);
    }
    Ok(())
}

/// One log record: `magic | length u32 | checksum u64 | revision u64 | created u64 | kind u8 |
/// key length u32 | key | value`, the length counting everything. It stands for itself, so that
/// salvaging finds it even where the database around it is damaged.
pub(crate) struct Record<'a> {
    pub(crate) revision: Revision,
    pub(crate) kind: EventKind,
    pub(crate) created: Revision,
    pub(crate) key: &'a str,
    pub(crate) value: &'a [u8],
}

pub(crate) const MAGIC: [u8; 4] = *b"\xffMR\x01";
const HEADER: usize = 4 + 4 + 8 + 8 + 8 + 1 + 4;

impl<'a> Record<'a> {
    fn encoded_len(&self) -> usize {
        HEADER + self.key.len() + self.value.len()
    }

    fn encode(&self, into: &mut [u8]) {
        let key_end = HEADER + self.key.len();
        let length = into.len() as u32;
        into[..4].copy_from_slice(&MAGIC);
        into[4..8].copy_from_slice(&length.to_le_bytes());
        into[16..24].copy_from_slice(&self.revision.to_le_bytes());
        into[24..32].copy_from_slice(&self.created.to_le_bytes());
        into[32] = u8::from(self.kind == EventKind::Delete);
        into[33..37].copy_from_slice(&(self.key.len() as u32).to_le_bytes());
        into[HEADER..key_end].copy_from_slice(self.key.as_bytes());
        into[key_end..].copy_from_slice(self.value);
        let sum = checksum(&into[16..]);
        into[8..16].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads the record of a revision, checking that it is as it was written.
    fn decode(revision: Revision, bytes: &'a [u8]) -> Result<Record<'a>, Failure> {
        Record::parse(bytes)
            .filter(|(record, rest)| record.revision == revision && rest.is_empty())
            .map(|(record, _)| record)
            .ok_or_else(|| Failure::Damaged(format!("the record of revision {revision} is bad")))
    }

    /// Reads the intact record that bytes start with, if they do, and returns what follows it.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<(Record<'a>, &'a [u8])> {
        let after_magic = bytes.strip_prefix(&MAGIC)?;
        let (length, _) = after_magic.split_first_chunk::<4>()?;
        let (record, following) = bytes.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let (sum, rest) = record.get(8..)?.split_first_chunk::<8>()?;
        if u64::from_le_bytes(*sum) != checksum(rest) {
            return None;
        }
        let (revision, rest) = rest.split_first_chunk::<8>()?;
        let (created, rest) = rest.split_first_chunk::<8>()?;
        let (kind, rest) = rest.split_first()?;
        let (key_len, rest) = rest.split_first_chunk::<4>()?;
        let (key, value) = rest.split_at_checked(u32::from_le_bytes(*key_len) as usize)?;
        let record = Record {
            revision: u64::from_le_bytes(*revision),
            kind: if *kind == 0 { EventKind::Put } else { EventKind::Delete },
            created: u64::from_le_bytes(*created),
            key: std::str::from_utf8(key).ok()?,
            value,
        };
        Some((record, following))
    }

    /// The object as this record left it.
    fn entry(&self) -> Entry {
        Entry {
            key: self.key.into(),
            value: Bytes::copy_from_slice(self.value),
            created: self.created,
            modified: self.revision,
        }
    }
}

/// A fast 64-bit sum that any damaged byte changes; `redb` checks its own only after a crash.
fn checksum(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(ODD).rotate_left(29);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    sum = (sum ^ u64::from_le_bytes(last)).wrapping_mul(ODD);
    sum ^ (sum >> 32)
}
