//! `ModelService`: one stable URL for a model, in front of weighted endpoints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::{Condition, LabelSelector};
use crate::kind::kind;
use crate::schema::{bare_conditions, required_match_labels};
use crate::traffic::Traffic;
use crate::wire;

kind! {
    /// Gives a model one URL on the fleet's gateway and spreads its traffic over endpoints.
    ModelService { spec: ModelServiceSpec, status: ModelServiceStatus } = MODEL_SERVICE
}

/// Which endpoints share the traffic, and in what proportion.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ModelServiceSpec {
    /// Groups of endpoints. An endpoint that several entries select belongs to the first.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1))]
    pub endpoints: Vec<ServiceEndpoints>,
    /// How requests are spread, retried and moved on when endpoints are full. Honoured by a gateway whose backend is
    /// `Modelplane`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

/// A group of endpoints with its share of the traffic.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ServiceEndpoints {
    /// ModelEndpoints of the group, by label. The endpoints of a deployment carry the labels of its template
    /// and `modelplane.ai/deployment`.
    #[schemars(transform = required_match_labels)]
    pub selector: LabelSelector,
    /// Share of the traffic relative to the other entries, divided evenly over the endpoints of the group.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000000), extend("default" = 1))]
    pub weight: Option<i64>,
    /// Rank of the group, 0 unless given. Traffic stays on the lowest tier that has room; weights count within a tier.
    /// Honoured by a gateway whose backend is `Modelplane`; others route by weight over all tiers.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 15))]
    pub tier: Option<i64>,
}

impl ServiceEndpoints {
    /// Share of the traffic, 1 unless given.
    pub fn weight(&self) -> i64 {
        self.weight.unwrap_or(1)
    }

    /// Rank of the group, 0 unless given.
    pub fn tier(&self) -> i64 {
        self.tier.unwrap_or(0)
    }
}

/// What is reported about a service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ModelServiceStatus {
    /// Conditions of the service.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = bare_conditions)]
    pub conditions: Vec<Condition>,
    /// URL of the model for OpenAI clients, without the trailing `/v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}
