//! A linter for plans: whether a plan keeps the promises of the scheduler, whoever made it.
//!
//! It shares no logic with the solver. It adds up nodes, evaluates selectors and compares identities by itself,
//! from the same inputs. The composition runs it on every plan, so that a defect of the scheduler becomes a
//! clear error and never a bad placement; tests run it on thousands of generated fleets.

use std::collections::{BTreeMap, BTreeSet};

use modelplane_api::common::TaintEffect;
use modelplane_api::model_deployment::Member;

use crate::schedule::{EnginePlacement, MemberPlacement, Placement, Plan, PoolIndex, Problem};

mod claims;

/// A promise that a plan breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// More replicas than wanted.
    #[error("{placed} replicas where {wanted} are wanted")]
    TooMany {
        /// Replicas in the plan.
        placed: usize,
        /// Replicas wanted.
        wanted: usize,
    },
    /// Two replicas with the same cluster and index.
    #[error("two replicas have index {index} on cluster {cluster}")]
    DuplicateIdentity {
        /// The cluster.
        cluster: String,
        /// The index.
        index: u32,
    },
    /// A replica on a cluster that is none.
    #[error("cluster {cluster} is not a candidate")]
    UnknownCluster {
        /// The cluster.
        cluster: String,
    },
    /// A new replica on a cluster that takes none.
    #[error("cluster {cluster} takes no new replicas: {why}")]
    ClosedCluster {
        /// The cluster.
        cluster: String,
        /// Why not.
        why: &'static str,
    },
    /// A member on a pool that the cluster does not publish.
    #[error("cluster {cluster} has no pool {pool}")]
    UnknownPool {
        /// The cluster.
        cluster: String,
        /// The pool.
        pool: String,
    },
    /// A new engine on more than one pool.
    #[error("engine {engine} is split over pools of cluster {cluster}")]
    SplitEngine {
        /// The cluster.
        cluster: String,
        /// The engine.
        engine: String,
    },
    /// Engines or members that are not the deployment's.
    #[error("a replica on cluster {cluster} does not have the engines and members of the deployment")]
    WrongShape {
        /// The cluster.
        cluster: String,
    },
    /// A request that no device of the pool satisfies, or a claim of something else.
    #[error("engine {engine} on pool {pool} of cluster {cluster}: {why}")]
    UnresolvableClaim {
        /// The cluster.
        cluster: String,
        /// The pool.
        pool: String,
        /// The engine.
        engine: String,
        /// What does not resolve.
        why: String,
    },
    /// New replicas take more nodes of a pool than are free.
    #[error("pool {pool} of cluster {cluster} has {free} nodes free, new replicas take {taken}")]
    Overcommitted {
        /// The cluster.
        cluster: String,
        /// The pool.
        pool: String,
        /// Nodes free without the new replicas.
        free: i64,
        /// Nodes new replicas take.
        taken: i64,
    },
    /// A retained replica that is not where it was.
    #[error("replica {replica} is retained, but not where it was")]
    Moved {
        /// The replica.
        replica: String,
    },
    /// A replica that is retained although its cluster evicts it.
    #[error("replica {replica} is retained on a cluster that evicts it")]
    NotEvicted {
        /// The replica.
        replica: String,
    },
    /// An existing replica of which the plan says nothing, or two things.
    #[error("replica {replica} is mentioned {times} times")]
    Unaccounted {
        /// The replica.
        replica: String,
        /// How often the plan mentions it.
        times: usize,
    },
}

/// Every promise the plan breaks; empty for a good plan.
pub fn validate(problem: &Problem<'_>, plan: &Plan<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    count(problem, plan, &mut violations);
    identities(plan, &mut violations);
    accounts(problem, plan, &mut violations);
    for placement in &plan.placements {
        match placement.retained {
            None => new(problem, placement, &mut violations),
            Some(replica) => retained(problem, placement, replica, &mut violations),
        }
        shape(problem, placement, &mut violations);
    }
    if violations.is_empty() {
        capacity(problem, plan, &mut violations);
    }
    violations
}

