//! What can be said of any object: whether it is ready, what it waits for, who composed it.

use modelplane_core::simulate::{ObjectKey, StoredObject, World};

use super::{Explanation, Section};
use crate::view::{count, failing_condition};

/// How deep the chain of what waits for what is followed.
const MAX_DEPTH: usize = 8;
/// How many objects that are waited for are shown.
const MAX_SHOWN: usize = 12;

/// Explains an object of a kind about which nothing more is known.
pub(super) fn explain(world: &World, object: &StoredObject) -> Explanation {
    let composed = world.composed_by(&object.key).count();
    let answer = match object.is_ready() {
        true if composed > 0 => format!("ready, with {}", count(composed, "composed object")),
        true => "ready".to_owned(),
        false => not_ready(world, object),
    };
    Explanation::of(object, answer).with(waits_for(world, object)).with(composed_by(world, object))
}

/// `not ready`, and the reason closest to its root.
pub(super) fn not_ready(world: &World, object: &StoredObject) -> String {
    let own = failing_condition(object).filter(|condition| !condition.message.is_empty());
    match (own, blockers(world, object).first()) {
        (Some(condition), _) => format!("not ready: {}", condition.message),
        (None, Some((_, root))) => format!("not ready: it waits for {}", describe(root)),
        (None, None) => match failing_condition(object) {
            Some(condition) if condition.about != "Ready" => {
                format!("not ready: {} is {}", condition.about, condition.status) + &suffix(&condition.reason)
            }
            _ => "not ready".to_owned(),
        },
    }
}

fn suffix(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" ({reason})") }
}

/// The chain of composed objects that are not ready.
pub(super) fn waits_for(world: &World, object: &StoredObject) -> Section {
    let found = if object.is_ready() { Vec::new() } else { tree(world, object) };
    let mut lines: Vec<String> = found
        .iter()
        .take(MAX_SHOWN)
        .map(|(depth, object)| format!("{}{}", "  ".repeat(*depth), describe(object)))
        .collect();
    if found.len() > MAX_SHOWN {
        lines.push(format!("and {} more", found.len() - MAX_SHOWN));
    }
    Section::new("WAITS FOR", lines)
}

/// Objects below `object` that are not ready, parents first, each with its depth.
fn tree<'w>(world: &'w World, object: &StoredObject) -> Vec<(usize, &'w StoredObject)> {
    let mut found = Vec::new();
    let mut open: Vec<(usize, &ObjectKey)> = vec![(0, &object.key)];
    let mut first = true;
    while let Some((depth, key)) = open.pop() {
        if !first && let Some(object) = world.get(key) {
            found.push((depth - 1, object));
        }
        first = false;
        if depth < MAX_DEPTH {
            let children = world.composed_by(key).filter(|(_, child)| !child.is_ready());
            let start = open.len();
            open.extend(children.map(|(_, child)| (depth + 1, &child.key)));
            open[start..].reverse();
        }
    }
    found
}

/// The leaves of what is not ready below `object`: where the cause is.
pub(super) fn blockers<'w>(world: &'w World, object: &StoredObject) -> Vec<(usize, &'w StoredObject)> {
    let unready = tree(world, object);
    let is_leaf = |object: &StoredObject| world.composed_by(&object.key).all(|(_, child)| child.is_ready());
    unready.into_iter().filter(|(_, object)| is_leaf(object)).collect()
}

/// The object and why it is not ready, if it says so.
fn describe(object: &StoredObject) -> String {
    let manifest = &object.body["spec"]["forProvider"]["manifest"];
    let carries = match (manifest["kind"].as_str(), manifest["metadata"]["name"].as_str()) {
        (Some(kind), Some(name)) => format!(" (puts {kind} {name} on the cluster)"),
        _ => String::new(),
    };
    let condition = failing_condition(object);
    let why = match condition {
        Some(condition) if !condition.message.is_empty() => format!(": {}", condition.message),
        Some(condition) if condition.reason != "Simulated" && !condition.reason.is_empty() => {
            format!(": {}", condition.reason)
        }
        _ => String::new(),
    };
    format!("{}{carries}{why}", object.key)
}

/// Who composed the object.
pub(super) fn composed_by(world: &World, object: &StoredObject) -> Section {
    let mut lines = Vec::new();
    let mut current = object.owner.as_ref();
    while let Some(owner) = current.filter(|_| lines.len() < MAX_DEPTH) {
        lines.push(format!("{} as {}", owner.composite, owner.resource_key));
        current = world.get(&owner.composite).and_then(|object| object.owner.as_ref());
    }
    Section::new("COMPOSED BY", lines)
}
