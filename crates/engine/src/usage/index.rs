//! Which objects are in use, and which usages a change concerns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use modelplane_core::simulate::ObjectKey;
use serde::Deserialize;

use super::{Deletion, DeletionGuard, GROUP, KINDS, Protection};
use crate::cache::Change;
use crate::composite::relevance::differs;
use crate::object::{Stored, group, key};
use crate::queue::WorkQueue;

/// What a usage reads of the objects it names or selects. Their specs and statuses, which change all the time, are
/// none of it.
const READ: &[&[&str]] = &[
    &["metadata", "uid"],
    &["metadata", "labels"],
    &["metadata", "annotations"],
    &["metadata", "finalizers"],
    &["metadata", "ownerReferences"],
    &["metadata", "deletionTimestamp"],
];

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
    /// Usages whose selectors are to be resolved, by what the objects they select have.
    selecting: HashMap<Selecting, BTreeSet<ObjectKey>>,
    /// Refused deletions that are not noted on the object yet, with their policy.
    attempts: HashMap<ObjectKey, String>,
    /// What usages that are gone protected, and whether a refused deletion of it is to be repeated.
    freed: HashMap<ObjectKey, (ObjectKey, bool)>,
    /// Objects in use whose deletion has begun, and the queues of whoever waits for them to be free.
    held: HashMap<ObjectKey, WorkQueue>,
}

/// What part of a selector objects are looked up by. A fleet has thousands of usages that select the same kind by the
/// same labels, each among what its own composite composed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Selecting {
    group: String,
    kind: String,
    by: Handle,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Handle {
    /// The uid of the object's controller.
    Controller(String),
    /// One of the object's labels.
    Label(String, String),
    Any,
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
    /// Uid of the usage's controller.
    controller: Option<String>,
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
            controller: usage.controller().map(|owner| owner.uid.to_owned()),
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

    fn selecting(&self, controller: Option<&str>) -> Selecting {
        let selector = self.selector.as_ref();
        let is_composed = selector.and_then(|selector| selector.match_controller_ref) == Some(true);
        let label = selector.and_then(|selector| selector.match_labels.first_key_value());
        let by = match (controller.filter(|_| is_composed), label) {
            (Some(controller), _) => Handle::Controller(controller.to_owned()),
            (None, Some((key, value))) => Handle::Label(key.clone(), value.clone()),
            (None, None) => Handle::Any,
        };
        Selecting { group: group(&self.api_version).to_owned(), kind: self.kind.clone(), by }
    }
}

impl Selecting {
    /// Everything an object may be selected by.
    fn all_of(object: &Stored) -> impl Iterator<Item = Self> {
        let labels: Option<BTreeMap<String, String>> =
            object.document().decode_at(&["metadata", "labels"]).ok().flatten();
        let labels = labels.unwrap_or_default().into_iter().map(|(key, value)| Handle::Label(key, value));
        let controller = object.controller().map(|owner| Handle::Controller(owner.uid.to_owned()));
        let (group, kind) = (object.key.group.clone(), object.key.kind.clone());
        let handles = labels.chain(controller).chain([Handle::Any]);
        handles.map(move |by| Self { group: group.clone(), kind: kind.clone(), by })
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
        let is_usage = object.key.group == GROUP && KINDS.contains(&object.key.kind.as_str());
        let matters = differs(change, READ) || is_usage && differs(change, &[&["spec"]]);
        if !matters {
            return;
        }
        let mut inner = self.lock();
        let mut concerned: BTreeSet<ObjectKey> = BTreeSet::new();
        let mut released = None;
        if is_usage {
            let updated = inner.update(change);
            concerned.extend(updated.others);
            concerned.insert(object.key.clone());
            released = updated.released;
        } else {
            concerned.extend(inner.named.get(&object.key).into_iter().flatten().cloned());
            if !inner.selecting.is_empty() {
                let usages = Selecting::all_of(object).filter_map(|by| inner.selecting.get(&by)).flatten();
                concerned.extend(usages.cloned());
            }
        }
        drop(inner);
        concerned.into_iter().for_each(|usage| self.queue.add(usage));
        if let Some((object, queue)) = released {
            queue.add(object);
        }
    }

