//! `VultrCluster`: a cluster and its node pools on Vultr Kubernetes Engine (clusters-other-clouds §3).
//!
//! The pool that runs the serving stack is the cluster's own pool. Vultr installs the GPU operator itself;
//! an observer of its validator says when the nodes' drivers work, and with it when the cluster is ready.
//! There is no shared storage, so no StorageClass.

use modelplane_api::common::PoolRole;
use modelplane_api::inference_class::{Provisioning, VultrProvisioning};
use modelplane_api::inference_cluster::{ClusterSource, SourceKind, VultrSource};
use modelplane_api::kind::{KindInfo, Object};
use modelplane_api::names::SYSTEM_POOL;
use modelplane_api::vultr_cluster::{Gpu, NodePool, VultrCluster, VultrClusterSpec};
use serde::Serialize;

use super::provider::{Cloud, PoolRequest, Sizing, complete};
use super::{Composer, Fields, Managed, ManagedKind, OBSERVE, Selector, Tool, fields, node_pool};
use crate::compose::object::{KubernetesObject, Metadata, ProviderConfigRef, Readiness};
use crate::contract::{Body, ComposeError, Desired, Observed, Ready};

const VKE: &str = "vke.vultr.m.upbound.io/v1beta1";
const CLUSTER: ManagedKind = ManagedKind::new(VKE, "Kubernetes");
const NODE_POOL: ManagedKind = ManagedKind::new(VKE, "KubernetesNodePool");

const CLUSTER_KEY: &str = "cluster";
const POOL_KEY_PREFIX: &str = "node-pool-";
const OBSERVER_KEY: &str = "gpu-observer";
/// True once the validator runs on every node with accelerators, and there is one.
const VALIDATED: &str = "has(object.status.numberReady) && object.status.desiredNumberScheduled >= 1 && object.status.numberReady == object.status.desiredNumberScheduled";

/// Vultr Kubernetes Engine.
#[derive(Debug)]
pub struct Vultr;

impl Cloud for Vultr {
    type Source = VultrSource;
    type Recipe = VultrProvisioning;
    type Pool = NodePool;
    type Spec = VultrClusterSpec;

    const SOURCE: SourceKind = SourceKind::Vultr;
    const BLOCK: &'static str = "vultr";
    const CLUSTER: &'static KindInfo = VultrCluster::INFO;
    const SIZING: Sizing = Sizing::FixedOrBounds;

    fn source(cluster: &ClusterSource) -> Option<&VultrSource> {
        cluster.vultr.as_ref()
    }

    fn recipe(provisioning: &Provisioning) -> Option<&VultrProvisioning> {
        provisioning.vultr.as_ref()
    }

    fn pool(request: &PoolRequest<'_, VultrProvisioning>) -> NodePool {
        NodePool {
            name: request.pool.name.clone(),
            role: PoolRole::Gpu,
            plan: request.recipe.plan.clone(),
            node_count: Some(request.size.nodes),
            min_node_count: request.size.min,
            max_node_count: request.size.max,
            gpu: Some(Gpu { accelerator_type: request.recipe.accelerator.type_.clone() }),
        }
    }

    fn spec(source: &VultrSource, node_pools: Vec<NodePool>) -> VultrClusterSpec {
        let mut spec = VultrClusterSpec {
            region: source.region.clone(),
            kubernetes_version: source.kubernetes_version.clone(),
            credentials: complete(source.credentials.as_ref()),
            node_pools,
        };
        spec.kubernetes_version = Some(spec.kubernetes_version().to_owned());
        spec
    }

    fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
        compose(observed)
    }
}

/// Composes a `VultrCluster`.
fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let cluster: VultrCluster = observed.decode_composite()?;
    let mut composer = Composer::new(observed, cluster.spec.credentials.as_ref())?;
    control_plane(&mut composer, &cluster);
    if observed.is_ready(CLUSTER_KEY) || has_dependents(observed) {
        for pool in &cluster.spec.node_pools {
            composer.managed(format!("{POOL_KEY_PREFIX}{}", pool.name), pool_resource(pool));
        }
        access(&mut composer);
        let accelerated = cluster.spec.node_pools.iter().any(|pool| pool.role == PoolRole::Gpu);
        observer(&mut composer, accelerated);
    }
    composer.publish(&[composer.kubeconfig_secret()], None);
    Ok(composer.desired)
}

