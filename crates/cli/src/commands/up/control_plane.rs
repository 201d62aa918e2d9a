//! The wiring of `modelplane up`: API server, engine, gateway and simulated clusters in one process.
//!
//! All parts talk to the API server through its in-process service: nothing of theirs crosses a socket.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use modelplane_api::kind::Object as _;
use modelplane_api::model_deployment::ModelDeployment;
use modelplane_apiserver::{ApiServer, DataLocation, Identity, Profile};
use modelplane_engine::gateway_api::{self, Address};
use modelplane_engine::usage::{Protection, UsageIndex};
use modelplane_engine::{Config, Engine};
use modelplane_gateway::Gateway;
use modelplane_gateway::source::kubernetes::KubernetesRoutes;
use modelplane_simulator::controller::{self, Clouds, Controller};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::connector::Connector;
use super::usage_guard::UsageGuard;
use crate::outcome::{CommandError, with_causes};

/// Port of the gateway unless told.
const GATEWAY_PORT: u16 = 8080;

/// How to run.
pub(super) struct Settings {
    /// The store's file; none keeps everything in memory.
    pub(super) store: Option<PathBuf>,
    /// Listener of the API server.
    pub(super) listen: TcpListener,
    pub(super) gateway: GatewaySettings,
    pub(super) simulate_clouds: bool,
    pub(super) audit_log: Option<PathBuf>,
    pub(super) debug_profile: bool,
}

/// Where the gateway listens.
pub(super) struct GatewaySettings {
    /// Plain HTTP; at the usual address, or on any free port, unless given.
    pub(super) listen: Option<SocketAddr>,
    pub(super) listen_tls: Option<SocketAddr>,
    pub(super) listen_admin: Option<SocketAddr>,
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
        options.debug_profile = settings.debug_profile;
        // What ML teams may edit in their namespace.
        options.groups = vec![ModelDeployment::INFO.group.to_owned()];
        let usages = Arc::new(UsageIndex::new(Protection::Guard));
        options.deletion_guard = Some(Arc::new(UsageGuard(Arc::clone(&usages))));
        let api = Arc::new(ApiServer::start(options).await.map_err(with_causes)?);
        let client = component(&api, "modelplane-engine");
        let (stop, stopped) = watch::channel(false);
        let mut tasks = Vec::new();

        let api_address = settings.listen.local_addr().map_err(CommandError::new)?;

        let options = controller::Options { serve: true, clouds: settings.simulate_clouds };
        let simulated =
            Controller::start(component(&api, "modelplane-simulator"), options).await.map_err(with_causes)?;
        let mut config = Config::new(client.clone());
        config.connector = Arc::new(Connector::new(simulated.clusters()));
        config.simulate_clouds = settings.simulate_clouds;
        config.cloud_simulator = Some(Arc::new(Clouds(simulated.clusters())));
        // The control plane has no nodes: charts for it are recorded.
        config.simulate_control_plane = true;
        config.usages = usages;
        let engine = Engine::start(config).await.map_err(with_causes)?;
        api.publish_metrics(Box::new(Arc::clone(engine.metrics())));

        // Only now: deletions are refused by what the engine has learned of usages.
        let listener = tokio::net::TcpListener::from_std(settings.listen).map_err(CommandError::new)?;
        tasks.push(tokio::spawn(serve_api(Arc::clone(&api), listener, until(stopped.clone()))));

        let gateway = bind_gateway(&settings.gateway)?;
        let gateway_address = gateway.address();
        let source = KubernetesRoutes::new(component(&api, "modelplane-gateway"));
        tasks.push(tokio::spawn(gateway.serve(source, until(stopped))));
        let report = gateway_api::Settings {
            address: Address::HostPort(reachable(gateway_address).to_string()),
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
        format!("https://{}", reachable(self.api_address))
    }

    pub(super) fn gateway_url(&self) -> String {
        format!("http://{}", reachable(self.gateway_address))
    }

    /// A kubeconfig for that user.
    pub(super) fn kubeconfig(&self, user: &Identity) -> Result<String, CommandError> {
        self.api.kubeconfig(user, &self.api_url()).map_err(with_causes)
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

/// The address by which this machine reaches a listener, which may listen on all interfaces.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
        _ => address,
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

/// The gateway at its address, or, if none is asked for and the usual one is taken, on any free port.
fn bind_gateway(settings: &GatewaySettings) -> Result<Gateway, CommandError> {
    let at = |listen: SocketAddr| {
        let mut options = modelplane_gateway::Options::new(listen);
        options.listen_tls = settings.listen_tls;
        options.listen_admin = settings.listen_admin;
        Gateway::bind(options)
    };
    let bound = match settings.listen {
        Some(listen) => at(listen),
        None => {
            at((Ipv4Addr::LOCALHOST, GATEWAY_PORT).into()).or_else(|_| at((Ipv4Addr::LOCALHOST, 0).into()))
        }
    };
    bound.map_err(|error| {
        with_causes(error).with_hint("give another --gateway-listen, or 127.0.0.1:0 for any free port")
    })
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
