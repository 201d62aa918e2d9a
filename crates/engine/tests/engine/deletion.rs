//! Deletion: in order, and not while something is in use.

use crate::fleet::{Fleet, deployment};
use crate::support::{
    MODELPLANE, OBJECTS, RELEASES, USAGES, apply, client, collecting, delete, eventually, get, leftovers,
    list, one_at_a_time, server,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_stays_until_its_replicas_are_gone_and_leaves_nothing() {
    let server = server().await;
    held_until_free(&client(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_stays_until_its_replicas_are_gone_on_a_real_api_server() {
    let _one = one_at_a_time().await;
    let Some((_plane, client)) = collecting().await else { return };
    held_until_free(&client).await;
}

async fn held_until_free(client: &kube::Client) {
    let fleet = Fleet::start(client).await;
    fleet.platform().await;
    apply(&fleet.api, deployment(3)).await;
    fleet.ready("ModelDeployment", "ml-team", "qwen-stable").await;
    let clusters: Vec<String> = list(&fleet.api, MODELPLANE, "ModelReplica")
        .await
        .iter()
        .map(|replica| replica["spec"]["clusterName"].as_str().unwrap().to_owned())
        .collect();
    let used = clusters[0].as_str();
    eventually("the guard is in force", || async {
        let usages = list(&fleet.api, USAGES, "ClusterUsage").await;
        usages.into_iter().find(|usage| usage["spec"]["of"]["resourceRef"]["name"] == used)
    })
    .await;
    eventually("the cluster is marked", || async {
        let cluster = get(&fleet.api, MODELPLANE, "InferenceCluster", "", used).await?;
        (cluster["metadata"]["labels"]["crossplane.io/in-use"] == "true").then_some(())
    })
    .await;
    delete(&fleet.api, MODELPLANE, "InferenceCluster", "", used).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let cluster = get(&fleet.api, MODELPLANE, "InferenceCluster", "", used).await;
    assert!(
        cluster.is_some_and(|cluster| cluster["metadata"].get("deletionTimestamp").is_some()),
        "it is held"
    );
    delete(&fleet.api, MODELPLANE, "ModelDeployment", "ml-team", "qwen-stable").await;
    eventually("the cluster goes with its last replica", || async {
        get(&fleet.api, MODELPLANE, "InferenceCluster", "", used).await.is_none().then_some(())
    })
    .await;
    for cluster in ["dc-west", "dc-east"] {
        delete(&fleet.api, MODELPLANE, "InferenceCluster", "", cluster).await;
    }
    let mut left = Vec::new();
    for _ in 0..600 {
        left = leftovers(&fleet.api, OBJECTS, "Object").await;
        left.extend(leftovers(&fleet.api, OBJECTS, "ProviderConfig").await);
        let releases = leftovers(&fleet.api, RELEASES, "Release").await;
        left.extend(releases.into_iter().filter(|release| !release.contains("Release \"default-")));
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(
        left.is_empty(),
        "still there:\n{}\n{}",
        left.join("\n"),
        leftovers(&fleet.api, USAGES, "Usage").await.join("\n")
    );
    fleet.engine.shutdown().await;
}
