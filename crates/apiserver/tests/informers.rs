//! Informers of a real client library follow churn over TLS without missing a change.
//!
//! Two seconds long; `MODELPLANE_CHURN_SECONDS=300` makes it the five minutes that docs/benchmarks.md tells of.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use modelplane_apiserver::{Identity, Options, Profile};
use serde_json::json;
use support::served::Served;

/// Objects that come, change and go.
const NAMES: u64 = 50;
/// Watches end and are taken up again this often, as in a long life.
const WATCH_SECONDS: u32 = 3;
/// Longest to wait for the last event once nothing is written any more.
const PATIENCE: Duration = Duration::from_secs(30);
const INFORMERS: usize = 4;
/// The object that ends it.
const LAST: &str = "last";

/// What happened to an object, as its writer and as an informer saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// It is there, in this version.
    Written(String),
    Deleted,
}

type History = HashMap<String, Vec<Change>>;

/// Writes until the time is up; every change by name, in order.
async fn churn(client: Client, length: Duration) -> History {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut history = History::new();
    let end = Instant::now() + length;
    let mut step: u64 = 0;
    while Instant::now() < end {
        step += 1;
        // A fixed walk that comes by every name in changing order.
        let name = format!("churn-{}", step.wrapping_mul(0x9E37_79B9_7F4A_7C15) % NAMES);
        let past = history.entry(name.clone()).or_default();
        let is_there = matches!(past.last(), Some(Change::Written(_)));
        let change = if !is_there {
            let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
            let map = ConfigMap { metadata, ..ConfigMap::default() };
            Change::Written(
                maps.create(&PostParams::default(), &map).await.unwrap().resource_version().unwrap(),
            )
        } else if step.is_multiple_of(5) {
            maps.delete(&name, &DeleteParams::default()).await.unwrap();
            Change::Deleted
        } else {
            let patch = Patch::Merge(json!({"data": {"step": step.to_string()}}));
            let patched = maps.patch(&name, &PatchParams::default(), &patch).await.unwrap();
            Change::Written(patched.resource_version().unwrap())
        };
        past.push(change);
    }
    history
}

/// Follows everything until [`LAST`] is there; the changes by name, and how often it listed anew.
async fn inform(client: Client, ready: Arc<AtomicBool>) -> (History, usize) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut history = History::new();
    let mut lists = 0;
    let mut events = Box::pin(watcher(maps, watcher::Config::default().timeout(WATCH_SECONDS)));
    loop {
        let (map, deleted) = match events.try_next().await.unwrap().unwrap() {
            Event::Init => {
                lists += 1;
                continue;
            }
            Event::InitDone => {
                ready.store(true, Ordering::SeqCst);
                continue;
            }
            Event::InitApply(map) | Event::Apply(map) => (map, false),
            Event::Delete(map) => (map, true),
        };
        if map.name_any() == LAST {
            return (history, lists);
        }
        let change = if deleted { Change::Deleted } else { Change::Written(map.resource_version().unwrap()) };
        history.entry(map.name_any()).or_default().push(change);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informers_see_every_change_in_order_and_once() {
    let seconds = std::env::var("MODELPLANE_CHURN_SECONDS").map_or(2, |text| text.parse().unwrap());
    let served = Served::start(Options::in_memory(Profile::ControlPlane)).await;
    let client = served.client(&Identity::admin()).await;
    let mut informers = Vec::new();
    for _ in 0..INFORMERS {
        let ready = Arc::new(AtomicBool::new(false));
        informers.push(tokio::spawn(inform(client.clone(), Arc::clone(&ready))));
        while !ready.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    let written = churn(client.clone(), Duration::from_secs(seconds)).await;
    let writes: usize = written.values().map(Vec::len).sum();
    // Whoever has seen what was written last has seen everything before it.
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let metadata = ObjectMeta { name: Some(LAST.to_owned()), ..ObjectMeta::default() };
    maps.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();

    assert!(writes > 10, "only {writes} writes");
    for informer in informers {
        let (seen, lists) = tokio::time::timeout(PATIENCE, informer).await.unwrap().unwrap();
        assert_eq!(lists, 1, "no watch was lost");
        let mut names: Vec<&String> = written.keys().collect();
        names.sort();
        for name in names {
            assert_eq!(seen.get(name), written.get(name), "{name}");
        }
    }
    println!("{writes} writes, each seen once by each of {INFORMERS} informers");
    served.stop().await;
}
