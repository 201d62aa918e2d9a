//! Creating, reading, changing and deleting objects, as raw requests.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod support;

use http::Method;
use serde_json::json;
use support::{WIDGETS, server, widget, with_widgets};

#[tokio::test]
async fn a_custom_resource_can_be_used_as_soon_as_its_definition_was_accepted() {
    let (_server, caller) = with_widgets().await;
    let created = caller.post(WIDGETS, &widget("a")).await;
    assert_eq!(created.code, 201, "{}", created.text);
    assert_eq!(created.value["spec"], json!({"size": "small", "replicas": 1}));
    assert_eq!(created.value["metadata"]["generation"], 1);
    assert_eq!(created.value["metadata"]["namespace"], "default");
    let read = caller.get(&format!("{WIDGETS}/a")).await;
    assert_eq!(read.value, created.value);
    let list = caller.get("/apis/example.org/v1/widgets").await;
    assert_eq!(list.value["kind"], "WidgetList");
    assert_eq!(list.value["items"][0], created.value);
}

#[tokio::test]
async fn refusals_have_the_status_kubernetes_gives_them() {
    let (_server, caller) = with_widgets().await;
    caller.post(WIDGETS, &widget("a")).await;
    let answer = caller.post(WIDGETS, &widget("a")).await;
    assert_eq!((answer.code, &answer.value["reason"]), (409, &json!("AlreadyExists")));
    assert_eq!(answer.value["message"], "widgets.example.org \"a\" already exists");
    assert_eq!(answer.value["details"], json!({"name": "a", "group": "example.org", "kind": "widgets"}));
    let answer = caller.get(&format!("{WIDGETS}/missing")).await;
    assert_eq!((answer.code, &answer.value["reason"]), (404, &json!("NotFound")));
    let mut bad = widget("b");
    bad["spec"] = json!({"size": "huge", "replicas": -1});
    let answer = caller.post(WIDGETS, &bad).await;
    assert_eq!((answer.code, &answer.value["reason"]), (422, &json!("Invalid")));
    let causes = answer.value["details"]["causes"].as_array().unwrap();
    let fields: Vec<_> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["spec.size", "spec.replicas"], "{}", answer.text);
    let answer = caller.post("/apis/example.org/v1/namespaces/nowhere/widgets", &widget("a")).await;
    assert_eq!(answer.value["message"], "namespaces \"nowhere\" not found");
    let answer = caller.get("/apis/example.org/v2/widgets").await;
    assert_eq!(answer.value["message"], "the server could not find the requested resource");
}

#[tokio::test]
async fn only_a_change_of_the_desired_state_raises_the_generation() {
    let (_server, caller) = with_widgets().await;
    let path = format!("{WIDGETS}/a");
    let mut object = caller.post(WIDGETS, &widget("a")).await.value;
    object["status"] = json!({"replicas": 5});
    object["metadata"]["labels"] = json!({"x": "y"});
    let updated = caller.put(&path, &object).await.value;
    assert_eq!((&updated["metadata"]["generation"], &updated["status"]), (&json!(1), &json!(null)));
    let mut object = updated;
    object["status"] = json!({"replicas": 5});
    object["spec"]["size"] = json!("large");
    let updated = caller.put(&format!("{path}/status"), &object).await.value;
    assert_eq!((&updated["spec"]["size"], &updated["status"]["replicas"]), (&json!("small"), &json!(5)));
    assert_eq!(updated["metadata"]["generation"], 1);
    let stale = caller.put(&path, &object).await;
    assert_eq!((stale.code, &stale.value["reason"]), (409, &json!("Conflict")));
    let changed = caller.merge(&path, &json!({"spec": {"size": "large"}})).await.value;
    assert_eq!(changed["metadata"]["generation"], 2);
    let version = &changed["metadata"]["resourceVersion"];
    let same = caller.merge(&path, &json!({"spec": {"size": "large"}})).await.value;
    assert_eq!(&same["metadata"]["resourceVersion"], version, "a patch that changes nothing writes nothing");
}

#[tokio::test]
async fn an_apply_conflicts_with_other_owners_unless_forced() {
    let (_server, caller) = with_widgets().await;
    let path = format!("{WIDGETS}/a");
    let created = caller.apply(&path, "one", &widget("a")).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let mut other = widget("a");
    other["spec"]["size"] = json!("large");
    let conflict = caller.apply(&path, "two", &other).await;
    assert_eq!((conflict.code, &conflict.value["reason"]), (409, &json!("Conflict")), "{}", conflict.text);
    assert_eq!(conflict.value["details"]["causes"][0]["reason"], "FieldManagerConflict");
    assert_eq!(conflict.value["details"]["causes"][0]["field"], ".spec.size");
    let forced = caller.apply(&format!("{path}?force=true"), "two", &other).await;
    assert_eq!((forced.code, &forced.value["spec"]["size"]), (200, &json!("large")), "{}", forced.text);
    let dry = caller.apply(&format!("{path}?force=true&dryRun=All"), "one", &widget("a")).await;
    assert_eq!(dry.value["spec"]["size"], "small");
    assert_eq!(caller.get(&path).await.value["spec"]["size"], "large");
}

