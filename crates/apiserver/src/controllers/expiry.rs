//! What goes away with time: Events an hour after they last happened, and the store's old history.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use modelplane_store::{ListRequest, Write};
use serde_json::Value;

use super::{Stop, stopped};
use crate::core::Core;

const INTERVAL: Duration = Duration::from_secs(60);
/// As of `kube-apiserver --event-ttl`.
const EVENT_AGE: Duration = Duration::from_secs(60 * 60);
const EVENTS: [&str; 2] = ["core/events/", "events.k8s.io/events/"];

/// The fields that say when an event happened.
const TIMES: [&str; 5] = [
    "/series/lastObservedTime",
    "/lastTimestamp",
    "/eventTime",
    "/firstTimestamp",
    "/metadata/creationTimestamp",
];

/// Removes what has expired until told to stop.
pub(super) async fn run(core: Arc<Core>, mut stop: Stop) {
    let mut timer = tokio::time::interval(INTERVAL);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stopped(&mut stop) => return,
            _ = timer.tick() => {}
        }
        expire_events(&core, Timestamp::now()).await;
        if let Err(error) = core.store.compact().await {
            tracing::warn!(%error, "old history remains");
        }
    }
}

/// Removes the events that are over as of `now`.
pub(super) async fn expire_events(core: &Core, now: Timestamp) {
    let Ok(limit) = now.checked_sub(EVENT_AGE) else { return };
    for prefix in EVENTS {
        let request = ListRequest { prefix, ..ListRequest::default() };
        let Ok(page) = core.store.list(request) else { return };
        for entry in page.entries {
            let happened = serde_json::from_slice(&entry.value).ok().and_then(|event| last_time(&event));
            if happened.is_none_or(|happened| happened >= limit) {
                continue;
            }
            // Written to the store, as a lease that runs out would be, since nobody asked for the deletion.
            let (key, expected) = (entry.key.to_string(), Some(entry.modified));
            if let Err(Some(error)) = core.write(Write::Delete { key, expected, last: entry.value }).await {
                tracing::warn!(key = %entry.key, %error, "an event has expired and remains");
            }
        }
    }
}

fn last_time(event: &Value) -> Option<Timestamp> {
    let times = TIMES.iter().filter_map(|field| event.pointer(field)?.as_str()?.parse().ok());
    times.max()
}
