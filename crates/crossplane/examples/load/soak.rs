//! Mixed calls at full speed for minutes, some of them malformed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tonic::{Code, Status};

use crate::Result;
use crate::client::Client;
use crate::fleet::{FieldOrder, Fleet, Situation, Size};
use crate::server::Server;

const CALLERS: usize = 8;
/// One call in so many is malformed.
const MALFORMED: usize = 20;
/// How often figures are printed.
const REPORT: Duration = Duration::from_secs(15);
/// Failures that are printed; all are counted.
const SHOWN: u64 = 20;
/// How often memory is looked at; of a report's looks the largest counts.
const LOOK: Duration = Duration::from_millis(100);
/// How much memory in the last quarter may lie above that in the second, in per cent. The first does not count: until
/// the largest calls have met each other, memory grows.
const GROWTH: u64 = 10;

/// A fleet's size and how many of a round's calls it is used for.
const MIX: [(Size, usize); 4] = [
    (Size { clusters: 10, replicas: 50 }, 12),
    (Size { clusters: 100, replicas: 500 }, 6),
    (Size { clusters: 1000, replicas: 5000 }, 2),
    (Size { clusters: 5000, replicas: 20000 }, 1),
];

/// What callers count.
#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
    failures: AtomicU64,
}

pub(crate) async fn run(program: &Path, minutes: u64) -> Result<()> {
    let requests: Arc<Vec<Bytes>> = Arc::new(requests());
    let server = Server::start(program)?;
    let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let caller = Caller {
                number: caller,
                requests: Arc::clone(&requests),
                counts: Arc::clone(&counts),
                stop: Arc::clone(&stop),
            };
            tokio::spawn(caller.call_on(server.address))
        })
        .collect();
    let memory = watch(&server, &counts, Duration::from_secs(minutes * 60)).await?;
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await??;
    }
    judge(&counts, &memory)
}

/// Every size in both situations, as often as the mix says.
fn requests() -> Vec<Bytes> {
    let mut requests = Vec::new();
    for (size, times) in MIX {
        for situation in [Situation::Steady, Situation::Placing] {
            let request = Bytes::from(Fleet::generate(size, situation, FieldOrder::Random).request());
            requests.extend(std::iter::repeat_n(request, times));
        }
    }
    requests
}

/// Prints how it goes until the time is over; gives the memory seen.
async fn watch(server: &Server, counts: &Counts, length: Duration) -> Result<Vec<u64>> {
    let started = Instant::now();
    let mut memory = Vec::new();
    println!("{:>8} {:>10} {:>10} {:>9} {:>8}", "seconds", "answered", "refused", "failures", "MiB");
    while started.elapsed() < length {
        let mut most = 0;
        let reported = Instant::now();
        while reported.elapsed() < REPORT.min(length) {
            tokio::time::sleep(LOOK).await;
            most = server.memory()?.max(most);
        }
        memory.push(most / 1024);
        println!(
            "{:>8} {:>10} {:>10} {:>9} {:>8}",
            started.elapsed().as_secs(),
            counts.answered.load(Ordering::Relaxed),
            counts.refused.load(Ordering::Relaxed),
            counts.failures.load(Ordering::Relaxed),
            memory.last().copied().unwrap_or_default(),
        );
    }
    Ok(memory)
}

fn judge(counts: &Counts, memory: &[u64]) -> Result<()> {
    let failures = counts.failures.load(Ordering::Relaxed);
    let quarters: Vec<&[u64]> = memory.chunks(memory.len().div_ceil(4).max(1)).collect();
    let most =
        |quarter: Option<&&[u64]>| quarter.and_then(|part| part.iter().copied().max()).unwrap_or_default();
    let (early, late) = (most(quarters.get(1).or(quarters.first())), most(quarters.last()));
    println!("{failures} failures; most memory in the second quarter {early} MiB, in the last {late} MiB");
    if failures > 0 || late * 100 > early * (100 + GROWTH) {
        return Err("the server did not hold".into());
    }
    Ok(())
}

struct Caller {
    number: usize,
    requests: Arc<Vec<Bytes>>,
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
}

impl Caller {
    async fn call_on(self, address: std::net::SocketAddr) -> Result<()> {
        let mut client = Client::connect(address).await?;
        // Callers start at different places and steps, so that sizes meet in all combinations.
        let (mut turn, step) = (self.number * 7, 2 * self.number + 1);
        while !self.stop.load(Ordering::Relaxed) {
            turn += step;
            let request = self.requests[turn % self.requests.len()].clone();
            match turn % MALFORMED == 0 {
                true => self.expect_refusal(client.call(malformed(&request, turn)).await),
                false => self.expect_answer(client.call(request).await),
            }
        }
        Ok(())
    }

    fn expect_answer(&self, answer: std::result::Result<Bytes, Status>) {
        match answer {
            // A fatal result is short; these fleets have none.
            Ok(answer) if answer.len() > 200 => count(&self.counts.answered),
            Ok(answer) => self.fail(&format!("an answer of {} bytes: {answer:?}", answer.len())),
            Err(error) => self.fail(&format!("a well-formed call failed: {error}")),
        }
    }

    /// A malformed request is refused, or answered with a fatal result; the connection lives on.
    fn expect_refusal(&self, answer: std::result::Result<Bytes, Status>) {
        match answer {
            Ok(_) => count(&self.counts.refused),
            Err(error) if error.code() == Code::InvalidArgument => count(&self.counts.refused),
            Err(error) => self.fail(&format!("a malformed call ended otherwise than refused: {error}")),
        }
    }

    fn fail(&self, text: &str) {
        if self.counts.failures.fetch_add(1, Ordering::Relaxed) < SHOWN {
            println!("FAILURE: {text}");
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The request cut off somewhere, or with a byte of its outline overwritten.
fn malformed(request: &Bytes, turn: usize) -> Bytes {
    if turn.is_multiple_of(2 * MALFORMED) {
        return request.slice(..request.len() - 1 - turn % 1000);
    }
    let mut bytes = request[..request.len().min(64 * 1024)].to_vec();
    let position = turn % 64;
    bytes[position] = 0xff;
    bytes.into()
}
