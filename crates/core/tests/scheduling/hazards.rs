//! What must not happen: adoption across namespaces, deletion for want of an input, invalid names.

use modelplane_core::compose::model_deployment::compose;
use modelplane_core::contract::Ready;
use serde_json::{Value, json};

use crate::scenario::*;

fn running() -> Scenario {
    Scenario::new(2, vec![simple("a", 4)]).running("a", 0, claiming("e", "p"))
}

/// The observed replica and endpoint are wanted, exactly as they are.
fn assert_held(scenario: &Scenario, outcome: &Outcome, name: &str) {
    let request = scenario.request();
    let observed = request.observed();
    let desired = compose(&observed).expect("the deployment is readable");
    for (key, resource) in &scenario.observed {
        let wanted =
            desired.resources.get(key.as_str()).unwrap_or_else(|| panic!("{name}: {key} is dropped"));
        let body = wanted.body.document().to_json().expect("bodies are JSON");
        assert_eq!(body["spec"], resource["spec"], "{name}: {key} is changed");
    }
    assert_eq!(outcome.endpoints, ["endpoint-a-0"], "{name}");
}

#[test]
fn a_deployment_of_the_same_name_elsewhere_is_another_deployment() {
    let mut scenario = Scenario::new(1, vec![simple("a", 1), simple("b", 1)]);
    let elsewhere = replica(("research", "d-a-0"), Some("d"), ("a", 0), claiming("e", "p"));
    scenario.replicas.get_or_insert_default().push(elsewhere);
    assert_eq!(scenario.placements(), ["b/0@p"], "not adopted, and its node is taken");
}

#[test]
fn what_cannot_be_decided_is_held() {
    let mut clusters_not_fetched = running();
    clusters_not_fetched.clusters = None;
    let mut no_cluster_left = running();
    no_cluster_left.clusters = Some(Vec::new());
    let mut replicas_not_fetched = running();
    replicas_not_fetched.replicas = None;
    let malformed = vec![request("gpu", 8, "device.driver ==")];
    let malformed_selector = running().engines(vec![engine("e", vec![member("Standalone", malformed)])]);
    let cases = [
        ("clusters not fetched", clusters_not_fetched, "ReplicasScheduled=False/NoClusters"),
        ("no cluster left", no_cluster_left, "ReplicasScheduled=False/NoClusters"),
        ("replicas not fetched", replicas_not_fetched, "ReplicasScheduled=False/WaitingForInput"),
        ("malformed selector", malformed_selector, "ReplicasScheduled=False/InvalidNodeSelector"),
    ];
    for (name, scenario, condition) in cases {
        let outcome = scenario.run();
        assert_held(&scenario, &outcome, name);
        assert!(outcome.has_condition(condition), "{name}: {:?}", outcome.conditions);
        assert!(!outcome.complaints.is_empty(), "{name}: says what is wrong");
    }
}

#[test]
fn what_lacks_replicas_is_not_ready_while_nothing_can_be_decided() {
    let nothing = || Scenario::new(2, vec![simple("a", 4)]);
    let mut no_cluster = nothing();
    no_cluster.clusters = Some(Vec::new());
    let mut not_fetched = nothing();
    not_fetched.replicas = None;
    let mut one_of_two = running();
    one_of_two.clusters = Some(Vec::new());
    for (name, scenario) in
        [("no cluster", no_cluster), ("replicas not fetched", not_fetched), ("one of two", one_of_two)]
    {
        assert_eq!(scenario.run().ready, Ready::False, "{name}");
    }
}

#[test]
fn a_malformed_selector_is_named_with_its_engine_and_request() {
    let requests = vec![request("gpu", 8, "device.driver ==")];
    let outcome = running().engines(vec![engine("e", vec![member("Standalone", requests)])]).run();
    for part in ["engine e", "request gpu", "device.driver =="] {
        assert!(
            outcome.complaints.iter().all(|complaint| complaint.contains(part)),
            "{:?}",
            outcome.complaints
        );
    }
    assert_eq!(outcome.ready, Ready::False);
}

