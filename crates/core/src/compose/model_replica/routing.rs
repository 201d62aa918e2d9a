//! How requests reach a replica's pods: the InferencePool and the HTTPRoute in front of it (spec replica §6.2, §6.3).

use std::collections::BTreeMap;

use modelplane_api::names::{
    CLUSTER_GATEWAY, INFERENCE_POOL_KEY, MODEL_ROUTE_KEY, SERVING_LABEL, SYSTEM_NAMESPACE,
    WORKLOAD_NAMESPACE, label_value, picker_name, pool_name, route_path,
};
use serde::Serialize;

use super::{Manifests, picker};
use crate::compose::gateway_api::{
    GATEWAY_API_VERSION, HttpBackendRef, HttpRouteFilter, HttpRouteMatch, HttpRouteRule, HttpRouteSpec,
    HttpRouteTimeouts, ParentReference,
};
use crate::compose::object::{KubernetesObject, Metadata};
use crate::compose::workload::SERVING_PORT;

/// API group of InferencePool.
pub const INFERENCE_GROUP: &str = "inference.networking.k8s.io";

/// The names of a replica's routing objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingNames {
    /// HTTPRoute: the replica's own name.
    pub route: String,
    /// Path below which the cluster's gateway takes requests for the replica.
    pub path: String,
    /// InferencePool.
    pub pool: String,
    /// Everything of the endpoint picker.
    pub picker: String,
    /// Value of the label the pool selects pods by.
    pub label: String,
}

impl RoutingNames {
    /// The names for a replica.
    pub fn new(namespace: &str, replica: &str) -> Self {
        Self {
            route: replica.to_owned(),
            path: route_path(namespace, replica),
            pool: pool_name(replica),
            picker: picker_name(replica),
            label: label_value(replica).into_owned(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InferencePoolSpec<'n> {
    selector: Selector<'n>,
    target_ports: [PortNumber; 1],
    endpoint_picker_ref: PickerRef<'n>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Selector<'n> {
    match_labels: BTreeMap<&'static str, &'n str>,
}

#[derive(Serialize)]
struct PortNumber {
    number: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PickerRef<'n> {
    name: &'n str,
    port: PortNumber,
    failure_mode: &'static str,
}

/// Wants pool, route and picker. `picker_config` is the picker's configuration text.
pub(crate) fn add(manifests: &mut Manifests<'_, '_>, names: &RoutingNames, picker_config: &str) {
    let pool =
        KubernetesObject::with_spec(format!("{INFERENCE_GROUP}/v1"), "InferencePool", pool_spec(names))
            .with_metadata(Metadata::named(&names.pool).and_namespace(WORKLOAD_NAMESPACE));
    manifests.add(INFERENCE_POOL_KEY, &pool);
    let route = KubernetesObject::with_spec(GATEWAY_API_VERSION, "HTTPRoute", route_spec(names))
        .with_metadata(Metadata::named(&names.route).and_namespace(WORKLOAD_NAMESPACE));
    manifests.add(MODEL_ROUTE_KEY, &route);
    picker::add(manifests, names, picker_config);
}

fn pool_spec(names: &RoutingNames) -> InferencePoolSpec<'_> {
    InferencePoolSpec {
        selector: Selector { match_labels: BTreeMap::from([(SERVING_LABEL, names.label.as_str())]) },
        target_ports: [PortNumber { number: SERVING_PORT }],
        endpoint_picker_ref: PickerRef {
            name: &names.picker,
            port: PortNumber { number: picker::PORT },
            // Without a picker requests still reach some pod.
            failure_mode: "FailOpen",
        },
    }
}

fn route_spec(names: &RoutingNames) -> HttpRouteSpec<'_> {
    HttpRouteSpec {
        parent_refs: [ParentReference { name: CLUSTER_GATEWAY, namespace: SYSTEM_NAMESPACE }],
        rules: [HttpRouteRule {
            matches: [HttpRouteMatch::path_prefix(&names.path)],
            // Long generations must not be cut.
            timeouts: Some(HttpRouteTimeouts { request: "0s" }),
            filters: vec![HttpRouteFilter::replace_prefix("/")],
            backend_refs: vec![HttpBackendRef {
                group: Some(INFERENCE_GROUP),
                kind: Some("InferencePool"),
                name: &names.pool,
                ..HttpBackendRef::default()
            }],
        }],
    }
}