#[tokio::test]
async fn unknown_fields_are_pruned_warned_about_or_refused() {
    let (_server, caller) = with_widgets().await;
    let mut object = widget("a");
    object["spec"]["colour"] = json!("red");
    let warned = caller.post(WIDGETS, &object).await;
    assert_eq!(warned.code, 201);
    assert_eq!(warned.headers["warning"], "299 - \"unknown field \\\"spec.colour\\\"\"");
    assert!(warned.value["spec"].get("colour").is_none());
    object["metadata"]["name"] = json!("b");
    let refused = caller.post(&format!("{WIDGETS}?fieldValidation=Strict"), &object).await;
    assert_eq!(refused.code, 400);
    assert!(
        refused.text.contains("strict decoding error: unknown field \\\"spec.colour\\\""),
        "{}",
        refused.text
    );
    let ignored = caller.post(&format!("{WIDGETS}?fieldValidation=Ignore"), &object).await;
    assert_eq!((ignored.code, ignored.headers.get("warning")), (201, None));
}

#[tokio::test]
async fn finalizers_hold_an_object_until_they_are_gone() {
    let (_server, caller) = with_widgets().await;
    let path = format!("{WIDGETS}/a");
    let mut object = widget("a");
    object["metadata"]["finalizers"] = json!(["example.org/wait"]);
    caller.post(WIDGETS, &object).await;
    let pending = caller.delete(&path).await;
    assert_eq!((pending.code, &pending.value["kind"]), (200, &json!("Widget")));
    assert!(pending.value["metadata"]["deletionTimestamp"].is_string());
    let added = caller
        .merge(&path, &json!({"metadata": {"finalizers": ["example.org/wait", "example.org/more"]}}))
        .await;
    assert_eq!(added.code, 422, "{}", added.text);
    let gone = caller.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(gone.code, 200, "{}", gone.text);
    assert_eq!(caller.get(&path).await.code, 404);
}

