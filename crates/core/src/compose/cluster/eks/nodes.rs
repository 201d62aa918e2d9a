//! Node groups and launch templates of an EKS cluster (spec clusters §5.4, §5.5).

use modelplane_api::eks_cluster::{EKSClusterSpec, NodePool};
use modelplane_api::inference_cluster::FabricType;
use modelplane_api::names::{GPU_TAINT, SUBNET_TIER_LABEL, SYSTEM_POOL};

use super::EksComposer;
use super::iam::{NODE_ROLE, role_selector};
use super::storage::EFA_SECURITY_GROUP_KEY;
use super::subnets::Subnets;
use crate::compose::cluster::{Fields, Managed, ManagedKind, Selector, fields, node_pool};

const NODE_GROUP: ManagedKind = ManagedKind::new("eks.aws.m.upbound.io/v1beta1", "NodeGroup");
const LAUNCH_TEMPLATE: ManagedKind = ManagedKind::new("ec2.aws.m.upbound.io/v1beta1", "LaunchTemplate");

const STANDARD_AMI: &str = "AL2023_x86_64_STANDARD";
const NVIDIA_AMI: &str = "AL2023_x86_64_NVIDIA";

/// Network cards of the instance types that have more than one (AWS EC2 user guide, EFA).
const NETWORK_CARDS: [(&str, i64); 5] = [
    ("p5.48xlarge", 32),
    ("p5e.48xlarge", 32),
    ("p5en.48xlarge", 16),
    ("p4d.24xlarge", 4),
    ("p4de.24xlarge", 4),
];

/// Composes the system pool and the pools of the spec.
pub(super) fn compose(eks: &mut EksComposer<'_, '_>) {
    let system = fields! {
        "amiType": STANDARD_AMI,
        "labels": labels(SYSTEM_POOL, None),
        "instanceTypes": ["m6i.xlarge"],
        "subnetIdSelector": private_subnets(),
    };
    add(eks, SYSTEM_POOL, 1, (1, 2), system);
    let spec = eks.spec;
    for pool in &spec.node_pools {
        let bounds = (pool.min_node_count(), pool.max_node_count());
        let fields = pool_fields(eks, pool);
        add(eks, &pool.name, pool.node_count(), bounds, fields);
        if has_launch_template(pool) {
            launch_template(eks, pool);
        }
    }
}

/// A warning for each pool that names a zone without subnets.
pub(super) fn foreign_zones<'s>(
    spec: &'s EKSClusterSpec,
    subnets: &'s Subnets,
) -> impl Iterator<Item = String> + 's {
    let known = |zone: &str| subnets.zones.iter().any(|known| known.name == zone);
    spec.node_pools.iter().flat_map(move |pool| {
        pool.zones.iter().filter(move |zone| !known(zone)).map(move |zone| {
            let zones: Vec<&str> = subnets.zones.iter().map(|zone| zone.name.as_str()).collect();
            let zones = zones.join(", ");
            format!("pool {}: zone {zone} has no subnet; the cluster has subnets in {zones}", pool.name)
        })
    })
}

/// Composes one node group. Its size is only seeded: the autoscaler changes it.
fn add(eks: &mut EksComposer<'_, '_>, name: &str, nodes: i64, (min, max): (i64, i64), fields: Fields<'_>) {
    let common = fields! {
        "region": eks.spec.region.as_str(),
        "scalingConfig": fields! {"minSize": min, "maxSize": max},
        "clusterNameSelector": Selector::sibling(),
        "nodeRoleArnSelector": role_selector(NODE_ROLE),
    };
    let seed = fields! {"scalingConfig": fields! {"desiredSize": nodes}};
    let managed = Managed::new(NODE_GROUP, common.and(fields)).seeded(seed);
    eks.cluster.managed(format!("nodegroup-{name}"), managed);
}

fn pool_fields<'p>(eks: &EksComposer<'_, '_>, pool: &'p NodePool) -> Fields<'p> {
    let gpu = node_pool::accelerators(pool.role, pool.gpu.as_ref());
    let ami = match pool.role {
        modelplane_api::common::PoolRole::Gpu => NVIDIA_AMI,
        modelplane_api::common::PoolRole::System => STANDARD_AMI,
    };
    let mut fields = fields! {
        "amiType": ami,
        "labels": labels(&pool.name, gpu.map(|gpu| gpu.accelerator_type.as_str())),
    };
    if gpu.is_some() {
        let value = node_pool::GPU_TAINT_VALUE;
        fields = fields.with("taint", [fields! {"key": GPU_TAINT, "value": value, "effect": "NO_SCHEDULE"}]);
    }
    fields = if has_launch_template(pool) {
        fields.with("launchTemplate", fields! {"name": launch_template_name(eks, pool), "version": "$Latest"})
    } else {
        fields.with("instanceTypes", [pool.instance_type.as_str()]).with("diskSize", pool.disk_size_gb())
    };
    if pool.capacity_block.is_some() {
        fields = fields.with("capacityType", "CAPACITY_BLOCK");
    }
    if pool.zones.is_empty() {
        return fields.with("subnetIdSelector", private_subnets());
    }
    let subnets: Vec<_> = pool.zones.iter().map(|zone| fields! {"name": eks.private_subnet(zone)}).collect();
    fields.with("subnetIdRefs", subnets)
}

