//! Both published shapes of the API mean the same.

use crate::support::yaml;
use modelplane_api::common::SecretType;
use modelplane_api::gke_cluster::GKECluster;
use modelplane_api::inference_cluster::{FabricType, InferenceCluster};
use modelplane_api::model_deployment::ModelDeployment;
use modelplane_api::normalize::{
    Change, NormalizeError, convert, needs_normalizing, normalize, original_path,
};
use modelplane_api::serving_stack::ServingStack;
use modelplane_api::validate;
use serde_json::{Value, json};

const OLDER_DEPLOYMENT: &str = "
apiVersion: modelplane.ai/v1alpha1
kind: ModelDeployment
metadata: {name: qwen, namespace: ml}
spec:
  replicas: 2
  clusterSelector: {matchLabels: {region: eu}}
  modelCacheRef: {name: weights}
  serving: {mode: Unified}
  engines:
  - name: main
    members:
    - nodeSelector: {devices: [{name: gpu, selectors: [{cel: 'true'}]}]}
      template: {spec: {containers: [{name: engine, image: vllm}]}}
";

const NEWER_DEPLOYMENT: &str = "
apiVersion: modelplane.ai/v1alpha1
kind: ModelDeployment
metadata: {name: qwen, namespace: ml}
spec:
  replicas: 2
  template:
    spec:
      clusterSelector: {matchLabels: {region: eu}}
      modelCacheRef: {name: weights}
      serving: {mode: Unified}
      engines:
      - name: main
        members:
        - nodeSelector: {devices: [{name: gpu, selectors: [{cel: 'true'}]}]}
          template: {spec: {containers: [{name: engine, image: vllm}]}}
";

const OLDER_CLUSTER: &str = "
apiVersion: modelplane.ai/v1alpha1
kind: InferenceCluster
metadata: {name: west}
spec:
  cluster: {source: GKE, gke: {project: acme, region: us-central1}}
  nodePools:
  - {name: a, className: h100, fabric: EFA}
  - {name: b, className: h100, fabric: {type: InfiniBand, infiniband: {fabric: f1}}}
  - {name: c, className: h100}
";

#[test]
fn a_deployment_normalizes_to_the_newer_shape() {
    let (mut older, newer) = (yaml(OLDER_DEPLOYMENT), yaml(NEWER_DEPLOYMENT));
    assert!(needs_normalizing(&older) && !needs_normalizing(&newer));
    let changes = normalize(&mut older).unwrap();
    assert_eq!(older, newer);
    assert_eq!(changes.len(), 4);
    assert_eq!(original_path(&changes, "spec.template.spec.engines[0].name"), "spec.engines[0].name");
    assert_eq!(original_path(&changes, "spec.template.spec.enginesX"), "spec.template.spec.enginesX");
    assert_eq!(original_path(&changes, "spec.replicas"), "spec.replicas");
    assert_eq!(normalize(&mut older).unwrap(), [], "normalizing twice changes nothing");
}

#[test]
fn a_deployment_decodes_the_same_from_both_shapes() {
    let older: ModelDeployment = serde_json::from_value(yaml(OLDER_DEPLOYMENT)).unwrap();
    let newer: ModelDeployment = serde_json::from_value(yaml(NEWER_DEPLOYMENT)).unwrap();
    assert_eq!(older, newer);
    assert_eq!(newer.spec.template.spec.engines[0].copies(), 1);
    assert_eq!(newer.spec.template.spec.model_cache(), Some("weights"));
}

#[test]
fn a_deployment_without_either_shape_names_the_missing_field() {
    let document = json!({ "metadata": { "name": "x" }, "spec": { "replicas": 1 } });
    let error = serde_json::from_value::<ModelDeployment>(document).unwrap_err();
    assert!(error.to_string().contains("template"), "{error}");
}

