//! The CEL validation rules of the API, with the message a person sees when one fails.
//!
//! The rules are part of the published API (spec api §1–§14) and must not change; the messages are ours. They
//! are data here: an API server or `modelplane-cel` evaluates them.

use serde::Serialize;
use serde_json::Value;

use crate::field_path;

/// A CEL rule on a schema node (`x-kubernetes-validations`). `self` is the value of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Expression that must be true.
    pub rule: &'static str,
    /// What is wrong when it is not.
    pub message: &'static str,
}

const fn rule(rule: &'static str, message: &'static str) -> Rule {
    Rule { rule, message }
}

/// A device of an InferenceClass.
pub(crate) const DEVICE: &[Rule] = &[rule(
    "self.claim != 'DRA' || has(self.deviceClassName)",
    "deviceClassName is required for a device with claim DRA; set it, or use claim Synthetic",
)];

/// An attribute of a device.
pub(crate) const DEVICE_ATTRIBUTE: &[Rule] = &[rule(
    "[has(self.string), has(self.version), has(self.bool), has(self.int)].filter(x, x).size() == 1",
    "an attribute has exactly one of string, version, bool and int",
)];

/// The provisioning block of an InferenceClass.
pub(crate) const PROVISIONING: &[Rule] = &[
    rule("self.provider != 'GKE' || has(self.gke)", "gke is required when provider is GKE"),
    rule("self.provider != 'EKS' || has(self.eks)", "eks is required when provider is EKS"),
    rule("self.provider != 'AKS' || has(self.aks)", "aks is required when provider is AKS"),
    rule("self.provider != 'Nebius' || has(self.nebius)", "nebius is required when provider is Nebius"),
    rule("self.provider != 'Vultr' || has(self.vultr)", "vultr is required when provider is Vultr"),
    rule("self.provider != 'DOKS' || has(self.doks)", "doks is required when provider is DOKS"),
];

/// The spec of an InferenceCluster.
pub(crate) const INFERENCE_CLUSTER: &[Rule] = &[rule(
    "self.cluster.source != 'Nebius' || !has(self.nodePools) || self.nodePools.all(p, !has(p.fabric) || p.fabric.type != 'InfiniBand' || has(p.fabric.infiniband))",
    "on Nebius a node pool with fabric type InfiniBand needs fabric.infiniband",
)];

/// The cluster block of an InferenceCluster.
pub(crate) const CLUSTER_SOURCE: &[Rule] = &[
    rule("self.source != 'Existing' || has(self.existing)", "existing is required when source is Existing"),
    rule("self.source != 'GKE' || has(self.gke)", "gke is required when source is GKE"),
    rule("self.source != 'EKS' || has(self.eks)", "eks is required when source is EKS"),
    rule("self.source != 'AKS' || has(self.aks)", "aks is required when source is AKS"),
    rule("self.source != 'Nebius' || has(self.nebius)", "nebius is required when source is Nebius"),
    rule("self.source != 'Vultr' || has(self.vultr)", "vultr is required when source is Vultr"),
    rule("self.source != 'DOKS' || has(self.doks)", "doks is required when source is DOKS"),
];

const INFINIBAND_ONLY: Rule = rule(
    "!has(self.infiniband) || self.type == 'InfiniBand'",
    "infiniband may be set only when type is InfiniBand",
);

/// The fabric of a node pool of an InferenceCluster.
pub(crate) const FABRIC: &[Rule] = &[INFINIBAND_ONLY];

/// The fabric of a node pool of a NebiusCluster.
pub(crate) const NEBIUS_FABRIC: &[Rule] = &[
    rule(
        "self.type != 'InfiniBand' || has(self.infiniband)",
        "infiniband is required when type is InfiniBand",
    ),
    INFINIBAND_ONLY,
];

/// The spec of an InferenceGateway.
pub(crate) const GATEWAY: &[Rule] =
    &[rule("self.backend != 'Traefik' || has(self.traefik)", "traefik is required when backend is Traefik")];