/// Composes the launch template of a pool with what a node group cannot say itself.
fn launch_template(eks: &mut EksComposer<'_, '_>, pool: &NodePool) {
    let mut fields = fields! {
        "region": eks.spec.region.as_str(),
        "name": launch_template_name(eks, pool),
        "instanceType": pool.instance_type.as_str(),
        "blockDeviceMappings": [fields! {
            "deviceName": "/dev/xvda",
            "ebs": fields! {"volumeSize": pool.disk_size_gb()},
        }],
    };
    if let Some(block) = &pool.capacity_block {
        let target = fields! {"capacityReservationId": block.capacity_reservation_id.as_str()};
        let specification = fields! {
            "capacityReservationPreference": "capacity-reservations-only",
            "capacityReservationTarget": target,
        };
        fields = fields
            .with("instanceMarketOptions", fields! {"marketType": "capacity-block"})
            .with("capacityReservationSpecification", specification);
    }
    if pool.fabric() == FabricType::Efa {
        fields = fields.with("networkInterfaces", network_interfaces(eks, pool));
    }
    eks.cluster.managed(launch_template_key(pool), Managed::new(LAUNCH_TEMPLATE, fields));
}

/// One EFA interface for each network card; the first one also carries IP traffic.
fn network_interfaces(eks: &EksComposer<'_, '_>, pool: &NodePool) -> Vec<Fields<'static>> {
    let groups = security_groups(eks, pool);
    let cards = NETWORK_CARDS.iter().find(|(instance_type, _)| *instance_type == pool.instance_type);
    let cards = cards.map_or(1, |(_, cards)| *cards);
    let interface = |card: i64| {
        let (device, interface_type) = if card == 0 { (0, "efa") } else { (1, "efa-only") };
        let fields = fields! {
            "networkCardIndex": card,
            "deviceIndex": device,
            "interfaceType": interface_type,
        };
        if groups.is_empty() { fields } else { fields.with("securityGroups", groups.clone()) }
    };
    (0..cards).map(interface).collect()
}

/// The groups the nodes are in: EFA's and the cluster's own.
///
/// While one of them is not known, an existing launch template keeps those it has: nodes started without
/// them could not talk to each other.
fn security_groups(eks: &EksComposer<'_, '_>, pool: &NodePool) -> Vec<String> {
    let resources = &eks.cluster.observed.resources;
    let path = ["status", "atProvider", "vpcConfig", "clusterSecurityGroupId"];
    let cluster = resources.get("cluster").and_then(|cluster| cluster.document.text_at(&path));
    let known: Vec<String> = [eks.cluster.external_name(EFA_SECURITY_GROUP_KEY), cluster]
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect();
    if known.len() == 2 {
        return known;
    }
    let existing = resources.get(launch_template_key(pool).as_str()).and_then(|template| {
        let interfaces = template.document.get(&["spec", "forProvider", "networkInterfaces"])?;
        let interfaces: Vec<crate::document::Document<'_>> = interfaces.decode().ok()?;
        interfaces.first()?.decode_at::<Vec<String>>(&["securityGroups"]).ok().flatten()
    });
    existing.filter(|existing| existing.len() > known.len()).unwrap_or(known)
}

fn launch_template_key(pool: &NodePool) -> String {
    format!("launch-template-{}", pool.name)
}

fn launch_template_name(eks: &EksComposer<'_, '_>, pool: &NodePool) -> String {
    eks.cluster.child(&format!("lt-{}", pool.name))
}

fn has_launch_template(pool: &NodePool) -> bool {
    pool.capacity_block.is_some() || pool.fabric() == FabricType::Efa
}

fn private_subnets() -> Selector<'static> {
    Selector::labelled(SUBNET_TIER_LABEL, "private")
}

fn labels<'p>(pool: &'p str, accelerator: Option<&'p str>) -> Fields<'p> {
    node_pool::labels(pool, accelerator).into_iter().collect()
}
