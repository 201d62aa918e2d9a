//! What `modelplane render` makes of manifests, and how it differs from what a control plane holds.
//!
//! Whole objects are compared, metadata and status included; what may differ all the same is in [`MAY_DIFFER`], with
//! the reason. Crossplane derives the names it gives from unique ids, which `render` has none of, so names that both
//! give are recognised by the composite and the key they are composed under.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use modelplane_api::kind;
use modelplane_api::names::{COMPOSITE_LABEL, COMPOSITION_RESOURCE_NAME_ANNOTATION};
use modelplane_api::normalize::normalize;
use modelplane_core::simulate::{ObjectKey, Options, Simulation, composed_name};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Outcome, ensure};
use crate::kube_api::{list, name, text, uid};
use crate::manifests;
use crate::tools::modelplane;

/// Annotation with which the harness wakes a composite; see [`MAY_DIFFER`].
pub const WAKE_ANNOTATION: &str = "e2e.modelplane.ai/woken";

/// How far composites are nested, with room to spare.
const MAX_DEPTH: usize = 8;

/// A field in which an object may differ from what `render` prints.
struct Difference {
    /// Kind of the objects; empty for all.
    kind: &'static str,
    /// Field, as a JSON pointer in which `*` stands for any one step; everything below it is meant, too.
    field: &'static str,
    /// Why.
    #[expect(dead_code, reason = "for whoever reads the table")]
    reason: &'static str,
}

const fn any(field: &'static str, reason: &'static str) -> Difference {
    Difference { kind: "", field, reason }
}

const fn of(kind: &'static str, field: &'static str, reason: &'static str) -> Difference {
    Difference { kind, field, reason }
}

const BOOKKEEPING: &str = "an API server's bookkeeping";
const RESOLVED: &str = "Crossplane resolves a usage's selector and notes what it found";
const DEFAULTED: &str = "a default of the API server";
const ALLOCATED: &str = "given by the API server";

const MAY_DIFFER: &[Difference] = &[
    any("/metadata/uid", BOOKKEEPING),
    any("/metadata/resourceVersion", BOOKKEEPING),
    any("/metadata/generation", BOOKKEEPING),
    any("/metadata/creationTimestamp", BOOKKEEPING),
    any("/metadata/managedFields", BOOKKEEPING),
    any("/metadata/ownerReferences", "`render` knows owners without"),
    any("/metadata/generateName", "Crossplane's way to a name"),
    any("/metadata/finalizers", "they serve deletion, and `render` deletes nothing"),
    any("/metadata/annotations/e2e.modelplane.ai~1woken", "the harness wakes composites with it"),
    any("/metadata/labels/crossplane.io~1in-use", "Crossplane marks what a usage protects"),
    of("Usage", "/metadata/annotations/crossplane.io~1usage-details", RESOLVED),
    of("ClusterUsage", "/metadata/annotations/crossplane.io~1usage-details", RESOLVED),
    any("/spec/crossplane", "where Crossplane keeps its references"),
    any("/status/conditions/Responsive", "says that Crossplane's watches work; `render` has none"),
    of("Usage", "/spec/of/resourceRef", RESOLVED),
    of("Usage", "/spec/by/resourceRef", RESOLVED),
    of("ClusterUsage", "/spec/of/resourceRef", RESOLVED),
    of("ClusterUsage", "/spec/by/resourceRef", RESOLVED),
    of("CustomResourceDefinition", "/spec/conversion", DEFAULTED),
    of("CustomResourceDefinition", "/spec/names/singular", DEFAULTED),
    of("CustomResourceDefinition", "/spec/names/listKind", DEFAULTED),
    of(
        "Deployment",
        "/metadata/annotations/deployment.kubernetes.io~1revision",
        "the controller of Deployments counts them",
    ),
    of("Service", "/spec/clusterIP", ALLOCATED),
    of("Service", "/spec/clusterIPs", ALLOCATED),
    of("Service", "/spec/ports/*/nodePort", ALLOCATED),
];

/// What identifies an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty if it lives in none.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Objects by identity, under the names `render` gives.
pub type Objects = BTreeMap<Identity, Value>;

/// What `render` makes of the manifests of a folder.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The manifests.
    pub applied: Vec<Value>,
    /// What is not among the manifests and `render` takes for granted, such as a cloud's credentials.
    pub assumed: Vec<Value>,
    /// The objects of the manifests and all that is composed for them.
    pub expected: Objects,
    /// The status that a provider would report of each object ever composed, also of those that are not needed in the
    /// end, like the Job that stages a model.
    pub reported: Objects,
}