#[tokio::test]
async fn deletion_heeds_preconditions_and_propagation() {
    let (_server, caller) = with_widgets().await;
    let path = format!("{WIDGETS}/a");
    let created = caller.post(WIDGETS, &widget("a")).await.value;
    let options = json!({"preconditions": {"uid": "other"}}).to_string();
    let refused = caller.send(Method::DELETE, &path, "application/json", options).await;
    assert_eq!((refused.code, &refused.value["reason"]), (409, &json!("Conflict")));
    let dry = caller.delete(&format!("{path}?dryRun=All")).await;
    assert_eq!((dry.code, &dry.value["status"]), (200, &json!("Success")));
    let options = json!({"propagationPolicy": "Foreground"}).to_string();
    let pending = caller.send(Method::DELETE, &path, "application/json", options).await;
    assert_eq!(pending.value["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    caller.merge(&path, &json!({"metadata": {"finalizers": []}})).await;
    caller.post(WIDGETS, &widget("b")).await;
    let gone = caller.delete(&format!("{WIDGETS}/b")).await;
    assert_eq!((gone.code, &gone.value["status"]), (200, &json!("Success")));
    assert_ne!(gone.value["details"]["uid"], created["metadata"]["uid"]);
    for name in ["c", "d"] {
        let mut object = widget(name);
        object["metadata"]["labels"] = json!({"name": name});
        caller.post(WIDGETS, &object).await;
    }
    let some = caller.delete(&format!("{WIDGETS}?labelSelector=name=c")).await;
    assert_eq!(some.value["items"].as_array().unwrap().len(), 1, "{}", some.text);
    assert_eq!(caller.get(WIDGETS).await.value["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn scale_reads_and_writes_the_replicas() {
    let (_server, caller) = with_widgets().await;
    caller.post(WIDGETS, &widget("a")).await;
    let path = format!("{WIDGETS}/a/scale");
    let scale = caller.get(&path).await.value;
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)));
    let scaled = caller.merge(&path, &json!({"spec": {"replicas": 4}})).await;
    assert_eq!(scaled.value["spec"]["replicas"], 4, "{}", scaled.text);
    let object = caller.get(&format!("{WIDGETS}/a")).await.value;
    assert_eq!((&object["spec"]["replicas"], &object["metadata"]["generation"]), (&json!(4), &json!(2)));
    let stale = caller.put(&path, &scale).await;
    assert_eq!(stale.code, 409, "{}", stale.text);
    let refused = caller.merge(&path, &json!({"spec": {"replicas": -1}})).await;
    assert_eq!(refused.code, 422);
}

#[tokio::test]
async fn lists_are_paged_consistently_and_selected() {
    let (_server, caller) = with_widgets().await;
    for index in 0..7 {
        let mut object = widget(&format!("w{index}"));
        object["metadata"]["labels"] = json!({"odd": (index % 2 == 1).to_string()});
        if index == 3 {
            object["spec"]["size"] = json!("large");
        }
        caller.post(WIDGETS, &object).await;
    }
    let first = caller.get(&format!("{WIDGETS}?limit=3")).await.value;
    assert_eq!(first["metadata"]["remainingItemCount"], 4);
    caller.delete(&format!("{WIDGETS}/w5")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = caller.get(&format!("{WIDGETS}?limit=3&continue={token}")).await.value;
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let names = |list: &serde_json::Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&second), ["w3", "w4", "w5"], "the page shows the state of the first one");
    assert_eq!(second["metadata"]["remainingItemCount"], 1);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let last = caller.get(&format!("{WIDGETS}?limit=3&continue={token}")).await.value;
    assert_eq!(names(&last), ["w6"]);
    assert_eq!(
        (&last["metadata"]["continue"], &last["metadata"]["remainingItemCount"]),
        (&json!(null), &json!(null))
    );
    let odd = caller.get(&format!("{WIDGETS}?labelSelector=odd%3Dtrue&limit=1")).await.value;
    assert_eq!((names(&odd), &odd["metadata"]["remainingItemCount"]), (vec!["w1".to_owned()], &json!(null)));
    let large = caller.get(&format!("{WIDGETS}?fieldSelector=spec.size%3Dlarge")).await;
    assert_eq!(names(&large.value), ["w3"]);
    let one = caller.get(&format!("{WIDGETS}?fieldSelector=metadata.name%3Dw4")).await.value;
    assert_eq!(names(&one), ["w4"]);
    let bad = caller.get(&format!("{WIDGETS}?fieldSelector=spec.colour%3Dred")).await;
    assert_eq!(bad.code, 400, "{}", bad.text);
    let future = caller.get(&format!("{WIDGETS}?resourceVersion=99999")).await;
    assert_eq!(future.code, 504, "{}", future.text);
}

#[tokio::test]
async fn a_list_that_is_sent_in_pieces_is_whole() {
    let (_server, caller) = with_widgets().await;
    // Small and large ones, so that pieces end after one object and after many.
    let notes = [1, 2_000, 200_000].map(|size| "x".repeat(size));
    let mut expected = Vec::new();
    for index in 0..40 {
        let mut object = widget(&format!("w{index:02}"));
        object["metadata"]["annotations"] = json!({"note": notes[index % notes.len()]});
        expected.push(caller.post(WIDGETS, &object).await.value);
    }
    for (query, count) in [("", 40), ("?limit=39", 39), ("?limit=4", 4), ("?limit=1", 1)] {
        let list = caller.get(&format!("{WIDGETS}{query}")).await;
        assert_eq!(list.code, 200);
        assert_eq!(list.value["items"].as_array().unwrap().as_slice(), &expected[..count], "{query}");
    }
    let none = caller.get(&format!("{WIDGETS}?fieldSelector=metadata.name%3Dabsent")).await;
    assert_eq!(none.value["items"], json!([]));
}

#[tokio::test]
async fn tables_have_the_definitions_columns() {
    let (_server, caller) = with_widgets().await;
    caller.post(WIDGETS, &widget("a")).await;
    let table = caller.get_as(WIDGETS, "application/json;as=Table;v=v1;g=meta.k8s.io").await.value;
    let names: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Name", "Size", "Ready", "Replicas"]);
    assert_eq!(table["rows"][0]["cells"], json!(["a", "small", null, 1]));
    let partial = caller
        .get_as(&format!("{WIDGETS}/a"), "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
        .await
        .value;
    assert_eq!((&partial["kind"], partial.get("spec")), (&json!("PartialObjectMetadata"), None));
}

#[tokio::test]
async fn namespaces_are_active_and_terminate() {
    let server = server().await;
    let caller = support::Caller::new(&server);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    let created = caller.post("/api/v1/namespaces", &namespace).await.value;
    assert_eq!(created["status"]["phase"], "Active");
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], "team");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}});
    assert_eq!(caller.post("/api/v1/namespaces/team/configmaps", &map).await.code, 201);
    let pending = caller.delete("/api/v1/namespaces/team").await.value;
    assert_eq!(pending["status"]["phase"], "Terminating");
}
