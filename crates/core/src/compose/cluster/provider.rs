//! The table of clouds, and how an InferenceCluster becomes a cloud's own cluster kind.
//!
//! A cloud is a type that implements [`Cloud`] in its own file and has one line in [`PROVIDERS`]; both the
//! InferenceCluster composition and the table of compositions find it there.

use std::fmt;

use modelplane_api::common::{Credentials, SecretType};
use modelplane_api::inference_class::{InferenceClassSpec, Provisioning};
use modelplane_api::inference_cluster::{ClusterSource, NodePool, SourceKind};
use modelplane_api::kind::KindInfo;
use modelplane_api::names::SYSTEM_NAMESPACE;
use modelplane_api::validate::validate;
use serde::Serialize;

use crate::compose::Composition;
use crate::compose::object::{KubernetesObject, Metadata};
use crate::contract::{Body, ComposeError, Desired, Observed};

/// Size of a node's disk unless its class says otherwise (spec api §1).
pub const DEFAULT_DISK_SIZE_GB: i64 = 100;

/// Every cloud, one line each.
pub static PROVIDERS: &[Provider] = &[
    Provider::of::<super::gke::Gke>(),
    Provider::of::<super::eks::Eks>(),
    Provider::of::<super::aks::Aks>(),
    Provider::of::<super::nebius::Nebius>(),
    Provider::of::<super::vultr::Vultr>(),
    Provider::of::<super::doks::Doks>(),
];

/// A cloud on which clusters can be provisioned: its types, what is particular about it, and how the node
/// pools of an InferenceCluster read in its terms.
pub trait Cloud {
    /// Its block of `InferenceCluster.spec.cluster`.
    type Source;
    /// Its block of `InferenceClass.spec.provisioning`.
    type Recipe;
    /// A node pool of its cluster kind.
    type Pool;
    /// The spec of its cluster kind.
    type Spec: Serialize;

    /// Its value of `InferenceCluster.spec.cluster.source`.
    const SOURCE: SourceKind;
    /// Name of its blocks, e.g. `gke`; keys of composed resources derive from it.
    const BLOCK: &'static str;
    /// Its cluster kind.
    const CLUSTER: &'static KindInfo;
    /// The identity, if any, that its clusters want on top of a kubeconfig.
    const IDENTITY: Option<SecretType> = None;
    /// Where the NVIDIA driver is on its nodes, unless at the root.
    const NVIDIA_DRIVER_ROOT: Option<&'static str> = None;
    /// How its node pools are sized.
    const SIZING: Sizing;
    /// Whether its pools with accelerators need zones.
    const NEEDS_ZONES: bool = false;

    /// Its block of the cluster source.
    fn source(cluster: &ClusterSource) -> Option<&Self::Source>;
    /// Its block of a class's recipe.
    fn recipe(provisioning: &Provisioning) -> Option<&Self::Recipe>;
    /// A node pool in its terms.
    fn pool(request: &PoolRequest<'_, Self::Recipe>) -> Self::Pool;
    /// Rules for a pool that the schema of its cluster kind cannot state; the error names field and value.
    fn check(_pool: &NodePool) -> Result<(), String> {
        Ok(())
    }
    /// The spec of its cluster kind.
    fn spec(source: &Self::Source, pools: Vec<Self::Pool>) -> Self::Spec;
    /// The composition of its cluster kind.
    fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError>;
}

/// How the pools of a cluster kind are sized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizing {
    /// Always between two bounds, which have defaults: a fixed pool has to state both.
    Bounds,
    /// Fixed, unless it has an upper bound.
    FixedOrBounds,
}

/// A node pool to be provisioned.
#[derive(Debug, Clone, Copy)]
pub struct PoolRequest<'p, R> {
    /// The pool as the InferenceCluster has it.
    pub pool: &'p NodePool,
    /// The recipe of its class.
    pub recipe: &'p R,
    /// Its size.
    pub size: PoolSize,
}

