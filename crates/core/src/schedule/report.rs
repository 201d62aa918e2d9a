//! The report: why each replica stays, goes or lands where it does, and what every cluster and pool says to
//! one replica more.
//!
//! Worked out on demand from the same problem the plan was made from, never while scheduling. What a cluster
//! or pool is asked is whether it would take *another* replica once the plan is carried out, so the numbers of
//! free nodes are those that remain.

mod display;
mod pools;

use modelplane_api::names;
use serde::Serialize;

use self::pools::PoolExplainer;
use super::fleet::{ClusterFacts, Note, taint_text};
use super::plan::{self, Plan, RemovalReason};
use super::problem::{NewReplicas, Problem, REPELLING};
use super::solver::{ClusterIndex, Ledger, Seat};

/// Why the plan is what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The deployment, as `namespace/name`.
    pub deployment: String,
    /// Replicas asked for.
    pub wanted: usize,
    /// Replicas that are to exist.
    pub placed: usize,
    /// Whether new replicas may be placed at all.
    pub new_replicas: NewReplicas,
    /// Every replica: those of the plan, and those that go.
    pub replicas: Vec<ReplicaReport>,
    /// Every cluster, in order of names.
    pub clusters: Vec<ClusterReport>,
    /// What of the input could not be used.
    pub notes: Vec<Note>,
}

/// What becomes of one replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaReport {
    /// Object name.
    pub name: String,
    /// Its cluster.
    pub cluster: String,
    /// Its index there.
    pub index: u32,
    /// Pools by engine, for a replica that is to exist.
    pub pools: Vec<EnginePool>,
    /// What becomes of it.
    pub outcome: ReplicaOutcome,
}

/// The pool of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnginePool {
    /// The engine.
    pub engine: String,
    /// Its pool.
    pub pool: String,
}

/// What becomes of a replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all_fields = "camelCase")]
pub enum ReplicaOutcome {
    /// It is new.
    Placed,
    /// It exists and stays.
    Retained,
    /// It is left as it is, because it or its cluster cannot be read.
    Kept {
        /// What cannot be read.
        why: String,
    },
    /// It goes.
    Removed {
        /// Why.
        why: RemovalReason,
        /// Whether another replica takes its place under the same name.
        in_place: bool,
    },
}

/// What one cluster says to another replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    /// Name.
    pub name: String,
    /// Indices of the new replicas placed here.
    pub new: Vec<u32>,
    /// Indices of the replicas that stay here.
    pub retained: Vec<u32>,
    /// Why it takes no other replica; empty if it would.
    pub rejections: Vec<ClusterRejection>,
    /// What its pools say, in published order.
    pub pools: Vec<PoolReport>,
}

/// The answer of a cluster in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Verdict {
    /// New replicas are placed there.
    Chosen,
    /// Replicas stay there, no new one is placed.
    Retained,
    /// It would take a replica, but another cluster is preferred or no more are wanted.
    Available,
    /// It cannot take a replica.
    Rejected,
}

/// Why a cluster takes no other replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum ClusterRejection {
    /// The deployment's `clusterSelector` asks for another label.
    Label {
        /// Key of the label.
        key: String,
        /// Value asked for.
        wanted: String,
        /// Value the cluster has, if any.
        found: Option<String>,
    },
    /// The model cache is not staged there: its `clusterSelector` asks for another label.
    CacheFootprint {
        /// Key of the label.
        key: String,
        /// Value asked for.
        wanted: String,
        /// Value the cluster has, if any.
        found: Option<String>,
    },
    /// It cannot be read.
    Unreadable {
        /// What is wrong.
        why: String,
    },
    /// Its condition `Ready` is not `True`.
    NotReady,
    /// Its gateway has no address.
    NoGateway,
    /// It has a taint that the deployment does not tolerate.
    Taint {
        /// The taint, as `key=value:Effect`.
        taint: String,
    },
    /// No pool takes one of the engines; the pools say why.
    NoPool {
        /// The engine.
        engine: String,
    },
}

/// What one pool says to the engines of another replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolReport {
    /// Name.
    pub name: String,
    /// Nodes it publishes.
    pub nodes: i64,
    /// Nodes free once the plan is carried out; negative if more are held than published.
    pub free: i64,
    /// What of it, or of its devices, cannot be used.
    pub defect: Option<String>,
    /// What it says to each engine.
    pub engines: Vec<EngineReport>,
}

