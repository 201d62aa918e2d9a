//! Usages: one object may not be deleted while another still uses it (`protection.crossplane.io`).
//!
//! [`UsageIndex`] knows which objects are in use. An API server that asks it before every deletion
//! ([`DeletionGuard`]) refuses those of objects in use, as Crossplane's admission webhook does; on one that
//! cannot ask, a finalizer holds them instead ([`Protection::Finalizer`]). [`UsageController`] resolves
//! selectors, ties a usage to the object that uses, and repeats refused deletions.

mod index;
mod reconcile;

pub use self::index::{InUse, UsageIndex};
pub use self::reconcile::UsageController;

/// Finalizer of usages.
pub const FINALIZER: &str = "usage.apiextensions.crossplane.io";
/// Finalizer that holds an object in use where its deletion cannot be refused.
pub const HOLD_FINALIZER: &str = "protection.modelplane.ai/in-use";
/// Label of objects in use.
pub const IN_USE_LABEL: &str = "crossplane.io/in-use";
/// Annotation that says what a usage is about.
pub const DETAILS_ANNOTATION: &str = "crossplane.io/usage-details";
/// Annotation of an object whose deletion was refused, with the propagation policy.
pub const ATTEMPT_ANNOTATION: &str = "usage.crossplane.io/deletion-attempt-with-policy";
/// Group of usages.
pub const GROUP: &str = "protection.crossplane.io";
/// `apiVersion` of usages.
pub const API_VERSION: &str = "protection.crossplane.io/v1beta1";
/// The kinds of usages.
pub const KINDS: [&str; 2] = ["Usage", "ClusterUsage"];

/// How objects in use are protected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protection {
    /// The API server asks before every deletion; it has to be given the index as its [`DeletionGuard`].
    Guard,
    /// A finalizer holds the object: its deletion starts, but does not end. Works on any API server.
    #[default]
    Finalizer,
}

/// A deletion that is about to happen.
#[derive(Debug, Clone, Copy)]
pub struct Deletion<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// Propagation policy: `Background`, `Foreground` or `Orphan`.
    pub policy: &'a str,
}

/// Asked before every deletion; must not block.
pub trait DeletionGuard: Send + Sync {
    /// Why the object may not be deleted now, if so: the API server answers 409 with that.
    fn refusal(&self, deletion: &Deletion<'_>) -> Option<InUse>;
}
