//! `NebiusCluster`: network, cluster, shared filesystem and node groups on Nebius (clusters-other-clouds §2).
//!
//! Access to the cluster needs the service account behind the provider config, so what is inside the cluster
//! waits until that config is known and names a Secret. What exists stays when the config goes missing or
//! becomes unusable. Infrastructure waits for nothing.

use modelplane_api::common::{ClusterSecret, PoolRole, SecretType};
use modelplane_api::inference_class::{NebiusProvisioning, Provisioning};
use modelplane_api::inference_cluster::{self, ClusterSource, FabricType, NebiusSource, SourceKind};
use modelplane_api::kind::{KindInfo, Object};
use modelplane_api::names::{FABRIC_LABEL, SYSTEM_POOL};
use modelplane_api::nebius_cluster::{Fabric, Gpu, NebiusCluster, NebiusClusterSpec, NodePool};
use serde::Serialize;

use super::provider::{Cloud, DEFAULT_DISK_SIZE_GB, PoolRequest, Sizing, complete};
use super::{Composer, Fields, Managed, ManagedKind, Selector, StorageClass, Tool, fields, node_pool};
use crate::compose::object::{KubernetesObject, Metadata};
use crate::contract::{ComposeError, Desired, Observed, Ready, Required, Resource, Severity};
use crate::document::Document;
use crate::versions::NEBIUS_MOUNTED_FILESYSTEM;

const PROVIDER: &str = "nebius.m.upbound.io/v1beta1";
const VPC: &str = "vpc.nebius.m.upbound.io/v1beta1";
const MK8S: &str = "mk8s.nebius.m.upbound.io/v1beta1";
const COMPUTE: &str = "compute.nebius.m.upbound.io/v1beta1";
const NETWORK: ManagedKind = ManagedKind::new(VPC, "Network");
const SUBNET: ManagedKind = ManagedKind::new(VPC, "Subnet");
const CLUSTER: ManagedKind = ManagedKind::new(MK8S, "Cluster");
const NODE_GROUP: ManagedKind = ManagedKind::new(MK8S, "NodeGroup");
const FILESYSTEM: ManagedKind = ManagedKind::new(COMPUTE, "Filesystem");
const GPU_CLUSTER: ManagedKind = ManagedKind::new(COMPUTE, "GpuCluster");

const CSI_KEY: &str = "release-csi-mounted-fs-path";
const STORAGE_CLASS_KEY: &str = "storage-class-rwx-fs";
/// StorageClass for model weights, on the shared filesystem.
const STORAGE_CLASS: &str = "modelplane-rwx-fs";
/// Tag by which nodes mount the shared filesystem.
const MOUNT_TAG: &str = "modelplane-cache";
/// Size of the shared filesystem in GiB.
const FILESYSTEM_GIB: i64 = 1024;
/// Mounts the shared filesystem at boot and after reboots, as Nebius's CSI driver expects it.
const CLOUD_INIT: &str = r#"#cloud-config
runcmd:
  - mkdir -p /mnt/data
  - mount -t virtiofs modelplane-cache /mnt/data
  - printf "modelplane-cache /mnt/data virtiofs defaults,nofail 0 2\n" >> /etc/fstab
"#;

/// Nebius Managed Kubernetes.
#[derive(Debug)]
pub struct Nebius;

impl Cloud for Nebius {
    type Source = NebiusSource;
    type Recipe = NebiusProvisioning;
    type Pool = NodePool;
    type Spec = NebiusClusterSpec;

    const SOURCE: SourceKind = SourceKind::Nebius;
    const BLOCK: &'static str = "nebius";
    const CLUSTER: &'static KindInfo = NebiusCluster::INFO;
    const IDENTITY: Option<SecretType> = Some(SecretType::NebiusServiceAccountCredentials);
    const SIZING: Sizing = Sizing::FixedOrBounds;

    fn source(cluster: &ClusterSource) -> Option<&NebiusSource> {
        cluster.nebius.as_ref()
    }

    fn recipe(provisioning: &Provisioning) -> Option<&NebiusProvisioning> {
        provisioning.nebius.as_ref()
    }

