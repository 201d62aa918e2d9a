//! The answer about a deployment in one sentence, and what would help.

use std::collections::{BTreeMap, BTreeSet};

use modelplane_core::catalog;
use modelplane_core::schedule::{
    ClusterRejection, ClusterReport, DeviceRejection, NewReplicas, PoolRejection, Report,
};
use modelplane_core::simulate::{StoredObject, World};

use crate::nearest::{Pool, brief, nearest, nearest_device, pools};
use crate::resolve::closest;
use crate::scheduling;
use crate::view::{Replica, count, failing_condition, full_name, key, of_kind, some_of, text};

/// Most names in a sentence.
const MAX_NAMES: usize = 3;
/// Most classes of the catalog that are suggested.
const MAX_CLASSES: usize = 4;

/// What is said first, and what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// One sentence.
    pub(crate) sentence: String,
    /// What would help, most promising first.
    pub(crate) help: Vec<String>,
}

/// What keeps another replica out.
#[derive(Debug)]
enum Lack<'r> {
    /// There is no cluster at all.
    NoClusters,
    /// The model cache is missing or cannot be read.
    Cache,
    /// No cluster has the labels asked for.
    NoCandidates,
    /// Clusters with the labels take no replicas at present.
    Closed(Vec<&'r ClusterReport>),
    /// Pools would do, but have too few free nodes.
    Full(Vec<Pool<'r>>),
    /// No pool has the devices.
    NoHardware(Vec<Pool<'r>>),
}

impl Answer {
    pub(crate) fn new(world: &World, deployment: &StoredObject, report: &Report) -> Self {
        if report.is_complete() {
            return Self { sentence: complete(world, deployment, report), help: Vec::new() };
        }
        let lack = Lack::of(report);
        let spread = spread(world, deployment);
        let placed = match report.placed {
            0 => format!("0 of {} replicas placed", report.wanted),
            placed => format!("{placed} of {} replicas placed ({spread})", report.wanted),
        };
        let sentence = format!("{placed}: {}", lack.sentence(deployment, report));
        Self { sentence, help: lack.help(world, deployment, report) }
    }
}

fn complete(world: &World, deployment: &StoredObject, report: &Report) -> String {
    if report.wanted == 0 {
        return "no replicas are wanted".to_owned();
    }
    let replicas =
        Replica::all(world).filter(|replica| replica.deployment().as_ref() == Some(&deployment.key));
    let ready = replicas.filter(|replica| replica.object.is_ready()).count();
    let all = match report.wanted {
        1 => "its replica is placed".to_owned(),
        wanted => format!("all {wanted} replicas are placed"),
    };
    let spread = spread(world, deployment);
    match ready == report.placed {
        true => format!("{all} and ready: {spread}"),
        false => format!("{all}, {ready} of {} ready: {spread}", report.placed),
    }
}

/// `2 on a, 1 on b`.
fn spread(world: &World, deployment: &StoredObject) -> String {
    let mut by_cluster: BTreeMap<&str, usize> = BTreeMap::new();
    for replica in Replica::all(world) {
        if replica.deployment().as_ref() == Some(&deployment.key) {
            *by_cluster.entry(replica.cluster()).or_default() += 1;
        }
    }
    let parts: Vec<String> =
        by_cluster.iter().map(|(cluster, replicas)| format!("{replicas} on {cluster}")).collect();
    some_of(&parts, 6)
}

impl<'r> Lack<'r> {
    fn of(report: &'r Report) -> Self {
        if report.new_replicas == NewReplicas::HeldByCache {
            return Self::Cache;
        }
        if report.clusters.is_empty() {
            return Self::NoClusters;
        }
        let candidates: Vec<&ClusterReport> =
            report.clusters.iter().filter(|cluster| !cluster.rejections.iter().any(is_label)).collect();
        if candidates.is_empty() {
            return Self::NoCandidates;
        }
        let open: Vec<&ClusterReport> =
            candidates.iter().copied().filter(|cluster| cluster.rejections.iter().all(is_pool)).collect();
        if open.is_empty() {
            return Self::Closed(candidates);
        }
        let pools = pools(&open);
        let full: Vec<Pool<'r>> = pools
            .iter()
            .copied()
            .filter(|pool| matches!(pool.rejection, PoolRejection::TooFewNodes { .. }))
            .collect();
        if full.is_empty() { Self::NoHardware(pools) } else { Self::Full(full) }
    }

    /// Why there is no place, as the end of a sentence.
    fn sentence(&self, deployment: &StoredObject, report: &Report) -> String {
        match self {
            Self::NoClusters => "there is no InferenceCluster".to_owned(),
            Self::Cache => {
                format!(
                    "new replicas wait for ModelCache {}, which does not exist or cannot be read",
                    cache(deployment)
                )
            }
            Self::NoCandidates => {
                let wanted: BTreeSet<String> =
                    labels(report).map(|(key, wanted, _)| format!("{key}={wanted}")).collect();
                let wanted: Vec<String> = wanted.into_iter().collect();
                match report.clusters.as_slice() {
                    [only] => {
                        format!("the only cluster, {}, does not have {}", only.name, wanted.join(" and "))
                    }
                    clusters => {
                        format!("none of {} clusters has {}", clusters.len(), wanted.join(" and "))
                    }
                }
            }
            Self::Closed(clusters) => {
                let parts: Vec<String> = clusters
                    .iter()
                    .map(|cluster| {
                        let why = cluster.rejections.iter().find(|rejection| !is_pool(rejection));
                        format!("{}: {}", cluster.name, why.map(ToString::to_string).unwrap_or_default())
                    })
                    .collect();
                format!("no cluster accepts replicas ({})", some_of(&parts, MAX_NAMES))
            }
            Self::Full(pools) => full_sentence(pools),
            Self::NoHardware(pools) => no_hardware_sentence(pools),
        }
    }

    fn help(&self, world: &World, deployment: &StoredObject, report: &Report) -> Vec<String> {
        let mut help = match self {
            Self::NoClusters => {
                vec!["apply an InferenceCluster, or give its manifest with another -f".to_owned()]
            }
            Self::Cache => cache_help(world, deployment),
            Self::NoCandidates => label_help(report),
            Self::Closed(clusters) => {
                clusters.iter().take(MAX_NAMES).flat_map(|cluster| closed_help(world, cluster)).collect()
            }
            Self::Full(pools) => full_help(world, pools),
            Self::NoHardware(pools) => hardware_help(pools),
        };
        if matches!(self, Self::Full(_) | Self::NoHardware(_) | Self::Closed(_)) {
            help.extend(outside_selector(report));
        }
        if matches!(self, Self::NoHardware(_) | Self::NoClusters) {
            help.extend(catalog_help(world, deployment));
        }
        help
    }
}

fn is_label(rejection: &ClusterRejection) -> bool {
    matches!(rejection, ClusterRejection::Label { .. } | ClusterRejection::CacheFootprint { .. })
}

fn is_pool(rejection: &ClusterRejection) -> bool {
    matches!(rejection, ClusterRejection::NoPool { .. })
}

fn labels(report: &Report) -> impl Iterator<Item = (&str, &str, bool)> {
    report.clusters.iter().flat_map(|cluster| &cluster.rejections).filter_map(|rejection| match rejection {
        ClusterRejection::Label { key, wanted, .. } => Some((key.as_str(), wanted.as_str(), false)),
        ClusterRejection::CacheFootprint { key, wanted, .. } => Some((key.as_str(), wanted.as_str(), true)),
        _ => None,
    })
}

fn cache(deployment: &StoredObject) -> &str {
    text(&deployment.body, &["spec", "template", "spec", "modelCacheRef", "name"])
}

fn full_sentence(pools: &[Pool<'_>]) -> String {
    let parts: Vec<String> = pools
        .iter()
        .map(|pool| format!("pool {} on {} {}", pool.pool.name, pool.cluster, pool.rejection))
        .collect();
    match parts.as_slice() {
        [only] => format!("the one pool that suits is full: {only}"),
        _ => format!("the pools that suit are full: {}", some_of(&parts, MAX_NAMES)),
    }
}

fn no_hardware_sentence(pools: &[Pool<'_>]) -> String {
    let Some(pool) = nearest(pools) else {
        return "the clusters publish no pool".to_owned();
    };
    let place = format!("pool {} on {}", pool.pool.name, pool.cluster);
    let PoolRejection::NoMatch { request, devices, .. } = pool.rejection else {
        return format!("no pool suits engine {}; nearest is {place}: {}", pool.engine, pool.rejection);
    };
    let lead = format!("no pool has a device for request {request} of engine {}", pool.engine);
    match nearest_device(devices) {
        None => lead,
        Some(device) => format!("{lead}; nearest is {place}, whose {}", brief(device)),
    }
}

fn cache_help(world: &World, deployment: &StoredObject) -> Vec<String> {
    let (namespace, name) = (&deployment.key.namespace, cache(deployment));
    let known = of_kind(world, "ModelCache").filter(|cache| cache.key.namespace == *namespace);
    let known: Vec<&str> = known.map(|cache| cache.key.name.as_str()).collect();
    if known.contains(&name) {
        return vec![format!("see `modelplane explain modelcache/{name} -n {namespace}`")];
    }
    vec![match closest(name, known.iter().copied()) {
        Some(close) => format!("modelCacheRef names {name}; did you mean {close}?"),
        None => format!("apply ModelCache {namespace}/{name}, or take modelCacheRef out"),
    }]
}

fn label_help(report: &Report) -> Vec<String> {
    let wanted: BTreeSet<(&str, &str, bool)> = labels(report).collect();
    let one = |(key, value, of_cache): &(&str, &str, bool)| {
        let field = if *of_cache { "the ModelCache's" } else { "the deployment's" };
        let mut others: Vec<String> = Vec::new();
        for cluster in &report.clusters {
            for rejection in &cluster.rejections {
                if let ClusterRejection::Label { key: wrong, found, .. }
                | ClusterRejection::CacheFootprint { key: wrong, found, .. } = rejection
                    && wrong == key
                {
                    let found = found.as_ref().map_or("lacks it".to_owned(), |found| format!("has {found}"));
                    others.push(format!("{} {found}", cluster.name));
                }
            }
        }
        format!(
            "give a cluster the label {key}={value} ({}), or change {field} clusterSelector",
            some_of(&others, MAX_NAMES)
        )
    };
    wanted.iter().map(one).collect()
}

fn closed_help(world: &World, cluster: &ClusterReport) -> Vec<String> {
    let name = &cluster.name;
    let help = cluster.rejections.iter().filter_map(|rejection| match rejection {
        ClusterRejection::Taint { taint } => Some(format!(
            "remove taint {taint} from InferenceCluster {name}, or tolerate it in spec.template.spec.tolerations"
        )),
        ClusterRejection::NotReady | ClusterRejection::NoGateway | ClusterRejection::Unreadable { .. } => {
            let object = world.get(&key("InferenceCluster", "", name));
            let why = object.and_then(failing_condition).map(|condition| condition.message).unwrap_or_default();
            let why = if why.is_empty() { "is not up".to_owned() } else { format!("is {why}") };
            Some(format!("{name} {why}; see `modelplane explain ic/{name}`"))
        }
        _ => None,
    });
    let mut help: Vec<String> = help.collect();
    help.dedup();
    help
}

fn full_help(world: &World, pools: &[Pool<'_>]) -> Vec<String> {
    let mut help = Vec::new();
    for pool in pools.iter().take(MAX_NAMES) {
        let PoolRejection::TooFewNodes { needed, free, .. } = pool.rejection else { continue };
        let (name, cluster) = (&pool.pool.name, pool.cluster);
        let missing = needed.saturating_sub(*free);
        let nodes = if missing == 1 { "node" } else { "nodes" };
        let held = holders(world, cluster, name);
        let held = if held.is_empty() { String::new() } else { format!("; its nodes are held by {held}") };
        help.push(format!("add {missing} {nodes} to pool {name} of InferenceCluster {cluster}{held}"));
    }
    help
}

/// Deployments with replicas on the pool, and how many.
fn holders(world: &World, cluster: &str, pool: &str) -> String {
    let mut replicas: BTreeMap<String, usize> = BTreeMap::new();
    for replica in Replica::all(world) {
        if replica.cluster() == cluster && replica.pools().contains(&pool) {
            let deployment = replica.deployment().unwrap_or_else(|| replica.object.key.clone());
            *replicas.entry(full_name(&deployment)).or_default() += 1;
        }
    }
    let parts: Vec<String> =
        replicas.iter().map(|(name, number)| format!("{name} ({})", count(*number, "replica"))).collect();
    some_of(&parts, MAX_NAMES)
}

/// Clusters that would take a replica, were it not for their labels.
fn outside_selector(report: &Report) -> Option<String> {
    let fitting = report
        .clusters
        .iter()
        .filter(|cluster| !cluster.rejections.is_empty() && cluster.rejections.iter().all(is_label));
    let names: Vec<&str> = fitting.map(|cluster| cluster.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let have =
            if names.len() == 1 { "has room but not the labels" } else { "have room but not the labels" };
        format!("{} {have}: widen clusterSelector or label them", some_of(&names, MAX_NAMES))
    })
}

fn hardware_help(pools: &[Pool<'_>]) -> Vec<String> {
    let mut values: BTreeSet<String> = BTreeSet::new();
    let mut too_few = false;
    for pool in pools {
        let PoolRejection::NoMatch { devices, .. } = pool.rejection else { continue };
        for device in devices {
            match &device.why {
                DeviceRejection::Selector { inputs, .. } => {
                    let shown = inputs.iter().filter(|input| !input.value.is_empty());
                    values.extend(shown.map(|input| format!("{} is {}", input.path, input.value)));
                }
                DeviceRejection::TooFew { .. } => too_few = true,
                DeviceRejection::NoDeviceClass | DeviceRejection::Unreadable { .. } => {}
            }
        }
    }
    let values: Vec<String> = values.into_iter().collect();
    let mut help = Vec::new();
    if !values.is_empty() {
        help.push(format!("relax the selector to what the fleet has ({})", some_of(&values, 4)));
    }
    if too_few {
        help.push("ask for fewer devices per node, or spread the engine over a gang of nodes".to_owned());
    }
    help
}

/// Classes of the catalog that suit, those for the fleet's own clouds first.
fn catalog_help(world: &World, deployment: &StoredObject) -> Option<String> {
    let sources: BTreeSet<&str> = of_kind(world, "InferenceCluster")
        .map(|cluster| text(&cluster.body, &["spec", "cluster", "source"]))
        .collect();
    let mut suitable = scheduling::suitable_in_catalog(&deployment.body);
    suitable.sort_by_key(|name| {
        let provider = catalog::show(name).map(|entry| entry.provider).unwrap_or_default();
        !sources.contains(provider)
    });
    (!suitable.is_empty()).then(|| {
        let example = some_of(&suitable, MAX_CLASSES);
        format!("add a pool of a class that suits; in `modelplane catalog list`: {example}")
    })
}
