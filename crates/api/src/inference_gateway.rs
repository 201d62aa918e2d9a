//! `InferenceGateway`: the one entry point of the fleet on the control plane.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::Condition;
use crate::kind::kind;
use crate::schema::rules;
use crate::wire;

kind! {
    /// The gateway through which clients reach every model of the fleet.
    InferenceGateway { spec: InferenceGatewaySpec, status: InferenceGatewayStatus } = INFERENCE_GATEWAY
}

/// What implements the gateway.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::GATEWAY))]
pub struct InferenceGatewaySpec {
    /// What implements the gateway. `Traefik` needs the block of that name, `Modelplane` none.
    pub backend: GatewayBackend,
    /// Settings of the Traefik backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traefik: Option<Traefik>,
    /// Settings of the Modelplane backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modelplane: Option<ModelplaneGateway>,
}

/// What implements a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum GatewayBackend {
    /// Traefik, installed from its Helm chart.
    #[default]
    Traefik,
    /// Modelplane's own data plane: caller keys, TLS, metering, failover and overflow.
    Modelplane,
}

/// An installation of Modelplane's own data plane.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelplaneGateway {
    /// Container image of the data plane, that of this release unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub image: Option<String>,
    /// Processes to run, 2 unless given.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: Option<i64>,
    /// Annotations of the Service, e.g. for a cloud's load balancer.
    #[serde(deserialize_with = "wire::nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub service_annotations: BTreeMap<String, String>,
    /// Serves HTTPS as well. Absent serves plain HTTP only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<GatewayTls>,
    /// Who may call. Absent lets everybody call every service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callers: Option<Callers>,
}

impl ModelplaneGateway {
    /// Processes to run, 2 unless given.
    pub fn replicas(&self) -> i64 {
        self.replicas.unwrap_or(2)
    }
}

/// How clients reach the gateway over HTTPS.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayTls {
    /// Host name that published addresses carry. Absent publishes the gateway's own address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub hostname: Option<String>,
    /// Secrets of type `kubernetes.io/tls` in the namespace `modelplane-system`. The one whose certificate carries the
    /// name a client asks for is presented, else the first.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 16))]
    pub certificate_secrets: Vec<String>,
}

/// Who may call the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Callers {
    /// Whether a request needs a key. Keys are Secrets labelled `modelplane.ai/caller-key: "true"`.
    #[serde(rename = "requireKey")]
    pub require_key: bool,
}

/// A Traefik installation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::TRAEFIK))]
pub struct Traefik {
    /// Version of the Traefik Helm chart.
    pub version: String,
    /// Load balancer to install for the gateway's address. Absent relies on the one the cluster has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    /// Settings of MetalLB. Required when `loadBalancer` is `MetalLB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metallb: Option<MetalLb>,
}

/// A load balancer that can be installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum LoadBalancer {
    /// MetalLB in layer 2 mode, for clusters without a cloud load balancer.
    #[default]
    #[serde(rename = "MetalLB")]
    MetalLb,
}

/// Settings of MetalLB.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetalLb {
    /// Range of addresses to hand out, e.g. `172.18.255.200-172.18.255.250`.
    pub address_pool: String,
}

/// What is reported about a gateway.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct InferenceGatewayStatus {
    /// Conditions of the gateway.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub conditions: Vec<Condition>,
    /// IP address or host name that clients connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}