/// Whether anything that follows the cluster exists already: then it stays, whatever the cluster's state.
fn has_dependents(observed: &Observed<'_>) -> bool {
    observed
        .resources
        .keys()
        .any(|key| key.starts_with(POOL_KEY_PREFIX) || *key == OBSERVER_KEY || *key == Tool::Kubernetes.key())
}

/// The cluster with its own pool.
fn control_plane(composer: &mut Composer<'_, '_>, cluster: &VultrCluster) {
    let parameters = fields! {
        "label": composer.name,
        "region": cluster.spec.region.as_str(),
        "version": cluster.spec.kubernetes_version(),
        "haControlplanes": true,
        // One object although the provider's field has a plural name.
        "nodePools": fields! {
            "label": SYSTEM_POOL,
            "plan": "vc2-6c-16gb",
            "nodeQuantity": 1,
            "autoScaler": true,
            "minNodes": 1,
            "maxNodes": 2,
            "labels": labels(SYSTEM_POOL, None),
        },
    };
    let kubeconfig = composer.kubeconfig.clone();
    composer.managed(CLUSTER_KEY, Managed::new(CLUSTER, parameters).writing_secret(&kubeconfig));
}

/// A further pool: fixed, unless it has a maximum.
fn pool_resource(pool: &NodePool) -> Managed<'_> {
    let gpu = node_pool::accelerators(pool.role, pool.gpu.as_ref());
    let mut parameters = fields! {
        "label": pool.name.as_str(),
        "plan": pool.plan.as_str(),
        "nodeQuantity": pool.node_count(),
        "clusterIdSelector": Selector::sibling(),
        "labels": labels(&pool.name, gpu.map(|gpu| gpu.accelerator_type.as_str())),
    };
    if pool.role == PoolRole::Gpu {
        parameters = parameters.with("taints", [node_pool::gpu_taint("NoSchedule")]);
    }
    if let Some(max) = pool.max_node_count {
        parameters = parameters
            .with("autoScaler", true)
            .with("minNodes", pool.min_node_count.unwrap_or(pool.node_count()))
            .with("maxNodes", max);
    }
    Managed::new(NODE_POOL, parameters)
}

/// Node labels as Vultr spells them: a list of pairs.
fn labels<'p>(pool: &'p str, accelerator: Option<&'p str>) -> Vec<Fields<'p>> {
    let labels = node_pool::labels(pool, accelerator);
    labels.into_iter().map(|(key, value)| fields! { "key": key, "value": value }).collect()
}

/// The provider config of the observer; unlike on other clouds it names its namespace.
fn access(composer: &mut Composer<'_, '_>) {
    let metadata = Metadata::named(composer.kubeconfig.as_str()).and_namespace(composer.namespace);
    let object = Tool::Kubernetes.provider_config(&composer.kubeconfig, composer.access(None));
    let body = Body::of(&object.with_metadata(metadata));
    composer.desired.add(Tool::Kubernetes.key(), body, Ready::True);
}

/// Identity of an object that is only watched.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Watched {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
}

/// Watches the GPU operator's validator. A cluster without accelerators has none to wait for.
fn observer(composer: &mut Composer<'_, '_>, accelerated: bool) {
    let validator = Watched {
        api_version: "apps/v1",
        kind: "DaemonSet",
        metadata: Metadata::named("nvidia-operator-validator").and_namespace("gpu-operator"),
    };
    let config = ProviderConfigRef::namespaced(composer.kubeconfig.as_str());
    let readiness = Readiness::DeriveFromCelQuery { cel_query: VALIDATED.into() };
    let object = KubernetesObject::provider_object(config, Some(readiness), validator)
        .with_management_policies(OBSERVE)
        .with_metadata(Metadata::in_namespace(composer.namespace));
    let body = Body::of(&object);
    let observed = composer.observed;
    let ready = observed.is_ready(OBSERVER_KEY) || (!accelerated && observed.has(OBSERVER_KEY));
    composer.desired.add(OBSERVER_KEY, body, Ready::when(ready));
}
