//! Aggregated roles: writes the rules of the selected cluster roles into those with an `aggregationRule`, for
//! people to read; decisions follow the selectors themselves and do not wait for this.

use std::sync::Arc;

use serde_json::{Value, json};

use super::client::Client;
use super::feed::{Change, Feed};
use super::{Stop, stopped};
use crate::access::{GROUP, rules_of};
use crate::core::Core;

const NAME: &str = "clusterrole-aggregation-controller";

/// Keeps aggregated roles up to date until told to stop.
pub(super) async fn run(core: Arc<Core>, mut stop: Stop) {
    let prefix = format!("{GROUP}/clusterroles/");
    let mut feed = Feed::new(&core.store, prefix.clone());
    let client = Client::new(core, NAME);
    loop {
        tokio::select! {
            () = stopped(&mut stop) => return,
            change = feed.next() => if matches!(change, Change::End) { return },
        }
        let snapshot = client.core().access.snapshot();
        for (name, rules) in snapshot.aggregated() {
            let key = format!("{prefix}{name}");
            let Some(role) = client.read(&key) else { continue };
            if rules_of(&role) == rules {
                continue;
            }
            let version = role.pointer("/metadata/resourceVersion").unwrap_or(&Value::Null);
            let patch = json!({"metadata": {"resourceVersion": version}, "rules": rules});
            if let Err(error) = client.merge(&key, &patch).await
                && !error.is_outdated()
            {
                tracing::warn!(%key, %error, "an aggregated role is not up to date");
            }
        }
    }
}
