//! EKSCluster: ranges, zones, and what is learned from AWS over time.

use modelplane_core::contract::{Desired, Ready};
use serde_json::{Value, json};

use crate::support::body;
use crate::{Case, warnings};

fn cluster(subnets: &[&str], pool: &Value) -> Case {
    let mut gpu = json!({
        "name": "gpu", "role": "GPU", "instanceType": "p5.48xlarge", "zones": ["us-west-2a"],
        "gpu": {"acceleratorType": "nvidia-h100"},
    });
    for (field, value) in pool.as_object().into_iter().flatten() {
        gpu[field] = value.clone();
    }
    Case::new(json!({
        "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
        "kind": "EKSCluster",
        "metadata": {"name": "west", "namespace": "modelplane-system"},
        "spec": {
            "region": "us-west-2",
            "networking": {"vpcCidr": "10.0.0.0/16", "subnetCidrs": subnets},
            "nodePools": [gpu],
        },
    }))
}

const SUBNETS: [&str; 3] = ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20"];
const FOUR_SUBNETS: [&str; 4] = ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20", "10.0.48.0/20"];

fn range(desired: &Desired<'_>, key: &str) -> String {
    body(desired, key)["spec"]["forProvider"]["cidrBlock"].as_str().expect("a range").to_owned()
}

#[test]
fn a_fourth_subnet_does_not_collide_with_the_first_private_one() {
    cluster(&FOUR_SUBNETS, &json!({})).check(|desired| {
        let private: Vec<String> =
            (0..4).map(|index| range(&desired, &format!("private-subnet-{index}"))).collect();
        assert_eq!(private, ["10.0.112.0/20", "10.0.64.0/20", "10.0.80.0/20", "10.0.96.0/20"]);
        assert!(warnings(&desired).is_empty());
    });
}

#[test]
fn a_private_subnet_that_exists_keeps_its_range() {
    let existing = json!({"spec": {"forProvider": {"cidrBlock": "10.0.48.0/20"}}});
    let case = cluster(&FOUR_SUBNETS, &json!({})).observing("private-subnet-0", existing);
    case.check(|desired| {
        assert_eq!(range(&desired, "private-subnet-0"), "10.0.48.0/20");
        let warnings = warnings(&desired);
        assert!(warnings.len() == 1 && warnings[0].contains("subnetCidrs[3] 10.0.48.0/20"), "{warnings:?}");
    });
}

#[test]
fn a_malformed_range_is_an_error_that_names_the_field() {
    cluster(&["10.0.0.0/20", "10.0.x.0/20"], &json!({})).answer(|answer| {
        let error = answer.expect_err("not a range").to_string();
        assert!(error.contains("subnetCidrs[1]") && error.contains("10.0.x.0/20"), "{error}");
    });
}

#[test]
fn a_zone_without_subnets_is_reported() {
    cluster(&SUBNETS, &json!({"zones": ["us-west-2a", "us-west-2f"]})).check(|desired| {
        let warnings = warnings(&desired);
        assert!(warnings.len() == 1 && warnings[0].contains("us-west-2f"), "{warnings:?}");
    });
}

#[test]
fn a_launch_template_keeps_its_security_groups_while_they_are_unknown() {
    let template = json!({"spec": {"forProvider": {"networkInterfaces": [
        {"securityGroups": ["sg-efa", "sg-cluster"]}, {"securityGroups": ["sg-efa", "sg-cluster"]},
    ]}}});
    let case = cluster(&SUBNETS, &json!({"fabric": "EFA"}));
    let groups = |desired: &Desired<'_>| {
        let fields = &body(desired, "launch-template-gpu")["spec"]["forProvider"];
        fields["networkInterfaces"][31]["securityGroups"].clone()
    };
    case.check(|desired| assert_eq!(groups(&desired), Value::Null));
    case.clone()
        .observing("launch-template-gpu", template.clone())
        .check(|desired| assert_eq!(groups(&desired), json!(["sg-efa", "sg-cluster"])));
    let vpc = json!({"status": {"atProvider": {"vpcConfig": {"clusterSecurityGroupId": "sg-new"}}}});
    let group = json!({"metadata": {"annotations": {"crossplane.io/external-name": "sg-efa"}}});
    case.observing("launch-template-gpu", template)
        .observing("cluster", vpc)
        .observing("efa-security-group", group)
        .check(|desired| assert_eq!(groups(&desired), json!(["sg-efa", "sg-new"])));
}

#[test]
fn what_is_installed_in_the_cluster_stays_while_the_cluster_is_unknown() {
    let class = json!({"kind": "Object", "spec": {"readiness": {"policy": "SuccessfulCreate"}}});
    let case = cluster(&SUBNETS, &json!({"fabric": "EFA"}))
        .observing("release-cluster-autoscaler", json!({"kind": "Release"}))
        .observing("release-efa-dra-driver", json!({"kind": "Release"}))
        .observing("storage-class-rwx-efs", class.clone());
    case.check(|desired| {
        assert!(desired.resources.contains_key("release-cluster-autoscaler"));
        assert!(desired.resources.contains_key("release-efa-dra-driver"));
        assert_eq!(body(&desired, "storage-class-rwx-efs")["spec"], class["spec"]);
        assert_eq!(desired.resources["storage-class-rwx-efs"].ready, Ready::True);
    });
}

#[test]
fn a_cluster_without_a_namespace_is_an_error_that_says_so() {
    let mut case = cluster(&SUBNETS, &json!({}));
    case.composite["metadata"] = json!({"name": "west"});
    case.answer(|answer| {
        assert!(answer.expect_err("no namespace").to_string().contains("metadata.namespace"));
    });
}
