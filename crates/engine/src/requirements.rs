//! Who has to be composed again when an object changes that it asked for: the requirements, turned around.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use modelplane_core::contract::{Match, Requirement};
use modelplane_core::simulate::ObjectKey;

use crate::cache::Change;
use crate::object::{Stored, group};

/// The requirements of all composites.
#[derive(Debug, Default)]
pub struct Requirements(Mutex<Index>);

#[derive(Debug, Default)]
struct Index {
    of: HashMap<Arc<ObjectKey>, Vec<Requirement>>,
    by: HashMap<Handle, HashSet<Arc<ObjectKey>>>,
}

/// What part of a requirement a change is looked up by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Handle {
    Kind(String, String),
    Name(String, String, String),
    /// Group, kind, and the requirement's first label.
    Label(String, String, String, String),
}

impl Requirements {
    /// Notes what a composite asks for, in place of what it asked for before.
    pub fn set(&self, composite: &ObjectKey, requirements: Vec<Requirement>) {
        let mut index = self.lock();
        if index.of.get(composite) == Some(&requirements) {
            return;
        }
        index.remove(composite);
        if requirements.is_empty() {
            return;
        }
        let composite = Arc::new(composite.clone());
        for requirement in &requirements {
            index.by.entry(Handle::of(requirement)).or_default().insert(Arc::clone(&composite));
        }
        index.of.insert(composite, requirements);
    }

    /// Forgets a composite.
    pub fn forget(&self, composite: &ObjectKey) {
        self.lock().remove(composite);
    }

    /// The composites whose requirements the object met or meets, in order; of those kinds to which it matters.
    pub fn affected(&self, change: &Change, matters: impl Fn(&str) -> bool) -> BTreeSet<ObjectKey> {
        let index = self.lock();
        let mut found = BTreeSet::new();
        // Thousands of composites may have asked, but they are of few kinds.
        let mut asked: Vec<(&str, bool)> = Vec::new();
        for object in change.old.iter().chain(&change.new) {
            for handle in Handle::all_of(object) {
                for composite in index.by.get(&handle).into_iter().flatten() {
                    let known =
                        asked.iter().find(|(kind, _)| *kind == composite.kind).map(|(_, answer)| *answer);
                    let answer = known.unwrap_or_else(|| {
                        let answer = matters(&composite.kind);
                        asked.push((&composite.kind, answer));
                        answer
                    });
                    if !answer {
                        continue;
                    }
                    let requirements = index.of.get(composite).map(Vec::as_slice).unwrap_or_default();
                    if !found.contains(composite.as_ref())
                        && requirements.iter().any(|requirement| is_met(requirement, object))
                    {
                        found.insert(composite.as_ref().clone());
                    }
                }
            }
        }
        found
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn remove(&mut self, composite: &ObjectKey) {
        let Some(requirements) = self.of.remove(composite) else { return };
        for requirement in &requirements {
            let handle = Handle::of(requirement);
            if let Some(composites) = self.by.get_mut(&handle) {
                composites.remove(composite);
                if composites.is_empty() {
                    self.by.remove(&handle);
                }
            }
        }
    }
}

impl Handle {
    fn of(requirement: &Requirement) -> Self {
        let (group, kind) = (group(&requirement.api_version).to_owned(), requirement.kind.clone());
        match &requirement.select {
            Match::All => Self::Kind(group, kind),
            Match::Name(name) => Self::Name(group, kind, name.clone()),
            Match::Labels(labels) => match labels.iter().next() {
                Some((key, value)) => Self::Label(group, kind, key.clone(), value.clone()),
                None => Self::Kind(group, kind),
            },
        }
    }

