//! Which objects are in use, and which usages a change concerns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use modelplane_core::simulate::ObjectKey;
use serde::Deserialize;

use super::{Deletion, DeletionGuard, GROUP, KINDS, Protection};
use crate::cache::Change;
use crate::object::{Stored, group, key};
use crate::queue::WorkQueue;

/// All usages.
#[derive(Debug, Default)]
pub struct UsageIndex {
    protection: Protection,
    queue: WorkQueue,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    usages: HashMap<ObjectKey, Parties>,
    /// Usages by the object they protect.
    protected: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Usages by each object they name.
    named: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Usages whose selectors are to be resolved, by the group and kind they select.
    selecting: HashMap<(String, String), BTreeSet<ObjectKey>>,
    /// Refused deletions that are not noted on the object yet, with their policy.
    attempts: HashMap<ObjectKey, String>,
    /// What usages that are gone protected, and whether a refused deletion of it is to be repeated.
    freed: HashMap<ObjectKey, (ObjectKey, bool)>,
}

/// An object is in use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("in use by {count} usage(s), among them {usage}: {details}")]
pub struct InUse {
    /// How many usages protect it.
    pub count: usize,
    /// The first of them.
    pub usage: ObjectKey,
    /// What it is about.
    pub details: String,
}

/// The two sides of a usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parties {
    pub(super) of: Party,
    pub(super) by: Option<Party>,
    pub(super) reason: Option<String>,
    pub(super) replay: bool,
}

/// One side of a usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Party {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    /// Name, once it is known.
    pub(super) name: Option<String>,
    pub(super) selector: Option<Selector>,
}

/// How an object is found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Selector {
    pub(super) match_controller_ref: Option<bool>,
    pub(super) match_labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    of: Side,
    by: Option<Side>,
    reason: Option<String>,
    replay_deletion: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    resource_ref: Option<Name>,
    resource_selector: Option<Selector>,
}

#[derive(Deserialize)]
struct Name {
    name: Option<String>,
    namespace: Option<String>,
}

impl Parties {
    /// The two sides of a usage object; `None` if it cannot be read.
    pub(super) fn of(usage: &Stored) -> Option<Self> {
        let spec: Spec = usage.document().decode_at(&["spec"]).ok()??;
        let own = usage.key.namespace.as_str();
        Some(Self {
            of: Party::new(spec.of, own),
            by: spec.by.map(|side| Party::new(side, own)),
            reason: spec.reason.filter(|reason| !reason.is_empty()),
            replay: spec.replay_deletion.unwrap_or_default(),
        })
    }

    /// What the usage is about, in a few words.
    pub(super) fn details(&self) -> String {
        let name = |party: &Party| format!("{}/{}", party.kind, party.name.as_deref().unwrap_or("?"));
        match (&self.reason, &self.by) {
            (Some(reason), _) => reason.clone(),
            (None, Some(by)) => format!("{} uses {}", name(by), name(&self.of)),
            (None, None) => "undefined".to_owned(),
        }
    }
}

impl Party {
    fn new(side: Side, own: &str) -> Self {
        let (name, namespace) = match side.resource_ref {
            Some(Name { name, namespace }) => (name, namespace),
            None => (None, None),
        };
        Self {
            api_version: side.api_version,
            kind: side.kind,
            namespace: namespace.unwrap_or_else(|| own.to_owned()),
            name: name.filter(|name| !name.is_empty()),
            selector: side.resource_selector,
        }
    }

    /// The object, once its name is known.
    pub(super) fn key(&self) -> Option<ObjectKey> {
        Some(key(group(&self.api_version), &self.kind, &self.namespace, self.name.as_deref()?))
    }

    fn group_kind(&self) -> (String, String) {
        (group(&self.api_version).to_owned(), self.kind.clone())
    }
}

impl UsageIndex {
    /// No usages yet.
    pub fn new(protection: Protection) -> Self {
        Self { protection, ..Self::default() }
    }

    /// How objects in use are protected.
    pub fn protection(&self) -> Protection {
        self.protection
    }

