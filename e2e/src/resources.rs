//! The kinds this crate talks about, as API servers address them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use modelplane_api::kind::{KindInfo, Scope};
use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// A kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource {
    /// API group; empty for the core one.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in URLs.
    pub plural: &'static str,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
}

macro_rules! resources {
    ($($name:ident = $group:literal $version:literal $kind:literal $plural:literal $namespaced:literal;)*) => {
        $(
            #[doc = concat!("`", $kind, "`.")]
            pub const $name: Resource = Resource {
                group: $group, version: $version, kind: $kind, plural: $plural, namespaced: $namespaced,
            };
        )*
        const FOREIGN: &[Resource] = &[$($name),*];
    };
}

resources! {
    NAMESPACE = "" "v1" "Namespace" "namespaces" false;
    NODE = "" "v1" "Node" "nodes" false;
    POD = "" "v1" "Pod" "pods" true;
    SECRET = "" "v1" "Secret" "secrets" true;
    SERVICE = "" "v1" "Service" "services" true;
    SERVICE_ACCOUNT = "" "v1" "ServiceAccount" "serviceaccounts" true;
    DEPLOYMENT = "apps" "v1" "Deployment" "deployments" true;
    DEVICE_CLASS = "resource.k8s.io" "v1" "DeviceClass" "deviceclasses" false;
    RESOURCE_SLICE = "resource.k8s.io" "v1" "ResourceSlice" "resourceslices" false;
    RESOURCE_CLAIM = "resource.k8s.io" "v1" "ResourceClaim" "resourceclaims" true;
    RESOURCE_CLAIM_TEMPLATE = "resource.k8s.io" "v1" "ResourceClaimTemplate" "resourceclaimtemplates" true;
    CUSTOM_RESOURCE_DEFINITION = "apiextensions.k8s.io" "v1" "CustomResourceDefinition" "customresourcedefinitions" false;
    GATEWAY_CLASS = "gateway.networking.k8s.io" "v1" "GatewayClass" "gatewayclasses" false;
    GATEWAY = "gateway.networking.k8s.io" "v1" "Gateway" "gateways" true;
    HTTP_ROUTE = "gateway.networking.k8s.io" "v1" "HTTPRoute" "httproutes" true;
    INFERENCE_POOL = "inference.networking.k8s.io" "v1" "InferencePool" "inferencepools" true;
    COMPOSITE_DEFINITION = "apiextensions.crossplane.io" "v2" "CompositeResourceDefinition" "compositeresourcedefinitions" false;
    COMPOSITION = "apiextensions.crossplane.io" "v1" "Composition" "compositions" false;
    FUNCTION_REVISION = "pkg.crossplane.io" "v1" "FunctionRevision" "functionrevisions" false;
    CLUSTER_USAGE = "protection.crossplane.io" "v1beta1" "ClusterUsage" "clusterusages" false;
    OBJECT = "kubernetes.m.crossplane.io" "v1alpha1" "Object" "objects" true;
    RELEASE = "helm.m.crossplane.io" "v1beta1" "Release" "releases" true;
}

impl Resource {
    /// One of our own kinds.
    pub const fn of(info: &'static KindInfo) -> Self {
        Self {
            group: info.group,
            version: info.version,
            kind: info.kind,
            plural: info.plural,
            namespaced: matches!(info.scope, Scope::Namespaced),
        }
    }

    /// A kind that an API server lists among those of `group` and `version`.
    pub fn served(group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        let [group, version, kind, plural] = [group, version, kind, plural].map(kept);
        Self { group, version, kind, plural, namespaced }
    }

    /// The kind a manifest is of.
    ///
    /// # Errors
    ///
    /// If this crate does not know it.
    pub fn of_manifest(manifest: &Value) -> Outcome<Self> {
        let text = |field: &str| manifest[field].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if let Some(info) = modelplane_api::kind::find(api_version, kind) {
            return Ok(Self::of(info));
        }
        let known = FOREIGN.iter().find(|known| known.kind == kind && known.api_version() == api_version);
        known.copied().ok_or_else(|| Failure::Wrong(format!("e2e does not know {api_version} {kind}")))
    }

    /// Group and version, as in manifests.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Path of all objects, or those of one namespace.
    pub fn path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.group) };
        match (self.namespaced, namespace) {
            (true, namespace) if !namespace.is_empty() => {
                format!("{root}/{}/namespaces/{namespace}/{}", self.version, self.plural)
            }
            _ => format!("{root}/{}/{}", self.version, self.plural),
        }
    }
}

/// The same text, for as long as the program runs. There are few kinds, and each text is kept once.
fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(text) {
        return known;
    }
    let new: &'static str = Box::leak(text.to_owned().into_boxed_str());
    all.insert(new);
    new
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_those_of_the_kubernetes_api() {
        let cases = [
            ("core, in a namespace", POD, "default", "/api/v1/namespaces/default/pods"),
            ("core, everywhere", POD, "", "/api/v1/pods"),
            ("core, without namespaces", NODE, "ignored", "/api/v1/nodes"),
            ("of a group", DEPLOYMENT, "a", "/apis/apps/v1/namespaces/a/deployments"),
        ];
        for (name, resource, namespace, path) in cases {
            assert_eq!(resource.path(namespace), path, "{name}");
        }
    }

    #[test]
    fn every_kind_of_the_examples_and_the_package_is_known() {
        let of = |api_version, kind| Resource::of_manifest(&json!({"apiVersion": api_version, "kind": kind}));
        assert_eq!(of("v1", "Pod").expect("known").plural, "pods");
        assert_eq!(of("modelplane.ai/v1alpha1", "ModelService").expect("known").plural, "modelservices");
        assert!(of("v2", "Pod").is_err(), "another version is another kind");
    }
}
