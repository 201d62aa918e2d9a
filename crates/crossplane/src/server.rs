//! The Crossplane function server: RunFunction v1 over gRPC, with metrics and health over HTTP and traces on request.
//!
//! Requests stay bytes from the socket to the composition ([`codec`]); each call runs on its own blocking
//! thread, so calls neither wait for nor disturb each other, and a panic is one call's fatal result.
//! Certificates are read anew when their files change ([`tls`]).

mod codec;
mod descriptor;
mod http;
mod metrics;
mod otlp;
mod service;
mod standing;
mod tls;
mod traces;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

pub use metrics::Metrics;
pub use service::SERVICE_NAME;
pub use tls::TlsError;
pub use traces::{Collector, CollectorError};

/// Requests up to this size are accepted unless said otherwise: a fleet of 5,000 clusters and 20,000
/// replicas is about 35 MB.
pub const DEFAULT_MAX_REQUEST_BYTES: usize = 256 * 1024 * 1024;

/// Initial HTTP/2 windows; large, because one message may be tens of megabytes.
const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// How long spans may take to reach their collector once the server has stopped.
const LAST_SPANS: Duration = Duration::from_secs(5);

/// How the server listens.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address for gRPC.
    pub address: SocketAddr,
    /// Folder with `tls.crt`, `tls.key` and `ca.crt`; none means plain text.
    pub certificates: Option<PathBuf>,
    /// Largest request accepted, in bytes.
    pub max_request_bytes: usize,
    /// Address for `/metrics`, `/livez` and `/readyz`; none means no such listener.
    pub http_address: Option<SocketAddr>,
    /// Where traces go; none means there are none.
    pub collector: Option<Collector>,
}

/// Why the server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The trace collector cannot be used.
    #[error(transparent)]
    Collector(#[from] CollectorError),
    /// The transport failed.
    #[error("the gRPC server failed")]
    Transport(#[from] tonic::transport::Error),
    /// The descriptor of the service cannot be served.
    #[error("the gRPC reflection service cannot be set up")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// A server that holds its listeners but does not serve yet.
#[derive(Debug)]
pub struct Bound {
    options: Options,
    grpc: TcpListener,
    http: Option<TcpListener>,
}

/// Takes the addresses; whoever connects from now on is served once [`Bound::serve`] runs.
///
/// # Errors
///
/// If an address is taken or not this machine's.
pub async fn bind(options: Options) -> Result<Bound, ServeError> {
    let grpc = listen(options.address).await?;
    let http = match options.http_address {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    Ok(Bound { options, grpc, http })
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })
}

impl Bound {
    /// Where gRPC is served; tells the port if the system chose it.
    ///
    /// # Errors
    ///
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.grpc.local_addr()
    }

    /// Where metrics and health are served.
    ///
    /// # Errors
    ///
    /// If the system does not say.
    pub fn http_address(&self) -> io::Result<Option<SocketAddr>> {
        self.http.as_ref().map(TcpListener::local_addr).transpose()
    }

    /// Serves until `shutdown` is done; calls under way are finished first.
    ///
    /// # Errors
    ///
    /// If the certificates or the trace collector cannot be used, or the transport fails.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let metrics = Arc::new(Metrics::new());
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_service_status(SERVICE_NAME, tonic_health::ServingStatus::Serving).await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_file_descriptor_set(descriptor::file_descriptor_set())
            .build_v1()?;
        let (tracer, spans) = match &self.options.collector {
            None => (None, None),
            Some(collector) => {
                let (tracer, task) = traces::Tracer::start(collector, Arc::clone(&metrics))?;
                (Some(tracer), Some(task))
            }
        };
        let function = service::FunctionService {
            metrics: Arc::clone(&metrics),
            tracer,
            max_request_bytes: self.options.max_request_bytes,
        };
        let router = Server::builder()
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .add_service(health_service)
            .add_service(reflection)
            .add_service(function);
        let http = self.http.map(|listener| tokio::spawn(http::serve(listener, metrics)));
        let served = match &self.options.certificates {
            None => {
                // An answer goes out in pieces; held back, its end would wait for the peer's delayed acknowledgement.
                let incoming = TcpIncoming::from(self.grpc).with_nodelay(Some(true));
                router.serve_with_incoming_shutdown(incoming, shutdown).await
            }
            Some(folder) => {
                let incoming = tls::incoming(self.grpc, tls::Certificates::load(folder)?);
                router.serve_with_incoming_shutdown(incoming, shutdown).await
            }
        };
        if let Some(http) = http {
            http.abort();
        }
        if let Some(spans) = spans
            && tokio::time::timeout(LAST_SPANS, spans).await.is_err()
        {
            tracing::warn!("the last spans did not reach their collector in time");
        }
        Ok(served?)
    }
}
