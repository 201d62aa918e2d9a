//! Clusters on Google Kubernetes Engine (spec clusters §4).

use modelplane_api::common::{ClusterSecret, PoolRole, SecretType};
use modelplane_api::gke_cluster::{GKECluster, GKEClusterSpec, Gpu, Networking, NodePool};
use modelplane_api::inference_class::{GkeProvisioning, Provisioning};
use modelplane_api::inference_cluster::{ClusterSource, GkeSource, SourceKind};
use modelplane_api::kind::{KindInfo, Object};
use modelplane_api::names::SYSTEM_POOL;

use super::provider::{Cloud, DEFAULT_DISK_SIZE_GB, PoolRequest, Sizing, complete};
use super::{
    AddressRange, Composer, Fields, Managed, ManagedKind, Selector, StorageClass, Tool, fields, node_pool,
};
use crate::contract::{ComposeError, Desired, Observed, Ready, Required, Severity};

/// Google Kubernetes Engine.
#[derive(Debug)]
pub struct Gke;

const NETWORK: ManagedKind = ManagedKind::new("compute.gcp.m.upbound.io/v1beta1", "Network");
const SUBNETWORK: ManagedKind = ManagedKind::new("compute.gcp.m.upbound.io/v1beta1", "Subnetwork");
const CLUSTER: ManagedKind = ManagedKind::new("container.gcp.m.upbound.io/v1beta1", "Cluster");
const NODE_POOL: ManagedKind = ManagedKind::new("container.gcp.m.upbound.io/v1beta1", "NodePool");
const PROJECT_SERVICE: ManagedKind =
    ManagedKind::new("cloudplatform.gcp.m.upbound.io/v1beta1", "ProjectService");
const SERVICE_ACCOUNT: ManagedKind =
    ManagedKind::new("cloudplatform.gcp.m.upbound.io/v1beta1", "ServiceAccount");
const SERVICE_ACCOUNT_KEY: ManagedKind =
    ManagedKind::new("cloudplatform.gcp.m.upbound.io/v1beta1", "ServiceAccountKey");
const PROJECT_IAM_MEMBER: ManagedKind =
    ManagedKind::new("cloudplatform.gcp.m.upbound.io/v1beta1", "ProjectIAMMember");

const PROVIDER_CONFIG_REQUIREMENT: &str = "gcp-provider-config";
const PROVIDER_CONFIG_API_VERSION: &str = "gcp.m.upbound.io/v1beta1";
/// What the workload identity pool of a project is called after it.
const WORKLOAD_POOL_SUFFIX: &str = ".svc.id.goog";
const STORAGE_CLASS: &str = "modelplane-rwx";
const STORAGE_CLASS_KEY: &str = "storage-class-rwx";
/// Node label by which NVIDIA's DRA driver finds GKE's nodes with accelerators.
const DRA_DRIVER_LABEL: &str = "cloud.google.com/gke-nvidia-gpu-dra-driver";
const SERVICE_ACCOUNT_SECRET_KEY: &str = "private_key";

impl Cloud for Gke {
    type Source = GkeSource;
    type Recipe = GkeProvisioning;
    type Pool = NodePool;
    type Spec = GKEClusterSpec;

    const SOURCE: SourceKind = SourceKind::Gke;
    const BLOCK: &'static str = "gke";
    const CLUSTER: &'static KindInfo = GKECluster::INFO;
    const IDENTITY: Option<SecretType> = Some(SecretType::GoogleApplicationCredentials);
    const NVIDIA_DRIVER_ROOT: Option<&'static str> = Some("/home/kubernetes/bin/nvidia");
    const SIZING: Sizing = Sizing::Bounds;
    const NEEDS_ZONES: bool = true;

    fn source(cluster: &ClusterSource) -> Option<&GkeSource> {
        cluster.gke.as_ref()
    }

    fn recipe(provisioning: &Provisioning) -> Option<&GkeProvisioning> {
        provisioning.gke.as_ref()
    }

    fn pool(request: &PoolRequest<'_, GkeProvisioning>) -> NodePool {
        let recipe = request.recipe;
        NodePool {
            name: request.pool.name.clone(),
            role: PoolRole::Gpu,
            machine_type: recipe.machine_type.clone(),
            disk_size_gb: Some(recipe.disk_size_gb.unwrap_or(DEFAULT_DISK_SIZE_GB)),
            node_count: Some(request.size.nodes),
            min_node_count: request.size.min,
            max_node_count: request.size.max,
            zones: request.pool.zones.clone(),
            gpu: Some(Gpu {
                accelerator_type: recipe.accelerator.type_.clone(),
                accelerator_count: Some(recipe.accelerator.count),
            }),
        }
    }

