//! The one table of what this system installs from elsewhere: Helm charts, container images and bundles
//! of resource definitions, each with where it comes from and which version.
//!
//! Compositions take names, repositories and versions from here and nowhere else; `xtask versions` lists
//! what is newer in the registries it can reach, and `xtask vendor` fetches the definition bundles named
//! here. Where the API lets users choose a version, the one here is the API's default.

/// A Helm chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chart {
    /// Name of the chart within its repository.
    pub name: &'static str,
    /// Repository: an `https://` index or an `oci://` registry path.
    pub repository: &'static str,
    /// Version installed unless the API says otherwise; empty if the API always has to say it.
    pub version: &'static str,
    /// Namespace it is installed into.
    pub namespace: &'static str,
    /// Go module released under the same version, where there is one: another way to ask what is newer.
    pub go_module: Option<&'static str>,
}

/// A container image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// Registry host.
    pub registry: &'static str,
    /// Repository within the registry.
    pub repository: &'static str,
    /// Tag.
    pub tag: &'static str,
}

/// A bundle of CustomResourceDefinitions kept under `third_party/crds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrdBundle {
    /// Folder under `third_party/crds`.
    pub folder: &'static str,
    /// Go module the definitions are taken from.
    pub go_module: &'static str,
    /// Version of that module.
    pub version: &'static str,
    /// Folder of the definitions within the module.
    pub source_folder: &'static str,
    /// Licence, as an SPDX expression.
    pub licence: &'static str,
}

const ENVOY_CHARTS: &str = "oci://docker.io/envoyproxy";

/// cert-manager, for the webhooks of the other charts.
pub const CERT_MANAGER: Chart = Chart {
    name: "cert-manager",
    repository: "https://charts.jetstack.io",
    version: "v1.17.1",
    namespace: "cert-manager",
    go_module: Some("github.com/cert-manager/cert-manager"),
};

/// Envoy Gateway, the gateway of workload clusters; brings the Gateway API definitions.
pub const ENVOY_GATEWAY: Chart = Chart {
    name: "gateway-helm",
    repository: ENVOY_CHARTS,
    version: "v1.8.1",
    namespace: "envoy-gateway-system",
    go_module: Some("github.com/envoyproxy/gateway"),
};

/// Definitions of the Envoy AI Gateway.
pub const AI_GATEWAY_CRDS: Chart = Chart { name: "ai-gateway-crds-helm", go_module: None, ..AI_GATEWAY };

/// Envoy AI Gateway, which resolves `InferencePool` backends for Envoy Gateway. Its version is not
/// configurable while Envoy Gateway's is (spec serving-stack §13.8).
pub const AI_GATEWAY: Chart = Chart {
    name: "ai-gateway-helm",
    repository: ENVOY_CHARTS,
    version: "v0.7.0",
    namespace: "envoy-ai-gateway-system",
    go_module: Some("github.com/envoyproxy/ai-gateway"),
};

/// Prometheus with its operator.
pub const PROMETHEUS: Chart = Chart {
    name: "kube-prometheus-stack",
    repository: "https://prometheus-community.github.io/helm-charts",
    version: "72.6.2",
    namespace: "monitoring",
    go_module: None,
};

/// LeaderWorkerSet, for engines that span nodes.
pub const LEADER_WORKER_SET: Chart = Chart {
    name: "lws",
    repository: "oci://registry.k8s.io/lws/charts",
    version: "v0.8.0",
    namespace: "lws-system",
    go_module: Some("sigs.k8s.io/lws"),
};

/// Node Feature Discovery, whose labels the DRA driver's DaemonSet selects on.
pub const NODE_FEATURE_DISCOVERY: Chart = Chart {
    name: "node-feature-discovery",
    repository: "oci://registry.k8s.io/nfd/charts",
    version: "0.18.3",
    namespace: "node-feature-discovery",
    go_module: Some("sigs.k8s.io/node-feature-discovery"),
};

/// NVIDIA's Dynamic Resource Allocation driver.
pub const NVIDIA_DRA_DRIVER: Chart = Chart {
    name: "dra-driver-nvidia-gpu",
    repository: "oci://registry.k8s.io/dra-driver-nvidia/charts",
    version: "0.4.0",
    namespace: "dra-driver-nvidia-gpu",
    go_module: None,
};

/// Traefik, the gateway of the control plane; its version is a required field of `InferenceGateway`.
pub const TRAEFIK: Chart = Chart {
    name: "traefik",
    repository: "https://traefik.github.io/charts",
    version: "",
    namespace: "traefik-system",
    go_module: None,
};

/// MetalLB, for control planes without a cloud load balancer.
pub const METALLB: Chart = Chart {
    name: "metallb",
    repository: "https://metallb.github.io/metallb",
    version: "0.14.9",
    namespace: "metallb-system",
    go_module: Some("go.universe.tf/metallb"),
};

/// Cluster autoscaler, for clouds that leave it to the user (EKS).
pub const CLUSTER_AUTOSCALER: Chart = Chart {
    name: "cluster-autoscaler",
    repository: "https://kubernetes.github.io/autoscaler",
    version: "9.57.0",
    namespace: "kube-system",
    go_module: None,
};

