//! The tree from composites to what is composed for them.

use modelplane_core::simulate::{ObjectKey, Simulation, StoredObject};
use serde_json::Value;

/// All composites nobody composed, each with everything below it.
pub(super) fn composites(simulation: &Simulation) -> String {
    let roots = simulation.world().iter().filter(|object| object.owner.is_none() && object.is_composite());
    let trees: Vec<String> = roots
        .map(|root| {
            let mut lines = vec![format!("{}  {}", root.key, state(root))];
            children(simulation, root, "", &mut lines);
            lines.join("\n")
        })
        .collect();
    if trees.is_empty() { "no composites among the manifests".to_owned() } else { trees.join("\n\n") }
}

fn children(simulation: &Simulation, parent: &StoredObject, indent: &str, lines: &mut Vec<String>) {
    let mut composed: Vec<_> = simulation.world().composed_by(&parent.key).collect();
    composed.sort_by(|(one, _), (other, _)| one.resource_key.cmp(&other.resource_key));
    let last = composed.len().saturating_sub(1);
    for (index, (owner, object)) in composed.into_iter().enumerate() {
        let (branch, below) = if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        // Of plain objects only those that are not ready say so: there are hundreds.
        let state = match state(object) {
            ready if ready == READY && !object.is_composite() => String::new(),
            state => format!("  {state}"),
        };
        lines.push(format!("{indent}{branch}{}: {}{state}", owner.resource_key, what(object)));
        children(simulation, object, &format!("{indent}{below}"), lines);
    }
}

/// The object, and for a provider-kubernetes Object the manifest it carries and where to.
fn what(object: &StoredObject) -> String {
    let manifest = &object.body["spec"]["forProvider"]["manifest"];
    let Some(kind) = manifest["kind"].as_str() else { return object.key.to_string() };
    let metadata = &manifest["metadata"];
    let name = match metadata["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{}", text(&metadata["name"])),
        None => text(&metadata["name"]).to_owned(),
    };
    format!("{kind} {name} on {}", text(&object.body["spec"]["providerConfigRef"]["name"]))
}

/// What is said of an object that is ready and has nothing to add.
const READY: &str = "ready";

/// Whether the object is ready, and what it complains about.
fn state(object: &StoredObject) -> String {
    let conditions = object.body["status"]["conditions"].as_array();
    let failing = conditions.into_iter().flatten().filter(|condition| {
        condition["status"] == "False" && condition["type"] != "Ready" && condition["reason"] != "Simulated"
    });
    let mut reasons: Vec<&str> = failing.filter_map(|condition| condition["reason"].as_str()).collect();
    reasons.dedup();
    match (object.is_ready(), reasons.is_empty()) {
        (true, true) => READY.to_owned(),
        (true, false) => format!("ready, but {}", reasons.join(", ")),
        (false, true) => "not ready".to_owned(),
        (false, false) => format!("not ready ({})", reasons.join(", ")),
    }
}

/// Objects no composition takes care of, and inputs assumed to exist.
pub(super) fn not_composed(simulation: &Simulation) -> Option<String> {
    let assumed = simulation.assumed();
    let others = simulation
        .world()
        .iter()
        .filter(|object| object.owner.is_none() && !object.is_composite() && !assumed.contains(&object.key));
    let mut lines: Vec<String> = others.map(|object| with_group(&object.key)).collect();
    if !lines.is_empty() {
        lines.insert(0, "NOT COMPOSED (kept as they are)".to_owned());
    }
    if !assumed.is_empty() {
        lines.push("ASSUMED TO EXIST (not among the manifests)".to_owned());
        lines.extend(assumed.iter().map(with_group));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The object with its group: several groups have kinds of the same name.
fn with_group(key: &ObjectKey) -> String {
    match key.group.as_str() {
        "" => format!("  {key}"),
        group => format!("  {key} ({group})"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}
