//! The driver of objects on one cluster.

use modelplane_engine::client::ApiClient;
use serde_json::{Value, json};

use crate::support::{
    Clusters, OBJECTS, SYSTEM, apply, client, condition, config, delete, engine, eventually, get, namespace,
    server,
};

fn provider_config(name: &str, identity: Option<&str>) -> Value {
    let secret = json!({"namespace": SYSTEM, "name": format!("{name}-kubeconfig"), "key": "kubeconfig"});
    let mut object = json!({
        "apiVersion": OBJECTS, "kind": "ClusterProviderConfig", "metadata": {"name": name},
        "spec": {"credentials": {"source": "Secret", "secretRef": secret}},
    });
    if let Some(identity) = identity {
        object["spec"]["identity"] = json!({"type": identity, "source": "Secret"});
    }
    object
}

fn object(name: &str, cluster: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": OBJECTS, "kind": "Object", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "providerConfigRef": {"kind": "ClusterProviderConfig", "name": cluster},
            "forProvider": {"manifest": {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}, "data": {"a": "1"},
            }},
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

async fn config_map(api: &ApiClient, name: &str) -> Option<Value> {
    get(api, "v1", "ConfigMap", "default", name).await
}

async fn until(api: &ApiClient, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    eventually(what, || async {
        get(api, OBJECTS, "Object", "default", name).await.filter(|object| holds(object))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_follows_its_manifest_and_its_cluster() {
    let server = server().await;
    let client = client(&server);
    let (api, clusters) = (ApiClient::new(client.clone()), Clusters::default());
    let cluster = clusters.start(&api, "one").await;
    let engine = engine(config(&client, &clusters)).await;
    namespace(&api, "default").await;
    // Everything may come in any order.
    let query = json!({"readiness": {"policy": "DeriveFromCelQuery", "celQuery": "object.data.a == '3'"}});
    apply(&api, object("a", "one", query.clone())).await;
    until(&api, "a", "it misses its provider config", |object| condition(object, "Synced") == "False").await;
    apply(&api, provider_config("one", None)).await;
    let created = until(&api, "a", "it is created", |object| condition(object, "Synced") == "True").await;
    assert_eq!(created["status"]["atProvider"]["manifest"]["data"], json!({"a": "1"}));
    assert_eq!(condition(&created, "Ready"), "False", "the query does not hold");
    assert_eq!(created["metadata"]["annotations"]["crossplane.io/external-name"], "a");

    let mut changed = object("a", "one", query);
    changed["spec"]["forProvider"]["manifest"]["data"]["a"] = json!("3");
    apply(&api, changed).await;
    until(&api, "a", "it follows its manifest", |object| condition(object, "Ready") == "True").await;

    // Drift is seen by the watch and put right.
    let drifted = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"a": "9"}});
    apply(&cluster.api, drifted).await;
    eventually("drift is put right", || async {
        config_map(&cluster.api, "a").await.filter(|found| found["data"]["a"] == "3")
    })
    .await;

    delete(&api, OBJECTS, "Object", "default", "a").await;
    eventually("it is gone from the cluster", || async {
        config_map(&cluster.api, "a").await.is_none().then_some(())
    })
    .await;
    eventually("and itself", || async {
        get(&api, OBJECTS, "Object", "default", "a").await.is_none().then_some(())
    })
    .await;
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_keep_what_may_not_be_touched() {
    let server = server().await;
    let client = client(&server);
    let (api, clusters) = (ApiClient::new(client.clone()), Clusters::default());
    let cluster = clusters.start(&api, "one").await;
    let engine = engine(config(&client, &clusters)).await;
    apply(&api, provider_config("one", None)).await;
    apply(&api, object("orphan", "one", json!({"managementPolicies": ["Observe", "Create", "Update"]})))
        .await;
    apply(&api, object("watched", "one", json!({"managementPolicies": ["Observe"]}))).await;
    until(&api, "orphan", "it is created", |object| condition(object, "Ready") == "True").await;
    until(&api, "watched", "it may not be created", |object| condition(object, "Synced") == "False").await;
    assert!(config_map(&cluster.api, "watched").await.is_none());
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "watched", "namespace": "default"}, "data": {"a": "theirs"}});
    apply(&cluster.api, theirs).await;
    let watched =
        until(&api, "watched", "it is observed", |object| condition(object, "Ready") == "True").await;
    assert_eq!(watched["status"]["atProvider"]["manifest"]["data"]["a"], "theirs");
    for name in ["orphan", "watched"] {
        delete(&api, OBJECTS, "Object", "default", name).await;
        eventually("it is gone", || async {
            get(&api, OBJECTS, "Object", "default", name).await.is_none().then_some(())
        })
        .await;
        assert!(config_map(&cluster.api, name).await.is_some(), "{name} stays on the cluster");
    }
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_changes_leads_to_the_other_cluster() {
    let server = server().await;
    let client = client(&server);
    let (api, clusters) = (ApiClient::new(client.clone()), Clusters::default());
    let (one, two) = (clusters.start(&api, "one").await, clusters.start(&api, "two").await);
    let engine = engine(config(&client, &clusters)).await;
    apply(&api, provider_config("one", None)).await;
    apply(&api, object("a", "one", json!({}))).await;
    eventually("it is on the first", || config_map(&one.api, "a")).await;
    let mut secret = get(&api, "v1", "Secret", SYSTEM, "two-kubeconfig").await.unwrap();
    let data = secret["data"].take();
    apply(&api, json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one-kubeconfig", "namespace": SYSTEM}, "data": data,
    }))
    .await;
    eventually("it is on the second", || config_map(&two.api, "a")).await;
    engine.shutdown().await;
}
