//! Built-in kinds.

use modelplane_apimachinery::builtin::{find, kinds};
use modelplane_apimachinery::schema::{Kind, ListType};
use serde_json::{Value, json};

#[test]
fn every_kind_has_a_schema() {
    for kind in kinds() {
        let schema = kind.schema();
        assert!(schema.properties.contains_key("metadata"), "{} has no schema", kind.kind);
        let has = |name: &str| schema.properties.contains_key(name);
        assert!(!kind.status || has("status"), "{} has no status", kind.kind);
    }
}

#[test]
fn references_are_followed_and_recursion_ends() {
    let pod = find("", "v1", "Pod").expect("it is built in").schema();
    let containers = &pod.properties["spec"].properties["containers"];
    assert_eq!(
        (containers.list_type, &containers.list_map_keys[..]),
        (ListType::Map, &["name".to_owned()][..])
    );
    let ports = &containers.items.as_ref().expect("a list").properties["ports"];
    let protocol = &ports.items.as_ref().expect("a list").properties["protocol"];
    assert_eq!(protocol.default.as_deref(), Some(&json!("TCP")));
    let definition =
        find("apiextensions.k8s.io", "v1", "CustomResourceDefinition").expect("it is built in").schema();
    let versions = definition.properties["spec"].properties["versions"].items.as_ref().expect("a list");
    let schema = &versions.properties["schema"].properties["openAPIV3Schema"];
    assert_eq!(schema.properties["type"].kind, Some(Kind::String));
    assert!(schema.properties["not"].preserve_unknown_fields, "the schema of schemas refers to itself");
}

#[test]
fn an_empty_object_has_its_structs() {
    let empty = find("apps", "v1", "Deployment").expect("it is built in").empty();
    assert_eq!(empty["metadata"], json!({}));
    assert_eq!(empty["spec"]["strategy"], json!({}));
    assert_eq!(empty["spec"]["template"]["spec"]["containers"], Value::Null);
    assert_eq!(empty["kind"], "Deployment");
}

#[test]
fn an_object_is_printed_as_kubectl_prints_it() {
    let now = 1_795_247_963; // 2026-11-21T07:59:23Z
    let created = json!("2026-11-21T07:54:23Z");
    for (group, kind, object, expected) in [
        (
            "apps",
            "Deployment",
            json!({
                "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {"containers": [
                    {"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]}}},
                "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2},
            }),
            json!(["x", "2/3", 3, 2, "5m", "a,b", "a:1,b:1", "app=web"]),
        ),
        (
            "",
            "Pod",
            json!({
                "spec": {"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "n"},
                "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [
                    {"ready": true, "restartCount": 1, "state": {"running": {}}},
                    {"ready": false, "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            }),
            json!(["x", "1/2", "CrashLoopBackOff", "3", "5m", "10.0.0.1", "n", "<none>", "<none>"]),
        ),
        (
            "",
            "Service",
            json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.9", "selector": {"app": "web"},
                "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}}),
            json!(["x", "LoadBalancer", "10.0.0.9", "<pending>", "80:30080/TCP,53/UDP", "5m", "app=web"]),
        ),
        (
            "",
            "Node",
            json!({
                "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
                "spec": {"unschedulable": true},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.36.3"},
                    "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}]},
            }),
            json!([
                "x",
                "Ready,SchedulingDisabled",
                "worker",
                "5m",
                "v1.36.3",
                "10.1.0.1",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>"
            ]),
        ),
        ("", "ConfigMap", json!({"data": {"a": "1"}, "binaryData": {"b": ""}}), json!(["x", 2, "5m"])),
        (
            "batch",
            "Job",
            json!({
                "spec": {"completions": 2, "selector": {}, "template": {"spec": {"containers": []}}},
                "status": {"succeeded": 1, "startTime": "2026-11-21T07:58:23Z"},
            }),
            json!(["x", "Running", "1/2", "60s", "5m", "", "", "<none>"]),
        ),
    ] {
        let mut object = object;
        object["metadata"]["name"] = json!("x");
        object["metadata"]["creationTimestamp"] = created.clone();
        let kind = find(group, "v1", kind).expect("it is built in");
        assert_eq!(Value::Array(kind.cells(&object, now)), expected, "{}", kind.kind);
    }
}

#[test]
fn secrets_hold_base64_or_nothing() {
    let secret = find("", "v1", "Secret").expect("it is built in").schema();
    for (data, accepted) in [("", true), ("aGk=", true), ("aGk", false), ("a b", false)] {
        let causes = secret.validate(&json!({"data": {"key": data}}), None);
        assert_eq!(causes.is_empty(), accepted, "{data:?}");
    }
}
