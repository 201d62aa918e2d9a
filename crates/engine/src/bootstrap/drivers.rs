//! Definitions of the kinds the drivers serve, and of usages: the fields of Crossplane's, without its prose.

use serde_json::{Value, json};

use super::{definition, open_definition};
use crate::client::Resource;

const KUBERNETES: &str = "kubernetes.m.crossplane.io/v1alpha1";
const HELM: &str = "helm.m.crossplane.io/v1beta1";
const CATEGORIES: &[&str] = &["crossplane", "managed"];
const READINESS: &[(&str, &str)] = &[("READY", "Ready"), ("SYNCED", "Synced")];

/// All of them.
pub(super) fn definitions() -> Vec<Value> {
    let mut list = vec![
        definition(&Resource::new(KUBERNETES, "Object", "objects", true), CATEGORIES, &object(), READINESS),
        definition(&Resource::new(HELM, "Release", "releases", true), CATEGORIES, &release(), READINESS),
    ];
    for api_version in [KUBERNETES, HELM] {
        for (kind, plural, namespaced) in [
            ("ProviderConfig", "providerconfigs", true),
            ("ClusterProviderConfig", "clusterproviderconfigs", false),
        ] {
            let resource = Resource::new(api_version, kind, plural, namespaced);
            list.push(open_definition(&resource, &["crossplane", "provider"]));
        }
    }
    for (kind, plural, namespaced) in [("Usage", "usages", true), ("ClusterUsage", "clusterusages", false)] {
        let resource = Resource::new(crate::usage::API_VERSION, kind, plural, namespaced);
        let mut usage = definition(&resource, &["crossplane"], &usage(namespaced), &[("READY", "Ready")]);
        let details = r".metadata.annotations.crossplane\.io/usage-details";
        let columns = &mut usage["spec"]["versions"][0]["additionalPrinterColumns"];
        if let Some(columns) = columns.as_array_mut() {
            columns.insert(0, json!({"name": "DETAILS", "type": "string", "jsonPath": details}));
        }
        list.push(usage);
    }
    list
}

/// What every managed resource has.
fn managed(for_provider: &Value, own: &Value, at_provider: &Value) -> Value {
    let text = json!({"type": "string"});
    let mut spec = json!({
        "type": "object",
        "required": ["forProvider"],
        "properties": {
            "forProvider": for_provider,
            "managementPolicies": {
                "type": "array",
                "default": ["*"],
                "items": {
                    "type": "string",
                    "enum": ["Observe", "Create", "Update", "Delete", "LateInitialize", "*"],
                },
            },
            "providerConfigRef": {
                "type": "object",
                "required": ["kind", "name"],
                "default": {"kind": "ClusterProviderConfig", "name": "default"},
                "properties": {"kind": text, "name": text},
            },
            "writeConnectionSecretToRef": {
                "type": "object", "required": ["name"], "properties": {"name": text},
            },
            "connectionDetails": {"type": "array", "items": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"toConnectionSecretKey": text},
            }},
        },
    });
    if let (Some(properties), Some(own)) = (spec["properties"].as_object_mut(), own.as_object()) {
        properties.extend(own.clone());
    }
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": text,
            "kind": text,
            "metadata": {"type": "object"},
            "spec": spec,
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "atProvider": at_provider,
                "observedGeneration": {"type": "integer", "format": "int64"},
                "conditions": conditions(),
            }},
        },
    })
}

fn conditions() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "observedGeneration": {"type": "integer", "format": "int64"},
                "type": text, "status": text, "reason": text, "message": text,
            },
        },
    })
}

fn object() -> Value {
    let manifest = json!({
        "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
    });
    let for_provider =
        json!({"type": "object", "required": ["manifest"], "properties": {"manifest": manifest}});
    let readiness = json!({
        "type": "object",
        "properties": {
            "policy": {
                "type": "string",
                "default": "SuccessfulCreate",
                "enum": ["SuccessfulCreate", "DeriveFromObject", "AllTrue", "DeriveFromCelQuery"],
            },
            "celQuery": {"type": "string"},
        },
        "x-kubernetes-validations": [{
            "rule": "self.policy != 'DeriveFromCelQuery' || (has(self.celQuery) && size(self.celQuery) > 0)",
            "message": "policy DeriveFromCelQuery needs a celQuery",
        }],
    });
    let references =
        json!({"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let own = json!({
        "readiness": readiness,
        "references": references,
        "watch": {"type": "boolean", "default": false},
    });
    managed(&for_provider, &own, &json!({"type": "object", "properties": {"manifest": manifest}}))
}

fn release() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let own = json!({"rollbackLimit": {"type": "integer", "format": "int32"}});
    managed(&open, &own, &open)
}

/// Limits keep the cost of the rules within what the API server allows.
fn usage(namespaced: bool) -> Value {
    let text = json!({"type": "string", "maxLength": 512});
    let side = |with_namespace: bool| {
        let mut reference = json!({"name": text});
        let mut selector = json!({
            "matchControllerRef": {"type": "boolean"},
            "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
        });
        if with_namespace {
            reference["namespace"] = text.clone();
            selector["namespace"] = text.clone();
        }
        json!({
            "type": "object",
            "properties": {
                "apiVersion": text,
                "kind": text,
                "resourceRef": {"type": "object", "required": ["name"], "properties": reference},
                "resourceSelector": {"type": "object", "properties": selector},
            },
            "x-kubernetes-validations": [{
                "rule": "has(self.resourceRef) || has(self.resourceSelector)",
                "message": "one of resourceRef and resourceSelector is needed",
            }],
        })
    };
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "required": ["of"],
                "properties": {
                    "of": side(namespaced),
                    "by": side(false),
                    "reason": {"type": "string"},
                    "replayDeletion": {"type": "boolean"},
                },
                "x-kubernetes-validations": [{
                    "rule": "has(self.by) || has(self.reason)",
                    "message": "one of by and reason is needed",
                }],
            },
            "status": {"type": "object", "properties": {"conditions": conditions()}},
        },
    })
}
