//! The scheduling problem of one deployment: the translation from documents to what the solver works on.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use modelplane_api::common::{Taint, TaintEffect};
use modelplane_api::model_deployment::{Engine, Member, ModelDeployment};
use modelplane_api::names;
use serde::Serialize;

use super::charges::Charges;
use super::fleet::{ClusterFacts, FleetFacts, Note};
use super::matching::{InvalidSelector, Matching, Requests, Taken};
use super::solver::{Cluster, ClusterIndex, Demand, Fleet, Pool, PoolIndex, ProfileIndex, Seat, Solver};
use super::wire;
use crate::contract::{Observed, Resource};
use crate::document::{DecodeError, Document};

/// What a deployment is scheduled against.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'p> {
    /// The deployment.
    pub deployment: &'p ModelDeployment,
    /// Clusters: the candidates, or all of them if `labels` is given.
    pub clusters: &'p [Resource<'p>],
    /// Every replica of every deployment.
    pub replicas: &'p [Resource<'p>],
    /// Replicas composed by the deployment, which count even where the list above is late.
    pub composed: &'p [Document<'p>],
    /// Labels a cluster must have to be a candidate; `None` if the list holds candidates only.
    pub labels: Option<&'p ClusterLabels>,
    /// Whether new replicas may be placed at all.
    pub placement: NewReplicas,
}

/// Whether new replicas may be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum NewReplicas {
    /// They may.
    Allowed,
    /// They may not, because it is not known which clusters have the model cache (spec scheduling §2.1).
    HeldByCache,
}

/// Labels that candidates must have, with where each comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterLabels {
    /// The deployment's `clusterSelector`.
    pub deployment: BTreeMap<String, String>,
    /// The model cache's `clusterSelector`; on a key in both, this one counts (spec scheduling §2).
    pub cache: BTreeMap<String, String>,
}

/// The scheduling problem of one deployment, ready to be solved, checked and explained.
#[derive(Debug)]
pub struct Problem<'p> {
    pub(crate) deployment: &'p ModelDeployment,
    pub(crate) facts: FleetFacts<'p>,
    /// Which clusters are candidates, by index.
    pub(crate) candidate: Vec<bool>,
    pub(crate) labels: Option<&'p ClusterLabels>,
    pub(crate) fleet: Fleet,
    pub(crate) demand: Demand,
    /// Engine and position of each member, as numbered in `demand`.
    members: Vec<(usize, usize)>,
    pub(crate) requests: Requests<'p>,
    pub(crate) matching: Matching,
    /// Replicas of this deployment, ordered by object name.
    pub(crate) mine: Vec<Mine<'p>>,
    /// Replicas of other deployments: the object, and its spec unread.
    others: Vec<(Document<'p>, Option<Document<'p>>)>,
    charges: OnceLock<Charges>,
    pub(crate) placement: NewReplicas,
}

/// A replica of the deployment.
#[derive(Debug)]
pub(crate) struct Mine<'p> {
    /// Object name.
    pub(crate) name: &'p str,
    /// Where its labels say it sits on its cluster.
    pub(crate) index: u32,
    /// Its spec, or why it cannot be read.
    pub(crate) spec: Result<wire::ReplicaSpec<'p>, String>,
    /// `spec.clusterName`, empty if absent.
    pub(crate) cluster_name: &'p str,
    /// The candidate of that name.
    pub(crate) cluster: Option<ClusterIndex>,
}

impl<'p> Problem<'p> {
    /// Reads the inputs.
    ///
    /// # Errors
    ///
    /// A selector of the deployment does not compile. Anything wrong with a cluster or a replica is a
    /// [`Note`] instead, see [`Problem::notes`].
    pub fn new(inputs: Inputs<'p>) -> Result<Self, InvalidSelector> {
        let requests = Requests::compile(inputs.deployment)?;
        let facts = FleetFacts::read(inputs.clusters.iter());
        let matching = requests.matching(&facts.devices);
        let (demand, members) = demand(inputs.deployment);
        let mut problem = Self {
            candidate: facts.clusters.iter().map(|cluster| is_candidate(cluster, inputs.labels)).collect(),
            deployment: inputs.deployment,
            labels: inputs.labels,
            fleet: Fleet::default(),
            demand,
            members,
            requests,
            matching,
            mine: Vec::new(),
            others: Vec::with_capacity(inputs.replicas.len()),
            charges: OnceLock::new(),
            placement: inputs.placement,
            facts,
        };
        problem.fleet = problem.number_fleet();
        problem.sort_replicas(inputs);
        Ok(problem)
    }

