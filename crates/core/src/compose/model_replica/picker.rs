//! The llm-d endpoint picker in front of a replica's pool: its Deployment and what that needs (spec replica §6.4).

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, Container, ContainerPort, PodSpec, PodTemplateSpec, Service,
    ServiceAccount, ServicePort, ServiceSpec, Volume,
};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use modelplane_api::names::{
    PICKER_CHECKSUM_ANNOTATION, PICKER_CONFIG_KEY, PICKER_KEY, PICKER_ROLE_BINDING_KEY, PICKER_ROLE_KEY,
    PICKER_SERVICE_ACCOUNT_KEY, PICKER_SERVICE_KEY, WORKLOAD_NAMESPACE, sha256_hex,
};

use super::Manifests;
use super::routing::{INFERENCE_GROUP, RoutingNames};
use crate::compose::workload::pod;

/// Port on which the gateway asks the picker.
pub const PORT: u16 = 9002;

const HEALTH_PORT: u16 = 9003;
const IMAGE: &str = "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.9.0";
const CONFIG_FILE: &str = "epp-config.yaml";
const CONFIG_MOUNT: &str = "/config";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// What the picker reads: API group and resource.
const READ: [(&str, &str); 3] = [
    ("", "pods"),
    (INFERENCE_GROUP, "inferencepools"),
    ("inference.networking.x-k8s.io", "inferenceobjectives"),
];

/// Wants the picker of a replica, running with the configuration text `config`.
pub(crate) fn add(manifests: &mut Manifests<'_, '_>, names: &RoutingNames, config: &str) {
    let name = names.picker.as_str();
    let account = ServiceAccount { metadata: metadata(name), ..ServiceAccount::default() };
    manifests.add(PICKER_SERVICE_ACCOUNT_KEY, &account);
    manifests.add(PICKER_ROLE_KEY, &role(name));
    manifests.add(PICKER_ROLE_BINDING_KEY, &role_binding(name));
    let data = BTreeMap::from([(CONFIG_FILE.to_owned(), config.to_owned())]);
    let config_map = ConfigMap { metadata: metadata(name), data: Some(data), ..ConfigMap::default() };
    manifests.add(PICKER_CONFIG_KEY, &config_map);
    manifests.add(PICKER_SERVICE_KEY, &service(name));
    manifests.add_workload(PICKER_KEY, &deployment(names, config));
}

fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(WORKLOAD_NAMESPACE.to_owned()),
        ..ObjectMeta::default()
    }
}

/// What marks the picker's pods.
fn app(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), name.to_owned())])
}

fn role(name: &str) -> Role {
    let rules = READ.map(|(group, resource)| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: ["get", "watch", "list"].map(str::to_owned).to_vec(),
        ..PolicyRule::default()
    });
    Role { metadata: metadata(name), rules: Some(rules.to_vec()) }
}

fn role_binding(name: &str) -> RoleBinding {
    RoleBinding {
        metadata: metadata(name),
        role_ref: RoleRef {
            api_group: RBAC_GROUP.to_owned(),
            kind: "Role".to_owned(),
            name: name.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: name.to_owned(),
            namespace: Some(WORKLOAD_NAMESPACE.to_owned()),
            api_group: None,
        }]),
    }
}

fn service(name: &str) -> Service {
    let port = ServicePort {
        name: Some("grpc-ext-proc".to_owned()),
        port: PORT.into(),
        target_port: Some(IntOrString::Int(PORT.into())),
        app_protocol: Some("http2".to_owned()),
        ..ServicePort::default()
    };
    let spec = ServiceSpec { selector: Some(app(name)), ports: Some(vec![port]), ..ServiceSpec::default() };
    Service { metadata: metadata(name), spec: Some(spec), status: None }
}

fn deployment(names: &RoutingNames, config: &str) -> Deployment {
    let name = names.picker.as_str();
    // A changed configuration restarts the picker, which reads it only when it starts.
    let annotations = BTreeMap::from([(PICKER_CHECKSUM_ANNOTATION.to_owned(), sha256_hex(config))]);
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(app(name)),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        }),
        spec: Some(pod_spec(names)),
    };
    Deployment {
        metadata: metadata(name),
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            selector: LabelSelector { match_labels: Some(app(name)), match_expressions: None },
            template,
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

fn pod_spec(names: &RoutingNames) -> PodSpec {
    const CONFIG_VOLUME: &str = "config";
    let port = |name: &str, number: u16| ContainerPort { name: Some(name.to_owned()), ..pod::port(number) };
    let container = Container {
        name: "epp".to_owned(),
        image: Some(IMAGE.to_owned()),
        args: Some(vec![
            format!("--pool-name={}", names.pool),
            format!("--pool-namespace={WORKLOAD_NAMESPACE}"),
            format!("--pool-group={INFERENCE_GROUP}"),
            format!("--config-file={CONFIG_MOUNT}/{CONFIG_FILE}"),
            format!("--grpc-port={PORT}"),
        ]),
        ports: Some(vec![port("grpc", PORT), port("grpc-health", HEALTH_PORT)]),
        volume_mounts: Some(vec![pod::mount(CONFIG_VOLUME, CONFIG_MOUNT)]),
        ..Container::default()
    };
    let config_map = ConfigMapVolumeSource { name: names.picker.clone(), ..ConfigMapVolumeSource::default() };
    let volume = Volume { name: CONFIG_VOLUME.to_owned(), config_map: Some(config_map), ..Volume::default() };
    PodSpec {
        containers: vec![container],
        service_account_name: Some(names.picker.clone()),
        volumes: Some(vec![volume]),
        ..PodSpec::default()
    }
}
