//! The objects of a cluster at one moment, as far as the simulation looks at them.

use std::sync::Arc;

use modelplane_engine::cache::{CacheError, Caches};
use serde_json::Value;

/// A kind the simulation looks at: `apiVersion`, kind.
type Kind = (&'static str, &'static str);

/// Kinds every cluster serves.
const BUILT_IN: [Kind; 11] = [
    ("v1", "Node"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "PersistentVolumeClaim"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("resource.k8s.io/v1", "ResourceSlice"),
    ("resource.k8s.io/v1", "DeviceClass"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
];
/// Kinds that come with a definition.
const DEFINED: [Kind; 5] = [
    ("gateway.networking.k8s.io/v1", "GatewayClass"),
    ("gateway.networking.k8s.io/v1", "Gateway"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("inference.networking.k8s.io/v1", "InferencePool"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
];
/// The kind of definitions.
const DEFINITION: Kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

/// The objects of a cluster, by kind, each list in order of namespace and name.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Nodes.
    pub nodes: Vec<Value>,
    /// Pods.
    pub pods: Vec<Value>,
    /// Services.
    pub services: Vec<Value>,
    /// PersistentVolumeClaims.
    pub volume_claims: Vec<Value>,
    /// Deployments.
    pub deployments: Vec<Value>,
    /// DaemonSets.
    pub daemon_sets: Vec<Value>,
    /// Jobs.
    pub jobs: Vec<Value>,
    /// ResourceSlices.
    pub slices: Vec<Value>,
    /// DeviceClasses.
    pub device_classes: Vec<Value>,
    /// ResourceClaims.
    pub claims: Vec<Value>,
    /// ResourceClaimTemplates.
    pub claim_templates: Vec<Value>,
    /// GatewayClasses.
    pub gateway_classes: Vec<Value>,
    /// Gateways.
    pub gateways: Vec<Value>,
    /// HTTPRoutes.
    pub routes: Vec<Value>,
    /// InferencePools.
    pub inference_pools: Vec<Value>,
    /// LeaderWorkerSets.
    pub gangs: Vec<Value>,
}

impl World {
    /// Reads the caches, starting those whose kinds have come to be served.
    pub(crate) async fn read(caches: &Caches) -> Result<Self, CacheError> {
        let mut world = Self::default();
        for kind in BUILT_IN {
            let cache = caches.kind(kind.0, kind.1).await?;
            *world.list(kind.1) = values(cache.list(None));
        }
        let definitions = caches.kind(DEFINITION.0, DEFINITION.1).await?.list(None);
        for kind in DEFINED {
            let group = modelplane_engine::object::group(kind.0);
            let established = definitions.iter().any(|definition| {
                definition.text_at(&["spec", "group"]) == Some(group)
                    && definition.text_at(&["spec", "names", "kind"]) == Some(kind.1)
                    && definition.condition("Established") == Some("True")
            });
            if established {
                let cache = caches.kind(kind.0, kind.1).await?;
                *world.list(kind.1) = values(cache.list(None));
            }
        }
        Ok(world)
    }

    /// The list of a kind.
    pub(crate) fn list(&mut self, kind: &str) -> &mut Vec<Value> {
        match kind {
            "Node" => &mut self.nodes,
            "Pod" => &mut self.pods,
            "Service" => &mut self.services,
            "PersistentVolumeClaim" => &mut self.volume_claims,
            "Deployment" => &mut self.deployments,
            "DaemonSet" => &mut self.daemon_sets,
            "Job" => &mut self.jobs,
            "ResourceSlice" => &mut self.slices,
            "DeviceClass" => &mut self.device_classes,
            "ResourceClaim" => &mut self.claims,
            "ResourceClaimTemplate" => &mut self.claim_templates,
            "GatewayClass" => &mut self.gateway_classes,
            "Gateway" => &mut self.gateways,
            "HTTPRoute" => &mut self.routes,
            "InferencePool" => &mut self.inference_pools,
            _ => &mut self.gangs,
        }
    }
}

fn values(objects: Vec<Arc<modelplane_engine::object::Stored>>) -> Vec<Value> {
    objects.iter().map(|object| object.value()).collect()
}

/// Text under a JSON pointer, empty if there is none.
pub(crate) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Name of an object.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// Namespace of an object.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// Unique id of an object.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// A whole number under a JSON pointer. Documents have doubles only.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<u32> {
    let value = object.pointer(pointer)?.as_f64()?;
    (value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value)).then_some(value as u32)
}

/// The list under a JSON pointer, empty if there is none.
pub(crate) fn list<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether an object carries all labels of a `matchLabels`.
pub(crate) fn has_labels(object: &Value, wanted: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    wanted.as_object().is_some_and(|wanted| wanted.iter().all(|(key, value)| labels[key] == *value))
}

/// Whether a condition of an object holds.
pub(crate) fn is_true(object: &Value, condition_type: &str) -> bool {
    list(object, "/status/conditions")
        .iter()
        .any(|condition| text(condition, "/type") == condition_type && text(condition, "/status") == "True")
}