/// The traefik block of an InferenceGateway.
pub(crate) const TRAEFIK: &[Rule] = &[rule(
    "!has(self.loadBalancer) || self.loadBalancer != 'MetalLB' || has(self.metallb)",
    "metallb is required when loadBalancer is MetalLB",
)];

/// The affinity block of a ModelService.
pub(crate) const AFFINITY: &[Rule] =
    &[rule("self.key != 'Header' || has(self.header)", "header is required when key is Header")];

/// The spec of a ModelCache.
pub(crate) const MODEL_CACHE: &[Rule] = &[rule(
    "self.source != 'HuggingFace' || has(self.huggingFace)",
    "huggingFace is required when source is HuggingFace",
)];

/// Regular expression of a label or annotation key, in a rule over the map `$map`.
macro_rules! key_syntax {
    ($map:literal) => {
        concat!(
            "!has(self.",
            $map,
            ") || self.",
            $map,
            r".all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))"
        )
    };
}

const LABELS_UNRESERVED: Rule = rule(
    "!has(self.labels) || self.labels.all(k, !k.startsWith('modelplane.ai/'))",
    "label keys under modelplane.ai/ are reserved for Modelplane",
);
const LABEL_KEYS: Rule = rule(
    key_syntax!("labels"),
    "a label key is an optional DNS prefix and '/', then up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
);
const LABEL_PREFIXES: Rule = rule(
    "!has(self.labels) || self.labels.all(k, k.split('/')[0].size() <= 253)",
    "the DNS prefix of a label key has at most 253 characters",
);
const LABEL_VALUES: Rule = rule(
    "!has(self.labels) || self.labels.all(k, self.labels[k].matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'))",
    "a label value is empty or made of letters, digits, '-', '_' and '.', with a letter or digit at both ends",
);
const ANNOTATION_KEYS: Rule = rule(
    key_syntax!("annotations"),
    "an annotation key is an optional DNS prefix and '/', then up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
);
const ANNOTATION_PREFIXES: Rule = rule(
    "!has(self.annotations) || self.annotations.all(k, k.split('/')[0].size() <= 253)",
    "the DNS prefix of an annotation key has at most 253 characters",
);

/// Metadata of a deployment's replicas.
pub(crate) const REPLICA_METADATA: &[Rule] = &[LABELS_UNRESERVED, LABEL_KEYS, LABEL_PREFIXES, LABEL_VALUES];

/// Metadata of a member's pods.
pub(crate) const POD_METADATA: &[Rule] =
    &[LABELS_UNRESERVED, LABEL_KEYS, LABEL_PREFIXES, LABEL_VALUES, ANNOTATION_KEYS, ANNOTATION_PREFIXES];

/// The containers of a member's pods.
pub(crate) const CONTAINERS: &[Rule] =
    &[rule("self.exists_one(c, c.name == 'engine')", "the one container must be named engine")];

/// Serving mode and engine phases of a replica.
pub(crate) const SERVING_PHASES: &[Rule] = &[
    rule(
        "!has(self.serving) || self.serving.mode != 'PrefillDecode' || size(self.engines) == 2",
        "serving mode PrefillDecode needs exactly two engines",
    ),
    rule(
        "!has(self.serving) || self.serving.mode != 'PrefillDecode' || self.engines.exists_one(e, has(e.phase) && e.phase == 'Prefill')",
        "serving mode PrefillDecode needs exactly one engine with phase Prefill",
    ),
    rule(
        "!has(self.serving) || self.serving.mode != 'PrefillDecode' || self.engines.exists_one(e, has(e.phase) && e.phase == 'Decode')",
        "serving mode PrefillDecode needs exactly one engine with phase Decode",
    ),
    rule(
        "(has(self.serving) && self.serving.mode == 'PrefillDecode') || !self.engines.exists(e, has(e.phase))",
        "an engine may have a phase only when the serving mode is PrefillDecode",
    ),
];

/// The published spec of a ModelDeployment, which may have either shape.
pub(crate) const EITHER_SHAPE: &[Rule] = &[
    rule("has(self.template) || has(self.engines)", "template is required"),
    rule(
        "!has(self.template) || !(has(self.engines) || has(self.serving) || has(self.clusterSelector) || has(self.modelCacheRef))",
        "engines, serving, clusterSelector and modelCacheRef belong under template.spec; beside a template they are not allowed",
    ),
];

