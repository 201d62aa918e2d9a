//! The API server of a simulated cluster, listening on loopback.

use std::net::SocketAddr;
use std::sync::Arc;

use modelplane_apiserver::{ApiServer, Identity, InProcess, Options, Profile};
use modelplane_engine::metrics::Metrics;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::{StartError, door, listen_error};
use crate::settings::Settings;

/// How much of its past a simulated cluster keeps.
const HISTORY_BYTES: usize = 1024 * 1024;

/// An API server, its addresses and the task that serves it.
pub(super) struct Running {
    pub(super) service: InProcess,
    pub(super) server_url: String,
    pub(super) kubeconfig: String,
    pub(super) dirty: Arc<Notify>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) tasks: [JoinHandle<()>; 2],
}

/// Starts one, with its objects in memory: what is on a simulated cluster is put there again by those who did.
pub(super) async fn start(settings: watch::Receiver<Settings>) -> Result<Running, StartError> {
    let cluster = settings.borrow().name.clone();
    let cluster = cluster.as_str();
    let mut options = Options::in_memory(Profile::Workload);
    // Those who watch it are in this process, and there may be hundreds of clusters.
    options.history_bytes = HISTORY_BYTES;
    let api = ApiServer::start(options).await.map_err(|error| failed(cluster, error))?;
    let (listener, inner) = bind().await.map_err(|source| listen_error(cluster, source))?;
    let (door, address) = bind().await.map_err(|source| listen_error(cluster, source))?;
    let server_url = format!("https://{address}");
    let kubeconfig =
        api.kubeconfig(&Identity::admin(), &server_url).map_err(|error| failed(cluster, error))?;
    let service = api.in_process(Identity::component("simulator"));
    let name = cluster.to_owned();
    let task = tokio::spawn(async move {
        if let Err(error) = api.serve(listener, std::future::pending::<()>()).await {
            tracing::warn!(%error, cluster = name, "the API server of a simulated cluster stopped");
        }
    });
    let tasks = [task, tokio::spawn(door::keep(door, inner, settings))];
    Ok(Running { service, server_url, kubeconfig, dirty: Arc::default(), metrics: Arc::default(), tasks })
}

async fn bind() -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn failed(cluster: &str, error: modelplane_apiserver::StartError) -> StartError {
    StartError::ApiServer { cluster: cluster.to_owned(), source: Box::new(error) }
}
