//! The composition controller: Crossplane v2's composite reconciler over any API server.
//!
//! One reconcile reads the composite, what it composed and what it asked for, runs the pipeline
//! ([`pipeline`]), deletes what is no longer wanted, notes what is wanted in `spec.crossplane.resourceRefs`,
//! applies it ([`render`]), and writes status and conditions ([`status`]). Whatever fails before the
//! pipeline has answered changes nothing but the condition `Synced`.
//!
//! Where this differs from Crossplane: a resource that cannot be applied or deleted does not keep the
//! others from it, names are derived and not drawn (so a stale read never composes something twice), and
//! objects are only written if that changes something.

mod apply;
mod observe;
pub mod pipeline;
mod reconcile;
pub(crate) mod relevance;
pub mod render;
mod status;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use modelplane_api::kind::{self, KindInfo, Scope};
use modelplane_core::contract::Requirement;
use modelplane_core::simulate::ObjectKey;

pub(crate) use self::observe::secret_data;
use self::pipeline::Functions;
pub(crate) use self::reconcile::remove_finalizer;
use crate::bootstrap::Definitions;
use crate::cache::{Caches, Change};
use crate::events::Recorder;
use crate::metrics::Metrics;
use crate::object::key;
use crate::queue::WorkQueue;
use crate::requirements::Requirements;
use crate::usage::UsageIndex;

/// Finalizer of composites.
pub const FINALIZER: &str = "composite.apiextensions.crossplane.io";

/// How long a composite waits after something it asked for changed, at least: others may change too.
const SHORTEST_DEBOUNCE: Duration = Duration::from_millis(20);
/// And at most.
const LONGEST_DEBOUNCE: Duration = Duration::from_secs(5);
/// The share of its time a composite may spend on changes of what it asked for is one in so many.
const REQUIRED_FACTOR: u32 = 10;
/// The same for what it composed, of which changes come in bursts.
const COMPOSED_FACTOR: u32 = 5;
/// How long it waits for such a burst to end, at most.
const LONGEST_COMPOSED_DEBOUNCE: Duration = Duration::from_secs(1);

/// The composition controller.
pub struct CompositeController {
    pub(crate) caches: Arc<Caches>,
    pub(crate) functions: Arc<dyn Functions>,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) usages: Arc<UsageIndex>,
    pub(crate) events: Recorder,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) queue: WorkQueue,
    pub(crate) poll_interval: Duration,
    pub(crate) requirements: Requirements,
    pub(crate) memory: Mutex<HashMap<ObjectKey, Memory>>,
    /// Held while a deployment's replicas are placed: each has to see what the one before it placed.
    pub(crate) placing: tokio::sync::Mutex<()>,
}

/// What is remembered of a composite; losing it costs requests, nothing else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// What it asked for last: asking at once saves a round.
    wanted: BTreeMap<String, Requirement>,
    /// What was applied, by resource key.
    applied: HashMap<String, Applied>,
    /// How long composing took.
    took: Duration,
    /// Whether it is a deployment all of whose replicas have a place.
    settled: bool,
}

impl Memory {
    fn digest(&self) -> (bool, Duration) {
        (self.settled, self.took)
    }
}

/// An applied resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Applied {
    /// Digest of what was applied.
    digest: u64,
    /// Revision of the result.
    version: u64,
}

impl CompositeController {
    /// Puts the composites into the queue that a change concerns.
    pub(crate) fn route(&self, change: &Change) {
        let Some(object) = change.object() else { return };
        if self.composite_kind(&object.key.group, &object.key.kind).is_some() {
            match relevance::of_wishes(change) {
                true => self.queue.add(object.key.clone()),
                // Its status, as a rule written here: what is read of it must not lag, but there is no hurry.
                false if relevance::of_composed(change) => self.wake(object.key.clone()),
                false => {}
            }
        }
        if relevance::of_composed(change) {
            self.route_composed(change);
        }
        let may_matter = |kind: &str| relevance::of_required(kind, false, change);
        for composite in self.requirements.affected(change, may_matter) {
            let (settled, took) = self.lock().get(&composite).map_or_else(Default::default, Memory::digest);
            if relevance::of_required(&composite.kind, settled, change) {
                let delay = took.saturating_mul(REQUIRED_FACTOR);
                self.queue.add_after(composite, delay.clamp(SHORTEST_DEBOUNCE, LONGEST_DEBOUNCE));
            }
        }
    }

    /// Wakes those that composed the object.
    fn route_composed(&self, change: &Change) {
        let mut woken = None;
        for object in change.new.iter().chain(&change.old) {
            if let Some(owner) = object.controller().filter(|owner| woken != Some(owner.uid))
                && let Some(info) = self.composite_kind(crate::object::group(owner.api_version), owner.kind)
            {
                woken = Some(owner.uid);
                let namespace = if info.scope == Scope::Cluster { "" } else { &object.key.namespace };
                self.wake(key(info.group, info.kind, namespace, owner.name));
            }
        }
    }

    /// Wakes a composite: at once if that costs little, else when a burst of changes may be over.
    fn wake(&self, composite: ObjectKey) {
        let took = self.lock().get(&composite).map_or(Duration::ZERO, |memory| memory.took);
        let delay = took.saturating_mul(COMPOSED_FACTOR).min(LONGEST_COMPOSED_DEBOUNCE);
        match delay < SHORTEST_DEBOUNCE {
            true => self.queue.add(composite),
            false => self.queue.add_after(composite, delay),
        }
    }

    /// The kind, if something composes it.
    fn composite_kind(&self, group: &str, kind: &str) -> Option<&'static KindInfo> {
        let info = kind::ALL.iter().copied().find(|info| info.group == group && info.kind == kind)?;
        (!self.functions.steps(&info.api_version(), info.kind).is_empty()).then_some(info)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remembered(&self, composite: &ObjectKey) -> Memory {
        self.lock().get(composite).cloned().unwrap_or_default()
    }

    fn forget(&self, composite: &ObjectKey) {
        self.lock().remove(composite);
        self.requirements.forget(composite);
    }
}