/// The size of a node pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSize {
    /// Number of nodes, or the initial number.
    pub nodes: i64,
    /// Fewest nodes, if the pool has such a bound.
    pub min: Option<i64>,
    /// Most nodes, if the pool has such a bound.
    pub max: Option<i64>,
}

/// What an InferenceCluster asks of a cloud.
#[derive(Debug, Clone, Copy)]
pub struct ClusterRequest<'p> {
    /// Name of the InferenceCluster.
    pub name: &'p str,
    /// Where the cluster comes from.
    pub source: &'p ClusterSource,
    /// Its node pools, each with its class.
    pub pools: &'p [(&'p NodePool, &'p InferenceClassSpec)],
}

/// A cloud as the rest of the system sees it.
#[derive(Clone, Copy)]
pub struct Provider {
    /// Its value of `spec.cluster.source`.
    pub source: SourceKind,
    /// Name of its blocks in the API.
    pub block: &'static str,
    /// Its cluster kind.
    pub cluster: &'static KindInfo,
    /// The identity that its clusters want on top of a kubeconfig.
    pub identity: Option<SecretType>,
    /// Where the NVIDIA driver is on its nodes, unless at the root.
    pub nvidia_driver_root: Option<&'static str>,
    /// The composition of its cluster kind.
    pub compose: Composition,
    /// The object of its cluster kind for an InferenceCluster.
    pub child: fn(&ClusterRequest<'_>) -> Result<Body<'static>, ChildError>,
}

/// Why an InferenceCluster cannot be turned into a cluster of a cloud.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChildError {
    /// The block of the source is missing.
    #[error("spec.cluster.{block} is missing, which source {source_name} needs")]
    NoSource {
        /// The missing block.
        block: &'static str,
        /// The source.
        source_name: &'static str,
    },
    /// There are no node pools.
    #[error("spec.nodePools is empty; a cluster provisioned on {source_name} needs at least one pool")]
    NoPools {
        /// The source.
        source_name: &'static str,
    },
    /// A class cannot be provisioned on this cloud.
    #[error(
        "pool {pool}: InferenceClass {class} has no spec.provisioning.{block}, so it cannot be provisioned \
         on {source_name}"
    )]
    NoRecipe {
        /// The pool.
        pool: String,
        /// Its class.
        class: String,
        /// The missing block.
        block: &'static str,
        /// The source.
        source_name: &'static str,
    },
    /// A value that the cloud's cluster kind does not allow.
    #[error("{0}")]
    Invalid(String),
}

impl Provider {
    /// What the rest of the system needs to know of a cloud.
    pub const fn of<C: Cloud>() -> Self {
        Self {
            source: C::SOURCE,
            block: C::BLOCK,
            cluster: C::CLUSTER,
            identity: C::IDENTITY,
            nvidia_driver_root: C::NVIDIA_DRIVER_ROOT,
            compose: C::compose,
            child: child::<C>,
        }
    }

    /// The cloud of a source; `None` for clusters that exist already.
    pub fn find(source: SourceKind) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.source == source)
    }

    /// The composition of a cloud's cluster kind.
    pub fn composition(group: &str, kind: &str) -> Option<Composition> {
        let provider = PROVIDERS.iter().find(|p| p.cluster.group == group && p.cluster.kind == kind)?;
        Some(provider.compose)
    }

    /// The source as manifests spell it.
    pub fn source_name(&self) -> &'static str {
        source_name(self.cluster)
    }

    /// Key of the cloud's cluster among the resources an InferenceCluster composes.
    pub fn child_key(&self) -> String {
        format!("{}-cluster", self.block)
    }

    /// Key of the Usage that keeps the cloud's cluster until the serving stack on it is gone.
    pub fn usage_key(&self) -> String {
        format!("usage-{}-by-backend", self.block)
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Provider").field(&self.source_name()).finish()
    }
}

