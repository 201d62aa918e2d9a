//! A gateway, endpoints and clients for the tests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use modelplane_gateway::routes::config::{Address, EndpointConfig, EntryConfig, ServiceConfig};
use modelplane_gateway::{Gateway, Options, RouteSink, Snapshot};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longest any one wait may take before a test counts as hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A body of an endpoint's answer.
pub(crate) type Reply = BoxBody<Bytes, Infallible>;

/// Waits for a future, but not for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("this should not take long")
}

/// A running gateway.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) routes: RouteSink,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Running {
    /// Starts a gateway with default options.
    pub(crate) async fn start(snapshot: Snapshot) -> Self {
        Self::start_with(options(), snapshot)
    }

    pub(crate) fn start_with(options: Options, snapshot: Snapshot) -> Self {
        let gateway = Gateway::bind(options).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let (address, routes) = (gateway.address(), gateway.routes());
        routes.publish(&snapshot);
        let served = tokio::spawn(gateway.serve(snapshot, async {
            stopped.await.ok();
        }));
        Self { address, routes, stop, served }
    }

    /// Tells the gateway to stop; resolves when it has.
    pub(crate) fn stop(self) -> JoinHandle<()> {
        self.stop.send(()).ok();
        self.served
    }
}

pub(crate) fn options() -> Options {
    let mut options = Options::new(loopback());
    options.drain = Duration::from_secs(10);
    options
}

pub(crate) fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// A request as an endpoint saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

/// An endpoint in this process.
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) hits: Arc<AtomicUsize>,
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Handler = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<Reply>> + Send + Sync>;

impl Endpoint {
    /// One whose answers are fed by the test, each over the channel it gets for it.
    pub(crate) async fn fed() -> (Self, UnboundedReceiver<tokio::sync::mpsc::Sender<Frame<Bytes>>>) {
        let (feed, feeds) = tokio::sync::mpsc::unbounded_channel();
        let endpoint = Self::serving(move |_| {
            let (sender, body) = channel();
            feed.send(sender).unwrap();
            Box::pin(async { Response::new(body) })
        });
        (endpoint.await, feeds)
    }

    /// One that tells of each request and answers `done` when it is let.
    pub(crate) async fn held() -> (Self, UnboundedReceiver<()>, Arc<tokio::sync::Notify>) {
        let (arrived, arrivals) = tokio::sync::mpsc::unbounded_channel();
        let release = Arc::new(tokio::sync::Notify::new());
        let wait = release.clone();
        let endpoint = Self::serving(move |_| {
            arrived.send(()).unwrap();
            let wait = wait.clone();
            Box::pin(async move {
                wait.notified().await;
                Response::new(full("done"))
            })
        });
        (endpoint.await, arrivals, release)
    }

    /// An endpoint that reads requests whole, remembers them and answers with its name.
    pub(crate) async fn named(name: &'static str) -> Self {
        Self::answering(move |_| Response::new(full(name))).await
    }

    /// An endpoint that reads requests whole, remembers them and answers.
    pub(crate) async fn answering(answer: impl Fn(&Seen) -> Response<Reply> + Send + Sync + 'static) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (remember, answer) = (seen.clone(), Arc::new(answer));
        let mut endpoint = Self::serving(move |request| {
            let (remember, answer) = (remember.clone(), answer.clone());
            Box::pin(async move {
                let (head, body) = request.into_parts();
                let Ok(body) = body.collect().await else {
                    return Response::new(full("the body broke off"));
                };
                let seen = Seen {
                    method: head.method,
                    target: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
                    headers: head.headers,
                    trailers: body.trailers().cloned(),
                    body: body.to_bytes(),
                };
                let response = answer(&seen);
                remember.lock().unwrap().push(seen);
                response
            })
        })
        .await;
        endpoint.seen = seen;
        endpoint
    }

    /// An endpoint that does as told.
    pub(crate) async fn serving(
        handler: impl Fn(Request<Incoming>) -> BoxFuture<'static, Response<Reply>> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(loopback()).await.unwrap();
        Self::on(listener, Arc::new(handler))
    }

