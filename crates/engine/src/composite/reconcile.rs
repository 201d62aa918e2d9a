//! One reconcile of one composite.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use modelplane_api::kind::{KindInfo, Object};
use modelplane_api::model_deployment::ModelDeployment;
use modelplane_api::model_replica::ModelReplica;
use modelplane_api::names::PAUSED_ANNOTATION;
use modelplane_core::contract::Severity;
use modelplane_core::document::Document;
use modelplane_core::simulate::ObjectKey;
use serde_json::{Value, json};

use super::apply::references;
use super::observe::Composed;
use super::pipeline::{self, Answer, Inputs, Wanted};
use super::relevance::{View, narrowed};
use super::{CompositeController, FINALIZER, Memory, status};
use crate::client::{Target, Write};
use crate::conditions::NewCondition;
use crate::controller::{Controller, Next, ReconcileError, Trying};
use crate::events::EventType;
use crate::metrics::ControllerMetrics;
use crate::object::Stored;

/// How often a pipeline may ask for more within one reconcile, as Crossplane allows.
const MAX_ROUNDS: usize = 5;

/// Reason of events about composing.
const COMPOSE: &str = "ComposeResources";

impl Controller for CompositeController {
    const NAME: &'static str = "composite";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(info) = self.composite_kind(&key.group, &key.kind) else { return Ok(Next::OnChange) };
        let Some(composite) = self.caches.get(key) else {
            self.forget(key);
            return Ok(Next::OnChange);
        };
        if composite.annotation(PAUSED_ANNOTATION) == Some("true") {
            return self.pause(&composite).await;
        }
        // Where deletions cannot be refused they are held, and what holds them is composed on.
        if composite.is_deleting() && self.usages.holds(key, &self.queue).is_none() {
            return self.finish(&composite).await;
        }
        match self.compose(&composite, info).await {
            Ok(next) => Ok(next),
            Err(error) => self.fail(&composite, error).await,
        }
    }

    fn metrics(&self) -> &ControllerMetrics {
        &self.metrics.composites
    }
}

impl CompositeController {
    async fn pause(&self, composite: &Stored) -> Result<Next, ReconcileError> {
        let message = format!("annotation {PAUSED_ANNOTATION} pauses everything, deletion included");
        let condition = NewCondition::not_synced("ReconcilePaused", &message);
        let status = status::marked(&composite.value(), &[condition], Timestamp::now());
        self.write_status(composite, status).await?;
        Ok(Next::OnChange)
    }

    /// Lets a deleted composite go; what it composed follows by garbage collection, or precedes it.
    async fn finish(&self, composite: &Stored) -> Result<Next, ReconcileError> {
        let finalizers = composite.finalizers();
        if !finalizers.contains(&FINALIZER) {
            self.forget(&composite.key);
            return Ok(Next::OnChange);
        }
        if finalizers.len() > 1 {
            let conditions = [NewCondition::new("Ready", false, "Deleting"), NewCondition::synced()];
            let status = status::marked(&composite.value(), &conditions, Timestamp::now());
            self.write_status(composite, status).await?;
        }
        remove_finalizer(self.caches.api(), composite, FINALIZER).await?;
        self.forget(&composite.key);
        Ok(Next::OnChange)
    }

    async fn compose(&self, composite: &Arc<Stored>, info: &KindInfo) -> Result<Next, ReconcileError> {
        let mut memory = self.remembered(&composite.key);
        // What places replicas has to see what was placed meanwhile, and nobody else may place until it is written.
        let mut placing = match memory.took.is_zero() && info.kind == ModelDeployment::INFO.kind {
            // It most likely will.
            true => Some(self.placing.lock().await),
            false => None,
        };
        let mut start = Instant::now();
        let view = if memory.settled && placing.is_none() { View::Own } else { View::Fleet };
        let composed = self.observe(composite).await?;
        let mut decided = self.run(composite, info, (composed, view), &mut memory).await?;
        let is_short = view == View::Own && decided.0.unplaced != Some(0);
        if placing.is_none() && (is_short || places(&decided)) {
            placing = Some(self.placing.lock().await);
            start = Instant::now();
            let composed = self.observe(composite).await?;
            decided = self.run(composite, info, (composed, View::Fleet), &mut memory).await?;
        }
        memory.took = start.elapsed();
        let (answer, composed) = decided;
        memory.settled = answer.unplaced == Some(0);

        let rendered = Self::render(composite, &answer, &composed)?;
        let kept = self.collect(composite, &composed, &rendered).await?;
        self.claim(composite, info, references(composite, &rendered, &kept)).await?;
        let outcome = self.apply(composite, &rendered, &memory).await;
        drop(placing);
        self.report(composite, &answer, &outcome.failed);

        let current = self.caches.get(&composite.key).unwrap_or_else(|| Arc::clone(composite));
        let status = status::composed(&current.value(), &answer, &outcome, Timestamp::now());
        self.write_status(&current, status).await?;

        memory.applied = outcome.applied;
        self.lock().insert(composite.key.clone(), memory);
        if outcome.retry {
            let failed: Vec<String> = outcome.failed.into_values().collect();
            return Err(ReconcileError::Incomplete(failed.join("; ")));
        }
        Ok(Next::After(jittered(self.poll_interval, &composite.key)))
    }