const ENGINE_SHAPE: Rule = rule(
    "(self.members.size() == 1 && self.members[0].role == 'Standalone') || (self.members.exists_one(m, m.role == 'Leader') && self.members.exists(m, m.role == 'Worker') && !self.members.exists(m, m.role == 'Standalone'))",
    "an engine is one member with role Standalone, or one Leader and one Worker",
);

/// An engine of a ModelDeployment.
pub(crate) const DEPLOYMENT_ENGINE: &[Rule] = &[
    ENGINE_SHAPE,
    rule(
        "self.members.exists(m, has(m.nodeSelector))",
        "at least one member of an engine needs a nodeSelector that says which devices it uses",
    ),
];

/// An engine of a ModelReplica.
pub(crate) const REPLICA_ENGINE: &[Rule] = &[
    ENGINE_SHAPE,
    rule(
        "self.members.exists(m, has(m.deviceRequests))",
        "at least one member of an engine needs deviceRequests",
    ),
];

/// A member of an engine.
pub(crate) const MEMBER: &[Rule] = &[rule(
    "!has(self.worker) || self.role == 'Worker'",
    "worker may be set only on a member with role Worker",
)];

/// A toleration of a ModelDeployment.
pub(crate) const TOLERATION: &[Rule] = &[
    rule(
        "self.operator != 'Equal' || (has(self.key) && self.key != '')",
        "key is required with operator Equal; use operator Exists to tolerate every taint",
    ),
    rule("self.operator != 'Exists' || !has(self.value)", "value has no meaning with operator Exists"),
];

/// The spec of a ServingStack.
pub(crate) const SERVING_STACK: &[Rule] = &[rule(
    "self.secrets.exists(s, s.type == 'Kubeconfig')",
    "secrets needs an entry of type Kubeconfig, by which the cluster is reached",
)];

const GPU_POOL: Rule =
    rule("self.role != 'GPU' || has(self.gpu)", "gpu is required for a pool with role GPU");

/// A node pool.
pub(crate) const POOL: &[Rule] = &[GPU_POOL];

/// A node pool whose zones must be named if it has accelerators.
pub(crate) const ZONED_POOL: &[Rule] =
    &[GPU_POOL, rule("self.role != 'GPU' || has(self.zones)", "zones is required for a pool with role GPU")];

/// A node pool that is autoscaled when a maximum is given.
pub(crate) const AUTOSCALED_POOL: &[Rule] =
    &[GPU_POOL, rule("!has(self.minNodeCount) || has(self.maxNodeCount)", "minNodeCount needs maxNodeCount")];

/// A rule and the value in a document that it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleSite<'a> {
    /// Path of the value, e.g. `spec.nodePools[0].fabric`.
    pub path: String,
    /// The value: `self` of the expression.
    pub value: &'a Value,
    /// The schema of the value, from which the expression's types follow.
    pub schema: &'static Value,
    /// The expression.
    pub rule: &'static str,
    /// What is wrong when it is not true.
    pub message: &'static str,
}

/// Lists the rules at this node and below it that apply to the value. Recursion follows the schema.
pub(crate) fn collect_sites<'a>(
    schema: &'static Value,
    value: &'a Value,
    path: &str,
    sites: &mut Vec<RuleSite<'a>>,
) {
    for entry in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let rule = entry["rule"].as_str().unwrap_or_default();
        let message = entry["message"].as_str().unwrap_or_default();
        sites.push(RuleSite { path: path.to_owned(), value, schema, rule, message });
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let child = match schema["properties"].get(name) {
                    Some(child) => child,
                    None if schema["additionalProperties"].is_object() => &schema["additionalProperties"],
                    None => continue,
                };
                if !field.is_null() {
                    collect_sites(child, field, &field_path::field(path, name), sites);
                }
            }
        }
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                collect_sites(&schema["items"], item, &field_path::index(path, position), sites);
            }
        }
        _ => {}
    }
}
