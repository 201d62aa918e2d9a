//! Configuration of the data plane, as plain values: what a source publishes and a table is built from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};

/// Everything the gateway routes at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Services, at most one per namespace and name.
    pub services: Vec<ServiceConfig>,
    /// Who may call, if callers must identify themselves. `None` lets everyone call everything.
    pub callers: Option<Vec<CallerConfig>>,
    /// Certificates the TLS listener presents, the default first.
    pub certificates: Vec<Certificate>,
    /// Host names that requests over HTTPS must be for, `*.` in front standing for any. Empty accepts any.
    pub hostnames: Vec<String>,
    /// What could not be used, for operators.
    pub problems: Vec<Problem>,
}

/// Something in the configuration that is left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The object, e.g. `Secret ml-team/keys`.
    pub object: String,
    /// Why it is left out. Never holds a secret's value.
    pub reason: String,
}

/// One model behind one path prefix.
#[derive(Clone, Debug, Default)]
pub struct ServiceConfig {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Groups of endpoints, in the order of the specification.
    pub entries: Vec<EntryConfig>,
    /// How requests are spread, retried, timed out and spilled.
    pub policy: ServicePolicy,
}

impl ServiceConfig {
    /// `namespace/name`, also the model name for routing by model.
    pub fn id(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// A group of endpoints with its share of the traffic.
#[derive(Clone, Debug, Default)]
pub struct EntryConfig {
    /// Share relative to the other entries of the tier. 0 takes no traffic.
    pub weight: u32,
    /// Priority: a lower tier is used first.
    pub tier: u32,
    /// Endpoints, in order.
    pub endpoints: Vec<Arc<EndpointConfig>>,
}

/// One place that serves a model.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Where to connect to.
    pub address: Address,
    /// What replaces the service's path prefix. `None` leaves the path as it is.
    pub rewrite_path: Option<String>,
    /// `Host` to send. `None` sends the address's.
    pub host_header: Option<HeaderValue>,
    /// The endpoint's own credential; callers' credentials are then never forwarded.
    pub credential: Option<Credential>,
    /// Name of the model at the endpoint. `None` leaves the request's.
    pub model: Option<String>,
    /// Headers set on every request.
    pub add_headers: Vec<(HeaderName, HeaderValue)>,
    /// Headers removed from every request.
    pub remove_headers: Vec<HeaderName>,
    /// Labels of the object, for locality.
    pub labels: BTreeMap<String, String>,
    /// Why the endpoint takes no traffic at all, if it does not.
    pub problem: Option<String>,
}

impl EndpointConfig {
    /// An endpoint with nothing special about it.
    pub fn new(namespace: &str, name: &str, address: Address) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            address,
            rewrite_path: None,
            host_header: None,
            credential: None,
            model: None,
            add_headers: Vec::new(),
            remove_headers: Vec::new(),
            labels: BTreeMap::new(),
            problem: None,
        }
    }

    /// `namespace/name`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Where to connect to. Health and pooled connections belong to an address: they start anew when it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// TLS, or plain TCP if absent.
    pub tls: Option<ClientTls>,
    /// Speak HTTP/2 without negotiating it. With TLS, ALPN decides.
    pub http2: bool,
}

impl Address {
    /// A plain HTTP/1.1 address.
    pub fn plain(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, tls: None, http2: false }
    }

    /// `host:port` as in a URL, the port left out where it is the scheme's.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let default = if self.tls.is_some() { 443 } else { 80 };
        if self.port == default { host } else { format!("{host}:{}", self.port) }
    }
}

/// How to verify an endpoint, and how to identify to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// Name to ask for and verify. `None` uses the host.
    pub server_name: Option<String>,
    /// Authorities to trust, PEM. `None` trusts the system's.
    pub authorities: Option<Bytes>,
    /// Client certificate chain and key, PEM, for mutual TLS.
    pub identity: Option<Certificate>,
}

/// A certificate chain and its private key.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Chain, PEM, leaf first.
    pub chain: Bytes,
    /// Private key, PEM.
    pub key: Bytes,
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Certificate").finish_non_exhaustive()
    }
}

/// A header that identifies the gateway to an endpoint.
#[derive(Clone)]
pub struct Credential {
    /// Header, e.g. `authorization`.
    pub header: HeaderName,
    /// Its whole value, marked sensitive.
    pub value: HeaderValue,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Credential").field("header", &self.header).finish_non_exhaustive()
    }
}

