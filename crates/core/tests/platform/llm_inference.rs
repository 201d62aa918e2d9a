//! `LLMInference`: the scenarios and edge cases of spec llm-inference §§5, 6.

use modelplane_core::compose::llm_inference::compose;
use modelplane_core::contract::{Ready, Severity};
use serde_json::{Value, json};

use crate::support::{Request, body, conformance};
use crate::{bare, with_condition};

fn request(name: &str, spec: Value, resources: Value) -> Request {
    let metadata = json!({"name": name, "namespace": "ml-team"});
    let composite = json!({
        "apiVersion": "inference.devopstoolkit.ai/v1alpha1", "kind": "LLMInference",
        "metadata": metadata, "spec": spec,
    });
    Request::from_json(&json!({"observed": {"composite": {"resource": composite}, "resources": resources}}))
}

/// The bodies composed for a spec, by key.
fn composed(name: &str, spec: Value) -> Value {
    let request = request(name, spec, json!({}));
    let desired = compose(&request.observed()).expect("the spec is valid");
    desired
        .resources
        .keys()
        .map(|key| (key.to_string(), body(&desired, key)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn object(provider_config: &str, manifest: Value) -> Value {
    json!({
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "Object",
        "spec": {
            "providerConfigRef": {"kind": "ProviderConfig", "name": provider_config},
            "forProvider": {"manifest": manifest},
        },
    })
}

fn ingress(name: &str, namespace: &str, host: &str) -> Value {
    let backend = json!({"service": {"name": name, "port": {"number": 80}}});
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"rules": [{
            "host": host,
            "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
        }]},
    })
}

struct Scenario {
    name: &'static str,
    model: &'static str,
    gpu: i64,
    provider_config: &'static str,
    namespace: &'static str,
    vllm_config: Value,
    resources: Value,
}

fn scenarios() -> [Scenario; 3] {
    let plain = json!({"gpuMemoryUtilization": "0.9"});
    [
        Scenario {
            name: "qwen",
            model: "Qwen/Qwen2.5-1.5B-Instruct",
            gpu: 1,
            provider_config: "inference-small",
            namespace: "dev",
            vllm_config: plain.clone(),
            resources: json!({"cpu": "2", "memory": "8Gi", "gpu": "1"}),
        },
        Scenario {
            name: "embedding",
            model: "BAAI/bge-base-en-v1.5",
            gpu: 1,
            provider_config: "inference-small",
            namespace: "dev",
            vllm_config: plain,
            resources: json!({"cpu": "2", "memory": "8Gi", "gpu": "1"}),
        },
        Scenario {
            name: "kimi",
            model: "moonshotai/Kimi-K2.5",
            gpu: 8,
            provider_config: "inference-large",
            namespace: "production",
            vllm_config: json!({
                "gpuMemoryUtilization": "0.9",
                "tensorParallelSize": 8,
                "env": [{"name": "VLLM_WORKER_MULTIPROC_METHOD", "value": "spawn"}],
            }),
            resources: json!({"cpu": "16", "memory": "64Gi", "gpu": "8"}),
        },
    ]
}

impl Scenario {
    fn host(&self) -> String {
        format!("{}.127.0.0.1.nip.io", self.name)
    }

    fn expected(&self) -> Value {
        let runtime = json!({
            "apiVersion": "production-stack.vllm.ai/v1alpha1",
            "kind": "VLLMRuntime",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {
                "model": {"modelURL": self.model, "dtype": "auto"},
                "vllmConfig": self.vllm_config,
                "deploymentConfig": {
                    "replicas": 1,
                    "image": {"registry": "docker.io", "name": "lmcache/vllm-openai:v0.3.13"},
                    "resources": self.resources,
                },
            },
        });
        json!({
            "vllm_runtime": object(self.provider_config, runtime),
            "ingress": object(self.provider_config, ingress(self.name, self.namespace, &self.host())),
        })
    }
}

#[test]
fn the_three_scenarios_compose_a_runtime_and_an_ingress() {
    for scenario in scenarios() {
        let spec = json!({
            "model": scenario.model,
            "gpu": scenario.gpu,
            "ingressHost": scenario.host(),
            "providerConfigName": scenario.provider_config,
            "targetNamespace": scenario.namespace,
        });
        assert_eq!(composed(scenario.name, spec), scenario.expected(), "{}", scenario.name);
    }
}

#[test]
fn the_published_examples_compose_as_the_scenarios_say() {
    let Some(folder) = conformance() else { return };
    let folder = folder.join("../examples/llm-inference");
    for scenario in scenarios() {
        let path = folder.join(format!("llm-{}.yaml", scenario.name));
        let text = std::fs::read_to_string(&path).expect("the example can be read");
        let example: Value = serde_saphyr::from_str(&text).expect("examples are YAML");
        assert_eq!(
            composed(scenario.name, example["spec"].clone()),
            scenario.expected(),
            "{}",
            scenario.name
        );
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    let spec =
        json!({"model": "org/m", "providerConfigName": "pc", "ingressHost": "", "targetNamespace": ""});
    let composed = composed("m", spec);
    assert!(composed.get("ingress").is_none(), "an empty host means no Ingress");
    let manifest = &composed["vllm_runtime"]["spec"]["forProvider"]["manifest"];
    assert_eq!(manifest["metadata"]["namespace"], "ml-team", "an empty namespace means the composite's");
    assert_eq!(manifest["spec"]["deploymentConfig"]["resources"]["gpu"], "1", "one accelerator by default");
}

#[test]
fn no_accelerator_is_allowed_and_a_negative_number_is_not() {
    let spec = |gpu: i64| json!({"model": "org/m", "providerConfigName": "pc", "gpu": gpu});
    let manifest = &composed("m", spec(0))["vllm_runtime"]["spec"]["forProvider"]["manifest"].clone();
    let none = json!({"cpu": "0", "memory": "0Gi", "gpu": "0"});
    assert_eq!(manifest["spec"]["deploymentConfig"]["resources"], none);
    let request = request("m", spec(-2), json!({}));
    let error = compose(&request.observed()).expect_err("negative");
    assert!(error.to_string().contains("spec.gpu is -2"), "{error}");
}

#[test]
fn a_resource_is_ready_when_its_observed_object_is() {
    let spec = json!({"model": "org/m", "providerConfigName": "pc", "ingressHost": "m.example.com"});
    let request = request("m", spec, json!({"vllm_runtime": with_condition("Ready"), "ingress": bare()}));
    let desired = compose(&request.observed()).expect("valid");
    assert_eq!(desired.resources["vllm_runtime"].ready, Ready::True);
    assert_eq!(desired.resources["ingress"].ready, Ready::Unspecified);
    assert_eq!(desired.conditions[0].reason, "AllComposed");
    let event = &desired.events[0];
    assert_eq!((event.severity, event.reason.as_deref()), (Severity::Normal, Some("Composed")));
    assert!(event.message.contains("org/m"), "{}", event.message);
}

#[test]
fn a_runtime_of_the_first_state_keeps_its_key() {
    let spec = json!({"model": "org/m", "providerConfigName": "pc"});
    let request = request("m", spec, json!({"vllm-runtime": with_condition("Ready")}));
    let desired = compose(&request.observed()).expect("valid");
    assert_eq!(desired.resources.keys().collect::<Vec<_>>(), ["vllm-runtime"]);
}
