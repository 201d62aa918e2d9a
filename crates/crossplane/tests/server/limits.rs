//! Answers stay below what Crossplane reads, however large the fleet.

use modelplane_crossplane::json::{request_from_json, response_to_json};
use modelplane_crossplane::{MAX_RESPONSE_BYTES, answer_request};
use serde_json::{Value, json};

/// Answers and checks what holds for every answer; gives its size, the text of a fatal result, and the answer.
fn answer(request: &Value) -> (usize, Option<String>, Value) {
    let bytes = request_from_json(request).expect("a well-formed request");
    let answer = answer_request(&bytes).expect("a readable request");
    assert!(answer.bytes.len() <= MAX_RESPONSE_BYTES, "{} bytes", answer.bytes.len());
    let json = response_to_json(&answer.bytes).expect("a readable answer");
    (answer.bytes.len(), answer.fatal, json)
}

fn request(composite: Value, required: Value) -> Value {
    json!({"observed": {"composite": {"resource": composite}}, "requiredResources": required})
}

fn items(objects: impl Iterator<Item = Value>) -> Value {
    json!({"items": objects.map(|object| json!({"resource": object})).collect::<Vec<_>>()})
}

/// A cache on every one of these clusters.
fn cache(clusters: usize) -> Value {
    let cache = json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelCache",
        "metadata": {"name": "weights", "namespace": "ml-team"},
        "spec": {"source": "HuggingFace", "huggingFace": {"repo": "Qwen/Qwen3-Coder", "sizeGiB": 900}},
    });
    let cluster = |number| {
        json!({
            "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceCluster",
            "metadata": {"name": format!("gke-west-{number:05}")},
            "status": {
                "providerConfigRef": {"name": format!("gke-west-{number:05}-cluster")},
                "cache": {"storageClassName": "shared"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        })
    };
    request(cache, json!({"clusters": items((0..clusters).map(cluster))}))
}

/// A service of this many endpoints.
fn service(endpoints: usize) -> Value {
    let service = json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "chat", "namespace": "ml-team"},
        "spec": {"endpoints": [{"selector": {"matchLabels": {"model": "qwen"}}}]},
    });
    let endpoint = |number| {
        json!({
            "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelEndpoint",
            "metadata": {"name": format!("qwen3-coder-gke-west-{number:05}"), "namespace": "ml-team"},
            "spec": {"url": "http://10.0.0.4/ml-team/qwen3-coder/v1", "rewritePath": format!("/ml-team/qwen-{number}/")},
            "status": {"routing": {"backendName": format!("qwen3-coder-gke-west-{number:05}")}},
        })
    };
    let gateway = json!({"apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceGateway", "metadata": {"name": "default"}});
    let required = json!({
        "gateway": items([gateway].into_iter()), "endpoints-0": items((0..endpoints).map(endpoint)),
    });
    request(service, required)
}

/// A deployment of this many replicas on as many clusters.
fn deployment(replicas: usize) -> Value {
    let selector = json!({"devices": [{"name": "gpu", "count": 8, "selectors": [
        {"cel": "device.driver == \"gpu.nvidia.com\""},
    ]}]});
    let args: Vec<String> =
        (0..20).map(|number| format!("--an-argument-of-usual-length-{number}=value")).collect();
    let template = json!({"spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.23.0", "args": args}]}});
    let deployment = json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelDeployment",
        "metadata": {"name": "qwen3-coder", "namespace": "ml-team"},
        "spec": {"replicas": replicas, "template": {"spec": {"engines": [{"name": "main", "members": [
            {"role": "Standalone", "nodeSelector": selector, "template": template},
        ]}]}}},
    });
    let cluster = |number| {
        json!({
            "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceCluster",
            "metadata": {"name": format!("gke-west-{number:05}")},
            "status": {
                "providerConfigRef": {"name": "c"}, "gateway": {"address": "10.0.0.4"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "gpuPools": [{"name": "pool", "nodes": 1, "devices": [{
                    "name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com", "count": 8,
                }]}],
            },
        })
    };
    request(deployment, json!({"clusters": items((0..replicas).map(cluster)), "all-replicas": {"items": []}}))
}

#[test]
fn answers_of_every_growing_kind_are_sent_or_refused_by_name() {
    type Make = fn(usize) -> Value;
    // (kind, request, size that fits, size that does not, what the remedy names)
    let cases: [(&str, Make, usize, Option<usize>, &str); 3] = [
        ("ModelCache", cache, 500, Some(5000), "spec.clusterSelector"),
        ("ModelService", service, 5000, Some(20_000), "select fewer endpoints"),
        ("ModelDeployment", deployment, 1000, None, ""),
    ];
    for (kind, make, fits, too_many, remedy) in cases {
        let (size, fatal, json) = answer(&make(fits));
        assert_eq!(fatal, None, "{kind} of {fits}");
        let composed = json["desired"]["resources"].as_object().map_or(0, serde_json::Map::len);
        assert!(composed > 0 && size > 500_000, "{kind} of {fits}: {composed} resources in {size} bytes");
        if let Some(number) = too_many {
            let (size, fatal, json) = answer(&make(number));
            let text = fatal.unwrap_or_default();
            assert!(
                text.contains(remedy) && text.contains("at most 4.0 MiB"),
                "{kind} of {number}: {size} {text}"
            );
            assert!(json.get("desired").is_none(), "{kind}: nothing is wanted, so nothing changes");
        }
    }
}
