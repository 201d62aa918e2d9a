//! `modelplane function serve`: the function server Crossplane calls.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use modelplane_crossplane::server::{self, Collector, DEFAULT_MAX_REQUEST_BYTES, Options};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::outcome::{CommandError, CommandResult, Verdict, with_causes};
use crate::process;

/// Calls worked on at once, at most; more of them wait.
const MAX_PARALLEL_CALLS: usize = 64;

#[derive(Debug, Args)]
#[command(
    after_help = "Crossplane mounts the certificates and sets TLS_SERVER_CERTS_DIR; for development use --insecure."
)]
pub(crate) struct Arguments {
    /// Address to serve gRPC on
    #[arg(long, default_value = "0.0.0.0:9443", value_name = "ADDRESS")]
    address: SocketAddr,

    /// Folder with tls.crt, tls.key and ca.crt; clients must present a certificate of that authority
    #[arg(long, env = "TLS_SERVER_CERTS_DIR", value_name = "DIR", required_unless_present = "insecure")]
    tls_certs_dir: Option<PathBuf>,

    /// Serve plain text, without certificates
    #[arg(long)]
    insecure: bool,

    /// Largest request accepted, in bytes
    #[arg(long, default_value_t = DEFAULT_MAX_REQUEST_BYTES, value_name = "BYTES")]
    max_recv_message_size: usize,

    /// Address for /metrics, /livez and /readyz; "none" for no such listener
    #[arg(long, default_value = "0.0.0.0:8080", value_name = "ADDRESS")]
    metrics_address: String,

    /// Send OpenTelemetry traces to this collector, over OTLP/gRPC: http://HOST:4317 or https://HOST:4317
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<String>,

    /// Certificate authority of an https collector (PEM)
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CERTIFICATE", value_name = "FILE")]
    otlp_certificate: Option<PathBuf>,

    /// How to log to stderr
    #[arg(long, value_enum, default_value_t = LogFormat::Json)]
    log_format: LogFormat,

    /// Log each call too
    #[arg(short, long)]
    debug: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// One JSON object a line
    Json,
    /// For people
    Text,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        self.start_logging();
        let options = Options {
            address: self.address,
            certificates: if self.insecure { None } else { self.tls_certs_dir.clone() },
            max_request_bytes: self.max_recv_message_size,
            http_address: self.http_address()?,
            collector: self.collector(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .max_blocking_threads(MAX_PARALLEL_CALLS)
            .build()
            .map_err(|error| CommandError::new(format!("cannot start the runtime: {error}")))?;
        runtime.block_on(serve(options))
    }

    fn http_address(&self) -> Result<Option<SocketAddr>, CommandError> {
        if self.metrics_address == "none" {
            return Ok(None);
        }
        let parsed = self.metrics_address.parse();
        parsed.map(Some).map_err(|_| {
            CommandError::new(format!("--metrics-address: {:?} is not an address", self.metrics_address))
                .with_hint("write IP:PORT, such as 127.0.0.1:8080, or none")
        })
    }

    /// Deployments set the variable to nothing to switch traces off.
    fn collector(&self) -> Option<Collector> {
        let endpoint = self.otlp_endpoint.clone().filter(|endpoint| !endpoint.is_empty())?;
        Some(Collector { endpoint, authority: self.otlp_certificate.clone() })
    }

    fn start_logging(&self) {
        let level = if self.debug { LevelFilter::DEBUG } else { LevelFilter::INFO };
        // The transport's own debugging drowns everything else.
        let filter = Targets::new().with_default(LevelFilter::INFO).with_target("modelplane", level);
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let registry = tracing_subscriber::registry().with(filter);
        match self.log_format {
            LogFormat::Json => registry.with(lines.json().flatten_event(true)).init(),
            LogFormat::Text => registry.with(lines).init(),
        }
        std::panic::set_hook(Box::new(log_panic));
    }
}

/// A panic ends one call only; the log line carries the call's composite and tag.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let cause = panic.payload_as_str().unwrap_or("unknown cause");
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(cause, location, "internal error; please report this");
}

async fn serve(options: Options) -> CommandResult {
    let secure = options.certificates.is_some();
    let bound = server::bind(options).await.map_err(with_causes)?;
    let address = bound.address().map_err(CommandError::new)?;
    tracing::info!(%address, tls = secure, version = env!("CARGO_PKG_VERSION"), "serving the Modelplane function");
    bound.serve(process::asked_to_stop()).await.map_err(with_causes)?;
    tracing::info!("stopped");
    Ok(Verdict::Good)
}