#[test]
fn a_vanished_cache_holds_replicas_and_endpoints() {
    let outcome = running().caching(Some(Vec::new())).run();
    assert_eq!(outcome.placements, ["a/0@p"]);
    assert_eq!(outcome.endpoints, ["endpoint-a-0"]);
    let mut unreadable =
        running().caching(Some(vec![json!({"spec": {"clusterSelector": {"matchLabels": [1]}}})]));
    let outcome = unreadable.run();
    assert_eq!(outcome.placements, ["a/0@p"]);
    assert!(outcome.complaints.iter().any(|text| text.contains("matchLabels")), "{:?}", outcome.complaints);
    unreadable.observed.clear();
    unreadable.replicas = Some(Vec::new());
    let outcome = unreadable.run();
    assert!(
        outcome.has_condition("ReplicasScheduled=False/ModelCacheUnresolved"),
        "{:?}",
        outcome.conditions
    );
}

#[test]
fn a_replica_missing_from_a_late_list_is_retained() {
    let mut scenario = running();
    scenario.replicas = Some(Vec::new());
    assert_eq!(scenario.placements(), ["a/0@p", "a/1@p"]);
    assert_eq!(scenario.run().endpoints, ["endpoint-a-0"]);
}

#[test]
fn what_cannot_be_read_is_left_as_it_is() {
    let nodes_as_word = cluster("a", vec![json!({"name": "p", "nodes": "four", "devices": [gpu(141, 8)]})]);
    let pool_as_word = cluster("a", vec![json!("p")]);
    let devices_as_word = cluster("a", vec![json!({"name": "p", "nodes": 4, "devices": "gpu"})]);
    let device_as_word = cluster("a", vec![json!({"name": "p", "nodes": 4, "devices": ["gpu"]})]);
    let mut no_class = gpu(141, 8);
    no_class["deviceClassName"].take();
    let no_class = cluster("a", vec![pool("p", 4, vec![no_class])]);
    let mut bad_quantity = gpu(141, 8);
    bad_quantity["capacity"]["memory"]["value"] = json!("lots");
    let bad_quantity = cluster("a", vec![pool("p", 4, vec![bad_quantity])]);
    let mut pools_as_word = simple("a", 4);
    pools_as_word["status"]["gpuPools"] = json!("none");
    let mut taint_as_word = simple("a", 4);
    taint_as_word["spec"]["taints"] = json!(["m"]);
    for (name, cluster, mention) in [
        ("nodes", nodes_as_word, "nodes"),
        ("pool", pool_as_word, "gpuPools"),
        ("devices", devices_as_word, "devices"),
        ("device", device_as_word, "devices[0]"),
        ("device class", no_class, "deviceClassName"),
        ("quantity", bad_quantity, "lots"),
        ("pools", pools_as_word, "gpuPools"),
        ("taint", taint_as_word, "taints[0]"),
    ] {
        let mut scenario = running();
        scenario.clusters = Some(vec![cluster, simple("b", 1)]);
        let outcome = scenario.run();
        assert_eq!(outcome.placements, ["a/0@p", "b/0@p"], "{name}: held, and the rest goes on");
        assert_held(&scenario, &outcome, name);
        assert!(
            outcome.complaints.iter().any(|text| text.contains(mention)),
            "{name}: {:?}",
            outcome.complaints
        );
    }
}

#[test]
fn a_replica_that_cannot_be_read_is_left_as_it_is() {
    let mut scenario = running();
    scenario.observed[0].1["spec"]["engines"] = json!("none");
    scenario.replicas.get_or_insert_default()[0]["spec"]["engines"] = json!("none");
    let request = scenario.request();
    let observed = request.observed();
    let desired = compose(&observed).expect("the deployment is readable");
    let keys: Vec<String> = desired.resources.keys().map(ToString::to_string).collect();
    assert_eq!(keys, ["endpoint-a-0", "replica-a-0", "replica-a-1"]);
}

#[test]
fn a_foreign_replica_that_cannot_be_read_stops_nobody() {
    let mut scenario = Scenario::new(1, vec![simple("a", 1)]);
    let mut odd = replica(("x", "odd"), None, ("a", 0), Vec::new());
    odd["spec"]["engines"] = json!(7);
    scenario.replicas.get_or_insert_default().push(odd);
    let outcome = scenario.run();
    assert_eq!(outcome.placements, ["a/0@p"]);
    assert!(
        outcome.complaints.iter().any(|text| text.contains("ModelReplica x/odd")),
        "{:?}",
        outcome.complaints
    );
}

#[test]
fn a_device_without_a_class_is_never_claimed() {
    let mut no_class = gpu(141, 8);
    no_class["deviceClassName"].take();
    let with_class = gpu(141, 8);
    let pools = vec![pool("p1", 4, vec![no_class.clone()]), pool("p2", 4, vec![no_class, with_class])];
    let outcome = Scenario::new(1, vec![cluster("a", pools)]).run();
    assert_eq!(outcome.placements, ["a/0@p2"]);
}

