//! Clusters on Amazon Elastic Kubernetes Service (spec clusters §5).
//!
//! The parts are in order of what they stand on: [`subnets`] decides the address ranges, [`network`] makes
//! the network of them, [`iam`] the roles, [`control_plane`] the cluster and its add-ons, [`nodes`] the node
//! groups, [`storage`] and [`in_cluster`] what models need on top.

mod control_plane;
mod iam;
mod in_cluster;
mod network;
mod nodes;
mod storage;
mod subnets;

use modelplane_api::common::PoolRole;
use modelplane_api::eks_cluster::{EKSCluster, EKSClusterSpec, Gpu, NodePool};
use modelplane_api::inference_class::{EksProvisioning, Provisioning};
use modelplane_api::inference_cluster::{ClusterSource, EksSource, FabricType, SourceKind};
use modelplane_api::kind::{KindInfo, Object};
use modelplane_api::names;

use self::subnets::Subnets;
use super::Composer;
use super::provider::{Cloud, DEFAULT_DISK_SIZE_GB, PoolRequest, Sizing, complete};
use crate::contract::{ComposeError, Desired, Observed, Severity};

/// Amazon Elastic Kubernetes Service.
#[derive(Debug)]
pub struct Eks;

impl Cloud for Eks {
    type Source = EksSource;
    type Recipe = EksProvisioning;
    type Pool = NodePool;
    type Spec = EKSClusterSpec;

    const SOURCE: SourceKind = SourceKind::Eks;
    const BLOCK: &'static str = "eks";
    const CLUSTER: &'static KindInfo = EKSCluster::INFO;
    const SIZING: Sizing = Sizing::Bounds;
    const NEEDS_ZONES: bool = true;

    fn source(cluster: &ClusterSource) -> Option<&EksSource> {
        cluster.eks.as_ref()
    }

    fn recipe(provisioning: &Provisioning) -> Option<&EksProvisioning> {
        provisioning.eks.as_ref()
    }

    fn pool(request: &PoolRequest<'_, EksProvisioning>) -> NodePool {
        let PoolRequest { pool, recipe, size } = request;
        NodePool {
            name: pool.name.clone(),
            role: PoolRole::Gpu,
            instance_type: recipe.instance_type.clone(),
            disk_size_gb: Some(recipe.disk_size_gb.unwrap_or(DEFAULT_DISK_SIZE_GB)),
            node_count: Some(size.nodes),
            min_node_count: size.min,
            max_node_count: size.max,
            zones: pool.zones.clone(),
            gpu: Some(Gpu { accelerator_type: recipe.accelerator.type_.clone() }),
            fabric: (pool.fabric_type() == FabricType::Efa).then_some(FabricType::Efa),
            capacity_block: pool.capacity_block.clone(),
        }
    }

    fn spec(source: &EksSource, node_pools: Vec<NodePool>) -> EKSClusterSpec {
        let mut spec = EKSClusterSpec {
            region: source.region.clone(),
            kubernetes_version: source.kubernetes_version.clone(),
            credentials: complete(source.credentials.as_ref()),
            networking: None,
            node_pools,
        };
        spec.kubernetes_version = Some(spec.kubernetes_version().to_owned());
        spec
    }

    fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
        compose(observed)
    }
}

/// One pass over one EKS cluster.
struct EksComposer<'r, 'a> {
    cluster: Composer<'r, 'a>,
    spec: &'r EKSClusterSpec,
    subnets: &'r Subnets,
    /// Name of the control plane at AWS (`CL` of the spec).
    cluster_name: String,
}

/// Composes an `EKSCluster`.
fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let EKSCluster { spec, .. } = observed.decode_composite()?;
    let mut cluster = Composer::new(observed, spec.credentials.as_ref())?;
    let subnets = Subnets::plan(&spec, observed).map_err(|problem| observed.error(problem))?;
    for warning in subnets.warnings.iter().cloned().chain(nodes::foreign_zones(&spec, &subnets)) {
        cluster.desired.event(Severity::Warning, warning);
    }
    let cluster_name = names::child_name(&[cluster.namespace, cluster.name, "eks"]);
    let mut eks = EksComposer { cluster, spec: &spec, subnets: &subnets, cluster_name };
    network::compose(&mut eks);
    iam::compose(&mut eks);
    control_plane::compose(&mut eks);
    nodes::compose(&mut eks);
    storage::compose(&mut eks);
    in_cluster::compose(&mut eks);
    let secrets = [eks.cluster.kubeconfig_secret()];
    eks.cluster.publish(&secrets, Some(storage::STORAGE_CLASS));
    Ok(eks.cluster.desired)
}

impl EksComposer<'_, '_> {
    /// Name of the public subnet of a zone.
    fn public_subnet(&self, zone: &str) -> String {
        self.cluster.child(&format!("subnet-{zone}"))
    }

    /// Name of the private subnet of a zone.
    fn private_subnet(&self, zone: &str) -> String {
        self.cluster.child(&format!("private-subnet-{zone}"))
    }

    /// Whether any pool's nodes talk over EFA.
    fn uses_efa(&self) -> bool {
        self.spec.node_pools.iter().any(|pool| pool.fabric() == FabricType::Efa)
    }
}
