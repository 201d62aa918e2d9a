//! The objects of a cluster at one moment, as far as the simulation looks at them.

use std::collections::HashMap;
use std::sync::Arc;

use modelplane_engine::cache::{CacheError, Caches};
use modelplane_engine::object::Stored;
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

/// Reads the objects of a cluster again and again; what has not changed in between is not read anew.
#[derive(Default)]
pub(crate) struct Reader {
    world: World,
    /// What the lists of the world were read from, in the same order.
    sources: HashMap<&'static str, Vec<Arc<Stored>>>,
}

impl Reader {
    /// Reads the caches, starting those whose kinds have come to be served.
    pub(crate) async fn read(&mut self, caches: &Caches) -> Result<&World, CacheError> {
        for kind in BUILT_IN {
            let cache = caches.kind(kind.0, kind.1).await?;
            self.refresh(kind.1, cache.list(None));
        }
        let definitions = caches.kind(DEFINITION.0, DEFINITION.1).await?.list(None);
        for kind in DEFINED {
            let group = modelplane_engine::object::group(kind.0);
            let established = definitions.iter().any(|definition| {
                definition.text_at(&["spec", "group"]) == Some(group)
                    && definition.text_at(&["spec", "names", "kind"]) == Some(kind.1)
                    && definition.condition("Established") == Some("True")
            });
            let objects = match established {
                true => caches.kind(kind.0, kind.1).await?.list(None),
                false => Vec::new(),
            };
            self.refresh(kind.1, objects);
        }
        Ok(&self.world)
    }

    /// Forgets everything: a cluster at rest needs no second copy of its objects.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn refresh(&mut self, kind: &'static str, objects: Vec<Arc<Stored>>) {
        let place = |object: &Stored| (object.key.namespace.clone(), object.key.name.clone());
        let values = self.world.list(kind);
        let sources = self.sources.insert(kind, objects.clone()).unwrap_or_default();
        let mut known = sources.into_iter().zip(std::mem::take(values)).peekable();
        values.reserve_exact(objects.len());
        for object in objects {
            // Both lists are in the same order.
            while known
                .next_if(|(source, _)| !Arc::ptr_eq(source, &object) && place(source) <= place(&object))
                .is_some()
            {}
            match known.next_if(|(source, _)| Arc::ptr_eq(source, &object)) {
                Some((_, value)) => values.push(value),
                None => values.push(object.value()),
            }
        }
    }
}

impl World {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, version: u64) -> Arc<Stored> {
        let metadata = json!({"name": name, "namespace": "n", "labels": {"version": version.to_string()}});
        Arc::new(Stored::from_value(json!({"kind": "Pod", "metadata": metadata})).unwrap())
    }

    #[test]
    fn a_world_follows_its_objects_whatever_changes() {
        let (a, b, c, d) = (pod("a", 1), pod("b", 1), pod("c", 1), pod("d", 1));
        let mut reader = Reader::default();
        for (name, objects) in [
            ("first", vec![&b, &d]),
            ("more around them", vec![&a, &b, &c, &d]),
            ("one changed", vec![&a, &pod("b", 2), &c, &d]),
            ("some gone", vec![&c]),
            ("others back", vec![&a, &d]),
            ("nothing", vec![]),
            ("all", vec![&a, &b, &c, &d]),
        ] {
            let objects: Vec<Arc<Stored>> = objects.into_iter().cloned().collect();
            reader.refresh("Pod", objects.clone());
            let expected: Vec<Value> = objects.iter().map(|object| object.value()).collect();
            assert_eq!(reader.world.pods, expected, "{name}");
        }
        reader.clear();
        assert!(reader.world.pods.is_empty());
    }
}
