//! The driver of `Object`s: one manifest on one cluster, as provider-kubernetes keeps it.
//!
//! The manifest is applied server-side under provider-kubernetes' field manager. What the cluster makes of
//! it is watched, reported in `status.atProvider.manifest`, and judged by the readiness policy.
//! References to other objects (`spec.references`) and `spec.connectionDetails` are not supported: no
//! composition of this system uses them, and an object that does says so in `Synced`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use modelplane_api::names::{EXTERNAL_NAME_ANNOTATION, PAUSED_ANNOTATION};
use modelplane_core::simulate::ObjectKey;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::status::{Report, adopt, report};
use super::{FINALIZER, NEEDS_CROSSPLANE, Policies, readiness};
use crate::cache::{CacheError, Caches, KindCache};
use crate::client::{Propagation, Target, Write};
use crate::clusters::{AccessError, Cluster, Clusters, User};
use crate::composite::remove_finalizer;
use crate::composite::render::is_within;
use crate::conditions::NewCondition;
use crate::controller::{Controller, Next, ReconcileError};
use crate::metrics::{ControllerMetrics, Metrics};
use crate::object::Stored;
use crate::queue::WorkQueue;
use crate::usage::UsageIndex;

/// Group of `Object`s and of their provider configs.
pub const GROUP: &str = "kubernetes.m.crossplane.io";

/// How soon an object that is not as it should be is looked at without a reason.
const SOON: Duration = Duration::from_secs(30);

/// Keeps `Object`s.
pub struct ObjectDriver {
    pub(crate) caches: Arc<Caches>,
    pub(crate) clusters: Arc<Clusters>,
    pub(crate) usages: Arc<UsageIndex>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) queue: WorkQueue,
    pub(crate) poll_interval: Duration,
    pub(crate) memory: Mutex<HashMap<ObjectKey, Memory>>,
}

/// What is remembered of an `Object`.
pub(crate) struct Memory {
    cluster: Arc<Cluster>,
    target: ObjectKey,
    digest: [u8; 32],
    version: u64,
}

/// What an `Object` puts where.
struct Task {
    cluster: Arc<Cluster>,
    api_version: String,
    target: ObjectKey,
    manifest: Value,
    policies: Policies,
}

impl Controller for ObjectDriver {
    const NAME: &'static str = "object";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(object) = self.caches.get(key) else {
            self.forget(key);
            return Ok(Next::OnChange);
        };
        if object.annotation(PAUSED_ANNOTATION) == Some("true") {
            let paused = NewCondition::not_synced("ReconcilePaused", "paused by annotation");
            report(&self.caches, &object, Report { conditions: vec![paused], at_provider: None }).await?;
            return Ok(Next::OnChange);
        }
        if object.is_deleting() && !object.finalizers().contains(&FINALIZER) {
            self.forget(key);
            return Ok(Next::OnChange);
        }
        let outcome = match self.task(&object).await {
            Ok(task) if object.is_deleting() => self.delete(&object, task).await,
            Ok(task) => self.keep(&object, task).await,
            Err(problem) => Err(problem),
        };
        match outcome {
            Ok(next) => Ok(next),
            Err(problem) => self.fail(&object, problem).await,
        }
    }

    fn metrics(&self) -> &ControllerMetrics {
        &self.metrics.objects
    }
}

/// Why an `Object` is not as it should be.
enum Problem {
    /// Its cluster cannot be worked on.
    Access(AccessError),
    /// Only a change helps.
    Unusable(String),
    /// What it needs on its cluster is not there yet: its kind's definition or its namespace.
    Waiting(String),
    /// Trying again may help.
    Failed(String),
    /// The engine's own request failed.
    Engine(ReconcileError),
}

impl From<ReconcileError> for Problem {
    fn from(error: ReconcileError) -> Self {
        Self::Engine(error)
    }
}

