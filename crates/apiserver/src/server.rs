//! A running server: in process as a tower service, and over TLS.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use modelplane_store::Store;
use prometheus_client::collector::Collector;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::access::{self, bootstrap};
use crate::audit::AuditLog;
use crate::certificates::{Authority, identity_of};
use crate::controllers::Controllers;
use crate::core::Core;
use crate::error::StartError;
use crate::identity::Identity;
use crate::options::{DataLocation, Options};
use crate::service::{Caller, handle};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_CONNECTIONS: usize = 4096;
const MAX_HEADER_BYTES: u32 = 64 * 1024;
/// Namespaces every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// A Kubernetes-API-compatible server.
pub struct ApiServer {
    core: Arc<Core>,
    authority: Arc<Authority>,
    hosts: Vec<String>,
    controllers: Option<Controllers>,
}

impl ApiServer {
    /// Opens the store and makes what every cluster has.
    pub async fn start(options: Options) -> Result<ApiServer, StartError> {
        let mut settings = modelplane_store::Options::default();
        settings.retention.bytes = options.history_bytes;
        let store = match options.data.clone() {
            DataLocation::Memory => Store::in_memory(settings),
            DataLocation::File(path) => {
                // Opening reads the whole file, which must not hold up the runtime's other tasks.
                let opened = tokio::task::spawn_blocking(move || Store::open(&path, settings)).await;
                opened.map_err(|error| StartError::Bootstrap {
                    object: "the store".to_owned(),
                    detail: error.to_string(),
                })??
            }
        };
        let authority = Arc::new(Authority::load(&store).await?);
        let audit = match options.audit_log {
            None => None,
            Some(path) => Some(
                AuditLog::open(&path)
                    .map_err(|source| StartError::AuditLog { path: path.clone(), source })?,
            ),
        };
        let mut core = Core::new(store, options.profile).map_err(|error| StartError::Bootstrap {
            object: "the registry of kinds".to_owned(),
            detail: error.to_string(),
        })?;
        core.audit = audit;
        core.deletion_guard = options.deletion_guard;
        core.debug_profile = options.debug_profile;
        let core = Arc::new(core);
        let mut server = ApiServer { core, authority, hosts: options.hosts, controllers: None };
        server.bootstrap(&options.groups).await?;
        server.controllers = Some(Controllers::start(&server.core));
        Ok(server)
    }

    /// A service for clients in this process, such as `kube::Client::new(service, "default")`; nothing crosses
    /// a socket and no credentials are needed.
    pub fn in_process(&self, identity: Identity) -> InProcess {
        InProcess { core: Arc::clone(&self.core), identity }
    }

