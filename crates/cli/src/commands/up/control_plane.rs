//! The wiring of `modelplane up`: API server, engine, gateway and simulated clusters in one process.
//!
//! All parts talk to the API server through its in-process service: nothing of theirs crosses a socket.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use modelplane_apiserver::{ApiServer, DataLocation, Identity, Profile};
use modelplane_engine::gateway_api::{self, Address};
use modelplane_engine::{Config, Engine};
use modelplane_gateway::Gateway;
use modelplane_gateway::source::kubernetes::KubernetesRoutes;
use modelplane_simulator::controller::Controller;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::connector::Connector;
use crate::outcome::{CommandError, with_causes};

/// How to run.
pub(super) struct Settings {
    /// The store's file; none keeps everything in memory.
    pub(super) store: Option<PathBuf>,
    /// Listener of the API server.
    pub(super) listen: TcpListener,
    /// Listener of the gateway.
    pub(super) gateway_listen: TcpListener,
    pub(super) gateway_listen_tls: Option<SocketAddr>,
    pub(super) gateway_admin_listen: Option<SocketAddr>,
    pub(super) simulate_clouds: bool,
    pub(super) audit_log: Option<PathBuf>,
}

/// A running control plane.
pub(super) struct ControlPlane {
    api: Arc<ApiServer>,
    client: kube::Client,
    api_address: SocketAddr,
    gateway_address: SocketAddr,
    engine: Engine,
    simulated: Controller,
    reporter: JoinHandle<()>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl ControlPlane {
    /// Starts everything; done when requests are answered.
    pub(super) async fn start(settings: Settings) -> Result<Self, CommandError> {
        let data = settings.store.map_or(DataLocation::Memory, DataLocation::File);
        let mut options = modelplane_apiserver::Options::in_memory(Profile::Workload);
        options.data = data;
        options.audit_log = settings.audit_log;
        let api = Arc::new(ApiServer::start(options).await.map_err(with_causes)?);
        let client = component(&api, "modelplane-engine");
        let (stop, stopped) = watch::channel(false);
        let mut tasks = Vec::new();

        let api_address = settings.listen.local_addr().map_err(CommandError::new)?;
        let listener = tokio::net::TcpListener::from_std(settings.listen).map_err(CommandError::new)?;
        tasks.push(tokio::spawn(serve_api(Arc::clone(&api), listener, until(stopped.clone()))));

        let simulated =
            Controller::start(component(&api, "modelplane-simulator"), true).await.map_err(with_causes)?;
        let mut config = Config::new(client.clone());
        config.connector = Arc::new(Connector::new(simulated.clusters()));
        config.simulate_clouds = settings.simulate_clouds;
        // The control plane has no nodes: charts for it are recorded.
        config.simulate_control_plane = true;
        let engine = Engine::start(config).await.map_err(with_causes)?;

        let gateway_address = settings.gateway_listen.local_addr().map_err(CommandError::new)?;
        let mut options = modelplane_gateway::Options::new(gateway_address);
        options.listen_tls = settings.gateway_listen_tls;
        options.listen_admin = settings.gateway_admin_listen;
        // Its port is known now; the gateway opens it again itself.
        drop(settings.gateway_listen);
        let gateway = Gateway::bind(options).map_err(with_causes)?;
        let source = KubernetesRoutes::new(component(&api, "modelplane-gateway"));
        tasks.push(tokio::spawn(gateway.serve(source, until(stopped))));
        let report = gateway_api::Settings {
            address: Address::HostPort(gateway_address.to_string()),
            stands_in: true,
        };
        let reporter = tokio::spawn(gateway_api::report(component(&api, "modelplane-gateway"), report));
        Ok(Self { api, client, api_address, gateway_address, engine, simulated, reporter, stop, tasks })
    }

    /// A client that may do everything.
    pub(super) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    pub(super) fn api_url(&self) -> String {
        format!("https://{}", self.api_address)
    }

    pub(super) fn gateway_url(&self) -> String {
        format!("http://{}", self.gateway_address)
    }

    /// A kubeconfig for an administrator.
    pub(super) fn kubeconfig(&self) -> Result<String, CommandError> {
        self.api.kubeconfig(&Identity::admin(), &self.api_url()).map_err(with_causes)
    }

    /// Stops in the order in which nothing is missed: who writes first, what is written to last.
    pub(super) async fn shutdown(self) {
        self.reporter.abort();
        self.engine.shutdown().await;
        drop(self.simulated);
        self.stop.send_replace(true);
        for task in self.tasks {
            // They finish what they have begun.
            if tokio::time::timeout(std::time::Duration::from_secs(1), task).await.is_err() {
                tracing::debug!("a task was cut off");
            }
        }
        // Nobody else holds it once the task that served it has ended.
        if let Some(api) = Arc::into_inner(self.api) {
            api.shutdown().await;
        }
    }
}

async fn serve_api(
    api: Arc<ApiServer>,
    listener: tokio::net::TcpListener,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    if let Err(error) = api.serve(listener, shutdown).await {
        tracing::error!(%error, "the API server stopped");
    }
}

/// An in-process client for a part of this process.
fn component(api: &ApiServer, name: &str) -> kube::Client {
    kube::Client::new(api.in_process(Identity::component(name)), "default")
}

/// Done once told to stop.
async fn until(mut stopped: watch::Receiver<bool>) {
    // An error is the sender's end, which is a reason to stop too.
    drop(stopped.wait_for(|stopped| *stopped).await);
}
