//! Refuses to delete what a Usage protects: the engine knows what is in use, the API server asks.

use std::sync::Arc;

use modelplane_apiserver::{Deletion, DeletionGuard};
use modelplane_core::simulate::ObjectKey;
use modelplane_engine::usage::{self, DeletionGuard as _, UsageIndex};

/// The engine's index of usages, as the API server's guard.
#[derive(Debug)]
pub(super) struct UsageGuard(pub(super) Arc<UsageIndex>);

impl DeletionGuard for UsageGuard {
    fn refusal(&self, deletion: &Deletion<'_>) -> Option<String> {
        let attempt = usage::Deletion {
            group: deletion.group,
            kind: deletion.object["kind"].as_str()?,
            namespace: deletion.namespace.unwrap_or_default(),
            name: deletion.name,
            policy: deletion.propagation.unwrap_or("Background"),
        };
        let in_use = match deletion.dry_run {
            // A trial is not an attempt to be repeated later.
            true => self.0.blocks(&ObjectKey {
                group: attempt.group.to_owned(),
                kind: attempt.kind.to_owned(),
                namespace: attempt.namespace.to_owned(),
                name: attempt.name.to_owned(),
            }),
            false => self.0.refusal(&attempt),
        };
        in_use.map(|in_use| in_use.to_string())
    }
}
