//! The plan: which replicas stay, which go and why, and where new ones are placed.

use modelplane_api::common::TaintEffect;
use modelplane_api::template::MemberRole;
use serde::Serialize;

use super::devices::Claimable;
use super::fleet::taint_text;
use super::problem::{Mine, NewReplicas, Problem};
use super::solver::{self, ClusterIndex, Ledger, PoolIndex, Seat};
use super::wire;

/// What to do about the replicas of one deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan<'p> {
    /// Replicas that are to exist in their current definition, ordered by cluster name and index.
    pub placements: Vec<Placement<'p>>,
    /// Replicas left exactly as they are, because they or their cluster cannot be read.
    pub kept: Vec<Kept<'p>>,
    /// Replicas that go, in order of their names.
    pub removals: Vec<Removal<'p>>,
}

/// One replica: where it runs and what it claims there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement<'p> {
    /// Name of the cluster.
    pub cluster: &'p str,
    /// Which of the deployment's replicas on that cluster.
    pub index: u32,
    /// Address of the cluster's gateway, if it has one.
    pub gateway: Option<&'p str>,
    /// Object name of the replica that stays; `None` for a new one.
    pub retained: Option<&'p str>,
    /// Pools and claims, engine by engine.
    pub engines: Vec<EnginePlacement<'p>>,
}

/// One engine of a placement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnginePlacement<'p> {
    /// Name of the engine.
    pub engine: &'p str,
    /// Its position in the deployment.
    pub position: usize,
    /// Members in the deployment's order.
    pub members: Vec<MemberPlacement<'p>>,
}

/// One member of an engine of a placement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberPlacement<'p> {
    /// What the member does.
    #[serde(serialize_with = "role_name")]
    pub role: MemberRole,
    /// Pool its pods run on.
    pub pool: &'p str,
    /// Devices each pod claims.
    pub claims: Vec<Claim<'p>>,
}

/// A device request resolved to a DeviceClass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim<'p> {
    /// Name of the request.
    pub request: &'p str,
    /// DeviceClass to claim through.
    pub device_class: &'p str,
    /// How many devices each pod claims.
    pub count: i64,
    /// The request's selectors as written.
    pub selectors: Vec<&'p str>,
}

/// A replica left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept<'p> {
    /// Object name.
    pub replica: &'p str,
    /// Its cluster.
    pub cluster: &'p str,
    /// Its index there.
    pub index: u32,
    /// What cannot be read.
    pub reason: String,
}

/// A replica that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Removal<'p> {
    /// Object name.
    pub replica: &'p str,
    /// Its cluster.
    pub cluster: &'p str,
    /// Its index there.
    pub index: u32,
    /// Why it goes.
    pub reason: RemovalReason,
    /// Whether another replica, kept or new, has the same cluster and index: the object is then edited in
    /// place and not deleted.
    pub in_place: bool,
}

/// Why a replica goes (spec scheduling §5.1, rows R1 to R11, and §5.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason")]
pub enum RemovalReason {
    /// R1: the cluster is gone, or no longer matches the deployment's or its cache's cluster labels.
    NotACandidate,
    /// R2: another replica of the deployment has the same cluster and index.
    Duplicate,
    /// R3: the cluster has a `NoExecute` taint that is not tolerated.
    Evicted {
        /// The taint, as `key=value:Effect`.
        taint: String,
    },
    /// R4: the number of engines changed.
    EngineCount {
        /// Engines of the replica.
        replica: usize,
        /// Engines of the deployment.
        deployment: usize,
    },
    /// R5: the deployment has no such engine.
    UnknownEngine {
        /// The engine.
        engine: String,
    },
    /// R6: the number of members of an engine changed.
    MemberCount {
        /// The engine.
        engine: String,
    },
    /// R7: the role of a member changed.
    RoleChanged {
        /// The engine.
        engine: String,
    },
    /// R8: a member was never pinned to a pool.
    NoPool {
        /// The engine.
        engine: String,
    },
    /// R9: the cluster no longer publishes the pool.
    PoolGone {
        /// The pool.
        pool: String,
    },
    /// R10: the pool's devices do not satisfy the current device requests.
    NoMatch {
        /// The engine.
        engine: String,
        /// The pool.
        pool: String,
    },
    /// R11: no member of an engine claims a device on its pool.
    NothingToClaim {
        /// The engine.
        engine: String,
    },
    /// More replicas than wanted.
    Surplus,
}

