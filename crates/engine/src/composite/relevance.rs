//! Which changes of an object can change what a composite wants, so that a big fleet is not composed anew for each.
//!
//! Says nothing about policy: the table holds what compositions read of the kinds a fleet has thousands of, and a
//! test holds the compositions to it. Whatever is not in it counts. A change that was left out for nothing is made
//! up for by the poll.

use std::borrow::Cow;
use std::collections::BTreeMap;

use modelplane_api::names::{DEPLOYMENT_LABEL, label_value};
use modelplane_core::contract::{Match, Requirement};
use modelplane_core::document::{DecodeError, Document};

use crate::cache::Change;
use crate::object::Stored;

/// What the composition of one kind reads of the objects of another that it asks for, beside their names.
struct Reads {
    composite: &'static str,
    required: &'static str,
    paths: &'static [&'static [&'static str]],
}

const READS: &[Reads] = &[
    Reads {
        composite: "ModelDeployment",
        required: "ModelReplica",
        paths: &[&["metadata", "labels"], &["spec", "clusterName"], &["spec", "engines"]],
    },
    // Not how many replicas a cluster has, which changes with each of them.
    Reads {
        composite: "ModelDeployment",
        required: "InferenceCluster",
        paths: &[
            &["metadata", "labels"],
            &["spec", "taints"],
            &["status", "conditions"],
            &["status", "gateway"],
            &["status", "gpuPools"],
        ],
    },
    // It counts them.
    Reads { composite: "InferenceCluster", required: "ModelReplica", paths: &[&["metadata", "labels"]] },
    Reads {
        composite: "ModelReplica",
        required: "InferenceCluster",
        paths: &[&["status", "providerConfigRef"]],
    },
];

/// What changes of a composed object's own bookkeeping touch: nothing that a composite reads or wants.
const BOOKKEEPING: &[&[&str]] =
    &[&["metadata", "finalizers"], &["metadata", "generation"], &["spec", "crossplane"]];

/// What an object's own controller writes.
const BESIDE_WISHES: &[&[&str]] =
    &[&["status"], &["metadata", "finalizers"], &["metadata", "generation"], &["spec", "crossplane"]];

/// Whether a change of an object that a composite asked for can matter to it. `settled` is a deployment all of whose
/// replicas have a place.
pub(super) fn of_required(composite: &str, settled: bool, change: &Change) -> bool {
    let Some(required) = change.key() else { return false };
    let Some(reads) =
        READS.iter().find(|reads| reads.composite == composite && reads.required == required.kind)
    else {
        return true;
    };
    if composite == "ModelDeployment" && required.kind == "ModelReplica" {
        // Others' replicas are in the way or are not; a replica that has its place stays there whatever they do, and
        // one more of them makes no room.
        return !settled && change.old.is_some() && differs(change, reads.paths);
    }
    differs(change, reads.paths)
}

/// How much of what a composite asks for it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// All of it.
    Fleet,
    /// Of replicas only its own: enough for a deployment as long as it has a place for each of them, because what
    /// others hold matters to nothing but new places.
    Own,
}

/// What to fetch for a requirement.
pub(super) fn narrowed<'r>(
    composite: &Stored,
    requirement: &'r Requirement,
    view: View,
) -> Cow<'r, Requirement> {
    let is_replicas = requirement.kind == "ModelReplica" && matches!(requirement.select, Match::All);
    if view == View::Fleet || composite.key.kind != "ModelDeployment" || !is_replicas {
        return Cow::Borrowed(requirement);
    }
    let label = label_value(&composite.key.name).into_owned();
    Cow::Owned(Requirement {
        namespace: Some(composite.key.namespace.clone()),
        select: Match::Labels(BTreeMap::from([(DEPLOYMENT_LABEL.to_owned(), label)])),
        ..requirement.clone()
    })
}

/// Whether a change of an object that a composite composed can matter to it.
pub(super) fn of_composed(change: &Change) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => !same_beside(old.document(), new.document(), BOOKKEEPING),
        _ => true,
    }
}

/// Whether somebody may have asked for something else of an object: more than its status and bookkeeping changed,
/// as in Crossplane's `DesiredStateChanged`.
pub(crate) fn of_wishes(change: &Change) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => !same_beside(old.document(), new.document(), BESIDE_WISHES),
        _ => true,
    }
}

