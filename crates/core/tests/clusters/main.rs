//! The clusters of the fleet: InferenceCluster and the clouds' own kinds.

#[path = "../support/mod.rs"]
mod support;

mod eks;
mod gke;
mod inference_cluster;
mod recorded;
mod teardown;

use modelplane_core::compose::composition;
use modelplane_core::contract::{ComposeError, Condition, Desired, Severity};
use serde_json::{Map, Value, json};
use support::Request;

/// A request in the making.
#[derive(Debug, Clone)]
struct Case {
    composite: Value,
    resources: Map<String, Value>,
    required: Map<String, Value>,
}

impl Case {
    fn new(composite: Value) -> Self {
        Self { composite, resources: Map::new(), required: Map::new() }
    }

    /// The same with an observed resource.
    fn observing(mut self, key: &str, resource: Value) -> Self {
        self.resources.insert(key.to_owned(), json!({"resource": resource}));
        self
    }

    /// The same with what a requirement found.
    fn finding(mut self, key: &str, items: &[Value]) -> Self {
        let items: Vec<Value> = items.iter().map(|item| json!({"resource": item})).collect();
        self.required.insert(key.to_owned(), json!({"items": items}));
        self
    }

    fn request(&self) -> Request {
        Request::from_json(&json!({
            "observed": {"composite": {"resource": self.composite}, "resources": self.resources},
            "requiredResources": self.required,
        }))
    }

    /// Composes and looks at the answer.
    fn check<T>(&self, look: impl FnOnce(Desired<'_>) -> T) -> T {
        self.answer(|answer| look(answer.expect("an answer")))
    }

    /// Composes and looks at the answer or the error.
    fn answer<T>(&self, look: impl FnOnce(Result<Desired<'_>, ComposeError>) -> T) -> T {
        let text = |field: &str| self.composite[field].as_str().expect("an identity").to_owned();
        let compose = composition(&text("apiVersion"), &text("kind")).expect("a kind that is composed");
        let request = self.request();
        look(compose(&request.observed()))
    }
}

/// An object with the condition `Ready`.
fn ready(mut object: Value) -> Value {
    object["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    object
}

fn condition<'d>(desired: &'d Desired<'_>, type_: &str) -> &'d Condition {
    let mut found = desired.conditions.iter().filter(|condition| condition.condition_type == type_);
    let condition = found.next().unwrap_or_else(|| panic!("no condition {type_}"));
    assert_eq!(found.next(), None, "{type_} is said twice");
    condition
}

fn message<'d>(desired: &'d Desired<'_>, type_: &str) -> &'d str {
    condition(desired, type_).message.as_deref().unwrap_or_default()
}

fn warnings(desired: &Desired<'_>) -> Vec<String> {
    let warnings = desired.events.iter().filter(|event| event.severity == Severity::Warning);
    warnings.map(|event| event.message.clone()).collect()
}

fn status(desired: &Desired<'_>) -> Value {
    desired.status.as_ref().map_or(Value::Null, |status| status.document().to_json().expect("a status"))
}
