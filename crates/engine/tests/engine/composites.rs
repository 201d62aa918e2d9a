//! Composites are composed.

use modelplane_engine::client::ApiClient;
use serde_json::{Value, json};

use crate::support::{ControlPlane, api, apply, condition, engine, eventually, get, list, one_at_a_time};

const MODELPLANE: &str = "modelplane.ai/v1alpha1";
const INFRASTRUCTURE: &str = "infrastructure.modelplane.ai/v1alpha1";
const SYSTEM: &str = "modelplane-system";

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
    let annotation = "crossplane.io/composition-resource-name";
    let objects = list(api, api_version, kind).await;
    let mut keys: Vec<String> = objects
        .iter()
        .map(|object| object["metadata"]["annotations"][annotation].as_str().unwrap_or_default().to_owned())
        .collect();
    keys.sort();
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composite_is_composed_and_reports_it() {
    let _one = one_at_a_time();
    let Some(plane) = ControlPlane::start().await else { return };
    let client = plane.client().await;
    let (api, engine) = (api(&client), engine(&client).await);
    apply(&api, cluster("east")).await;
    // The cluster waits for its class, and is composed again when that appears.
    apply(&api, class()).await;

    let stack = eventually("the serving stack is composed", || async {
        let stack = get(&api, INFRASTRUCTURE, "ServingStack", SYSTEM, "east-stack").await;
        let stacks = list(&api, INFRASTRUCTURE, "ServingStack").await;
        stack.or(stacks.into_iter().next()).filter(|stack| condition(stack, "Synced") == "True")
    })
    .await;
    let owner = &stack["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("InferenceCluster"), &json!(true)));
    assert_eq!(stack["metadata"]["labels"]["crossplane.io/composite"], "east");
    let releases = eventually("all releases are composed", || async {
        let keys = keys(&api, "helm.m.crossplane.io/v1beta1", "Release").await;
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
        let usages = list(&api, "protection.crossplane.io/v1beta1", "Usage").await;
        let ready = usages.iter().filter(|usage| condition(usage, "Ready") == "True").count();
        (usages.len() > 10 && ready == usages.len()).then_some(())
    })
    .await;
    engine.shutdown().await;
}
