//! What a cluster does next, as a pure function of its objects, its settings and the ages of its pods.
//!
//! Each pass looks at everything and asks for what is missing; carried out, it asks for nothing more. So a change made
//! by anybody else, a lost write or a restart needs no care of its own.

mod network;
mod nodes;
mod placement;
mod workloads;

use std::collections::HashMap;
use std::time::Duration;

use modelplane_cel::device::Selector;
use serde_json::{Map, Value, json};

use crate::settings::Settings;
use crate::world::{World, name, namespace};

pub use self::network::serving_pods;

/// A change to one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Creates an object.
    Create(Value),
    /// Merges into an object.
    Patch(Place, Value),
    /// Merges into an object's status.
    Status(Place, Value),
    /// Deletes an object at once.
    Delete(Place),
}

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `group/version`, or `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// What to do now, and when to look again at the latest.
#[derive(Debug, Default)]
pub struct Plan {
    /// Changes, in the order in which to make them.
    pub actions: Vec<Action>,
    /// When something is due that no change will announce.
    pub wake_after: Option<Duration>,
}

/// Time since each pod was first seen scheduled, by its unique id.
pub type Ages = HashMap<String, Duration>;

/// Decides; keeps nothing but compiled selectors.
#[derive(Debug, Default)]
pub struct Planner {
    selectors: HashMap<String, Option<Selector>>,
}

impl Planner {
    /// What to do next.
    pub fn plan(&mut self, world: &World, settings: &Settings, address: &str, ages: &Ages) -> Plan {
        let mut plan = Plan::default();
        nodes::plan(world, settings, &mut plan);
        workloads::pods(world, &mut plan);
        placement::plan(self, world, &mut plan);
        workloads::statuses(world, settings, ages, &mut plan);
        network::plan(world, settings, address, &mut plan);
        plan
    }

    /// The compiled form of a selector; none if it does not compile.
    fn selector(&mut self, text: &str) -> Option<&Selector> {
        if !self.selectors.contains_key(text) {
            self.selectors.insert(text.to_owned(), Selector::compile(text).ok());
        }
        self.selectors.get(text)?.as_ref()
    }
}

impl Plan {
    /// Asks for a status unless the object has it already.
    fn status(&mut self, object: &Value, status: Value) {
        if !contains(&object["status"], &status) {
            self.actions.push(Action::Status(Place::of(object), json!({ "status": status })));
        }
    }

    /// Asks to be woken.
    fn wake(&mut self, after: Duration) {
        self.wake_after = Some(self.wake_after.map_or(after, |known| known.min(after)));
    }
}

impl Place {
    /// Where an object is.
    pub fn of(object: &Value) -> Self {
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            namespace: namespace(object).to_owned(),
            name: name(object).to_owned(),
        }
    }
}

/// Whether merging `part` into `whole` would change nothing. Whole numbers are equal whatever their form.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|known| contains(known, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        (Value::Number(whole), Value::Number(part)) => whole.as_f64() == part.as_f64(),
        _ => whole == part,
    }
}

/// Conditions without times, so that a pass that finds nothing new writes nothing.
fn conditions(list: &[(&str, bool, &str)]) -> Value {
    let one = |(condition_type, holds, reason): &(&str, bool, &str)| json!({"type": condition_type, "status": if *holds { "True" } else { "False" }, "reason": reason});
    list.iter().map(one).collect()
}

/// Conditions as the Gateway API wants them, with the generation they speak of and a time.
fn gateway_conditions(object: &Value, list: &[(&str, bool, &str)]) -> Value {
    let generation = object["metadata"]["generation"].clone();
    // The object's own birth: a time that is always there and never changes.
    let time = object["metadata"]["creationTimestamp"].clone();
    let mut conditions = conditions(list);
    for condition in conditions.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.insert("observedGeneration".to_owned(), generation.clone());
        condition.insert("lastTransitionTime".to_owned(), time.clone());
        condition.insert("message".to_owned(), json!("simulated"));
    }
    conditions
}

/// An owner reference that controls.
fn controlled_by(owner: &Value) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }])
}

/// Whether an object is controlled by another.
fn is_controlled_by(object: &Value, owner: &Value) -> bool {
    crate::world::list(object, "/metadata/ownerReferences")
        .iter()
        .any(|reference| reference["controller"] == true && reference["uid"] == owner["metadata"]["uid"])
}

/// The labels of a template with more.
fn with_labels(template: &Value, more: &[(&str, &str)]) -> Value {
    let mut labels = template["metadata"]["labels"].as_object().cloned().unwrap_or_else(Map::new);
    labels.extend(more.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
    Value::Object(labels)
}

#[cfg(test)]
mod tests;
