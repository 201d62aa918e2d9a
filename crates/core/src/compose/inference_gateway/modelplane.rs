//! The Modelplane backend: this project's own data plane as a Deployment, its Service, what it may read, and the
//! GatewayClass and Gateway whose status it keeps.
//!
//! Clients reach it through the Service; it reads ModelServices and ModelEndpoints itself, so that nothing but
//! their documents stands between a change and the route. `modelplane up` runs the same data plane in its own
//! process and reports the Deployment as available.

use modelplane_api::inference_gateway::{InferenceGatewaySpec, ModelplaneGateway};
use modelplane_api::names::{FLEET_GATEWAY, GATEWAY_CONTROLLER, GATEWAY_WORKLOAD, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

use super::{GATEWAY, gateway_api_is_served};
use crate::compose::object::{KubernetesObject, Metadata};
use crate::contract::{Body, Desired, Observed, Ready};
use crate::versions::MODELPLANE;

/// Key of the Deployment.
pub(super) const DEPLOYMENT: &str = "gateway-deployment";
/// A key of its own: the class has another name than that of other backends.
const GATEWAY_CLASS: &str = "gateway-class-modelplane";
const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// Label of the data plane's pods.
const APP_LABEL: &str = "app.kubernetes.io/name";
/// Port for HTTP inside the pods.
const HTTP_PORT: u16 = 8080;
/// Port for HTTPS inside the pods.
const HTTPS_PORT: u16 = 8443;
/// Port for health, metrics and the route table inside the pods.
const ADMIN_PORT: u16 = 9090;
/// User of the image, which has no other.
const USER: i64 = 65532;

/// Composes the data plane; returns whether it runs.
pub(super) fn compose<'a>(
    observed: &Observed<'a>,
    spec: &InferenceGatewaySpec,
    desired: &mut Desired<'a>,
) -> bool {
    let settings = spec.modelplane.clone().unwrap_or_default();
    let running = observed.is_true(DEPLOYMENT, "Available");
    for (key, body) in [
        ("gateway-service-account", service_account()),
        ("gateway-cluster-role", cluster_role()),
        ("gateway-cluster-role-binding", cluster_role_binding()),
        ("gateway-service", service(&settings)),
    ] {
        desired.add(key, body, Ready::when(observed.has(key)));
    }
    desired.add(DEPLOYMENT, deployment(&settings), Ready::when(running));
    let served = gateway_api_is_served(observed);
    for (key, body) in [(GATEWAY_CLASS, gateway_class()), (GATEWAY, gateway(&settings))] {
        if served || observed.has(key) {
            desired.add(key, body, Ready::when(observed.is_true(key, "Accepted")));
        }
    }
    running
}

fn system_object(api_version: &'static str, kind: &'static str, content: Value) -> Body<'static> {
    let metadata = Metadata::named(GATEWAY_WORKLOAD).and_namespace(SYSTEM_NAMESPACE);
    Body::of(&KubernetesObject::with_content(api_version, kind, content).with_metadata(metadata))
}

fn cluster_object(api_version: &'static str, kind: &'static str, content: Value) -> Body<'static> {
    let metadata = Metadata::named(GATEWAY_WORKLOAD);
    Body::of(&KubernetesObject::with_content(api_version, kind, content).with_metadata(metadata))
}

fn service_account() -> Body<'static> {
    system_object("v1", "ServiceAccount", json!({}))
}

/// What the data plane reads, and the statuses it keeps.
fn cluster_role() -> Body<'static> {
    let read = json!(["get", "list", "watch"]);
    let write = json!(["update", "patch"]);
    let gateway_api = "gateway.networking.k8s.io";
    let rules = json!([
        {
            "apiGroups": ["modelplane.ai"],
            "resources": ["inferencegateways", "modelendpoints", "modelservices"],
            "verbs": read,
        },
        {"apiGroups": [""], "resources": ["secrets", "services"], "verbs": read},
        {"apiGroups": [gateway_api], "resources": ["gatewayclasses", "gateways", "httproutes"], "verbs": read},
        {
            "apiGroups": [gateway_api],
            "resources": ["gatewayclasses/status", "gateways/status", "httproutes/status"],
            "verbs": write,
        },
    ]);
    cluster_object(RBAC, "ClusterRole", json!({ "rules": rules }))
}

