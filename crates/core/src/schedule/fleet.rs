//! The clusters of the fleet, read from their wire documents and numbered for the solver.
//!
//! Read once per call and independent of any deployment; what a deployment makes of it (taints, selectors,
//! labels) is added by `problem`. A cluster or pool that cannot be read stays in the table, marked: new
//! replicas avoid it, and running ones on it are left alone.

use modelplane_api::common::{Taint, TaintEffect};
use serde::Serialize;

use super::devices::{Devices, Interner};
use super::hash::FastMap;
use super::solver::{ClusterIndex, PoolIndex, ProfileIndex};
use super::wire;
use crate::contract::Resource;
use crate::document::Document;

/// Something in the input that could not be used; everything else went on without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The object, as `Kind namespace/name`.
    pub object: String,
    /// The field and what is wrong with it.
    pub message: String,
}

/// Every cluster and pool.
#[derive(Debug, Default)]
pub(crate) struct FleetFacts<'a> {
    /// Ordered by name, so that numbers compare as names do.
    pub(crate) clusters: Vec<ClusterFacts<'a>>,
    pub(crate) pools: Vec<PoolFacts<'a>>,
    pub(crate) devices: Devices<'a>,
    pub(crate) notes: Vec<Note>,
    /// Whether a cluster was left out because it has no readable name: any replica may be on it.
    pub(crate) nameless: bool,
    by_name: FastMap<&'a str, ClusterIndex>,
}

/// A cluster.
#[derive(Debug)]
pub(crate) struct ClusterFacts<'a> {
    pub(crate) name: &'a str,
    pub(crate) labels: Option<Document<'a>>,
    pub(crate) pools: std::ops::Range<u32>,
    /// Whether its condition `Ready` is `True`.
    pub(crate) ready: bool,
    /// Address of its gateway, empty if it has none.
    pub(crate) gateway: &'a str,
    pub(crate) taints: Vec<Taint>,
    /// What of its own fields could not be read, pools aside.
    pub(crate) unread: Option<String>,
    /// Whether it reports anything of itself; without a status nobody can tell which pools it has.
    pub(crate) reports: bool,
}

/// A pool.
#[derive(Debug)]
pub(crate) struct PoolFacts<'a> {
    pub(crate) name: &'a str,
    pub(crate) profile: ProfileIndex,
    /// Published nodes; never negative.
    pub(crate) nodes: i64,
    /// What of its own fields could not be read, devices aside.
    pub(crate) unread: Option<String>,
}

impl<'a> FleetFacts<'a> {
    /// Reads clusters; those without a name or with that of another are left out with a note.
    pub(crate) fn read<'r>(clusters: impl ExactSizeIterator<Item = &'r Resource<'a>>) -> Self
    where
        'a: 'r,
    {
        let mut fleet = Self::default();
        let mut interner = Interner::default();
        fleet.clusters.reserve(clusters.len());
        fleet.pools.reserve(clusters.len() * 3);
        for cluster in clusters {
            fleet.add(cluster.document, &mut interner);
        }
        fleet.devices = interner.finish();
        fleet.number();
        fleet.note_defects();
        fleet
    }

    /// The cluster of a name.
    pub(crate) fn cluster_named(&self, name: &str) -> Option<ClusterIndex> {
        self.by_name.get(name).copied()
    }

