//! Composites are composed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use modelplane_core::compose::{self, Composition};
use modelplane_core::contract::{ComposeError, Desired, Observed};
use modelplane_engine::client::ApiClient;
use modelplane_engine::composite::pipeline::Functions;
use serde_json::{Value, json};

use crate::support::{
    Clusters, INFRASTRUCTURE, MODELPLANE, RELEASES, RESOURCE_NAME, SYSTEM, USAGES, apply, client, collecting,
    condition, config, engine, eventually, get, list, one_at_a_time, server,
};

fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": MODELPLANE, "kind": "InferenceCluster", "metadata": {"name": name},
        "spec": {
            "cluster": {"source": "Existing", "existing": {"secretRef": {"name": format!("{name}-kubeconfig")}}},
            "nodePools": [{"name": "l40s", "className": "l40s-1x", "nodeCount": 4}],
        },
    })
}

fn class() -> Value {
    json!({
        "apiVersion": MODELPLANE, "kind": "InferenceClass", "metadata": {"name": "l40s-1x"},
        "spec": {"devices": [{
            "name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com", "count": 1,
            "capacity": {"memory": {"value": "46068Mi"}},
        }]},
    })
}

async fn keys(api: &ApiClient, api_version: &str, kind: &str) -> Vec<String> {
    let objects = list(api, api_version, kind).await;
    let key = |object: &Value| {
        object["metadata"]["annotations"][RESOURCE_NAME].as_str().unwrap_or_default().to_owned()
    };
    let mut keys: Vec<String> = objects.iter().map(key).collect();
    keys.sort();
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composite_is_composed_and_reports_it() {
    let server = server().await;
    composed_and_reported(&client(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composite_is_composed_on_a_real_api_server() {
    let _one = one_at_a_time().await;
    let Some((_plane, client)) = collecting().await else { return };
    composed_and_reported(&client).await;
}

async fn composed_and_reported(client: &kube::Client) {
    let (api, engine) = (ApiClient::new(client.clone()), engine(config(client, &Clusters::default())).await);
    apply(&api, cluster("east")).await;
    // The cluster waits for its class, and is composed again when that appears.
    apply(&api, class()).await;

    let stack = eventually("the serving stack is composed", || async {
        let stacks = list(&api, INFRASTRUCTURE, "ServingStack").await;
        stacks.into_iter().next().filter(|stack| condition(stack, "Synced") == "True")
    })
    .await;
    assert_eq!(stack["metadata"]["namespace"], SYSTEM);
    let owner = &stack["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("InferenceCluster"), &json!(true)));
    assert_eq!(stack["metadata"]["labels"]["crossplane.io/composite"], "east");
    let releases = eventually("all releases are composed", || async {
        let keys = keys(&api, RELEASES, "Release").await;
        (keys.len() == 8).then_some(keys)
    })
    .await;
    assert!(releases.contains(&"envoy-gateway".to_owned()));
    let east = eventually("the cluster reports", || async {
        let cluster = get(&api, MODELPLANE, "InferenceCluster", "", "east").await?;
        // Its stack cannot be installed: there is no kubeconfig.
        (condition(&cluster, "ClusterReady") == "True" && condition(&cluster, "Ready") == "False")
            .then_some(cluster)
    })
    .await;
    assert_eq!(condition(&east, "Synced"), "True");
    assert_eq!(condition(&east, "Responsive"), "True");
    assert_eq!(east["spec"]["crossplane"]["compositionRef"]["name"], "inferenceclusters.modelplane.ai");
    assert_eq!(east["metadata"]["finalizers"], json!(["composite.apiextensions.crossplane.io"]));
    eventually("usages are resolved", || async {
        let usages = list(&api, USAGES, "Usage").await;
        let ready = usages.iter().filter(|usage| condition(usage, "Ready") == "True").count();
        (usages.len() > 10 && ready == usages.len()).then_some(())
    })
    .await;
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_composite_is_left_alone() {
    let server = server().await;
    let client = client(&server);
    let (api, engine) = (ApiClient::new(client.clone()), engine(config(&client, &Clusters::default())).await);
    apply(&api, class()).await;
    let mut paused = cluster("east");
    paused["metadata"]["annotations"]["crossplane.io/paused"] = json!("true");
    apply(&api, paused).await;
    let east = eventually("the cluster says it is paused", || async {
        get(&api, MODELPLANE, "InferenceCluster", "", "east")
            .await
            .filter(|east| condition(east, "Synced") == "False")
    })
    .await;
    assert!(east["metadata"].get("finalizers").is_none());
    assert!(list(&api, INFRASTRUCTURE, "ServingStack").await.is_empty());
    apply(&api, cluster("east")).await;
    eventually("it goes on", || async { list(&api, INFRASTRUCTURE, "ServingStack").await.pop() }).await;
    engine.shutdown().await;
}

/// Clusters fail to be composed while this is set.
static BROKEN: AtomicBool = AtomicBool::new(false);

struct Breakable;

impl Functions for Breakable {
    fn steps(&self, api_version: &str, kind: &str) -> Vec<Composition> {
        fn broken<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
            match BROKEN.load(Ordering::Relaxed) {
                true => Err(observed.error("broken on purpose")),
                false => Ok(Desired::starting_from(observed)),
            }
        }
        let mut steps = compose::pipeline(api_version, kind);
        if kind == "InferenceCluster" {
            steps.push(broken);
        }
        steps
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_composition_deletes_nothing() {
    let server = server().await;
    let client = client(&server);
    let mut config = config(&client, &Clusters::default());
    config.functions = Arc::new(Breakable);
    let (api, engine) = (ApiClient::new(client.clone()), engine(config).await);
    apply(&api, class()).await;
    apply(&api, cluster("east")).await;
    let synced = |status: &'static str| {
        let api = api.clone();
        move || {
            let api = api.clone();
            async move {
                let east = get(&api, MODELPLANE, "InferenceCluster", "", "east").await?;
                (condition(&east, "Synced") == status).then_some(east)
            }
        }
    };
    eventually("it is composed", || async { list(&api, INFRASTRUCTURE, "ServingStack").await.pop() }).await;
    eventually("it is synced", synced("True")).await;
    BROKEN.store(true, Ordering::Relaxed);
    let mut changed = cluster("east");
    changed["metadata"]["labels"]["touched"] = json!("yes");
    apply(&api, changed.clone()).await;
    let east = eventually("it says that it failed", synced("False")).await;
    let conditions = east["status"]["conditions"].as_array().unwrap();
    let message = &conditions.iter().find(|condition| condition["type"] == "Synced").unwrap()["message"];
    assert!(message.as_str().unwrap().contains("broken on purpose"), "{message}");
    assert_eq!(condition(&east, "ClusterReady"), "Unknown");
    assert_eq!(list(&api, INFRASTRUCTURE, "ServingStack").await.len(), 1);
    assert_eq!(list(&api, OBJECT_CONFIG.0, OBJECT_CONFIG.1).await.len(), 1);
    BROKEN.store(false, Ordering::Relaxed);
    changed["metadata"]["labels"]["touched"] = json!("again");
    apply(&api, changed).await;
    eventually("it recovers", synced("True")).await;
    engine.shutdown().await;
}

const OBJECT_CONFIG: (&str, &str) = ("kubernetes.m.crossplane.io/v1alpha1", "ClusterProviderConfig");
