//! Connections from clients: protocol, limits, shutdown. What a request is answered with is [`policy`]'s matter.

pub(crate) mod http1;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::body::Memory;
use crate::endpoint::locked;
use crate::incoming::ClientBody;
use crate::metrics::Metrics;
use crate::options::Limits;
use crate::policy;
use crate::reply::ReplyBody;
use crate::routes::config::{Certificate, Problem, Snapshot};
use crate::routes::table::RouteTable;
use crate::tls::Certificates;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// What is routed now.
    pub(crate) table: ArcSwap<RouteTable>,
    /// Sizes and times.
    pub(crate) limits: Limits,
    /// Memory for kept bodies.
    pub(crate) memory: Arc<Memory>,
    /// Workers there are.
    pub(crate) workers: usize,
    /// How far along shutting down is.
    pub(crate) phase: watch::Sender<Phase>,
    /// Counters.
    pub(crate) metrics: Metrics,
    /// Certificates presented to clients.
    pub(crate) certificates: Arc<Certificates>,
    published: Mutex<Published>,
    is_published: AtomicBool,
}

/// What was published last, as far as the next publication depends on it.
#[derive(Debug, Default)]
struct Published {
    certificates: Vec<Certificate>,
    problems: Vec<Problem>,
}

/// How far along shutting down is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Not at all.
    Serving,
    /// No new connections; connections close after the exchange under way.
    Draining,
    /// Everything stops.
    Closed,
}

/// The client's end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// Whether it came over TLS.
    pub(crate) secure: bool,
    /// The worker that serves it.
    pub(crate) worker: usize,
}

/// Longest TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Streams per HTTP/2 connection.
const STREAMS: u32 = 256;

/// What an HTTP/2 client may send ahead on one stream and on a connection.
const WINDOWS: (u32, u32) = (256 << 10, 1 << 20);

impl Shared {
    /// The state of a gateway that routes nothing yet.
    pub(crate) fn new(limits: Limits, workers: usize) -> Self {
        Self {
            table: ArcSwap::default(),
            memory: Arc::new(Memory::new(limits.memory_bytes)),
            limits,
            workers,
            phase: watch::Sender::new(Phase::Serving),
            metrics: Metrics::default(),
            certificates: Arc::default(),
            published: Mutex::default(),
            is_published: AtomicBool::new(false),
        }
    }

    /// Routes by a snapshot from now on.
    pub(crate) fn publish(&self, snapshot: &Snapshot) {
        // Held throughout: publications must not overtake one another.
        let mut published = locked(&self.published);
        let table = RouteTable::build(snapshot, &self.table.load(), self.workers);
        self.table.store(Arc::new(table));
        if published.certificates != snapshot.certificates {
            published.problems = self.certificates.replace(&snapshot.certificates);
            published.certificates.clone_from(&snapshot.certificates);
        }
        self.is_published.store(true, Ordering::Release);
    }

    /// Whether anything was published yet.
    pub(crate) fn is_published(&self) -> bool {
        self.is_published.load(Ordering::Acquire)
    }

    /// Certificates that could not be used.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        locked(&self.published).problems.clone()
    }
}

/// Serves a TLS connection until it ends.
pub(crate) async fn serve_tls(shared: Arc<Shared>, client: Client, stream: TcpStream, acceptor: TlsAcceptor) {
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(client = %client.address, %error, "no TLS session"),
        Err(_) => return tracing::debug!(client = %client.address, "no TLS session in time"),
    };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        serve_http2(shared, client, stream).await;
    } else {
        http1::serve(shared, client, stream).await;
    }
}

/// Serves a plain connection until it ends.
pub(crate) async fn serve_plain(shared: Arc<Shared>, client: Client, stream: TcpStream) {
    let mut phase = shared.phase.subscribe();
    let http2 = tokio::select! {
        first = tokio::time::timeout(shared.limits.idle, speaks_http2(&stream)) => first,
        _ = reach(&mut phase, Phase::Draining) => return,
    };
    match http2 {
        Ok(Ok(true)) => Box::pin(serve_http2(shared, client, stream)).await,
        Ok(Ok(false)) => http1::serve(shared, client, stream).await,
        // Nothing was asked, so there is nothing to answer.
        Ok(Err(_)) | Err(_) => {}
    }
}

/// Whether the first bytes are those of HTTP/2's preface. A connection that says nothing costs nothing but this.
async fn speaks_http2(stream: &TcpStream) -> io::Result<bool> {
    const PREFACE: &[u8] = b"PRI";
    loop {
        let mut first = [0; PREFACE.len()];
        let count = stream.peek(&mut first).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if count == PREFACE.len() || first[..count] != PREFACE[..count] {
            return Ok(first == PREFACE);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn serve_http2<S>(shared: Arc<Shared>, client: Client, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut phase = shared.phase.subscribe();
    let limits = shared.limits;
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(20))
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .serve_connection(TokioIo::new(stream), Exchanges { shared: shared.clone(), client });
    let mut connection = pin!(connection);
    let mut draining = *phase.borrow() > Phase::Serving;
    if draining {
        connection.as_mut().graceful_shutdown();
    }
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => return log_end(&shared, client, ended),
            reached = reach(&mut phase, if draining { Phase::Closed } else { Phase::Draining }) => {
                if reached == Phase::Closed {
                    return;
                }
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

fn log_end(shared: &Shared, client: Client, ended: hyper::Result<()>) {
    if let Err(error) = ended {
        shared.metrics.malformed.add(u64::from(error.is_parse()));
        tracing::debug!(client = %client.address, %error, "a client's connection ended");
    }
}

/// Waits until shutting down is at least this far along.
pub(crate) async fn reach(phase: &mut watch::Receiver<Phase>, wanted: Phase) -> Phase {
    match phase.wait_for(|phase| *phase >= wanted).await {
        Ok(phase) => *phase,
        // The gateway itself is gone.
        Err(_) => Phase::Closed,
    }
}

/// Answers the requests of one HTTP/2 connection.
#[derive(Debug, Clone)]
struct Exchanges {
    shared: Arc<Shared>,
    client: Client,
}

impl Service<Request<Incoming>> for Exchanges {
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ReplyBody>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let answer = policy::answer(self.shared.clone(), self.client, request.map(ClientBody::Http2));
        Box::pin(async { Ok(answer.await) })
    }
}
