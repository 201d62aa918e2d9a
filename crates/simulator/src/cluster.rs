//! A running simulated cluster: its API server, the loop that carries plans out, its gateway and its engines.

mod api;
mod door;
mod gate;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use modelplane_engine::cache::{CacheError, Caches, Change, Keep, Listener};
use modelplane_engine::client::{ApiClient, ClientError, Propagation, Target, Write};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::edge::{Edge, Table};
use crate::inference::Engine;
use crate::plan::{Action, Ages, Place, Plan, Planner, serving_pods};
use crate::settings::Settings;
use crate::world::{Reader, World, text, uid};

/// Changes that come close together are looked at together.
const DEBOUNCE: Duration = Duration::from_millis(5);
/// The share of its time a cluster may spend on looking is one in so many.
const DEBOUNCE_FACTOR: u32 = 5;
const LONGEST_DEBOUNCE: Duration = Duration::from_millis(250);
/// How long nothing has to happen until a cluster is at rest.
const REST: Duration = Duration::from_secs(2);
/// After an error, the next try.
const RETRY: Duration = Duration::from_millis(200);

/// A simulated cluster could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its API server could not be started.
    #[error("cannot start the API server of simulated cluster {cluster}")]
    ApiServer {
        /// The cluster.
        cluster: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It has no port to listen on.
    #[error("cannot listen for simulated cluster {cluster}")]
    Listen {
        /// The cluster.
        cluster: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// A running simulated cluster; it ends when dropped.
pub struct Cluster {
    client: kube::Client,
    server_url: String,
    kubeconfig: String,
    edge: SocketAddr,
    settings: watch::Sender<Settings>,
    tasks: Vec<JoinHandle<()>>,
}

/// Tells the loop that something changed.
struct Dirty(Arc<Notify>);

impl Listener for Dirty {
    fn changed(&self, _: &Change) {
        self.0.notify_one();
    }
}

impl Cluster {
    /// Starts a cluster on loopback.
    ///
    /// # Errors
    ///
    /// If its API server cannot be started or a port cannot be had.
    pub async fn start(settings: Settings) -> Result<Self, StartError> {
        let edge = Edge::bind().await.map_err(|source| listen_error(&settings.name, source))?;
        let address = edge.address();
        let (settings, receiver) = watch::channel(settings);
        let api = api::start(receiver.clone()).await?;
        let client = ApiClient::new(kube::Client::new(api.service.clone(), "default"));
        let run = Loop {
            caches: Arc::new(Caches::new(
                client,
                Keep::All,
                Arc::new(Dirty(Arc::clone(&api.dirty))),
                api.metrics,
            )),
            dirty: api.dirty,
            settings: receiver.clone(),
            address,
            table: edge.table(),
            planner: Planner::default(),
            reader: Reader::default(),
            scheduled: HashMap::new(),
            engines: HashMap::new(),
        };
        let gate_settings = receiver.clone();
        let mut tasks = vec![tokio::spawn(run.run()), tokio::spawn(edge.serve(receiver))];
        tasks.extend(api.tasks);
        Ok(Self {
            client: kube::Client::new(gate::Gate::new(api.service, gate_settings), "default"),
            server_url: api.server_url,
            kubeconfig: api.kubeconfig,
            edge: address,
            settings,
            tasks,
        })
    }

    /// A client of its API server that needs no connection.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// URL of its API server.
    pub fn server_url(&self) -> &str {
        &self.server_url
    }

    /// A kubeconfig with which its API server can be reached.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Where its gateway listens.
    pub fn edge(&self) -> SocketAddr {
        self.edge
    }

    /// Its settings.
    pub fn settings(&self) -> Settings {
        self.settings.borrow().clone()
    }

    /// Changes its settings.
    pub fn configure(&self, settings: Settings) {
        self.settings.send_if_modified(|current| {
            let changed = *current != settings;
            *current = settings;
            changed
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// A pass could not be made.
#[derive(Debug, thiserror::Error)]
enum PassError {
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error("cannot start an engine")]
    Engine(#[from] std::io::Error),
}

fn listen_error(cluster: &str, source: std::io::Error) -> StartError {
    StartError::Listen { cluster: cluster.to_owned(), source }
}

/// What one cluster's loop holds.
struct Loop {
    caches: Arc<Caches>,
    dirty: Arc<Notify>,
    settings: watch::Receiver<Settings>,
    address: SocketAddr,
    table: watch::Sender<Arc<Table>>,
    planner: Planner,
    reader: Reader,
    /// When each pod was first seen on a node, by unique id.
    scheduled: HashMap<String, Instant>,
    /// Engines by unique id of their pod.
    engines: HashMap<String, Engine>,
}

impl Loop {
    async fn run(mut self) {
        let mut wake_at = Some(Instant::now());
        let mut debounce = DEBOUNCE;
        let mut at_rest = true;
        loop {
            let timer = async {
                match wake_at {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            let rest = async {
                match at_rest {
                    true => std::future::pending().await,
                    false => tokio::time::sleep(REST).await,
                }
            };
            tokio::select! {
                () = timer => {}
                () = self.dirty.notified() => tokio::time::sleep(debounce).await,
                changed = self.settings.changed() => if changed.is_err() { return },
                () = rest => {
                    self.reader.clear();
                    at_rest = true;
                    continue;
                }
            }
            let begun = Instant::now();
            let wake_after = match self.pass().await {
                Ok(wake_after) => wake_after,
                Err(error) => {
                    tracing::debug!(%error, cluster = self.settings.borrow().name, "a pass failed and is tried again");
                    Some(RETRY)
                }
            };
            wake_at = wake_after.map(|after| Instant::now() + after);
            debounce = (begun.elapsed() * DEBOUNCE_FACTOR).clamp(DEBOUNCE, LONGEST_DEBOUNCE);
            at_rest = false;
        }
    }

    /// Looks at everything, does what is to be done, and says when to look again.
    async fn pass(&mut self) -> Result<Option<Duration>, PassError> {
        let settings = self.settings.borrow_and_update().clone();
        // Taken out, so that the rest can be worked on meanwhile; one that is lost to an error is read anew.
        let mut reader = std::mem::take(&mut self.reader);
        let world = reader.read(&self.caches).await?;
        let ages = self.ages(world);
        let plan = self.planner.plan(world, &settings, &self.address.to_string(), &ages);
        self.run_engines(world, &settings).await?;
        self.table
            .send_replace(Arc::new(Table::of(world, |pod| self.engines.get(uid(pod)).map(Engine::address))));
        self.reader = reader;
        self.carry_out(plan).await
    }

    /// How long each pod has been on its node.
    fn ages(&mut self, world: &World) -> Ages {
        let now = Instant::now();
        let on_nodes = world.pods.iter().filter(|pod| !text(pod, "/spec/nodeName").is_empty());
        let scheduled: HashMap<String, Instant> = on_nodes
            .map(|pod| (uid(pod).to_owned(), self.scheduled.get(uid(pod)).copied().unwrap_or(now)))
            .collect();
        self.scheduled = scheduled;
        self.scheduled.iter().map(|(uid, since)| (uid.clone(), now - *since)).collect()
    }

    /// Starts an engine for each pod that serves, and stops those whose pod is gone.
    async fn run_engines(&mut self, world: &World, settings: &Settings) -> Result<(), PassError> {
        let serving: HashMap<&str, &serde_json::Value> = world
            .inference_pools
            .iter()
            .flat_map(|pool| serving_pods(world, pool))
            .filter(|_| settings.serve)
            .map(|pod| (uid(pod), pod))
            .collect();
        self.engines.retain(|pod, _| serving.contains_key(pod.as_str()));
        for (id, pod) in serving {
            if !self.engines.contains_key(id) {
                let engine = Engine::start(pod, &settings.name, self.settings.clone()).await?;
                self.engines.insert(id.to_owned(), engine);
            }
        }
        Ok(())
    }

    async fn carry_out(&self, plan: Plan) -> Result<Option<Duration>, PassError> {
        let mut retry = None;
        for action in plan.actions {
            if let Err(error) = self.act(&action).await {
                // Somebody else was faster; the next pass sees what they did.
                if !(error.is_conflict() || error.is_not_found()) {
                    tracing::debug!(%error, ?action, "a simulated change was refused");
                }
                retry = Some(RETRY);
            }
        }
        Ok(match (plan.wake_after, retry) {
            (Some(wake), Some(retry)) => Some(wake.min(retry)),
            (wake, retry) => wake.or(retry),
        })
    }

    async fn act(&self, action: &Action) -> Result<(), ClientError> {
        let api = self.caches.api();
        match action {
            Action::Create(object) => {
                let place = Place::of(object);
                let resource = api.resource(&place.api_version, &place.kind).await?;
                self.caches.put(api.create(&resource, object).await?);
            }
            Action::Patch(place, body) => {
                let resource = api.resource(&place.api_version, &place.kind).await?;
                let target = Target::named(&place.namespace, &place.name);
                self.caches.put(api.write(&resource, &target, Write::Merge, body).await?);
            }
            Action::Status(place, body) => {
                let resource = api.resource(&place.api_version, &place.kind).await?;
                let target = Target::named(&place.namespace, &place.name).status();
                self.caches.put(api.write(&resource, &target, Write::Merge, body).await?);
            }
            Action::Delete(place) => {
                let resource = api.resource(&place.api_version, &place.kind).await?;
                let target = Target::named(&place.namespace, &place.name);
                api.delete(&resource, &target, None, Propagation::Background).await?;
            }
        }
        Ok(())
    }
}
