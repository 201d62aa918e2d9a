//! Runs the simulated clusters that `SimulatedCluster` objects of a control plane ask for.
//!
//! A cluster has the node pools of the InferenceCluster of its name, with the devices of their InferenceClasses, and
//! puts its kubeconfig into the Secret that the InferenceCluster names. It ends when its SimulatedCluster goes.
//! Where clouds are simulated too, every InferenceCluster of a cloud gets a SimulatedCluster, and [`Clouds`] hands
//! its kubeconfig to the managed resource that would publish it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use modelplane_api::inference_class::InferenceClass;
use modelplane_api::inference_cluster::InferenceCluster;
use modelplane_api::kind::Object;
use modelplane_api::names::{COMPOSITE_LABEL, SIMULATED_LABEL, SYSTEM_NAMESPACE};
use modelplane_engine::cache::{CacheError, Caches, Change, Keep, Listener};
use modelplane_engine::client::{ApiClient, ClientError, Target, Write};
use modelplane_engine::drivers::CloudSimulator;
use modelplane_engine::metrics::Metrics;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::resource::{API_VERSION, KIND, KUBECONFIG_KEY, SimulatedClusterSpec, definition};
use crate::settings::{Pool, Settings};
use crate::world::text;

/// Field manager of what is written on the control plane.
const MANAGER: &str = "modelplane-simulator";
/// After an error, the next try.
const RETRY: Duration = Duration::from_millis(300);

/// Longest a cloud's managed resource waits for the cluster that stands in for it.
const CLOUD_PATIENCE: Duration = Duration::from_secs(5);

/// The running clusters of a control plane, by name.
pub type Clusters = Arc<Mutex<HashMap<String, Cluster>>>;

/// What is simulated.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Whether serving pods listen on ports.
    pub serve: bool,
    /// Whether the clusters of clouds are simulated as well.
    pub clouds: bool,
}

/// Runs simulated clusters until dropped.
pub struct Controller {
    clusters: Clusters,
    task: JoinHandle<()>,
}

struct Dirty(Arc<Notify>);

impl Listener for Dirty {
    fn changed(&self, _: &Change) {
        self.0.notify_one();
    }
}

impl Controller {
    /// Starts the controller.
    ///
    /// # Errors
    ///
    /// If the definition of SimulatedClusters cannot be installed.
    pub async fn start(control_plane: kube::Client, options: Options) -> Result<Self, ClientError> {
        let api = ApiClient::new(control_plane);
        install_definition(&api).await?;
        let dirty: Arc<Notify> = Arc::default();
        let listener = Arc::new(Dirty(Arc::clone(&dirty)));
        let caches = Caches::new(api, Keep::All, listener, Arc::new(Metrics::default()));
        let clusters = Clusters::default();
        let run = Run { caches, clusters: Arc::clone(&clusters), options };
        let task = tokio::spawn(run.run(dirty));
        Ok(Self { clusters, task })
    }

