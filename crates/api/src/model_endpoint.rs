//! `ModelEndpoint`: one place that serves a model, inside or outside the fleet.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::Condition;
use crate::kind::kind;
use crate::schema::bare_conditions;
use crate::wire;

kind! {
    /// One place that serves a model: a replica of the fleet or an external provider.
    ModelEndpoint { spec: ModelEndpointSpec, status: ModelEndpointStatus } = MODEL_ENDPOINT
}

/// Where requests go.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelEndpointSpec {
    /// Base URL of an OpenAI-compatible API, e.g. `https://api.together.xyz/v1`. Host and port are used.
    #[schemars(length(min = 1))]
    pub url: String,
    /// Path that replaces the service's own path prefix in requests sent here, e.g. `/v1/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite_path: Option<String>,
    /// Credentials with which the gateway calls the endpoint, in place of the caller's. This and the fields below are
    /// honoured by a gateway whose backend is `Modelplane`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<EndpointAuth>,
    /// How a connection to an `https` endpoint is secured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<EndpointTls>,
    /// Host header to send, that of `url` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub host: Option<String>,
    /// Name of the model at the endpoint, put in place of the one the caller gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub model: Option<String>,
    /// Changes to the headers of requests sent here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<EndpointHeaders>,
}

/// Credentials for an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointAuth {
    /// Secret with the credential, in the namespace of the endpoint.
    pub secret_ref: SecretKeyRef,
    /// Header the credential is sent in, `Authorization` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub header: Option<String>,
    /// Text before the credential, `Bearer ` for the header `Authorization` and nothing for others unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub prefix: Option<String>,
}

/// An entry of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Key of the entry.
    #[schemars(length(min = 1))]
    pub key: String,
}

/// How a connection to an endpoint is secured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointTls {
    /// Name that the endpoint's certificate must carry, also sent as SNI; the host of `url` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub server_name: Option<String>,
    /// PEM certificates of the authorities to trust, in place of the public ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<SecretKeyRef>,
    /// Secret of type `kubernetes.io/tls` with the certificate and key to present.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub client_certificate_secret: Option<String>,
}

/// Changes to the headers of a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointHeaders {
    /// Headers to set, replacing those of the caller.
    #[serde(deserialize_with = "wire::nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Headers of the caller to leave out.
    #[serde(deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub remove: Vec<String>,
}

/// What is reported about an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ModelEndpointStatus {
    /// Conditions of the endpoint.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = bare_conditions)]
    pub conditions: Vec<Condition>,
    /// How services reach the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<EndpointRouting>,
}

impl ModelEndpointStatus {
    /// Name of the backing Service, empty until services may route to it.
    pub fn backend_name(&self) -> &str {
        self.routing.as_ref().and_then(|routing| routing.backend_name.as_deref()).unwrap_or_default()
    }
}

/// How services reach an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointRouting {
    /// Name of the Service that stands for the endpoint in routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_name: Option<String>,
}
