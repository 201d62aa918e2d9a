//! `DOKSCluster`: a cluster and its node pools on DigitalOcean Kubernetes. Upstream has no such kind.
//!
//! Kinds and fields are those of crossplane-contrib/provider-upjet-digitalocean, namespaced variants
//! (`apis/namespaced/kubernetes/v1alpha1`). What is particular about this cloud:
//!
//! * The cluster needs a pool of its own, which runs the serving stack.
//! * DigitalOcean taints nodes with NVIDIA accelerators itself, so no taint is composed.
//! * Its device plugin would hand out the same accelerators as the DRA driver, so it is switched off.
//! * The provider writes the kubeconfig under an attribute path, not under `kubeconfig`.
//! * It retires patch versions; the version is therefore only seeded unless the user pins one, and nothing
//!   upgrades a pinned one by itself.
//!
//! Nothing is composed inside the cluster: there is no managed StorageClass with read-write-many volumes.

use modelplane_api::common::{ClusterSecret, PoolRole};
use modelplane_api::doks_cluster::{DOKSCluster, DOKSClusterSpec, Gpu, NodePool};
use modelplane_api::inference_class::{DoksProvisioning, Provisioning};
use modelplane_api::inference_cluster::{ClusterSource, DoksSource, SourceKind};
use modelplane_api::kind::{KindInfo, Object};
use modelplane_api::names::{self, SYSTEM_POOL};

use super::provider::{Cloud, PoolRequest, Sizing, complete};
use super::{Composer, Fields, Managed, ManagedKind, Selector, fields, node_pool};
use crate::contract::{ComposeError, Desired, Observed};

const KUBERNETES: &str = "kubernetes.digitalocean.m.crossplane.io/v1alpha1";
const CLUSTER: ManagedKind = ManagedKind::new(KUBERNETES, "Cluster");
const NODE_POOL: ManagedKind = ManagedKind::new(KUBERNETES, "NodePool");

/// Key of the kubeconfig: Upjet publishes the sensitive attribute `kube_config[0].raw_config` under its path
/// (crossplane/upjet, `pkg/resource/sensitive.go`).
const KUBECONFIG_ATTRIBUTE: &str = "attribute.kube_config.0.raw_config";
/// Name of the cluster's own pool; `system` is left to users.
const DEFAULT_POOL: &str = "modelplane-system";
/// Version that stands for the newest.
const NEWEST: &str = "latest";

/// DigitalOcean Kubernetes.
#[derive(Debug)]
pub struct Doks;

impl Cloud for Doks {
    type Source = DoksSource;
    type Recipe = DoksProvisioning;
    type Pool = NodePool;
    type Spec = DOKSClusterSpec;

    const SOURCE: SourceKind = SourceKind::Doks;
    const BLOCK: &'static str = "doks";
    const CLUSTER: &'static KindInfo = DOKSCluster::INFO;
    const SIZING: Sizing = Sizing::FixedOrBounds;

    fn source(cluster: &ClusterSource) -> Option<&DoksSource> {
        cluster.doks.as_ref()
    }

    fn recipe(provisioning: &Provisioning) -> Option<&DoksProvisioning> {
        provisioning.doks.as_ref()
    }

    fn pool(request: &PoolRequest<'_, DoksProvisioning>) -> NodePool {
        NodePool {
            name: request.pool.name.clone(),
            role: PoolRole::Gpu,
            size: request.recipe.size.clone(),
            node_count: Some(request.size.nodes),
            min_node_count: request.size.min,
            max_node_count: request.size.max,
            gpu: Some(Gpu { accelerator_type: request.recipe.accelerator.type_.clone() }),
        }
    }

    fn spec(source: &DoksSource, node_pools: Vec<NodePool>) -> DOKSClusterSpec {
        let mut spec = DOKSClusterSpec {
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

/// Composes a `DOKSCluster`.
fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let cluster: DOKSCluster = observed.decode_composite()?;
    let mut composer = Composer::new(observed, cluster.spec.credentials.as_ref())?;
    let kubeconfig = composer.kubeconfig.clone();
    let name = names::child_name(&[composer.namespace, composer.name, "doks"]);
    composer.managed("cluster", control_plane(&cluster, &name).writing_secret(&kubeconfig));
    for pool in &cluster.spec.node_pools {
        composer.managed(format!("nodepool-{}", pool.name), pool_resource(pool));
    }
    let secret = ClusterSecret { key: KUBECONFIG_ATTRIBUTE.to_owned(), ..composer.kubeconfig_secret() };
    composer.publish(&[secret], None);
    Ok(composer.desired)
}

/// The cluster with its own pool.
fn control_plane<'c>(cluster: &'c DOKSCluster, name: &'c str) -> Managed<'c> {
    let pool = fields! {
        "name": DEFAULT_POOL,
        "size": "g-4vcpu-16gb",
        "autoScale": true,
        "minNodes": 1,
        "maxNodes": 2,
        "labels": node_pool::labels(SYSTEM_POOL, None).into_iter().collect::<Fields<'_>>(),
    };
    let parameters = fields! {
        "name": name,
        "region": cluster.spec.region.as_str(),
        "ha": true,
        "autoUpgrade": false,
        "nodePool": [pool],
        "nvidiaGpuDevicePlugin": [fields! { "enabled": false }],
    };
    match cluster.spec.kubernetes_version() {
        NEWEST => Managed::new(CLUSTER, parameters).seeded(fields! { "version": NEWEST }),
        pinned => Managed::new(CLUSTER, parameters.with("version", pinned)),
    }
}

/// A further pool: fixed, unless it has a maximum; then its size is only seeded.
fn pool_resource(pool: &NodePool) -> Managed<'_> {
    let gpu = node_pool::accelerators(pool.role, pool.gpu.as_ref());
    let labels = node_pool::labels(&pool.name, gpu.map(|gpu| gpu.accelerator_type.as_str()));
    let parameters = fields! {
        "name": pool.name.as_str(),
        "size": pool.size.as_str(),
        "clusterIdSelector": Selector::sibling(),
        "labels": labels.into_iter().collect::<Fields<'_>>(),
    };
    let Some(max) = pool.max_node_count else {
        return Managed::new(NODE_POOL, parameters.with("nodeCount", pool.node_count()));
    };
    let parameters = parameters
        .with("autoScale", true)
        .with("minNodes", pool.min_node_count.unwrap_or(pool.node_count()))
        .with("maxNodes", max);
    Managed::new(NODE_POOL, parameters).seeded(fields! { "nodeCount": pool.node_count() })
}