/// What a pool says to an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineReport {
    /// The engine.
    pub engine: String,
    /// Why the pool does not take it; empty if it does.
    pub rejections: Vec<PoolRejection>,
}

/// Why a pool does not take an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum PoolRejection {
    /// The nodes have no devices at all.
    NoDevices {
        /// Role of the member.
        member: &'static str,
        /// Name of the request.
        request: String,
    },
    /// No device satisfies a request.
    NoMatch {
        /// Role of the member.
        member: &'static str,
        /// Name of the request.
        request: String,
        /// Why each device does not.
        devices: Vec<DeviceReport>,
    },
    /// A member finds its devices here but could claim none of them, while another pool lets it claim.
    Stranded {
        /// Role of the member.
        member: &'static str,
    },
    /// No member of the engine claims a device on any pool of the cluster.
    NothingToClaim,
    /// Too few nodes are free.
    TooFewNodes {
        /// Nodes needed.
        needed: i64,
        /// Nodes free, after the replica's other engines.
        free: i64,
        /// Nodes published.
        total: i64,
    },
}

/// Why a device does not satisfy a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceReport {
    /// Name of the device.
    pub device: String,
    /// Why not.
    pub why: DeviceRejection,
}

/// Why a device does not satisfy a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum DeviceRejection {
    /// A selector is not true for it.
    Selector {
        /// The selector.
        selector: String,
        /// What the selector reads of the device, and what is there.
        inputs: Vec<Input>,
        /// Why there is no result, if there is none.
        error: Option<String>,
    },
    /// There are too few of it on one node, after the member's earlier requests.
    TooFew {
        /// Number asked for.
        needed: i64,
        /// Number left.
        left: i64,
        /// Number on a node.
        total: i64,
    },
    /// It should be claimed but names no DeviceClass.
    NoDeviceClass,
    /// It says something that no selector can read.
    Unreadable {
        /// What is wrong.
        why: String,
    },
}

/// A field that a selector reads, and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// The field as a path.
    pub path: String,
    /// Its value, or `absent`.
    pub value: String,
}

/// Explains a plan of the problem.
pub fn explain(problem: &Problem<'_>, plan: &Plan<'_>) -> Report {
    let ledger = final_ledger(problem, plan);
    let explainer = PoolExplainer::new(problem);
    let clusters: Vec<ClusterReport> = problem
        .facts
        .indices()
        .map(|cluster| explain_cluster(problem, plan, cluster, &ledger, &explainer))
        .collect();
    let metadata = &problem.deployment.metadata;
    Report {
        deployment: format!("{}/{}", metadata.namespace(), metadata.name),
        wanted: problem.wanted(),
        placed: plan.placements.len() + plan.kept.len(),
        new_replicas: problem.placement,
        replicas: replicas(problem, plan),
        clusters,
        notes: problem.notes().cloned().collect(),
    }
}

impl Report {
    /// What the report says of a cluster.
    pub fn cluster(&self, name: &str) -> Option<&ClusterReport> {
        self.clusters.iter().find(|cluster| cluster.name == name)
    }

    /// Whether every replica asked for has a place.
    pub fn is_complete(&self) -> bool {
        self.placed >= self.wanted
    }
}

impl ClusterReport {
    /// The answer in one word.
    pub fn verdict(&self) -> Verdict {
        if !self.new.is_empty() {
            Verdict::Chosen
        } else if !self.retained.is_empty() {
            Verdict::Retained
        } else if self.rejections.is_empty() {
            Verdict::Available
        } else {
            Verdict::Rejected
        }
    }
}

/// Free nodes once the plan is carried out.
fn final_ledger(problem: &Problem<'_>, plan: &Plan<'_>) -> Ledger {
    let staying = plan.placements.iter().filter(|placement| placement.retained.is_some());
    let seats = staying.map(|placement| (placement.cluster, placement.index));
    let kept = plan.kept.iter().map(|kept| (kept.cluster, kept.index));
    let seats: Vec<Seat> = seats
        .chain(kept)
        .filter_map(|(name, index)| Some(Seat { cluster: problem.facts.cluster_named(name)?, index }))
        .collect();
    let mut ledger = plan::ledger(problem, &seats);
    let solver = problem.solver();
    for placement in plan.placements.iter().filter(|placement| placement.retained.is_none()) {
        let Some(cluster) = problem.facts.cluster_named(placement.cluster) else { continue };
        for engine in &placement.engines {
            let name = engine.members.first().map(|member| member.pool).unwrap_or_default();
            if let Some(pool) = problem.facts.pool_named(cluster, name)
                && let Some(cost) = solver.cost(cluster, engine.position, pool)
            {
                ledger.charge(pool, cost);
            }
        }
    }
    ledger
}

