//! Getting what is readable out of a damaged file.

use std::path::{Path, PathBuf};

use redb::{Builder, Database, ReadableDatabase};

use crate::disk::{self, Failure, Record};
use crate::hold::{Hold, beside, sync_directory};
use crate::{EventKind, OpenError, Revision, Store};

/// How far the revision counter jumps, so that no revision the damage swallowed is given again.
const REVISION_GAP: Revision = 1_000_000;

/// What was salvaged.
#[derive(Debug, PartialEq, Eq)]
pub struct Salvaged {
    /// How many objects the new store holds.
    pub objects: usize,
    /// How many log records could not be read.
    pub damaged: usize,
    /// Where the damaged file was moved.
    pub set_aside: PathBuf,
}

impl Store {
    /// Replaces a damaged file by a new one with the last readable state of each object; the
    /// damaged one is kept beside it. History is not kept, and an object whose deletion was in the
    /// damaged part comes back: ask the user before.
    pub fn salvage(path: &Path) -> Result<Salvaged, OpenError> {
        let _hold = Hold::take(path)?;
        let fresh = beside(path, "salvaged");
        let set_aside = (1..)
            .map(|number| beside(path, &format!("damaged-{number}")))
            .find(|candidate| !candidate.exists())
            .unwrap_or_else(|| beside(path, "damaged"));
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        if fresh.exists() {
            std::fs::remove_file(&fresh).map_err(io)?;
        }
        let (objects, damaged) = disk::contain(|| {
            let damaged = Builder::new().open(path)?;
            copy(&damaged, &Builder::new().create(&fresh)?)
        })
        .map_err(|error| error.opening(path))?;
        std::fs::rename(path, &set_aside).map_err(io)?;
        std::fs::rename(&fresh, path).map_err(io)?;
        sync_directory(path);
        Ok(Salvaged { objects, damaged, set_aside })
    }
}

fn copy(from: &Database, to: &Database) -> Result<(usize, usize), Failure> {
    let transaction = from.begin_read()?;
    let log = transaction.open_table(disk::LOG)?;
    let mut objects = std::collections::BTreeMap::new();
    let (mut damaged, mut last) = (0, 0);
    for item in log.range::<Revision>(..)? {
        let Ok((revision, bytes)) = item else {
            damaged += 1;
            break;
        };
        last = revision.value();
        match Record::decode(last, bytes.value()) {
            Err(_) => damaged += 1,
            Ok(record) if record.kind == EventKind::Delete => {
                objects.remove(record.key);
            }
            Ok(record) => {
                objects.insert(record.key.to_owned(), (last, bytes.value().to_vec()));
            }
        }
    }
    disk::initialize(to)?;
    let transaction = to.begin_write()?;
    {
        let mut log = transaction.open_table(disk::LOG)?;
        for (revision, bytes) in objects.values() {
            log.insert(revision, bytes.as_slice())?;
        }
        transaction.open_table(disk::META)?.insert(disk::COMPACTED, last + REVISION_GAP)?;
    }
    transaction.commit()?;
    Ok((objects.len(), damaged))
}
