//! `AKSCluster`: resource group, network, managed cluster and node pools on Azure (clusters-other-clouds §1).
//!
//! The pool that runs the serving stack is the cluster's own default pool. Nothing here needs the provider
//! config's contents, so nothing waits; resources inside the cluster are composed once the cluster is.

use modelplane_api::aks_cluster::{AKSCluster, AKSClusterSpec, Gpu, Networking, NodePool};
use modelplane_api::common::PoolRole;
use modelplane_api::inference_class::{AksProvisioning, Provisioning};
use modelplane_api::inference_cluster::{self, AksSource, ClusterSource, FabricType, SourceKind};
use modelplane_api::kind::{KindInfo, Object};
use modelplane_api::names::{self, EXTERNAL_NAME_ANNOTATION, SYSTEM_POOL};

use super::provider::{Cloud, DEFAULT_DISK_SIZE_GB, PoolRequest, Sizing, complete};
use super::{AddressRange, Composer, Fields, Managed, ManagedKind, Selector, StorageClass, Tool};
use super::{fields, node_pool};
use crate::contract::{ComposeError, Desired, Observed, Severity};
use crate::versions::NETWORK_OPERATOR;

const CONTAINER_SERVICE: &str = "containerservice.azure.m.upbound.io/v1beta1";
const NETWORK: &str = "network.azure.m.upbound.io/v1beta1";
const RESOURCE_GROUP: ManagedKind = ManagedKind::new("azure.m.upbound.io/v1beta1", "ResourceGroup");
const VIRTUAL_NETWORK: ManagedKind = ManagedKind::new(NETWORK, "VirtualNetwork");
const SUBNET: ManagedKind = ManagedKind::new(NETWORK, "Subnet");
const CLUSTER: ManagedKind = ManagedKind::new(CONTAINER_SERVICE, "KubernetesCluster");
const NODE_POOL: ManagedKind = ManagedKind::new(CONTAINER_SERVICE, "KubernetesClusterNodePool");

const NETWORK_OPERATOR_KEY: &str = "release-network-operator";
const STORAGE_CLASS_KEY: &str = "storage-class-rwx-fs";
/// StorageClass for model weights, on Azure Files.
const STORAGE_CLASS: &str = "modelplane-rwx-fs";
/// Options that let containers of any user read and write a share, and lock files on it as on a disk.
const MOUNT_OPTIONS: &[&str] = &[
    "dir_mode=0777",
    "file_mode=0777",
    "uid=0",
    "gid=0",
    "mfsymlinks",
    "cache=strict",
    "actimeo=30",
    "nosharesock",
];
/// Addresses of pods, in the overlay network.
const POD_CIDR: &str = "10.244.0.0/16";
/// Addresses of services; the DNS service is in it.
const SERVICE_CIDR: &str = "10.96.0.0/16";
/// Longest name of a node pool AKS accepts.
const MAX_POOL_NAME: usize = 12;

/// Azure Kubernetes Service.
#[derive(Debug)]
pub struct Aks;

impl Cloud for Aks {
    type Source = AksSource;
    type Recipe = AksProvisioning;
    type Pool = NodePool;
    type Spec = AKSClusterSpec;

    const SOURCE: SourceKind = SourceKind::Aks;
    const BLOCK: &'static str = "aks";
    const CLUSTER: &'static KindInfo = AKSCluster::INFO;
    const SIZING: Sizing = Sizing::Bounds;

    fn source(cluster: &ClusterSource) -> Option<&AksSource> {
        cluster.aks.as_ref()
    }

    fn recipe(provisioning: &Provisioning) -> Option<&AksProvisioning> {
        provisioning.aks.as_ref()
    }

    fn check(pool: &inference_cluster::NodePool) -> Result<(), String> {
        let name = pool.name.as_str();
        let valid = name.len() <= MAX_POOL_NAME
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if valid {
            return Ok(());
        }
        Err(format!(
            "pool {name}: on AKS a pool name is a lower-case letter and up to {} lower-case letters or digits",
            MAX_POOL_NAME - 1
        ))
    }

