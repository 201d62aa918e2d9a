//! Status conditions: set in place, with the time of their last change.

use jiff::Timestamp;
use modelplane_core::contract::{Condition, ConditionStatus};
use serde_json::{Value, json};

/// A condition to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCondition<'a> {
    /// Type.
    pub condition_type: &'a str,
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// Reason.
    pub reason: &'a str,
    /// Message, if there is one.
    pub message: Option<&'a str>,
}

/// The conditions of a status.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditions {
    list: Vec<Value>,
    generation: Option<i64>,
    now: String,
}

impl<'a> NewCondition<'a> {
    /// A condition without a message.
    pub fn new(condition_type: &'a str, holds: bool, reason: &'a str) -> Self {
        let status = if holds { "True" } else { "False" };
        Self { condition_type, status, reason, message: None }
    }

    /// `Synced`, after success.
    pub fn synced() -> Self {
        Self::new("Synced", true, "ReconcileSuccess")
    }

    /// `Synced`, after a failure.
    pub fn not_synced(reason: &'a str, message: &'a str) -> Self {
        Self { message: Some(message), ..Self::new("Synced", false, reason) }
    }

    /// The same with a message.
    #[must_use]
    pub fn because(self, message: &'a str) -> Self {
        Self { message: Some(message), ..self }
    }
}

impl<'a> From<&'a Condition> for NewCondition<'a> {
    fn from(condition: &'a Condition) -> Self {
        let status = match condition.status {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        };
        Self {
            condition_type: &condition.condition_type,
            status,
            reason: &condition.reason,
            message: condition.message.as_deref(),
        }
    }
}

impl Conditions {
    /// The conditions of an object, to be set for its generation at a time.
    pub fn of(object: &Value, now: Timestamp) -> Self {
        let list = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let generation = object["metadata"]["generation"].as_i64();
        // Kubernetes' times have whole seconds.
        let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        Self { list, generation, now }
    }

    /// Sets a condition; its time changes with its status only.
    pub fn set(&mut self, new: &NewCondition<'_>) {
        let known = self.list.iter_mut().find(|known| known["type"] == new.condition_type);
        let since = match &known {
            Some(known) if known["status"] == new.status => known["lastTransitionTime"].as_str(),
            _ => None,
        };
        let mut condition = json!({
            "type": new.condition_type,
            "status": new.status,
            "reason": new.reason,
            "lastTransitionTime": since.unwrap_or(&self.now),
        });
        if let Some(message) = new.message.filter(|message| !message.is_empty()) {
            condition["message"] = json!(message);
        }
        if let Some(generation) = self.generation {
            condition["observedGeneration"] = json!(generation);
        }
        match known {
            Some(known) => *known = condition,
            None => self.list.push(condition),
        }
    }

    /// Types that are set.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.list.iter().filter_map(|condition| condition["type"].as_str())
    }

    /// As the status has them.
    pub fn into_value(self) -> Value {
        Value::Array(self.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conditions_time_is_that_of_its_last_change() {
        let object = json!({
            "metadata": {"generation": 3},
            "status": {"conditions": [
                {"type": "Ready", "status": "False", "reason": "Creating", "lastTransitionTime": "2000-01-01T00:00:00Z"},
            ]},
        });
        let now = Timestamp::from_second(1_000_000_000).unwrap();
        let mut conditions = Conditions::of(&object, now);
        conditions.set(&NewCondition::new("Ready", false, "Other").because("why"));
        conditions.set(&NewCondition::synced());
        conditions.set(&NewCondition::not_synced("ReconcileError", "what"));
        let expected = json!([
            {
                "type": "Ready", "status": "False", "reason": "Other", "message": "why",
                "lastTransitionTime": "2000-01-01T00:00:00Z", "observedGeneration": 3,
            },
            {
                "type": "Synced", "status": "False", "reason": "ReconcileError", "message": "what",
                "lastTransitionTime": "2001-09-09T01:46:40Z", "observedGeneration": 3,
            },
        ]);
        assert_eq!(conditions.into_value(), expected);
    }
}