    /// Runs the pipeline until it asks for nothing new.
    async fn run(
        &self,
        composite: &Arc<Stored>,
        info: &KindInfo,
        (composed, view): (Composed, View),
        memory: &mut Memory,
    ) -> Result<(Answer, Composed), ReconcileError> {
        let steps = self.functions.steps(&info.api_version(), info.kind);
        let mut inputs = Inputs { composite: Arc::clone(composite), composed, required: BTreeMap::new() };
        let mut asked = std::mem::take(&mut memory.wanted);
        for _ in 0..MAX_ROUNDS {
            // Registered before reading, so that no change in between is missed.
            self.requirements.set(&composite.key, asked.values().cloned().collect());
            let mut required = BTreeMap::new();
            for (key, requirement) in &asked {
                required.insert(key.clone(), self.require(&narrowed(composite, requirement, view)).await?);
            }
            inputs.required = required;
            let answer =
                pipeline::run(&steps, &inputs).map_err(|error| ReconcileError::Other(error.explained()))?;
            if answer.requirements == asked {
                memory.wanted = asked;
                return Ok((answer, inputs.composed));
            }
            asked.clone_from(&answer.requirements);
        }
        Err(ReconcileError::Other(format!(
            "its composition still asks for more resources after {MAX_ROUNDS} rounds"
        )))
    }

    /// Says that nothing was composed, and why; the error stays one.
    async fn fail(&self, composite: &Stored, error: ReconcileError) -> Result<Next, ReconcileError> {
        let message = error.to_string();
        if error.is_conflict() || matches!(error, ReconcileError::Incomplete(_)) {
            return Err(error);
        }
        self.events.record(composite, EventType::Warning, COMPOSE, &message);
        let current = self.caches.get(&composite.key);
        let current = current.as_deref().unwrap_or(composite);
        let status = status::failed(&current.value(), &message, Timestamp::now());
        self.write_status(current, status).await?;
        Err(error)
    }

    fn report(&self, composite: &Stored, answer: &Answer, failed: &BTreeMap<String, String>) {
        for event in &answer.events {
            let event_type = match event.severity {
                Severity::Normal => EventType::Normal,
                Severity::Warning => EventType::Warning,
            };
            self.events.record(
                composite,
                event_type,
                event.reason.as_deref().unwrap_or(COMPOSE),
                &event.message,
            );
        }
        for (key, why) in failed {
            let message = format!("cannot apply composed resource {key}: {why}");
            self.events.record(composite, EventType::Warning, COMPOSE, &message);
        }
    }
}

/// Whether replicas get a place that they do not have yet.
fn places((answer, composed): &(Answer, Composed)) -> bool {
    let is_replica = |wanted: &Wanted| {
        Document::from_struct(&wanted.bytes).text_at(&["kind"]) == Some(ModelReplica::INFO.kind)
    };
    let mut new = answer.resources.iter().filter(|(key, _)| !composed.contains_key(*key));
    answer.unplaced.is_some() && new.any(|(_, wanted)| is_replica(wanted))
}

/// Takes a finalizer off an object unless it has changed meanwhile.
pub(crate) async fn remove_finalizer(
    api: &crate::client::ApiClient,
    object: &Stored,
    finalizer: &str,
) -> Result<(), ReconcileError> {
    let rest: Vec<&str> = object.finalizers().into_iter().filter(|known| *known != finalizer).collect();
    let finalizers = if rest.is_empty() { Value::Null } else { json!(rest) };
    let version = object.version.to_string();
    let body = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version, "uid": object.uid}});
    let resource = api.resource(object.api_version(), &object.key.kind).await.trying("cannot update")?;
    match api.write(&resource, &Target::of(&object.key), Write::Merge, &body).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(source) => Err(ReconcileError::Request { action: "cannot remove the finalizer", source }),
    }
}

/// The interval give or take a tenth, always the same for an object, so that polls spread out.
pub(crate) fn jittered(interval: Duration, key: &ObjectKey) -> Duration {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let share = (hasher.finish() % 2001) as f64 / 10_000.0 - 0.1;
    interval.mul_f64(1.0 + share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::key;

    #[test]
    fn polls_spread_within_a_tenth() {
        let interval = Duration::from_secs(100);
        let times: Vec<Duration> =
            (0..50).map(|n| jittered(interval, &key("g", "K", "", &n.to_string()))).collect();
        assert!(times.iter().all(|time| (90..=110).contains(&time.as_secs())), "{times:?}");
        assert!(
            times.iter().any(|time| time.as_secs() < 97) && times.iter().any(|time| time.as_secs() > 103)
        );
    }
}
