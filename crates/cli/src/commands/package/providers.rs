//! The Crossplane providers compositions need, and which of their kinds (spec api §15).
//!
//! A provider defines hundreds of kinds. Where Crossplane is installed without activating them all, the activation
//! policy names those that are composed.

/// A provider package.
#[derive(Debug, Clone, Copy)]
pub(super) struct Provider {
    /// Its repository, registry included.
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    /// Kinds composed: groups with plurals.
    pub(super) kinds: &'static [(&'static str, &'static [&'static str])],
}

/// Version of the providers of the large clouds, which are released together.
const CLOUDS: &str = "v2.6.0";

/// A provider of Upbound's repositories.
const fn upbound(
    package: &'static str,
    version: &'static str,
    kinds: &'static [(&'static str, &'static [&'static str])],
) -> Provider {
    Provider { package, version, kinds }
}

/// The provider of Helm releases, on workload clusters and on the control plane.
pub(super) const HELM: Provider =
    upbound("xpkg.upbound.io/upbound/provider-helm", "v1.4.0", &[("helm.m.crossplane.io", &["releases"])]);

/// Every provider the Configuration depends on.
pub(super) const REQUIRED: &[Provider] = &[
    HELM,
    upbound(
        "xpkg.upbound.io/upbound/provider-kubernetes",
        "v1.3.0",
        &[("kubernetes.m.crossplane.io", &["objects"])],
    ),
    upbound("xpkg.upbound.io/upbound/provider-family-gcp", CLOUDS, &[]),
    upbound(
        "xpkg.upbound.io/upbound/provider-gcp-cloudplatform",
        CLOUDS,
        &[(
            "cloudplatform.gcp.m.upbound.io",
            &["projectiammembers", "projectservices", "serviceaccounts", "serviceaccountkeys"],
        )],
    ),
    upbound(
        "xpkg.upbound.io/upbound/provider-gcp-compute",
        CLOUDS,
        &[("compute.gcp.m.upbound.io", &["networks", "subnetworks"])],
    ),
    upbound(
        "xpkg.upbound.io/upbound/provider-gcp-container",
        CLOUDS,
        &[("container.gcp.m.upbound.io", &["clusters", "nodepools"])],
    ),
    upbound(
        "xpkg.upbound.io/upbound/provider-aws-ec2",
        CLOUDS,
        &[(
            "ec2.aws.m.upbound.io",
            &[
                "eips",
                "internetgateways",
                "launchtemplates",
                "natgateways",
                "routes",
                "routetables",
                "routetableassociations",
                "securitygroups",
                "securitygroupegressrules",
                "securitygroupingressrules",
                "subnets",
                "vpcs",
            ],
        )],
    ),
    upbound(
        "xpkg.upbound.io/upbound/provider-aws-efs",
        CLOUDS,
        &[("efs.aws.m.upbound.io", &["filesystems", "mounttargets"])],
    ),
    upbound(
        "xpkg.upbound.io/upbound/provider-aws-eks",
        CLOUDS,
        &[(
            "eks.aws.m.upbound.io",
            &["addons", "clusters", "clusterauths", "nodegroups", "podidentityassociations"],
        )],
    ),
    upbound(
        "xpkg.upbound.io/upbound/provider-aws-iam",
        CLOUDS,
        &[("iam.aws.m.upbound.io", &["policies", "roles", "rolepolicyattachments"])],
    ),
    upbound(
        "xpkg.upbound.io/upbound/provider-family-azure",
        CLOUDS,
        &[("azure.m.upbound.io", &["resourcegroups"])],
    ),
    upbound(
        "xpkg.upbound.io/upbound/provider-azure-containerservice",
        CLOUDS,
        &[("containerservice.azure.m.upbound.io", &["kubernetesclusters", "kubernetesclusternodepools"])],
    ),
    upbound(
        "xpkg.upbound.io/upbound/provider-azure-network",
        CLOUDS,
        &[("network.azure.m.upbound.io", &["subnets", "virtualnetworks"])],
    ),
    upbound(
        "xpkg.upbound.io/upbound/provider-nebius",
        "v1.0.1",
        &[
            ("compute.nebius.m.upbound.io", &["filesystems", "gpuclusters"]),
            ("mk8s.nebius.m.upbound.io", &["clusters", "nodegroups"]),
            ("vpc.nebius.m.upbound.io", &["networks", "subnets"]),
        ],
    ),
    upbound(
        "xpkg.upbound.io/upbound/provider-vultr",
        "v1.0.0",
        &[("vke.vultr.m.upbound.io", &["kubernetes", "kubernetesnodepools"])],
    ),
];

/// Kinds of providers that are installed by whoever uses them: DigitalOcean's has no release that is known to serve
/// the namespaced kinds, and a dependency that cannot be resolved would keep everybody from installing.
pub(super) const OPTIONAL_KINDS: &[(&str, &[&str])] =
    &[("kubernetes.digitalocean.m.crossplane.io", &["clusters", "nodepools"])];

/// Every kind to activate, as `plural.group`.
pub(super) fn activated() -> impl Iterator<Item = String> {
    let required = REQUIRED.iter().flat_map(|provider| provider.kinds);
    required
        .chain(OPTIONAL_KINDS)
        .flat_map(|(group, plurals)| plurals.iter().map(move |plural| format!("{plural}.{group}")))
}
