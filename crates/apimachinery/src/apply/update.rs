//! Who owns what after a write: the algorithm of KEP-555 on sets of fields.

use std::borrow::Cow;

use serde_json::Value;

use super::compare::Comparison;
use super::managers::{Manager, Operation};
use super::merge::{merge, reconciled, remove, with_named_fields};
use super::path::Path;
use super::set::FieldSet;
use super::types::Type;
use super::walk::fields_of;
use super::{Reset, Versions};

/// A field that another manager owns and a write would change.
#[derive(Debug, Clone)]
pub(super) struct Clash {
    pub(super) manager: Manager,
    pub(super) path: Path,
}

/// What a write is checked against.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) versions: Versions<'a>,
    pub(super) reset: &'a Reset,
}

/// Two objects, one of which follows the other.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) before: &'a Value,
    /// What is to be stored, or for an apply what is applied.
    pub(super) after: &'a Value,
}

/// An applied object merged into the live one.
pub(super) struct Merged {
    pub(super) object: Value,
    pub(super) managers: Vec<Manager>,
}

impl<'a> Rules<'a> {
    fn root(&self, api_version: &str) -> Option<Type<'a>> {
        let (_, schema) = self.versions.iter().find(|(version, _)| *version == api_version)?;
        Some(Type::root(schema))
    }

    /// Drops entries of versions that are no longer served; follows lists and maps that became atomic.
    fn follow_schema(&self, managers: Vec<Manager>) -> Vec<Manager> {
        let mut managers = managers;
        managers.retain_mut(|manager| match self.root(&manager.api_version) {
            Some(root) => {
                manager.fields = reconciled(root, &manager.fields);
                true
            }
            None => false,
        });
        managers
    }

    /// Takes what changed between two objects from everybody but `writer`.
    ///
    /// Without `force`, fields that would be taken by a change are conflicts; removed ones never are.
    fn take(
        &self,
        change: Change<'_>,
        managers: &mut Vec<Manager>,
        writer: &Manager,
        force: bool,
    ) -> Result<Comparison, Vec<Clash>> {
        let mut comparisons: Vec<(&str, Comparison)> = Vec::new();
        for (version, schema) in self.versions {
            let needed = *version == writer.api_version || managers.iter().any(|m| m.api_version == *version);
            if needed {
                let comparison = Comparison::of(Type::root(schema), change.before, change.after);
                comparisons.push((version, comparison.filtered(|set| self.reset.filtered(set))));
            }
        }
        let of =
            |version: &str| comparisons.iter().find(|(known, _)| *known == version).map(|(_, found)| found);
        if !force {
            let mut clashes = Vec::new();
            for manager in managers.iter().filter(|manager| !manager.is_same(writer)) {
                let Some(found) = of(&manager.api_version) else { continue };
                let taken = manager.fields.intersection(&found.changed());
                let clash = |path| Clash { manager: manager.clone(), path };
                clashes.extend(taken.paths().into_iter().map(clash));
            }
            if !clashes.is_empty() {
                clashes.sort_by(|left, right| left.manager.compare(&right.manager));
                return Err(clashes);
            }
        }
        for manager in managers.iter_mut().filter(|manager| !manager.is_same(writer)) {
            if let Some(found) = of(&manager.api_version) {
                // `difference` keeps the parents of what is taken, and what is below it.
                manager.fields = manager.fields.difference(&found.changed()).difference(&found.removed);
            }
        }
        managers.retain(|manager| !manager.fields.is_empty());
        let own = comparisons.into_iter().find(|(version, _)| *version == writer.api_version);
        Ok(own.map(|(_, found)| found).unwrap_or_default())
    }

    /// The managers after `writer`, whose own fields are ignored, changed an object by other means than apply.
    ///
    /// The writer's new fields are returned apart: the caller adds them to its entry if there are any.
    pub(super) fn update(
        &self,
        change: Change<'_>,
        managers: Vec<Manager>,
        writer: &Manager,
    ) -> (Vec<Manager>, FieldSet) {
        let mut managers = self.follow_schema(managers);
        // A writer that is not an entry takes from its own entry too, which is how a removal reaches it.
        let nobody = Manager { name: "\0".to_owned(), ..writer.clone() };
        let found = self.take(change, &mut managers, &nobody, true).unwrap_or_default();
        (managers, self.reset.filtered(found.changed()))
    }

    /// Merges what is applied into the live object for `writer` and removes what it no longer applies.
    pub(super) fn apply(
        &self,
        change: Change<'_>,
        managers: Vec<Manager>,
        writer: &Manager,
        force: bool,
    ) -> Result<Merged, Vec<Clash>> {
        let Change { before: live, after: applied } = change;
        let mut managers = self.follow_schema(managers);
        let Some(root) = self.root(&writer.api_version) else {
            return Ok(Merged { object: live.clone(), managers });
        };
        let merged = merge(root, live, applied);
        let fields = self.reset.filtered(fields_of(root, applied));
        let last = managers.iter().position(|manager| manager.is_same(writer)).map(|at| managers.remove(at));
        let time = last.as_ref().and_then(|last| last.time.clone());
        managers.push(Manager { fields, time, ..writer.clone() });
        let object = match last {
            Some(last) => self.prune(merged, &managers, &last),
            None => merged,
        };
        self.take(Change { before: live, after: &object }, &mut managers, writer, force)?;
        Ok(Merged { object, managers })
    }

    /// Removes what the applier applied last and nobody applies or owns now.
    fn prune(&self, merged: Value, managers: &[Manager], last: &Manager) -> Value {
        let Some(root) = self.root(&last.api_version) else { return merged };
        let unchanged = managers.iter().any(|manager| {
            manager.is_same(last)
                && manager.api_version == last.api_version
                && last.fields.difference(&manager.fields).is_empty()
        });
        if last.fields.is_empty() || unchanged {
            return merged;
        }
        let last_fields = with_named_fields(Some(root), &last.fields);
        let mut pruned = Cow::Borrowed(&merged);
        remove(root, pruned.to_mut(), &last_fields);
        // The version of the last application first, then the others.
        let versions =
            self.versions.iter().map(|(version, _)| *version).filter(|version| *version != last.api_version);
        for version in std::iter::once(last.api_version.as_str()).chain(versions) {
            let owned = managers.iter().filter(|manager| manager.api_version == version);
            let Some(owned) = owned.map(|manager| manager.fields.clone()).reduce(|all, set| all.union(&set))
            else {
                continue;
            };
            let Some(root) = self.root(version) else { continue };
            let named = |set: &FieldSet| with_named_fields(Some(root), set);
            let kept = named(&fields_of(root, &pruned)).union(&named(&owned));
            let gone = named(&fields_of(root, &merged)).difference(&kept);
            pruned = Cow::Borrowed(&merged);
            remove(root, pruned.to_mut(), &gone);
        }
        let named = |object: &Value| with_named_fields(Some(root), &fields_of(root, object));
        let gone = named(&merged).difference(&named(&pruned)).intersection(&last_fields);
        let mut object = merged;
        remove(root, &mut object, &gone);
        object
    }
}

/// What no manager owns because the server sets it, or because it names the object.
pub(super) fn without_system_fields(fields: &FieldSet) -> FieldSet {
    fields.difference(&FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ]))
}

/// The operation an entry records.
pub(super) fn writer(operation: Operation, name: &str, api_version: &str, subresource: &str) -> Manager {
    Manager {
        name: name.to_owned(),
        operation,
        api_version: api_version.to_owned(),
        subresource: subresource.to_owned(),
        time: None,
        fields: FieldSet::new(),
    }
}
