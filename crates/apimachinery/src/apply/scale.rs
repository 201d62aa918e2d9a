//! The scale subresource: its `spec.replicas` is owned by whoever owns the replicas of the object.

use super::managers::Manager;
use super::path::PathElement;
use super::set::FieldSet;

/// The version of Scale objects.
const SCALE_VERSION: &str = "autoscaling/v1";

fn path_of(fields: &[&str]) -> Vec<PathElement> {
    fields.iter().map(|name| PathElement::field(name)).collect()
}

/// The managers of an object as they appear on its scale: those that own its replicas.
///
/// `replicas` is the field of the object, by name from the root (`["spec", "replicas"]`).
pub fn managers_of_scale(managers: &[Manager], replicas: &[&str]) -> Vec<Manager> {
    let path = path_of(replicas);
    let owners = managers.iter().filter(|manager| manager.fields.contains(&path));
    let on_scale = |manager: &Manager| Manager {
        api_version: SCALE_VERSION.to_owned(),
        fields: FieldSet::of_fields(&[&["spec", "replicas"]]),
        ..manager.clone()
    };
    owners.map(on_scale).collect()
}

/// The managers of an object after its scale was written.
///
/// `scale` are the managers of the written scale, `parent` those of the object before, `api_version` is the
/// object's version: new owners of the replicas get an entry in it, former ones lose the field.
pub fn managers_from_scale(
    parent: &[Manager],
    scale: &[Manager],
    replicas: &[&str],
    api_version: &str,
) -> Vec<Manager> {
    let path = path_of(replicas);
    let in_scale = |manager: &Manager| {
        // An updater's identity holds its version, which differs between the object and its scale.
        scale.iter().position(|other| {
            (&other.name, other.operation, &other.subresource)
                == (&manager.name, manager.operation, &manager.subresource)
        })
    };
    let mut kept: Vec<usize> = Vec::new();
    let mut managers = Vec::with_capacity(parent.len() + 1);
    for manager in parent {
        let mut manager = manager.clone();
        if manager.fields.contains(&path) {
            match in_scale(&manager) {
                Some(position) => kept.push(position),
                None => manager.fields = manager.fields.difference(&FieldSet::of_fields(&[replicas])),
            }
        }
        if !manager.fields.is_empty() {
            managers.push(manager);
        }
    }
    let in_replicas = path_of(&["spec", "replicas"]);
    let new = scale
        .iter()
        .enumerate()
        .filter(|(position, manager)| !kept.contains(position) && manager.fields.contains(&in_replicas));
    managers.extend(new.map(|(_, manager)| Manager {
        api_version: api_version.to_owned(),
        fields: FieldSet::of_fields(&[replicas]),
        ..manager.clone()
    }));
    managers
}