    fn all_of(object: &Stored) -> Vec<Self> {
        let kind = || (object.key.group.clone(), object.key.kind.clone());
        let mut handles = Vec::with_capacity(8);
        let (group, name) = kind();
        handles.push(Self::Kind(group, name));
        let (group, name) = kind();
        handles.push(Self::Name(group, name, object.key.name.clone()));
        let labels: Option<Vec<(String, String)>> = labels(object);
        for (key, value) in labels.unwrap_or_default() {
            let (group, name) = kind();
            handles.push(Self::Label(group, name, key, value));
        }
        handles
    }
}

fn labels(object: &Stored) -> Option<Vec<(String, String)>> {
    let labels: std::collections::BTreeMap<String, String> =
        object.document().decode_at(&["metadata", "labels"]).ok()??;
    Some(labels.into_iter().collect())
}

/// Whether an object is one that a requirement asks for.
pub fn is_met(requirement: &Requirement, object: &Stored) -> bool {
    let namespace = requirement.namespace.as_deref();
    group(&requirement.api_version) == object.key.group
        && requirement.kind == object.key.kind
        && namespace.is_none_or(|namespace| namespace == object.key.namespace)
        && match &requirement.select {
            Match::All => true,
            Match::Name(name) => *name == object.key.name,
            Match::Labels(labels) => labels.iter().all(|(key, value)| object.label(key) == Some(value)),
        }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::object::key;

    fn object(namespace: &str, name: &str, labels: &serde_json::Value) -> Arc<Stored> {
        let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
        let object = json!({"apiVersion": "g.io/v1", "kind": "K", "metadata": metadata});
        Arc::new(Stored::from_value(object).unwrap())
    }

    fn affected(
        requirements: &Requirements,
        old: Option<Arc<Stored>>,
        new: Option<Arc<Stored>>,
    ) -> Vec<String> {
        requirements.affected(&Change { old, new }, |_| true).into_iter().map(|key| key.name).collect()
    }

    #[test]
    fn a_change_reaches_those_who_asked_for_the_object() {
        let requirements = Requirements::default();
        let labels = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
        let composite = |name: &str| key("x.io", "X", "n", name);
        requirements.set(&composite("all"), vec![Requirement::all("g.io/v1", "K")]);
        requirements
            .set(&composite("named"), vec![Requirement::named("g.io/v1", "K", "one").in_namespace("n")]);
        requirements.set(&composite("labelled"), vec![Requirement::labelled("g.io/v1", "K", labels)]);
        requirements.set(&composite("other"), vec![Requirement::all("g.io/v1", "Other")]);
        let both = json!({"a": "1", "b": "2"});
        for (name, old, new, expected) in [
            ("by kind", None, Some(object("n", "two", &json!({}))), vec!["all"]),
            ("by name", None, Some(object("n", "one", &json!({}))), vec!["all", "named"]),
            ("another namespace", None, Some(object("m", "one", &json!({}))), vec!["all"]),
            ("by labels", None, Some(object("n", "two", &both)), vec!["all", "labelled"]),
            ("one label is not enough", None, Some(object("n", "two", &json!({"a": "1"}))), vec!["all"]),
            (
                "labels it has lost",
                Some(object("n", "two", &both)),
                Some(object("n", "two", &json!({}))),
                vec!["all", "labelled"],
            ),
            ("gone", Some(object("n", "one", &json!({}))), None, vec!["all", "named"]),
        ] {
            assert_eq!(affected(&requirements, old, new), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_longer_asked_for_reaches_nobody() {
        let requirements = Requirements::default();
        let composite = key("x.io", "X", "n", "c");
        requirements.set(&composite, vec![Requirement::named("g.io/v1", "K", "one")]);
        requirements.set(&composite, vec![Requirement::named("g.io/v1", "K", "two")]);
        let one = object("n", "one", &json!({}));
        assert_eq!(affected(&requirements, None, Some(one)), [""; 0]);
        requirements.forget(&composite);
        assert_eq!(affected(&requirements, None, Some(object("n", "two", &json!({})))), [""; 0]);
        assert!(requirements.lock().by.is_empty() && requirements.lock().of.is_empty());
    }
}