    fn on(listener: TcpListener, handler: Handler) -> Self {
        let address = listener.local_addr().unwrap();
        let (hits, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (count, opened) = (hits.clone(), connections.clone());
        let task = tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                opened.fetch_add(1, Ordering::SeqCst);
                let (handler, count) = (handler.clone(), count.clone());
                open.spawn(async move {
                    let service = service_fn(move |request| {
                        count.fetch_add(1, Ordering::SeqCst);
                        let answer = handler(request);
                        async move { Ok::<_, Infallible>(answer.await) }
                    });
                    let mut first = [0; 3];
                    let http2 = stream.peek(&mut first).await.is_ok() && &first == b"PRI";
                    let io = TokioIo::new(stream);
                    if http2 {
                        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        builder.serve_connection(io, service).await.ok();
                    } else {
                        let builder = hyper::server::conn::http1::Builder::new();
                        builder.serve_connection(io, service).with_upgrades().await.ok();
                    }
                });
            }
        });
        Self { address, hits, connections, seen: Arc::default(), task }
    }

    pub(crate) fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    pub(crate) fn last(&self) -> Seen {
        self.seen.lock().unwrap().last().expect("the endpoint was asked").clone()
    }

    /// The endpoint's configuration, its path rewritten as the fleet's are.
    pub(crate) fn config(&self, name: &str) -> EndpointConfig {
        let address = Address::plain(self.address.ip().to_string(), self.address.port());
        let mut config = EndpointConfig::new("ml-team", name, address);
        config.rewrite_path = Some(format!("/ml-team/{name}/"));
        config
    }
}

/// A service `ml-team/chat` with these entries of equal tier.
pub(crate) fn chat(entries: Vec<(u32, Vec<EndpointConfig>)>) -> ServiceConfig {
    let entry = |(weight, endpoints): (u32, Vec<EndpointConfig>)| EntryConfig {
        weight,
        tier: 0,
        endpoints: endpoints.into_iter().map(Arc::new).collect(),
    };
    ServiceConfig {
        namespace: "ml-team".to_owned(),
        name: "chat".to_owned(),
        entries: entries.into_iter().map(entry).collect(),
        ..ServiceConfig::default()
    }
}

/// A snapshot of one service.
pub(crate) fn only(service: ServiceConfig) -> Snapshot {
    Snapshot { services: vec![service], ..Snapshot::default() }
}

/// A snapshot of `ml-team/chat` on one endpoint.
pub(crate) fn on(endpoint: &Endpoint) -> Snapshot {
    only(chat(vec![(1, vec![endpoint.config("one")])]))
}

pub(crate) fn full(bytes: impl Into<Bytes>) -> Reply {
    Full::new(bytes.into()).boxed()
}

pub(crate) fn empty() -> Reply {
    Empty::new().boxed()
}

/// A body fed by a channel.
pub(crate) fn channel() -> (tokio::sync::mpsc::Sender<Frame<Bytes>>, Reply) {
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Frame<Bytes>>(4);
    let stream = futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx).map(|frame| frame.map(Ok)));
    (sender, BodyExt::boxed(StreamBody::new(stream)))
}

/// One HTTP/1.1 connection of a client.
pub(crate) struct Client<B: Body + 'static> {
    pub(crate) sender: hyper::client::conn::http1::SendRequest<B>,
}

impl<B> Client<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        Self { sender }
    }

    /// Sends a request, for some host unless it says for which.
    pub(crate) async fn send(&mut self, mut request: Request<B>) -> Response<Incoming> {
        request.headers_mut().entry("host").or_insert(HeaderValue::from_static("gateway"));
        soon(self.sender.ready()).await.unwrap();
        soon(self.sender.send_request(request)).await.unwrap()
    }
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Whole {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// `error.code` of a refusal.
    pub(crate) fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        body["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// Sends one request on a connection of its own.
pub(crate) async fn ask(address: SocketAddr, request: Request<Full<Bytes>>) -> Whole {
    let mut client = Client::connect(address).await;
    let (head, body) = client.send(request).await.into_parts();
    let body = soon(body.collect()).await.unwrap().to_bytes();
    Whole { status: head.status, headers: head.headers, body }
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Whole {
    ask(address, Request::get(path).header("host", "gateway").body(Full::default()).unwrap()).await
}

pub(crate) async fn post(address: SocketAddr, path: &str, body: impl Into<Bytes>) -> Whole {
    let request = Request::post(path).header("host", "gateway").header("content-type", "application/json");
    ask(address, request.body(Full::new(body.into())).unwrap()).await
}

/// Sends bytes and reads until the other side closes, or until nothing comes for a while.
pub(crate) async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.ok();
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match tokio::time::timeout(Duration::from_secs(2), stream.read(&mut piece)).await {
            Ok(Ok(count)) if count > 0 => answer.extend_from_slice(&piece[..count]),
            _ => return String::from_utf8_lossy(&answer).into_owned(),
        }
    }
}