impl Identity {
    /// That of an object.
    pub fn of(object: &Value) -> Self {
        let of = |pointer: &str| text(object, pointer).to_owned();
        Self {
            api_version: of("/apiVersion"),
            kind: of("/kind"),
            namespace: of("/metadata/namespace"),
            name: of("/metadata/name"),
        }
    }

    /// Whether it is of one of our own kinds that something is composed for.
    pub fn is_composite(&self) -> bool {
        kind::find(&self.api_version, &self.kind).is_some()
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}/{}", self.api_version, self.kind, self.namespace, self.name)
    }
}

impl Rendered {
    /// Runs `modelplane render` over a folder.
    ///
    /// # Errors
    ///
    /// If it fails or does not come to rest.
    pub fn of(folder: &Path) -> Outcome<Self> {
        let command = Command::new(modelplane()?).args(["render", "-o", "json", "-f"]).arg(folder).output();
        let output = command.map_err(Failure::io("run modelplane render"))?;
        ensure(output.status.success(), || {
            format!("render of {}: {}", folder.display(), String::from_utf8_lossy(&output.stderr))
        })?;
        let wrong = |error| Failure::Wrong(format!("render of {}: {error}", folder.display()));
        let printed: Value = serde_json::from_slice(&output.stdout).map_err(wrong)?;
        let applied = manifests::read_folder(folder)?;
        let reported = reported(&applied)?;
        Ok(Self::from_printed(applied, list(&printed, "/items"), reported))
    }

    fn from_printed(applied: Vec<Value>, printed: &[Value], mut reported: Objects) -> Self {
        let given: Vec<Identity> = applied.iter().map(Identity::of).collect();
        let is_expected =
            |object: &&Value| resource_key(object).is_some() || given.contains(&Identity::of(object));
        let (expected, assumed): (Vec<&Value>, Vec<&Value>) = printed.iter().partition(is_expected);
        let expected: Objects =
            expected.into_iter().map(|object| (Identity::of(object), object.clone())).collect();
        // What is printed counts.
        reported.extend(
            expected
                .iter()
                .filter_map(|(identity, object)| Some((identity.clone(), object.get("status")?.clone()))),
        );
        Self { applied, assumed: assumed.into_iter().cloned().collect(), expected, reported }
    }
}

/// Runs what `render` runs, pass by pass, and keeps the last status of every object.
fn reported(applied: &[Value]) -> Outcome<Objects> {
    let mut manifests = applied.to_vec();
    for manifest in &mut manifests {
        normalize(manifest).map_err(|error| Failure::Wrong(error.to_string()))?;
        modelplane_api::apply_defaults(manifest);
    }
    let options = Options::default();
    let max_passes = options.max_passes;
    let mut simulation = Simulation::new(manifests, options);
    let mut reported = Objects::new();
    for _ in 0..max_passes {
        let is_last = simulation.step().is_quiet();
        let composed = simulation.world().iter().filter(|object| object.owner.is_some());
        reported.extend(
            composed
                .filter_map(|object| Some((Identity::of(&object.body), object.body.get("status")?.clone()))),
        );
        if is_last {
            break;
        }
    }
    Ok(reported)
}

/// Under which key an object is composed, if it is.
pub fn resource_key(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][COMPOSITION_RESOURCE_NAME_ANNOTATION].as_str()
}

/// Objects of a control plane under the names that `render` gives them, also where they mention each other.
pub fn under_rendered_names(found: &[Value], expected: &Objects) -> Objects {
    let given = names_by_uid(found, expected);
    let mut renamed: Vec<(&str, &str)> = found
        .iter()
        .filter_map(|object| Some((name(object), given.get(uid(object))?.as_str())))
        .filter(|(real, rendered)| real != rendered)
        .collect();
    renamed.sort_unstable();
    renamed.dedup();
    let under_names = found.iter().map(|object| {
        let object = without_own_label(replaced(object, &renamed));
        (Identity::of(&object), object)
    });
    under_names.collect()
}

/// An outermost composite without the label that names it: Crossplane puts it on that itself, too.
fn without_own_label(mut object: Value) -> Value {
    let is_controlled =
        list(&object, "/metadata/ownerReferences").iter().any(|owner| owner["controller"] == true);
    let own_name = object["metadata"]["name"].clone();
    if let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)
        && !is_controlled
    {
        labels.retain(|label, value| label != COMPOSITE_LABEL || *value != own_name);
    }
    object
}

