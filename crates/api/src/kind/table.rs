//! The rows of the table of kinds (spec api §0).

use crate::aks_cluster::AKSCluster;
use crate::doks_cluster::DOKSCluster;
use crate::eks_cluster::EKSCluster;
use crate::gke_cluster::GKECluster;
use crate::inference_class::InferenceClass;
use crate::inference_cluster::InferenceCluster;
use crate::inference_gateway::InferenceGateway;
use crate::kind::{KindInfo, PrinterColumn, Scale, Scope, Step};
use crate::llm_inference::LLMInference;
use crate::model_cache::ModelCache;
use crate::model_deployment::ModelDeployment;
use crate::model_endpoint::ModelEndpoint;
use crate::model_replica::ModelReplica;
use crate::model_service::ModelService;
use crate::nebius_cluster::NebiusCluster;
use crate::schema;
use crate::serving_stack::ServingStack;
use crate::vultr_cluster::VultrCluster;

/// Group of the kinds that people write.
pub const GROUP: &str = "modelplane.ai";
/// Group of the cluster back-ends and the serving stack.
pub const INFRASTRUCTURE_GROUP: &str = "infrastructure.modelplane.ai";
/// Group of `LLMInference`.
pub const LLM_GROUP: &str = "inference.devopstoolkit.ai";
/// The one version of every kind.
pub const VERSION: &str = "v1alpha1";

const CATEGORIES: &[&str] = &["crossplane", "modelplane"];

/// A string column.
const fn column(name: &'static str, json_path: &'static str) -> PrinterColumn {
    PrinterColumn { name, type_: "string", json_path }
}

/// A step `compose-…` and the function of the same name within our package.
macro_rules! step {
    ($name:literal) => {
        Step { name: concat!("compose-", $name), function: concat!("modelplane-modelplanecompose-", $name) }
    };
}

/// A row; what rows do not say is what most kinds share.
macro_rules! row {
    ($kind:ident, $plural:literal, $short:literal, $group:ident, $domain:literal, $scope:ident,
     $steps:expr, $columns:expr) => {
        KindInfo {
            group: $group,
            version: VERSION,
            kind: stringify!($kind),
            plural: $plural,
            short_names: &[$short],
            scope: Scope::$scope,
            categories: CATEGORIES,
            printer_columns: $columns,
            scale: None,
            composition: concat!($plural, ".", $domain),
            steps: $steps,
            declares_status: true,
            schema: schema::object::<$kind>,
        }
    };
    ($kind:ident, $plural:literal, $short:literal, $scope:ident, $steps:expr, $columns:expr) => {
        row!($kind, $plural, $short, GROUP, "modelplane.ai", $scope, $steps, $columns)
    };
}

/// A row of the infrastructure group; all its kinds are namespaced.
macro_rules! infrastructure {
    ($kind:ident, $plural:literal, $short:literal, $steps:expr, $columns:expr) => {
        row!(
            $kind,
            $plural,
            $short,
            INFRASTRUCTURE_GROUP,
            "infrastructure.modelplane.ai",
            Namespaced,
            $steps,
            $columns
        )
    };
}

/// InferenceClass.
pub const INFERENCE_CLASS: KindInfo =
    row!(InferenceClass, "inferenceclasses", "icl", Cluster, &[step!("inference-class")], &[]);

/// InferenceCluster.
pub const INFERENCE_CLUSTER: KindInfo = row!(
    InferenceCluster,
    "inferenceclusters",
    "ic",
    Cluster,
    &[step!("inference-cluster")],
    &[column("SOURCE", ".spec.cluster.source"), column("GATEWAY", ".status.gateway.address")]
);

/// InferenceGateway.
pub const INFERENCE_GATEWAY: KindInfo = row!(
    InferenceGateway,
    "inferencegateways",
    "ig",
    Cluster,
    &[step!("inference-gateway")],
    &[column("GATEWAY", ".spec.backend"), column("ADDRESS", ".status.address")]
);

/// ModelCache.
// SOURCE points at a path that does not exist; the column is part of the published API (spec api §4).
pub const MODEL_CACHE: KindInfo = row!(
    ModelCache,
    "modelcaches",
    "mc",
    Namespaced,
    &[step!("model-cache")],
    &[column("SOURCE", ".spec.source.huggingFace.repo"), column("READY", ".status.summary.ready")]
);

/// ModelDeployment.
pub const MODEL_DEPLOYMENT: KindInfo = KindInfo {
    scale: Some(Scale {
        spec_replicas_path: ".spec.replicas",
        status_replicas_path: ".status.replicas.total",
    }),
    ..row!(
        ModelDeployment,
        "modeldeployments",
        "md",
        Namespaced,
        &[step!("model-deployment")],
        &[column("REPLICAS", ".status.replicas.ready")]
    )
};

