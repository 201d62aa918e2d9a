//! The store's behaviour, in memory and on a file alike.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use modelplane_store::{
    Compacted, Event, EventKind, ListRequest, OpenError, Options, ReadError, Retention, Store, WatchError,
    Write, WriteError,
};

fn retaining(events: usize) -> Options {
    Options { retention: Retention { events, ..Retention::default() }, ..Options::default() }
}

fn create(key: &str, value: &'static str) -> Write {
    Write::Create { key: key.to_owned(), value: Bytes::from_static(value.as_bytes()) }
}

fn update(key: &str, value: &'static str, expected: u64) -> Write {
    Write::Update { key: key.to_owned(), value: Bytes::from_static(value.as_bytes()), expected }
}

fn delete(key: &str, expected: Option<u64>) -> Write {
    Write::Delete { key: key.to_owned(), expected, last: Bytes::from_static(b"last") }
}

fn all(prefix: &str) -> ListRequest<'_> {
    ListRequest { prefix, ..ListRequest::default() }
}

fn keys(store: &Store, request: ListRequest<'_>) -> Vec<String> {
    store.list(request).unwrap().entries.iter().map(|entry| entry.key.to_string()).collect()
}

fn summary(events: &[Arc<Event>]) -> Vec<(u64, EventKind, String, Option<String>)> {
    events
        .iter()
        .map(|event| {
            let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
            (event.revision, event.kind, text(&event.value), event.previous.as_ref().map(text))
        })
        .collect()
}

/// Runs a test against both kinds of store.
async fn on_both<F: Future<Output = ()>>(test: impl Fn(Store) -> F) {
    test(Store::in_memory(Options::default())).await;
    let directory = tempfile::tempdir().unwrap();
    test(Store::open(&directory.path().join("s"), Options::default()).unwrap()).await;
}

#[tokio::test]
async fn writes_check_what_the_caller_expects() {
    on_both(|store| async move {
        let created = store.write(create("/a", "1")).await.unwrap();
        assert_eq!((created.revision, created.previous), (1, None));
        let again = store.write(create("/a", "2")).await.unwrap_err();
        assert_eq!(again.to_string(), "/a already exists");
        let updated = store.write(update("/a", "2", 1)).await.unwrap();
        assert_eq!(updated.previous.unwrap().value, "1");
        let stale = store.write(update("/a", "3", 1)).await.unwrap_err();
        assert_eq!(stale.to_string(), "/a is at revision 2, not 1");
        assert!(matches!(
            store.write(delete("/a", Some(1))).await,
            Err(WriteError::Conflict { expected: 1, .. })
        ));
        let entry = store.get("/a").unwrap().unwrap();
        assert_eq!((&entry.value[..], entry.created, entry.modified), (&b"2"[..], 1, 2));
        store.write(delete("/a", None)).await.unwrap();
        assert_eq!(store.get("/a").unwrap(), None);
        let missing = store.write(update("/a", "3", 2)).await.unwrap_err();
        assert_eq!(missing.to_string(), "/a does not exist");
        assert_eq!(store.revision(), 3, "failed writes use no revision");
    })
    .await;
}

#[tokio::test]
async fn concurrent_writes_get_distinct_revisions_and_one_of_rivals_wins() {
    on_both(|store| async move {
        store.write(create("/counter", "0")).await.unwrap();
        let rivals = (0..200).map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.write(update("/counter", "1", 1)).await })
        });
        let mut won = 0;
        for rival in rivals.collect::<Vec<_>>() {
            won += usize::from(rival.await.unwrap().is_ok());
        }
        assert_eq!(won, 1);
        let others = (0..200).map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.write(create(&format!("/{number}"), "")).await })
        });
        let mut revisions = Vec::new();
        for other in others.collect::<Vec<_>>() {
            revisions.push(other.await.unwrap().unwrap().revision);
        }
        revisions.sort_unstable();
        assert_eq!(revisions, (3..203).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test]
async fn pages_of_a_list_are_of_one_revision() {
    on_both(|store| async move {
        for key in ["/p/a", "/p/b", "/p/c", "/p/d", "/q/a"] {
            store.write(create(key, "1")).await.unwrap();
        }
        let first = ListRequest { limit: 2, count_remaining: true, ..all("/p/") };
        let page = store.list(first).unwrap();
        assert_eq!((page.entries.len(), page.more, page.remaining), (2, true, Some(2)));
        store.write(delete("/p/c", None)).await.unwrap();
        store.write(update("/p/d", "2", 4)).await.unwrap();
        store.write(create("/p/e", "1")).await.unwrap();
        let rest = ListRequest {
            start_after: Some(&page.entries[1].key),
            revision: Some(page.revision),
            ..all("/p/")
        };
        let rest = store.list(rest).unwrap();
        let seen: Vec<_> = rest.entries.iter().map(|e| (&*e.key, &e.value[..])).collect();
        assert_eq!(seen, [("/p/c", &b"1"[..]), ("/p/d", b"1")]);
        assert!(!rest.more);
        assert_eq!(keys(&store, all("/p/")), ["/p/a", "/p/b", "/p/d", "/p/e"]);
        assert_eq!(
            store.list(ListRequest { revision: Some(99), ..all("/p/") }).unwrap_err(),
            ReadError::Future { requested: 99, current: 8 }
        );
    })
    .await;
}

