//! Definitions of kinds whose own cannot be had: they accept every field.
//!
//! Real ones are in a provider's package, which is in a registry of images; the Go modules of the clouds' providers,
//! which have them, too, are not served by the public proxy. So nothing is said about whether a cloud's provider would
//! accept a field.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::rendered::Identity;

/// Definitions of the kinds of these objects, one of each.
pub fn permissive<'o>(objects: impl Iterator<Item = &'o Identity>) -> Vec<Value> {
    let kinds: BTreeSet<(&str, &str, bool)> =
        objects.map(|one| (one.api_version.as_str(), one.kind.as_str(), !one.namespace.is_empty())).collect();
    kinds
        .into_iter()
        .filter_map(|(api_version, kind, namespaced)| definition(api_version, kind, namespaced))
        .collect()
}

fn definition(api_version: &str, kind: &str, namespaced: bool) -> Option<Value> {
    let (group, version) = api_version.split_once('/')?;
    let plural = plural(&kind.to_lowercase());
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    Some(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": anything, "status": anything},
                }},
            }],
        },
    }))
}

fn plural(singular: &str) -> String {
    match singular.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ if singular.ends_with('s') => format!("{singular}es"),
        _ => format!("{singular}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_defined_once_with_a_plural_of_its_own() {
        let policy = |name: &str| Identity {
            api_version: "iam.aws.m.upbound.io/v1beta1".to_owned(),
            kind: "Policy".to_owned(),
            namespace: "a".to_owned(),
            name: name.to_owned(),
        };
        let pod = Identity { api_version: "v1".to_owned(), kind: "Pod".to_owned(), ..policy("p") };
        let definitions = permissive([policy("one"), policy("two"), pod].iter());
        let names: Vec<&Value> = definitions.iter().map(|one| &one["metadata"]["name"]).collect();
        assert_eq!(names, ["policies.iam.aws.m.upbound.io"], "and nothing is defined in the core group");
        assert_eq!(definitions[0]["spec"]["scope"], "Namespaced");
    }
}