#[test]
fn names_and_labels_stay_valid_however_long_the_deployments_name() {
    let long = format!("{}.{}", "m".repeat(56), "x".repeat(60));
    let mut scenario = Scenario::new(1, vec![simple("a", 4)]);
    scenario.deployment["metadata"]["name"] = json!(long);
    let first = scenario.run().bodies.remove(0);
    let name = first["metadata"]["name"].as_str().expect("a name");
    assert!(modelplane_api::names::is_rfc1123_subdomain(name) && name.len() <= 63, "{name}");
    for (key, value) in first["metadata"]["labels"].as_object().expect("labels") {
        assert!(modelplane_api::names::is_label_value(value.as_str().expect("text")), "{key}: {value}");
    }
    let identity = ("ml", name);
    let labels = first["metadata"]["labels"].clone();
    let mut existing = replica(identity, None, ("a", 0), claiming("e", "p"));
    existing["metadata"]["labels"] = labels;
    scenario.replicas = Some(vec![existing]);
    scenario.clusters = Some(vec![simple("a", 1), simple("b", 1)]);
    assert_eq!(scenario.placements(), ["a/0@p"], "recognised as its own next time");
}

#[test]
fn derived_names_are_the_published_ones() {
    for (deployment, cluster_name, index, name) in [
        ("my-model", "cluster-a", 0, "my-model-5ab63"),
        ("qwen", "gke-west", 0, "qwen-254ab"),
        ("qwen", "gke-west", 1, "qwen-5da09"),
    ] {
        let mut scenario = Scenario::new(2, vec![simple(cluster_name, 2)]);
        scenario.deployment["metadata"]["name"] = json!(deployment);
        assert_eq!(scenario.run().bodies[index]["metadata"]["name"], name);
    }
}

#[test]
fn the_older_shape_of_a_deployment_is_composed_alike() {
    let newer = running();
    let mut older = newer.clone();
    let spec = newer.deployment["spec"]["template"]["spec"].clone();
    older.deployment["spec"] = json!({"replicas": 2, "engines": spec["engines"]});
    assert_eq!(older.run(), newer.run());
}

#[test]
fn templates_and_the_serving_block_are_passed_on_untouched() {
    let template = json!({
        "metadata": {"labels": {"x": "y"}},
        "spec": {"containers": [{"name": "engine", "image": "i", "args": [], "env": [{"name": "A", "value": ""}]}]},
    });
    let mut standalone = member("Standalone", vec![request("gpu", 8, &at_least(80))]);
    standalone["template"] = template.clone();
    let mut scenario = Scenario::new(1, vec![simple("a", 1)]).engines(vec![engine("e", vec![standalone])]);
    scenario.deployment["spec"]["template"]["spec"]["serving"] = json!({"mode": "Unified"});
    scenario.deployment["spec"]["template"]["metadata"] = json!({"labels": {"tier": "gold"}});
    let body = scenario.run().bodies.remove(0);
    assert_eq!(body["spec"]["engines"][0]["members"][0]["template"], template);
    assert_eq!(body["spec"]["serving"], json!({"mode": "Unified"}));
    assert_eq!(body["metadata"]["labels"]["tier"], "gold");
    let keys: Vec<&String> = body["spec"].as_object().expect("a spec").keys().collect();
    assert_eq!(keys, ["clusterName", "serving", "engines"], "nothing absent is written");
}

#[test]
fn replicas_that_are_no_number_are_refused_by_name() {
    let mut scenario = running();
    for replicas in [json!("two"), json!(1_000_000)] {
        scenario.deployment["spec"]["replicas"] = replicas;
        let request = scenario.request();
        let error = compose(&request.observed()).expect_err("not a number of replicas");
        assert!(error.to_string().contains("replicas"), "{error}");
    }
}

#[test]
fn an_identity_stays_in_place_when_its_pool_changes() {
    let pools: Vec<Value> = vec![pool("l4", 5, vec![gpu(24, 8)]), pool("h200", 1, vec![gpu(141, 8)])];
    let scenario = Scenario::new(1, vec![cluster("a", pools)]).running("a", 0, claiming("e", "l4"));
    let outcome = scenario.run();
    assert_eq!(outcome.placements, ["a/0@h200"]);
    assert_eq!(outcome.endpoints, ["endpoint-a-0"]);
    assert!(outcome.has_condition("ReplicasScheduled=True/ReplicasCreated"));
}