    /// A cluster.
    pub(crate) fn cluster(&self, cluster: ClusterIndex) -> &ClusterFacts<'a> {
        &self.clusters[cluster.0 as usize]
    }

    /// A pool.
    pub(crate) fn pool(&self, pool: PoolIndex) -> &PoolFacts<'a> {
        &self.pools[pool.0 as usize]
    }

    /// The pools of a cluster, in published order.
    pub(crate) fn pools_of(&self, cluster: ClusterIndex) -> impl Iterator<Item = PoolIndex> + use<> {
        self.cluster(cluster).pools.clone().map(PoolIndex)
    }

    /// The pool of a name on a cluster.
    pub(crate) fn pool_named(&self, cluster: ClusterIndex, name: &str) -> Option<PoolIndex> {
        self.pools_of(cluster).find(|pool| self.pool(*pool).name == name)
    }

    /// Every cluster's number.
    pub(crate) fn indices(&self) -> impl Iterator<Item = ClusterIndex> + use<> {
        (0..index(self.clusters.len())).map(ClusterIndex)
    }

    fn add(&mut self, document: Document<'a>, interner: &mut Interner<'a>) {
        let first = index(self.pools.len());
        let facts = match document.decode::<wire::Cluster<'a>>() {
            Ok(wire) => {
                let metadata = wire.metadata.unwrap_or_default();
                let status = wire.status.unwrap_or_default();
                // A cluster that reports other things but no pools has none, as recorded of upstream.
                let reports =
                    status.gpu_pools.is_some() || status.conditions.is_some() || status.gateway.is_some();
                for pool in status.gpu_pools.unwrap_or_default() {
                    self.pools.push(PoolFacts::read(pool, interner));
                }
                let (taints, unread) = read_taints(wire.spec.and_then(|spec| spec.taints));
                ClusterFacts {
                    name: metadata.name.unwrap_or_default(),
                    labels: metadata.labels,
                    pools: first..index(self.pools.len()),
                    ready: status.conditions.unwrap_or_default().0,
                    gateway: status.gateway.and_then(|gateway| gateway.address).unwrap_or_default(),
                    taints,
                    unread,
                    reports,
                }
            }
            Err(error) => {
                let name = document.text_at(&["metadata", "name"]).unwrap_or_default();
                ClusterFacts::unread(name, error.to_string(), first)
            }
        };
        if facts.name.is_empty() {
            self.nameless = true;
            self.notes
                .push(Note { object: "InferenceCluster".into(), message: "metadata.name is missing".into() });
            return;
        }
        self.clusters.push(facts);
    }

    /// Orders the clusters by name and numbers them.
    fn number(&mut self) {
        self.clusters.sort_by(|a, b| a.name.cmp(b.name));
        let notes = &mut self.notes;
        self.clusters.dedup_by(|later, first| {
            let same = later.name == first.name;
            if same {
                notes.push(Note::about_cluster(later.name, "is listed more than once; the first counts"));
            }
            same
        });
        self.by_name = self
            .clusters
            .iter()
            .zip(0..)
            .map(|(cluster, number)| (cluster.name, ClusterIndex(number)))
            .collect();
    }

    fn note_defects(&mut self) {
        for cluster in &self.clusters {
            if let Some(why) = &cluster.unread {
                self.notes.push(Note::about_cluster(cluster.name, why));
            }
            for pool in &self.pools[cluster.pools.start as usize..cluster.pools.end as usize] {
                if let Some(why) = self.devices.defect_of(pool) {
                    let message = format!("status.gpuPools[{}]: {why}", pool.name);
                    self.notes.push(Note::about_cluster(cluster.name, &message));
                }
            }
        }
    }
}

impl Devices<'_> {
    /// What of a pool, or of its devices, could not be used.
    pub(crate) fn defect_of<'p>(&'p self, pool: &'p PoolFacts<'_>) -> Option<&'p str> {
        pool.unread.as_deref().or(self.profile(pool.profile).defect.as_deref())
    }
}

impl<'a> ClusterFacts<'a> {
    fn unread(name: &'a str, why: String, no_pool: u32) -> Self {
        Self {
            name,
            labels: None,
            pools: no_pool..no_pool,
            ready: false,
            gateway: "",
            taints: Vec::new(),
            unread: Some(why),
            reports: false,
        }
    }
}

impl<'a> PoolFacts<'a> {
    fn read(document: Document<'a>, interner: &mut Interner<'a>) -> Self {
        match document.decode::<wire::Pool<'a>>() {
            Ok(pool) => Self {
                name: pool.name.unwrap_or_default(),
                profile: interner.profile(pool.devices),
                nodes: pool.nodes.unwrap_or(0).max(0),
                unread: None,
            },
            Err(error) => Self {
                name: document.text_at(&["name"]).unwrap_or_default(),
                profile: interner.profile(None),
                nodes: 0,
                unread: Some(error.to_string()),
            },
        }
    }
}

impl Note {
    pub(crate) fn about_cluster(name: &str, message: &str) -> Self {
        Self { object: format!("InferenceCluster {name}"), message: message.to_owned() }
    }

    pub(crate) fn about_replica(document: Document<'_>, message: String) -> Self {
        Self { object: Resource::new(document).identity().to_string(), message }
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.object, self.message)
    }
}

/// A taint as `kubectl` writes it: `key=value:Effect`.
pub(crate) fn taint_text(taint: &Taint) -> String {
    let effect = match taint.effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    };
    match taint.value.as_deref().unwrap_or_default() {
        "" => format!("{}:{effect}", taint.key),
        value => format!("{}={value}:{effect}", taint.key),
    }
}

fn read_taints(taints: Option<Vec<Document<'_>>>) -> (Vec<Taint>, Option<String>) {
    let mut read = Vec::new();
    let mut unread = None;
    for (position, taint) in taints.into_iter().flatten().enumerate() {
        match taint.decode() {
            Ok(taint) => read.push(taint),
            Err(error) => unread = Some(format!("spec.taints[{position}]: {error}")),
        }
    }
    (read, unread)
}

fn index(length: usize) -> u32 {
    u32::try_from(length).expect("a request of less than 4 GiB lists fewer than 2^32 clusters and pools")
}