#[test]
fn a_mixture_is_rejected_but_decodes_as_the_newer_shape() {
    let mut mixture = yaml(NEWER_DEPLOYMENT);
    mixture["spec"]["clusterSelector"] = json!({ "matchLabels": { "region": "us" } });
    let decoded: ModelDeployment = serde_json::from_value(mixture.clone()).unwrap();
    assert_eq!(decoded.spec.template.spec.cluster_labels().unwrap()["region"], "eu", "the newer fields win");
    let problems = validate(&mixture).unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].path, "spec.clusterSelector");
    let error = NormalizeError::MixedShapes { path: "spec.clusterSelector".to_owned() };
    assert_eq!(normalize(&mut mixture), Err(error));
}

#[test]
fn null_fields_of_the_other_shape_count_as_absent() {
    let mut newer = yaml(NEWER_DEPLOYMENT);
    newer["spec"]["engines"] = Value::Null;
    assert!(!needs_normalizing(&newer));
    let mut older = yaml(OLDER_DEPLOYMENT);
    older["spec"]["template"] = Value::Null;
    older["spec"]["serving"] = Value::Null;
    serde_json::from_value::<ModelDeployment>(older.clone()).unwrap();
    normalize(&mut older).unwrap();
    assert_eq!(older["spec"]["template"]["spec"].as_object().unwrap().len(), 3);
}

#[test]
fn a_fabric_is_an_object_or_the_name_of_its_type() {
    let cluster: InferenceCluster = serde_json::from_value(yaml(OLDER_CLUSTER)).unwrap();
    let types: Vec<_> = cluster.spec.node_pools.iter().map(|pool| pool.fabric_type()).collect();
    assert_eq!(types, [FabricType::Efa, FabricType::InfiniBand, FabricType::None]);
    let mut wrong = yaml(OLDER_CLUSTER);
    for value in [json!("Token Ring"), json!(3), json!([])] {
        wrong["spec"]["nodePools"][0]["fabric"] = value.clone();
        assert!(serde_json::from_value::<InferenceCluster>(wrong.clone()).is_err(), "{value}");
        let problems = validate(&wrong).unwrap();
        assert_eq!(problems[0].path, "spec.nodePools[0].fabric", "{value}: the path as written");
    }
}

#[test]
fn normalizing_keeps_the_project_and_converting_says_where_it_goes() {
    let mut cluster = yaml(OLDER_CLUSTER);
    let changes = normalize(&mut cluster).unwrap();
    assert_eq!(changes.len(), 1, "the fabric");
    assert_eq!(cluster["spec"]["nodePools"][0]["fabric"], json!({ "type": "EFA" }));
    assert_eq!(cluster["spec"]["cluster"]["gke"]["project"], "acme");
    let decoded: InferenceCluster = serde_json::from_value(cluster.clone()).unwrap();
    assert_eq!(decoded.spec.cluster.gke.unwrap().project.as_deref(), Some("acme"));

    let changes = convert(&mut cluster).unwrap();
    assert_eq!(cluster["spec"]["cluster"]["gke"], json!({ "region": "us-central1" }));
    let [Change::Removed { from, value, .. }] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!((from.as_str(), value.as_str()), ("spec.cluster.gke.project", "acme"));
}

#[test]
fn a_gke_cluster_keeps_its_project_when_decoded() {
    let document = yaml(
        "{apiVersion: infrastructure.modelplane.ai/v1alpha1, kind: GKECluster, metadata: {name: c},
          spec: {project: acme, region: r, nodePools: []}}",
    );
    let cluster: GKECluster = serde_json::from_value(document).unwrap();
    assert_eq!(cluster.spec.project.as_deref(), Some("acme"));
}

#[test]
fn google_credentials_are_known_by_both_names() {
    let mut stack = yaml(
        "{apiVersion: infrastructure.modelplane.ai/v1alpha1, kind: ServingStack, metadata: {name: s},
          spec: {secrets: [{type: Kubeconfig, name: k, key: k}, {type: GCPServiceAccountKey, name: g, key: k}]}}",
    );
    let decoded: ServingStack = serde_json::from_value(stack.clone()).unwrap();
    assert_eq!(decoded.spec.secrets[1].type_, SecretType::GoogleApplicationCredentials);
    assert_eq!(validate(&stack).unwrap(), []);
    assert_eq!(normalize(&mut stack).unwrap().len(), 1);
    assert_eq!(stack["spec"]["secrets"][1]["type"], "GoogleApplicationCredentials");
}
