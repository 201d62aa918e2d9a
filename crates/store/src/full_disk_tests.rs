//! Failing storage under the store: nothing acknowledged is lost, and writes resume.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use redb::{Builder, StorageBackend};

use crate::disk::Opener;
use crate::{Options, Retention, Store, Write, WriteError};

/// A file in memory that outlives the database, with a quota and a switch for failing syncs.
#[derive(Clone, Debug)]
struct Quota {
    content: Arc<Mutex<Vec<u8>>>,
    limit: Arc<AtomicU64>,
    sync_fails: Arc<AtomicBool>,
}

impl Quota {
    fn new() -> Quota {
        Quota {
            content: Arc::default(),
            limit: Arc::new(AtomicU64::new(u64::MAX)),
            sync_fails: Arc::default(),
        }
    }

    fn opener(&self) -> Opener {
        let backend = self.clone();
        Box::new(move || Builder::new().create_with_backend(backend.clone()))
    }

    fn open(&self) -> Store {
        let retention = Retention { events: 100, ..Retention::default() };
        let options = Options { retention, ..Options::default() };
        Store::on_disk(Path::new("quota"), self.opener(), None, options).unwrap()
    }

    fn length(&self) -> u64 {
        self.content.lock().unwrap().len() as u64
    }

    fn check(&self, end: u64) -> io::Result<()> {
        if end > self.limit.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl StorageBackend for Quota {
    fn len(&self) -> io::Result<u64> {
        Ok(self.length())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let content = self.content.lock().unwrap();
        let start = offset as usize;
        let part = content.get(start..start + out.len());
        out.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        if length > self.length() {
            self.check(length)?;
        }
        self.content.lock().unwrap().resize(length as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.sync_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is gone"));
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check(offset + data.len() as u64)?;
        let start = offset as usize;
        self.content.lock().unwrap()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}

async fn put(store: &Store, key: &str, size: usize) -> Result<u64, WriteError> {
    let value = Bytes::from(vec![b'x'; size]);
    let key = key.to_owned();
    let write = match store.get(&key).unwrap() {
        None => Write::Create { key, value },
        Some(entry) => Write::Update { key, value, expected: entry.modified },
    };
    store.write(write).await.map(|written| written.revision)
}

#[tokio::test]
async fn a_full_disk_fails_writes_until_there_is_space_again() {
    let quota = Quota::new();
    let store = quota.open();
    let mut acknowledged = Vec::new();
    for number in 0..50 {
        acknowledged.push((format!("/{number}"), put(&store, &format!("/{number}"), 1000).await));
    }
    // No more than there is; redb grows in big steps, so the quota is met some writes later.
    quota.limit.store(quota.length(), Ordering::SeqCst);
    let mut failed = 0;
    for number in 50..2000 {
        let key = format!("/{number}");
        match put(&store, &key, 20_000).await {
            Ok(revision) => acknowledged.push((key, Ok(revision))),
            Err(WriteError::Full { .. }) => {
                failed += 1;
                if failed == 5 {
                    break;
                }
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(failed, 5, "the quota was never met");
    assert!(store.get("/0").unwrap().is_some(), "reads go on");
    quota.limit.store(u64::MAX, Ordering::SeqCst);
    acknowledged.push(("/after".to_owned(), put(&store, "/after", 20_000).await));
    drop(store);

    let store = quota.open();
    let mut seen = std::collections::HashSet::new();
    for (key, revision) in acknowledged {
        let revision = revision.unwrap();
        assert!(seen.insert(revision), "revision {revision} repeats");
        assert_eq!(store.get(&key).unwrap().expect(&key).modified, revision);
    }
}

#[tokio::test]
async fn after_a_failed_sync_memory_and_file_agree_again() {
    let quota = Quota::new();
    let store = quota.open();
    let mut watch = store.watch("/", 0).unwrap();
    for round in 0..40 {
        let key = format!("/{}", round % 7);
        let fails = round % 3 == 1;
        quota.sync_fails.store(fails, Ordering::SeqCst);
        let before = store.revision();
        let outcome = put(&store, &key, 100 * round).await;
        assert_eq!(outcome.is_err(), fails, "round {round}");
        if fails {
            assert_eq!(store.revision(), before, "nothing is shown before it is durable");
        }
    }
    quota.sync_fails.store(false, Ordering::SeqCst);
    put(&store, "/last", 1).await.unwrap();
    let mut expected = 1;
    while let Some(events) = watch.try_next().unwrap() {
        for event in events {
            assert_eq!(event.revision, expected, "watchers see each revision once");
            expected += 1;
        }
    }
    let before = store.list(crate::ListRequest::default()).unwrap();
    drop(store);
    let after = quota.open().list(crate::ListRequest::default()).unwrap();
    assert_eq!((before.entries, before.revision), (after.entries, after.revision));
}