fn count(problem: &Problem<'_>, plan: &Plan<'_>, violations: &mut Vec<Violation>) {
    let wanted = usize::try_from(problem.deployment.spec.replicas).unwrap_or(0);
    let placed = plan.placements.len() + plan.kept.len();
    if placed > wanted.max(plan.kept.len()) {
        violations.push(Violation::TooMany { placed, wanted });
    }
}

fn identities(plan: &Plan<'_>, violations: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    let placed = plan.placements.iter().map(|placement| (placement.cluster, placement.index));
    let kept =
        plan.kept.iter().filter(|kept| !kept.cluster.is_empty()).map(|kept| (kept.cluster, kept.index));
    for (cluster, index) in placed.chain(kept) {
        if !seen.insert((cluster, index)) {
            violations.push(Violation::DuplicateIdentity { cluster: cluster.to_owned(), index });
        }
    }
}

fn accounts(problem: &Problem<'_>, plan: &Plan<'_>, violations: &mut Vec<Violation>) {
    let retained = plan.placements.iter().filter_map(|placement| placement.retained);
    let kept = plan.kept.iter().map(|kept| kept.replica);
    let removed = plan.removals.iter().map(|removal| removal.replica);
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for mine in &problem.mine {
        times.insert(mine.name, 0);
    }
    for replica in retained.chain(kept).chain(removed) {
        *times.entry(replica).or_default() += 1;
    }
    for (replica, times) in times.into_iter().filter(|(_, times)| *times != 1) {
        violations.push(Violation::Unaccounted { replica: replica.to_owned(), times });
    }
}

fn new(problem: &Problem<'_>, placement: &Placement<'_>, violations: &mut Vec<Violation>) {
    let name = || placement.cluster.to_owned();
    let Some(number) = problem.facts.cluster_named(placement.cluster) else {
        violations.push(Violation::UnknownCluster { cluster: name() });
        return;
    };
    let cluster = problem.facts.cluster(number);
    let tolerations = &problem.deployment.spec.template.spec.tolerations;
    let tolerated = |taint| tolerations.iter().any(|toleration| toleration.tolerates(taint));
    let closed = [
        (!cluster.ready, "it is not ready"),
        (cluster.gateway.is_empty(), "it has no gateway"),
        (!cluster.taints.iter().all(tolerated), "it has a taint that is not tolerated"),
        (cluster.unread.is_some(), "it cannot be read"),
    ];
    let closed = closed.into_iter().filter(|(is_closed, _)| *is_closed);
    violations.extend(closed.map(|(_, why)| Violation::ClosedCluster { cluster: name(), why }));
    for engine in &placement.engines {
        if engine.members.windows(2).any(|pair| pair[0].pool != pair[1].pool) {
            violations.push(Violation::SplitEngine { cluster: name(), engine: engine.engine.to_owned() });
        }
    }
}

fn retained(
    problem: &Problem<'_>,
    placement: &Placement<'_>,
    replica: &str,
    violations: &mut Vec<Violation>,
) {
    let was = problem.mine.iter().find(|mine| {
        mine.name == replica && mine.cluster_name == placement.cluster && mine.index == placement.index
    });
    let engines = was.and_then(|mine| mine.spec.as_ref().ok()?.engines.as_deref()).unwrap_or_default();
    let stays = |engine: &EnginePlacement<'_>| {
        let was = engines.iter().find(|was| was.name == Some(engine.engine));
        let pools = was.into_iter().flat_map(|was| was.members.iter().flatten());
        pools.map(|member| member.node_pool_name).eq(engine.members.iter().map(|member| Some(member.pool)))
    };
    if was.is_none() || !placement.engines.iter().all(stays) {
        violations.push(Violation::Moved { replica: replica.to_owned() });
    }
    let taints =
        problem.facts.cluster_named(placement.cluster).map(|number| &problem.facts.cluster(number).taints);
    let tolerations = &problem.deployment.spec.template.spec.tolerations;
    let mut evicting = taints.into_iter().flatten().filter(|taint| taint.effect == TaintEffect::NoExecute);
    if evicting.any(|taint| !tolerations.iter().any(|toleration| toleration.tolerates(taint))) {
        violations.push(Violation::NotEvicted { replica: replica.to_owned() });
    }
}

