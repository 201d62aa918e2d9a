//! Behaviour of the `ModelReplica` composition beyond the recorded pairs: worked examples, held state, refusals.

mod support;

use modelplane_core::compose::model_replica::compose;
use modelplane_core::contract::{ConditionStatus, Desired, Ready, Severity};
use serde_json::{Value, json};
use support::{Request, body};

/// A member with one device request.
fn member(role: &str, container: Value) -> Value {
    json!({
        "role": role,
        "nodePoolName": "frontier",
        "deviceRequests": [{"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 8}],
        "template": {"spec": {"containers": [container]}},
    })
}

fn container(args: &[&str]) -> Value {
    json!({"name": "engine", "image": "vllm/vllm-openai:v0.23.0", "args": args})
}

fn replica(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["clusterName"] = json!("gpu-a");
    json!({
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": spec,
    })
}

fn standalone(args: &[&str]) -> Value {
    json!({"engines": [{"name": "main", "members": [member("Standalone", container(args))]}]})
}

/// Prefill in one pod, decode in a gang whose workers claim nothing (spec replica §6.6).
fn disaggregated(decode_args: &[&str]) -> Value {
    let mut leader = member("Leader", container(decode_args));
    leader["template"]["metadata"] = json!({"labels": {"app": "mine"}});
    let mut worker = member("Worker", json!({"name": "engine", "image": "vllm/vllm-openai:v0.23.0"}));
    worker.as_object_mut().expect("a member").remove("deviceRequests");
    worker["worker"] = json!({"nodes": 2});
    json!({
        "serving": {"mode": "PrefillDecode"},
        "modelCacheRef": {"name": "w"},
        "engines": [
            {"name": "pf", "phase": "Prefill", "members": [member("Standalone", container(&[]))]},
            {"name": "dc", "phase": "Decode", "members": [leader, worker]},
        ],
    })
}

fn cluster() -> Value {
    json!({"resource": {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceCluster",
        "metadata": {"name": "gpu-a"},
        "status": {"providerConfigRef": {"name": "gpu-a-pc"}},
    }})
}

fn request(composite: Value, clusters: Value, resources: Value) -> Request {
    Request::from_json(&json!({
        "observed": {"composite": {"resource": composite}, "resources": resources},
        "requiredResources": {"cluster": {"items": clusters}},
    }))
}

/// What is observed once everything that `desired` wants is there and ready.
fn all_ready(desired: &Desired<'_>) -> Value {
    let objects = desired.resources.keys().map(|key| {
        let mut object = body(desired, key);
        object["status"] = json!({
            "atProvider": {"manifest": object["spec"]["forProvider"]["manifest"]},
            "conditions": [{"type": "Ready", "status": "True"}],
        });
        (key.to_string(), json!({"resource": object}))
    });
    Value::Object(objects.collect())
}

fn manifest(desired: &Desired<'_>, key: &str) -> Value {
    body(desired, key)["spec"]["forProvider"]["manifest"].clone()
}

fn conditions(desired: &Desired<'_>) -> Vec<(String, bool, String)> {
    let conditions = desired.conditions.iter().map(|condition| {
        let holds = condition.status == ConditionStatus::True;
        (condition.condition_type.to_string(), holds, condition.reason.to_string())
    });
    conditions.collect()
}

fn keys<'d>(desired: &'d Desired<'_>) -> Vec<&'d str> {
    desired.resources.keys().map(AsRef::as_ref).collect()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|item| item["name"].as_str().expect("a name")).collect()
}

#[test]
fn a_disaggregated_replica_is_the_specifications_worked_example() {
    let composite = replica("r1", disaggregated(&["--port", "9000", "--block-size=32"]));
    let request = request(composite, json!([cluster()]), json!({}));
    let desired = compose(&request.observed()).expect("a valid replica");

    let want = [
        "epp",
        "epp-config",
        "epp-role",
        "epp-rolebinding",
        "epp-service",
        "epp-serviceaccount",
        "inference-pool",
        "model-route",
        "model-serving-dc",
        "model-serving-pf",
        "resource-claim-dc-leader",
        "resource-claim-pf-standalone",
    ];
    assert_eq!(keys(&desired), want);

    let prefill = manifest(&desired, "model-serving-pf");
    assert_eq!(
        (&prefill["kind"], &prefill["metadata"]["name"]),
        (&json!("Deployment"), &json!("r1-pf-29834"))
    );
    let pod = &prefill["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["args"], json!(["--model=/mnt/models"]));
    assert_eq!(
        names(&pod["containers"][0]["env"]),
        ["VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_NIXL_SIDE_CHANNEL_PORT"]
    );
    assert_eq!(names(&pod["volumes"]), ["dshm", "model-cache", "nixl-shm"]);
    assert_eq!(pod["volumes"][1]["persistentVolumeClaim"]["claimName"], "modelcache-ns-w-f9c52");
    assert_eq!(names(&pod["containers"][0]["volumeMounts"]), ["dshm", "model-cache"]);
    assert_eq!(pod["containers"].as_array().map(Vec::len), Some(1), "prefill has no sidecar");

    let decode = manifest(&desired, "model-serving-dc");
    assert_eq!(
        (&decode["kind"], &decode["metadata"]["name"]),
        (&json!("LeaderWorkerSet"), &json!("r1-dc-78f96"))
    );
    let group = &decode["spec"]["leaderWorkerTemplate"];
    assert_eq!(group["size"], 3);
    let leader = &group["leaderTemplate"];
    assert_eq!(leader["metadata"]["labels"]["app"], "r1", "the replica's label wins over the user's");
    assert_eq!(leader["metadata"]["labels"]["llm-d.ai/role"], "decode");
    let engine = &leader["spec"]["containers"][0];
    assert_eq!(engine["args"], json!(["--port", "9000", "--block-size=32", "--model=/mnt/models"]));
    assert_eq!(
        names(&engine["env"]),
        [
            "MODELPLANE_LEADER_ADDRESS",
            "MODELPLANE_RANK",
            "VLLM_NIXL_SIDE_CHANNEL_HOST",
            "VLLM_NIXL_SIDE_CHANNEL_PORT"
        ]
    );
    assert_eq!(engine["ports"], json!([{"containerPort": 9000}]));
    assert_eq!(engine["readinessProbe"]["httpGet"]["port"], 9000);
    let sidecar = &leader["spec"]["containers"][1];
    assert_eq!(sidecar["args"][2], "--vllm-port=9000");
    assert_eq!(sidecar["ports"], json!([{"containerPort": 8000}]));
    let worker = &group["workerTemplate"];
    assert!(worker.get("metadata").is_none(), "no user labels, so no metadata");
    let worker_container = worker["spec"]["containers"][0].as_object().expect("a container");
    for absent in ["args", "resources", "ports", "readinessProbe", "command"] {
        assert!(!worker_container.contains_key(absent), "{absent}");
    }
    assert!(worker["spec"].get("resourceClaims").is_none());
    assert_eq!(worker["spec"]["nodeSelector"], json!({"modelplane.ai/pool": "frontier"}));

    let config = manifest(&desired, "epp-config")["data"]["epp-config.yaml"].clone();
    assert!(config.as_str().is_some_and(|text| text.contains("blockSizeTokens: 32") && text.len() == 921));
    assert_eq!(
        manifest(&desired, "epp")["spec"]["template"]["metadata"]["annotations"]["modelplane.ai/epp-config-checksum"],
        "9749bd046481320bc67e9228da4b2c0dcf83ab87d1df97f3dce4bf662cca2aa4"
    );
}

#[test]
fn the_model_argument_is_added_only_where_the_engine_would_not_know_the_weights() {
    let cases: &[(&str, Value, bool)] = &[
        ("no args", json!({}), true),
        ("other args", json!({"args": ["serve", "--models"]}), true),
        ("an own --model", json!({"args": ["--model", "x"]}), false),
        ("an own --model=", json!({"args": ["--model=x"]}), false),
        ("an own command", json!({"command": ["python"]}), false),
        ("an empty command", json!({"command": []}), true),
    ];
    for (reason, fields, added) in cases {
        let mut container = json!({"name": "engine", "image": "i"});
        for (key, value) in fields.as_object().expect("an object") {
            container[key] = value.clone();
        }
        let mut spec = json!({"engines": [{"name": "main", "members": [member("Standalone", container)]}]});
        spec["modelCacheRef"] = json!({"name": "w"});
        let request = request(replica("r1", spec), json!([cluster()]), json!({}));
        let desired = compose(&request.observed()).expect("a valid replica");
        let workload = manifest(&desired, "model-serving-main");
        let args = &workload["spec"]["template"]["spec"]["containers"][0]["args"];
        let args = args.as_array().unwrap_or_else(|| panic!("{reason}: args are always written"));
        assert_eq!(args.contains(&json!("--model=/mnt/models")), *added, "{reason}");
    }
}

#[test]
fn a_replica_keeps_everything_while_its_cluster_is_missing() {
    let composite = replica("r1", standalone(&[]));
    let fresh = request(composite.clone(), json!([cluster()]), json!({}));
    let resources = all_ready(&compose(&fresh.observed()).expect("a valid replica"));
    let mut without_config = cluster();
    without_config["resource"]["status"] = json!({});
    let mut malformed = cluster();
    malformed["resource"]["status"] = json!({"providerConfigRef": {"name": 7}});
    let cases = [
        ("the cluster is gone", Some(json!([])), "gpu-a does not exist"),
        ("its provider config is gone", Some(json!([without_config])), "status.providerConfigRef.name"),
        ("its provider config is malformed", Some(json!([malformed])), "status.providerConfigRef.name"),
        ("it has not been fetched", None, "not been fetched"),
    ];
    for (reason, clusters, mention) in cases {
        let mut document = json!({
            "observed": {"composite": {"resource": composite}, "resources": resources},
        });
        if let Some(clusters) = clusters {
            document["requiredResources"] = json!({"cluster": {"items": clusters}});
        }
        let request = Request::from_json(&document);
        let observed = request.observed();
        let desired = compose(&observed).expect("a valid replica");
        assert_eq!(desired.resources.len(), observed.resources.len(), "{reason}");
        for (key, resource) in &desired.resources {
            assert_eq!(resource.ready, Ready::True, "{reason}: {key} stays ready");
            let mut before = resources[key.as_ref()]["resource"].clone();
            before.as_object_mut().expect("an object").remove("status");
            let mut after = body(&desired, key);
            after.as_object_mut().expect("an object").remove("metadata");
            assert_eq!(after, before, "{reason}: {key}");
        }
        let want = [
            ("ModelAccepted".to_owned(), false, "WaitingForCluster".to_owned()),
            ("ModelReady".to_owned(), true, "Serving".to_owned()),
        ];
        assert_eq!(conditions(&desired), want, "{reason}");
        let message = desired.conditions[0].message.as_deref().unwrap_or_default();
        assert!(message.contains(mention), "{reason}: {message}");
        assert_eq!(desired.events[0].severity, Severity::Warning, "{reason}");
    }
}

#[test]
fn an_engine_that_cannot_be_built_is_held_and_named_and_the_others_go_on() {
    let good = replica("r1", disaggregated(&[]));
    let fresh = request(good, json!([cluster()]), json!({}));
    let resources = all_ready(&compose(&fresh.observed()).expect("a valid replica"));
    for bad in ["--port=", "--port=http", "--port=8000"] {
        let composite = replica("r1", disaggregated(&[bad, "--block-size=64"]));
        let request = request(composite, json!([cluster()]), resources.clone());
        let desired = compose(&request.observed()).expect("a readable replica");
        assert_eq!(keys(&desired).len(), 12, "{bad}: nothing is dropped");
        let held = manifest(&desired, "model-serving-dc");
        let before = &resources["model-serving-dc"]["resource"]["spec"]["forProvider"]["manifest"];
        assert_eq!(&held, before, "{bad}");
        let config = manifest(&desired, "epp-config");
        assert!(config.to_string().contains("blockSizeTokens: 64"), "{bad}: the rest follows the spec");
        assert_eq!(conditions(&desired)[0], ("ModelAccepted".to_owned(), false, "InvalidSpec".to_owned()));
        let message = desired.conditions[0].message.as_deref().unwrap_or_default();
        assert!(message.contains("spec.engines[1] (dc)") && message.contains("--port"), "{message}");
        assert!(desired.events.iter().any(|event| event.severity == Severity::Warning));
    }
}

#[test]
fn an_engine_that_loses_its_members_keeps_its_claims_too() {
    let mut spec = disaggregated(&[]);
    let fresh = request(replica("r1", spec.clone()), json!([cluster()]), json!({}));
    let resources = all_ready(&compose(&fresh.observed()).expect("a valid replica"));
    spec["engines"][1]["members"] = json!([]);
    let request = request(replica("r1", spec), json!([cluster()]), resources);
    let desired = compose(&request.observed()).expect("a readable replica");
    assert_eq!(keys(&desired).len(), 12, "nothing is dropped");
    assert!(desired.conditions[0].message.as_deref().is_some_and(|message| message.contains("role Leader")));
}

#[test]
fn a_replica_that_lacks_what_its_mode_needs_is_refused_by_name() {
    let mut one_phase = disaggregated(&[]);
    one_phase["engines"].as_array_mut().expect("engines").pop();
    let cases = [
        ("no decode engine", one_phase, "phase Decode"),
        ("no engine", json!({"engines": []}), "spec.engines"),
        ("engines missing", json!({}), "engines"),
    ];
    for (reason, spec, mention) in cases {
        let request = request(replica("r1", spec), json!([cluster()]), json!({}));
        let error = compose(&request.observed()).expect_err(reason).to_string();
        assert!(error.contains(mention) && error.contains("ModelReplica ns/r1"), "{reason}: {error}");
    }
}

#[test]
fn long_replica_names_give_valid_names_and_short_ones_stay_as_published() {
    let is_label = |text: &str| {
        text.len() <= 63 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    for length in [10, 59, 60, 63, 80] {
        let name = "r".repeat(length);
        let request = request(replica(&name, standalone(&[])), json!([cluster()]), json!({}));
        let desired = compose(&request.observed()).expect("a valid replica");
        let picker = manifest(&desired, "epp-service")["metadata"]["name"].clone();
        let picker = picker.as_str().expect("a name");
        assert!(is_label(picker), "{length}: {picker}");
        assert_eq!(picker == format!("{name}-epp"), length <= 59, "{length}: {picker}");
        for key in ["epp", "epp-config", "epp-role", "epp-rolebinding", "epp-serviceaccount"] {
            assert_eq!(manifest(&desired, key)["metadata"]["name"], picker, "{length}: {key}");
        }
        let pool = manifest(&desired, "inference-pool");
        assert_eq!(pool["spec"]["endpointPickerRef"]["name"], picker);
        let pod = manifest(&desired, "model-serving-main")["spec"]["template"].clone();
        let label = &pod["metadata"]["labels"]["modelplane.ai/serving"];
        assert_eq!(label, &pool["spec"]["selector"]["matchLabels"]["modelplane.ai/serving"]);
        assert!(is_label(label.as_str().expect("a label")), "{length}: {label}");
        assert_eq!(*label == json!(name), length <= 63, "{length}: {label}");
    }
}

#[test]
fn a_replica_of_the_same_name_in_another_namespace_is_reported() {
    let composite = replica("r1", standalone(&[]));
    let fresh = request(composite.clone(), json!([cluster()]), json!({}));
    let mut resources = all_ready(&compose(&fresh.observed()).expect("a valid replica"));
    let warnings = |resources: &Value| -> Vec<String> {
        let request = request(composite.clone(), json!([cluster()]), resources.clone());
        let desired = compose(&request.observed()).expect("a valid replica");
        let warnings = desired.events.into_iter().filter(|event| event.severity == Severity::Warning);
        warnings.map(|event| event.message).collect()
    };
    assert_eq!(warnings(&resources), Vec::<String>::new());
    let route = &mut resources["model-route"]["resource"]["status"]["atProvider"]["manifest"];
    route["spec"]["rules"][0]["matches"][0]["path"]["value"] = json!("/other-team/r1/");
    let warnings = warnings(&resources);
    assert!(warnings.len() == 1 && warnings[0].contains("namespace other-team"), "{warnings:?}");
}

#[test]
fn conditions_follow_the_workloads() {
    let composite = replica("r1", standalone(&[]));
    let fresh = request(composite.clone(), json!([cluster()]), json!({}));
    let ready = all_ready(&compose(&fresh.observed()).expect("a valid replica"));
    let workload = |status: Value| {
        let mut resources = ready.clone();
        resources["model-serving-main"]["resource"]["status"] = status;
        resources
    };
    let manifest = json!({"manifest": {"kind": "Deployment"}});
    let is_ready = json!([{"type": "Ready", "status": "True"}]);
    let cases = [
        ("nothing observed", json!({}), (false, "Deploying"), (false, "WaitingForModel")),
        ("not on the cluster yet", workload(json!({})), (false, "Deploying"), (false, "WaitingForModel")),
        (
            "an empty manifest",
            workload(json!({"atProvider": {"manifest": {}}})),
            (false, "Deploying"),
            (false, "WaitingForModel"),
        ),
        (
            "on the cluster",
            workload(json!({"atProvider": manifest})),
            (true, "Accepted"),
            (false, "ModelStarting"),
        ),
        (
            "ready before its manifest is seen",
            workload(json!({"conditions": is_ready})),
            (false, "Deploying"),
            (true, "Serving"),
        ),
        ("all ready", ready.clone(), (true, "Accepted"), (true, "Serving")),
    ];
    for (reason, resources, accepted, serving) in cases {
        let observes_nothing = resources == json!({});
        let request = request(composite.clone(), json!([cluster()]), resources);
        let desired = compose(&request.observed()).expect("a valid replica");
        let want = [
            ("ModelAccepted".to_owned(), accepted.0, accepted.1.to_owned()),
            ("ModelReady".to_owned(), serving.0, serving.1.to_owned()),
        ];
        assert_eq!(conditions(&desired), want, "{reason}");
        assert_eq!(desired.events.len(), usize::from(observes_nothing), "{reason}");
    }
}