#[tokio::test]
async fn a_list_has_the_keys_of_its_prefix_and_no_others() {
    on_both(|store| async move {
        let there = ["", "a", "a.", "a/", "a/b", "a/~", "a/\u{7f}", "a/é", "a0", "a\u{7f}x", "b", "é", "éa"];
        for key in there {
            store.write(create(key, "1")).await.unwrap();
        }
        let tried = there.into_iter().chain(["a/é/", "z", "a\u{7f}"]);
        for prefix in tried.clone() {
            let expected: Vec<&str> = there.into_iter().filter(|key| key.starts_with(prefix)).collect();
            assert_eq!(keys(&store, all(prefix)), expected, "{prefix:?}");
            for after in tried.clone() {
                let mut rest = expected.clone();
                rest.retain(|key| *key > after);
                let request = ListRequest { start_after: Some(after), ..all(prefix) };
                assert_eq!(keys(&store, request), rest, "{prefix:?} after {after:?}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_watch_sees_every_event_under_its_prefix_once_and_in_order() {
    on_both(|store| async move {
        store.write(create("/p/a", "1")).await.unwrap();
        let mut watch = store.watch("/p/", 0).unwrap();
        store.write(create("/q/a", "1")).await.unwrap();
        store.write(update("/p/a", "2", 1)).await.unwrap();
        let waiting = tokio::spawn(async move {
            let mut events = Vec::new();
            while events.len() < 4 {
                events.extend(watch.next().await.unwrap());
            }
            (summary(&events), watch.revision())
        });
        store.write(delete("/p/a", None)).await.unwrap();
        store.write(create("/p/a", "3")).await.unwrap();
        let (events, progress) = waiting.await.unwrap();
        let text = |text: &str| text.to_owned();
        assert_eq!(
            events,
            [
                (1, EventKind::Put, text("1"), None),
                (3, EventKind::Put, text("2"), Some(text("1"))),
                (4, EventKind::Delete, text("last"), Some(text("2"))),
                (5, EventKind::Put, text("3"), None),
            ]
        );
        assert_eq!(progress, 5);
    })
    .await;
}

#[tokio::test]
async fn a_quiet_watch_promises_later_revisions_and_survives_compaction() {
    on_both(|store| async move {
        let mut quiet = store.watch("/quiet/", 0).unwrap();
        for number in 0..50 {
            store.write(create(&format!("/busy/{number}"), "")).await.unwrap();
        }
        assert_eq!(quiet.revision(), 50);
        store.compact_before(50).await.unwrap();
        assert!(quiet.try_next().unwrap().is_none());
        store.write(create("/quiet/a", "")).await.unwrap();
        assert_eq!(quiet.next().await.unwrap()[0].revision, 51);
    })
    .await;
}

#[tokio::test]
async fn compacted_history_is_refused_and_slow_watchers_are_told() {
    on_both(|store| async move {
        let mut slow = store.watch("/", 0).unwrap();
        store.write(create("/a", "1")).await.unwrap();
        store.write(create("/b", "1")).await.unwrap();
        store.write(update("/a", "2", 1)).await.unwrap();
        store.write(delete("/b", None)).await.unwrap();
        store.compact_before(3).await.unwrap();
        let compacted = |requested| Compacted { requested, oldest: 3 };
        assert_eq!(slow.try_next().unwrap_err(), WatchError::Compacted(compacted(0)));
        assert_eq!(store.watch("/", 2).err(), Some(ReadError::Compacted(compacted(2))));
        let at = |revision| ListRequest { revision: Some(revision), ..all("/") };
        assert_eq!(store.list(at(2)).unwrap_err(), ReadError::Compacted(compacted(2)));
        assert_eq!(keys(&store, at(3)), ["/a", "/b"]);
        assert_eq!(keys(&store, at(4)), ["/a"]);
        store.compact_before(4).await.unwrap();
        assert_eq!(keys(&store, all("/")), ["/a"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn history_is_bounded_by_count_size_and_age() {
    let value = |size: usize| Bytes::from(vec![b'x'; size]);
    let churn = async |store: &Store, size: usize| {
        let mut at =
            store.write(Write::Create { key: "/k".to_owned(), value: value(size) }).await.unwrap().revision;
        for _ in 0..999 {
            let write = Write::Update { key: "/k".to_owned(), value: value(size), expected: at };
            at = store.write(write).await.unwrap().revision;
        }
    };
    let by_count = Store::in_memory(retaining(100));
    churn(&by_count, 1).await;
    assert!((100..=125).contains(&(by_count.revision() - by_count.compacted())));

    let retention = Retention { bytes: 100_000, ..Retention::default() };
    let by_size = Store::in_memory(Options { retention, ..Options::default() });
    churn(&by_size, 10_000).await;
    assert!((5..=13).contains(&(by_size.revision() - by_size.compacted())));

    let retention = Retention { age: Duration::from_secs(60), ..Retention::default() };
    let by_age = Store::in_memory(Options { retention, ..Options::default() });
    churn(&by_age, 1).await;
    tokio::time::advance(Duration::from_secs(59)).await;
    by_age.compact().await.unwrap();
    assert_eq!(by_age.compacted(), 0);
    tokio::time::advance(Duration::from_secs(20)).await;
    by_age.compact().await.unwrap();
    assert_eq!(by_age.compacted(), 1000);
    assert_eq!(keys(&by_age, all("/")), ["/k"]);
}

#[tokio::test]
async fn a_reopened_store_has_its_objects_history_and_revision() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.redb");
    let store = Store::open(&path, Options::default()).unwrap();
    store.write(create("/a", "1")).await.unwrap();
    store.write(create("/b", "1")).await.unwrap();
    store.compact_before(2).await.unwrap();
    store.write(update("/a", "2", 1)).await.unwrap();
    store.write(delete("/b", None)).await.unwrap();
    drop(store);

    let store = Store::open(&path, Options::default()).unwrap();
    assert_eq!((store.revision(), store.compacted()), (4, 2));
    let entry = store.get("/a").unwrap().unwrap();
    assert_eq!((&entry.value[..], entry.created, entry.modified), (&b"2"[..], 1, 3));
    let events = store.watch("/", 2).unwrap().next().await.unwrap();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        summary(&events),
        [
            (3, EventKind::Put, text("2"), Some(text("1"))),
            (4, EventKind::Delete, text("last"), Some(text("1"))),
        ]
    );
    assert_eq!(keys(&store, ListRequest { revision: Some(2), ..all("/") }), ["/a", "/b"]);

    // The log's last record goes away; the revision must not.
    store.compact_before(4).await.unwrap();
    store.close().await;
    drop(store);
    let store = Store::open(&path, Options::default()).unwrap();
    assert_eq!(store.write(create("/c", "")).await.unwrap().revision, 5);
}

#[tokio::test]
async fn a_second_opener_hears_who_holds_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.redb");
    let store = Store::open(&path, Options::default()).unwrap();
    match Store::open(&path, Options::default()) {
        Err(error @ OpenError::HeldBy { pid: Some(pid), .. }) => {
            assert_eq!(pid, std::process::id());
            assert!(error.to_string().ends_with(&format!("is in use by process {pid}")));
        }
        other => panic!("unexpected {other:?}"),
    }
    store.close().await;
    Store::open(&path, Options::default()).unwrap();
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.redb");
    Store::open(&path, Options::default()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_closed_store_ends_watches_and_refuses_writes() {
    on_both(|store| async move {
        store.write(create("/a", "1")).await.unwrap();
        let mut watch = store.watch("/", 0).unwrap();
        let closer = store.clone();
        assert_eq!(watch.next().await.unwrap().len(), 1);
        let waiting = tokio::spawn(async move { watch.next().await });
        closer.close().await;
        assert_eq!(waiting.await.unwrap().unwrap_err(), WatchError::Closed);
        assert!(matches!(store.write(create("/b", "")).await, Err(WriteError::Closed)));
        assert!(store.get("/a").unwrap().is_some());
    })
    .await;
}

#[tokio::test]
async fn watchers_share_what_is_derived_from_an_event() {
    let store = Store::in_memory(Options::default());
    store.write(create("/a", "1")).await.unwrap();
    let one = store.watch("/", 0).unwrap().next().await.unwrap();
    let two = store.watch("/", 0).unwrap().next().await.unwrap();
    let made = one[0].memo(|| "made once".to_owned()).unwrap();
    let shared = two[0].memo(|| -> String { unreachable!("kept already") }).unwrap();
    assert!(Arc::ptr_eq(&made, &shared));
    assert!(one[0].memo(|| 1_u32).is_none());
}