    /// What could not be used of the clusters and of this deployment's replicas, in a stable order.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        let charged = self.charges.get().map(|charges| charges.notes.as_slice()).unwrap_or_default();
        self.facts.notes.iter().chain(charged)
    }

    /// Number of clusters a replica may be on, by their labels.
    pub fn candidates(&self) -> usize {
        self.candidate.iter().filter(|candidate| **candidate).count()
    }

    /// How many times a selector was evaluated on a device.
    pub fn selector_evaluations(&self) -> u64 {
        self.matching.evaluations
    }

    /// Number of replicas the deployment asks for.
    pub fn wanted(&self) -> usize {
        self.demand.wanted
    }

    pub(crate) fn solver(&self) -> Solver<'_> {
        Solver { fleet: &self.fleet, demand: &self.demand, fits: &self.matching.fits }
    }

    /// What other deployments hold; worked out when first asked for.
    pub(crate) fn charges_of_others(&self) -> &[(PoolIndex, i64)] {
        let charges = || Charges::of_replicas(&self.facts, self.others.iter().copied());
        &self.charges.get_or_init(charges).entries
    }

    /// What our replicas on the given seats hold.
    pub(crate) fn charges_of_seats(&self, seats: &[Seat]) -> Vec<(PoolIndex, i64)> {
        let mut charges = Charges::default();
        for mine in &self.mine {
            if let (Some(seat), Ok(spec)) = (mine.seat(), &mine.spec)
                && seats.contains(&seat)
            {
                charges.add(&self.facts, spec);
            }
        }
        charges.entries
    }

    /// Engine and position in it of a member.
    pub(crate) fn member(&self, member: usize) -> (&'p Engine, &'p Member) {
        let (engine, position) = self.members[member];
        let engine = self.engine(engine);
        (engine, &engine.members[position])
    }

    /// An engine of the deployment.
    pub(crate) fn engine(&self, engine: usize) -> &'p Engine {
        &self.deployment.spec.template.spec.engines[engine]
    }

    /// The devices a member takes on a pool; `None` if it does not fit.
    pub(crate) fn taken(&self, member: usize, pool: PoolIndex) -> Option<&[Taken]> {
        self.matching.taken(member, self.facts.pool(pool).profile)
    }

    /// The taints of a cluster that the deployment does not tolerate and that have one of the effects.
    pub(crate) fn untolerated<'s>(
        &'s self,
        cluster: &'s ClusterFacts<'_>,
        effects: &'s [TaintEffect],
    ) -> impl Iterator<Item = &'s Taint> {
        let tolerations = &self.deployment.spec.template.spec.tolerations;
        cluster.taints.iter().filter(move |taint| {
            effects.contains(&taint.effect)
                && !tolerations.iter().any(|toleration| toleration.tolerates(taint))
        })
    }

    fn number_fleet(&self) -> Fleet {
        let clusters = self.facts.clusters.iter().zip(&self.candidate);
        Fleet {
            clusters: clusters
                .map(|(cluster, candidate)| Cluster {
                    pools: cluster.pools.clone(),
                    accepts: *candidate
                        && cluster.unread.is_none()
                        && cluster.ready
                        && !cluster.gateway.is_empty()
                        && self.untolerated(cluster, &REPELLING).next().is_none(),
                })
                .collect(),
            pools: self
                .facts
                .pools
                .iter()
                .map(|pool| Pool { profile: ProfileIndex(pool.profile.0), nodes: pool.nodes })
                .collect(),
        }
    }

    /// Tells our replicas from the others'.
    ///
    /// Ours carry the deployment's label *and* live in its namespace: a deployment of the same name in
    /// another namespace is another deployment.
    fn sort_replicas(&mut self, inputs: Inputs<'p>) {
        let metadata = &inputs.deployment.metadata;
        let label = names::label_value(&metadata.name);
        for replica in inputs.replicas {
            let document = replica.document;
            match document.decode::<wire::Replica<'p>>() {
                Ok(wire) if wire.belongs_to(metadata.namespace(), &label) => {
                    let mine = self.translate(document, &wire);
                    self.mine.push(mine);
                }
                Ok(wire) => self.others.push((document, wire.spec)),
                Err(error) => self.facts.notes.push(Note::about_replica(document, error.to_string())),
            }
        }
        for document in inputs.composed {
            let name = document.text_at(&["metadata", "name"]).unwrap_or_default();
            if self.mine.iter().all(|mine| mine.name != name)
                && let Ok(wire) = document.decode::<wire::Replica<'p>>()
                && wire.belongs_to(metadata.namespace(), &label)
            {
                let mine = self.translate(*document, &wire);
                self.mine.push(mine);
            }
        }
        self.mine.sort_by(|a, b| a.name.cmp(b.name));
    }

    fn translate(&mut self, document: Document<'p>, replica: &wire::Replica<'p>) -> Mine<'p> {
        let spec = replica.spec.map_or_else(|| Ok(wire::ReplicaSpec::default()), |spec| spec.decode());
        let spec = spec.map_err(|error| error.below(&["spec"]));
        if let Err(error) = &spec {
            self.facts.notes.push(Note::about_replica(document, error.to_string()));
        }
        let cluster_name = match &spec {
            Ok(spec) => spec.cluster_name.unwrap_or_default(),
            Err(_) => document.text_at(&["spec", "clusterName"]).unwrap_or_default(),
        };
        let cluster = self.facts.cluster_named(cluster_name);
        Mine {
            name: replica.name(),
            index: replica.index(),
            spec: spec.map_err(|error| error.to_string()),
            cluster_name,
            cluster: cluster.filter(|cluster| self.candidate[cluster.0 as usize]),
        }
    }
}