fn cluster_role_binding() -> Body<'static> {
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": GATEWAY_WORKLOAD});
    let subject = json!({"kind": "ServiceAccount", "name": GATEWAY_WORKLOAD, "namespace": SYSTEM_NAMESPACE});
    cluster_object(RBAC, "ClusterRoleBinding", json!({"roleRef": role, "subjects": [subject]}))
}

fn service(settings: &ModelplaneGateway) -> Body<'static> {
    let mut ports = vec![json!({"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"})];
    if settings.tls.is_some() {
        ports.push(json!({"name": "https", "port": 443, "targetPort": "https", "protocol": "TCP"}));
    }
    let spec = json!({"type": "LoadBalancer", "selector": {APP_LABEL: GATEWAY_WORKLOAD}, "ports": ports});
    let mut metadata = Metadata::named(GATEWAY_WORKLOAD).and_namespace(SYSTEM_NAMESPACE);
    metadata.annotations.clone_from(&settings.service_annotations);
    Body::of(&KubernetesObject::with_spec("v1", "Service", spec).with_metadata(metadata))
}

fn deployment(settings: &ModelplaneGateway) -> Body<'static> {
    let image = match &settings.image {
        Some(image) => image.clone(),
        None => MODELPLANE.reference(),
    };
    let address = |port: u16| format!("0.0.0.0:{port}");
    let mut arguments = vec![
        "gateway".to_owned(),
        "--listen".to_owned(),
        address(HTTP_PORT),
        "--admin-listen".to_owned(),
        address(ADMIN_PORT),
    ];
    let mut ports = vec![
        json!({"name": "http", "containerPort": HTTP_PORT}),
        json!({"name": "admin", "containerPort": ADMIN_PORT}),
    ];
    if settings.tls.is_some() {
        arguments.extend(["--listen-tls".to_owned(), address(HTTPS_PORT)]);
        ports.push(json!({"name": "https", "containerPort": HTTPS_PORT}));
    }
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "admin"}});
    let container = json!({
        "name": "gateway",
        "image": image,
        "command": ["/modelplane"],
        "args": arguments,
        "ports": ports,
        "readinessProbe": probe("/readyz"),
        "livenessProbe": probe("/livez"),
        "resources": {"requests": {"cpu": "500m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
    });
    let pod = json!({
        "serviceAccountName": GATEWAY_WORKLOAD,
        // Longer than the data plane waits for streams to end.
        "terminationGracePeriodSeconds": 330,
        "securityContext": {"runAsNonRoot": true, "runAsUser": USER, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    });
    let labels = json!({APP_LABEL: GATEWAY_WORKLOAD});
    system_object(
        "apps/v1",
        "Deployment",
        json!({"spec": {
            "replicas": settings.replicas(),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }}),
    )
}

fn gateway_class() -> Body<'static> {
    let spec = json!({"controllerName": GATEWAY_CONTROLLER});
    let class = KubernetesObject::with_spec(GATEWAY_API, "GatewayClass", spec);
    Body::of(&class.with_metadata(Metadata::named(FLEET_GATEWAY)))
}

fn gateway(settings: &ModelplaneGateway) -> Body<'static> {
    let routes = json!({"namespaces": {"from": "All"}});
    let mut listeners = vec![json!({"name": "web", "protocol": "HTTP", "port": 80, "allowedRoutes": routes})];
    if let Some(tls) = &settings.tls {
        let certificates: Vec<Value> =
            tls.certificate_secrets.iter().map(|name| json!({"kind": "Secret", "name": name})).collect();
        let mut listener = json!({
            "name": "websecure", "protocol": "HTTPS", "port": 443, "allowedRoutes": routes,
            "tls": {"mode": "Terminate", "certificateRefs": certificates},
        });
        if let Some(hostname) = &tls.hostname {
            listener["hostname"] = json!(hostname);
        }
        listeners.push(listener);
    }
    let spec = json!({"gatewayClassName": FLEET_GATEWAY, "listeners": listeners});
    let metadata = Metadata::named(FLEET_GATEWAY).and_namespace(SYSTEM_NAMESPACE);
    Body::of(&KubernetesObject::with_spec(GATEWAY_API, "Gateway", spec).with_metadata(metadata))
}
