//! The pieces of the gateway's benchmark: an endpoint, the gateway on fixed routes, and loads that `wrk` cannot make.
//! `benches/gateway/run.sh` puts them together.

#![expect(clippy::print_stdout, reason = "its output is what the script reads")]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use modelplane_gateway::routes::config::{Address, EndpointConfig, EntryConfig, ServiceConfig};
use modelplane_gateway::{Gateway, Options, Snapshot, Workers};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The allocator of the program that the gateway ships in.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match arguments[..] {
        ["endpoint", listen] => runtime.block_on(endpoint(listen.parse()?)),
        ["gateway", listen, endpoint, workers] => {
            runtime.block_on(gateway(listen.parse()?, endpoint.parse()?, workers.parse()?))
        }
        ["rate", target, rate, seconds] => {
            runtime.block_on(rate_load(Target::parse(target)?, rate.parse()?, seconds.parse()?))
        }
        ["idle", target, count, seconds] => {
            runtime.block_on(idle(Target::parse(target)?, count.parse()?, seconds.parse()?))
        }
        ["first", target, count, _] => runtime.block_on(first(Target::parse(target)?, count.parse()?)),
        ["streams", target, count, seconds] => {
            runtime.block_on(streams(Target::parse(target)?, count.parse()?, seconds.parse()?))
        }
        _ => {
            Err("endpoint LISTEN | gateway LISTEN ENDPOINT WORKERS | rate|idle|first|streams TARGET[/PREFIX] NUMBER SECONDS"
                .into())
        }
    }
}

/// What a load is for: an address, and what precedes `/v1` in paths.
struct Target {
    address: SocketAddr,
    chat: String,
}

impl Target {
    fn parse(text: &str) -> Result<Self, Failure> {
        let (address, prefix) = text.split_at(text.find('/').unwrap_or(text.len()));
        Ok(Self { address: address.parse()?, chat: format!("{prefix}/v1/chat/completions") })
    }

    fn request(&self, body: &'static str) -> Result<Request<Full<Bytes>>, http::Error> {
        let request =
            Request::post(&self.chat).header("host", "gateway").header("content-type", "application/json");
        request.body(Full::from(body))
    }
}

const ONCE: &str = r#"{"model":"m","messages":[{"role":"user","content":"Hello"}]}"#;

const STREAMED: &str = r#"{"model":"m","messages":[{"role":"user","content":"Hello"}],"stream":true}"#;

/// Answers with a small completion, or with a stream of tokens where the body asks for one.
async fn endpoint(listen: SocketAddr) -> Result<(), Failure> {
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| async move {
                let body =
                    request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                let asks = |text: &[u8]| body.windows(text.len()).any(|window| window == text);
                let is_stream = asks(b"\"stream\":true") || asks(b"\"stream\": true");
                Ok::<_, Infallible>(if is_stream { tokens() } else { completion() })
            });
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
        });
    }
}

fn completion() -> Response<BoxBody<Bytes, Infallible>> {
    const TEXT: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello! How can I help you today?"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}"#;
    let mut response = Response::new(Full::from(TEXT).boxed());
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}

/// A token every 50 ms, for ten minutes.
fn tokens() -> Response<BoxBody<Bytes, Infallible>> {
    const TOKEN: &str = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"token\"}}]}\n\n";
    let stream = futures_util::stream::unfold(0_u32, |count| async move {
        if count > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        (count < 12_000).then(|| (Ok(Frame::data(Bytes::from_static(TOKEN.as_bytes()))), count + 1))
    });
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(SyncStream(Box::pin(stream)))));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/event-stream"));
    response
}

/// Boxed bodies must be shareable; a stream that only one task polls is, behind a lock nobody contends for.
struct SyncStream<S>(std::pin::Pin<Box<S>>);