/// Whether anything of an object changed under one of the paths.
pub(crate) fn differs(change: &Change, paths: &[&[&str]]) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    let (old, new) = (old.document(), new.document());
    paths
        .iter()
        .any(|path| old.get(path).map(|found| found.bytes()) != new.get(path).map(|found| found.bytes()))
}

/// Whether two objects are the same but for what is under some paths.
fn same_beside(old: Document<'_>, new: Document<'_>, beside: &[&[&str]]) -> bool {
    let (Ok(old), Ok(new)) = (fields(old), fields(new)) else { return false };
    let is_same = |key: &String| {
        let below: Vec<&[&str]> =
            beside.iter().filter(|path| path[0] == key).map(|path| &path[1..]).collect();
        if below.iter().any(|path| path.is_empty()) {
            return true;
        }
        match (old.get(key), new.get(key)) {
            (Some(old), Some(new)) => {
                old.bytes() == new.bytes() || !below.is_empty() && same_beside(*old, *new, &below)
            }
            _ => false,
        }
    };
    old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))).all(is_same)
}

fn fields(document: Document<'_>) -> Result<BTreeMap<String, Document<'_>>, DecodeError> {
    document.decode()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use modelplane_core::simulate::{Options, Simulation};
    use serde_json::{Value, json};

    use super::*;
    use crate::composite::pipeline::{self, Functions, Inputs};

    fn stored(object: Value) -> Arc<Stored> {
        Arc::new(Stored::from_value(object).unwrap())
    }

    fn change(old: Option<Value>, new: Option<Value>) -> Change {
        Change { old: old.map(stored), new: new.map(stored) }
    }

    fn replica() -> Value {
        json!({
            "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelReplica",
            "metadata": {"name": "r", "namespace": "n", "labels": {"a": "b"}, "finalizers": ["f"], "generation": 1},
            "spec": {"clusterName": "c", "engines": [], "crossplane": {"resourceRefs": []}},
            "status": {"phase": "x"},
        })
    }

    fn with(pointer: &str, value: Value) -> Value {
        let mut object = replica();
        *object.pointer_mut(pointer).unwrap() = value;
        object
    }

    #[test]
    fn only_what_is_read_of_a_required_object_matters() {
        for (name, new, deployment, cluster) in [
            ("its status", with("/status/phase", json!("y")), false, false),
            ("what it composed", with("/spec/crossplane/resourceRefs", json!([1])), false, false),
            ("its cluster", with("/spec/clusterName", json!("d")), true, false),
            ("its labels", with("/metadata/labels/a", json!("c")), true, true),
        ] {
            let change = change(Some(replica()), Some(new));
            assert_eq!(of_required("ModelDeployment", false, &change), deployment, "{name}");
            assert_eq!(of_required("InferenceCluster", false, &change), cluster, "{name}");
            assert!(!of_required("ModelDeployment", true, &change), "{name}: it has its places");
            assert!(of_required("ModelService", false, &change), "{name}: nothing is known of that");
        }
    }

    #[test]
    fn a_deployment_without_places_waits_for_replicas_to_go() {
        let (come, gone) = (change(None, Some(replica())), change(Some(replica()), None));
        assert!(!of_required("ModelDeployment", false, &come));
        assert!(of_required("ModelDeployment", false, &gone));
        assert!(!of_required("ModelDeployment", true, &gone));
        assert!(
            of_required("InferenceCluster", false, &come) && of_required("InferenceCluster", false, &gone)
        );
    }

    #[test]
    fn bookkeeping_of_a_composed_object_does_not_matter() {
        for (name, new, expected) in [
            ("finalizers", with("/metadata/finalizers", json!([])), false),
            ("generation", with("/metadata/generation", json!(2)), false),
            ("references", with("/spec/crossplane", json!({"resourceRefs": [1]})), false),
            ("spec", with("/spec/clusterName", json!("d")), true),
            ("status", with("/status", json!({})), true),
            ("labels", with("/metadata/labels", json!({})), true),
        ] {
            let change = change(Some(replica()), Some(new));
            assert_eq!(of_composed(&change), expected, "{name}");
            assert_eq!(of_wishes(&change), expected && name != "status", "{name}");
        }
        assert!(of_composed(&change(None, Some(replica()))));
        let mut without = replica();
        without["spec"].as_object_mut().unwrap().remove("crossplane");
        assert!(!of_composed(&change(Some(without), Some(replica()))));
    }

    /// All objects of an example at rest.
    fn canary() -> Vec<Arc<Stored>> {
        let folder = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/canary");
        let texts =
            ["platform.yaml", "model.yaml"].map(|file| std::fs::read_to_string(folder.join(file)).unwrap());
        let objects = texts.iter().flat_map(|text| serde_saphyr::from_multiple::<Value>(text).unwrap());
        let mut simulation = Simulation::new(objects, Options::default());
        assert!(simulation.run().converged);
        simulation.world().iter().map(|object| stored(object.body.clone())).collect()
    }

    /// Runs the compositions of an example's composites with required objects that have nothing but what the table
    /// says is read of them, and compares.
    #[test]
    fn compositions_read_no_more_than_the_table_says() {
        let all = canary();
        let mut compared = 0;
        for reads in READS {
            for composite in all.iter().filter(|object| object.key.kind == reads.composite) {
                let whole = answer(composite, &all, |_| None);
                let cut = answer(composite, &all, |object| {
                    (object.key.kind == reads.required).then(|| cut(object, reads.paths))
                });
                assert_eq!(whole, cut, "{} of {}", composite.key, reads.required);
                compared += 1;
            }
        }
        assert!(compared > 4, "{compared}");
    }

    #[test]
    fn a_deployment_with_its_places_needs_no_replicas_but_its_own() {
        let all = canary();
        let replicas = all.iter().filter(|object| object.key.kind == "ModelReplica").count();
        let deployments: Vec<_> = all.iter().filter(|object| object.key.kind == "ModelDeployment").collect();
        assert!(deployments.len() > 1, "{deployments:?}");
        for deployment in deployments {
            let seen = |view| {
                let given = std::cell::Cell::new(0);
                let answer = answer_of(deployment, |requirement| {
                    let asked = narrowed(deployment, requirement, view);
                    let found = all.iter().filter(|object| crate::requirements::is_met(&asked, object));
                    let found: Vec<Arc<Stored>> = found.cloned().collect();
                    if requirement.kind == "ModelReplica" {
                        given.set(found.len());
                    }
                    found
                });
                (given.get(), answer)
            };
            let ((fleet, whole), (own, narrow)) = (seen(View::Fleet), seen(View::Own));
            assert_eq!(whole, narrow, "{}", deployment.key);
            assert_eq!(fleet, replicas);
            assert!((1..fleet).contains(&own), "{own} of {fleet} replicas");
        }
    }

    fn cut(object: &Stored, paths: &[&[&str]]) -> Arc<Stored> {
        let whole = object.value();
        let mut cut = json!({
            "apiVersion": whole["apiVersion"], "kind": whole["kind"],
            "metadata": {"name": whole["metadata"]["name"], "namespace": whole["metadata"]["namespace"]},
        });
        for path in paths {
            let pointer = format!("/{}", path.join("/"));
            if let Some(value) = whole.pointer(&pointer) {
                cut[path[0]][path[1]] = value.clone();
            }
        }
        stored(cut)
    }

    fn answer(
        composite: &Arc<Stored>,
        all: &[Arc<Stored>],
        replace: impl Fn(&Stored) -> Option<Arc<Stored>>,
    ) -> String {
        answer_of(composite, |requirement| {
            let found = all.iter().filter(|object| crate::requirements::is_met(requirement, object));
            found.map(|object| replace(object).unwrap_or_else(|| Arc::clone(object))).collect()
        })
    }

    /// What a composite's pipeline answers once it has all it asks for.
    fn answer_of(composite: &Arc<Stored>, fetch: impl Fn(&Requirement) -> Vec<Arc<Stored>>) -> String {
        let steps = pipeline::BuiltIn.steps(composite.api_version(), &composite.key.kind);
        let mut inputs =
            Inputs { composite: Arc::clone(composite), composed: BTreeMap::new(), required: BTreeMap::new() };
        for _ in 0..4 {
            let answer = pipeline::run(&steps, &inputs).unwrap();
            inputs.required =
                answer.requirements.iter().map(|(key, asked)| (key.clone(), fetch(asked))).collect();
        }
        format!("{:?}", pipeline::run(&steps, &inputs).unwrap())
    }
}