/// What becomes of one of our replicas.
enum Verdict {
    /// It stays on these pools: per engine as observed, the deployment's engine and a pool per member.
    Stays(Seat, Vec<(usize, Vec<PoolIndex>)>),
    /// It is left alone.
    Kept(String),
    /// It goes.
    Goes(RemovalReason),
}

/// A replica that survived so far.
struct Survivor {
    mine: usize,
    seat: Seat,
    engines: Vec<(usize, Vec<PoolIndex>)>,
}

/// Solves the problem: retain, scale down, fill (spec scheduling §5).
pub fn solve<'p>(problem: &'p Problem<'_>) -> Plan<'p> {
    let mut plan = Plan { placements: Vec::new(), kept: Vec::new(), removals: Vec::new() };
    let (mut survivors, mut seats) = retain(problem, &mut plan);
    scale_down(problem, &mut survivors, &mut seats, &mut plan);
    let total = survivors.len() + plan.kept.len();
    plan.placements.extend(survivors.iter().map(|survivor| retained(problem, survivor)));
    if total < problem.demand.wanted && problem.placement == NewReplicas::Allowed {
        // A replica kept without a seat is one of those wanted, though the solver cannot see it.
        let unseated = plan.kept.iter().filter(|kept| !is_seated(problem, kept)).count();
        let mut demand = problem.demand.clone();
        demand.wanted -= unseated;
        let solver = solver::Solver { demand: &demand, ..problem.solver() };
        let placed = solver.fill(&seats, &mut ledger(problem, &seats));
        plan.placements.extend(placed.iter().map(|placed| new(problem, placed)));
    }
    plan.placements.sort_by_key(|placement| (placement.cluster, placement.index));
    mark_in_place(&mut plan);
    plan
}

/// The ledger with everything charged but what is to be replaced (spec scheduling §5.3).
pub(super) fn ledger(problem: &Problem<'_>, retained: &[Seat]) -> Ledger {
    let mut ledger = problem.fleet.ledger();
    for (pool, nodes) in problem.charges_of_others() {
        ledger.charge(*pool, *nodes);
    }
    for (pool, nodes) in problem.charges_of_seats(retained) {
        ledger.charge(pool, nodes);
    }
    ledger
}

/// Goes through our replicas in order of their names (spec scheduling §5.1). Returns those that stay, and
/// all seats that are taken, including those of replicas left alone.
fn retain<'p>(problem: &'p Problem<'_>, plan: &mut Plan<'p>) -> (Vec<Survivor>, Vec<Seat>) {
    let mut survivors = Vec::new();
    let mut seats: Vec<Seat> = Vec::new();
    for (number, mine) in problem.mine.iter().enumerate() {
        match examine(problem, mine, &seats) {
            Verdict::Stays(seat, engines) => {
                seats.push(seat);
                survivors.push(Survivor { mine: number, seat, engines });
            }
            Verdict::Kept(reason) => {
                seats.extend(mine.seat());
                plan.kept.push(Kept {
                    replica: mine.name,
                    cluster: mine.cluster_name,
                    index: mine.index,
                    reason,
                });
            }
            Verdict::Goes(reason) => plan.removals.push(removal(mine, reason)),
        }
    }
    (survivors, seats)
}

fn examine(problem: &Problem<'_>, mine: &Mine<'_>, seats: &[Seat]) -> Verdict {
    let Some(seat) = mine.seat() else {
        return match &mine.spec {
            Err(reason) if mine.cluster_name.is_empty() => Verdict::Kept(reason.clone()),
            _ if problem.facts.nameless => Verdict::Kept(
                "an InferenceCluster has no readable name; this replica may be on it".to_owned(),
            ),
            _ => Verdict::Goes(RemovalReason::NotACandidate),
        };
    };
    if seats.contains(&seat) {
        return Verdict::Goes(RemovalReason::Duplicate);
    }
    let cluster = problem.facts.cluster(seat.cluster);
    let evicting = problem.untolerated(cluster, &[TaintEffect::NoExecute]).next();
    if let Some(taint) = evicting {
        return Verdict::Goes(RemovalReason::Evicted { taint: taint_text(taint) });
    }
    let spec = match (&mine.spec, &cluster.unread) {
        (Err(reason), _) => return Verdict::Kept(reason.clone()),
        (Ok(_), Some(reason)) => {
            return Verdict::Kept(format!("InferenceCluster {}: {reason}", cluster.name));
        }
        (Ok(spec), None) => spec,
    };
    match pins(problem, seat.cluster, spec) {
        Ok(engines) => Verdict::Stays(seat, engines),
        Err(verdict) => verdict,
    }
}

