//! The third-party resource definitions this system installs, ready to be composed.
//!
//! The data is `third_party/crds/*/crds.json`, which `xtask vendor` makes from the bundles named in
//! [`crate::versions`]. It is parsed and encoded once per process; compositions borrow the bytes.

use std::sync::LazyLock;

use serde_json::Value;

use crate::contract::Body;
use crate::document::{Document, encode};

/// One CustomResourceDefinition.
#[derive(Debug)]
pub struct Definition {
    /// `metadata.name`: plural and group.
    pub name: String,
    bytes: Vec<u8>,
}

/// Gateway API, standard channel, by name.
pub fn gateway_api() -> &'static [Definition] {
    static BUNDLE: LazyLock<Vec<Definition>> =
        LazyLock::new(|| read(include_str!("../../../third_party/crds/gateway-api/crds.json")));
    &BUNDLE
}

/// Gateway API Inference Extension, by name.
pub fn inference_extension() -> &'static [Definition] {
    static BUNDLE: LazyLock<Vec<Definition>> = LazyLock::new(|| {
        read(include_str!("../../../third_party/crds/gateway-api-inference-extension/crds.json"))
    });
    &BUNDLE
}

impl Definition {
    /// The definition as a composed resource; nothing is copied.
    pub fn body(&'static self) -> Body<'static> {
        Body::from_static(&self.bytes)
    }

    /// The definition as a document, to be put into an `Object`.
    pub fn document(&self) -> Document<'_> {
        Document::from_struct(&self.bytes)
    }
}

fn read(bundle: &str) -> Vec<Definition> {
    let definitions: Vec<Value> = serde_json::from_str(bundle).expect("bundles are generated JSON lists");
    definitions
        .iter()
        .map(|definition| Definition {
            name: definition["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            bytes: encode(definition).expect("definitions are generated JSON objects"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions;

    fn names(bundle: &[Definition]) -> Vec<&str> {
        bundle.iter().map(|definition| definition.name.as_str()).collect()
    }

    #[test]
    fn the_bundles_hold_the_definitions_that_upstream_composes() {
        let gateway_api = [
            "backendtlspolicies.gateway.networking.k8s.io",
            "gatewayclasses.gateway.networking.k8s.io",
            "gateways.gateway.networking.k8s.io",
            "grpcroutes.gateway.networking.k8s.io",
            "httproutes.gateway.networking.k8s.io",
            "listenersets.gateway.networking.k8s.io",
            "referencegrants.gateway.networking.k8s.io",
            "tlsroutes.gateway.networking.k8s.io",
        ];
        assert_eq!(names(super::gateway_api()), gateway_api);
        let inference_extension = [
            "inferenceobjectives.inference.networking.x-k8s.io",
            "inferencepools.inference.networking.k8s.io",
            "inferencepools.inference.networking.x-k8s.io",
        ];
        assert_eq!(names(super::inference_extension()), inference_extension);
    }

    #[test]
    fn definitions_carry_their_bundle_version_and_no_server_owned_fields() {
        let bundles = [
            (gateway_api(), "gateway.networking.k8s.io/bundle-version", versions::GATEWAY_API.version),
            (
                inference_extension(),
                "inference.networking.k8s.io/bundle-version",
                versions::INFERENCE_EXTENSION.version,
            ),
        ];
        for (bundle, annotation, version) in bundles {
            for definition in bundle {
                let document = definition.document();
                let found = document.text_at(&["metadata", "annotations", annotation]);
                assert_eq!(found, Some(version), "{}", definition.name);
                assert!(document.get(&["status"]).is_none(), "{} has a status", definition.name);
                assert!(document.get(&["metadata", "creationTimestamp"]).is_none(), "{}", definition.name);
            }
        }
    }

    #[test]
    fn validation_rules_and_defaults_survive_while_prose_does_not() {
        let httproutes = &gateway_api()[4];
        let text = httproutes.document().to_json().expect("a definition is JSON").to_string();
        assert!(text.contains("x-kubernetes-validations") && text.contains("\"default\""));
        assert!(!text.contains("\"description\":\""), "prose is left out");
        // GatewayClass has a property of that name, which is not prose.
        let classes = gateway_api()[1].document().to_json().expect("a definition is JSON");
        let version = &classes["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        assert_eq!(version["spec"]["properties"]["description"]["type"], "string");
    }
}
