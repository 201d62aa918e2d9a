//! Deletions that the host refuses.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use modelplane_apiserver::{ApiServer, Deletion, DeletionGuard, Options, Profile};
use serde_json::{Value, json};
use support::Caller;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Refuses to let go of objects in use, by name, and notes what it was asked.
#[derive(Debug, Default)]
struct InUse {
    names: Mutex<Vec<String>>,
    asked: Mutex<Vec<String>>,
}

impl DeletionGuard for InUse {
    fn refusal(&self, deletion: &Deletion<'_>) -> Option<String> {
        let Deletion { group, resource, namespace, name, object, propagation, identity, dry_run, .. } =
            deletion;
        assert_eq!(object["metadata"]["name"], *name);
        self.asked.lock().unwrap().push(format!(
            "{resource}.{group} {}/{name} {} by {}{}",
            namespace.unwrap_or_default(),
            propagation.unwrap_or_default(),
            identity.user,
            if *dry_run { " dry" } else { "" }
        ));
        let held = self.names.lock().unwrap().iter().any(|held| held == name);
        held.then(|| format!("{name} is in use"))
    }
}

async fn guarded(names: &[&str]) -> (ApiServer, Caller, Arc<InUse>) {
    let guard = Arc::new(InUse::default());
    *guard.names.lock().unwrap() = names.iter().map(|name| (*name).to_owned()).collect();
    let mut options = Options::in_memory(Profile::ControlPlane);
    options.deletion_guard = Some(guard.clone());
    let server = ApiServer::start(options).await.unwrap();
    let caller = Caller::new(&server);
    (server, caller, guard)
}

async fn map(caller: &Caller, name: &str, owner: Option<&Value>) -> Value {
    let mut map = json!({"metadata": {"name": name}});
    if let Some(owner) = owner {
        map["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }]);
    }
    let created = caller.post(MAPS, &map).await;
    assert_eq!(created.code, 201, "{}", created.text);
    created.value
}

/// Waits for something that controllers bring about.
async fn until(mut done: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it did not come about");
}

#[tokio::test]
async fn a_deletion_the_guard_refuses_is_a_conflict_with_its_message() {
    let (_server, caller, guard) = guarded(&["held"]).await;
    let held = map(&caller, "held", None).await;
    map(&caller, "free", None).await;
    let path = format!("{MAPS}/held");
    for path in [path.clone(), format!("{path}?dryRun=All"), format!("{path}?propagationPolicy=Foreground")] {
        let refused = caller.delete(&path).await;
        assert_eq!(refused.code, 409, "{}", refused.text);
        assert_eq!(
            (&refused.value["reason"], &refused.value["message"]),
            (&json!("Conflict"), &json!("held is in use"))
        );
        assert_eq!(
            (&refused.value["details"]["name"], &refused.value["details"]["kind"]),
            (&json!("held"), &json!("configmaps"))
        );
    }
    let same = caller.get(&path).await.value;
    assert_eq!(
        same["metadata"]["resourceVersion"], held["metadata"]["resourceVersion"],
        "nothing was written"
    );
    assert_eq!(caller.delete(&format!("{MAPS}/free")).await.code, 200);
    let stale = json!({"preconditions": {"uid": "other"}}).to_string();
    let refused = caller.send(Method::DELETE, &path, "application/json", stale).await;
    assert!(refused.code == 409 && refused.text.contains("Precondition failed"), "{}", refused.text);
    assert_eq!(
        *guard.asked.lock().unwrap(),
        [
            "configmaps. default/held  by kubernetes-admin",
            "configmaps. default/held  by kubernetes-admin dry",
            "configmaps. default/held Foreground by kubernetes-admin",
            "configmaps. default/free  by kubernetes-admin",
        ]
    );
    map(&caller, "free", None).await;
    assert_eq!(caller.delete(MAPS).await.code, 409, "a collection with a held object");
    guard.names.lock().unwrap().clear();
    assert_eq!(caller.delete(&path).await.code, 200);
}

#[tokio::test]
async fn an_object_that_is_being_deleted_is_not_asked_about_again() {
    let (_server, caller, guard) = guarded(&[]).await;
    let object = json!({"metadata": {"name": "m", "finalizers": ["example.org/x"]}});
    assert_eq!(caller.post(MAPS, &object).await.code, 201);
    let path = format!("{MAPS}/m");
    assert_eq!(caller.delete(&path).await.code, 200);
    guard.names.lock().unwrap().push("m".to_owned());
    assert_eq!(caller.delete(&path).await.code, 200);
    assert_eq!(guard.asked.lock().unwrap().len(), 1);
    assert_eq!(caller.merge(&path, &json!({"metadata": {"finalizers": null}})).await.code, 200);
    assert_eq!(caller.get(&path).await.code, 404);
}

#[tokio::test]
async fn garbage_and_namespaces_wait_for_what_the_guard_holds() {
    let (_server, caller, guard) = guarded(&["held"]).await;
    let owner = map(&caller, "owner", None).await;
    map(&caller, "held", Some(&owner)).await;
    map(&caller, "free", Some(&owner)).await;
    assert_eq!(caller.delete(&format!("{MAPS}/owner")).await.code, 200);
    until(async || caller.get(&format!("{MAPS}/free")).await.code == 404).await;
    until(async || guard.asked.lock().unwrap().iter().any(|asked| asked.contains("default/held"))).await;
    assert_eq!(caller.get(&format!("{MAPS}/held")).await.code, 200);
    // The collector tries again after a while, not in a hurry.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let asked = guard.asked.lock().unwrap().iter().filter(|asked| asked.contains("default/held")).count();
    assert!(asked < 20, "asked {asked} times");

    let namespace = json!({"metadata": {"name": "team"}});
    assert_eq!(caller.post("/api/v1/namespaces", &namespace).await.code, 201);
    let maps = "/api/v1/namespaces/team/configmaps";
    for name in ["held", "other"] {
        assert_eq!(caller.post(maps, &json!({"metadata": {"name": name}})).await.code, 201);
    }
    assert_eq!(caller.delete("/api/v1/namespaces/team").await.code, 200);
    until(async || caller.get(&format!("{maps}/other")).await.code == 404).await;
    assert_eq!(caller.get(&format!("{maps}/held")).await.code, 200);
    guard.names.lock().unwrap().clear();
    until(async || caller.get("/api/v1/namespaces/team").await.code == 404).await;
    until(async || caller.get(&format!("{MAPS}/held")).await.code == 404).await;
}