    pub(crate) fn queue(&self) -> &WorkQueue {
        &self.queue
    }

    /// Takes note of a change, and of which usages it concerns.
    pub(crate) fn route(&self, change: &Change) {
        let Some(object) = change.object() else { return };
        let mut inner = self.lock();
        let mut concerned: BTreeSet<ObjectKey> = BTreeSet::new();
        if object.key.group == GROUP && KINDS.contains(&object.key.kind.as_str()) {
            concerned.extend(inner.update(change));
            concerned.insert(object.key.clone());
        } else {
            concerned.extend(inner.named.get(&object.key).into_iter().flatten().cloned());
            let group_kind = (object.key.group.clone(), object.key.kind.clone());
            concerned.extend(inner.selecting.get(&group_kind).into_iter().flatten().cloned());
        }
        drop(inner);
        concerned.into_iter().for_each(|usage| self.queue.add(usage));
    }

    /// Why the object may not be deleted, if it is in use.
    pub fn blocks(&self, object: &ObjectKey) -> Option<InUse> {
        self.lock().in_use(object)
    }

    /// Why the deletion of the object, which has begun, has to wait; nothing if deletions are refused.
    pub fn holds(&self, object: &ObjectKey) -> Option<InUse> {
        match self.protection {
            Protection::Guard => None,
            Protection::Finalizer => self.blocks(object),
        }
    }

    /// Notes that a deletion was refused, so that it is repeated once the object is free.
    pub(crate) fn attempted(&self, object: &ObjectKey) {
        self.note_attempt(object, "Background");
    }

    fn note_attempt(&self, object: &ObjectKey, policy: &str) {
        let mut inner = self.lock();
        let Some(usage) = inner.protected.get(object).and_then(|usages| usages.first().cloned()) else {
            return;
        };
        inner.attempts.insert(object.clone(), policy.to_owned());
        drop(inner);
        self.queue.add(usage);
    }

    /// The policy of a refused deletion that is not noted on the object yet.
    pub(super) fn attempt_on(&self, object: &ObjectKey) -> Option<String> {
        self.lock().attempts.get(object).cloned()
    }

    pub(super) fn attempt_noted(&self, object: &ObjectKey) {
        self.lock().attempts.remove(object);
    }

    /// What a usage that is gone protected, and whether a refused deletion of it is to be repeated.
    pub(super) fn take_freed(&self, usage: &ObjectKey) -> Option<(ObjectKey, bool)> {
        self.lock().freed.remove(usage)
    }

