//! The status a reconcile writes: what the pipeline says, and the conditions.

use std::collections::BTreeSet;

use jiff::Timestamp;
use modelplane_core::contract::Condition;
use serde_json::{Value, json};

use super::CompositeController;
use super::apply::{Outcome, identity};
use super::pipeline::Answer;
use super::render::COMPOSITE_MANAGER;
use crate::client::{Target, Write};
use crate::conditions::{Conditions, NewCondition};
use crate::controller::{ReconcileError, Trying};
use crate::object::Stored;

/// Conditions that are the engine's own; a pipeline cannot set them.
const SYSTEM: [&str; 4] = ["Ready", "Synced", "Responsive", "Healthy"];
/// How many names a message lists.
const LISTED: usize = 3;

/// The status after a successful pipeline.
pub(super) fn composed(composite: &Value, answer: &Answer, outcome: &Outcome, now: Timestamp) -> Value {
    let mut conditions = Conditions::of(composite, now);
    conditions.set(&NewCondition::new("Responsive", true, "WatchCircuitClosed"));
    set_all(&mut conditions, &answer.conditions);
    let unsynced = some_of("Unsynced resources: ", outcome.failed.keys());
    conditions.set(&match outcome.failed.is_empty() {
        true => NewCondition::synced(),
        false => NewCondition::not_synced("ReconcileError", &unsynced),
    });
    let unready = answer.resources.iter().filter(|(_, wanted)| !wanted.ready);
    let unready = some_of("Unready resources: ", unready.map(|(key, _)| key));
    conditions.set(&match answer.is_ready() {
        true => NewCondition::new("Ready", true, "Available"),
        false => NewCondition::new("Ready", false, "Creating").because(&unready),
    });
    with_conditions(composite, answer.status.clone(), conditions)
}

/// The status after a pipeline that failed: what it says of itself is not known any more.
pub(super) fn failed(composite: &Value, message: &str, now: Timestamp) -> Value {
    let mut conditions = Conditions::of(composite, now);
    let own: Vec<String> =
        conditions.types().filter(|known| !SYSTEM.contains(known)).map(str::to_owned).collect();
    for condition_type in own {
        conditions.set(&NewCondition {
            condition_type: &condition_type,
            status: "Unknown",
            reason: "FatalError",
            message: Some("the composition failed before it could tell"),
        });
    }
    conditions.set(&NewCondition::not_synced("ReconcileError", message));
    with_conditions(composite, None, conditions)
}

/// The status with just some conditions set.
pub(super) fn marked(composite: &Value, set: &[NewCondition<'_>], now: Timestamp) -> Value {
    let mut conditions = Conditions::of(composite, now);
    set.iter().for_each(|condition| conditions.set(condition));
    with_conditions(composite, None, conditions)
}

fn set_all(conditions: &mut Conditions, list: &[Condition]) {
    for condition in list.iter().filter(|condition| !SYSTEM.contains(&condition.condition_type.as_ref())) {
        conditions.set(&NewCondition::from(condition));
    }
}

fn with_conditions(composite: &Value, status: Option<Value>, conditions: Conditions) -> Value {
    let mut status = match status {
        Some(Value::Object(fields)) => fields,
        _ => composite["status"].as_object().cloned().unwrap_or_default(),
    };
    status.insert("conditions".to_owned(), conditions.into_value());
    Value::Object(status)
}

/// The first few names, and how many more there are.
fn some_of<'n>(intro: &str, names: impl Iterator<Item = &'n String>) -> String {
    let names: BTreeSet<&str> = names.map(String::as_str).collect();
    if names.is_empty() {
        return String::new();
    }
    let first: Vec<&str> = names.iter().copied().take(LISTED).collect();
    match names.len() - first.len() {
        0 => format!("{intro}{}", first.join(", ")),
        more => format!("{intro}{}, and {more} more", first.join(", ")),
    }
}

impl CompositeController {
    /// Writes a status unless it is there already.
    pub(super) async fn write_status(&self, composite: &Stored, status: Value) -> Result<(), ReconcileError> {
        let live = self.caches.get(&composite.key);
        let live = live.as_deref().unwrap_or(composite);
        let current = live.document().get(&["status"]).and_then(|status| status.to_json().ok());
        if current.is_some_and(|current| current == status) {
            return Ok(());
        }
        let body = json!({
            "apiVersion": composite.api_version(),
            "kind": composite.key.kind,
            "metadata": identity(composite, &json!({})),
            "status": status,
        });
        let api = self.caches.api();
        let resource =
            api.resource(composite.api_version(), &composite.key.kind).await.trying("cannot update")?;
        let target = Target::of(&composite.key).status();
        match api.write(&resource, &target, Write::Apply(COMPOSITE_MANAGER), &body).await {
            Ok(written) => {
                self.caches.put(written);
                Ok(())
            }
            Err(error) if error.is_not_found() => Ok(()),
            Err(source) => Err(ReconcileError::Request { action: "cannot write the status", source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_lists_a_few_names_in_order() {
        let names: Vec<String> = ["d", "a", "c", "b", "e"].map(str::to_owned).into();
        assert_eq!(some_of("x: ", names[..2].iter()), "x: a, d");
        assert_eq!(some_of("x: ", names.iter()), "x: a, b, c, and 2 more");
        assert_eq!(some_of("x: ", names[..0].iter()), "");
    }

    #[test]
    fn a_failure_leaves_readiness_and_makes_the_rest_unknown() {
        let composite = json!({"status": {"address": "1.2.3.4", "conditions": [
            {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "t"},
            {"type": "Own", "status": "True", "reason": "Fine", "lastTransitionTime": "t"},
        ]}});
        let status = failed(&composite, "why", Timestamp::UNIX_EPOCH);
        let seen: Vec<(&str, &str, &str)> = status["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| {
                (c["type"].as_str().unwrap(), c["status"].as_str().unwrap(), c["reason"].as_str().unwrap())
            })
            .collect();
        let expected = [
            ("Ready", "True", "Available"),
            ("Own", "Unknown", "FatalError"),
            ("Synced", "False", "ReconcileError"),
        ];
        assert_eq!(seen, expected);
        assert_eq!(status["address"], "1.2.3.4");
    }

    #[test]
    fn a_pipeline_cannot_set_the_engines_conditions() {
        let condition = Condition::is_true("Ready", "Mine");
        let answer = Answer {
            conditions: vec![condition],
            ready: modelplane_core::contract::Ready::False,
            ..Answer::default()
        };
        let status = composed(&json!({}), &answer, &Outcome::default(), Timestamp::UNIX_EPOCH);
        let ready = status["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Ready").unwrap();
        assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("Creating")));
    }
}