/// The pools a replica is pinned to, if it still is what the deployment asks for and they still suit it.
fn pins(
    problem: &Problem<'_>,
    cluster: ClusterIndex,
    spec: &wire::ReplicaSpec<'_>,
) -> Result<Vec<(usize, Vec<PoolIndex>)>, Verdict> {
    let observed = spec.engines.as_deref().unwrap_or_default();
    let engines = &problem.deployment.spec.template.spec.engines;
    if observed.len() != engines.len() {
        let (replica, deployment) = (observed.len(), engines.len());
        return Err(Verdict::Goes(RemovalReason::EngineCount { replica, deployment }));
    }
    let mut pins: Vec<(usize, Vec<PoolIndex>)> = Vec::with_capacity(observed.len());
    for engine in observed {
        let name = engine.name.unwrap_or_default();
        let known = engines.iter().position(|candidate| candidate.name == name);
        let Some(number) = known.filter(|number| pins.iter().all(|(taken, _)| taken != number)) else {
            return Err(Verdict::Goes(RemovalReason::UnknownEngine { engine: name.to_owned() }));
        };
        pins.push((number, engine_pins(problem, cluster, number, engine)?));
    }
    Ok(pins)
}

fn engine_pins(
    problem: &Problem<'_>,
    cluster: ClusterIndex,
    engine: usize,
    observed: &wire::Engine<'_>,
) -> Result<Vec<PoolIndex>, Verdict> {
    let goes = |reason| Err(Verdict::Goes(reason));
    let wanted = problem.engine(engine);
    let name = || wanted.name.clone();
    let members = observed.members.as_deref().unwrap_or_default();
    if members.len() != wanted.members.len() {
        return goes(RemovalReason::MemberCount { engine: name() });
    }
    if members.iter().zip(&wanted.members).any(|(a, b)| a.role.unwrap_or_default() != b.role()) {
        return goes(RemovalReason::RoleChanged { engine: name() });
    }
    let mut pools = Vec::with_capacity(members.len());
    let (mut claims, mut defect) = (false, None);
    for (member, number) in members.iter().zip(problem.demand.engines[engine].clone()) {
        let Some(pool_name) = member.node_pool_name.filter(|name| !name.is_empty()) else {
            return goes(RemovalReason::NoPool { engine: name() });
        };
        let Some(pool) = problem.facts.pool_named(cluster, pool_name) else {
            return match problem.hidden_pool(cluster) {
                Some(reason) => Err(Verdict::Kept(reason)),
                None => goes(RemovalReason::PoolGone { pool: pool_name.to_owned() }),
            };
        };
        let flaw = problem.facts.devices.defect_of(problem.facts.pool(pool));
        match (problem.taken(number, pool), flaw) {
            (Some(taken), _) => {
                claims |= taken.iter().any(|taken| problem.device_class(taken.device).is_some())
            }
            (None, Some(flaw)) => return Err(Verdict::Kept(format!("pool {pool_name}: {flaw}"))),
            (None, None) => {
                return goes(RemovalReason::NoMatch { engine: name(), pool: pool_name.to_owned() });
            }
        }
        defect = defect.or_else(|| flaw.map(|flaw| format!("pool {pool_name}: {flaw}")));
        pools.push(pool);
    }
    match (claims, defect) {
        (true, _) => Ok(pools),
        (false, Some(reason)) => Err(Verdict::Kept(reason)),
        (false, None) => goes(RemovalReason::NothingToClaim { engine: name() }),
    }
}

/// Gives up surplus seats; replicas left alone are counted, but never chosen (spec scheduling §5.2).
fn scale_down<'p>(
    problem: &'p Problem<'_>,
    survivors: &mut Vec<Survivor>,
    seats: &mut Vec<Seat>,
    plan: &mut Plan<'p>,
) {
    let wanted = problem.demand.wanted.saturating_sub(plan.kept.len());
    let candidates: Vec<Seat> = survivors.iter().map(|survivor| survivor.seat).collect();
    for seat in solver::surplus(&candidates, wanted) {
        seats.retain(|taken| *taken != seat);
        if let Some(position) = survivors.iter().position(|survivor| survivor.seat == seat) {
            let mine = &problem.mine[survivors.remove(position).mine];
            plan.removals.push(removal(mine, RemovalReason::Surplus));
        }
    }
    plan.removals.sort_by_key(|removal| removal.replica);
}