/// ModelReplica.
pub const MODEL_REPLICA: KindInfo = row!(
    ModelReplica,
    "modelreplicas",
    "mr",
    Namespaced,
    &[step!("model-replica")],
    &[column("CLUSTER", ".spec.clusterName")]
);

/// ModelService.
pub const MODEL_SERVICE: KindInfo = row!(
    ModelService,
    "modelservices",
    "ms",
    Namespaced,
    &[step!("model-service")],
    &[column("ADDRESS", ".status.address")]
);

/// ModelEndpoint.
pub const MODEL_ENDPOINT: KindInfo = row!(
    ModelEndpoint,
    "modelendpoints",
    "me",
    Namespaced,
    &[step!("model-endpoint")],
    &[column("URL", ".spec.url")]
);

/// ServingStack.
pub const SERVING_STACK: KindInfo = infrastructure!(
    ServingStack,
    "servingstacks",
    "ss",
    &[step!("serving-stack"), step!("usages")],
    &[column("GATEWAY", ".status.gateway.address")]
);

/// GKECluster.
pub const GKE_CLUSTER: KindInfo = infrastructure!(
    GKECluster,
    "gkeclusters",
    "gke",
    &[step!("gke-cluster")],
    &[column("REGION", ".spec.region")]
);

/// EKSCluster.
pub const EKS_CLUSTER: KindInfo = infrastructure!(
    EKSCluster,
    "eksclusters",
    "eks",
    &[step!("eks-cluster")],
    &[column("REGION", ".spec.region")]
);

/// AKSCluster.
pub const AKS_CLUSTER: KindInfo = infrastructure!(
    AKSCluster,
    "aksclusters",
    "aks",
    &[step!("aks-cluster")],
    &[column("LOCATION", ".spec.location")]
);

/// NebiusCluster.
pub const NEBIUS_CLUSTER: KindInfo =
    infrastructure!(NebiusCluster, "nebiusclusters", "mk8s", &[step!("nebius-cluster")], &[]);

/// VultrCluster.
pub const VULTR_CLUSTER: KindInfo = infrastructure!(
    VultrCluster,
    "vultrclusters",
    "vke",
    &[step!("vultr-cluster")],
    &[column("REGION", ".spec.region")]
);

/// DOKSCluster.
pub const DOKS_CLUSTER: KindInfo = infrastructure!(
    DOKSCluster,
    "doksclusters",
    "doks",
    &[step!("doks-cluster")],
    &[column("REGION", ".spec.region")]
);

/// LLMInference (spec llm-inference §1, final state).
pub const LLM_INFERENCE: KindInfo = KindInfo {
    group: LLM_GROUP,
    version: VERSION,
    kind: "LLMInference",
    plural: "llminferences",
    short_names: &[],
    scope: Scope::Namespaced,
    categories: &[],
    printer_columns: &[
        column("model", ".spec.model"),
        PrinterColumn { name: "gpu", type_: "integer", json_path: ".spec.gpu" },
    ],
    scale: None,
    composition: "llm-inference",
    steps: &[Step { name: "compose-resources", function: "modelplane-modelplanecompose-llm-inference" }],
    declares_status: false,
    schema: schema::object::<LLMInference>,
};

/// The 14 kinds of Modelplane as published upstream, user-facing ones first.
pub const MODELPLANE: [&KindInfo; 14] = [
    &INFERENCE_CLASS,
    &INFERENCE_CLUSTER,
    &INFERENCE_GATEWAY,
    &MODEL_CACHE,
    &MODEL_DEPLOYMENT,
    &MODEL_REPLICA,
    &MODEL_SERVICE,
    &MODEL_ENDPOINT,
    &SERVING_STACK,
    &GKE_CLUSTER,
    &EKS_CLUSTER,
    &AKS_CLUSTER,
    &NEBIUS_CLUSTER,
    &VULTR_CLUSTER,
];

/// All kinds: those of Modelplane, the clouds added here, and `LLMInference`.
pub const ALL: [&KindInfo; 16] = [
    &INFERENCE_CLASS,
    &INFERENCE_CLUSTER,
    &INFERENCE_GATEWAY,
    &MODEL_CACHE,
    &MODEL_DEPLOYMENT,
    &MODEL_REPLICA,
    &MODEL_SERVICE,
    &MODEL_ENDPOINT,
    &SERVING_STACK,
    &GKE_CLUSTER,
    &EKS_CLUSTER,
    &AKS_CLUSTER,
    &NEBIUS_CLUSTER,
    &VULTR_CLUSTER,
    &DOKS_CLUSTER,
    &LLM_INFERENCE,
];
