//! Labels and annotations that Modelplane writes or reads.

/// Prefix of the labels that are reserved for Modelplane.
pub const RESERVED_PREFIX: &str = "modelplane.ai/";

/// Replica, endpoint: name of the deployment.
pub const DEPLOYMENT_LABEL: &str = "modelplane.ai/deployment";
/// Replica, endpoint: name of the cluster.
pub const CLUSTER_LABEL: &str = "modelplane.ai/cluster";
/// Replica, endpoint: number of the replica of this deployment on its cluster.
pub const REPLICA_INDEX_LABEL: &str = "modelplane.ai/replica-index";
/// Endpoint written by hand: name of the provider it stands for. A convention; nothing reads it.
pub const EXTERNAL_PROVIDER_LABEL: &str = "modelplane.ai/external-provider";

/// Serving pod: name of the replica; the replica's InferencePool selects by it.
pub const SERVING_LABEL: &str = "modelplane.ai/serving";
/// Pod of an engine: name of the workload.
pub const WORKLOAD_LABEL: &str = "modelplane.ai/workload";
/// Pod of a gang: its part in the LeaderWorkerSet.
pub const LWS_ROLE_LABEL: &str = "modelplane.ai/lws-role";
/// Endpoint picker pod: checksum of its configuration, so that a change restarts it (annotation).
pub const PICKER_CHECKSUM_ANNOTATION: &str = "modelplane.ai/epp-config-checksum";
/// Objects of a cache: name of the cache.
pub const MODEL_CACHE_LABEL: &str = "modelplane.ai/modelcache";

/// Node: name of its pool. Set by provisioning, or by the operator on existing clusters.
pub const POOL_LABEL: &str = "modelplane.ai/pool";
/// Node: the cloud's name of its accelerator.
pub const GPU_LABEL: &str = "modelplane.ai/gpu";
/// Value of [`POOL_LABEL`] on the nodes that run the serving stack.
pub const SYSTEM_POOL: &str = "system";

/// Composed resource that a Usage selects because it uses a provider configuration.
pub const USAGE_CONSUMER_LABEL: &str = "modelplane.ai/usage-consumer";
/// Part of the serving stack that a Usage selects.
pub const RESOURCE_LABEL: &str = "modelplane.ai/resource";
/// Helm release of the control plane's gateway that a Usage selects.
pub const RELEASE_LABEL: &str = "modelplane.ai/release";

/// Network fabric resource: the pool or fabric it belongs to.
pub const FABRIC_LABEL: &str = "modelplane.ai/fabric";
/// Subnet: its zone.
pub const ZONE_LABEL: &str = "modelplane.ai/zone";
/// Subnet: public or private.
pub const SUBNET_TIER_LABEL: &str = "modelplane.ai/subnet-tier";
/// Security group: what it admits.
pub const SECURITY_GROUP_ROLE_LABEL: &str = "modelplane.ai/sg-role";
/// IAM role: who assumes it.
pub const IAM_ROLE_LABEL: &str = "modelplane.ai/iam-role";

/// Serving pod under disaggregation: `prefill` or `decode` (llm-d's label).
pub const LLM_D_ROLE_LABEL: &str = "llm-d.ai/role";
/// Serving pod under disaggregation: always `true` (llm-d's label).
pub const LLM_D_SERVING_LABEL: &str = "llm-d.ai/inference-serving";
/// EndpointSlice: name of its Service (Kubernetes' label).
pub const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";
/// Taint of accelerator nodes, tolerated by everything that runs on them.
pub const GPU_TAINT: &str = "nvidia.com/gpu";

/// Managed resource: its name outside the control plane (Crossplane's annotation).
pub const EXTERNAL_NAME_ANNOTATION: &str = "crossplane.io/external-name";
/// Composed resource: its key within the composite (Crossplane's annotation).
pub const COMPOSITION_RESOURCE_NAME_ANNOTATION: &str = "crossplane.io/composition-resource-name";
/// Composed resource: name of its composite (Crossplane's label).
pub const COMPOSITE_LABEL: &str = "crossplane.io/composite";
/// Object: reconciliation is suspended (Crossplane's annotation).
pub const PAUSED_ANNOTATION: &str = "crossplane.io/paused";
/// On a Secret with the value `true`: the key of a caller of the gateway.
pub const CALLER_KEY_LABEL: &str = "modelplane.ai/caller-key";
/// On everything that stands in for something real: simulated clusters and what is recorded on them.
pub const SIMULATED_LABEL: &str = "modelplane.ai/simulated";
