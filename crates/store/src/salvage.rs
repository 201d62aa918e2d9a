//! Getting what is readable out of a damaged file.
//!
//! The database is tried first. Where it cannot be read, the file's bytes are searched for records,
//! which carry a mark, their length and a checksum; among them are some that the database had
//! already freed, and of each object the latest counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redb::{Builder, Database, ReadableDatabase};

use crate::disk::{self, Failure, MAGIC, Record};
use crate::hold::{Hold, beside, create_private, sync_directory};
use crate::{EventKind, OpenError, Revision, Store};

/// How far the revision counter jumps, so that no revision the damage swallowed is given again.
const REVISION_GAP: Revision = 1_000_000;

/// What was salvaged.
#[derive(Debug, PartialEq, Eq)]
pub struct Salvaged {
    /// How many objects the new store holds.
    pub objects: usize,
    /// Whether they had to be searched for because the database could not be read: an object that
    /// was deleted may then be back.
    pub searched: bool,
    /// Where the damaged file was moved.
    pub set_aside: PathBuf,
}

impl Store {
    /// Replaces a damaged file by a new one with the last readable state of each object, without
    /// history; the damaged one is kept beside it. Ask the user before: what was lost stays lost.
    pub fn salvage(path: &Path) -> Result<Salvaged, OpenError> {
        let _hold = Hold::take(path)?;
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        let fresh = beside(path, "salvaged");
        if fresh.exists() {
            std::fs::remove_file(&fresh).map_err(io)?;
        }
        let read = disk::contain(|| read_database(&Builder::new().open(path)?));
        let (found, searched) = match read {
            Ok(found) => (found, false),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "searching the damaged store");
                (search(&std::fs::read(path).map_err(io)?), true)
            }
        };
        create_private(&fresh)?;
        disk::contain(|| found.write(&Builder::new().create(&fresh)?))
            .map_err(|error| error.opening(&fresh))?;
        let set_aside = (1..)
            .map(|number| beside(path, &format!("damaged-{number}")))
            .find(|candidate| !candidate.exists())
            .unwrap_or_else(|| beside(path, "damaged"));
        std::fs::rename(path, &set_aside).map_err(io)?;
        std::fs::rename(&fresh, path).map_err(io)?;
        sync_directory(path);
        Ok(Salvaged { objects: found.objects(), searched, set_aside })
    }
}

/// The latest record of each key, as it is in the file.
#[derive(Default)]
struct Found {
    latest: BTreeMap<String, Latest>,
    last: Revision,
}

struct Latest {
    revision: Revision,
    /// `None` for a deletion.
    record: Option<Vec<u8>>,
}

impl Found {
    fn add(&mut self, record: &Record<'_>, bytes: &[u8]) {
        self.last = self.last.max(record.revision);
        let known = self.latest.get(record.key);
        if known.is_none_or(|known| known.revision < record.revision) {
            let kept = (record.kind == EventKind::Put).then(|| bytes.to_vec());
            let latest = Latest { revision: record.revision, record: kept };
            self.latest.insert(record.key.to_owned(), latest);
        }
    }

    fn objects(&self) -> usize {
        self.latest.values().filter(|latest| latest.record.is_some()).count()
    }

    fn write(&self, to: &Database) -> Result<(), Failure> {
        disk::initialize(to)?;
        let transaction = to.begin_write()?;
        {
            let mut log = transaction.open_table(disk::LOG)?;
            for Latest { revision, record } in self.latest.values() {
                if let Some(record) = record {
                    log.insert(revision, record.as_slice())?;
                }
            }
            let begin = self.last + REVISION_GAP;
            transaction.open_table(disk::META)?.insert(disk::COMPACTED, begin)?;
        }
        transaction.commit()?;
        Ok(())
    }
}

/// Reads all records through the database; bad ones are left out.
fn read_database(database: &Database) -> Result<Found, Failure> {
    let transaction = database.begin_read()?;
    let log = transaction.open_table(disk::LOG)?;
    let mut found = Found::default();
    for item in log.range::<Revision>(..)? {
        let (revision, bytes) = item?;
        found.last = found.last.max(revision.value());
        if let Some((record, _)) = Record::parse(bytes.value()) {
            found.add(&record, bytes.value());
        }
    }
    Ok(found)
}

/// Finds all intact records in a file's bytes.
fn search(file: &[u8]) -> Found {
    let mut found = Found::default();
    let mut rest = file;
    while let Some(start) = rest.iter().position(|byte| *byte == MAGIC[0]) {
        rest = &rest[start..];
        match Record::parse(rest) {
            Some((record, following)) => {
                found.add(&record, &rest[..rest.len() - following.len()]);
                rest = following;
            }
            None => rest = &rest[1..],
        }
    }
    found
}
