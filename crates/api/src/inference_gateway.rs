//! `InferenceGateway`: the one entry point of the fleet on the control plane.

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
    /// What implements the gateway. The block of the same name is required.
    pub backend: GatewayBackend,
    /// Settings of the Traefik backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traefik: Option<Traefik>,
}

/// What implements a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum GatewayBackend {
    /// Traefik, installed from its Helm chart.
    #[default]
    Traefik,
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
