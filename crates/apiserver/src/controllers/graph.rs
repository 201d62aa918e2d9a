//! Who owns whom: the dependents of each owner, from the `ownerReferences` of all objects.
//!
//! Only objects that name an owner, and owners that are being deleted with their dependents in mind, are kept;
//! whether an owner exists is looked up in the store when it matters.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::Deserialize;

/// The finalizer of an owner whose dependents are to be kept.
pub(super) const ORPHAN: &str = "orphan";
/// The finalizer of an owner that waits for its dependents to go first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// One entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct OwnerReference {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: Arc<str>,
    #[serde(rename = "blockOwnerDeletion")]
    pub(super) blocks: Option<bool>,
}

/// What garbage collection needs of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub(super) uid: Arc<str>,
    pub(super) owner_references: Option<Vec<OwnerReference>>,
    pub(super) finalizers: Option<Vec<String>>,
    pub(super) deletion_timestamp: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope {
    metadata: Meta,
}

impl Meta {
    /// Reads a stored object; what is no object owns nothing and has no owner.
    pub(super) fn of(stored: &[u8]) -> Meta {
        serde_json::from_slice::<Envelope>(stored).unwrap_or_default().metadata
    }

    pub(super) fn owners(&self) -> &[OwnerReference] {
        self.owner_references.as_deref().unwrap_or_default()
    }

    pub(super) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().flatten().any(|found| found == name)
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Whether the object is being deleted and waits for something to be done about its dependents.
    pub(super) fn waits_for_dependents(&self) -> bool {
        self.is_terminating() && (self.has_finalizer(ORPHAN) || self.has_finalizer(FOREGROUND))
    }
}

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Work {
    /// Whether the object at this key still has an owner.
    Dependent(Arc<str>),
    /// What is left to do for the deletion of the owner with this uid.
    Owner(Arc<str>),
}

/// All ownership.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Objects with owners, by key.
    dependents: HashMap<Arc<str>, Vec<OwnerReference>>,
    /// The keys of an owner's dependents, by its uid.
    by_owner: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// The keys of owners that wait for their dependents, by uid.
    waiting: HashMap<Arc<str>, Arc<str>>,
}

impl Graph {
    /// Takes over an object's new state; says what to look at.
    pub(super) fn put(&mut self, key: &Arc<str>, meta: &Meta) -> Vec<Work> {
        let mut work = Vec::new();
        let before = self.dependents.get(key).cloned().unwrap_or_default();
        let owners = meta.owners();
        if before != owners {
            self.unlink(key, &before, owners, &mut work);
            for owner in owners {
                self.by_owner.entry(Arc::clone(&owner.uid)).or_default().insert(Arc::clone(key));
                self.wake(&owner.uid, &mut work);
            }
            if owners.is_empty() {
                self.dependents.remove(key);
            } else {
                self.dependents.insert(Arc::clone(key), owners.to_vec());
                work.push(Work::Dependent(Arc::clone(key)));
            }
        }
        if meta.waits_for_dependents() {
            self.waiting.insert(Arc::clone(&meta.uid), Arc::clone(key));
            work.push(Work::Owner(Arc::clone(&meta.uid)));
        } else if !self.waiting.is_empty() {
            self.waiting.remove(&meta.uid);
        }
        work
    }

    /// Takes over an object's end; says what to look at.
    pub(super) fn remove(&mut self, key: &Arc<str>, uid: &Arc<str>) -> Vec<Work> {
        let mut work = Vec::new();
        self.waiting.remove(uid);
        if let Some(owners) = self.dependents.remove(key) {
            self.unlink(key, &owners, &[], &mut work);
        }
        let dependents = self.by_owner.get(uid).into_iter().flatten();
        work.extend(dependents.map(|key| Work::Dependent(Arc::clone(key))));
        work
    }

    /// The dependents of an owner, each with whether it blocks the owner's deletion.
    pub(super) fn dependents(&self, uid: &str) -> Vec<(Arc<str>, bool)> {
        let keys = self.by_owner.get(uid).into_iter().flatten();
        keys.map(|key| {
            let owners = self.dependents.get(key).map(Vec::as_slice).unwrap_or_default();
            let blocks = owners.iter().any(|owner| *owner.uid == *uid && owner.blocks == Some(true));
            (Arc::clone(key), blocks)
        })
        .collect()
    }

    /// Where an owner that waits for its dependents is.
    pub(super) fn waiting(&self, uid: &str) -> Option<Arc<str>> {
        self.waiting.get(uid).cloned()
    }

    /// Whether one of an owner's dependents waits for dependents of its own.
    pub(super) fn has_waiting_dependent(&self, uid: &str) -> bool {
        let keys = self.by_owner.get(uid);
        keys.is_some_and(|keys| self.waiting.values().any(|waiting| keys.contains(waiting)))
    }

    /// All objects with owners, to be looked at.
    pub(super) fn all(&self) -> Vec<Work> {
        self.dependents.keys().cloned().map(Work::Dependent).collect()
    }

    fn unlink(
        &mut self,
        key: &Arc<str>,
        owners: &[OwnerReference],
        kept: &[OwnerReference],
        work: &mut Vec<Work>,
    ) {
        for owner in owners {
            if !kept.iter().any(|kept| kept.uid == owner.uid)
                && let Some(keys) = self.by_owner.get_mut(&owner.uid)
            {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_owner.remove(&owner.uid);
                }
            }
            self.wake(&owner.uid, work);
        }
    }

    fn wake(&self, owner: &Arc<str>, work: &mut Vec<Work>) {
        if self.waiting.contains_key(owner) {
            work.push(Work::Owner(Arc::clone(owner)));
        }
    }
}
