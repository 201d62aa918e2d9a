//! `/debug/profile`: what the process and the server are doing, as JSON; off unless the options ask for it.
//!
//! With `?seconds=N` it shows the difference between two moments. What Rust can say without `unsafe`, and what the
//! kernel says in `/proc`: memory, time on the CPU by thread, the runtime's workers, requests by verb with their
//! latencies, the store. There is no sampling profiler in the process: the released binary has no symbols and the
//! sampling would take signal handlers; `perf record` on a build with the `bench` profile tells more.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::core::Core;
use crate::http::query::Query;
use crate::status::{ApiError, ApiResult};

const MAX_SECONDS: u64 = 60;

/// Upper bounds of the latency buckets, in microseconds; a last one has the rest.
const BOUNDS: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000];

/// What requests are counted by.
const VERBS: [&str; 9] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "other"];

/// Requests by verb and latency since the start.
#[derive(Default)]
pub(crate) struct Latencies([Verb; VERBS.len()]);

#[derive(Default)]
struct Verb {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Latencies {
    /// Counts a request.
    pub(crate) fn observe(&self, verb: &str, took: Duration) {
        let index = VERBS.iter().position(|known| *known == verb).unwrap_or(VERBS.len() - 1);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < micros);
        self.0[index].buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.0[index].micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn read(&self) -> Vec<([u64; BOUNDS.len() + 1], u64)> {
        let read = |verb: &Verb| {
            let buckets = std::array::from_fn(|index| verb.buckets[index].load(Ordering::Relaxed));
            (buckets, verb.micros.load(Ordering::Relaxed))
        };
        self.0.iter().map(read).collect()
    }
}

/// Counters at one moment.
struct Moment {
    requests: Vec<([u64; BOUNDS.len() + 1], u64)>,
    /// Nanoseconds on the CPU by thread id and name.
    threads: BTreeMap<(u64, String), u64>,
    /// Time busy and times parked, by worker.
    workers: Vec<(Duration, u64)>,
}

impl Moment {
    fn now(core: &Core) -> Moment {
        let metrics = Handle::current().metrics();
        let worker = |index| (metrics.worker_total_busy_duration(index), metrics.worker_park_count(index));
        Moment {
            requests: core.metrics.latencies().read(),
            threads: threads(),
            workers: (0..metrics.num_workers()).map(worker).collect(),
        }
    }
}

/// Answers `/debug/profile`.
pub(crate) async fn profile(core: &Core, query: &Query) -> ApiResult<Value> {
    let seconds = query.number("seconds")?.unwrap_or_default();
    if seconds > MAX_SECONDS {
        return Err(ApiError::bad_request(format!("seconds must be at most {MAX_SECONDS}, not {seconds}")));
    }
    let before = if seconds == 0 {
        None
    } else {
        let before = Moment::now(core);
        let mut stopping = core.stopping.subscribe();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
            // An error means that the server is gone.
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
        Some(before)
    };
    Ok(report(core, before.as_ref(), &Moment::now(core), seconds))
}

fn report(core: &Core, before: Option<&Moment>, after: &Moment, seconds: u64) -> Value {
    let metrics = Handle::current().metrics();
    let sizes = core.store.sizes();
    json!({
        "seconds": if before.is_some() { json!(seconds) } else { json!("since the start") },
        "process": process(),
        "threads": threads_between(before, after),
        "runtime": {
            "aliveTasks": metrics.num_alive_tasks(),
            "queuedTasks": metrics.global_queue_depth(),
            "workers": workers_between(before, after),
        },
        "requests": requests_between(before, after),
        "watches": core.metrics.watches(),
        "store": {
            "revision": core.store.revision(),
            "compactedRevision": core.store.compacted(),
            "objects": sizes.objects,
            "objectBytes": sizes.object_bytes,
            "events": sizes.events,
            "historyBytes": sizes.history_bytes,
            "watchers": sizes.watchers,
        },
    })
}

/// Requests by verb; a bucket has the requests that took at most so many microseconds, and more than the one before.
fn requests_between(before: Option<&Moment>, after: &Moment) -> Value {
    let mut verbs = serde_json::Map::new();
    for (index, verb) in VERBS.iter().enumerate() {
        let (mut buckets, mut micros) = after.requests[index];
        if let Some((earlier, earlier_micros)) = before.map(|before| before.requests[index]) {
            for (count, earlier) in buckets.iter_mut().zip(earlier) {
                *count = count.saturating_sub(earlier);
            }
            micros = micros.saturating_sub(earlier_micros);
        }
        let count: u64 = buckets.iter().sum();
        if count == 0 {
            continue;
        }
        let bounds = BOUNDS.iter().map(u64::to_string).chain(["more".to_owned()]);
        let filled = bounds.zip(buckets).filter(|(_, count)| *count > 0);
        let latencies: serde_json::Map<String, Value> =
            filled.map(|(bound, count)| (bound, count.into())).collect();
        let entry = json!({"count": count, "meanMicros": micros / count, "byMicros": latencies});
        verbs.insert((*verb).to_owned(), entry);
    }
    Value::Object(verbs)
}

fn threads_between(before: Option<&Moment>, after: &Moment) -> Value {
    let mut threads: Vec<(&str, u64)> = Vec::with_capacity(after.threads.len());
    for (key, nanos) in &after.threads {
        let earlier = before.and_then(|before| before.threads.get(key)).copied().unwrap_or_default();
        threads.push((&key.1, nanos.saturating_sub(earlier)));
    }
    threads.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
    let thread = |(name, nanos): &(&str, u64)| json!({"name": name, "cpuMicros": nanos / 1000});
    threads.iter().map(thread).collect()
}

fn workers_between(before: Option<&Moment>, after: &Moment) -> Value {
    let worker = |(index, (busy, parked)): (usize, &(Duration, u64))| {
        let (earlier_busy, earlier_parked) =
            before.and_then(|before| before.workers.get(index)).copied().unwrap_or_default();
        json!({
            "busyMicros": u64::try_from(busy.saturating_sub(earlier_busy).as_micros()).unwrap_or(u64::MAX),
            "parked": parked.saturating_sub(earlier_parked),
        })
    };
    after.workers.iter().enumerate().map(worker).collect()
}

/// Memory and files of the process, where the kernel tells (Linux); `null` elsewhere.
fn process() -> Value {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kibibytes = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
    };
    json!({
        "id": std::process::id(),
        "residentBytes": kibibytes("VmRSS"),
        "peakResidentBytes": kibibytes("VmHWM"),
        "dataBytes": kibibytes("VmData"),
        "openFiles": fs::read_dir("/proc/self/fd").ok().map(Iterator::count),
    })
}

/// Time on the CPU by thread; empty where the kernel does not tell.
fn threads() -> BTreeMap<(u64, String), u64> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return BTreeMap::new() };
    let thread = |task: fs::DirEntry| {
        let id = task.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
        Some(((id, name.trim().to_owned()), times.split(' ').next()?.parse().ok()?))
    };
    tasks.flatten().filter_map(thread).collect()
}
