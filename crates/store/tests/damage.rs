//! Damaged files: a clear error or the whole content, never a panic or silently wrong objects.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Seek, SeekFrom, Write as _};
use std::path::Path;

use bytes::Bytes;
use modelplane_store::{ListRequest, OpenError, Options, Store, Write};

const OBJECTS: usize = 500;

fn value(number: usize) -> Bytes {
    Bytes::from(format!("{number} ").repeat(200))
}

async fn fill(path: &Path) {
    let store = Store::open(path, Options::default()).unwrap();
    for number in 0..OBJECTS {
        let write = Write::Create { key: format!("/{number:04}"), value: value(number) };
        store.write(write).await.unwrap();
    }
    store.close().await;
}

fn overwrite(path: &Path, from: u64, bytes: usize) {
    let mut file = std::fs::File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(from)).unwrap();
    file.write_all(&vec![0xa5; bytes]).unwrap();
}

fn cut(path: &Path, to: u64) {
    std::fs::File::options().write(true).open(path).unwrap().set_len(to).unwrap();
}

/// A name, what it does to a file of some length, and how many objects must survive it.
type Damage = (&'static str, fn(&Path, u64), usize);

const DAMAGES: [Damage; 9] = [
    ("empty", |path, _| cut(path, 0), 0),
    ("half a header", |path, _| cut(path, 100), 0),
    ("half a file", |path, length| cut(path, length / 2), 100),
    ("one page short", |path, length| cut(path, length - 4096), 490),
    ("one byte short", |path, length| cut(path, length - 1), 500),
    ("a bad header", |path, _| overwrite(path, 0, 512), 500),
    ("a bad start", |path, _| overwrite(path, 4096, 65_536), 300),
    ("a bad middle", |path, length| overwrite(path, length / 2, 8192), 450),
    ("a bad tail", |path, length| overwrite(path, length - 65_536, 65_536), 300),
];

#[tokio::test]
async fn damage_is_an_error_or_harmless_and_never_a_wrong_object() {
    let directory = tempfile::tempdir().unwrap();
    let good = directory.path().join("good");
    fill(&good).await;
    let length = std::fs::metadata(&good).unwrap().len();
    for (name, damage, least) in DAMAGES {
        let path = directory.path().join(name.replace(' ', "-"));
        std::fs::copy(&good, &path).unwrap();
        damage(&path, length);
        match Store::open(&path, Options::default()) {
            Ok(store) => {
                let count = check(&store, name);
                let empty_file = name == "empty";
                assert!(count == OBJECTS || empty_file, "{name}: {count} objects");
                continue;
            }
            Err(error @ OpenError::Corrupt { .. }) => {
                eprintln!("{name}: {error}");
                assert!(error.to_string().contains("is damaged"), "{name}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
        let salvaged = Store::salvage(&path).unwrap();
        eprintln!("{name}: {} of {OBJECTS} objects salvaged", salvaged.objects);
        assert!(salvaged.set_aside.exists(), "{name}");
        assert!(salvaged.objects >= least, "{name}: only {} objects", salvaged.objects);
        let store = Store::open(&path, Options::default()).unwrap();
        assert_eq!(check(&store, name), salvaged.objects, "{name}");
        let write = Write::Create { key: "/new".to_owned(), value: Bytes::new() };
        let revision = store.write(write).await.unwrap().revision;
        assert!(revision > OBJECTS as u64, "{name}: revision {revision} repeats");
    }
}

/// Every object there is has the value it was given.
fn check(store: &Store, name: &str) -> usize {
    let page = store.list(ListRequest::default()).unwrap();
    for entry in &page.entries {
        let number = entry.key.trim_start_matches('/').parse().unwrap();
        assert_eq!(entry.value, value(number), "{name}: {}", entry.key);
    }
    page.entries.len()
}

#[test]
fn a_file_of_another_program_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "not a store".repeat(1000)).unwrap();
    let error = Store::open(&path, Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "not a store".repeat(1000));
}

#[test]
fn a_missing_directory_is_an_io_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = Store::open(&directory.path().join("no/such/store"), Options::default());
    assert!(matches!(error, Err(OpenError::Io { .. })), "{error:?}");
}
