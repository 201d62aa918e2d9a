//! Explains a ModelDeployment: where its replicas are, and why there is no place for more.

use modelplane_core::schedule::{ClusterReport, PoolReport, ReplicaOutcome, Report, Verdict};
use modelplane_core::simulate::{StoredObject, World};

use super::answer::Answer;
use super::{Explanation, Section, general};
use crate::scheduling::{self, Unschedulable};
use crate::view::{Replica, backends, count, full_name, of_kind, one_line, or_dash, some_of, text};

/// Most groups of clusters that are shown.
const MAX_GROUPS: usize = 12;
/// Most names of clusters shown for one group.
const MAX_NAMES: usize = 6;

pub(super) fn explain(world: &World, deployment: &StoredObject) -> Explanation {
    match scheduling::report(world, world, deployment) {
        Ok(report) => explain_report(world, deployment, report),
        Err(error) => unschedulable(deployment, &error),
    }
}

fn unschedulable(deployment: &StoredObject, error: &Unschedulable) -> Explanation {
    let wanted = deployment.body["spec"]["replicas"].as_i64().unwrap_or(1);
    let answer = format!("none of {wanted} replicas can be placed: {error}");
    let mut explanation = Explanation::of(deployment, answer);
    explanation.help.extend(error.hint.clone());
    explanation
}

fn explain_report(world: &World, deployment: &StoredObject, report: Report) -> Explanation {
    let replicas: Vec<Replica<'_>> = Replica::all(world)
        .filter(|replica| replica.deployment().as_ref() == Some(&deployment.key))
        .collect();
    let Answer { sentence, help } = Answer::new(world, deployment, &report);
    let mut explanation = Explanation::of(deployment, sentence)
        .with(replica_section(world, &report, &replicas))
        .with(Section::new("CLUSTERS", clusters(&report)))
        .with(services(world, deployment, &replicas))
        .with(Section::new("COULD NOT BE USED", report.notes.iter().map(ToString::to_string).collect()));
    explanation.help = help;
    explanation.report = Some(report);
    explanation
}

fn replica_section(world: &World, report: &Report, replicas: &[Replica<'_>]) -> Section {
    let rows = replicas.iter().map(|replica| {
        let outcome = report.replicas.iter().find(|known| known.name == replica.object.key.name);
        let state = match outcome.map(|known| &known.outcome) {
            Some(outcome @ (ReplicaOutcome::Kept { .. } | ReplicaOutcome::Removed { .. })) => {
                outcome.to_string()
            }
            _ if replica.object.is_ready() => "ready".to_owned(),
            _ => general::not_ready(world, replica.object),
        };
        let name = replica.object.key.name.clone();
        vec![name, or_dash(replica.cluster()), or_dash(&replica.pools().join(", ")), state]
    });
    Section::table("REPLICAS", &["REPLICA", "CLUSTER", "POOL", "STATE"], rows.collect())
}

/// What every cluster says, most promising first; clusters that say the same are shown once.
fn clusters(report: &Report) -> Vec<String> {
    let mut ordered: Vec<&ClusterReport> = report.clusters.iter().collect();
    ordered.sort_by_key(|cluster| promise(cluster));
    let mut groups: Vec<(Vec<&str>, Said)> = Vec::new();
    for cluster in ordered {
        let said = Said::new(cluster);
        match groups.iter_mut().find(|(_, known)| *known == said) {
            Some((names, _)) => names.push(&cluster.name),
            None => groups.push((vec![&cluster.name], said)),
        }
    }
    let mut lines = Vec::new();
    for (names, said) in groups.iter().take(MAX_GROUPS) {
        lines.push(format!("{}: {}", some_of(names, MAX_NAMES), said.cluster));
        lines.extend(said.pools.iter().map(|line| format!("  {line}")));
    }
    if let Some(more) = groups.len().checked_sub(MAX_GROUPS).filter(|more| *more > 0) {
        lines.push(format!("and {more} more such groups of clusters; -o yaml shows all"));
    }
    lines
}

/// What a cluster says, without its name.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    cluster: String,
    pools: Vec<String>,
}

impl Said {
    fn new(cluster: &ClusterReport) -> Self {
        let here = cluster.new.len() + cluster.retained.len();
        let rejections: Vec<String> = cluster.rejections.iter().map(ToString::to_string).collect();
        let why = rejections.join("; ");
        let text = match (cluster.verdict(), here) {
            (Verdict::Rejected, _) => format!("rejected, {why}"),
            (Verdict::Available, _) => {
                "has room, but no more replicas are wanted or another cluster comes first".to_owned()
            }
            (_, here) if why.is_empty() => {
                format!("chosen for {}, has room for more", count(here, "replica"))
            }
            (_, here) => format!("chosen for {}, takes no other: {why}", count(here, "replica")),
        };
        // Where the cluster itself is out of the question, its pools do not matter.
        let closed = cluster.verdict() == Verdict::Rejected && !asks_pools(cluster);
        let pools = if closed { Vec::new() } else { cluster.pools.iter().flat_map(pool_lines).collect() };
        Self { cluster: text, pools }
    }
}

/// Whether what is in the way is in the pools alone.
fn asks_pools(cluster: &ClusterReport) -> bool {
    use modelplane_core::schedule::ClusterRejection::NoPool;
    cluster.rejections.iter().all(|rejection| matches!(rejection, NoPool { .. }))
}

/// What a pool says: one line if it can be said in one.
fn pool_lines(pool: &PoolReport) -> Vec<String> {
    let defect = pool.defect.as_ref().map(|defect| format!(" [{defect}]")).unwrap_or_default();
    let head = format!("pool {}{defect}", pool.name);
    // How many nodes are free does not matter on a pool that does not suit.
    let fits = format!("fits, {} of {} nodes free", pool.free, pool.nodes);
    let said = pool.engines.iter().map(|engine| {
        let rejections: Vec<String> =
            engine.rejections.iter().map(|rejection| one_line(&rejection.to_string())).collect();
        (engine.engine.as_str(), if rejections.is_empty() { vec![fits.clone()] } else { rejections })
    });
    let said: Vec<(&str, Vec<String>)> = said.collect();
    if let [(_, lines)] = said.as_slice()
        && let [line] = lines.as_slice()
    {
        return vec![format!("{head}: {line}")];
    }
    let mut lines = vec![head];
    for (engine, answers) in said {
        lines.extend(answers.iter().map(|line| format!("  engine {engine}: {line}")));
    }
    lines
}

/// The smaller, the closer the cluster is to taking a replica.
fn promise(cluster: &ClusterReport) -> usize {
    match cluster.verdict() {
        Verdict::Chosen => 0,
        Verdict::Retained => 1,
        Verdict::Available => 2,
        Verdict::Rejected if asks_pools(cluster) => 3,
        Verdict::Rejected => 3 + cluster.rejections.len(),
    }
}

fn services(world: &World, deployment: &StoredObject, replicas: &[Replica<'_>]) -> Section {
    let services =
        of_kind(world, "ModelService").filter(|service| service.key.namespace == deployment.key.namespace);
    let rows = services.filter_map(|service| {
        let mine: u64 = backends(world, &service.key)
            .iter()
            .filter(|backend| replicas.iter().any(|replica| replica.object.key.name == backend.endpoint))
            .map(|backend| backend.per_mille)
            .sum();
        let address = or_dash(text(&service.body, &["status", "address"]));
        (mine > 0).then(|| vec![full_name(&service.key), address, crate::view::share(mine)])
    });
    Section::table("SERVED BY", &["SERVICE", "ADDRESS", "REQUESTS TO THIS"], rows.collect())
}
