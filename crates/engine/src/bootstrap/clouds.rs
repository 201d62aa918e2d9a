//! The kinds of Crossplane's cloud providers, as far as they have to be served for objects to be kept.

use serde_json::Value;

use super::open_definition;
use crate::client::Resource;
use crate::object::group;

/// Endings of the groups of cloud providers' namespaced kinds.
const CLOUDS: [&str; 7] = [
    "aws.m.upbound.io",
    "gcp.m.upbound.io",
    "azure.m.upbound.io",
    "nebius.m.upbound.io",
    "vultr.m.upbound.io",
    "digitalocean.m.crossplane.io",
    "digitalocean.m.upbound.io",
];

/// Whether a group belongs to a cloud's provider.
pub(super) fn is_cloud_group(group: &str) -> bool {
    CLOUDS
        .iter()
        .any(|cloud| group.strip_suffix(cloud).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Whether a kind holds credentials and stands for nothing in a cloud.
pub(super) fn is_provider_config(kind: &str) -> bool {
    matches!(kind, "ProviderConfig" | "ClusterProviderConfig")
}

/// The definition of a kind, if it is one of a cloud's provider.
pub(super) fn definition(api_version: &str, kind: &str) -> Option<Value> {
    if !is_cloud_group(group(api_version)) {
        return None;
    }
    let namespaced = kind != "ClusterProviderConfig";
    let resource = Resource::new(api_version, kind, &plural(kind), namespaced);
    Some(open_definition(&resource, &["crossplane", "managed"]))
}

/// The plural by which a kind is served, as the providers' generator makes it.
fn plural(kind: &str) -> String {
    let singular = kind.to_lowercase();
    if singular == "kubernetes" {
        return singular;
    }
    let vowel_before_y = ["ay", "ey", "oy"].iter().any(|end| singular.ends_with(end));
    if let Some(stem) = singular.strip_suffix('y').filter(|_| !vowel_before_y) {
        return format!("{stem}ies");
    }
    if ["s", "x", "ch", "sh"].iter().any(|end| singular.ends_with(end)) {
        return format!("{singular}es");
    }
    format!("{singular}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_those_of_the_providers() {
        // spec api §15
        for (kind, expected) in [
            ("EIP", "eips"),
            ("InternetGateway", "internetgateways"),
            ("Policy", "policies"),
            ("SecurityGroupEgressRule", "securitygroupegressrules"),
            ("Kubernetes", "kubernetes"),
            ("KubernetesNodePool", "kubernetesnodepools"),
            ("ProviderConfig", "providerconfigs"),
            ("FileSystem", "filesystems"),
            ("ServiceAccountKey", "serviceaccountkeys"),
        ] {
            assert_eq!(plural(kind), expected);
        }
    }

    #[test]
    fn only_clouds_kinds_are_defined() {
        for (api_version, defined) in [
            ("ec2.aws.m.upbound.io/v1beta1", true),
            ("gcp.m.upbound.io/v1beta1", true),
            ("kubernetes.digitalocean.m.crossplane.io/v1alpha1", true),
            ("kubernetes.m.crossplane.io/v1alpha1", false),
            ("evilaws.m.upbound.io/v1", false),
            ("v1", false),
        ] {
            assert_eq!(definition(api_version, "Thing").is_some(), defined, "{api_version}");
        }
    }
}
