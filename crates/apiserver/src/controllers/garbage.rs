//! Garbage collection: an object all of whose owners are gone goes too (Kubernetes concepts, "Garbage
//! Collection"). Owners are meant by uid, so one that was deleted and made again is another. A reference that
//! cannot be resolved, to a kind that is not served or across namespaces, keeps its object.

use std::collections::{HashSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use modelplane_store::EventKind;
use serde_json::{Value, json};

use super::client::{Client, Failure, Location, Propagation};
use super::feed::{Change, Feed};
use super::graph::{FOREGROUND, Graph, Meta, ORPHAN, OwnerReference, Work};
use super::{Stop, stopped};
use crate::core::Core;
use crate::object::metadata_text;

const NAME: &str = "generic-garbage-collector";
/// How many requests run at once; their writes are committed together.
const CONCURRENCY: usize = 64;
const RETRY: Duration = Duration::from_millis(500);
/// How often references that could not be resolved are tried again.
const RESYNC: Duration = Duration::from_secs(60);

/// Collects garbage until told to stop.
pub(super) async fn run(core: Arc<Core>, mut stop: Stop) {
    let mut feed = Feed::new(&core.store, "");
    let mut collector = Collector::new(Client::new(core, NAME));
    let mut running = FuturesUnordered::new();
    let mut retry = tokio::time::interval(RETRY);
    let mut resync = tokio::time::interval(RESYNC);
    for timer in [&mut retry, &mut resync] {
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        timer.reset();
    }
    loop {
        while running.len() < CONCURRENCY
            && let Some(work) = collector.next()
        {
            for step in collector.plan(&work) {
                running.push(step.run(collector.client.clone(), work.clone()));
            }
        }
        tokio::select! {
            // Changes first, so that decisions rest on the latest graph.
            biased;
            () = stopped(&mut stop) => return,
            change = feed.next() => if !collector.take(change) { return },
            Some(outcome) = running.next(), if !running.is_empty() => collector.finish(outcome),
            _ = retry.tick(), if !collector.failed.is_empty() => collector.retry(),
            _ = resync.tick() => collector.push(collector.graph.all()),
        }
    }
}

struct Collector {
    client: Client,
    graph: Graph,
    queue: VecDeque<Work>,
    queued: HashSet<Work>,
    failed: Vec<Work>,
}

/// One request to make.
enum Step {
    Delete { key: Arc<str>, uid: Arc<str>, propagation: Propagation },
    Patch { key: Arc<str>, patch: Value },
}

type Outcome = (Work, Result<(), Failure>);

impl Step {
    /// Boxed, since requests are large and many run at once.
    fn run(self, client: Client, work: Work) -> Pin<Box<dyn Future<Output = Outcome> + Send>> {
        Box::pin(async move {
            let result = match self {
                Step::Delete { key, uid, propagation } => client.delete(&key, &uid, propagation).await,
                Step::Patch { key, patch } => client.merge(&key, &patch).await,
            };
            (work, result)
        })
    }
}

/// What an owner reference refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// It exists, or cannot be looked for.
    Solid,
    /// It exists and waits for its dependents to go.
    Waiting,
    Gone,
}

impl Collector {
    fn new(client: Client) -> Collector {
        Collector {
            client,
            graph: Graph::default(),
            queue: VecDeque::new(),
            queued: HashSet::new(),
            failed: Vec::new(),
        }
    }

    /// Takes changes into the graph; false at the end.
    fn take(&mut self, change: Change) -> bool {
        match change {
            Change::End => return false,
            Change::All(entries) => {
                self.graph = Graph::default();
                for entry in entries {
                    let work = self.graph.put(&entry.key, &Meta::of(&entry.value));
                    self.push(work);
                }
            }
            Change::Some(events) => {
                for event in events {
                    let meta = Meta::of(&event.value);
                    let work = match event.kind {
                        EventKind::Put => self.graph.put(&event.key, &meta),
                        EventKind::Delete => self.graph.remove(&event.key, &meta.uid),
                    };
                    self.push(work);
                }
            }
        }
        true
    }

    fn push(&mut self, work: Vec<Work>) {
        for work in work {
            if self.queued.insert(work.clone()) {
                self.queue.push_back(work);
            }
        }
    }

    fn next(&mut self) -> Option<Work> {
        let work = self.queue.pop_front()?;
        self.queued.remove(&work);
        Some(work)
    }

    fn finish(&mut self, (work, result): Outcome) {
        match result {
            Ok(()) => {}
            // What made it outdated may need another look.
            Err(error) if error.is_outdated() => self.push(vec![work]),
            Err(error) if error.is_refusal() => {
                tracing::debug!(?work, %error, "garbage is protected from deletion");
                self.failed.push(work);
            }
            Err(error) => {
                tracing::warn!(?work, %error, "garbage collection will try again");
                self.failed.push(work);
            }
        }
    }

    fn retry(&mut self) {
        let failed = std::mem::take(&mut self.failed);
        self.push(failed);
    }