/// Effects of taints that keep new replicas away.
pub(crate) const REPELLING: [TaintEffect; 2] = [TaintEffect::NoSchedule, TaintEffect::NoExecute];

impl Mine<'_> {
    /// Cluster and index, if the cluster is a candidate.
    pub(crate) fn seat(&self) -> Option<Seat> {
        self.cluster.map(|cluster| Seat { cluster, index: self.index })
    }
}

impl<'a> wire::Replica<'a> {
    fn name(&self) -> &'a str {
        self.metadata.as_ref().and_then(|metadata| metadata.name).unwrap_or_default()
    }

    fn belongs_to(&self, namespace: &str, label: &str) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| {
            metadata.labels.as_ref().and_then(|labels| labels.deployment) == Some(label)
                && metadata.namespace.unwrap_or_default() == namespace
        })
    }

    /// The index its label gives; 0 if that is absent or no integer (spec scheduling §5).
    fn index(&self) -> u32 {
        let labels = self.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
        labels.and_then(|labels| labels.replica_index?.trim().parse().ok()).unwrap_or(0)
    }
}

impl ClusterLabels {
    /// The labels a deployment and its model cache, if that is known, ask for.
    ///
    /// # Errors
    ///
    /// If the cache's `clusterSelector` cannot be read.
    pub fn new(deployment: &ModelDeployment, cache: Option<Document<'_>>) -> Result<Self, DecodeError> {
        let cache = cache.map(|cache| cache.decode_at(&["spec", "clusterSelector", "matchLabels"]));
        Ok(Self {
            deployment: deployment.spec.template.spec.cluster_labels().cloned().unwrap_or_default(),
            cache: cache.transpose()?.flatten().unwrap_or_default(),
        })
    }

    /// The labels to ask for: both sets, the cache's value counting on a key in both.
    pub fn merged(&self) -> BTreeMap<String, String> {
        let mut merged = self.deployment.clone();
        merged.extend(self.cache.clone());
        merged
    }
}

fn is_candidate(cluster: &ClusterFacts<'_>, labels: Option<&ClusterLabels>) -> bool {
    labels.is_none_or(|labels| {
        let own = labels.deployment.iter().filter(|(key, _)| !labels.cache.contains_key(*key));
        own.chain(&labels.cache).all(|(key, value)| cluster.label(key) == Some(value))
    })
}

impl ClusterFacts<'_> {
    /// The value of a label, if the cluster has it.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.labels?.decode_at(&[key]).ok().flatten()
    }
}

/// What a replica of the deployment asks for (spec scheduling §4.1).
fn demand(deployment: &ModelDeployment) -> (Demand, Vec<(usize, usize)>) {
    let mut engines = Vec::new();
    let mut member_nodes = Vec::new();
    let mut members = Vec::new();
    for (number, engine) in deployment.spec.template.spec.engines.iter().enumerate() {
        let first = members.len();
        for (position, member) in engine.members.iter().enumerate() {
            members.push((number, position));
            member_nodes.push(member.pods().saturating_mul(engine.copies()).max(0));
        }
        engines.push(first..members.len());
    }
    let wanted = usize::try_from(deployment.spec.replicas).unwrap_or(0);
    (Demand { engines, member_nodes, wanted }, members)
}

/// The replicas among what a deployment composed.
pub(crate) fn composed_replicas<'a>(observed: &Observed<'a>) -> Vec<Document<'a>> {
    let kind = |resource: &&Resource<'a>| resource.document.text_at(&["kind"]) == Some("ModelReplica");
    observed.resources.values().filter(kind).map(|resource| resource.document).collect()
}