/// The credentials a cluster kind gets: none unless the source has some, and then complete.
pub fn complete(credentials: Option<&Credentials>) -> Option<Credentials> {
    credentials.map(|given| Credentials {
        type_: Some(given.type_or_default()),
        name: Some(given.name_or_default().to_owned()),
    })
}

fn child<C: Cloud>(request: &ClusterRequest<'_>) -> Result<Body<'static>, ChildError> {
    let source_name = source_name(C::CLUSTER);
    let source = C::source(request.source).ok_or(ChildError::NoSource { block: C::BLOCK, source_name })?;
    if request.pools.is_empty() {
        return Err(ChildError::NoPools { source_name });
    }
    let pools = request.pools.iter().map(|(pool, class)| pool_of::<C>(pool, class));
    let spec = C::spec(source, pools.collect::<Result<_, _>>()?);
    let metadata = Metadata::named(request.name).and_namespace(SYSTEM_NAMESPACE);
    let object = KubernetesObject::with_spec(C::CLUSTER.api_version(), C::CLUSTER.kind, spec);
    let object = object.with_metadata(metadata);
    check(&object)?;
    Ok(Body::of(&object))
}

/// Refuses what the API server would refuse, but where the InferenceCluster can be blamed for it.
fn check<O: Serialize>(object: &O) -> Result<(), ChildError> {
    let invalid = |message: String| Err(ChildError::Invalid(message));
    let problems = serde_json::to_value(object).map(|object| validate(&object));
    match problems {
        Err(error) => invalid(error.to_string()),
        Ok(Err(error)) => invalid(error.to_string()),
        Ok(Ok(problems)) => match problems.into_iter().next() {
            None => Ok(()),
            Some(problem) => {
                let hint = problem.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                invalid(format!("{}: {}{hint}", problem.path, problem.message))
            }
        },
    }
}

fn pool_of<C: Cloud>(pool: &NodePool, class: &InferenceClassSpec) -> Result<C::Pool, ChildError> {
    let recipe = class.provisioning.as_ref().and_then(C::recipe).ok_or_else(|| ChildError::NoRecipe {
        pool: pool.name.clone(),
        class: pool.class_name.clone(),
        block: C::BLOCK,
        source_name: source_name(C::CLUSTER),
    })?;
    if C::NEEDS_ZONES && pool.zones.is_empty() {
        let source_name = source_name(C::CLUSTER);
        let problem = format!("pool {}: zones is empty; pools on {source_name} need at least one", pool.name);
        return Err(ChildError::Invalid(problem));
    }
    C::check(pool).map_err(ChildError::Invalid)?;
    let size = PoolSize::of(pool, C::SIZING)?;
    Ok(C::pool(&PoolRequest { pool, recipe, size }))
}

impl PoolSize {
    /// The size of a pool.
    ///
    /// Without `maxNodeCount` a pool has a fixed size, which a kind sized by bounds has to be told as two
    /// equal ones: left out, its defaults would make the pool an autoscaled one (clusters §6.4).
    fn of(pool: &NodePool, sizing: Sizing) -> Result<Self, ChildError> {
        let nodes = pool.node_count();
        match (sizing, pool.min_node_count, pool.max_node_count) {
            (Sizing::Bounds, _, None) => {
                // No cloud has a pool that can never hold a node; an idle autoscaler leaves it at none.
                Ok(Self { nodes, min: Some(nodes), max: Some(nodes.max(1)) })
            }
            (Sizing::FixedOrBounds, Some(min), None) => Err(ChildError::Invalid(format!(
                "pool {}: minNodeCount is {min} but maxNodeCount is not set; set both or neither",
                pool.name
            ))),
            (_, min, max) => Ok(Self { nodes, min, max }),
        }
    }
}

fn source_name(cluster: &'static KindInfo) -> &'static str {
    cluster.kind.strip_suffix("Cluster").unwrap_or(cluster.kind)
}
