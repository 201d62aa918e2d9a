//! XRDs become served kinds with all their rules.

use serde_json::{Value, json};

use crate::environment::{Environment, TEAM};
use crate::failure::{Failure, Outcome, ensure};
use crate::kube_api::{Mode, condition, conditions, is_true, list, name};
use crate::manifests;
use crate::resources::{COMPOSITE_DEFINITION, CUSTOM_RESOURCE_DEFINITION};
use crate::tools::repository;

/// Every XRD is Established, and the kind it defines has all of its validation rules and no schema problem.
pub(super) async fn established(environment: &mut Environment) -> Outcome {
    let kube = environment.control();
    for wanted in manifests::read_folder(&repository().join("package/xrds"))? {
        let name = name(&wanted);
        let definition = kube.get(COMPOSITE_DEFINITION, "", name).await?;
        ensure(is_true(&definition, "Established"), || format!("XRD {name}: {}", conditions(&definition)))?;
        let served = kube.get(CUSTOM_RESOURCE_DEFINITION, "", name).await?;
        ensure(is_true(&served, "Established"), || format!("CRD {name}: {}", conditions(&served)))?;
        let structural = condition(&served, "NonStructuralSchema").is_none();
        ensure(structural, || format!("CRD {name}: {}", conditions(&served)))?;
        for version in list(&wanted, "/spec/versions") {
            let rules = rules(&version["schema"]["openAPIV3Schema"]["properties"]["spec"]);
            let same = |candidate: &&Value| candidate["name"] == version["name"];
            let served = list(&served, "/spec/versions").iter().find(same);
            let served = served.ok_or_else(|| Failure::Wrong(format!("CRD {name} lacks a version")))?;
            let spec = &served["schema"]["openAPIV3Schema"]["properties"]["spec"];
            let missing: Vec<String> =
                rules.into_iter().filter(|rule| !self::rules(spec).contains(rule)).collect();
            ensure(missing.is_empty(), || format!("CRD {name} lacks the rules {missing:?}"))?;
        }
    }
    Ok(())
}

/// All CEL rules in a schema.
fn rules(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![schema];
    while let Some(node) = open.pop() {
        match node {
            Value::Object(fields) => {
                let own = list(node, "/x-kubernetes-validations").iter();
                found.extend(own.filter_map(|rule| rule["rule"].as_str()).map(str::to_owned));
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

/// Composites that break a rule are refused by the API server, and the refusal says where.
pub(super) async fn rules_refuse(environment: &mut Environment) -> Outcome {
    struct Case {
        name: &'static str,
        kind: &'static str,
        spec: Value,
        says: &'static str,
    }
    let engine = |member: Value| json!({"replicas": 1, "template": {"spec": {"engines": [{"name": "e", "members": [member]}]}}});
    let container = |name: &str| json!({"spec": {"containers": [{"name": name, "image": "x"}]}});
    let devices = json!({"devices": [{"name": "gpu", "selectors": [{"cel": "true"}]}]});
    let cases = [
        Case {
            name: "an existing cluster needs its kubeconfig",
            kind: "InferenceCluster",
            spec: json!({"cluster": {"source": "Existing"}}),
            says: "spec.cluster",
        },
        Case {
            name: "a device for DRA needs a device class",
            kind: "InferenceClass",
            spec: json!({"devices": [{"name": "gpu", "driver": "d"}]}),
            says: "spec.devices[0]",
        },
        Case {
            name: "an attribute has one value",
            kind: "InferenceClass",
            spec: json!({"devices": [{"name": "gpu", "driver": "d", "claim": "Synthetic",
                "attributes": {"a": {"string": "x", "int": 1}}}]}),
            says: "spec.devices[0].attributes",
        },
        Case {
            name: "Traefik needs its block",
            kind: "InferenceGateway",
            spec: json!({"backend": "Traefik"}),
            says: "spec",
        },
        Case {
            name: "a source of weights needs its block",
            kind: "ModelCache",
            spec: json!({"source": "HuggingFace"}),
            says: "spec",
        },
        Case {
            name: "the engine container is called engine",
            kind: "ModelDeployment",
            spec: engine(json!({"nodeSelector": devices.clone(), "template": container("other")})),
            says: "containers",
        },
        Case {
            name: "an engine needs devices",
            kind: "ModelDeployment",
            spec: engine(json!({"template": container("engine")})),
            says: "spec.template.spec.engines[0]",
        },
    ];
    for Case { name, kind, spec, says } in cases {
        let info = modelplane_api::kind::ALL.iter().find(|info| info.kind == kind);
        let info = info.ok_or_else(|| Failure::Wrong(format!("no kind {kind}")))?;
        let mut metadata = json!({"name": "refused"});
        if info.scope == modelplane_api::kind::Scope::Namespaced {
            metadata["namespace"] = json!(TEAM);
        }
        let manifest =
            json!({"apiVersion": info.api_version(), "kind": kind, "metadata": metadata, "spec": spec});
        match environment.control().create(&manifest, Mode::DryRun).await {
            Err(Failure::Api { code: 422, message, .. }) if message.contains(says) => {}
            Err(other) => return Err(Failure::Wrong(format!("{name}: {}", other.describe()))),
            Ok(_) => return Err(Failure::Wrong(format!("{name}, but the API server accepts it without"))),
        }
    }
    Ok(())
}
