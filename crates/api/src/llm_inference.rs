//! `LLMInference`: a minimal API of its own, a model name and a number of accelerators (spec llm-inference).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::Condition;
use crate::kind::kind;
use crate::wire;

kind! {
    /// Serves a model on one cluster with the vLLM Production Stack.
    LLMInference { spec: LLMInferenceSpec, status: LLMInferenceStatus } = LLM_INFERENCE
}

/// The model, how many accelerators it gets, and where it runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LLMInferenceSpec {
    /// Hugging Face model id, e.g. `Qwen/Qwen2.5-1.5B-Instruct`.
    pub model: String,
    /// Number of accelerators. Processors (2 each), memory (8Gi each) and tensor parallelism follow from it.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 1))]
    pub gpu: Option<i64>,
    /// Host name of an Ingress for the model, e.g. `qwen.example.com`. Absent means no Ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_host: Option<String>,
    /// Provider configuration of provider-kubernetes that reaches the cluster to deploy on.
    pub provider_config_name: String,
    /// Namespace on that cluster. Absent means the namespace of this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_namespace: Option<String>,
}

impl LLMInferenceSpec {
    /// Number of accelerators, 1 unless given.
    pub fn gpu(&self) -> i64 {
        self.gpu.unwrap_or(1)
    }
}

/// What is reported: conditions only.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct LLMInferenceStatus {
    /// Conditions.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub conditions: Vec<Condition>,
}