    fn pool(request: &PoolRequest<'_, AksProvisioning>) -> NodePool {
        let (pool, recipe) = (request.pool, request.recipe);
        let fabric = pool.fabric.as_ref().map(|fabric| fabric.type_or_default());
        NodePool {
            name: pool.name.clone(),
            role: PoolRole::Gpu,
            vm_size: recipe.vm_size.clone(),
            disk_size_gb: Some(recipe.disk_size_gb.unwrap_or(DEFAULT_DISK_SIZE_GB)),
            node_count: Some(request.size.nodes),
            min_node_count: request.size.min,
            max_node_count: request.size.max,
            zones: pool.zones.clone(),
            gpu: Some(Gpu { accelerator_type: recipe.accelerator.type_.clone() }),
            fabric: fabric.filter(|type_| *type_ == FabricType::InfiniBand),
        }
    }

    fn spec(source: &AksSource, node_pools: Vec<NodePool>) -> AKSClusterSpec {
        let mut spec = AKSClusterSpec {
            location: source.location.clone(),
            kubernetes_version: source.kubernetes_version.clone(),
            credentials: complete(source.credentials.as_ref()),
            node_pools,
            ..AKSClusterSpec::default()
        };
        spec.kubernetes_version = Some(spec.kubernetes_version().to_owned());
        spec
    }

    fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
        compose(observed)
    }
}

/// Composes an `AKSCluster`.
fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let cluster: AKSCluster = observed.decode_composite()?;
    let mut composer = Composer::new(observed, cluster.spec.credentials.as_ref())?;
    let name = names::child_name(&[composer.namespace, composer.name, "aks"]);
    let networking = cluster.spec.networking.clone().unwrap_or_default();
    for warning in taken_ranges(&networking).map_err(|problem| observed.error(problem))? {
        composer.desired.event(Severity::Warning, warning);
    }
    network(&mut composer, &cluster.spec.location, &networking, &name);
    control_plane(&mut composer, &cluster, &name);
    for pool in &cluster.spec.node_pools {
        let resource = pool_resource(pool, cluster.spec.kubernetes_version());
        composer.managed(format!("nodepool-{}", pool.name), resource);
    }
    composer.provider_config(Tool::Kubernetes, None);
    composer.provider_config(Tool::Helm, None);
    inside(&mut composer, &cluster.spec.node_pools);
    composer.publish(&[composer.kubeconfig_secret()], Some(STORAGE_CLASS));
    Ok(composer.desired)
}

/// What is wrong with the network's ranges: they must not overlap those of pods and services.
fn taken_ranges(networking: &Networking) -> Result<Vec<String>, String> {
    let mut warnings = Vec::new();
    for (field, value) in [("vnetCidr", networking.vnet_cidr()), ("subnetCidr", networking.subnet_cidr())] {
        let field = format!("spec.networking.{field}");
        let range = AddressRange::parse(&field, value)?;
        for (user, taken) in [("pods", POD_CIDR), ("services", SERVICE_CIDR)] {
            if range.overlaps(AddressRange::parse(user, taken)?) {
                warnings
                    .push(format!("{field} {range} overlaps {taken}, the range of {user}; choose another"));
            }
        }
    }
    Ok(warnings)
}

/// The resource group and the network in it.
fn network(composer: &mut Composer<'_, '_>, location: &str, networking: &Networking, name: &str) {
    let group = fields! { "location": location };
    composer.managed("resource-group", Managed::new(RESOURCE_GROUP, group).named(name));
    let network = fields! {
        "location": location,
        "addressSpace": [networking.vnet_cidr()],
        "resourceGroupNameSelector": Selector::sibling(),
    };
    composer.managed("virtual-network", Managed::new(VIRTUAL_NETWORK, network));
    let subnet = fields! {
        "addressPrefixes": [networking.subnet_cidr()],
        "resourceGroupNameSelector": Selector::sibling(),
        "virtualNetworkNameSelector": Selector::sibling(),
    };
    composer.managed("subnet", Managed::new(SUBNET, subnet));
}