    fn spec(source: &GkeSource, node_pools: Vec<NodePool>) -> GKEClusterSpec {
        let mut spec = GKEClusterSpec {
            project: source.project.clone(),
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

/// Composes a `GKECluster`.
fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let GKECluster { spec, .. } = observed.decode_composite()?;
    let mut cluster = Composer::new(observed, spec.credentials.as_ref())?;
    let fallback = Networking::default();
    let networking = spec.networking.as_ref().unwrap_or(&fallback);
    for overlap in overlaps(networking).map_err(|problem| observed.error(problem))? {
        cluster.desired.event(Severity::Warning, overlap);
    }
    let project = match project(&mut cluster, &spec) {
        Ok(project) => project,
        Err((severity, message)) => return Ok(cluster.wait(severity, message)),
    };
    let mut gke = GkeComposer { cluster, spec: &spec, networking };
    gke.network();
    gke.control_plane(&project);
    gke.node_pools();
    gke.identity();
    gke.storage();
    let secrets = [gke.cluster.kubeconfig_secret(), gke.service_account_secret()];
    gke.cluster.publish(&secrets, Some(STORAGE_CLASS));
    Ok(gke.cluster.desired)
}

/// The project the cluster is in: what the spec says (only in the v0.1 shape of the API), else the provider
/// config, else what the cluster was made with.
fn project(cluster: &mut Composer<'_, '_>, spec: &GKEClusterSpec) -> Result<String, (Severity, String)> {
    let config = cluster.require_provider_config(PROVIDER_CONFIG_REQUIREMENT, PROVIDER_CONFIG_API_VERSION);
    if let Some(project) = &spec.project {
        return Ok(project.clone());
    }
    let name = cluster.credentials();
    let problem = match config {
        Required::Present(items) => {
            if let Some(project) = items[0].document.text_at(&["spec", "projectID"]) {
                return Ok(project.to_owned());
            }
            (Severity::Warning, format!("{name} has no spec.projectID; set it to the Google Cloud project"))
        }
        Required::NotFetched | Required::Absent => (Severity::Normal, format!("{name} does not exist")),
    };
    let Some(project) = observed_project(cluster.observed) else {
        let (severity, problem) = problem;
        return Err((severity, format!("{problem}; the cluster is composed once the project is known")));
    };
    cluster.desired.event(problem.0, format!("{}; keeping project {project}", problem.1));
    Ok(project.to_owned())
}

fn observed_project<'a>(observed: &Observed<'a>) -> Option<&'a str> {
    let path = ["spec", "forProvider", "workloadIdentityConfig", "workloadPool"];
    let pool = observed.resources.get("cluster")?.document.text_at(&path)?;
    pool.strip_suffix(WORKLOAD_POOL_SUFFIX).filter(|project| !project.is_empty())
}

/// Address ranges that overlap, which Google will refuse; an error if one cannot be read.
fn overlaps(networking: &Networking) -> Result<Vec<String>, String> {
    let named = [
        ("nodeCidr", networking.node_cidr()),
        ("podCidr", networking.pod_cidr()),
        ("serviceCidr", networking.service_cidr()),
    ];
    let mut ranges: Vec<(&str, AddressRange)> = Vec::with_capacity(named.len());
    let mut warnings = Vec::new();
    for (field, text) in named {
        let range = AddressRange::parse(&format!("spec.networking.{field}"), text)?;
        for (other, earlier) in ranges.iter().filter(|(_, earlier)| earlier.overlaps(range)) {
            let problem = format!("spec.networking.{field} {range} overlaps {other} {earlier}");
            warnings.push(format!("{problem}; set both to ranges that are free"));
        }
        ranges.push((field, range));
    }
    Ok(warnings)
}

/// One pass over one GKE cluster.
struct GkeComposer<'r, 'a> {
    cluster: Composer<'r, 'a>,
    spec: &'r GKEClusterSpec,
    networking: &'r Networking,
}

impl GkeComposer<'_, '_> {
    /// Composes a resource in the project. The provider config settles the project unless the spec names one.
    fn add(&mut self, key: impl Into<String>, managed: Managed<'_>) {
        match &self.spec.project {
            None => self.cluster.managed(key, managed),
            Some(project) => self.cluster.managed(key, managed.with("project", project.as_str())),
        }
    }

    fn network(&mut self) {
        let networking = self.networking;
        let ranges = [("pods", networking.pod_cidr()), ("services", networking.service_cidr())]
            .map(|(name, cidr)| fields! {"rangeName": name, "ipCidrRange": cidr});
        let subnet = fields! {
            "region": self.spec.region.as_str(),
            "networkSelector": Selector::sibling(),
            "ipCidrRange": networking.node_cidr(),
            "secondaryIpRange": ranges,
        };
        let filestore = fields! {"service": "file.googleapis.com", "disableOnDestroy": false};
        self.add("network", Managed::new(NETWORK, fields! {"autoCreateSubnetworks": false}));
        self.add("subnet", Managed::new(SUBNETWORK, subnet));
        self.add("projectservice-filestore", Managed::new(PROJECT_SERVICE, filestore));
    }

