//! `ModelEndpoint`: one place that serves a model, inside or outside the fleet.

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
