//! Starting and stopping: one engine over one API server.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use modelplane_api::kind;
use modelplane_core::compose::object::{OBJECT_API_VERSION, RELEASE_API_VERSION};
use tokio::task::JoinSet;

use crate::bootstrap::{BootstrapError, Definitions};
use crate::cache::{CacheError, Caches, Change, Keep, Listener};
use crate::client::ApiClient;
use crate::clusters::{ClusterConnector, Clusters, Network, provider_config_of};
use crate::composite::CompositeController;
use crate::composite::pipeline::{BuiltIn, Functions};
use crate::composite::relevance::of_wishes;
use crate::controller::run;
use crate::drivers::helm::{HelmProgram, HelmRunner};
use crate::drivers::simulated_helm::SimulatedHelm;
use crate::drivers::{
    self, CloudSimulator, ManagedDriver, ObjectDriver, ProviderConfigController, ReleaseDriver,
};
use crate::events::Recorder;
use crate::metrics::Metrics;
use crate::queue::WorkQueue;
use crate::requirements::Requirements;
use crate::usage::{self, UsageController, UsageIndex};

/// How long work under way may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// What an engine works with.
pub struct Config {
    /// The API server of the control plane.
    pub client: kube::Client,
    /// What composes.
    pub functions: Arc<dyn Functions>,
    /// What is in use; shared with the API server if that asks before deletions.
    pub usages: Arc<UsageIndex>,
    /// Makes clients of kubeconfigs, and says which clusters are simulated.
    pub connector: Arc<dyn ClusterConnector>,
    /// Installs charts on clusters that are real.
    pub helm: Arc<dyn HelmRunner>,
    /// Whether charts for the control plane itself are only recorded.
    pub simulate_control_plane: bool,
    /// Whether clouds' resources are simulated.
    pub simulate_clouds: bool,
    /// Who plays the clouds' clusters, if clouds are simulated.
    pub cloud_simulator: Option<Arc<dyn CloudSimulator>>,
    /// How often everything is looked at without a reason.
    pub poll_interval: Duration,
    /// Objects worked on at the same time, by each controller.
    pub workers: usize,
}

/// A running engine.
pub struct Engine {
    metrics: Arc<Metrics>,
    caches: Arc<Caches>,
    queues: Vec<WorkQueue>,
    tasks: JoinSet<()>,
}

/// An engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The API server could not be prepared.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    /// A kind could not be watched.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl Config {
    /// The usual settings.
    pub fn new(client: kube::Client) -> Self {
        Self {
            client,
            functions: Arc::new(BuiltIn),
            usages: Arc::default(),
            connector: Arc::new(Network),
            helm: Arc::new(HelmProgram::default()),
            simulate_control_plane: false,
            simulate_clouds: false,
            cloud_simulator: None,
            poll_interval: Duration::from_secs(600),
            workers: 8,
        }
    }
}

/// Tells the controllers what changed on the control plane; set up before anything is watched.
#[derive(Default)]
struct Router(OnceLock<Routes>);

struct Routes {
    // Weak, because the controllers own the caches, which own this.
    composites: Weak<CompositeController>,
    usages: Arc<UsageIndex>,
    clusters: Weak<Clusters>,
    caches: Weak<Caches>,
    objects: WorkQueue,
    releases: WorkQueue,
    managed: WorkQueue,
    configs: WorkQueue,
    simulate_clouds: bool,
}

impl Listener for Router {
    fn changed(&self, change: &Change) {
        let (Some(routes), Some(object)) = (self.0.get(), change.object()) else { return };
        // First, so that whoever is told next knows what is in use.
        routes.usages.route(change);
        if let Some(composites) = routes.composites.upgrade() {
            composites.route(change);
        }
        if let Some(clusters) = routes.clusters.upgrade() {
            clusters.route(change);
        }
        if let Some(old) = change.old.as_ref().filter(|_| change.new.is_none())
            && matches!(old.key.group.as_str(), drivers::OBJECT_GROUP | drivers::RELEASE_GROUP)
        {
            routes.configs.add(provider_config_of(old));
        }
        match (object.key.group.as_str(), object.key.kind.as_str()) {
            (drivers::OBJECT_GROUP | drivers::RELEASE_GROUP, "ProviderConfig" | "ClusterProviderConfig") => {
                routes.configs.add(object.key.clone());
            }
            // What drivers report is no reason to drive.
            (drivers::OBJECT_GROUP, "Object") if of_wishes(change) => routes.objects.add(object.key.clone()),
            (drivers::RELEASE_GROUP, "Release") if of_wishes(change) => {
                routes.releases.add(object.key.clone());
            }
            _ if drivers::is_managed(object) => {
                routes.managed.add(object.key.clone());
                if routes.simulate_clouds
                    && let Some(caches) = routes.caches.upgrade()
                {
                    drivers::siblings(&caches, object).into_iter().for_each(|key| routes.managed.add(key));
                }
            }
            _ => {}
        }
    }
}

/// What the controllers share.
struct Parts {
    config: Config,
    caches: Arc<Caches>,
    clusters: Arc<Clusters>,
    metrics: Arc<Metrics>,
}

/// The drivers.
struct Drivers {
    objects: Arc<ObjectDriver>,
    releases: Arc<ReleaseDriver>,
    managed: Arc<ManagedDriver>,
    usages: Arc<UsageController>,
    configs: Arc<ProviderConfigController>,
}