    fn control_plane(&mut self, project: &str) {
        let for_provider = fields! {
            "location": self.spec.region.as_str(),
            "deletionProtection": false,
            "removeDefaultNodePool": true,
            "initialNodeCount": 1,
            "minMasterVersion": self.spec.kubernetes_version(),
            "networkSelector": Selector::sibling(),
            "subnetworkSelector": Selector::sibling(),
            "ipAllocationPolicy": fields! {
                "clusterSecondaryRangeName": "pods",
                "servicesSecondaryRangeName": "services",
            },
            "releaseChannel": fields! {"channel": "REGULAR"},
            "workloadIdentityConfig": fields! {"workloadPool": format!("{project}{WORKLOAD_POOL_SUFFIX}")},
            "addonsConfig": fields! {"gcpFilestoreCsiDriverConfig": fields! {"enabled": true}},
        };
        let secret = self.cluster.kubeconfig.clone();
        self.add("cluster", Managed::new(CLUSTER, for_provider).writing_secret(&secret));
    }

    fn node_pools(&mut self) {
        let spec = self.spec;
        let system = fields! {
            "machineType": "e2-standard-4",
            "labels": node_pool::labels(SYSTEM_POOL, None).into_iter().collect::<Fields<'_>>(),
        };
        let fields = node_pool(&spec.region, 1, (1, 2), system);
        self.add("nodepool-system", Managed::new(NODE_POOL, fields));
        for pool in &spec.node_pools {
            let size = (pool.min_node_count(), pool.max_node_count());
            let mut fields = node_pool(&spec.region, pool.node_count(), size, node_config(pool));
            if !pool.zones.is_empty() {
                let zones: Vec<&str> = pool.zones.iter().map(String::as_str).collect();
                fields = fields.with("nodeLocations", zones);
            }
            self.add(format!("nodepool-{}", pool.name), Managed::new(NODE_POOL, fields));
        }
    }

    /// The service account by which the control plane works on the cluster, and the provider configs with it.
    fn identity(&mut self) {
        let account = fields! {"displayName": format!("Crossplane GKECluster {}", self.cluster.name)};
        self.add("service-account", Managed::new(SERVICE_ACCOUNT, account));

        let secret = self.service_account_secret();
        let key = fields! {"serviceAccountIdSelector": Selector::sibling()};
        let key = Managed::new(SERVICE_ACCOUNT_KEY, key).writing_secret(&secret.name);
        self.cluster.managed("service-account-key", key);

        let account = self.cluster.observed.resources.get("service-account");
        match account.and_then(|account| account.document.text_at(&["status", "atProvider", "email"])) {
            None => self.cluster.hold("iam-binding", Ready::Unspecified),
            Some(email) => {
                let member = format!("serviceAccount:{email}");
                let binding = fields! {"role": "roles/container.admin", "member": member};
                self.add("iam-binding", Managed::new(PROJECT_IAM_MEMBER, binding));
            }
        }
        for tool in [Tool::Kubernetes, Tool::Helm] {
            self.cluster.provider_config(tool, Some(&secret));
        }
    }

    fn service_account_secret(&self) -> ClusterSecret {
        ClusterSecret {
            type_: SecretType::GoogleApplicationCredentials,
            name: self.cluster.child("sa-key"),
            key: SERVICE_ACCOUNT_SECRET_KEY.to_owned(),
            namespace: None,
        }
    }

    fn storage(&mut self) {
        let Some(network) = self.cluster.external_name("network") else {
            return self.cluster.hold(STORAGE_CLASS_KEY, Ready::True);
        };
        let mut class = StorageClass::new(STORAGE_CLASS, "filestore.csi.storage.gke.io")
            .with_parameters([("tier", "enterprise"), ("network", network)]);
        class.allow_volume_expansion = Some(true);
        self.cluster.storage_class(STORAGE_CLASS_KEY, class);
    }
}

fn node_pool<'p>(region: &'p str, nodes: i64, (min, max): (i64, i64), config: Fields<'p>) -> Fields<'p> {
    let common = fields! {
        "imageType": "COS_CONTAINERD",
        "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
    };
    fields! {
        "location": region,
        "clusterSelector": Selector::sibling(),
        "initialNodeCount": nodes,
        "autoscaling": fields! {"minNodeCount": min, "maxNodeCount": max},
        "nodeConfig": config.and(common),
    }
}

/// GKE adds the taint of nodes with accelerators itself.
fn node_config(pool: &NodePool) -> Fields<'_> {
    let gpu = node_pool::accelerators(pool.role, pool.gpu.as_ref());
    let labels = node_pool::labels(&pool.name, gpu.map(|gpu| gpu.accelerator_type.as_str()));
    let labels: Fields<'_> = labels.into_iter().collect();
    let config = fields! {"machineType": pool.machine_type.as_str(), "diskSizeGb": pool.disk_size_gb()};
    let Some(gpu) = gpu else { return config.with("labels", labels) };
    let accelerator = fields! {
        "type": gpu.accelerator_type.as_str(),
        "count": gpu.accelerator_count(),
        "gpuDriverInstallationConfig": fields! {"gpuDriverVersion": "DEFAULT"},
    };
    config.with("labels", labels.with(DRA_DRIVER_LABEL, "true")).with("guestAccelerator", [accelerator])
}
