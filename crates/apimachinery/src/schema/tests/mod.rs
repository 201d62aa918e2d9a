//! Against the recorded answers of a real API server, and all definitions of this project.

mod objects;
mod project;
mod published;
mod ratcheting;
mod schemas;

use serde_json::Value;

use super::{Cause, FieldPath};

/// Causes as `reason field: message`, sorted.
fn shown(causes: &[Cause]) -> Vec<String> {
    let mut shown: Vec<String> =
        causes.iter().map(|cause| format!("{} {cause}", cause.reason.as_str())).collect();
    shown.sort();
    shown
}

/// Recorded causes in the same form.
fn recorded(case: &Value) -> Vec<String> {
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
    let causes = case["causes"].as_array().into_iter().flatten();
    let mut shown: Vec<String> = causes
        .map(|cause| {
            format!("{} {}: {}", text(cause, "reason"), text(cause, "field"), text(cause, "message"))
        })
        .collect();
    shown.sort();
    shown
}

fn paths(dropped: &[FieldPath]) -> Vec<&str> {
    dropped.iter().map(FieldPath::as_str).collect()
}

fn data(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