impl From<CacheError> for Problem {
    fn from(error: CacheError) -> Self {
        match &error {
            CacheError::Client(client) if client.is_not_served() => Self::Waiting(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl ObjectDriver {
    async fn task(&self, object: &Stored) -> Result<Task, Problem> {
        let user = User { object, queue: &self.queue };
        let cluster = self.clusters.of(&user).await.map_err(Problem::Access)?;
        let manifest = object.document().get(&["spec", "forProvider", "manifest"]);
        let manifest = manifest.and_then(|manifest| manifest.to_json().ok()).unwrap_or_default();
        let text = |field: &str| manifest[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version.is_empty() || kind.is_empty() {
            return Err(Problem::Unusable("spec.forProvider.manifest has no apiVersion or kind".to_owned()));
        }
        let unsupported = ["references", "connectionDetails"];
        if let Some(field) = unsupported.iter().find(|field| is_filled(object, field)) {
            return Err(Problem::Unusable(format!("spec.{field} is not supported by the embedded driver")));
        }
        let mut manifest = manifest;
        if manifest["metadata"]["name"].as_str().is_none_or(str::is_empty) {
            manifest["metadata"]["name"] = object.key.name.clone().into();
        }
        let target = ObjectKey::of(&manifest);
        Ok(Task { cluster, api_version, target, manifest, policies: Policies::of(object) })
    }

    async fn keep(&self, object: &Arc<Stored>, mut task: Task) -> Result<Next, Problem> {
        let annotations = match object.annotation(EXTERNAL_NAME_ANNOTATION) {
            Some(_) => Vec::new(),
            None => vec![(EXTERNAL_NAME_ANNOTATION, task.target.name.as_str())],
        };
        let object = adopt(&self.caches, object, &annotations, &[]).await?;
        let kind = task.cluster.caches.kind(&task.api_version, &task.target.kind).await?;
        self.follow(&object, &mut task, &kind);
        let live = observe(&task.cluster, &kind, &task.target).await?;
        let observed = match (&live, task.policies) {
            (None, Policies { create: false, .. }) => {
                let target = &task.target;
                return Err(Problem::Failed(format!("{target} does not exist and may not be created")));
            }
            (Some(live), Policies { update: false, .. }) => Arc::clone(live),
            _ => self.apply(&object, &task, &kind, live).await?,
        };
        self.observed(&object, &observed).await
    }

    /// Watches the target from now on, and nothing the object had as its target before.
    fn follow(&self, object: &Stored, task: &mut Task, kind: &KindCache) {
        let target = &mut task.target;
        if !kind.resource().namespaced {
            target.namespace.clear();
        } else if target.namespace.is_empty() {
            // As kubectl would, and provider-kubernetes by its client's default.
            target.namespace = "default".to_owned();
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = memory.get(&object.key)
            && (before.target != *target || !Arc::ptr_eq(&before.cluster, &task.cluster))
        {
            before.cluster.unfollow(&before.target, &object.key);
            memory.remove(&object.key);
        }
        drop(memory);
        kind.subscribe(&target.namespace, &target.name);
        task.cluster.follow(target, &object.key, &self.queue);
    }

    async fn apply(
        &self,
        object: &Stored,
        task: &Task,
        kind: &KindCache,
        live: Option<Arc<Stored>>,
    ) -> Result<Arc<Stored>, Problem> {
        let target = &task.target;
        let mut body = task.manifest.clone();
        if !target.namespace.is_empty() {
            body["metadata"]["namespace"] = target.namespace.clone().into();
        }
        let digest: [u8; 32] = Sha256::digest(body.to_string().as_bytes()).into();
        if let Some(live) = live
            && (self.is_applied(object, digest, &live)
                || self.was_applied(object, digest) && is_within(&body, &live.value()))
        {
            self.remember(object, task, digest, live.version);
            return Ok(live);
        }
        let manager = format!("provider-kubernetes/{}", object.key.name);
        let write = Write::Apply(&manager);
        let written =
            task.cluster.caches.api().write(kind.resource(), &Target::of(target), write, &body).await;
        let written = match task.cluster.note(written) {
            Ok(written) => written,
            Err(error) if error.is_invalid() => return Err(Problem::Unusable(format!("{target}: {error}"))),
            // Applied, so it is the namespace that is not found.
            Err(error) if error.is_not_found() => return Err(Problem::Waiting(format!("{target}: {error}"))),
            Err(error) => return Err(Problem::Failed(format!("{target}: {error}"))),
        };
        let stored = task.cluster.caches.put(written);
        let stored = stored.ok_or_else(|| Problem::Failed(format!("{target}: unreadable answer")))?;
        self.remember(object, task, digest, stored.version);
        Ok(stored)
    }

    /// Whether this very manifest led to what is there.
    fn is_applied(&self, object: &Stored, digest: [u8; 32], live: &Stored) -> bool {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory
            .get(&object.key)
            .is_some_and(|memory| memory.digest == digest && memory.version == live.version)
    }

    fn was_applied(&self, object: &Stored, digest: [u8; 32]) -> bool {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.get(&object.key).is_some_and(|memory| memory.digest == digest)
    }

    fn remember(&self, object: &Stored, task: &Task, digest: [u8; 32], version: u64) {
        let cluster = Arc::clone(&task.cluster);
        let memory = Memory { cluster, target: task.target.clone(), digest, version };
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(object.key.clone(), memory);
    }

    async fn observed(&self, object: &Stored, observed: &Stored) -> Result<Next, Problem> {
        let mut manifest = observed.value();
        if let Some(metadata) = manifest["metadata"].as_object_mut() {
            // Changes with every write, which would make every observation a new one.
            metadata.remove("resourceVersion");
        }
        let ready = readiness::is_ready(object, &manifest);
        let explained = ready.as_ref().err().cloned().unwrap_or_default();
        let condition = match &ready {
            Ok(true) => NewCondition::new("Ready", true, "Available"),
            _ => NewCondition::new("Ready", false, "Unavailable").because(&explained),
        };
        let at_provider = Some(serde_json::json!({"manifest": manifest}));
        let conditions = vec![NewCondition::synced(), condition];
        report(&self.caches, object, Report { conditions, at_provider }).await?;
        let interval = if ready == Ok(true) { self.poll_interval } else { SOON.min(self.poll_interval) };
        Ok(Next::After(interval))
    }

    async fn delete(&self, object: &Stored, mut task: Task) -> Result<Next, Problem> {
        if let Some(in_use) = self.usages.holds(&object.key, &self.queue) {
            return Err(Problem::Unusable(in_use.to_string()));
        }
        if task.policies.delete && !self.is_gone(object, &mut task).await? {
            let conditions = vec![NewCondition::synced(), NewCondition::new("Ready", false, "Deleting")];
            report(&self.caches, object, Report { conditions, at_provider: None }).await?;
            return Ok(Next::After(Duration::from_secs(5)));
        }
        remove_finalizer(self.caches.api(), object, FINALIZER).await?;
        self.forget(&object.key);
        Ok(Next::OnChange)
    }

    /// Deletes the target; whether it is gone.
    async fn is_gone(&self, object: &Stored, task: &mut Task) -> Result<bool, Problem> {
        let kind = match task.cluster.caches.kind(&task.api_version, &task.target.kind).await {
            Ok(kind) => kind,
            // Its definition is gone, and so is every object of it.
            Err(CacheError::Client(error)) if error.is_not_served() => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        self.follow(object, task, &kind);
        let target = &task.target;
        let api = task.cluster.caches.api();
        let live = api.get(kind.resource(), &target.namespace, &target.name).await;
        let live = task.cluster.note(live).map_err(|error| Problem::Failed(format!("{target}: {error}")))?;
        let Some(live) = live.and_then(Stored::from_value) else { return Ok(true) };
        if live.is_deleting() {
            return Ok(false);
        }
        let deleted =
            api.delete(kind.resource(), &Target::of(target), Some(&live.uid), Propagation::Background).await;
        task.cluster.note(deleted).map_err(|error| Problem::Failed(format!("{target}: {error}")))?;
        let left = api.get(kind.resource(), &target.namespace, &target.name).await;
        Ok(left.map_err(|error| Problem::Failed(format!("{target}: {error}")))?.is_none())
    }

    async fn fail(&self, object: &Stored, problem: Problem) -> Result<Next, ReconcileError> {
        // If it is the cluster's fault, that is what is to be said.
        let problem = match problem {
            Problem::Failed(_) | Problem::Waiting(_) => {
                let cluster = self.clusters.of(&User { object, queue: &self.queue }).await;
                cluster.err().map_or(problem, Problem::Access)
            }
            problem => problem,
        };
        let is_waiting = matches!(problem, Problem::Waiting(_));
        let (reason, message, retry) = match problem {
            Problem::Engine(error) => return Err(error),
            Problem::Access(error @ AccessError::NeedsCrossplane { .. }) => {
                (NEEDS_CROSSPLANE, error.to_string(), false)
            }
            Problem::Access(error @ AccessError::Connect { .. }) => {
                ("ReconcileError", error.to_string(), true)
            }
            // Whatever is missing wakes the object when it comes.
            Problem::Access(error) => ("ReconcileError", error.to_string(), false),
            Problem::Unusable(message) => ("ReconcileError", message, false),
            Problem::Waiting(message) | Problem::Failed(message) => ("ReconcileError", message, true),
        };
        let conditions = vec![NewCondition::not_synced(reason, &message)];
        report(&self.caches, object, Report { conditions, at_provider: None }).await?;
        match (is_waiting, retry) {
            (true, _) => Err(ReconcileError::Waiting(message)),
            (false, true) => Err(ReconcileError::Incomplete(message)),
            (false, false) => Ok(Next::After(SOON)),
        }
    }

    fn forget(&self, key: &ObjectKey) {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        if let Some(memory) = memory {
            memory.cluster.unfollow(&memory.target, key);
        }
        self.clusters.forget(key);
    }
}

fn is_filled(object: &Stored, field: &str) -> bool {
    let list: Option<Vec<modelplane_core::document::Document<'_>>> =
        object.document().decode_at(&["spec", field]).ok().flatten();
    list.is_some_and(|list| !list.is_empty())
}

/// The target as it is; read from the cluster if it is not kept yet.
async fn observe(
    cluster: &Cluster,
    kind: &KindCache,
    target: &ObjectKey,
) -> Result<Option<Arc<Stored>>, Problem> {
    if let Some(live) = kind.get(&target.namespace, &target.name) {
        return Ok(Some(live));
    }
    let found = cluster.caches.api().get(kind.resource(), &target.namespace, &target.name).await;
    let found = cluster.note(found).map_err(|error| Problem::Failed(format!("{target}: {error}")))?;
    let Some(found) = found else { return Ok(None) };
    Ok(cluster.caches.put(found))
}
