//! The control plane of an EKS cluster, its add-ons and its pod identities (spec clusters §5.3).

use super::EksComposer;
use super::iam::{AUTOSCALER_ROLE, CLUSTER_ROLE, EFS_CSI_ROLE, role_selector};
use crate::compose::cluster::{Managed, ManagedKind, Selector, Tool, fields};

const EKS: &str = "eks.aws.m.upbound.io/v1beta1";

/// Every add-on.
const ADDONS: [&str; 5] =
    ["vpc-cni", "kube-proxy", "coredns", "eks-pod-identity-agent", "aws-efs-csi-driver"];

/// Every service account that acts under a role: the role, which names the key too, and the account.
const POD_IDENTITIES: [(&str, &str); 2] =
    [(EFS_CSI_ROLE, "efs-csi-controller-sa"), (AUTOSCALER_ROLE, "cluster-autoscaler")];

/// Composes the cluster itself and how it is reached.
pub(super) fn compose(eks: &mut EksComposer<'_, '_>) {
    let region = eks.spec.region.as_str();
    let cluster = fields! {
        "region": region,
        "version": eks.spec.kubernetes_version(),
        "roleArnSelector": role_selector(CLUSTER_ROLE),
        "accessConfig": fields! {
            "authenticationMode": "API_AND_CONFIG_MAP",
            "bootstrapClusterCreatorAdminPermissions": true,
        },
        "vpcConfig": fields! {
            "endpointPrivateAccess": true,
            "endpointPublicAccess": true,
            "subnetIdSelector": Selector::sibling(),
        },
    };
    let cluster = Managed::new(ManagedKind::new(EKS, "Cluster"), cluster);
    eks.cluster.managed("cluster", cluster.named(&eks.cluster_name));

    let auth = fields! {"region": region, "clusterNameSelector": Selector::sibling()};
    let secret = eks.cluster.kubeconfig.clone();
    let auth = Managed::new(ManagedKind::new(EKS, "ClusterAuth"), auth);
    eks.cluster.managed("cluster-auth", auth.writing_secret(&secret));

    for addon in ADDONS {
        let fields = fields! {
            "region": region,
            "addonName": addon,
            "clusterNameSelector": Selector::sibling(),
        };
        eks.cluster.managed(format!("addon-{addon}"), Managed::new(ManagedKind::new(EKS, "Addon"), fields));
    }
    for (role, account) in POD_IDENTITIES {
        let fields = fields! {
            "region": region,
            "namespace": "kube-system",
            "serviceAccount": account,
            "clusterNameSelector": Selector::sibling(),
            "roleArnSelector": role_selector(role),
        };
        let identity = Managed::new(ManagedKind::new(EKS, "PodIdentityAssociation"), fields);
        eks.cluster.managed(format!("pod-identity-{role}"), identity);
    }
    for tool in [Tool::Kubernetes, Tool::Helm] {
        eks.cluster.provider_config(tool, None);
    }
}
