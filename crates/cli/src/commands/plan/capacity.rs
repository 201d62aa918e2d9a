//! Free nodes of every pool, before and after.

use std::collections::BTreeMap;

use modelplane_core::schedule;
use modelplane_core::simulate::World;
use serde::Serialize;

use super::{Worlds, change};
use crate::output;
use crate::view::resources;

/// A pool whose capacity or use changes.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    cluster: String,
    pool: String,
    /// None if the pool is new.
    before: Option<Nodes>,
    /// None if the pool goes.
    after: Option<Nodes>,
}

/// Nodes of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Nodes {
    total: i64,
    free: i64,
}

pub(super) fn changes(worlds: Worlds<'_>) -> Vec<Change> {
    let (before, after) = (pools(worlds.before), pools(worlds.after));
    let mut keys: Vec<&(String, String)> = before.keys().chain(after.keys()).collect();
    keys.sort();
    keys.dedup();
    let change = |key: &(String, String)| {
        let (old, new) = (before.get(key).copied(), after.get(key).copied());
        let (cluster, pool) = key.clone();
        (old != new).then_some(Change { cluster, pool, before: old, after: new })
    };
    keys.into_iter().filter_map(change).collect()
}

fn pools(world: &World) -> BTreeMap<(String, String), Nodes> {
    let capacity =
        schedule::capacity(&resources(world, "InferenceCluster"), &resources(world, "ModelReplica"));
    let clusters = capacity.clusters.into_iter();
    let pools = clusters.flat_map(|cluster| {
        let name = cluster.name;
        cluster
            .pools
            .into_iter()
            .map(move |pool| ((name.clone(), pool.name), Nodes { total: pool.nodes, free: pool.free }))
    });
    pools.collect()
}

pub(super) fn describe(changes: &[Change]) -> Option<String> {
    let rows = changes.iter().map(|pool| {
        let shown = |nodes: Option<Nodes>, number: fn(Nodes) -> i64| {
            nodes.map_or_else(|| "-".to_owned(), |nodes| number(nodes).to_string())
        };
        let column =
            |number: fn(Nodes) -> i64| change(&shown(pool.before, number), &shown(pool.after, number));
        vec![pool.cluster.clone(), pool.pool.clone(), column(|nodes| nodes.total), column(|nodes| nodes.free)]
    });
    let table = output::table(&["CLUSTER", "POOL", "NODES", "FREE"], rows);
    (!changes.is_empty()).then(|| format!("CAPACITY\n{table}"))
}
