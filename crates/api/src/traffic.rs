//! How a service's traffic is spread, kept healthy and moved on when endpoints are full: `ModelService.spec.traffic`.
//!
//! Honoured by a gateway whose backend is `Modelplane`; other backends route by weight alone. Every field may be
//! left out; what then holds is written at the field and defined once, in the gateway.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Duration;
use crate::schema::rules;
use crate::wire;

/// How requests are spread over endpoints and what happens when one fails or is full.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Traffic {
    /// Choice among the endpoints of the entry that a request falls to by weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balancing: Option<Balancing>,
    /// Requests of one conversation or with one prompt prefix kept on one endpoint, where its caches are warm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Endpoints preferred over others of the same tier because of where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locality: Option<Locality>,
    /// When an endpoint counts as full. Traffic moves on to the next tier when all endpoints of a tier are full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow: Option<Overflow>,
    /// Second attempts at another endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// How long each phase of a request may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
    /// When an endpoint is taken out because requests to it fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outlier_detection: Option<OutlierDetection>,
    /// Requests that the gateway itself sends to find out whether an endpoint serves. Absent sends none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
}

/// Choice among the endpoints of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Balancing {
    /// The better of two endpoints drawn at random, by requests in flight and recent latency. The default.
    #[default]
    LeastLoaded,
    /// Each endpoint in turn.
    RoundRobin,
}

/// What keeps requests on one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::AFFINITY))]
pub struct Affinity {
    /// What requests of one kind have in common.
    pub key: AffinityKey,
    /// Name of the request header. Required when `key` is `Header`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub header: Option<String>,
    /// How many times the mean load of its tier an endpoint may carry, in percent, before requests go to the next
    /// one of the ring; 125 unless given.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 1000))]
    pub load_percent: Option<i64>,
}

/// What requests that belong together have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum AffinityKey {
    /// The start of the prompt: system message and first user message.
    #[default]
    Prefix,
    /// The caller: its API key, else its address.
    Caller,
    /// The value of a header.
    Header,
}

/// Preference for endpoints by where they are.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Locality {
    /// Label of ModelEndpoints that says where they are, e.g. `modelplane.ai/cluster`.
    #[schemars(length(min = 1, max = 317))]
    pub label_key: String,
    /// Values of the label, best first. Endpoints with other values come after them.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 16))]
    pub prefer: Vec<String>,
}

/// When an endpoint counts as full. One that answers 429 or 503 always does, for the time it asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Overflow {
    /// Requests in flight at one endpoint from which on it is full. Absent sets no limit.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000))]
    pub concurrent_requests: Option<i64>,
    /// Requests waiting in an endpoint's engine, as its metrics report, from which on it is full. Absent does not ask.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000))]
    pub queue_depth: Option<i64>,
    /// Recent time to the first token from which on an endpoint is full. Absent does not count it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_first_token: Option<Duration>,
    /// How long an endpoint has to be well below its limits before traffic returns to it, `10s` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_after: Option<Duration>,
}

/// Second attempts, made only while nothing has been sent to the client and the request can be sent again.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Retries {
    /// Attempts beyond the first, 2 unless given.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10))]
    pub attempts: Option<i64>,
    /// Retries as a share of all requests, in percent, beyond which there are none; 20 unless given.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub budget_percent: Option<i64>,
}

/// How long each phase of a request may take.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Timeouts {
    /// Until a connection to the endpoint stands, `5s` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<Duration>,
    /// From the end of the request to the first byte of the answer. Absent or `0s` waits as long as the client does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Duration>,
    /// Between two parts of a streamed answer, `5m` unless given; `0s` waits as long as the client does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Duration>,
}

/// When an endpoint is taken out because requests to it fail.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OutlierDetection {
    /// Failures in a row (no connection, timeout, 500, 502, 504) that take an endpoint out, 5 unless given; 0 never
    /// does.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub consecutive_failures: Option<i64>,
    /// How long the first time, `10s` unless given. Each further time in a row takes longer, up to ten times that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ejection_time: Option<Duration>,
    /// Share of a service's endpoints that may be out at once, in percent; 50 unless given.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub max_ejected_percent: Option<i64>,
}

/// Requests the gateway sends to find out whether an endpoint serves.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheck {
    /// Path below the endpoint's own prefix, e.g. `/health`. Any answer below 500 is a healthy one.
    #[schemars(regex(pattern = "^/"), length(max = 1024))]
    pub path: String,
    /// Time between two requests, `10s` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
}