/// The name that `render` gives each object, by unique id.
fn names_by_uid(found: &[Value], expected: &Objects) -> BTreeMap<String, String> {
    let kept = found.iter().filter(|object| expected.contains_key(&Identity::of(object)));
    let mut names: BTreeMap<String, String> =
        kept.map(|object| (uid(object).to_owned(), name(object).to_owned())).collect();
    // The name of a composite has to be known before those of what is composed for it.
    for _ in 0..MAX_DEPTH {
        for object in found {
            if let Some(name) = derived_name(object, found, &names) {
                names.entry(uid(object).to_owned()).or_insert(name);
            }
        }
    }
    names
}

/// The name that `render` would give an object that is composed without one.
fn derived_name(object: &Value, found: &[Value], names: &BTreeMap<String, String>) -> Option<String> {
    let owners = list(object, "/metadata/ownerReferences");
    let controller = owners.iter().find(|owner| owner["controller"] == true)?;
    let composite = found.iter().find(|candidate| uid(candidate) == text(controller, "/uid"))?;
    let name = names.get(uid(composite))?.clone();
    let composite = ObjectKey { name, ..ObjectKey::of(composite) };
    Some(composed_name(&composite, resource_key(object)?))
}

fn replaced(value: &Value, names: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) => {
            let replace = |text: String, (real, rendered): &(&str, &str)| match text.contains(real) {
                true => text.replace(real, rendered),
                false => text,
            };
            Value::String(names.iter().fold(text.clone(), replace))
        }
        Value::Array(items) => items.iter().map(|item| replaced(item, names)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, field)| (key.clone(), replaced(field, names))).collect()
        }
        other => other.clone(),
    }
}

/// Everything in which the objects found differ from those expected.
pub fn differences(expected: &Objects, found: &Objects) -> BTreeMap<Identity, String> {
    let mut differences = BTreeMap::new();
    for (identity, object) in expected {
        let fields = match found.get(identity) {
            None => vec!["it is missing".to_owned()],
            Some(found) => fields_that_differ(identity, object, found),
        };
        if !fields.is_empty() {
            differences.insert(identity.clone(), fields.join("; "));
        }
    }
    for identity in found.keys().filter(|identity| !expected.contains_key(*identity)) {
        differences.insert(identity.clone(), "`render` has no such object".to_owned());
    }
    differences
}

fn fields_that_differ(identity: &Identity, expected: &Value, found: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    let mut open = vec![(String::new(), normal(identity, expected), normal(identity, found))];
    while let Some((path, expected, found)) = open.pop() {
        if expected == found || may_differ(&identity.kind, &path) {
            continue;
        }
        match (expected, found) {
            // What is not there is as good as empty: it may hold nothing but what may differ.
            (expected @ (Value::Object(_) | Value::Null), found @ (Value::Object(_) | Value::Null)) => {
                let (mut expected, mut found) = (fields_of(expected), fields_of(found));
                let keys: Vec<String> = expected.keys().chain(found.keys()).cloned().collect();
                for key in keys {
                    let step = key.replace('~', "~0").replace('/', "~1");
                    let field = |fields: &mut Map<String, Value>| fields.remove(&key).unwrap_or(Value::Null);
                    open.push((format!("{path}/{step}"), field(&mut expected), field(&mut found)));
                }
            }
            (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
                let pairs = expected.into_iter().zip(found).enumerate();
                open.extend(pairs.map(|(index, (one, other))| (format!("{path}/{index}"), one, other)));
            }
            (expected, found) => fields.push(format!("{path} should be {expected}, is {found}")),
        }
    }
    fields
}

fn fields_of(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Numbers without a form of their own, nothing null, and conditions by type: what they say, not when and in which
/// words. Only composites have a status that `render` is asked about; that of all others is made from it.
fn normal(identity: &Identity, object: &Value) -> Value {
    let mut object = normal_value(object);
    if !identity.is_composite() {
        object["status"] = Value::Null;
        return object;
    }
    let conditions = list(&object, "/status/conditions").iter();
    let said = conditions.map(|one| (text(one, "/type").to_owned(), json!([one["status"], one["reason"]])));
    let said: Map<String, Value> = said.collect();
    if !said.is_empty() {
        object["status"]["conditions"] = Value::Object(said);
    }
    object
}

fn normal_value(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, field)| !field.is_null());
            fields.map(|(key, field)| (key.clone(), normal_value(field))).collect()
        }
        Value::Array(items) => items.iter().map(normal_value).collect(),
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}