/// Engines and members are the deployment's, on pools that exist and satisfy what they ask for.
fn shape(problem: &Problem<'_>, placement: &Placement<'_>, violations: &mut Vec<Violation>) {
    let cluster = || placement.cluster.to_owned();
    let wanted = &problem.deployment.spec.template.spec.engines;
    let names: BTreeSet<&str> = placement.engines.iter().map(|engine| engine.engine).collect();
    let same = |engine: &EnginePlacement<'_>| {
        wanted.get(engine.position).is_some_and(|wanted| {
            wanted.name == engine.engine
                && wanted.members.iter().map(Member::role).eq(engine.members.iter().map(|member| member.role))
        })
    };
    if names.len() != wanted.len() || !placement.engines.iter().all(same) {
        violations.push(Violation::WrongShape { cluster: cluster() });
        return;
    }
    let Some(number) = problem.facts.cluster_named(placement.cluster) else { return };
    for engine in &placement.engines {
        for (position, member) in engine.members.iter().enumerate() {
            let pool = || member.pool.to_owned();
            let Some(found) = problem.facts.pool_named(number, member.pool) else {
                violations.push(Violation::UnknownPool { cluster: cluster(), pool: pool() });
                continue;
            };
            if let Err(why) = claims::resolve(problem, found, engine.position, position, member) {
                let engine = engine.engine.to_owned();
                violations.push(Violation::UnresolvableClaim {
                    cluster: cluster(),
                    pool: pool(),
                    engine,
                    why,
                });
            }
        }
        if engine.members.iter().all(|member| member.claims.is_empty()) {
            let (pool, engine) = (String::new(), engine.engine.to_owned());
            let why = "no member claims anything".to_owned();
            violations.push(Violation::UnresolvableClaim { cluster: cluster(), pool, engine, why });
        }
    }
}

/// No pool has more nodes taken by new replicas than were free.
fn capacity(problem: &Problem<'_>, plan: &Plan<'_>, violations: &mut Vec<Violation>) {
    let mut taken: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for placement in plan.placements.iter().filter(|placement| placement.retained.is_none()) {
        for engine in &placement.engines {
            for (position, member) in engine.members.iter().enumerate() {
                let nodes = nodes(problem, engine, position, member);
                *taken.entry((placement.cluster, member.pool)).or_default() += nodes;
            }
        }
    }
    if taken.is_empty() {
        return;
    }
    for ((cluster, pool), taken) in taken {
        let number = problem.facts.cluster_named(cluster);
        let Some(found) = number.and_then(|number| problem.facts.pool_named(number, pool)) else { continue };
        let free = problem.facts.pool(found).nodes.saturating_sub(held(problem, plan, found));
        if taken > free.max(0) {
            let (cluster, pool) = (cluster.to_owned(), pool.to_owned());
            violations.push(Violation::Overcommitted { cluster, pool, free, taken });
        }
    }
}

/// Nodes a member of a new replica takes.
fn nodes(
    problem: &Problem<'_>,
    engine: &EnginePlacement<'_>,
    position: usize,
    member: &MemberPlacement<'_>,
) -> i64 {
    if member.claims.is_empty() {
        return 0;
    }
    let engine = &problem.deployment.spec.template.spec.engines[engine.position];
    engine.members[position].pods().saturating_mul(engine.copies())
}

/// Nodes of a pool that other deployments and our staying replicas hold.
fn held(problem: &Problem<'_>, plan: &Plan<'_>, pool: PoolIndex) -> i64 {
    let others = problem.charges_of_others().iter().filter(|(charged, _)| *charged == pool);
    let mut held = others.fold(0i64, |sum, (_, nodes)| sum.saturating_add(*nodes));
    let staying = problem.mine.iter().filter(|mine| {
        plan.placements.iter().any(|placement| placement.retained == Some(mine.name))
            || plan.kept.iter().any(|kept| kept.replica == mine.name)
    });
    for spec in staying.filter_map(|mine| mine.spec.as_ref().ok()) {
        let Some(cluster) = spec.cluster_name.and_then(|name| problem.facts.cluster_named(name)) else {
            continue;
        };
        for (name, nodes) in spec.engines.iter().flatten().flat_map(|engine| engine.charges()) {
            if problem.facts.pool_named(cluster, name) == Some(pool) {
                held = held.saturating_add(nodes);
            }
        }
    }
    held
}
