//! An API server that asks before it deletes: what is in use stays, and whoever deletes is told why.

use std::sync::Arc;

use modelplane_apiserver::{ApiServer, Options, Profile};
use modelplane_engine::client::{ApiClient, Propagation, Target};
use modelplane_engine::usage::{Deletion, DeletionGuard as _, Protection, UsageIndex};
use serde_json::json;

use crate::support::{
    Clusters, SYSTEM, USAGES, apply, client, config, delete, engine, eventually, get, namespace,
};

/// The engine's answer in the words of the API server.
#[derive(Debug)]
struct Guard(Arc<UsageIndex>);

impl modelplane_apiserver::DeletionGuard for Guard {
    fn refusal(&self, deletion: &modelplane_apiserver::Deletion<'_>) -> Option<String> {
        let deletion = Deletion {
            group: deletion.group,
            kind: deletion.object["kind"].as_str().unwrap_or_default(),
            namespace: deletion.namespace.unwrap_or_default(),
            name: deletion.name,
            policy: deletion.propagation.unwrap_or("Background"),
        };
        self.0.refusal(&deletion).map(|in_use| in_use.to_string())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_in_use_is_not_deleted_and_goes_once_it_is_free() {
    let usages = Arc::new(UsageIndex::new(Protection::Guard));
    let mut options = Options::in_memory(Profile::Workload);
    options.deletion_guard = Some(Arc::new(Guard(Arc::clone(&usages))));
    let server = ApiServer::start(options).await.unwrap();
    let client = client(&server);
    let mut config = config(&client, &Clusters::default());
    config.usages = usages;
    let engine = engine(config).await;
    let api = ApiClient::new(client);
    namespace(&api, SYSTEM).await;
    for name in ["used", "user"] {
        apply(
            &api,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": SYSTEM}}),
        )
        .await;
    }
    let side = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": name}});
    apply(
        &api,
        json!({
            "apiVersion": USAGES, "kind": "Usage", "metadata": {"name": "one", "namespace": SYSTEM},
            "spec": {"of": side("used"), "by": side("user"), "replayDeletion": true},
        }),
    )
    .await;
    eventually("it is marked as in use", || async {
        let used = get(&api, "v1", "ConfigMap", SYSTEM, "used").await?;
        (used["metadata"]["labels"]["crossplane.io/in-use"] == "true").then_some(())
    })
    .await;
    let resource = api.resource("v1", "ConfigMap").await.unwrap();
    let target = Target::named(SYSTEM, "used");
    let refused = api.delete(&resource, &target, None, Propagation::Background).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    let message = refused.to_string();
    for part in ["in use by 1 usage", "Usage modelplane-system/one", "ConfigMap/user uses ConfigMap/used"] {
        assert!(message.contains(part), "{part:?} in {message}");
    }
    let used = get(&api, "v1", "ConfigMap", SYSTEM, "used").await.unwrap();
    assert!(used["metadata"].get("deletionTimestamp").is_none(), "its deletion has not even begun");
    delete(&api, USAGES, "Usage", SYSTEM, "one").await;
    eventually("the refused deletion is repeated", || async {
        get(&api, "v1", "ConfigMap", SYSTEM, "used").await.is_none().then_some(())
    })
    .await;
    engine.shutdown().await;
}