    /// The running clusters.
    pub fn clusters(&self) -> Clusters {
        Arc::clone(&self.clusters)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A client of the simulated cluster that a kubeconfig's server belongs to, if one does.
pub fn client_for(clusters: &Clusters, server_url: &str) -> Option<kube::Client> {
    let clusters = clusters.lock().unwrap_or_else(PoisonError::into_inner);
    clusters.values().find(|cluster| cluster.server_url() == server_url).map(Cluster::client)
}

/// Gives the managed resources of clouds the clusters that stand in for theirs.
pub struct Clouds(pub Clusters);

impl Clouds {
    fn kubeconfig_of(&self, name: &str) -> Option<String> {
        let clusters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clusters.get(name).map(|cluster| cluster.kubeconfig().to_owned())
    }
}

impl CloudSimulator for Clouds {
    fn kubeconfig<'a>(&'a self, object: &'a Value) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            // Everything below an InferenceCluster carries its name.
            let name = object["metadata"]["labels"][COMPOSITE_LABEL].as_str()?;
            let deadline = tokio::time::Instant::now() + CLOUD_PATIENCE;
            loop {
                if let Some(kubeconfig) = self.kubeconfig_of(name) {
                    return Some(kubeconfig);
                }
                if tokio::time::Instant::now() > deadline {
                    return None;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
    }
}

async fn install_definition(api: &ApiClient) -> Result<(), ClientError> {
    let definition = definition();
    let resource = api.resource("apiextensions.k8s.io/v1", "CustomResourceDefinition").await?;
    let target = Target::named("", text(&definition, "/metadata/name"));
    api.write(&resource, &target, Write::Apply(MANAGER), &definition).await?;
    for _ in 0..100 {
        api.forget_resources(API_VERSION);
        if api.resource(API_VERSION, KIND).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    api.resource(API_VERSION, KIND).await.map(drop)
}

struct Run {
    caches: Caches,
    clusters: Clusters,
    options: Options,
}

/// A pass could not be completed.
#[derive(Debug, thiserror::Error)]
enum PassError {
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl Run {
    async fn run(self, dirty: Arc<Notify>) {
        loop {
            let retry = match self.pass().await {
                Ok(()) => None,
                Err(error) => {
                    tracing::debug!(%error, "simulated clusters are looked at again");
                    Some(RETRY)
                }
            };
            match retry {
                None => dirty.notified().await,
                Some(after) => drop(tokio::time::timeout(after, dirty.notified()).await),
            }
        }
    }

    /// Starts, configures and ends clusters as their objects say.
    async fn pass(&self) -> Result<(), PassError> {
        if self.options.clouds {
            self.simulate_clouds().await?;
        }
        let wanted = self.caches.kind(API_VERSION, KIND).await?.list(None);
        let names: Vec<&str> = wanted.iter().map(|object| object.key.name.as_str()).collect();
        self.lock().retain(|name, _| names.contains(&name.as_str()));
        for object in &wanted {
            let object = object.value();
            let status = match self.one(&object).await {
                Ok(status) => status,
                Err(message) => json!({"message": message.to_string()}),
            };
            self.report(&object, status).await?;
        }
        Ok(())
    }

    /// Makes the SimulatedCluster of every cloud's cluster; it goes with its InferenceCluster.
    async fn simulate_clouds(&self) -> Result<(), PassError> {
        let kind = InferenceCluster::INFO;
        let simulated = self.caches.kind(API_VERSION, KIND).await?;
        for cluster in self.caches.kind(&kind.api_version(), kind.kind).await?.list(None) {
            let name = &cluster.key.name;
            let value = cluster.value();
            let is_cloud = value["spec"]["cluster"]["existing"].is_null();
            if !is_cloud || cluster.is_deleting() || simulated.get("", name).is_some() {
                continue;
            }
            let body = json!({
                "apiVersion": API_VERSION, "kind": KIND,
                "metadata": {
                    "name": name,
                    "ownerReferences": [{
                        "apiVersion": cluster.api_version(), "kind": kind.kind, "name": name, "uid": cluster.uid,
                    }],
                },
                "spec": {},
            });
            let target = Target::named("", name);
            let written =
                self.caches.api().write(simulated.resource(), &target, Write::Apply(MANAGER), &body).await?;
            self.caches.put(written);
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Cluster>> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings one cluster to what its object says; gives its status.
    async fn one(&self, object: &Value) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let name = text(object, "/metadata/name");
        let spec = if object["spec"].is_null() { json!({}) } else { object["spec"].clone() };
        let spec: SimulatedClusterSpec = serde_json::from_value(spec)?;
        let kind = InferenceCluster::INFO;
        let Some(cluster) = self.caches.kind(&kind.api_version(), kind.kind).await?.get("", name) else {
            return Ok(json!({"message": format!("there is no InferenceCluster {name} yet")}));
        };
        let cluster: InferenceCluster = cluster.document().decode()?;
        let existing = cluster.spec.cluster.existing.as_ref();
        if existing.is_none() && !self.options.clouds {
            let message = format!(
                "InferenceCluster {name} is a cloud's; `modelplane up --simulate-clouds` simulates those"
            );
            return Ok(json!({ "message": message }));
        }
        let mut settings = Settings::new(name, self.pools(&cluster).await?);
        settings.ready_after = spec.ready_after();
        settings.token_time = spec.token_time();
        settings.faults = spec.faults();
        settings.serve = self.options.serve;
        let nodes: u32 = settings.pools.iter().map(|pool| pool.nodes).sum();
        let known = self.lock().get(name).map(|cluster| cluster.configure(settings.clone()));
        if known.is_none() {
            let started = Cluster::start(settings).await?;
            self.lock().insert(name.to_owned(), started);
        }
        let (server, gateway, kubeconfig) = {
            let clusters = self.lock();
            let Some(cluster) = clusters.get(name) else { return Ok(json!({})) };
            (cluster.server_url().to_owned(), cluster.edge().to_string(), cluster.kubeconfig().to_owned())
        };
        if let Some(existing) = existing {
            self.publish(&existing.secret_ref.name, &kubeconfig).await?;
        }
        Ok(json!({"server": server, "gateway": gateway, "nodes": nodes, "message": ""}))
    }

    /// The pools of a cluster with the devices of their classes. A class that is not there yet has none.
    async fn pools(&self, cluster: &InferenceCluster) -> Result<Vec<Pool>, CacheError> {
        let kind = InferenceClass::INFO;
        let classes = self.caches.kind(&kind.api_version(), kind.kind).await?;
        let devices = |class: &str| {
            let class: InferenceClass = classes.get("", class)?.document().decode().ok()?;
            Some(class.spec.devices)
        };
        let pools = cluster.spec.node_pools.iter().map(|pool| Pool {
            name: pool.name.clone(),
            nodes: u32::try_from(pool.nodes()).unwrap_or(0),
            devices: devices(&pool.class_name).unwrap_or_default(),
        });
        Ok(pools.collect())
    }

    /// Puts a kubeconfig where the InferenceCluster looks for it.
    async fn publish(&self, secret: &str, kubeconfig: &str) -> Result<(), PassError> {
        let wanted = STANDARD.encode(kubeconfig);
        let cache = self.caches.kind("v1", "Secret").await?;
        let known = cache.get(SYSTEM_NAMESPACE, secret);
        if known.is_some_and(|known| known.text_at(&["data", KUBECONFIG_KEY]) == Some(&wanted)) {
            return Ok(());
        }
        let body = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": secret, "namespace": SYSTEM_NAMESPACE, "labels": {SIMULATED_LABEL: "true"}},
            "data": {KUBECONFIG_KEY: wanted},
        });
        let target = Target::named(SYSTEM_NAMESPACE, secret);
        let written =
            self.caches.api().write(cache.resource(), &target, Write::Apply(MANAGER), &body).await?;
        self.caches.put(written);
        Ok(())
    }

    async fn report(&self, object: &Value, status: Value) -> Result<(), PassError> {
        let same = status.as_object().is_some_and(|fields| {
            fields.iter().all(|(key, value)| {
                let known = &object["status"][key];
                known == value
                    || (known.is_null() && value == "")
                    || known.as_f64() == value.as_f64() && value.is_number()
            })
        });
        if same {
            return Ok(());
        }
        let cache = self.caches.kind(API_VERSION, KIND).await?;
        let target = Target::named("", text(object, "/metadata/name")).status();
        let body = json!({ "status": status });
        let written = self.caches.api().write(cache.resource(), &target, Write::Merge, &body).await?;
        self.caches.put(written);
        Ok(())
    }
}