    fn pool(request: &PoolRequest<'_, NebiusProvisioning>) -> NodePool {
        let recipe = request.recipe;
        let gpu = Gpu {
            accelerator_type: recipe.accelerator.type_.clone(),
            drivers_preset: recipe.drivers_preset.clone(),
        };
        NodePool {
            name: request.pool.name.clone(),
            role: PoolRole::Gpu,
            platform: recipe.platform.clone(),
            preset: recipe.preset.clone(),
            disk_size_gb: Some(recipe.disk_size_gb.unwrap_or(DEFAULT_DISK_SIZE_GB)),
            node_count: Some(request.size.nodes),
            min_node_count: request.size.min,
            max_node_count: request.size.max,
            gpu: Some(Gpu { drivers_preset: Some(gpu.drivers_preset().to_owned()), ..gpu }),
            fabric: request.pool.fabric.as_ref().and_then(requested_fabric),
        }
    }

    fn spec(source: &NebiusSource, node_pools: Vec<NodePool>) -> NebiusClusterSpec {
        let mut spec = NebiusClusterSpec {
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

/// The fabric of a pool in Nebius's terms: only InfiniBand, and only if it says which.
fn requested_fabric(fabric: &inference_cluster::Fabric) -> Option<Fabric> {
    let type_ = Some(fabric.type_or_default()).filter(|type_| *type_ == FabricType::InfiniBand)?;
    Some(Fabric { type_: Some(type_), infiniband: Some(fabric.infiniband.clone()?) })
}

/// Composes a `NebiusCluster`.
fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let cluster: NebiusCluster = observed.decode_composite()?;
    let mut composer = Composer::new(observed, cluster.spec.credentials.as_ref())?;
    let service_account = service_account(&mut composer);
    infrastructure(&mut composer, cluster.spec.kubernetes_version());
    node_groups(&mut composer, &cluster);
    match &service_account {
        Some(secret) => inside(&mut composer, secret),
        None => hold_inside(&mut composer),
    }
    let mut secrets = vec![composer.kubeconfig_secret()];
    secrets.extend(service_account);
    composer.publish(&secrets, Some(STORAGE_CLASS));
    Ok(composer.desired)
}

/// The Secret with the service account: from the provider config, else the one already in use.
fn service_account(composer: &mut Composer<'_, '_>) -> Option<ClusterSecret> {
    let home = composer.namespace;
    let (severity, problem) = match composer.require_provider_config("nebius-provider-config", PROVIDER) {
        Required::Present(configs) => match configs.first().map(|config| secret_of(config, home)) {
            Some(Ok(secret)) => return Some(secret),
            Some(Err(problem)) => (Severity::Warning, problem),
            None => (Severity::Normal, NOT_FOUND),
        },
        Required::Absent | Required::NotFetched => (Severity::Normal, NOT_FOUND),
    };
    let in_use = composer.observed.resources.get(Tool::Kubernetes.key()).and_then(|resource| {
        entry_of(resource.document.get(&["spec", "identity", "secretRef"])?, None, home).ok()
    });
    let effect = match in_use {
        Some(_) => "keeping the credentials in use",
        None => "nothing inside the cluster is composed until that is put right",
    };
    let config = composer.credentials();
    composer.desired.event(severity, format!("{config} {problem}; {effect}"));
    in_use
}

const NOT_FOUND: &str = "does not exist: create it or correct spec.credentials";

/// The Secret a provider config takes its credentials from.
fn secret_of(config: &Resource<'_>, home: &str) -> Result<ClusterSecret, &'static str> {
    let credentials = config.document.get(&["spec", "credentials"]).unwrap_or_default();
    match (credentials.text_at(&["source"]), credentials.get(&["secretRef"])) {
        (Some("Secret"), Some(secret)) => {
            entry_of(secret, config.document.text_at(&["metadata", "namespace"]), home)
        }
        (Some("Secret"), None) => Err("has no spec.credentials.secretRef"),
        _ => Err("has a spec.credentials.source other than Secret, so nobody can authenticate with it"),
    }
}

/// The service account in an entry of a Secret, in `namespace` if the reference does not name one.
fn entry_of(
    reference: Document<'_>,
    namespace: Option<&str>,
    home: &str,
) -> Result<ClusterSecret, &'static str> {
    let part = |field| reference.text_at(&[field]);
    let namespace = part("namespace").or(namespace);
    let namespace = namespace.ok_or("has a secretRef without namespace, so the Secret cannot be found")?;
    Ok(ClusterSecret {
        type_: SecretType::NebiusServiceAccountCredentials,
        name: part("name").ok_or("has a secretRef without name")?.to_owned(),
        key: part("key").ok_or("has a secretRef without key")?.to_owned(),
        namespace: (namespace != home).then(|| namespace.to_owned()),
    })
}

/// Network, control plane and shared filesystem.
fn infrastructure(composer: &mut Composer<'_, '_>, version: &str) {
    let name = composer.name;
    composer.managed("network", Managed::new(NETWORK, fields! { "name": name }));
    let subnet = fields! {
        "name": name,
        "networkIdSelector": Selector::sibling(),
        "ipv4PrivatePools": fields! { "useNetworkPools": true },
    };
    composer.managed("subnet", Managed::new(SUBNET, subnet));
    let control_plane = fields! {
        "version": version,
        "subnetIdSelector": Selector::sibling(),
        "endpoints": fields! { "publicEndpoint": Fields::default() },
    };
    let parameters = fields! { "name": name, "controlPlane": control_plane };
    let kubeconfig = composer.kubeconfig.clone();
    composer.managed("cluster", Managed::new(CLUSTER, parameters).writing_secret(&kubeconfig));
    let filesystem = fields! {
        "name": format!("{name}-cache"),
        "type": "NETWORK_SSD",
        "sizeGibibytes": FILESYSTEM_GIB,
    };
    composer.managed("filesystem", Managed::new(FILESYSTEM, filesystem));
}

/// The Secret with the nodes' boot script.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Script {
    #[serde(rename = "type")]
    type_: &'static str,
    string_data: Fields<'static>,
}

/// The node groups, the InfiniBand fabrics they join, and their boot script.
fn node_groups(composer: &mut Composer<'_, '_>, cluster: &NebiusCluster) {
    let script_name = composer.child("cloud-init");
    let metadata = Metadata::named(script_name.as_str()).and_namespace(composer.namespace);
    let script = Script { type_: "Opaque", string_data: fields! { "userData": CLOUD_INIT } };
    let secret = KubernetesObject::with_content("v1", "Secret", script).with_metadata(metadata);
    composer.ready_object("cloud-init", &secret);

    let name = composer.name;
    for fabric in cluster.spec.node_pools.iter().filter_map(fabric) {
        let parameters = fields! { "name": format!("{name}-{fabric}"), "infinibandFabric": fabric };
        let resource = Managed::new(GPU_CLUSTER, parameters).labelled(FABRIC_LABEL, fabric);
        composer.managed(format!("gpu-cluster-{fabric}"), resource);
    }
    let version = cluster.spec.kubernetes_version();
    for group in std::iter::once(Group::SYSTEM).chain(cluster.spec.node_pools.iter().map(Group::of)) {
        let key = format!("nodegroup-{}", group.name);
        composer.managed(key, group.resource(name, version, &script_name));
    }
}

/// A node group: what differs between groups.
struct Group<'p> {
    name: &'p str,
    size: Size,
    platform: &'p str,
    preset: &'p str,
    disk_gib: i64,
    gpu: Option<&'p Gpu>,
    fabric: Option<&'p str>,
}