/// How a service's requests are spread, timed out, retried and spilled. The defaults are those `spec.traffic` promises.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServicePolicy {
    /// Choice among the endpoints of an entry.
    pub balancing: Balancing,
    /// Requests kept together, whatever the weights say.
    pub affinity: Option<Affinity>,
    /// Preference for endpoints with a label.
    pub locality: Option<Locality>,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Repeated attempts.
    pub retries: Retries,
    /// When an endpoint counts as full.
    pub overflow: Overflow,
    /// When an endpoint is left alone.
    pub outliers: Outliers,
    /// Requests the gateway sends of its own accord to learn whether endpoints work.
    pub probe: Option<Probe>,
}

/// Choice among the endpoints of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancing {
    /// In turn, unless another endpoint of the entry, drawn at random, is clearly less loaded.
    #[default]
    LeastLoaded,
    /// In turn.
    RoundRobin,
}

/// Requests kept together on one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    /// What they have in common.
    pub key: AffinityKey,
    /// How many times its even share of the load an endpoint may carry, in percent.
    pub load_percent: u32,
}

/// What requests are kept together by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AffinityKey {
    /// The beginning of the prompt, so that requests that share it share its cache.
    Prefix,
    /// The caller, else the client's address.
    Caller,
    /// Value of a header. Requests without it are spread as if there were no affinity.
    Header(HeaderName),
}

/// Preference for endpoints with a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locality {
    /// Label.
    pub label: String,
    /// Values from most to least preferred.
    pub preferred: Vec<String>,
}

/// Time limits. Zero means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To a connection, TLS included.
    pub connect: Duration,
    /// From the request to the response's head.
    pub first_byte: Duration,
    /// Between two pieces of a response's body.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), first_byte: Duration::ZERO, idle: Duration::from_secs(300) }
    }
}

/// Repeated attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Attempts after the first.
    pub attempts: u32,
    /// Retries as a share of requests, in percent.
    pub budget_percent: u32,
}

impl Default for Retries {
    fn default() -> Self {
        Self { attempts: 2, budget_percent: 20 }
    }
}

/// When an endpoint counts as full. It returns when every measure has been below four fifths of its limit for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// Requests in flight. Never exceeded.
    pub concurrent_requests: Option<u32>,
    /// Requests waiting in the engine.
    pub queue_depth: Option<u32>,
    /// Moving average of the time to the first byte of a response's body.
    pub time_to_first_token: Option<Duration>,
    /// How long measures must stay low before the endpoint is used fully again.
    pub return_after: Duration,
}

impl Default for Overflow {
    fn default() -> Self {
        Self {
            concurrent_requests: None,
            queue_depth: None,
            time_to_first_token: None,
            return_after: Duration::from_secs(10),
        }
    }
}

/// When an endpoint is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outliers {
    /// Failures in a row that eject an endpoint. 0 never does.
    pub consecutive_failures: u32,
    /// How long the first ejection lasts; it doubles each time in a row, up to ten times this.
    pub ejection: Duration,
    /// At most this share of a service's endpoints is ejected, in percent.
    pub max_ejected_percent: u32,
}

impl Default for Outliers {
    fn default() -> Self {
        Self { consecutive_failures: 5, ejection: Duration::from_secs(10), max_ejected_percent: 50 }
    }
}

/// A request the gateway sends of its own accord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Path below the endpoint's own prefix, e.g. `/health`.
    pub path: String,
    /// Time between probes of one endpoint, also how long an answer may take.
    pub interval: Duration,
}

/// Someone who may call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallerConfig {
    /// `namespace/name` of the key's Secret. Names the caller in metrics and logs.
    pub id: String,
    /// SHA-256 of the key.
    pub digest: [u8; 32],
    /// Services the caller may use.
    pub services: AllowedServices,
    /// What the caller may use up.
    pub limits: CallerLimits,
}

/// Services a caller may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedServices {
    /// Every service.
    All,
    /// Patterns: `namespace/name`, `namespace/*`, `*`.
    Only(Vec<String>),
}

/// What a caller may use up. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerLimits {
    /// Requests per minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens, prompt and completion, per minute.
    pub tokens_per_minute: Option<u32>,
    /// Requests at the same time.
    pub concurrent_requests: Option<u32>,
    /// Tokens since the gateway started.
    pub budget_tokens: Option<u64>,
}