    /// Serves TLS connections until `shutdown` resolves, then lets running requests finish.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let config = self.authority.server_config(&self.hosts).map_err(io::Error::other)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let graceful = GracefulShutdown::new();
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut shutdown = pin!(shutdown);
        loop {
            let slot = tokio::select! {
                slot = Arc::clone(&slots).acquire_owned() => slot.map_err(io::Error::other)?,
                () = &mut shutdown => break,
            };
            let (stream, source) = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, address)) => (stream, address.ip()),
                    Err(error) => {
                        // Out of file descriptors, usually: wait for some to be closed.
                        tracing::warn!(%error, "accepting a connection failed");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
                () = &mut shutdown => break,
            };
            let connection = Connection {
                core: Arc::clone(&self.core),
                acceptor: acceptor.clone(),
                watcher: graceful.watcher(),
                source,
            };
            tokio::spawn(async move {
                connection.run(stream).await;
                drop(slot);
            });
        }
        drop(listener);
        self.core.stopping.send_replace(true);
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await;
        Ok(())
    }

    /// A kubeconfig for a user, with a new client certificate in it; `server_url` is how clients reach
    /// [`ApiServer::serve`]'s listener.
    pub fn kubeconfig(&self, identity: &Identity, server_url: &str) -> Result<String, StartError> {
        self.authority.kubeconfig(identity, server_url)
    }

    /// A new bearer token for a user; only its hash is kept.
    pub async fn issue_token(&self, identity: &Identity) -> Result<String, StartError> {
        let issued = self.core.access.tokens().issue(identity).await;
        issued.map_err(|error| StartError::Token { detail: error.to_string() })
    }

    /// Takes back all tokens of a user.
    pub async fn revoke_tokens(&self, user: &str) -> Result<(), StartError> {
        let revoked = self.core.access.tokens().revoke(user).await;
        revoked.map_err(|error| StartError::Token { detail: error.to_string() })
    }

    /// Publishes at `/metrics` what something beside the server counts.
    pub fn publish_metrics(&self, collector: Box<dyn Collector>) {
        self.core.metrics.publish(collector);
    }

    /// The certificate of the server's authority, in PEM.
    pub fn certificate_authority(&self) -> &str {
        self.authority.certificate()
    }

    /// Stops the controllers, ends all watches and closes the store; later writes fail.
    pub async fn shutdown(self) {
        if let Some(controllers) = self.controllers {
            controllers.stop().await;
        }
        self.core.stopping.send_replace(true);
        self.core.store.close().await;
    }

    /// Makes the namespaces, roles and bindings every cluster has, and brings changed defaults up to date.
    async fn bootstrap(&self, groups: &[String]) -> Result<(), StartError> {
        for name in NAMESPACES {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.ensure("/api/v1/namespaces", &namespace).await?;
        }
        for wanted in bootstrap::objects(groups) {
            let plural = format!("{}s", wanted["kind"].as_str().unwrap_or_default().to_lowercase());
            let namespace = wanted["metadata"]["namespace"].as_str();
            let scope = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
            let path = format!("/apis/{}/v1/{scope}{plural}", access::GROUP);
            self.ensure(&path, &wanted).await?;
        }
        Ok(())
    }

    /// Creates an object unless there is one of its name, which is reconciled if it is about access.
    async fn ensure(&self, path: &str, wanted: &Value) -> Result<(), StartError> {
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        let item = format!("{path}/{}", name.replace('%', "%25"));
        let failed = |detail: String| StartError::Bootstrap {
            object: format!("{} {name}", wanted["kind"].as_str().unwrap_or_default()),
            detail,
        };
        let (code, body) = self.send(Method::GET, &item, None).await.map_err(failed)?;
        let found: Option<Value> = if code == 200 { serde_json::from_slice(&body).ok() } else { None };
        let access = path.contains(access::GROUP);
        let (method, path, object) = match &found {
            None => (Method::POST, path, Some(wanted.clone())),
            Some(found) if access => (Method::PUT, item.as_str(), bootstrap::reconcile(wanted, Some(found))),
            Some(_) => return Ok(()),
        };
        let Some(object) = object else { return Ok(()) };
        match self.send(method, path, Some(&object)).await.map_err(failed)? {
            (200 | 201, _) => Ok(()),
            (code, body) => Err(failed(format!("{code}: {}", String::from_utf8_lossy(&body)))),
        }
    }

    /// A request of the server to itself.
    async fn send(&self, method: Method, path: &str, object: Option<&Value>) -> Result<(u16, Bytes), String> {
        let body = object.map(ToString::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?fieldManager=modelplane"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| error.to_string())?;
        let caller = Caller::Known(Identity::component("bootstrap"));
        let response = handle(Arc::clone(&self.core), caller, request).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((code, body.to_bytes()))
    }
}

/// One accepted connection.
struct Connection {
    core: Arc<Core>,
    acceptor: TlsAcceptor,
    watcher: Watcher,
    source: IpAddr,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        // Without it, small answers wait for the client's acknowledgements.
        let _ = stream.set_nodelay(true);
        let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream));
        let Ok(Ok(stream)) = handshake.await else { return };
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates().and_then(|chain| chain.first());
        let identity = certificate.and_then(|leaf| identity_of(leaf));
        let http2 = session.alpn_protocol() == Some(b"h2");
        let core = self.core;
        let source = self.source;
        let service = service_fn(move |request: Request<Incoming>| {
            let core = Arc::clone(&core);
            let caller = Caller::Network { certificate: identity.clone(), source };
            async move { Ok::<_, Infallible>(handle(core, caller, request).await) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(MAX_HEADER_BYTES)
            .max_concurrent_streams(1000)
            .keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(20));
        // The protocol is known from the handshake; sniffing it would wait without a limit.
        let builder = if http2 { builder.http2_only() } else { builder.http1_only() };
        let connection =
            self.watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned());
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
    }
}

/// The server as a tower service, for one identity.
#[derive(Clone)]
pub struct InProcess {
    core: Arc<Core>,
    identity: Identity,
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let core = Arc::clone(&self.core);
        let caller = Caller::Known(self.identity.clone());
        Box::pin(async move { Ok(handle(core, caller, request).await) })
    }
}
