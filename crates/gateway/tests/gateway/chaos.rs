//! Sixty-four clients stream while endpoints are killed, slowed, withdrawn and added (issue 7, "chaos test").
//!
//! A few seconds by default; `MODELPLANE_GATEWAY_CHAOS_SECONDS=300` for the real thing. What happens when follows a
//! seed, `MODELPLANE_GATEWAY_CHAOS_SEED`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use modelplane_gateway::Snapshot;
use modelplane_gateway::routes::config::{Balancing, EndpointConfig, Outliers, Retries};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::*;

const CLIENTS: usize = 64;

/// Events of a stream.
const EVENTS: usize = 20;

/// An endpoint that can be killed and brought back at the same address.
struct Mortal {
    name: &'static str,
    address: std::net::SocketAddr,
    alive: Arc<AtomicBool>,
    /// How often it was killed, twice: when that began and when it was done.
    deaths: Arc<AtomicUsize>,
    pause: Arc<AtomicU64>,
    hits: Arc<AtomicUsize>,
    open: Arc<Mutex<tokio::task::JoinSet<()>>>,
    listening: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Mortal {
    async fn start(name: &'static str) -> Arc<Self> {
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let mortal = Arc::new(Self {
            name,
            address: listener.local_addr().unwrap(),
            alive: Arc::new(AtomicBool::new(true)),
            deaths: Arc::default(),
            pause: Arc::default(),
            hits: Arc::default(),
            open: Arc::default(),
            listening: Mutex::default(),
        });
        mortal.listen(listener);
        mortal
    }

    fn listen(self: &Arc<Self>, listener: TcpListener) {
        let mortal = self.clone();
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let serving = mortal.clone();
                mortal.open.lock().unwrap().spawn(async move {
                    serving.serve(stream).await.ok();
                });
            }
        });
        *self.listening.lock().unwrap() = Some(task);
    }

    /// Answers requests on a connection with a stream that says who sent it and for what.
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let header = |name: &str| {
                head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
            };
            let mut body = vec![0; header("content-length:").parse().unwrap_or(0)];
            stream.read_exact(&mut body).await?;
            self.hits.fetch_add(1, Ordering::SeqCst);
            let request = header("x-request:");
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            for event in 0..EVENTS {
                let data =
                    format!("data: {{\"by\":\"{}\",\"for\":\"{request}\",\"n\":{event}}}\n\n", self.name);
                stream.write_all(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes()).await?;
                tokio::time::sleep(Duration::from_millis(1 + self.pause.load(Ordering::SeqCst))).await;
            }
            stream.write_all(b"0\r\n\r\n").await?;
        }
    }

    fn kill(&self) {
        self.alive.store(false, Ordering::SeqCst);
        self.deaths.fetch_add(1, Ordering::SeqCst);
        if let Some(listening) = self.listening.lock().unwrap().take() {
            listening.abort();
        }
        self.open.lock().unwrap().abort_all();
        // Again: until now a connection may have taken a request of a client who counted the death already.
        self.deaths.fetch_add(1, Ordering::SeqCst);
    }

    async fn revive(self: &Arc<Self>) {
        // Its address may still be held by the listener that is being dropped.
        for _ in 0..100 {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.set_reuseaddr(true).unwrap();
            if socket.bind(self.address).is_ok()
                && let Ok(listener) = socket.listen(256)
            {
                self.alive.store(true, Ordering::SeqCst);
                return self.listen(listener);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn config(&self) -> EndpointConfig {
        let address = modelplane_gateway::routes::config::Address::plain(
            self.address.ip().to_string(),
            self.address.port(),
        );
        EndpointConfig::new("ml-team", self.name, address)
    }
}

/// Two entries of weights 3 and 1. The first endpoint of each never goes away.
fn snapshot(mortals: &[Arc<Mortal>], present: &[bool]) -> Snapshot {
    let configs = |range: std::ops::Range<usize>| {
        range.filter(|&index| present[index]).map(|index| mortals[index].config()).collect()
    };
    let mut service = chat(vec![(3, configs(0..3)), (1, configs(3..6))]);
    service.policy.balancing = Balancing::RoundRobin;
    service.policy.retries = Retries { attempts: 4, budget_percent: 100 };
    service.policy.outliers =
        Outliers { consecutive_failures: 3, ejection: Duration::from_millis(50), max_ejected_percent: 50 };
    only(service)
}

/// What clients saw.
#[derive(Debug, Default)]
struct Seen {
    complete: AtomicUsize,
    cut: AtomicUsize,
    refused: AtomicUsize,
}

/// Asks until told to stop, checking every stream.
async fn client(
    number: usize,
    address: std::net::SocketAddr,
    mortals: Arc<Vec<Arc<Mortal>>>,
    stop: Arc<AtomicBool>,
    seen: Arc<Seen>,
) {
    let mut client = Client::<Full<Bytes>>::connect(address).await;
    for round in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let name = format!("{number}-{round}");
        let deaths: Vec<usize> = mortals.iter().map(|mortal| mortal.deaths.load(Ordering::SeqCst)).collect();
        let request =
            Request::post("/ml-team/chat/v1/chat/completions").header("host", "g").header("x-request", &name);
        let mut response = client.send(request.body(Full::from(r#"{"stream":true}"#)).unwrap()).await;
        if response.status() != StatusCode::OK {
            let body = soon(response.into_body().collect()).await.unwrap().to_bytes();
            seen.refused.fetch_add(1, Ordering::SeqCst);
            panic!("{name}: {}", String::from_utf8_lossy(&body));
        }
        let mut text = Vec::new();
        let ended = loop {
            match soon(response.frame()).await {
                Some(Ok(frame)) => text.extend_from_slice(&frame.into_data().unwrap_or_default()),
                Some(Err(_)) => break false,
                None => break true,
            }
        };
        let text = String::from_utf8(text).unwrap();
        let by = text.split('"').nth(3).unwrap_or_default().to_owned();
        let whole: String = (0..EVENTS)
            .map(|n| format!("data: {{\"by\":\"{by}\",\"for\":\"{name}\",\"n\":{n}}}\n\n"))
            .collect();
        assert!(whole.starts_with(&text), "{name} is corrupted: {text}");
        if ended {
            assert_eq!(text, whole, "{name} ends early without saying so");
            seen.complete.fetch_add(1, Ordering::SeqCst);
            continue;
        }
        seen.cut.fetch_add(1, Ordering::SeqCst);
        let by = mortals.iter().position(|mortal| mortal.name == by);
        if let Some(by) = by {
            let is_dying = !mortals[by].alive.load(Ordering::SeqCst);
            assert!(
                is_dying || mortals[by].deaths.load(Ordering::SeqCst) != deaths[by],
                "{name} was cut on an endpoint that lives"
            );
        }
        client = Client::connect(address).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_costs_only_the_streams_of_endpoints_that_die() {
    let number =
        |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let length = Duration::from_secs(number("MODELPLANE_GATEWAY_CHAOS_SECONDS", 3));
    let mut seed = number("MODELPLANE_GATEWAY_CHAOS_SEED", 42);
    let mut draw = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut mortals = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        mortals.push(Mortal::start(name).await);
    }
    let mortals = Arc::new(mortals);
    let mut present = [true; 6];
    let gateway = Running::start(snapshot(&mortals, &present)).await;
    let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Seen::default()));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            tokio::spawn(client(number, gateway.address, mortals.clone(), stop.clone(), seen.clone()))
        })
        .collect();
    let mut changes = 0;
    let started = Instant::now();
    while started.elapsed() < length {
        tokio::time::sleep(Duration::from_millis(20 + draw(60))).await;
        // The first endpoint of each entry stays well, so that every request can be served.
        let index = [1, 2, 4, 5][draw(4) as usize];
        let mortal = &mortals[index];
        match draw(4) {
            0 if mortal.alive.load(Ordering::SeqCst) => mortal.kill(),
            0 => mortal.revive().await,
            1 => mortal.pause.store(draw(8), Ordering::SeqCst),
            _ => {
                present[index] = !present[index];
                changes += 1;
                gateway.routes.publish(&snapshot(&mortals, &present));
            }
        }
    }
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        soon(client).await.unwrap();
    }
    let complete = seen.complete.load(Ordering::SeqCst);
    assert!(complete > 100, "{seen:?}");
    let hits: BTreeMap<_, _> =
        mortals.iter().map(|mortal| (mortal.name, mortal.hits.load(Ordering::SeqCst))).collect();
    let first = (hits["a"] + hits["b"] + hits["c"]) as f64;
    let share = first / hits.values().sum::<usize>() as f64;
    let deaths: usize = mortals.iter().map(|mortal| mortal.deaths.load(Ordering::SeqCst) / 2).sum();
    eprintln!(
        "{CLIENTS} clients, {:?}: {complete} streams complete, {} cut where the endpoint was killed, {} refused; \
         {deaths} kills, {changes} changes of routes; weights 75 : 25 shared as {:.2} : {:.2}",
        started.elapsed(),
        seen.cut.load(Ordering::SeqCst),
        seen.refused.load(Ordering::SeqCst),
        share * 100.0,
        100.0 - share * 100.0,
    );
    assert!((share - 0.75).abs() < 0.02, "entries of weights 3 and 1 share {share}: {hits:?}");
}
