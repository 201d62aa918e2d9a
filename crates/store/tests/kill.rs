//! A process that writes at full speed is killed at random moments; nothing it acknowledged may be
//! lost and no revision may be given twice. `STORE_KILL_ROUNDS` sets the number of kills (8).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use modelplane_store::{EventKind, Options, Retention, Store, Write, WriteError};

const CHILD: &str = "STORE_KILL_CHILD";
const ROUNDS: &str = "STORE_KILL_ROUNDS";
const WRITERS: usize = 16;
const KEYS: usize = 40;

fn options() -> Options {
    // A short history, so that kills hit compactions too.
    let retention = Retention { events: 500, ..Retention::default() };
    Options { retention, ..Options::default() }
}

/// An acknowledged write, as the child printed it.
struct Acknowledged {
    key: String,
    revision: u64,
    deleted: bool,
}

#[test]
fn a_killed_writer_loses_nothing_and_repeats_no_revision() {
    let rounds = std::env::var(ROUNDS).ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.redb");
    let mut random = 0x5eed_u64;
    let mut last: HashMap<String, Acknowledged> = HashMap::new();
    let mut given = HashSet::new();
    let mut reached = 0;
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let delay = Duration::from_micros((random >> 33) % 120_000);
        for written in write_until_killed(&path, round, delay) {
            let revision = written.revision;
            assert!(revision > reached, "round {round}: revision {revision} after {reached}");
            assert!(given.insert(revision), "round {round}: revision {revision} repeats");
            let newest = last.get(&written.key).is_none_or(|known| known.revision < revision);
            if newest {
                last.insert(written.key.clone(), written);
            }
        }
        let started = Instant::now();
        let store = Store::open(&path, options()).unwrap();
        slowest = slowest.max(started.elapsed());
        reached = store.revision();
        check(&store, &mut last, round);
    }
    eprintln!(
        "{rounds} kills, {} acknowledged writes, slowest reopen {slowest:?}, last revision {reached}",
        given.len()
    );
}

/// What is acknowledged is there, unless a write that was cut off before its acknowledgement replaced it.
fn check(store: &Store, last: &mut HashMap<String, Acknowledged>, round: usize) {
    note_deletions(store, last);
    for Acknowledged { key, revision, deleted } in last.values() {
        assert!(*revision <= store.revision(), "round {round}: {key} at {revision} is lost");
        match store.get(key).unwrap() {
            Some(entry) if entry.modified == *revision => {
                assert!(!deleted, "round {round}: the deletion of {key} at {revision} is lost");
            }
            Some(entry) => assert!(
                entry.modified > *revision,
                "round {round}: {key} at {revision} went back to {}",
                entry.modified
            ),
            None => assert!(*deleted, "round {round}: {key} at {revision} is lost"),
        }
    }
}

/// Notes deletions that were made and not acknowledged. They are the last thing before a kill, so that history has
/// them now; once the next round has written, it may not.
fn note_deletions(store: &Store, last: &mut HashMap<String, Acknowledged>) {
    let mut watch = store.watch("/kill/", store.compacted()).unwrap();
    while let Some(events) = watch.try_next().unwrap() {
        for event in events.iter().filter(|event| event.kind == EventKind::Delete) {
            if let Some(known) = last.get_mut(&*event.key).filter(|known| known.revision < event.revision) {
                (known.revision, known.deleted) = (event.revision, true);
            }
        }
    }
}

fn write_until_killed(path: &Path, round: usize, delay: Duration) -> Vec<Acknowledged> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_writes_until_it_is_killed", "--nocapture"])
        .env(CHILD, path)
        .env("STORE_KILL_ROUND", round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.stdout.take().unwrap();
    let (started, has_started) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut lines = Vec::new();
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(written) = parse(&line) {
                lines.push(written);
                let _ = started.send(());
            }
        }
        lines
    });
    has_started.recv_timeout(Duration::from_secs(60)).expect("the child writes");
    std::thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// Reads `/kill/WRITER/KEY REVISION DELETED .`; the dot tells a whole line from a cut one.
fn parse(line: &str) -> Option<Acknowledged> {
    let start = line.find("/kill/")?;
    let mut words = line[start..].strip_suffix(" .")?.split(' ');
    Some(Acknowledged {
        key: words.next()?.to_owned(),
        revision: words.next()?.parse().ok()?,
        deleted: words.next()? == "1",
    })
}

/// Not a test of its own: the process that the test above kills.
#[test]
fn child_writes_until_it_is_killed() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let round = std::env::var("STORE_KILL_ROUND").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let store = Store::open(Path::new(&path), options()).unwrap();
        let tasks: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(write_for_ever(store.clone(), round.clone(), writer)))
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
    });
}

/// Creates, updates and deletes a few keys of its own, in turn.
async fn write_for_ever(store: Store, round: String, writer: usize) -> Result<(), WriteError> {
    for number in 0_usize.. {
        let key = format!("/kill/{writer}/{}", number % KEYS);
        let value = Bytes::from(format!("{round} {number} {}", "x".repeat(number % 3000)));
        let current = store.get(&key).unwrap().map(|entry| entry.modified);
        let deleted = current.is_some() && number.is_multiple_of(7);
        let write = match current {
            None => Write::Create { key: key.clone(), value },
            Some(_) if deleted => Write::Delete { key: key.clone(), expected: None, last: value },
            Some(expected) => Write::Update { key: key.clone(), value, expected },
        };
        let written = store.write(write).await?;
        let line = format!("{key} {} {} .\n", written.revision, u8::from(deleted));
        if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    Ok(())
}
