//! What a simulated cluster has and how it behaves.

use std::collections::BTreeMap;
use std::time::Duration;

use modelplane_api::common::Device;

/// A simulated cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Its name.
    pub name: String,
    /// Its node pools.
    pub pools: Vec<Pool>,
    /// How long a pod takes from being scheduled to being ready.
    pub ready_after: Duration,
    /// How long an engine takes for each token.
    pub token_time: Duration,
    /// Whether serving pods listen on a port of their own. Without, pods become ready but answer nothing.
    pub serve: bool,
    /// What is wrong with it at present.
    pub faults: Faults,
}

/// Nodes of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Name; nodes carry it as the label `modelplane.ai/pool`.
    pub name: String,
    /// Number of nodes.
    pub nodes: u32,
    /// The devices of one node.
    pub devices: Vec<Device>,
}

/// What is wrong with a cluster at present.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Its API server does not answer.
    pub unreachable: bool,
    /// Its gateway refuses connections.
    pub gateway_down: bool,
    /// Added to the time to the first token of each answer.
    pub slowdown: Duration,
    /// Engines answer 503.
    pub overloaded: bool,
    /// How many nodes of a pool, by the pool's name, have stopped reporting.
    pub lost_nodes: BTreeMap<String, u32>,
}

impl Settings {
    /// A cluster with these pools whose pods are ready after a second.
    pub fn new(name: impl Into<String>, pools: Vec<Pool>) -> Self {
        Self {
            name: name.into(),
            pools,
            ready_after: Duration::from_secs(1),
            token_time: Duration::ZERO,
            serve: true,
            faults: Faults::default(),
        }
    }
}