impl<S: futures_util::Stream> futures_util::Stream for SyncStream<S> {
    type Item = S::Item;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<S::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

/// The gateway with default policies, one service, two endpoints that are the same.
async fn gateway(listen: SocketAddr, endpoint: SocketAddr, workers: usize) -> Result<(), Failure> {
    let mut options = Options::new(listen);
    options.workers = Workers::Threads(NonZeroUsize::new(workers).ok_or("no workers")?);
    let config = |name: &str| {
        let address = Address::plain(endpoint.ip().to_string(), endpoint.port());
        let mut config = EndpointConfig::new("ml-team", name, address);
        config.rewrite_path = Some(format!("/ml-team/{name}/"));
        Arc::new(config)
    };
    let entry = EntryConfig { weight: 1, tier: 0, endpoints: vec![config("one"), config("two")] };
    let service = ServiceConfig {
        namespace: "ml-team".to_owned(),
        name: "chat".to_owned(),
        entries: vec![entry],
        ..ServiceConfig::default()
    };
    let snapshot = Snapshot { services: vec![service], ..Snapshot::default() };
    Gateway::bind(options)?.serve(snapshot, std::future::pending()).await;
    Ok(())
}

async fn connect(target: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(target).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) =
        hyper::client::conn::http1::Builder::new().max_buf_size(8192).handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        connection.await.ok();
    });
    Ok(sender)
}

/// Requests at a fixed rate, sent when due whether or not earlier ones are answered; latency counts from then.
async fn rate_load(target: Target, rate: u32, seconds: u32) -> Result<(), Failure> {
    const CONNECTIONS: u32 = 32;
    let target = Arc::new(target);
    let start = Instant::now() + Duration::from_millis(200);
    let interval = Duration::from_secs(1) / rate;
    let mut tasks = Vec::new();
    for first in 0..CONNECTIONS {
        let (mut sender, target) = (connect(target.address).await?, target.clone());
        tasks.push(tokio::spawn(async move {
            let mut took = Vec::new();
            for index in (first..rate * seconds).step_by(CONNECTIONS as usize) {
                let due = start + interval * index;
                tokio::time::sleep_until(due.into()).await;
                sender.ready().await?;
                let response = sender.send_request(target.request(ONCE)?).await?;
                response.into_body().collect().await?;
                took.push(due.elapsed());
            }
            Ok::<_, Failure>(took)
        }));
    }
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await??);
    }
    print_quantiles("latency", took);
    Ok(())
}

/// Connections that made one request each and then idle.
async fn idle(target: Target, count: usize, seconds: u64) -> Result<(), Failure> {
    let mut held = Vec::with_capacity(count);
    for _ in 0..count {
        let mut sender = connect(target.address).await?;
        let response = sender.send_request(target.request(ONCE)?).await?;
        response.into_body().collect().await?;
        held.push(sender);
    }
    println!("ready {}", held.len());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(())
}

/// Streams one after another, of which the last hundred stay open; how long the first token took.
async fn first(target: Target, count: usize) -> Result<(), Failure> {
    const LIVE: usize = 100;
    let mut held = VecDeque::with_capacity(LIVE);
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let (first, stream) = stream(&target).await?;
        took.push(first);
        held.push_back(stream);
        if held.len() > LIVE {
            held.pop_front().inspect(JoinHandle::abort);
        }
    }
    print_quantiles("first byte", took);
    Ok(())
}

/// Streams that stay open; how long the first token took.
async fn streams(target: Target, count: usize, seconds: u64) -> Result<(), Failure> {
    let mut held = Vec::with_capacity(count);
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let (first, stream) = stream(&target).await?;
        took.push(first);
        held.push(stream);
    }
    print_quantiles("first byte", took);
    println!("ready {}", held.len());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(())
}

/// Opens a stream on a connection of its own. How long its first token took, and the task that reads on.
async fn stream(target: &Target) -> Result<(Duration, JoinHandle<()>), Failure> {
    let mut sender = connect(target.address).await?;
    let begun = Instant::now();
    let mut response = sender.send_request(target.request(STREAMED)?).await?;
    response.frame().await.ok_or("a stream ended")??;
    let took = begun.elapsed();
    let reading = tokio::spawn(async move {
        while let Some(Ok(_)) = response.frame().await {}
        drop(sender);
    });
    Ok((took, reading))
}

fn print_quantiles(name: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |share: f64| took.get(((took.len() as f64 * share) as usize).min(took.len().saturating_sub(1)));
    let microseconds = |share| at(share).map_or(0, Duration::as_micros);
    println!("{name} p50 {} us, p99 {} us, of {}", microseconds(0.5), microseconds(0.99), took.len());
}