fn removal<'p>(mine: &'p Mine<'_>, reason: RemovalReason) -> Removal<'p> {
    Removal { replica: mine.name, cluster: mine.cluster_name, index: mine.index, reason, in_place: false }
}

fn is_seated(problem: &Problem<'_>, kept: &Kept<'_>) -> bool {
    problem.mine.iter().any(|mine| mine.name == kept.replica && mine.cluster.is_some())
}

fn retained<'p>(problem: &'p Problem<'_>, survivor: &Survivor) -> Placement<'p> {
    let engines = survivor
        .engines
        .iter()
        .map(|(engine, pools)| engine_placement(problem, *engine, pools.iter().copied()))
        .collect();
    placement(problem, survivor.seat, Some(problem.mine[survivor.mine].name), engines)
}

fn new<'p>(problem: &'p Problem<'_>, placed: &solver::Placed) -> Placement<'p> {
    let engines = placed
        .pools
        .iter()
        .enumerate()
        .map(|(engine, pool)| engine_placement(problem, engine, std::iter::repeat(*pool)))
        .collect();
    placement(problem, placed.seat, None, engines)
}

fn placement<'p>(
    problem: &'p Problem<'_>,
    seat: Seat,
    retained: Option<&'p str>,
    engines: Vec<EnginePlacement<'p>>,
) -> Placement<'p> {
    let cluster = problem.facts.cluster(seat.cluster);
    let gateway = Some(cluster.gateway).filter(|address| !address.is_empty());
    Placement { cluster: cluster.name, index: seat.index, gateway, retained, engines }
}

fn engine_placement<'p>(
    problem: &'p Problem<'_>,
    engine: usize,
    pools: impl Iterator<Item = PoolIndex>,
) -> EnginePlacement<'p> {
    let members = problem.demand.engines[engine]
        .clone()
        .zip(pools)
        .map(|(member, pool)| MemberPlacement {
            role: problem.member(member).1.role(),
            pool: problem.facts.pool(pool).name,
            claims: claims(problem, member, pool),
        })
        .collect();
    EnginePlacement { engine: &problem.engine(engine).name, position: engine, members }
}

fn claims<'p>(problem: &'p Problem<'_>, member: usize, pool: PoolIndex) -> Vec<Claim<'p>> {
    let taken = problem.taken(member, pool).unwrap_or_default();
    let claim = |taken: &super::matching::Taken| {
        let request = &problem.requests.members[member][taken.request];
        Some(Claim {
            request: request.name,
            device_class: problem.device_class(taken.device)?,
            count: request.count,
            selectors: request.texts.clone(),
        })
    };
    taken.iter().filter_map(claim).collect()
}

fn mark_in_place(plan: &mut Plan<'_>) {
    for removal in &mut plan.removals {
        let same = |cluster: &str, index: u32| cluster == removal.cluster && index == removal.index;
        removal.in_place = plan.placements.iter().any(|placement| same(placement.cluster, placement.index))
            || plan.kept.iter().any(|kept| same(kept.cluster, kept.index));
    }
}

impl Problem<'_> {
    /// The DeviceClass through which a device is claimed.
    fn device_class(&self, device: super::devices::DeviceIndex) -> Option<&str> {
        match self.facts.devices.device(device).claim {
            Claimable::Through(class) => Some(class),
            Claimable::Synthetic | Claimable::Nothing => None,
        }
    }

    /// Why a pool that the cluster does not list may be there all the same, if there is a reason.
    fn hidden_pool(&self, cluster: ClusterIndex) -> Option<String> {
        let facts = self.facts.cluster(cluster);
        if !facts.reports {
            return Some(format!("InferenceCluster {} reports no status at the moment", facts.name));
        }
        let mut pools = self.facts.pools_of(cluster).map(|pool| self.facts.pool(pool));
        let nameless = pools.find(|pool| pool.name.is_empty())?;
        let why = nameless.unread.clone().unwrap_or_else(|| "name is missing".to_owned());
        Some(format!("InferenceCluster {}: a pool of status.gpuPools cannot be told: {why}", facts.name))
    }
}

fn role_name<S: serde::Serializer>(role: &MemberRole, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(role.as_str())
}
