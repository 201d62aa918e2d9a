//! The objects of the packages.

use modelplane_api::names::SYSTEM_NAMESPACE;
use modelplane_api::{kind, xrd};
use serde_json::{Value, json};

use super::names::{CONFIGURATION, FUNCTION, Repository, Version, dns_label};
use super::providers;

/// Namespace Crossplane and its providers run in.
const CROSSPLANE_NAMESPACE: &str = "crossplane-system";
/// Account of provider-helm, which installs the gateway on the control plane itself.
const HELM_ACCOUNT: &str = "provider-helm-modelplane";

/// What Crossplane may compose on the control plane beyond what it may by itself: API group, resources.
const COMPOSED: [(&str, &[&str]); 8] = [
    ("", &["namespaces", "serviceaccounts", "services"]),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("apps", &["deployments"]),
    ("discovery.k8s.io", &["endpointslices"]),
    ("gateway.networking.k8s.io", &["gatewayclasses", "gateways", "httproutes"]),
    ("metallb.io", &["ipaddresspools", "l2advertisements"]),
    ("protection.crossplane.io", &["clusterusages", "usages"]),
    // The account and role of the gateway of our own; whoever makes a role needs what is in it, or every verb on roles.
    ("rbac.authorization.k8s.io", &["clusterrolebindings", "clusterroles"]),
];

/// The oldest Crossplane that has everything the definitions use (spec api §0).
const CROSSPLANE: &str = ">=v2.3.0";

/// `crossplane.yaml` of the Function package.
pub(super) fn function_meta() -> Value {
    json!({
        "apiVersion": "meta.pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {
            "name": FUNCTION,
            "annotations": annotations("The compositions of Modelplane: one function for every kind."),
        },
        "spec": {
            "crossplane": { "version": CROSSPLANE },
            "capabilities": ["composition"],
        },
    })
}

/// `crossplane.yaml` of the Configuration package.
pub(super) fn configuration_meta(repository: &Repository, version: &Version) -> Value {
    let function = json!({
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "package": repository.package(FUNCTION),
        "version": version.to_string(),
    });
    let providers = providers::REQUIRED.iter().map(|provider| {
        json!({
            "apiVersion": "pkg.crossplane.io/v1",
            "kind": "Provider",
            "package": provider.package,
            "version": provider.version,
        })
    });
    json!({
        "apiVersion": "meta.pkg.crossplane.io/v1",
        "kind": "Configuration",
        "metadata": {
            "name": CONFIGURATION,
            "annotations": annotations("Operates many Kubernetes clusters as one fleet for AI inference."),
        },
        "spec": {
            "crossplane": { "version": CROSSPLANE },
            "dependsOn": std::iter::once(function).chain(providers).collect::<Vec<_>>(),
        },
    })
}

fn annotations(description: &str) -> Value {
    json!({
        "meta.crossplane.io/description": description,
        "meta.crossplane.io/license": env!("CARGO_PKG_LICENSE"),
    })
}

/// The definitions of all kinds.
pub(super) fn definitions() -> Vec<Value> {
    xrd::all()
}

/// The Compositions of all kinds, every step answered by this function.
pub(super) fn compositions(function: &str) -> Vec<Value> {
    kind::ALL
        .iter()
        .map(|info| {
            let mut composition = xrd::composition(info);
            let steps = composition["spec"]["pipeline"].as_array_mut();
            for step in steps.into_iter().flatten() {
                step["functionRef"] = json!({ "name": function });
            }
            composition
        })
        .collect()
}

/// The policy that activates the managed resources compositions use.
pub(super) fn activation_policy() -> Value {
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1alpha1",
        "kind": "ManagedResourceActivationPolicy",
        "metadata": { "name": CONFIGURATION },
        "spec": { "activate": providers::activated().collect::<Vec<_>>() },
    })
}

/// What has to be there and no package can bring: the namespace, and rights for Crossplane and provider-helm
/// (spec gateway-and-routing §2.6).
pub(super) fn prerequisites() -> Vec<Value> {
    let rules = COMPOSED
        .map(|(group, resources)| json!({ "apiGroups": [group], "resources": resources, "verbs": ["*"] }));
    let helm = providers::HELM.package;
    vec![
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": SYSTEM_NAMESPACE } }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": "modelplane-crossplane",
                "labels": { "rbac.crossplane.io/aggregate-to-crossplane": "true" },
            },
            "rules": rules,
        }),
        json!({
            "apiVersion": "pkg.crossplane.io/v1beta1",
            "kind": "DeploymentRuntimeConfig",
            "metadata": { "name": HELM_ACCOUNT },
            "spec": { "serviceAccountTemplate": { "metadata": { "name": HELM_ACCOUNT } } },
        }),
        json!({
            "apiVersion": "pkg.crossplane.io/v1beta1",
            "kind": "ImageConfig",
            "metadata": { "name": HELM_ACCOUNT },
            "spec": {
                "matchImages": [{ "type": "Prefix", "prefix": helm }],
                "runtime": { "configRef": { "name": HELM_ACCOUNT } },
            },
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": HELM_ACCOUNT },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": HELM_ACCOUNT, "namespace": CROSSPLANE_NAMESPACE }],
        }),
    ]
}

/// The providers as objects, for installations without the Configuration package.
pub(super) fn providers() -> Vec<Value> {
    let object = |provider: &providers::Provider| {
        let (_, path) = provider.package.split_once('/').unwrap_or(("", provider.package));
        package("Provider", &dns_label(path), format!("{}:{}", provider.package, provider.version))
    };
    providers::REQUIRED.iter().map(object).collect()
}

/// The function as an object, likewise.
pub(super) fn function(repository: &Repository, version: &Version) -> Value {
    let reference = format!("{}:{version}", repository.package(FUNCTION));
    package("Function", &repository.function_name(), reference)
}

fn package(kind: &str, name: &str, reference: String) -> Value {
    json!({
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": kind,
        "metadata": { "name": name },
        "spec": { "package": reference },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_every_composition_calls_the_one_function() {
        let compositions = compositions("the-function");
        assert_eq!(compositions.len(), kind::ALL.len());
        for composition in compositions {
            for step in composition["spec"]["pipeline"].as_array().expect("a pipeline") {
                assert_eq!(step["functionRef"]["name"], "the-function", "{composition}");
            }
        }
    }

    #[test]
    fn the_configuration_depends_on_its_function_and_on_exact_providers() {
        let repository: Repository = "registry.example.org/acme".parse().expect("valid");
        let version: Version = "v1.2.3".parse().expect("valid");
        let meta = configuration_meta(&repository, &version);
        let dependencies = meta["spec"]["dependsOn"].as_array().expect("a list");
        assert_eq!(dependencies.len(), 16);
        assert_eq!(dependencies[0]["package"], "registry.example.org/acme/modelplane-function");
        assert_eq!(dependencies[0]["version"], "v1.2.3");
        assert_eq!(function(&repository, &version)["metadata"]["name"], "acme-modelplane-function");
        for dependency in &dependencies[1..] {
            assert!(dependency["version"].as_str().is_some_and(|version| version.starts_with('v')));
        }
    }

    #[test]
    fn what_is_activated_is_named_once() {
        let mut kinds: Vec<String> = providers::activated().collect();
        assert!(kinds.contains(&"releases.helm.m.crossplane.io".to_owned()));
        assert!(kinds.contains(&"kubernetes.vke.vultr.m.upbound.io".to_owned()));
        let count = kinds.len();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), count);
    }
}