/// The managed cluster with its default pool.
fn control_plane(composer: &mut Composer<'_, '_>, cluster: &AKSCluster, name: &str) {
    let parameters = fields! {
        "location": cluster.spec.location.as_str(),
        "kubernetesVersion": cluster.spec.kubernetes_version(),
        // Azure allows 54 characters here; longer names are refused by it, as they are upstream.
        "dnsPrefix": name,
        "nodeResourceGroup": format!("{name}-nodes"),
        "resourceGroupNameSelector": Selector::sibling(),
        "identity": fields! { "type": "SystemAssigned" },
        "defaultNodePool": fields! {
            "name": SYSTEM_POOL,
            "vmSize": "Standard_D4s_v5",
            "autoScalingEnabled": true,
            "minCount": 1,
            "maxCount": 2,
            "osDiskSizeGb": 100,
            "temporaryNameForRotation": "systemtmp",
            "nodeLabels": node_pool::labels(SYSTEM_POOL, None).into_iter().collect::<Fields<'_>>(),
            "vnetSubnetIdSelector": Selector::sibling(),
        },
        "networkProfile": fields! {
            "networkPlugin": "azure",
            "networkPluginMode": "overlay",
            "podCidr": POD_CIDR,
            "serviceCidr": SERVICE_CIDR,
            "dnsServiceIp": "10.96.0.10",
        },
    };
    let kubeconfig = composer.kubeconfig.clone();
    let resource = Managed::new(CLUSTER, parameters).named(name).writing_secret(&kubeconfig);
    composer.managed("cluster", resource);
}

/// A user pool; its size is only seeded, the autoscaler owns it from then on.
fn pool_resource<'p>(pool: &'p NodePool, version: &'p str) -> Managed<'p> {
    let gpu = node_pool::accelerators(pool.role, pool.gpu.as_ref());
    let labels = node_pool::labels(&pool.name, gpu.map(|gpu| gpu.accelerator_type.as_str()));
    let zones = (!pool.zones.is_empty()).then(|| pool.zones.iter().map(String::as_str).collect::<Vec<_>>());
    let mut parameters = fields! {
        "kubernetesClusterIdSelector": Selector::sibling(),
        "vnetSubnetIdSelector": Selector::sibling(),
        "mode": "User",
        "vmSize": pool.vm_size.as_str(),
        "osDiskSizeGb": pool.disk_size_gb(),
        "orchestratorVersion": version,
        "autoScalingEnabled": true,
        "minCount": pool.min_node_count(),
        "maxCount": pool.max_node_count(),
        "nodeLabels": labels.into_iter().collect::<Fields<'_>>(),
    }
    .with_some("zones", zones);
    if gpu.is_some() {
        let taint = format!("{}={}:NoSchedule", node_pool::GPU_TAINT_KEY, node_pool::GPU_TAINT_VALUE);
        parameters = parameters.with("gpuDriver", "Install").with("nodeTaints", [taint]);
    }
    Managed::new(NODE_POOL, parameters)
        .annotated(EXTERNAL_NAME_ANNOTATION, pool.name.as_str())
        .seeded(fields! { "nodeCount": pool.node_count() })
}

/// What is installed inside the cluster, once there is one.
fn inside(composer: &mut Composer<'_, '_>, pools: &[NodePool]) {
    let infiniband = pools.iter().any(|pool| pool.fabric() == FabricType::InfiniBand);
    if infiniband && (composer.observed.has("cluster") || composer.observed.has(NETWORK_OPERATOR_KEY)) {
        composer.release(NETWORK_OPERATOR_KEY, &NETWORK_OPERATOR, network_operator_values());
    }
    if composer.observed.has("cluster") || composer.observed.has(STORAGE_CLASS_KEY) {
        let mut class = StorageClass::new(STORAGE_CLASS, "file.csi.azure.com")
            .with_parameters([("skuName", "Premium_LRS")]);
        class.mount_options = MOUNT_OPTIONS;
        class.reclaim_policy = Some("Delete");
        class.allow_volume_expansion = Some(true);
        class.volume_binding_mode = "WaitForFirstConsumer";
        composer.storage_class(STORAGE_CLASS_KEY, class);
    }
}

/// Drivers and the shared device plugin, on nodes with accelerators too.
fn network_operator_values() -> Fields<'static> {
    fields! {
        "deployCR": true,
        "ofedDriver": fields! { "deploy": true },
        "rdmaSharedDevicePlugin": fields! { "deploy": true },
        "daemonsets": fields! { "tolerations": node_pool::gpu_tolerations() },
    }
}