    /// Why the object may not be deleted, if it is in use.
    pub fn blocks(&self, object: &ObjectKey) -> Option<InUse> {
        self.lock().in_use(object)
    }

    /// Why the deletion of the object, which has begun, has to wait; nothing if deletions are refused. Once the object
    /// is free it is put into `queue`: nothing about itself need change then.
    pub fn holds(&self, object: &ObjectKey, queue: &WorkQueue) -> Option<InUse> {
        if self.protection == Protection::Guard {
            return None;
        }
        let mut inner = self.lock();
        let in_use = inner.in_use(object)?;
        inner.held.insert(object.clone(), queue.clone());
        Some(in_use)
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

/// What follows from a usage that came, changed or went.
#[derive(Debug, Default)]
struct Updated {
    /// The other usages of the object it protected.
    others: Vec<ObjectKey>,
    /// That object, if it is free now and somebody waits for it.
    released: Option<(ObjectKey, WorkQueue)>,
}

impl Inner {
    /// Takes a usage as it is now.
    fn update(&mut self, change: &Change) -> Updated {
        let Some(usage) = change.key().cloned() else { return Updated::default() };
        let before = self.usages.remove(&usage);
        if let Some(before) = &before {
            self.unlink(&usage, before);
        }
        if let Some(parties) = change.new.as_ref().and_then(|new| Parties::of(new)) {
            self.link(&usage, &parties);
            self.usages.insert(usage.clone(), parties);
        }
        let Some(used) = before.as_ref().and_then(|before| before.of.key()) else {
            return Updated::default();
        };
        if change.new.is_none() {
            let replay = before.is_some_and(|before| before.replay);
            self.freed.insert(usage, (used.clone(), replay));
        }
        match self.protected.get(&used) {
            Some(others) => Updated { others: others.iter().cloned().collect(), released: None },
            None => Updated { others: Vec::new(), released: self.held.remove_entry(&used) },
        }
    }

    fn link(&mut self, usage: &ObjectKey, parties: &Parties) {
        if let Some(used) = parties.of.key() {
            self.protected.entry(used).or_default().insert(usage.clone());
        }
        for party in std::iter::once(&parties.of).chain(&parties.by) {
            match party.key() {
                Some(object) => self.named.entry(object).or_default().insert(usage.clone()),
                None => {
                    let selecting = party.selecting(parties.controller.as_deref());
                    self.selecting.entry(selecting).or_default().insert(usage.clone())
                }
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
                None => {
                    let selecting = party.selecting(parties.controller.as_deref());
                    remove(&mut self.selecting, &selecting, usage);
                }
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
        assert_eq!(index.holds(&used, &WorkQueue::default()), None, "the API server refuses it");
        for old in [one, two] {
            index.route(&Change { old: Some(old), new: None });
        }
        assert_eq!(index.blocks(&used), None);
        assert_eq!(index.take_freed(&key(GROUP, "Usage", "n", "two")), Some((used, true)));
        let inner = index.lock();
        assert!(inner.named.is_empty() && inner.protected.is_empty() && inner.usages.is_empty());
    }

    #[test]
    fn who_waits_for_an_object_is_told_when_its_last_usage_is_gone() {
        let index = UsageIndex::new(Protection::Finalizer);
        let queue = WorkQueue::default();
        let used = key("g.io", "K", "n", "used");
        assert_eq!(index.holds(&used, &queue), None);
        let (one, two) = (usage("one", &spec("used")), usage("two", &spec("used")));
        for new in [&one, &two] {
            index.route(&Change { old: None, new: Some(Arc::clone(new)) });
        }
        assert_eq!(index.holds(&used, &queue).map(|in_use| in_use.count), Some(2));
        index.route(&Change { old: Some(one), new: None });
        assert_eq!(queue.depth(), 0, "one usage is left");
        index.route(&Change { old: Some(Arc::clone(&two)), new: Some(usage("two", &spec("other"))) });
        assert_eq!(queue.depth(), 1, "the last one protects something else now");
        assert_eq!(index.holds(&used, &queue), None);
        assert!(index.lock().held.is_empty());
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

    fn object(kind: &str, name: &str, metadata: Value, rest: Value) -> Arc<Stored> {
        let mut object = json!({
            "apiVersion": "g.io/v1", "kind": kind, "metadata": {"name": name, "namespace": "n", "uid": name},
            "status": rest,
        });
        object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        Arc::new(Stored::from_value(object).unwrap())
    }

    /// The usages that a change puts into the queue.
    async fn concerned(
        index: &UsageIndex,
        old: Option<&Arc<Stored>>,
        new: Option<&Arc<Stored>>,
    ) -> Vec<String> {
        index.route(&Change { old: old.cloned(), new: new.cloned() });
        let mut found = Vec::new();
        while index.queue.depth() > 0 {
            let usage = index.queue.next().await.unwrap();
            index.queue.done(&usage);
            found.push(usage.name.clone());
        }
        found
    }

    #[tokio::test]
    async fn a_change_concerns_the_usages_that_name_or_may_select_the_object() {
        let index = UsageIndex::default();
        let owner = |uid: &str| json!([{"apiVersion": "o/v1", "kind": "O", "name": uid, "uid": uid, "controller": true}]);
        let selecting = |name: &str, uid: &str, selector: Value| {
            let spec = json!({"of": {"apiVersion": "g.io/v1", "kind": "K", "resourceSelector": selector}});
            let mut usage = usage(name, &spec).value();
            usage["metadata"]["ownerReferences"] = owner(uid);
            Arc::new(Stored::from_value(usage).unwrap())
        };
        let usages = [
            usage("names", &spec("used")),
            selecting("composed-with", "c1", json!({"matchControllerRef": true, "matchLabels": {"a": "b"}})),
            selecting("elsewhere", "c2", json!({"matchControllerRef": true, "matchLabels": {"a": "b"}})),
            selecting("labelled", "c3", json!({"matchLabels": {"a": "b"}})),
            selecting("anything", "c4", json!({})),
        ];
        for usage in &usages {
            index.route(&Change { old: None, new: Some(Arc::clone(usage)) });
        }
        while index.queue.depth() > 0 {
            index.queue.done(&index.queue.next().await.unwrap());
        }
        let labelled = json!({"labels": {"a": "b"}, "ownerReferences": owner("c1")});
        let composed = object("K", "x", labelled.clone(), json!({}));
        for (name, old, new, expected) in [
            ("one of a composite", None, Some(&composed), &["anything", "composed-with", "labelled"][..]),
            ("a named one", None, Some(&object("K", "used", json!({}), json!({}))), &["anything", "names"]),
            ("another kind", None, Some(&object("L", "x", labelled.clone(), json!({}))), &[]),
            (
                "its status",
                Some(&object("K", "used", json!({}), json!({}))),
                Some(&object("K", "used", json!({}), json!(1))),
                &[],
            ),
            (
                "its labels",
                Some(&object("K", "x", json!({}), json!({}))),
                Some(&composed),
                &["anything", "composed-with", "labelled"],
            ),
            ("its end", Some(&object("K", "used", json!({}), json!({}))), None, &["anything", "names"]),
        ] {
            assert_eq!(concerned(&index, old, new).await, expected, "{name}");
        }
        let mut reported = usages[0].value();
        reported["status"] = json!({"conditions": []});
        let reported = Arc::new(Stored::from_value(reported).unwrap());
        assert_eq!(concerned(&index, Some(&usages[0]), Some(&reported)).await, [""; 0], "its own status");
        for usage in usages {
            index.route(&Change { old: Some(usage), new: None });
        }
        assert!(index.lock().selecting.is_empty());
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
