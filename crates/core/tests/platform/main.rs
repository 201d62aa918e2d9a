//! The platform's own compositions: serving stack, usages step, gateway, LLMInference.

#[path = "../support/mod.rs"]
mod support;

mod inference_gateway;
mod llm_inference;
mod serving_stack;
mod usages;

use serde_json::{Value, json};

/// An observed resource with one condition.
fn with_condition(condition_type: &str) -> Value {
    json!({"resource": {"status": {"conditions": [{"type": condition_type, "status": "True"}]}}})
}

/// An observed resource about which nothing is known but that it exists.
fn bare() -> Value {
    json!({"resource": {}})
}
