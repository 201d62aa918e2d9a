//! A fleet of clusters, and a model on it.

use modelplane_engine::Engine;
use modelplane_engine::client::ApiClient;
use serde_json::{Value, json};

use crate::player::Player;
use crate::support::{
    Cluster, Clusters, MODELPLANE, OBJECTS, RELEASES, apply, client, collecting, condition, config, engine,
    eventually, example, get, list, namespace, one_at_a_time, server,
};

/// A fleet of two clusters with an engine.
pub(crate) struct Fleet {
    pub(crate) api: ApiClient,
    pub(crate) engine: Engine,
    pub(crate) clusters: Clusters,
    pub(crate) west: Cluster,
    pub(crate) east: Cluster,
    _player: Player,
}

const CLUSTERS: [&str; 2] = ["dc-west", "dc-east"];

impl Fleet {
    /// Starts one on a control plane.
    pub(crate) async fn start(client: &kube::Client) -> Self {
        let (api, clusters) = (ApiClient::new(client.clone()), Clusters::default());
        let (west, east) = (clusters.start(&api, CLUSTERS[0]).await, clusters.start(&api, CLUSTERS[1]).await);
        let engine = engine(config(client, &clusters)).await;
        namespace(&api, "ml-team").await;
        let player = Player::start(api.clone());
        Self { api, engine, clusters, west, east, _player: player }
    }

    /// Applies the platform of an example, its first cluster twice.
    pub(crate) async fn platform(&self) {
        for mut object in example("canary") {
            if object["kind"] == "ModelDeployment" || object["kind"] == "ModelService" {
                continue;
            }
            apply(&self.api, object.clone()).await;
            if object["kind"] == "InferenceCluster" {
                object["metadata"]["name"] = json!(CLUSTERS[1]);
                object["spec"]["cluster"]["existing"]["secretRef"]["name"] = json!("dc-east-kubeconfig");
                apply(&self.api, object).await;
            }
        }
    }

    pub(crate) async fn ready(&self, kind: &str, namespace: &str, name: &str) -> Value {
        eventually(&format!("{kind} {name} is ready"), || async {
            let object = get(&self.api, MODELPLANE, kind, namespace, name).await?;
            (condition(&object, "Ready") == "True").then_some(object)
        })
        .await
    }

    pub(crate) async fn replicas(&self) -> Vec<String> {
        let mut names: Vec<String> = list(&self.api, MODELPLANE, "ModelReplica")
            .await
            .iter()
            .filter(|replica| replica["metadata"].get("deletionTimestamp").is_none())
            .map(|replica| replica["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }
}

/// A deployment of the example with that many replicas.
pub(crate) fn deployment(replicas: usize) -> Value {
    let mut found = example("canary").into_iter().find(|object| object["kind"] == "ModelDeployment").unwrap();
    found["spec"]["replicas"] = json!(replicas);
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_becomes_ready_and_serves_a_model() {
    let server = server().await;
    let fleet = Fleet::start(&client(&server)).await;
    fleet.platform().await;
    for cluster in CLUSTERS {
        fleet.ready("InferenceCluster", "", cluster).await;
    }
    fleet.ready("InferenceGateway", "", "default").await;
    let releases = list(&fleet.api, RELEASES, "Release").await;
    let label = "modelplane.ai/simulated";
    assert!(releases.iter().all(|release| release["metadata"]["labels"][label] == "true"));

    apply(&fleet.api, deployment(3)).await;
    let stable = fleet.ready("ModelDeployment", "ml-team", "qwen-stable").await;
    assert_eq!(stable["status"]["replicas"]["ready"], 3, "{}", stable["status"]);
    assert_eq!(fleet.replicas().await.len(), 3);
    let mut deployed = 0;
    for cluster in [&fleet.west, &fleet.east] {
        let deployments = list(&cluster.api, "apps/v1", "Deployment").await;
        let serving = |deployment: &&Value| {
            deployment["spec"]["template"]["spec"]["containers"][0]["image"]
                .as_str()
                .unwrap()
                .contains("vllm")
        };
        deployed += deployments.iter().filter(serving).count();
    }
    assert_eq!(deployed, 3);
    fleet.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_at_any_time_loses_nothing() {
    let server = server().await;
    let client = client(&server);
    let mut fleet = Fleet::start(&client).await;
    fleet.platform().await;
    apply(&fleet.api, deployment(3)).await;
    // Each engine gets a little further than the one before.
    for round in 1..6_u64 {
        tokio::time::sleep(std::time::Duration::from_millis(60 * round)).await;
        let next = engine(config(&client, &fleet.clusters)).await;
        std::mem::replace(&mut fleet.engine, next).shutdown().await;
    }
    fleet.ready("ModelDeployment", "ml-team", "qwen-stable").await;
    assert_eq!(fleet.replicas().await.len(), 3);
    let before = names(&fleet.api).await;
    let next = engine(config(&client, &fleet.clusters)).await;
    std::mem::replace(&mut fleet.engine, next).shutdown().await;
    let mut touched = deployment(3);
    touched["metadata"]["labels"]["touched"] = json!("yes");
    apply(&fleet.api, touched).await;
    fleet.ready("ModelDeployment", "ml-team", "qwen-stable").await;
    assert_eq!(names(&fleet.api).await, before, "nothing was composed twice");
    fleet.engine.shutdown().await;
}

async fn names(api: &ApiClient) -> Vec<String> {
    let mut names = Vec::new();
    for (api_version, kind) in [(OBJECTS, "Object"), (RELEASES, "Release"), (MODELPLANE, "ModelReplica")] {
        let objects = list(api, api_version, kind).await;
        names.extend(objects.iter().map(|object| format!("{kind}/{}", object["metadata"]["name"])));
    }
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn scaling_down_removes_replicas_from_their_clusters() {
    let server = server().await;
    scale_down(&client(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scaling_down_removes_replicas_on_a_real_api_server() {
    let _one = one_at_a_time().await;
    let Some((_plane, client)) = collecting().await else { return };
    scale_down(&client).await;
}

async fn scale_down(client: &kube::Client) {
    let fleet = Fleet::start(client).await;
    fleet.platform().await;
    apply(&fleet.api, deployment(3)).await;
    fleet.ready("ModelDeployment", "ml-team", "qwen-stable").await;
    let before = fleet.replicas().await;
    apply(&fleet.api, deployment(1)).await;
    let after = eventually("two replicas are gone", || async {
        let after = fleet.replicas().await;
        (after.len() == 1).then_some(after)
    })
    .await;
    assert!(before.contains(&after[0]));
    eventually("their workloads are gone", || async {
        let mut left = 0;
        for cluster in [&fleet.west, &fleet.east] {
            for deployment in list(&cluster.api, "apps/v1", "Deployment").await {
                left += usize::from(deployment.to_string().contains("vllm-openai"));
            }
        }
        (left == 1).then_some(())
    })
    .await;
    fleet.engine.shutdown().await;
}
