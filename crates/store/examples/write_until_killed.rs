//! Writes to a store as fast as it can and prints each acknowledged `key revision`, until it is
//! killed; `tests/kill.rs` runs it. Arguments: the store's file and a tag for this round's keys.

use std::io::Write as _;
use std::path::Path;

use bytes::Bytes;
use modelplane_store::{Options, Retention, Store, Write, WriteError};

const WRITERS: usize = 16;
const KEYS: usize = 40;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file?")?;
    let round = arguments.next().ok_or("which round?")?;
    // A short history, so that kills hit compactions too.
    let retention = Retention { events: 500, ..Retention::default() };
    let store = Store::open(Path::new(&path), Options { retention, ..Options::default() })?;
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write_for_ever(store.clone(), round.clone(), writer)))
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// Creates, updates and deletes a few keys of its own, in turn.
async fn write_for_ever(store: Store, round: String, writer: usize) -> Result<(), WriteError> {
    for number in 0_usize.. {
        let key = format!("/kill/{writer}/{}", number % KEYS);
        let value = Bytes::from(format!("{round} {number} {}", "x".repeat(number % 3000)));
        let current = store.get(&key).ok().flatten();
        let write = match current.as_ref().map(|entry| entry.modified) {
            None => Write::Create { key: key.clone(), value },
            Some(_) if number % 7 == 0 => Write::Delete { key: key.clone(), expected: None, last: value },
            Some(expected) => Write::Update { key: key.clone(), value, expected },
        };
        let deleted = matches!(write, Write::Delete { .. });
        let written = store.write(write).await?;
        let line = format!("{key} {} {}\n", written.revision, u8::from(deleted));
        // One call per line keeps lines whole; a closed pipe means that the test is over.
        if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    Ok(())
}