fn may_differ(kind: &str, path: &str) -> bool {
    MAY_DIFFER.iter().any(|one| (one.kind.is_empty() || one.kind == kind) && is_at_or_below(path, one.field))
}

fn is_at_or_below(path: &str, field: &str) -> bool {
    let mut steps = path.split('/');
    field.split('/').all(|wanted| steps.next().is_some_and(|step| wanted == "*" || wanted == step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(status: Value) -> Value {
        json!({
            "apiVersion": "modelplane.ai/v1alpha1",
            "kind": "InferenceCluster",
            "metadata": {"name": "west", "uid": "1"},
            "spec": {"nodePools": [{"name": "gpu", "nodeCount": 2}]},
            "status": status,
        })
    }

    fn release(name: &str, uid: &str) -> Value {
        json!({
            "apiVersion": "helm.m.crossplane.io/v1beta1",
            "kind": "Release",
            "metadata": {
                "name": name,
                "uid": uid,
                "annotations": {COMPOSITION_RESOURCE_NAME_ANNOTATION: "chart"},
                "ownerReferences": [{"uid": "1", "controller": true}],
            },
            "spec": {"self": name},
        })
    }

    fn objects(all: &[Value]) -> Objects {
        all.iter().map(|object| (Identity::of(object), object.clone())).collect()
    }

    #[test]
    fn objects_with_derived_names_are_recognised_by_composite_and_key() {
        let west = cluster(Value::Null);
        let rendered = release(&composed_name(&ObjectKey::of(&west), "chart"), "");
        let expected = objects(&[west.clone(), rendered]);
        let found = under_rendered_names(&[release("west-0123456789ab", "2"), west.clone()], &expected);
        assert_eq!(differences(&expected, &found), BTreeMap::new());

        let mut other_key = release("west-0123456789ab", "2");
        other_key["metadata"]["annotations"][COMPOSITION_RESOURCE_NAME_ANNOTATION] = json!("another");
        let found = under_rendered_names(&[other_key, west], &expected);
        assert_eq!(differences(&expected, &found).len(), 2, "one is missing, and one is too much");
    }

    #[test]
    fn conditions_differ_by_status_and_reason_alone() {
        let ready = |status: &str, reason: &str, message: &str| {
            let one = json!({"type": "Ready", "status": status, "reason": reason, "message": message});
            cluster(json!({"conditions": [one]}))
        };
        let expected = objects(&[ready("True", "Available", "")]);
        let cases = [
            ("another message", ready("True", "Available", "words"), 0),
            ("another reason", ready("True", "Creating", ""), 1),
            ("another status", ready("False", "Available", ""), 1),
            ("no conditions", cluster(Value::Null), 1),
        ];
        for (name, found, count) in cases {
            assert_eq!(differences(&expected, &objects(&[found])).len(), count, "{name}");
        }
    }

    #[test]
    fn fields_differ_unless_the_table_says_why_not() {
        let expected = cluster(Value::Null);
        let with = |pointer: &str, value: Value| {
            let mut found = expected.clone();
            *found.pointer_mut(pointer).expect("it is there") = value;
            differences(&objects(std::slice::from_ref(&expected)), &objects(&[found]))
        };
        assert!(with("/metadata/uid", json!("3")).is_empty(), "bookkeeping");
        assert!(with("/spec/nodePools/0/nodeCount", json!(2.0)).is_empty(), "one number in two forms");
        let changed = with("/spec/nodePools/0/nodeCount", json!(3));
        let said: Vec<&String> = changed.values().collect();
        assert_eq!(said, ["/spec/nodePools/0/nodeCount should be 2.0, is 3.0"]);
        assert_eq!(with("/spec", json!({"nodePools": []})).len(), 1, "a shorter list");
        assert_eq!(with("/spec", json!({})).len(), 1, "a missing field");
    }

    #[test]
    fn a_star_in_the_table_stands_for_one_step() {
        assert!(may_differ("Service", "/spec/ports/0/nodePort"));
        assert!(may_differ("Usage", "/spec/of/resourceRef/name"), "everything below is meant, too");
        assert!(!may_differ("Service", "/spec/ports/0/port"));
        assert!(!may_differ("Deployment", "/spec/ports/0/nodePort"));
        assert!(!may_differ("Service", "/spec/ports"));
    }
}
