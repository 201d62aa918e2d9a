//! The host's say in deletions, as an admission webhook for `DELETE` would have it.

use std::fmt;

use serde_json::Value;

use crate::identity::Identity;

/// A deletion that is about to be accepted: its caller is authorized and its preconditions hold.
#[derive(Debug, Clone, Copy)]
pub struct Deletion<'a> {
    /// The API group; empty for the legacy group.
    pub group: &'a str,
    /// The plural.
    pub resource: &'a str,
    /// `None` for cluster-scoped objects.
    pub namespace: Option<&'a str>,
    /// The object's name.
    pub name: &'a str,
    /// The object as it is stored, with its `resourceVersion`; `apiVersion` is the storage version.
    pub object: &'a Value,
    /// `Background`, `Foreground` or `Orphan`, if the request says so.
    pub propagation: Option<&'static str>,
    /// Who deletes; the server's own garbage collector and namespace controller too.
    pub identity: &'a Identity,
    /// Nothing will be deleted.
    pub dry_run: bool,
}

/// Decides which objects may be deleted.
pub trait DeletionGuard: fmt::Debug + Send + Sync {
    /// Why not; the client gets it as the message of a 409 Conflict. `None` lets the object go.
    ///
    /// Asked for each object of a `DELETE`, also of a collection, unless it is being deleted already. Must be quick
    /// and must not wait for the server; it is called on a task of the runtime.
    fn refusal(&self, deletion: &Deletion<'_>) -> Option<String>;
}
