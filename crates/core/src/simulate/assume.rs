//! Stand-ins for inputs that exist outside the manifests: cloud credentials and tokens.

use serde_json::{Value, json};

use super::reconcile::Reconciled;
use super::world::{ObjectKey, World};
use crate::contract::{Match, Requirement};

/// Adds what the composition of `composite` last asked for by name and nobody provides; says what.
pub(super) fn provide(
    world: &mut World,
    composite: &ObjectKey,
    latest: Option<&Reconciled>,
) -> Vec<ObjectKey> {
    let requirements = latest.map_or(&[][..], |reconciled| &reconciled.requirements);
    let spec = world.get(composite).map_or(Value::Null, |object| object.body["spec"].clone());
    let mut provided = Vec::new();
    for requirement in requirements {
        let Some(object) = stand_in(requirement, &spec) else { continue };
        let key = ObjectKey::of(&object);
        if world.get(&key).is_none() {
            provided.push(world.apply(object, None));
        }
    }
    provided
}

/// An object that could satisfy the requirement, for kinds whose content is a secret of the environment.
fn stand_in(requirement: &Requirement, spec: &Value) -> Option<Value> {
    let Match::Name(name) = &requirement.select else { return None };
    let mut metadata = json!({"name": name});
    if let Some(namespace) = &requirement.namespace {
        metadata["namespace"] = json!(namespace);
    }
    let mut object =
        json!({"apiVersion": requirement.api_version, "kind": requirement.kind, "metadata": metadata});
    match requirement.kind.as_str() {
        "ProviderConfig" | "ClusterProviderConfig" => {
            let secret = format!("{name}-credentials");
            object["spec"] = json!({
                "projectID": "assumed-project",
                "identity": {"type": "ServiceAccount"},
                "credentials": {
                    "source": "Secret",
                    "secretRef": {"namespace": "modelplane-system", "name": secret, "key": "credentials"},
                },
            });
        }
        "Secret" => {
            let key = spec["huggingFace"]["authSecret"]["key"].as_str().unwrap_or("HF_TOKEN");
            object["data"] = json!({ key: "YXNzdW1lZA==" });
        }
        _ => return None,
    }
    Some(object)
}
