//! The IAM roles of an EKS cluster, as a table (spec clusters §5.2).
//!
//! Policy documents are written key by key in a fixed order: AWS normalises them, but the provider compares
//! texts, and a cluster that was made by upstream must not look changed.

use modelplane_api::names::IAM_ROLE_LABEL;

use super::EksComposer;
use crate::compose::cluster::{Managed, ManagedKind, Selector, fields};

const IAM: &str = "iam.aws.m.upbound.io/v1beta1";
const ROLE: ManagedKind = ManagedKind::new(IAM, "Role");
const POLICY: ManagedKind = ManagedKind::new(IAM, "Policy");
const ATTACHMENT: ManagedKind = ManagedKind::new(IAM, "RolePolicyAttachment");

/// Role of the cluster's control plane.
pub(super) const CLUSTER_ROLE: &str = "cluster";
/// Role of its nodes.
pub(super) const NODE_ROLE: &str = "node";
/// Role of the EFS CSI driver.
pub(super) const EFS_CSI_ROLE: &str = "efs-csi";
/// Role of the cluster autoscaler.
pub(super) const AUTOSCALER_ROLE: &str = "cluster-autoscaler";

/// Who assumes a role.
enum Trust {
    /// An AWS service.
    Service(&'static str),
    /// A pod, by EKS Pod Identity.
    Pod,
}

/// Every role with who assumes it.
const ROLES: [(&str, Trust); 4] = [
    (CLUSTER_ROLE, Trust::Service("eks.amazonaws.com")),
    (NODE_ROLE, Trust::Service("ec2.amazonaws.com")),
    (EFS_CSI_ROLE, Trust::Pod),
    (AUTOSCALER_ROLE, Trust::Pod),
];

/// Every policy of AWS's own with the role it is attached to: key, policy, role.
const ATTACHED: [(&str, &str, &str); 5] = [
    ("iam-attach-cluster-policy", "AmazonEKSClusterPolicy", CLUSTER_ROLE),
    ("iam-attach-node-worker", "AmazonEKSWorkerNodePolicy", NODE_ROLE),
    ("iam-attach-node-cni", "AmazonEKS_CNI_Policy", NODE_ROLE),
    ("iam-attach-node-ecr", "AmazonEC2ContainerRegistryReadOnly", NODE_ROLE),
    ("iam-attach-efs-csi", "service-role/AmazonEFSCSIDriverPolicy", EFS_CSI_ROLE),
];

/// What the cluster autoscaler looks at.
const AUTOSCALER_READS: [&str; 9] = [
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeAutoScalingInstances",
    "autoscaling:DescribeLaunchConfigurations",
    "autoscaling:DescribeScalingActivities",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:GetInstanceTypesFromInstanceRequirements",
    "eks:DescribeNodegroup",
];

/// What the cluster autoscaler changes.
const AUTOSCALER_WRITES: [&str; 2] =
    ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"];

/// Composes the roles and what they may do.
pub(super) fn compose(eks: &mut EksComposer<'_, '_>) {
    for (role, trust) in ROLES {
        let managed = Managed::new(ROLE, fields! {"assumeRolePolicy": trust.document()});
        eks.cluster.managed(format!("iam-role-{role}"), managed.labelled(IAM_ROLE_LABEL, role));
    }
    for (key, policy, role) in ATTACHED {
        let arn = format!("arn:aws:iam::aws:policy/{policy}");
        let attachment = fields! {"policyArn": arn, "roleSelector": role_selector(role)};
        eks.cluster.managed(key, Managed::new(ATTACHMENT, attachment));
    }
    let policy = Managed::new(POLICY, fields! {"policy": autoscaler_policy()});
    eks.cluster.managed("iam-policy-cluster-autoscaler", policy.labelled(IAM_ROLE_LABEL, AUTOSCALER_ROLE));
    let attachment = fields! {
        "policyArnSelector": role_selector(AUTOSCALER_ROLE),
        "roleSelector": role_selector(AUTOSCALER_ROLE),
    };
    eks.cluster.managed("iam-attach-cluster-autoscaler", Managed::new(ATTACHMENT, attachment));
}

/// Selects what belongs to a role.
pub(super) fn role_selector(role: &'static str) -> Selector<'static> {
    Selector::labelled(IAM_ROLE_LABEL, role)
}

impl Trust {
    /// The role's trust policy.
    fn document(&self) -> String {
        let (service, action) = match self {
            Self::Service(service) => (*service, r#""sts:AssumeRole""#.to_owned()),
            Self::Pod => ("pods.eks.amazonaws.com", json_list(&["sts:AssumeRole", "sts:TagSession"])),
        };
        document(&[format!(
            r#"{{"Effect":"Allow","Principal":{{"Service":"{service}"}},"Action":{action}}}"#
        )])
    }
}

/// What the cluster autoscaler may do: the policy AWS publishes for it.
fn autoscaler_policy() -> String {
    let statement = |actions: &[&str]| {
        format!(r#"{{"Effect":"Allow","Action":{},"Resource":["*"]}}"#, json_list(actions))
    };
    document(&[statement(&AUTOSCALER_READS), statement(&AUTOSCALER_WRITES)])
}

fn document(statements: &[String]) -> String {
    format!(r#"{{"Version":"2012-10-17","Statement":[{}]}}"#, statements.join(","))
}

fn json_list(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
    format!("[{}]", quoted.join(","))
}
