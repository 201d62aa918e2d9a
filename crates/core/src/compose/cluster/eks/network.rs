//! The network of an EKS cluster (spec clusters §5.1): nodes in private subnets, a NAT gateway to get out.

use modelplane_api::names::{SUBNET_TIER_LABEL, ZONE_LABEL};

use super::EksComposer;
use crate::compose::cluster::{Fields, Managed, ManagedKind, Selector, fields};

const EC2: &str = "ec2.aws.m.upbound.io/v1beta1";
const SUBNET: ManagedKind = ManagedKind::new(EC2, "Subnet");
const ROUTE_TABLE: ManagedKind = ManagedKind::new(EC2, "RouteTable");
const ROUTE: ManagedKind = ManagedKind::new(EC2, "Route");
const ASSOCIATION: ManagedKind = ManagedKind::new(EC2, "RouteTableAssociation");

/// The subnets that face the internet, or those that do not.
#[derive(Clone, Copy)]
struct Tier {
    name: &'static str,
    /// In front of the keys of the tier's resources.
    key_prefix: &'static str,
    /// Field of the default route that selects the way out.
    way_out: &'static str,
}

const PUBLIC: Tier = Tier { name: "public", key_prefix: "", way_out: "gatewayIdSelector" };
const PRIVATE: Tier = Tier { name: "private", key_prefix: "private-", way_out: "natGatewayIdSelector" };

/// Composes the VPC, its subnets and its routes.
pub(super) fn compose(eks: &mut EksComposer<'_, '_>) {
    let vpc = fields! {
        "cidrBlock": eks.subnets.vpc.as_str(),
        "enableDnsHostnames": true,
        "enableDnsSupport": true,
    };
    add(eks, "vpc", Managed::new(ManagedKind::new(EC2, "VPC"), vpc));
    let gateway = fields! {"vpcIdSelector": Selector::sibling()};
    add(eks, "internet-gateway", Managed::new(ManagedKind::new(EC2, "InternetGateway"), gateway));
    add(eks, "nat-eip", Managed::new(ManagedKind::new(EC2, "EIP"), fields! {"domain": "vpc"}));
    if let Some(zone) = eks.subnets.zones.first() {
        let nat = fields! {
            "allocationIdSelector": Selector::sibling(),
            "subnetIdSelector": subnet(PUBLIC, &zone.name),
        };
        add(eks, "nat-gateway", Managed::new(ManagedKind::new(EC2, "NATGateway"), nat));
    }
    for tier in [PUBLIC, PRIVATE] {
        routes(eks, tier);
    }
    subnets(eks);
}

fn subnets(eks: &mut EksComposer<'_, '_>) {
    for (index, zone) in eks.subnets.zones.iter().enumerate() {
        let public = subnet_fields(&zone.name, &zone.public, true)
            .with("tags", fields! {"kubernetes.io/role/elb": "1"});
        let private = subnet_fields(&zone.name, &zone.private, false);
        let names = (eks.public_subnet(&zone.name), eks.private_subnet(&zone.name));
        for (tier, name, fields) in [(PUBLIC, names.0, public), (PRIVATE, names.1, private)] {
            let key = format!("{}subnet-{index}", tier.key_prefix);
            let managed = Managed::new(SUBNET, fields)
                .named(name)
                .labelled(ZONE_LABEL, &zone.name)
                .labelled(SUBNET_TIER_LABEL, tier.name);
            add(eks, key, managed);
            let association = fields! {
                "routeTableIdSelector": route_table(tier),
                "subnetIdSelector": subnet(tier, &zone.name),
            };
            let key = format!("{}route-table-association-{index}", tier.key_prefix);
            add(eks, key, Managed::new(ASSOCIATION, association));
        }
    }
}

fn subnet_fields<'s>(zone: &'s str, range: &'s str, public: bool) -> Fields<'s> {
    fields! {
        "availabilityZone": zone,
        "cidrBlock": range,
        "mapPublicIpOnLaunch": public,
        "vpcIdSelector": Selector::sibling(),
    }
}

fn routes(eks: &mut EksComposer<'_, '_>, tier: Tier) {
    let table = Managed::new(ROUTE_TABLE, fields! {"vpcIdSelector": Selector::sibling()});
    add(eks, format!("{}route-table", tier.key_prefix), table.labelled(SUBNET_TIER_LABEL, tier.name));
    let route = fields! {
        "destinationCidrBlock": "0.0.0.0/0",
        "routeTableIdSelector": route_table(tier),
    };
    let route = route.with(tier.way_out, Selector::sibling());
    add(eks, format!("{}route-default", tier.key_prefix), Managed::new(ROUTE, route));
}

fn add(eks: &mut EksComposer<'_, '_>, key: impl Into<String>, managed: Managed<'_>) {
    let region = eks.spec.region.as_str();
    eks.cluster.managed(key, managed.with("region", region));
}

fn route_table(tier: Tier) -> Selector<'static> {
    Selector::labelled(SUBNET_TIER_LABEL, tier.name)
}

fn subnet(tier: Tier, zone: &str) -> Selector<'_> {
    Selector::labelled(ZONE_LABEL, zone).and(SUBNET_TIER_LABEL, tier.name)
}