    fn plan(&mut self, work: &Work) -> Vec<Step> {
        match work {
            Work::Dependent(key) => self.plan_dependent(key).into_iter().collect(),
            Work::Owner(uid) => self.plan_owner(uid),
        }
    }

    fn plan_dependent(&self, key: &Arc<str>) -> Option<Step> {
        let entry = self.client.core().store.get(key).ok()??;
        let meta = Meta::of(&entry.value);
        if meta.owners().is_empty() || meta.is_terminating() {
            return None;
        }
        let location = self.client.locate(key)?;
        let owners: Vec<Owner> = meta.owners().iter().map(|owner| self.find(&location, owner)).collect();
        let has = |wanted| owners.contains(&wanted);
        if has(Owner::Solid) {
            if !has(Owner::Gone) && !has(Owner::Waiting) {
                return None;
            }
            let keep = |index: usize| owners[index] == Owner::Solid;
            return self.patch_owners(key, &meta.uid, |index, _| keep(index));
        }
        let uid = Arc::clone(&meta.uid);
        let dependents = has(Owner::Waiting) && !self.graph.dependents(&uid).is_empty();
        if dependents && self.graph.has_waiting_dependent(&uid) {
            // A circle of owners: let go of the one that waits, or neither could ever be deleted.
            let blocking = meta.owners().iter().any(|owner| owner.blocks == Some(true));
            if blocking {
                return self.patch_owners(key, &meta.uid, |_, owner| {
                    owner.insert("blockOwnerDeletion".to_owned(), false.into());
                    true
                });
            }
        }
        let propagation = if dependents || meta.has_finalizer(FOREGROUND) {
            Propagation::Foreground
        } else if meta.has_finalizer(ORPHAN) {
            Propagation::Orphan
        } else {
            Propagation::Background
        };
        Some(Step::Delete { key: Arc::clone(key), uid, propagation })
    }

    fn plan_owner(&mut self, uid: &Arc<str>) -> Vec<Step> {
        let Some(key) = self.graph.waiting(uid) else { return Vec::new() };
        let Some(object) = self.client.read(&key) else { return Vec::new() };
        if metadata_text(&object, "uid") != &**uid {
            return Vec::new();
        }
        let dependents = self.graph.dependents(uid);
        let orphan = crate::object::finalizers(&object).contains(&ORPHAN);
        if orphan && !dependents.is_empty() {
            let patches = dependents.iter().filter_map(|(dependent, _)| {
                let meta = Meta::of(&self.client.core().store.get(dependent).ok()??.value);
                self.patch_owners(dependent, &meta.uid, |_, owner| {
                    owner.get("uid").and_then(Value::as_str) != Some(uid)
                })
            });
            return patches.collect();
        }
        let blocking: Vec<Work> = dependents
            .into_iter()
            .filter(|(_, blocks)| *blocks)
            .map(|(key, _)| Work::Dependent(key))
            .collect();
        if !orphan && !blocking.is_empty() {
            self.push(blocking);
            return Vec::new();
        }
        let done = if orphan { ORPHAN } else { FOREGROUND };
        let finalizers: Vec<&str> =
            crate::object::finalizers(&object).into_iter().filter(|name| *name != done).collect();
        let patch = json!({"metadata": {
            "uid": uid, "resourceVersion": metadata_text(&object, "resourceVersion"), "finalizers": finalizers,
        }});
        vec![Step::Patch { key, patch }]
    }

    fn find(&self, dependent: &Location<'_>, owner: &OwnerReference) -> Owner {
        let core = self.client.core();
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let registry = core.registry();
        let Some(resource) = registry.kind(group, &owner.kind) else { return Owner::Solid };
        if resource.namespaced && dependent.namespace.is_none() {
            return Owner::Solid;
        }
        let Ok(found) = core.store.get(&resource.key(dependent.namespace, &owner.name)) else {
            return Owner::Solid;
        };
        match found.map(|entry| Meta::of(&entry.value)) {
            Some(meta) if meta.uid == owner.uid => {
                let waits = meta.is_terminating() && meta.has_finalizer(FOREGROUND);
                if waits { Owner::Waiting } else { Owner::Solid }
            }
            _ => Owner::Gone,
        }
    }

    /// A patch that keeps those owner references for which `keep`, which may change them, says so.
    fn patch_owners(
        &self,
        key: &Arc<str>,
        uid: &str,
        mut keep: impl FnMut(usize, &mut serde_json::Map<String, Value>) -> bool,
    ) -> Option<Step> {
        let object = self.client.read(key)?;
        let references = object.pointer("/metadata/ownerReferences")?.as_array()?;
        let kept = references.iter().enumerate().filter_map(|(index, reference)| {
            let mut reference = reference.as_object()?.clone();
            keep(index, &mut reference).then_some(Value::Object(reference))
        });
        let patch = json!({"metadata": {
            "uid": uid,
            "resourceVersion": metadata_text(&object, "resourceVersion"),
            "ownerReferences": kept.collect::<Vec<_>>(),
        }});
        Some(Step::Patch { key: Arc::clone(key), patch })
    }
}
