//! Plays what runs on a cluster: deployments become available, gateways get an address.

use std::time::Duration;

use modelplane_engine::client::{ApiClient, Target, Write};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Plays until it is dropped.
pub(crate) struct Player(JoinHandle<()>);

impl Drop for Player {
    fn drop(&mut self) {
        self.0.abort();
    }
}

const KINDS: &[(&str, &str)] = &[
    ("apps/v1", "Deployment"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("gateway.networking.k8s.io/v1", "Gateway"),
    ("gateway.networking.k8s.io/v1", "GatewayClass"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("v1", "PersistentVolumeClaim"),
    ("batch/v1", "Job"),
];

impl Player {
    pub(crate) fn start(api: ApiClient) -> Self {
        Self(tokio::spawn(async move {
            loop {
                for (api_version, kind) in KINDS {
                    pass(&api, api_version, kind).await;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }))
    }
}

async fn pass(api: &ApiClient, api_version: &str, kind: &str) {
    let Ok(resource) = api.resource(api_version, kind).await else { return };
    let Ok(list) = api.list(&resource, &Default::default()).await else { return };
    for object in list["items"].as_array().into_iter().flatten() {
        let Some(status) = status(kind, object) else { continue };
        if object["status"] == status {
            continue;
        }
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let target = Target::named(text("namespace"), text("name")).status();
        // Whatever fails is tried again in the next pass.
        let _ = api.write(&resource, &target, Write::Merge, &json!({"status": status})).await;
    }
}

fn status(kind: &str, object: &Value) -> Option<Value> {
    let condition = |condition_type: &str| {
        json!({
            "type": condition_type, "status": "True", "reason": "Played", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let replicas = object["spec"]["replicas"].as_i64().unwrap_or(1);
    Some(match kind {
        "Deployment" => json!({
            "replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "updatedReplicas": replicas,
            "conditions": [{"type": "Available", "status": "True", "reason": "Played"}],
        }),
        "LeaderWorkerSet" => {
            json!({"replicas": replicas, "readyReplicas": replicas, "conditions": [condition("Available")]})
        }
        "Gateway" => json!({
            "addresses": [{"type": "IPAddress", "value": "198.18.0.1"}],
            "conditions": [condition("Accepted"), condition("Programmed")],
        }),
        "GatewayClass" => json!({"conditions": [condition("Accepted")]}),
        "PersistentVolumeClaim" => json!({"phase": "Bound"}),
        "Job" => json!({"succeeded": 1, "conditions": [condition("Complete")]}),
        "HTTPRoute" => {
            let parents = object["spec"]["parentRefs"].as_array().cloned().unwrap_or_default();
            let parent = |parent: Value| json!({"parentRef": parent, "controllerName": "test.io/player", "conditions": [condition("Accepted")]});
            json!({"parents": parents.into_iter().map(parent).collect::<Vec<_>>()})
        }
        _ => return None,
    })
}
