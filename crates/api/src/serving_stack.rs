//! `ServingStack`: everything a cluster needs to serve models. Written by the InferenceCluster composition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::{ClusterSecret, Condition};
use crate::kind::kind;
use crate::schema::rules;
use crate::wire;

kind! {
    /// Installs on one cluster what serving models needs: gateway, device driver, gang scheduling, metrics.
    ServingStack { spec: ServingStackSpec, status: ServingStackStatus } = SERVING_STACK
}

/// How the cluster is reached, and what is installed on it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::SERVING_STACK))]
pub struct ServingStackSpec {
    /// Secrets that give access to the cluster: one kubeconfig and, if it needs one, a cloud identity.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 8))]
    pub secrets: Vec<ClusterSecret>,
    /// The cluster's gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<StackGateway>,
    /// Where the NVIDIA driver is installed on the nodes, `/` on most systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512), extend("default" = "/"))]
    pub nvidia_driver_root: Option<String>,
    /// Versions of what is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<StackVersions>,
}

impl ServingStackSpec {
    /// Where the NVIDIA driver is installed, `/` unless given.
    pub fn nvidia_driver_root(&self) -> &str {
        self.nvidia_driver_root.as_deref().unwrap_or("/")
    }
}

/// The gateway of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StackGateway {
    /// Name of the GatewayClass.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), extend("default" = "envoy"))]
    pub class_name: Option<String>,
    /// Ports the gateway listens on.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub listeners: Vec<Listener>,
}

impl StackGateway {
    /// Name of the GatewayClass, `envoy` unless given.
    pub fn class_name(&self) -> &str {
        self.class_name.as_deref().unwrap_or("envoy")
    }
}

/// A port a gateway listens on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Listener {
    /// Name of the listener, unique in the gateway.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Port number.
    #[serde(deserialize_with = "wire::int")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i64,
    /// Protocol spoken on the port.
    pub protocol: ListenerProtocol,
}

/// Protocol spoken on a gateway's port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ListenerProtocol {
    /// HTTP.
    #[default]
    #[serde(rename = "HTTP")]
    Http,
    /// TCP.
    #[serde(rename = "TCP")]
    Tcp,
}

/// Versions of what is installed. Each has a default of its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StackVersions {
    /// Version of the cert-manager Helm chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), extend("default" = "v1.17.1"))]
    pub cert_manager: Option<String>,
    /// Version of the Envoy Gateway Helm chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), extend("default" = "v1.8.1"))]
    pub envoy_gateway: Option<String>,
    /// Version of the Gateway API definitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), extend("default" = "v1.5.1"))]
    pub gateway_api: Option<String>,
    /// Version of the LeaderWorkerSet Helm chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), extend("default" = "v0.8.0"))]
    pub leader_worker_set: Option<String>,
    /// Version of the Node Feature Discovery Helm chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), extend("default" = "0.18.3"))]
    pub node_feature_discovery: Option<String>,
    /// Version of the NVIDIA DRA driver Helm chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), extend("default" = "0.4.0"))]
    pub nvidia_dra_driver: Option<String>,
    /// Version of the kube-prometheus-stack Helm chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), extend("default" = "72.6.2"))]
    pub prometheus: Option<String>,
}

impl StackVersions {
    /// Version of the cert-manager Helm chart, `v1.17.1` unless given.
    pub fn cert_manager(&self) -> &str {
        self.cert_manager.as_deref().unwrap_or("v1.17.1")
    }

    /// Version of the Envoy Gateway Helm chart, `v1.8.1` unless given.
    pub fn envoy_gateway(&self) -> &str {
        self.envoy_gateway.as_deref().unwrap_or("v1.8.1")
    }

    /// Version of the Gateway API definitions, `v1.5.1` unless given.
    pub fn gateway_api(&self) -> &str {
        self.gateway_api.as_deref().unwrap_or("v1.5.1")
    }

    /// Version of the LeaderWorkerSet Helm chart, `v0.8.0` unless given.
    pub fn leader_worker_set(&self) -> &str {
        self.leader_worker_set.as_deref().unwrap_or("v0.8.0")
    }

    /// Version of the Node Feature Discovery Helm chart, `0.18.3` unless given.
    pub fn node_feature_discovery(&self) -> &str {
        self.node_feature_discovery.as_deref().unwrap_or("0.18.3")
    }

    /// Version of the NVIDIA DRA driver Helm chart, `0.4.0` unless given.
    pub fn nvidia_dra_driver(&self) -> &str {
        self.nvidia_dra_driver.as_deref().unwrap_or("0.4.0")
    }

    /// Version of the kube-prometheus-stack Helm chart, `72.6.2` unless given.
    pub fn prometheus(&self) -> &str {
        self.prometheus.as_deref().unwrap_or("72.6.2")
    }
}

/// What is reported about a serving stack.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ServingStackStatus {
    /// Conditions of the stack.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub conditions: Vec<Condition>,
    /// The cluster's gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<StackGatewayStatus>,
}

impl ServingStackStatus {
    /// Address of the gateway, empty until it is known.
    pub fn gateway_address(&self) -> &str {
        self.gateway.as_ref().and_then(|gateway| gateway.address.as_deref()).unwrap_or_default()
    }
}

/// The gateway of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct StackGatewayStatus {
    /// IP address or host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub address: Option<String>,
}
