//! A fleet in memory: every composition run to a fixed point, with simulated providers.
//!
//! A [`Simulation`] holds objects, runs the composition of each composite over them as Crossplane's
//! reconciler would (requirements, stable names, garbage collection, `Ready`), and lets [`providers`]
//! make composed resources ready in dependency order. It has no clock: a pass is its unit of time, and the
//! same objects always give the same passes. Inputs that live outside the manifests (cloud credentials,
//! tokens) are stood in for by [`assume`] and reported as assumed.
//!
//! It does not schedule pods or move bytes; that is what simulated clusters of the engine are for.

mod assume;
mod observed;
mod providers;
mod reconcile;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use self::providers::Providers;
use self::world::Journal;
pub use reconcile::{Reconciled, composed_name};
pub use world::{ObjectKey, Owner, StoredObject, World};

use crate::contract::Severity;

/// How a simulation behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// Give up after this many passes.
    pub max_passes: usize,
    /// Composed resources that never become ready.
    pub unready: Vec<Unready>,
    /// Whether inputs outside the manifests are assumed to exist.
    pub assume_inputs: bool,
}

/// Names composed resources: `Kind`, `Kind/name` or a resource key, each with `*` as a wildcard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unready(pub String);

/// A fleet in memory.
#[derive(Debug, Clone)]
pub struct Simulation {
    world: World,
    providers: Providers,
    options: Options,
    latest: BTreeMap<ObjectKey, Reconciled>,
    assumed: BTreeSet<ObjectKey>,
}

/// What one pass did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pass {
    /// Objects that appeared.
    pub created: Vec<ObjectKey>,
    /// Objects whose content changed.
    pub changed: Vec<ObjectKey>,
    /// Objects that went away.
    pub deleted: Vec<ObjectKey>,
    /// Objects that became ready.
    pub became_ready: Vec<ObjectKey>,
    /// Events, in order: composite, severity, message.
    pub events: Vec<(ObjectKey, Severity, String)>,
    /// Composites that could not be composed, and why.
    pub errors: Vec<(ObjectKey, String)>,
}

/// How a simulation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The passes, the last of which changed nothing if `converged`.
    pub passes: Vec<Pass>,
    /// Whether a fixed point was reached.
    pub converged: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_passes: 100, unready: Vec::new(), assume_inputs: true }
    }
}

impl Unready {
    fn matches(&self, object: &StoredObject) -> bool {
        let key = &object.key;
        let named = format!("{}/{}", key.kind, key.name);
        let resource_key = object.owner.as_ref().map_or("", |owner| owner.resource_key.as_str());
        [key.kind.as_str(), named.as_str(), resource_key].iter().any(|text| glob(&self.0, text))
    }
}

/// Whether `text` matches `pattern`, in which `*` stands for anything.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

impl Simulation {
    /// A simulation over `objects`, which are taken as applied.
    pub fn new(objects: impl IntoIterator<Item = serde_json::Value>, options: Options) -> Self {
        let mut simulation = Self {
            world: World::default(),
            providers: Providers::default(),
            options,
            latest: BTreeMap::new(),
            assumed: BTreeSet::new(),
        };
        simulation.apply(objects);
        simulation
    }

    /// A simulation that goes on from objects as an API server holds them.
    ///
    /// What is composed is known as such, and stays as reported until a composition wants it otherwise.
    pub fn of_observed(objects: impl IntoIterator<Item = serde_json::Value>, options: Options) -> Self {
        let mut simulation = Self::new([], options);
        for object in objects {
            simulation.world.observe(object);
        }
        simulation
    }

    /// Applies objects on top of what is there.
    pub fn apply(&mut self, objects: impl IntoIterator<Item = serde_json::Value>) {
        for object in objects {
            let key = self.world.apply_manifest(object);
            self.assumed.remove(&key);
        }
    }

    /// Runs passes until nothing changes, or the limit is reached.
    pub fn run(&mut self) -> Outcome {
        let mut passes = Vec::new();
        while passes.len() < self.options.max_passes {
            let pass = self.step();
            let quiet = pass.is_quiet();
            passes.push(pass);
            if quiet {
                return Outcome { passes, converged: true };
            }
        }
        Outcome { passes, converged: false }
    }

    /// One pass: every composite once, then the providers.
    pub fn step(&mut self) -> Pass {
        let mut pass = Pass::default();
        self.world.take_journal();
        for key in self.world.composites() {
            let latest = self.latest.get(&key);
            if self.options.assume_inputs {
                self.assumed.extend(assume::provide(&mut self.world, &key, latest));
            }
            if latest.is_some_and(|latest| !latest.is_outdated(&self.world, &key)) {
                continue;
            }
            let Some(reconciled) = reconcile::reconcile(&mut self.world, &key, latest) else { continue };
            let events = reconciled.events.iter();
            pass.events.extend(events.map(|event| (key.clone(), event.severity, event.message.clone())));
            pass.errors.extend(reconciled.error.iter().map(|error| (key.clone(), error.clone())));
            self.latest.insert(key, reconciled);
        }
        self.providers.advance(&mut self.world, |object| {
            self.options.unready.iter().any(|unready| unready.matches(object))
        });
        let journal = self.world.take_journal();
        self.latest.retain(|key, _| self.world.get(key).is_some());
        pass.compare(journal, &self.world);
        pass
    }

    /// The objects as they stand.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// What the latest reconcile of each composite said.
    pub fn latest(&self) -> &BTreeMap<ObjectKey, Reconciled> {
        &self.latest
    }

    /// Inputs that were not among the manifests and are assumed to exist.
    pub fn assumed(&self) -> &BTreeSet<ObjectKey> {
        &self.assumed
    }
}

impl Pass {
    /// Whether nothing changed.
    pub fn is_quiet(&self) -> bool {
        self.created.is_empty() && self.changed.is_empty() && self.deleted.is_empty()
    }

    fn compare(&mut self, journal: Journal, after: &World) {
        for (key, before) in journal {
            let now = after.get(&key);
            let was_ready = before.as_ref().is_some_and(|before| before.ready);
            if now.is_some_and(StoredObject::is_ready) && !was_ready {
                self.became_ready.push(key.clone());
            }
            match (before, now) {
                (None, Some(_)) => self.created.push(key),
                (Some(_), None) => self.deleted.push(key),
                (Some(before), Some(now)) if before.body != now.body => self.changed.push(key),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
