//! `modelplane gateway`: the data plane alone, beside any control plane.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;
use modelplane_engine::gateway_api::{self, Address};
use modelplane_gateway::source::kubernetes::KubernetesRoutes;
use modelplane_gateway::{Gateway, Options, Workers};
use tracing_subscriber::filter::LevelFilter;

use crate::live::LiveArguments;
use crate::outcome::{CommandResult, Verdict, with_causes};
use crate::process;

#[derive(Debug, Args)]
#[command(after_help = "Example:
  modelplane gateway --kubeconfig control-plane.yaml --listen 0.0.0.0:8080 --address gateway.example.org:8080

Without --kubeconfig and outside of a cluster, KUBECONFIG or ~/.kube/config is used; in a pod, its service account.")]
pub(crate) struct Arguments {
    /// Address for HTTP
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// Address for HTTPS, with the certificates the InferenceGateway names
    #[arg(long, value_name = "ADDRESS")]
    listen_tls: Option<SocketAddr>,

    /// Address for metrics, health and the route table
    #[arg(long, value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,

    /// Where clients reach the gateway, as HOST[:PORT]; that of the Service modelplane-gateway unless given
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,

    /// Threads that serve; one for each core unless given
    #[arg(long, value_name = "COUNT")]
    threads: Option<NonZeroUsize>,

    /// Longest to wait for requests under way when told to stop, in seconds
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    drain: u64,

    #[command(flatten)]
    live: LiveArguments,

    /// Log more
    #[arg(short, long)]
    debug: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        process::start_logging(self.debug, LevelFilter::INFO);
        process::runtime()?.block_on(self.serve())
    }

    async fn serve(self) -> CommandResult {
        let client = self.live.client_or_in_cluster().await?;
        let mut options = Options::new(self.listen);
        options.listen_tls = self.listen_tls;
        options.listen_admin = self.admin_listen;
        options.drain = Duration::from_secs(self.drain);
        let threads = self.threads.or_else(|| std::thread::available_parallelism().ok());
        options.workers = threads.map_or(Workers::Ambient, Workers::Threads);
        let gateway = Gateway::bind(options).map_err(with_causes)?;
        tracing::info!(address = %gateway.address(), version = env!("CARGO_PKG_VERSION"), "serving the gateway");
        let address = self.address.map_or(Address::Service, Address::HostPort);
        let report = gateway_api::report(client.clone(), gateway_api::Settings { address, stands_in: false });
        let report = tokio::spawn(report);
        gateway.serve(KubernetesRoutes::new(client), process::asked_to_stop()).await;
        report.abort();
        tracing::info!("stopped");
        Ok(Verdict::Good)
    }
}
