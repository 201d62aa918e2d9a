//! Shared storage of an EKS cluster, and the security groups of storage and fabric (spec clusters §5.6).

use modelplane_api::names::{FABRIC_LABEL, SECURITY_GROUP_ROLE_LABEL};

use super::EksComposer;
use crate::compose::cluster::{Managed, ManagedKind, Selector, StorageClass, fields};
use crate::contract::Ready;

const EC2: &str = "ec2.aws.m.upbound.io/v1beta1";
const EFS: &str = "efs.aws.m.upbound.io/v1beta1";
const SECURITY_GROUP: ManagedKind = ManagedKind::new(EC2, "SecurityGroup");
const INGRESS_RULE: ManagedKind = ManagedKind::new(EC2, "SecurityGroupIngressRule");
const EGRESS_RULE: ManagedKind = ManagedKind::new(EC2, "SecurityGroupEgressRule");

/// StorageClass for model weights.
pub(super) const STORAGE_CLASS: &str = "modelplane-rwx-efs";
/// Key of the security group of nodes that talk over EFA.
pub(super) const EFA_SECURITY_GROUP_KEY: &str = "efa-security-group";

const STORAGE_CLASS_KEY: &str = "storage-class-rwx-efs";
const FILE_SYSTEM_KEY: &str = "efs-filesystem";
const NFS_PORT: i64 = 2049;

/// Composes the file system, how nodes reach it, and the StorageClass on it.
pub(super) fn compose(eks: &mut EksComposer<'_, '_>) {
    file_system(eks);
    if eks.uses_efa() {
        efa_security_group(eks);
    }
    storage_class(eks);
}

fn file_system(eks: &mut EksComposer<'_, '_>) {
    let region = eks.spec.region.as_str();
    let group = || Selector::labelled(SECURITY_GROUP_ROLE_LABEL, "efs");
    let file_system = fields! {"region": region, "throughputMode": "elastic", "encrypted": true};
    eks.cluster.managed(FILE_SYSTEM_KEY, Managed::new(ManagedKind::new(EFS, "FileSystem"), file_system));
    let security_group = fields! {
        "region": region,
        "name": format!("{}-efs", eks.cluster.name),
        "description": "NFS from the nodes to the mount targets of the model cache",
        "vpcIdSelector": Selector::sibling(),
    };
    let security_group =
        Managed::new(SECURITY_GROUP, security_group).labelled(SECURITY_GROUP_ROLE_LABEL, "efs");
    eks.cluster.managed("efs-security-group", security_group);
    let rule = fields! {
        "region": region,
        "ipProtocol": "tcp",
        "fromPort": NFS_PORT,
        "toPort": NFS_PORT,
        "cidrIpv4": eks.subnets.vpc.as_str(),
        "securityGroupIdSelector": group(),
    };
    eks.cluster.managed("efs-security-group-ingress", Managed::new(INGRESS_RULE, rule));
    for (index, zone) in eks.subnets.zones.iter().enumerate() {
        let target = fields! {
            "region": region,
            "fileSystemIdSelector": Selector::sibling(),
            "subnetIdRef": fields! {"name": eks.private_subnet(&zone.name)},
            "securityGroupsSelector": group(),
        };
        let target = Managed::new(ManagedKind::new(EFS, "MountTarget"), target);
        eks.cluster.managed(format!("efs-mount-target-{index}"), target);
    }
}

/// EFA traffic bypasses the kernel and is admitted only between members of one group.
fn efa_security_group(eks: &mut EksComposer<'_, '_>) {
    let region = eks.spec.region.as_str();
    let group = || Selector::labelled(FABRIC_LABEL, "EFA");
    let security_group = fields! {
        "region": region,
        "name": format!("{}-efa", eks.cluster.name),
        "description": "EFA traffic among the nodes of gangs",
        "vpcIdSelector": Selector::sibling(),
    };
    let name = eks.cluster.child("efa-sg");
    let security_group =
        Managed::new(SECURITY_GROUP, security_group).named(name).labelled(FABRIC_LABEL, "EFA");
    eks.cluster.managed(EFA_SECURITY_GROUP_KEY, security_group);
    for (direction, kind) in [("ingress", INGRESS_RULE), ("egress", EGRESS_RULE)] {
        let rule = fields! {
            "region": region,
            "ipProtocol": "-1",
            "referencedSecurityGroupIdSelector": group(),
            "securityGroupIdSelector": group(),
        };
        eks.cluster.managed(format!("{EFA_SECURITY_GROUP_KEY}-{direction}"), Managed::new(kind, rule));
    }
}

fn storage_class(eks: &mut EksComposer<'_, '_>) {
    let Some(file_system) = eks.cluster.external_name(FILE_SYSTEM_KEY) else {
        return eks.cluster.hold(STORAGE_CLASS_KEY, Ready::True);
    };
    let class = StorageClass::new(STORAGE_CLASS, "efs.csi.aws.com").with_parameters([
        ("provisioningMode", "efs-ap"),
        ("fileSystemId", file_system),
        ("directoryPerms", "700"),
    ]);
    eks.cluster.storage_class(STORAGE_CLASS_KEY, class);
}
