//! Keys of composed resources: what a resource is called within its composite, which decides its identity.

use crate::template::MemberRole;

/// Key of a replica of a deployment (spec scheduling §6).
pub fn replica_key(cluster: &str, index: u32) -> String {
    format!("replica-{cluster}-{index}")
}

/// Key of the endpoint of a replica.
pub fn endpoint_key(cluster: &str, index: u32) -> String {
    format!("endpoint-{cluster}-{index}")
}

/// Key of the workload of an engine (spec replica §2.2).
pub fn model_serving_key(engine: &str) -> String {
    format!("model-serving-{engine}")
}

/// Key of the claim template of a member.
pub fn resource_claim_key(engine: &str, role: MemberRole) -> String {
    format!("resource-claim-{engine}-{}", role.lowercase())
}

/// Key of a replica's InferencePool.
pub const INFERENCE_POOL_KEY: &str = "inference-pool";
/// Key of a replica's HTTPRoute.
pub const MODEL_ROUTE_KEY: &str = "model-route";
/// Key of the endpoint picker's Deployment.
pub const PICKER_KEY: &str = "epp";
/// Key of the endpoint picker's ServiceAccount.
pub const PICKER_SERVICE_ACCOUNT_KEY: &str = "epp-serviceaccount";
/// Key of the endpoint picker's Role.
pub const PICKER_ROLE_KEY: &str = "epp-role";
/// Key of the endpoint picker's RoleBinding.
pub const PICKER_ROLE_BINDING_KEY: &str = "epp-rolebinding";
/// Key of the endpoint picker's ConfigMap.
pub const PICKER_CONFIG_KEY: &str = "epp-config";
/// Key of the endpoint picker's Service.
pub const PICKER_SERVICE_KEY: &str = "epp-service";

/// Key of a cache's volume claim on a cluster (spec cache §4).
pub fn cache_claim_key(cluster: &str) -> String {
    format!("pvc-{cluster}")
}

/// Key of a cache's download Job on a cluster.
pub fn cache_job_key(cluster: &str) -> String {
    format!("hydrate-{cluster}")
}

/// Key of a cache's token Secret on a cluster.
pub fn cache_secret_key(cluster: &str) -> String {
    format!("auth-{cluster}")
}

/// Key of an endpoint's Service.
pub const ENDPOINT_SERVICE_KEY: &str = "service";
/// Key of an endpoint's EndpointSlice.
pub const ENDPOINT_SLICE_KEY: &str = "endpointslice";
/// Key of a service's HTTPRoute.
pub const SERVICE_ROUTE_KEY: &str = "httproute";
/// Key of a cluster's ServingStack.
pub const SERVING_STACK_KEY: &str = "serving-stack";

/// Key of the Usage that holds a provider configuration for a composed resource (spec clusters §2).
pub fn provider_config_usage_key(consumer: &str) -> String {
    format!("usage-pc-{consumer}")
}

/// Requirement: the cache a deployment uses.
pub const CACHE_REQUIREMENT: &str = "cache";
/// Requirement: the clusters a deployment or cache may use.
pub const CLUSTERS_REQUIREMENT: &str = "clusters";
/// Requirement: every replica of the fleet.
pub const ALL_REPLICAS_REQUIREMENT: &str = "all-replicas";
/// Requirement: the cluster a replica runs on.
pub const CLUSTER_REQUIREMENT: &str = "cluster";
/// Requirement: the Secret with the token of a cache.
pub const AUTH_SECRET_REQUIREMENT: &str = "auth-secret";
/// Requirement: the gateway of the fleet.
pub const GATEWAY_REQUIREMENT: &str = "inference-gateway";
/// Requirement: the replicas placed on a cluster.
pub const MODEL_REPLICAS_REQUIREMENT: &str = "model-replicas";

/// Requirement: the endpoints that an entry of a service selects.
pub fn endpoints_requirement(entry: usize) -> String {
    format!("endpoints-{entry}")
}

/// Requirement: a class that a node pool names.
pub fn class_requirement(class: &str) -> String {
    format!("class-{class}")
}
