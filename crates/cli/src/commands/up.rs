//! `modelplane up`: the whole control plane in this process, and its demonstration.

mod connector;
mod control_plane;
mod data;
mod demo;
mod http;
mod usage_guard;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use modelplane_apiserver::Identity;

use self::control_plane::{ControlPlane, GatewaySettings, Settings};
use self::data::DataFolder;
use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output::print;
use crate::process;

/// Where the API server listens unless told.
const API_ADDRESS: &str = "127.0.0.1:7443";
/// File of the data folder for who may read everything but secrets.
const READER_KUBECONFIG: &str = "kubeconfig-readonly";
/// Where it listens if that is taken.
const ANY_PORT: &str = "127.0.0.1:0";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  modelplane up --demo
  modelplane up
  KUBECONFIG=~/.local/share/modelplane/kubeconfig kubectl get inferenceclusters")]
pub(crate) struct Arguments {
    /// Folder that everything is kept in; the user's data folder unless given
    #[arg(long, env = "MODELPLANE_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Keep nothing: all is gone when the process ends
    #[arg(long, conflicts_with = "data_dir")]
    ephemeral: bool,

    /// Address of the API server [default: 127.0.0.1:7443, or a free port if that is taken]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Address of the gateway [default: 127.0.0.1:8080, or a free port if that is taken]
    #[arg(long, value_name = "ADDRESS")]
    gateway_listen: Option<SocketAddr>,

    /// Address of the gateway for HTTPS; off unless given
    #[arg(long, value_name = "ADDRESS")]
    gateway_listen_tls: Option<SocketAddr>,

    /// Address of the gateway's metrics, health and route table; off unless given
    #[arg(long, value_name = "ADDRESS")]
    gateway_admin_listen: Option<SocketAddr>,

    /// Where to write the kubeconfig; into the data folder unless given
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Pretend that clouds provision what is asked of them; all of it is labelled as simulated
    #[arg(long)]
    simulate_clouds: bool,

    /// Append one line of JSON for each request of the API to this file
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,

    /// Let administrators ask the API server at /debug/profile what it is busy with
    #[arg(long)]
    debug_profile: bool,

    /// Simulate two clusters, serve a model on them, send it a request, and show the answer; implies --ephemeral
    #[arg(long, conflicts_with = "data_dir")]
    demo: bool,

    /// With --demo: end once the answer is shown
    #[arg(long, requires = "demo")]
    once: bool,

    /// Log more
    #[arg(short, long)]
    debug: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let started = Instant::now();
        process::start_logging(self.debug, tracing_subscriber::filter::LevelFilter::WARN);
        process::runtime()?.block_on(self.serve(started))
    }

    async fn serve(self, started: Instant) -> CommandResult {
        let data = if self.ephemeral || self.demo {
            DataFolder::temporary()?
        } else {
            DataFolder::open(self.data_dir.clone())?
        };
        let settings = Settings {
            store: (!data.is_temporary()).then(|| data.file("store.redb")),
            listen: bind(self.listen)?,
            gateway: GatewaySettings {
                listen: self.gateway_listen,
                listen_tls: self.gateway_listen_tls,
                listen_admin: self.gateway_admin_listen,
            },
            simulate_clouds: self.simulate_clouds,
            audit_log: self.audit_log.clone(),
            debug_profile: self.debug_profile,
        };
        let control_plane = ControlPlane::start(settings).await?;
        let kubeconfig = self.kubeconfig.clone().unwrap_or_else(|| data.file("kubeconfig"));
        data::write_private(&kubeconfig, &control_plane.kubeconfig(&Identity::admin())?)?;
        let reader = data.file(READER_KUBECONFIG);
        data::write_private(&reader, &control_plane.kubeconfig(&Identity::reader())?)?;
        let took = started.elapsed();
        print(&greeting(&control_plane, &data, &kubeconfig, took.as_secs_f64()))?;
        if self.demo {
            let ended = tokio::select! {
                result = demo::run(&control_plane, &kubeconfig, self.once) => result.map(|()| false),
                () = process::asked_to_stop() => Ok(true),
            };
            match ended {
                Ok(false) if !self.once => process::asked_to_stop().await,
                Ok(_) => {}
                Err(error) => {
                    control_plane.shutdown().await;
                    return Err(error);
                }
            }
        } else {
            print(&next(&kubeconfig))?;
            process::asked_to_stop().await;
        }
        print("stopping\n")?;
        control_plane.shutdown().await;
        Ok(Verdict::Good)
    }
}

/// Listens where asked, or at the usual address, or, if that is taken, on any free port.
fn bind(asked: Option<SocketAddr>) -> Result<std::net::TcpListener, CommandError> {
    let bound = match asked {
        Some(address) => std::net::TcpListener::bind(address),
        None => std::net::TcpListener::bind(API_ADDRESS).or_else(|_| std::net::TcpListener::bind(ANY_PORT)),
    };
    let listener = bound.map_err(|error| {
        let address = asked.map_or_else(|| API_ADDRESS.to_owned(), |address| address.to_string());
        CommandError::new(format!("--listen: cannot listen on {address}: {error}"))
            .with_hint("give another address, or 127.0.0.1:0 for any free port")
    })?;
    listener
        .set_nonblocking(true)
        .map_err(|error| CommandError::new(format!("--listen: cannot use the listener: {error}")))?;
    Ok(listener)
}

/// Where everything is.
fn greeting(
    control_plane: &ControlPlane,
    data: &DataFolder,
    kubeconfig: &std::path::Path,
    seconds: f64,
) -> String {
    let place = if data.is_temporary() {
        "in memory, gone at the end".to_owned()
    } else {
        data.path().display().to_string()
    };
    format!(
        "Modelplane is up after {seconds:.2} s\n\
         \n  API         {}\n  gateway     {}\n  kubeconfig  {}\n  read-only   {}\n  data        {place}\n\n",
        control_plane.api_url(),
        control_plane.gateway_url(),
        kubeconfig.display(),
        data.file(READER_KUBECONFIG).display(),
    )
}

/// How to go on.
fn next(kubeconfig: &std::path::Path) -> String {
    format!(
        "Next:\n  export KUBECONFIG={}\n  modelplane cluster simulate dc-east --pool l4=existing-l4-1x:4\n  \
         kubectl get inferenceclusters,modeldeployments,modelservices -A\n\n",
        kubeconfig.display()
    )
}