/// How many nodes a group has.
enum Size {
    Fixed(i64),
    Between(i64, i64),
}

impl<'p> Group<'p> {
    /// The group that runs the serving stack.
    const SYSTEM: Group<'static> = Group {
        name: SYSTEM_POOL,
        size: Size::Between(1, 2),
        platform: "cpu-d3",
        preset: "4vcpu-16gb",
        disk_gib: 100,
        gpu: None,
        fabric: None,
    };

    /// The group of a pool; a pool called `system` takes the place of [`Self::SYSTEM`].
    fn of(pool: &'p NodePool) -> Self {
        let size = match pool.max_node_count {
            Some(max) => Size::Between(pool.min_node_count.unwrap_or(pool.node_count()), max),
            None => Size::Fixed(pool.node_count()),
        };
        Self {
            name: &pool.name,
            size,
            platform: &pool.platform,
            preset: &pool.preset,
            disk_gib: pool.disk_size_gb(),
            gpu: node_pool::accelerators(pool.role, pool.gpu.as_ref()),
            fabric: fabric(pool),
        }
    }

    fn resource(&self, cluster: &str, version: &'p str, script: &'p str) -> Managed<'p> {
        let parameters = fields! {
            "name": format!("{cluster}-{}", self.name),
            "parentIdSelector": Selector::sibling(),
            "version": version,
            "template": self.template(script),
        };
        let parameters = match self.size {
            Size::Fixed(count) => parameters.with("fixedNodeCount", count),
            Size::Between(min, max) => {
                parameters.with("autoscaling", fields! { "minNodeCount": min, "maxNodeCount": max })
            }
        };
        Managed::new(NODE_GROUP, parameters)
    }

    /// What each node is made of.
    fn template(&self, script: &'p str) -> Fields<'p> {
        let labels = node_pool::labels(self.name, self.gpu.map(|gpu| gpu.accelerator_type.as_str()));
        let filesystem = fields! {
            "attachMode": "READ_WRITE",
            "mountTag": MOUNT_TAG,
            "existingFilesystem": fields! { "idSelector": Selector::sibling() },
        };
        let mut template = fields! {
            "resources": fields! { "platform": self.platform, "preset": self.preset },
            "bootDisk": fields! { "sizeGibibytes": self.disk_gib, "type": "NETWORK_SSD" },
            "networkInterfaces": [fields! { "subnetIdSelector": Selector::sibling() }],
            "filesystems": [filesystem],
            "cloudInitUserDataSecretRef": fields! { "name": script, "key": "userData" },
            "metadata": fields! { "labels": labels.into_iter().collect::<Fields<'_>>() },
        };
        if let Some(gpu) = self.gpu {
            template = template
                .with("gpuSettings", fields! { "driversPreset": gpu.drivers_preset() })
                .with("taints", [node_pool::gpu_taint("NO_SCHEDULE")]);
        }
        if let Some(fabric) = self.fabric {
            let selector = Selector::labelled(FABRIC_LABEL, fabric);
            template = template.with("gpuCluster", fields! { "idSelector": selector });
        }
        template
    }
}

/// The InfiniBand fabric of a pool, if it has one.
fn fabric(pool: &NodePool) -> Option<&str> {
    let fabric = pool.fabric.as_ref().filter(|fabric| fabric.type_or_default() == FabricType::InfiniBand)?;
    fabric.infiniband.as_ref().map(|infiniband| infiniband.fabric.as_str())
}

/// Access to the cluster, and once there is one the CSI driver and StorageClass in it.
fn inside(composer: &mut Composer<'_, '_>, service_account: &ClusterSecret) {
    for tool in [Tool::Kubernetes, Tool::Helm] {
        composer.provider_config(tool, Some(service_account));
    }
    let observed = composer.observed;
    if observed.has("cluster") || observed.has(CSI_KEY) {
        let values = fields! {
            "dataDir": "/mnt/data/csi-mounted-fs-path-data/",
            "tolerations": node_pool::gpu_tolerations(),
        };
        composer.release(CSI_KEY, &NEBIUS_MOUNTED_FILESYSTEM, values);
    }
    if observed.has("cluster") || observed.has(STORAGE_CLASS_KEY) {
        let mut class = StorageClass::new(STORAGE_CLASS, "mounted-fs-path.csi.nebius.ai");
        class.volume_binding_mode = "WaitForFirstConsumer";
        composer.storage_class(STORAGE_CLASS_KEY, class);
    }
}

/// Keeps what is inside the cluster while nobody knows the credentials it was made with.
fn hold_inside(composer: &mut Composer<'_, '_>) {
    for key in [Tool::Kubernetes.key(), Tool::Helm.key(), STORAGE_CLASS_KEY] {
        composer.hold(key, Ready::True);
    }
    composer.hold(CSI_KEY, Ready::Unspecified);
}
