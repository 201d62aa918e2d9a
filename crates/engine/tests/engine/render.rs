//! The same manifests give the same objects here and in `render`.

use std::collections::BTreeMap;

use modelplane_core::simulate::{Options, Simulation};
use serde_json::{Value, json};

use crate::player::Player;
use crate::support::{Clusters, apply, client, config, engine, example, list, namespace, server};
use modelplane_engine::client::ApiClient;

/// What is compared of an object: its spec, and its conditions' types and statuses.
type Facts = (Value, BTreeMap<String, String>);

fn facts(object: &Value) -> Facts {
    let mut spec = object["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        for field in ["crossplane", "managementPolicies", "watch"] {
            spec.remove(field);
        }
        if let Some(readiness) = spec.get("readiness").cloned()
            && readiness == json!({"policy": "SuccessfulCreate"})
        {
            spec.remove("readiness");
        }
    }
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let conditions = conditions
        .map(|c| (c["type"].as_str().unwrap_or_default(), c["status"].as_str().unwrap_or_default()))
        .filter(|(condition_type, _)| *condition_type != "Responsive")
        .map(|(condition_type, status)| (condition_type.to_owned(), status.to_owned()));
    (spec, conditions.collect())
}

fn identity(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    format!("{} {}/{}", object["kind"].as_str().unwrap_or_default(), text("namespace"), text("name"))
}

/// Kinds whose objects the engine composes, and that are compared.
const COMPARED: &[(&str, &str)] = &[
    ("modelplane.ai/v1alpha1", "InferenceCluster"),
    ("modelplane.ai/v1alpha1", "ModelDeployment"),
    ("modelplane.ai/v1alpha1", "ModelReplica"),
    ("modelplane.ai/v1alpha1", "ModelEndpoint"),
    ("modelplane.ai/v1alpha1", "ModelService"),
    ("infrastructure.modelplane.ai/v1alpha1", "ServingStack"),
    ("kubernetes.m.crossplane.io/v1alpha1", "Object"),
    ("helm.m.crossplane.io/v1beta1", "Release"),
    ("protection.crossplane.io/v1beta1", "Usage"),
    ("protection.crossplane.io/v1beta1", "ClusterUsage"),
];

/// Addresses come from whoever plays the clusters.
fn without_addresses(value: &Value) -> Value {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find("198.18.") {
        out.push_str(&rest[..at]);
        out.push_str("ADDRESS");
        let tail = &rest[at + 7..];
        let end = tail.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(tail.len());
        rest = &tail[end..];
    }
    out.push_str(rest);
    serde_json::from_str(&out).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_example_is_composed_as_render_composes_it() {
    let mut simulation = Simulation::new(example("canary"), Options::default());
    assert!(simulation.run().converged);
    let mut expected: BTreeMap<String, Facts> = BTreeMap::new();
    for stored in simulation.world().iter() {
        if COMPARED.iter().any(|(_, kind)| *kind == stored.key.kind) {
            expected.insert(identity(&stored.body), facts(&without_addresses(&stored.body)));
        }
    }

    let server = server().await;
    let client = client(&server);
    let (api, clusters) = (ApiClient::new(client.clone()), Clusters::default());
    let _cluster = clusters.start(&api, "dc-west").await;
    let engine = engine(config(&client, &clusters)).await;
    let _player = Player::start(api.clone());
    namespace(&api, "ml-team").await;
    for object in example("canary") {
        apply(&api, object).await;
    }
    let differences = || async {
        let mut found = BTreeMap::new();
        for (api_version, kind) in COMPARED {
            for object in list(&api, api_version, kind).await {
                found.insert(identity(&object), facts(&without_addresses(&object)));
            }
        }
        differences(&expected, &found)
    };
    for _ in 0..300 {
        if differences().await.is_empty() {
            engine.shutdown().await;
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let mut left = differences().await;
    for object in list(&api, "kubernetes.m.crossplane.io/v1alpha1", "Object").await {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let problems = conditions.iter().filter(|condition| condition["status"] != "True");
        left.extend(problems.map(|condition| format!("{}: {condition}", identity(&object))));
    }
    panic!("{} differences:\n{}", left.len(), left.join("\n"));
}

fn differences(expected: &BTreeMap<String, Facts>, found: &BTreeMap<String, Facts>) -> Vec<String> {
    let mut out = Vec::new();
    for (name, (spec, conditions)) in expected {
        match found.get(name) {
            None => out.push(format!("missing: {name}")),
            Some((found_spec, found_conditions)) => {
                if !modelplane_engine::composite::render::is_within(spec, found_spec) {
                    out.push(format!("spec of {name}:\n  {spec}\n  {found_spec}"));
                }
                // The engine resolves usages and reports on them, which `render` does not.
                let compared =
                    conditions.iter().filter(|(kind, _)| !(name.contains("Usage") && *kind == "Ready"));
                for (condition, status) in compared {
                    if found_conditions.get(condition) != Some(status) {
                        out.push(format!(
                            "{name}: {condition}={status}, found {:?}",
                            found_conditions.get(condition)
                        ));
                    }
                }
            }
        }
    }
    out.extend(
        found.keys().filter(|name| !expected.contains_key(*name)).map(|name| format!("too much: {name}")),
    );
    out
}
