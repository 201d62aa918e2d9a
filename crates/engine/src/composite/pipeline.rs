//! Running a composite's pipeline over what has been read, as Crossplane runs a Composition's.
//!
//! Pure but for where the objects come from: the same inputs give the same answer, and `render` runs the
//! same steps.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use modelplane_core::compose::{self, Composition};
use modelplane_core::contract::{
    ComposeError, Condition, Desired, Event, Observed, Ready, Requirement, Resource,
};
use modelplane_core::document::Document;
use serde_json::Value;

use crate::object::Stored;

/// Where the steps of a composite come from.
pub trait Functions: Send + Sync {
    /// The steps that compose a kind, in order; none if nothing composes it.
    fn steps(&self, api_version: &str, kind: &str) -> Vec<Composition>;
}

/// The compositions of this program, which are the ones of the Crossplane function and of `render`.
#[derive(Debug, Clone, Copy, Default)]
pub struct BuiltIn;

impl Functions for BuiltIn {
    fn steps(&self, api_version: &str, kind: &str) -> Vec<Composition> {
        compose::pipeline(api_version, kind)
    }
}

/// Connection details of a composed resource.
pub type ConnectionDetails = Vec<(String, Vec<u8>)>;

/// What a composite's pipeline is given.
#[derive(Debug)]
pub struct Inputs {
    /// The composite.
    pub composite: Arc<Stored>,
    /// What it has composed, by resource key.
    pub composed: BTreeMap<String, (Arc<Stored>, ConnectionDetails)>,
    /// What it asked for, by requirement key.
    pub required: BTreeMap<String, Vec<Arc<Stored>>>,
}

/// What a pipeline answers.
#[derive(Debug, Default)]
pub struct Answer {
    /// Resources by key.
    pub resources: BTreeMap<String, Wanted>,
    /// The composite's status, if the pipeline writes one.
    pub status: Option<Value>,
    /// The composite's readiness, if the pipeline decides it.
    pub ready: Ready,
    /// What to fetch, by key.
    pub requirements: BTreeMap<String, Requirement>,
    /// Conditions, in order.
    pub conditions: Vec<Condition>,
    /// Events, in order.
    pub events: Vec<Event>,
    /// Replicas without a place, if the pipeline places replicas.
    pub unplaced: Option<u64>,
}

/// A resource that a pipeline wants.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The object as Struct wire bytes.
    pub bytes: Vec<u8>,
    /// Whether it counts as ready.
    pub ready: bool,
    declared: Ready,
}

/// Runs the steps, each on what the ones before it want.
///
/// # Errors
///
/// If a step cannot go on, or breaks; then nothing may be changed.
pub fn run(steps: &[Composition], inputs: &Inputs) -> Result<Answer, ComposeError> {
    let mut answer = Answer::default();
    for step in steps {
        let earlier = std::mem::take(&mut answer.resources);
        let observed = observed(inputs, &earlier);
        // A defect in one composition must not take the engine with it.
        let desired = catch_unwind(AssertUnwindSafe(|| step(&observed))).unwrap_or_else(|_| {
            Err(observed.error("internal error while composing it; please report this"))
        })?;
        answer.take(&observed, desired)?;
    }
    Ok(answer)
}

fn observed<'a>(inputs: &'a Inputs, earlier: &'a BTreeMap<String, Wanted>) -> Observed<'a> {
    let resource = |stored: &'a Arc<Stored>| Resource::new(stored.document());
    let composed = inputs.composed.iter().map(|(key, (stored, details))| {
        let connection_details =
            details.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        (key.as_str(), Resource { connection_details, ..resource(stored) })
    });
    let required =
        inputs.required.iter().map(|(key, objects)| (key.as_str(), objects.iter().map(resource).collect()));
    let desired = earlier.iter().map(|(key, wanted)| {
        let resource = Resource::new(Document::from_struct(&wanted.bytes));
        (key.as_str(), Resource { ready: wanted.declared, ..resource })
    });
    Observed {
        composite: resource(&inputs.composite),
        resources: composed.collect(),
        desired: desired.collect(),
        required: required.collect(),
        ..Observed::default()
    }
}

impl Answer {
    /// Takes over what a step wants; requirements, conditions and events add up.
    fn take(&mut self, observed: &Observed<'_>, desired: Desired<'_>) -> Result<(), ComposeError> {
        let resources = desired.resources.iter().map(|(key, resource)| {
            let bytes = resource.body.bytes().to_vec();
            let ready = resource.ready == Ready::True;
            (key.to_string(), Wanted { bytes, ready, declared: resource.ready })
        });
        self.resources = resources.collect();
        if let Some(status) = &desired.status {
            let status = status.document().to_json().map_err(|error| observed.error(error.to_string()))?;
            self.status = Some(status);
        }
        if desired.ready != Ready::Unspecified {
            self.ready = desired.ready;
        }
        let requirements = desired.requirements.into_iter();
        self.requirements.extend(requirements.map(|(key, requirement)| (key.into_owned(), requirement)));
        self.conditions.extend(desired.conditions);
        self.events.extend(desired.events);
        self.unplaced = desired.work.replicas.map(|replicas| replicas.unplaced).or(self.unplaced);
        Ok(())
    }

    /// Whether the composite is ready: as the pipeline says, else if everything it wants is.
    pub fn is_ready(&self) -> bool {
        match self.ready {
            Ready::True => true,
            Ready::False => false,
            Ready::Unspecified => self.resources.values().all(|wanted| wanted.ready),
        }
    }
}
