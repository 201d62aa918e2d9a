//! The figures of docs/benchmarks.md.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::Result;
use crate::client::Client;
use crate::fleet::{FieldOrder, Fleet, Situation, Size};
use crate::server::Server;

/// Starts that are timed.
const STARTS: usize = 20;
/// Calls whose latency is taken, at each size.
const CALLS: usize = 50;
/// How long callers call for calls per second.
const SPAN: Duration = Duration::from_secs(10);

const LARGE: [Size; 2] = [Size { clusters: 1000, replicas: 5000 }, Size { clusters: 5000, replicas: 20000 }];
const SMALL: Size = Size { clusters: 10, replicas: 50 };

pub(crate) async fn run(program: &Path) -> Result<()> {
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        starts.push(Server::start(program)?.started_in);
    }
    println!("time to listening            {}", describe(&mut starts));
    let server = Server::start(program)?;
    // What starting touched is settled by then.
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("idle memory                  {:.1} MiB", server.memory()? as f64 / 1024.0);
    for size in LARGE {
        for situation in [Situation::Steady, Situation::Placing] {
            latency(&server, size, situation).await?;
        }
    }
    println!("memory after these calls     {:.1} MiB", server.memory()? as f64 / 1024.0);
    println!("peak memory                  {:.1} MiB", server.peak_memory()? as f64 / 1024.0);
    drop(server);
    for size in [SMALL, LARGE[0]] {
        for callers in [1, 8, 64] {
            throughput(&Server::start(program)?, size, callers).await?;
        }
    }
    Ok(())
}

fn request(size: Size, situation: Situation) -> Bytes {
    Fleet::generate(size, situation, FieldOrder::Random).request().into()
}

async fn latency(server: &Server, size: Size, situation: Situation) -> Result<()> {
    let request = request(size, situation);
    let mut client = Client::connect(server.address).await?;
    client.call(request.clone()).await?;
    let mut taken = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let started = Instant::now();
        client.call(request.clone()).await?;
        taken.push(started.elapsed());
    }
    let megabytes = request.len() as f64 / 1e6;
    println!(
        "{:<10} {:<8} {megabytes:>5.1} MB  {}",
        size.name(),
        format!("{situation:?}"),
        describe(&mut taken)
    );
    Ok(())
}

/// Callers that each call again as soon as they are answered, on connections of their own.
async fn throughput(server: &Server, size: Size, callers: usize) -> Result<()> {
    let request = request(size, Situation::Placing);
    let started = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (request, address) = (request.clone(), server.address);
            tokio::spawn(async move {
                let mut client = Client::connect(address).await?;
                let mut calls = 0_u64;
                while started.elapsed() < SPAN {
                    client.call(request.clone()).await?;
                    calls += 1;
                }
                Result::Ok(calls)
            })
        })
        .collect();
    let mut calls = 0;
    for task in tasks {
        calls += task.await??;
    }
    let rate = calls as f64 / started.elapsed().as_secs_f64();
    let peak = server.peak_memory()? as f64 / 1024.0;
    println!("{:<10} {callers:>2} callers  {rate:>8.0} calls/s, peak memory {peak:.0} MiB", size.name());
    Ok(())
}

fn describe(taken: &mut [Duration]) -> String {
    taken.sort();
    let milliseconds = |part: usize| {
        let index = (taken.len() * part / 100).min(taken.len() - 1);
        taken[index].as_secs_f64() * 1000.0
    };
    format!(
        "median {:.1} ms, 95th percentile {:.1} ms, worst {:.1} ms",
        milliseconds(50),
        milliseconds(95),
        milliseconds(100)
    )
}