    /// How many usages protect the object.
    pub(super) fn count(&self, object: &ObjectKey) -> usize {
        self.lock().protected.get(object).map_or(0, BTreeSet::len)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeletionGuard for UsageIndex {
    fn refusal(&self, deletion: &Deletion<'_>) -> Option<InUse> {
        let object = key(deletion.group, deletion.kind, deletion.namespace, deletion.name);
        let in_use = self.blocks(&object)?;
        self.note_attempt(&object, deletion.policy);
        Some(in_use)
    }
}

impl Inner {
    /// Takes a usage as it is now; returns the other usages of the same object.
    fn update(&mut self, change: &Change) -> Vec<ObjectKey> {
        let Some(usage) = change.key().cloned() else { return Vec::new() };
        let before = self.usages.remove(&usage);
        if let Some(before) = &before {
            self.unlink(&usage, before);
        }
        if let Some(parties) = change.new.as_ref().and_then(|new| Parties::of(new)) {
            self.link(&usage, &parties);
            self.usages.insert(usage.clone(), parties);
        }
        let Some(used) = before.as_ref().and_then(|before| before.of.key()) else { return Vec::new() };
        if change.new.is_none() {
            let replay = before.is_some_and(|before| before.replay);
            self.freed.insert(usage, (used.clone(), replay));
        }
        self.protected.get(&used).into_iter().flatten().cloned().collect()
    }

    fn link(&mut self, usage: &ObjectKey, parties: &Parties) {
        if let Some(used) = parties.of.key() {
            self.protected.entry(used).or_default().insert(usage.clone());
        }
        for party in std::iter::once(&parties.of).chain(&parties.by) {
            match party.key() {
                Some(object) => self.named.entry(object).or_default().insert(usage.clone()),
                None => self.selecting.entry(party.group_kind()).or_default().insert(usage.clone()),
            };
        }
    }

    fn unlink(&mut self, usage: &ObjectKey, parties: &Parties) {
        if let Some(used) = parties.of.key() {
            remove(&mut self.protected, &used, usage);
        }
        for party in std::iter::once(&parties.of).chain(&parties.by) {
            match party.key() {
                Some(object) => remove(&mut self.named, &object, usage),
                None => remove(&mut self.selecting, &party.group_kind(), usage),
            }
        }
    }

    fn in_use(&self, object: &ObjectKey) -> Option<InUse> {
        let usages = self.protected.get(object)?;
        let usage = usages.first()?;
        let details = self.usages.get(usage).map(Parties::details).unwrap_or_default();
        Some(InUse { count: usages.len(), usage: usage.clone(), details })
    }
}

fn remove<K: std::hash::Hash + Eq>(map: &mut HashMap<K, BTreeSet<ObjectKey>>, at: &K, usage: &ObjectKey) {
    if let Some(usages) = map.get_mut(at) {
        usages.remove(usage);
        if usages.is_empty() {
            map.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn usage(name: &str, spec: &Value) -> Arc<Stored> {
        let metadata = json!({"name": name, "namespace": "n"});
        let object = json!({"apiVersion": super::super::API_VERSION, "kind": "Usage", "metadata": metadata, "spec": spec});
        Arc::new(Stored::from_value(object).unwrap())
    }

    fn spec(used: &str) -> Value {
        json!({
            "of": {"apiVersion": "g.io/v1", "kind": "K", "resourceRef": {"name": used}},
            "by": {"apiVersion": "g.io/v1", "kind": "L", "resourceRef": {"name": "user"}},
            "replayDeletion": true,
        })
    }

    #[test]
    fn an_object_is_in_use_as_long_as_a_usage_names_it() {
        let index = UsageIndex::new(Protection::Guard);
        let used = key("g.io", "K", "n", "used");
        let (one, two) = (usage("one", &spec("used")), usage("two", &spec("used")));
        for new in [&one, &two] {
            index.route(&Change { old: None, new: Some(Arc::clone(new)) });
        }
        let in_use = index.blocks(&used).expect("it is in use");
        assert_eq!((in_use.count, in_use.details.as_str()), (2, "L/user uses K/used"));
        assert_eq!(index.blocks(&key("g.io", "K", "other", "used")), None);
        assert_eq!(index.holds(&used), None, "the API server refuses it");
        for old in [one, two] {
            index.route(&Change { old: Some(old), new: None });
        }
        assert_eq!(index.blocks(&used), None);
        assert_eq!(index.take_freed(&key(GROUP, "Usage", "n", "two")), Some((used, true)));
        let inner = index.lock();
        assert!(inner.named.is_empty() && inner.protected.is_empty() && inner.usages.is_empty());
    }

    #[test]
    fn a_refused_deletion_is_remembered() {
        let index = UsageIndex::default();
        let deletion =
            Deletion { group: "g.io", kind: "K", namespace: "n", name: "used", policy: "Foreground" };
        assert_eq!(index.refusal(&deletion), None);
        index.route(&Change { old: None, new: Some(usage("one", &spec("used"))) });
        assert!(index.refusal(&deletion).is_some());
        assert_eq!(index.attempt_on(&key("g.io", "K", "n", "used")).as_deref(), Some("Foreground"));
    }

    #[test]
    fn a_selector_protects_nothing_before_it_is_resolved() {
        let index = UsageIndex::default();
        let spec = json!({"of": {"apiVersion": "g.io/v1", "kind": "K", "resourceSelector": {"matchControllerRef": true}}});
        index.route(&Change { old: None, new: Some(usage("one", &spec)) });
        assert_eq!(index.blocks(&key("g.io", "K", "n", "used")), None);
        assert_eq!(index.lock().selecting.len(), 1);
    }
}
