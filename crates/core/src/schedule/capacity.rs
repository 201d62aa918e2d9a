//! The capacity of the fleet: what every pool has, and how much of it replicas hold.

use serde::Serialize;

use super::charges::Charges;
use super::fleet::{FleetFacts, Note};
use super::wire;
use crate::contract::Resource;

/// Capacity of every cluster, in order of names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    /// The clusters.
    pub clusters: Vec<ClusterCapacity>,
    /// What of the input could not be used.
    pub notes: Vec<Note>,
}

/// Capacity of one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCapacity {
    /// Name.
    pub name: String,
    /// Whether it is ready.
    pub ready: bool,
    /// Address of its gateway, if it has one.
    pub gateway: Option<String>,
    /// Its taints, as `key=value:Effect`.
    pub taints: Vec<String>,
    /// Its pools, in published order.
    pub pools: Vec<PoolCapacity>,
}

/// Capacity of one pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolCapacity {
    /// Name.
    pub name: String,
    /// Nodes it publishes; for an autoscaled pool the most it can have.
    pub nodes: i64,
    /// Nodes that replicas hold.
    pub used: i64,
    /// Nodes left; negative if more are held than published.
    pub free: i64,
    /// Devices of one node.
    pub devices: Vec<DeviceCapacity>,
}

/// A kind of device on the nodes of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCapacity {
    /// Name.
    pub name: String,
    /// How many one node has.
    pub count: i64,
}

/// Adds up the capacity of clusters and what replicas, of whatever deployment, hold of it.
pub fn capacity(clusters: &[Resource<'_>], replicas: &[Resource<'_>]) -> Capacity {
    let fleet = FleetFacts::read(clusters.iter());
    let specs = replicas.iter().map(|replica| {
        let spec = replica.document.decode::<wire::Replica<'_>>().ok().and_then(|replica| replica.spec);
        (replica.document, spec)
    });
    let charges = Charges::of_replicas(&fleet, specs);
    let mut used = vec![0i64; fleet.pools.len()];
    for (pool, nodes) in &charges.entries {
        let used = &mut used[pool.0 as usize];
        *used = used.saturating_add(*nodes);
    }
    let clusters = fleet.indices().map(|index| {
        let facts = fleet.cluster(index);
        ClusterCapacity {
            name: facts.name.to_owned(),
            ready: facts.ready,
            gateway: Some(facts.gateway.to_owned()).filter(|address| !address.is_empty()),
            taints: facts.taints.iter().map(super::fleet::taint_text).collect(),
            pools: fleet
                .pools_of(index)
                .map(|pool| pool_capacity(&fleet, pool, used[pool.0 as usize]))
                .collect(),
        }
    });
    Capacity { clusters: clusters.collect(), notes: [fleet.notes.as_slice(), &charges.notes].concat() }
}

fn pool_capacity(fleet: &FleetFacts<'_>, pool: super::solver::PoolIndex, used: i64) -> PoolCapacity {
    let facts = fleet.pool(pool);
    let profile = fleet.devices.profile(facts.profile);
    let devices = profile.devices.iter().map(|device| fleet.devices.device(*device));
    PoolCapacity {
        name: facts.name.to_owned(),
        nodes: facts.nodes,
        used,
        free: facts.nodes.saturating_sub(used),
        devices: devices
            .map(|device| DeviceCapacity { name: device.name.to_owned(), count: device.count })
            .collect(),
    }
}