fn explain_cluster(
    problem: &Problem<'_>,
    plan: &Plan<'_>,
    cluster: ClusterIndex,
    ledger: &Ledger,
    explainer: &PoolExplainer<'_, '_>,
) -> ClusterReport {
    let facts = problem.facts.cluster(cluster);
    let here = |new: bool| {
        let placements = plan.placements.iter().filter(move |placement| placement.retained.is_none() == new);
        placements.filter(|placement| placement.cluster == facts.name).map(|placement| placement.index)
    };
    let kept = plan.kept.iter().filter(|kept| kept.cluster == facts.name).map(|kept| kept.index);
    let mut rejections = closed(problem, facts);
    let (pools, unplaced) = explainer.explain(cluster, ledger);
    if let Some(engine) = unplaced {
        rejections.push(ClusterRejection::NoPool { engine: problem.engine(engine).name.clone() });
    }
    ClusterReport {
        name: facts.name.to_owned(),
        new: here(true).collect(),
        retained: here(false).chain(kept).collect(),
        rejections,
        pools,
    }
}

/// What keeps a cluster closed to new replicas, room aside.
fn closed(problem: &Problem<'_>, cluster: &ClusterFacts<'_>) -> Vec<ClusterRejection> {
    let mut rejections = wrong_labels(problem, cluster);
    if let Some(why) = &cluster.unread {
        rejections.push(ClusterRejection::Unreadable { why: why.clone() });
        return rejections;
    }
    if !cluster.ready {
        rejections.push(ClusterRejection::NotReady);
    }
    if cluster.gateway.is_empty() {
        rejections.push(ClusterRejection::NoGateway);
    }
    let taints = problem.untolerated(cluster, &REPELLING).map(taint_text);
    rejections.extend(taints.map(|taint| ClusterRejection::Taint { taint }));
    rejections
}

fn wrong_labels(problem: &Problem<'_>, cluster: &ClusterFacts<'_>) -> Vec<ClusterRejection> {
    let Some(labels) = problem.labels else { return Vec::new() };
    let wrong = labels.merged().into_iter().filter_map(|(key, wanted)| {
        let found = cluster.label(&key).map(str::to_owned);
        if found.as_ref() == Some(&wanted) {
            return None;
        }
        Some(if labels.cache.contains_key(&key) {
            ClusterRejection::CacheFootprint { key, wanted, found }
        } else {
            ClusterRejection::Label { key, wanted, found }
        })
    });
    wrong.collect()
}

fn replicas(problem: &Problem<'_>, plan: &Plan<'_>) -> Vec<ReplicaReport> {
    let deployment = &problem.deployment.metadata.name;
    let placed = plan.placements.iter().map(|placement| ReplicaReport {
        name: placement.retained.map_or_else(
            || names::replica_name(deployment, placement.cluster, placement.index),
            str::to_owned,
        ),
        cluster: placement.cluster.to_owned(),
        index: placement.index,
        pools: placement.engines.iter().map(engine_pool).collect(),
        outcome: match placement.retained {
            None => ReplicaOutcome::Placed,
            Some(_) => ReplicaOutcome::Retained,
        },
    });
    let kept = plan.kept.iter().map(|kept| ReplicaReport {
        name: kept.replica.to_owned(),
        cluster: kept.cluster.to_owned(),
        index: kept.index,
        pools: Vec::new(),
        outcome: ReplicaOutcome::Kept { why: kept.reason.clone() },
    });
    let removed = plan.removals.iter().map(|removal| ReplicaReport {
        name: removal.replica.to_owned(),
        cluster: removal.cluster.to_owned(),
        index: removal.index,
        pools: Vec::new(),
        outcome: ReplicaOutcome::Removed { why: removal.reason.clone(), in_place: removal.in_place },
    });
    placed.chain(kept).chain(removed).collect()
}

fn engine_pool(engine: &plan::EnginePlacement<'_>) -> EnginePool {
    let mut pools: Vec<&str> = engine.members.iter().map(|member| member.pool).collect();
    pools.dedup();
    EnginePool { engine: engine.engine.to_owned(), pool: pools.join(", ") }
}
