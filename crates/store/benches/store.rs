//! Creates and updates (from 64 callers at once, on a file and in memory), 500-item pages, and the
//! fan-out of an event to 1,000 watchers.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use modelplane_store::{ListRequest, Options, Store, Write};
use tokio::runtime::Runtime;

const CALLERS: u64 = 64;
const WATCHERS: usize = 1000;

fn value() -> Bytes {
    Bytes::from(vec![b'x'; 2000])
}

/// How long it takes to run `iterations` of `write(caller, number)` from all callers together.
async fn timed<F: Future<Output = ()> + Send + 'static>(
    iterations: u64,
    write: impl Fn(u64, u64) -> F,
) -> Duration {
    let started = Instant::now();
    let each = iterations.div_ceil(CALLERS);
    let mut tasks = Vec::new();
    for caller in 0..CALLERS.min(iterations) {
        let writes: Vec<_> = (0..each).map(|number| write(caller, number)).collect();
        tasks.push(tokio::spawn(async move {
            for write in writes {
                write.await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("a write succeeds");
    }
    started.elapsed()
}

fn writes(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime starts");
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = Store::open(&directory.path().join("s"), Options::default()).expect("it opens");
    let stores = [("file", file), ("memory", Store::in_memory(Options::default()))];
    let mut group = criterion.benchmark_group("store");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for (name, store) in &stores {
        let mut run = 0;
        group.bench_function(format!("create/{name}"), |bencher| {
            bencher.iter_custom(|iterations| {
                run += 1;
                let run = run;
                runtime.block_on(timed(iterations, |caller, number| {
                    let store = store.clone();
                    let key = format!("/create/{run}/{caller}/{number}");
                    async move {
                        store.write(Write::Create { key, value: value() }).await.expect("created");
                    }
                }))
            });
        });
        group.bench_function(format!("update/{name}"), |bencher| {
            bencher.iter_custom(|iterations| {
                runtime.block_on(timed(iterations, |caller, _| {
                    let store = store.clone();
                    let key = format!("/update/{caller}");
                    async move {
                        let current = store.get(&key).expect("it can be read");
                        let write = match current {
                            None => Write::Create { key, value: value() },
                            Some(entry) => {
                                let expected = entry.modified;
                                Write::Update { key, value: value(), expected }
                            }
                        };
                        store.write(write).await.expect("updated");
                    }
                }))
            });
        });
    }
    group.finish();
}

fn lists(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime starts");
    let store = Store::in_memory(Options::default());
    runtime.block_on(async {
        for number in 0..10_000 {
            let key = format!("/list/{number:05}");
            store.write(Write::Create { key, value: value() }).await.expect("created");
        }
    });
    criterion.bench_function("store/list 500 of 10,000", |bencher| {
        let request = ListRequest {
            prefix: "/list/",
            start_after: Some("/list/05000"),
            limit: 500,
            ..ListRequest::default()
        };
        bencher.iter(|| black_box(store.list(request).expect("it can be listed")));
    });
}

fn fan_out(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime starts");
    let store = Store::in_memory(Options::default());
    let (seen, mut all_seen) = tokio::sync::mpsc::channel(WATCHERS);
    for _ in 0..WATCHERS {
        let mut watch = store.watch("/fan/", 0).expect("nothing is compacted");
        let seen = seen.clone();
        runtime.spawn(async move {
            while let Ok(events) = watch.next().await {
                for _ in events {
                    if seen.send(()).await.is_err() {
                        return;
                    }
                }
            }
        });
    }
    let mut number = 0;
    criterion.bench_function("store/one event to 1,000 watchers", |bencher| {
        bencher.iter(|| {
            number += 1;
            runtime.block_on(async {
                let key = format!("/fan/{number}");
                store.write(Write::Create { key, value: value() }).await.expect("created");
                for _ in 0..WATCHERS {
                    all_seen.recv().await.expect("watchers run");
                }
            });
        });
    });
}

criterion_group!(benches, writes, lists, fan_out);
criterion_main!(benches);