/// DRA driver of AWS network interfaces, for gangs that talk over EFA.
pub const AWS_DRANET: Chart = Chart {
    name: "aws-dranet",
    repository: "https://aws.github.io/eks-charts",
    version: "1.0.0",
    namespace: "kube-system",
    go_module: None,
};

/// NVIDIA's network operator, for gangs that talk over InfiniBand on AKS.
pub const NETWORK_OPERATOR: Chart = Chart {
    name: "network-operator",
    repository: "https://helm.ngc.nvidia.com/nvidia",
    version: "26.4.0",
    namespace: "network-operator",
    go_module: None,
};

/// CSI driver of Nebius that serves volumes from a filesystem mounted on the nodes.
pub const NEBIUS_MOUNTED_FILESYSTEM: Chart = Chart {
    name: "csi-mounted-fs-path",
    repository: "oci://cr.eu-north1.nebius.cloud/mk8s/helm",
    version: "0.1.6",
    namespace: "kube-system",
    go_module: None,
};

/// Every chart.
pub const CHARTS: &[&Chart] = &[
    &CERT_MANAGER,
    &ENVOY_GATEWAY,
    &AI_GATEWAY_CRDS,
    &AI_GATEWAY,
    &PROMETHEUS,
    &LEADER_WORKER_SET,
    &NODE_FEATURE_DISCOVERY,
    &NVIDIA_DRA_DRIVER,
    &TRAEFIK,
    &METALLB,
    &CLUSTER_AUTOSCALER,
    &AWS_DRANET,
    &NETWORK_OPERATOR,
    &NEBIUS_MOUNTED_FILESYSTEM,
];

/// Endpoint picker of a replica's `InferencePool` (spec replica).
pub const ENDPOINT_PICKER: Image =
    Image { registry: "ghcr.io", repository: "llm-d/llm-d-router-endpoint-picker", tag: "v0.9.0" };

/// Sidecar of decode pods that fetches the key-value cache from a prefill pod (spec replica).
pub const DISAGGREGATION_SIDECAR: Image =
    Image { registry: "ghcr.io", repository: "llm-d/llm-d-router-disagg-sidecar", tag: "v0.9.0" };

/// Runs the job that stages model weights (spec cache).
pub const HYDRATION: Image = Image { registry: "docker.io", repository: "library/python", tag: "3.11-slim" };

/// vLLM as the vLLM Production Stack operator expects it (spec llm-inference §2).
pub const VLLM_PRODUCTION_STACK: Image =
    Image { registry: "docker.io", repository: "lmcache/vllm-openai", tag: "v0.3.13" };

/// This binary, for the data plane of a gateway.
pub const MODELPLANE: Image = Image {
    registry: "ghcr.io",
    repository: "modelplane/modelplane",
    tag: concat!("v", env!("CARGO_PKG_VERSION")),
};

/// Every image of others.
pub const IMAGES: [&Image; 4] =
    [&ENDPOINT_PICKER, &DISAGGREGATION_SIDECAR, &HYDRATION, &VLLM_PRODUCTION_STACK];

/// Gateway API, standard channel; installed on the control plane (spec gateway-and-routing §2.3).
pub const GATEWAY_API: CrdBundle = CrdBundle {
    folder: "gateway-api",
    go_module: "sigs.k8s.io/gateway-api",
    version: "v1.5.1",
    source_folder: "config/crd/standard",
    licence: "Apache-2.0",
};

/// Gateway API Inference Extension; installed on workload clusters (spec serving-stack §6).
pub const INFERENCE_EXTENSION: CrdBundle = CrdBundle {
    folder: "gateway-api-inference-extension",
    go_module: "sigs.k8s.io/gateway-api-inference-extension",
    version: "v1.0.1",
    source_folder: "config/crd/bases",
    licence: "Apache-2.0",
};

/// Every bundle of definitions.
pub const CRD_BUNDLES: [&CrdBundle; 2] = [&GATEWAY_API, &INFERENCE_EXTENSION];

impl Image {
    /// The reference as pods spell it; Docker Hub's defaults are left out as is customary.
    pub fn reference(&self) -> String {
        match (self.registry, self.repository) {
            ("docker.io", repository) => {
                format!("{}:{}", repository.strip_prefix("library/").unwrap_or(repository), self.tag)
            }
            (registry, repository) => format!("{registry}/{repository}:{}", self.tag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_references_are_spelt_as_pods_spell_them() {
        let cases = [
            (HYDRATION, "python:3.11-slim"),
            (ENDPOINT_PICKER, "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.9.0"),
            (VLLM_PRODUCTION_STACK, "lmcache/vllm-openai:v0.3.13"),
        ];
        for (image, reference) in cases {
            assert_eq!(image.reference(), reference);
        }
    }

    #[test]
    fn charts_are_named_once() {
        let mut names: Vec<_> = CHARTS.iter().map(|chart| chart.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CHARTS.len());
    }
}