impl Parts {
    fn drivers(&self) -> Drivers {
        let Self { config, caches, clusters, metrics } = self;
        let objects = ObjectDriver {
            caches: Arc::clone(caches),
            clusters: Arc::clone(clusters),
            usages: Arc::clone(&config.usages),
            metrics: Arc::clone(metrics),
            queue: WorkQueue::default(),
            poll_interval: config.poll_interval,
            memory: Default::default(),
        };
        let releases = ReleaseDriver {
            caches: Arc::clone(caches),
            clusters: Arc::clone(clusters),
            usages: Arc::clone(&config.usages),
            metrics: Arc::clone(metrics),
            queue: WorkQueue::default(),
            poll_interval: config.poll_interval,
            helm: Arc::clone(&config.helm),
            simulated: Arc::new(SimulatedHelm),
            looked: Default::default(),
        };
        let managed = ManagedDriver {
            caches: Arc::clone(caches),
            usages: Arc::clone(&config.usages),
            metrics: Arc::clone(metrics),
            queue: WorkQueue::default(),
            simulate: config.simulate_clouds,
            simulator: config.cloud_simulator.clone(),
        };
        let usages = UsageController {
            caches: Arc::clone(caches),
            index: Arc::clone(&config.usages),
            metrics: Arc::clone(metrics),
        };
        let configs = ProviderConfigController {
            caches: Arc::clone(caches),
            metrics: Arc::clone(metrics),
            queue: WorkQueue::default(),
        };
        Drivers {
            configs: Arc::new(configs),
            objects: Arc::new(objects),
            releases: Arc::new(releases),
            managed: Arc::new(managed),
            usages: Arc::new(usages),
        }
    }

    fn routes(&self, composites: &Arc<CompositeController>, drivers: &Drivers) -> Routes {
        Routes {
            composites: Arc::downgrade(composites),
            usages: Arc::clone(&self.config.usages),
            clusters: Arc::downgrade(&self.clusters),
            caches: Arc::downgrade(&self.caches),
            objects: drivers.objects.queue.clone(),
            releases: drivers.releases.queue.clone(),
            managed: drivers.managed.queue.clone(),
            configs: drivers.configs.queue.clone(),
            simulate_clouds: self.config.simulate_clouds,
        }
    }

    /// Starts the workers.
    fn run(self, composites: &Arc<CompositeController>, drivers: &Drivers) -> Engine {
        let Drivers { objects, releases, managed, usages, configs } = drivers;
        let (workers, usage_queue) = (self.config.workers, self.config.usages.queue());
        let mut tasks = JoinSet::new();
        run(composites, &composites.queue, workers, &mut tasks);
        run(objects, &objects.queue, workers, &mut tasks);
        run(releases, &releases.queue, workers, &mut tasks);
        run(managed, &managed.queue, 1, &mut tasks);
        run(configs, &configs.queue, 1, &mut tasks);
        // One, so that counting the usages of an object and unmarking it do not interleave.
        run(usages, usage_queue, 1, &mut tasks);
        let queues =
            [&composites.queue, &objects.queue, &releases.queue, &managed.queue, &configs.queue, usage_queue];
        let queues = queues.into_iter().cloned().collect();
        Engine { metrics: self.metrics, caches: self.caches, queues, tasks }
    }
}

impl Engine {
    /// Installs the definitions, then composes and drives until [`Self::shutdown`].
    ///
    /// # Errors
    ///
    /// If the API server refuses or cannot be reached.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let api = ApiClient::new(config.client.clone());
        let metrics = Arc::new(Metrics::default());
        let definitions = Arc::new(Definitions::new(api.clone()));
        definitions.install().await?;

        let router = Arc::new(Router::default());
        let listener = Arc::clone(&router) as Arc<dyn Listener>;
        let caches = Arc::new(Caches::new(api.clone(), Keep::All, listener, Arc::clone(&metrics)));
        let clusters = Arc::new(Clusters::new(
            Arc::clone(&caches),
            Arc::clone(&config.connector),
            config.simulate_control_plane,
            Arc::clone(&metrics),
        ));
        let composites = Arc::new(CompositeController {
            caches: Arc::clone(&caches),
            functions: Arc::clone(&config.functions),
            definitions,
            usages: Arc::clone(&config.usages),
            events: Recorder::start(api),
            metrics: Arc::clone(&metrics),
            queue: WorkQueue::default(),
            poll_interval: config.poll_interval,
            requirements: Requirements::default(),
            memory: Default::default(),
            placing: Default::default(),
        });
        let parts = Parts { config, caches, clusters, metrics };
        let drivers = parts.drivers();
        let routes = parts.routes(&composites, &drivers);
        // The router is new, so this is the first time.
        let _ = router.0.set(routes);
        let engine = parts.run(&composites, &drivers);
        engine.watch().await?;
        Ok(engine)
    }

    /// Starts watching what is always watched. Usages come first: nothing may be deleted before they are known.
    async fn watch(&self) -> Result<(), CacheError> {
        for kind in usage::KINDS {
            self.caches.kind(usage::API_VERSION, kind).await?;
        }
        let always = [
            ("v1", "Secret"),
            (OBJECT_API_VERSION, "ProviderConfig"),
            (OBJECT_API_VERSION, "ClusterProviderConfig"),
            (RELEASE_API_VERSION, "ProviderConfig"),
            (RELEASE_API_VERSION, "ClusterProviderConfig"),
            (OBJECT_API_VERSION, "Object"),
            (RELEASE_API_VERSION, "Release"),
        ];
        for (api_version, kind) in always {
            self.caches.start(api_version, kind).await?;
        }
        for info in kind::ALL {
            self.caches.start(&info.api_version(), info.kind).await?;
        }
        Ok(())
    }

    /// What the engine counts.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Stops taking on work, lets what is under way end, and returns. What does not end soon is cut off, as a
    /// chart that is being installed: everything here goes on after a restart from wherever it stopped.
    pub async fn shutdown(mut self) {
        self.queues.iter().for_each(WorkQueue::close);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            self.tasks.shutdown().await;
        }
        self.caches.stop();
    }
}
