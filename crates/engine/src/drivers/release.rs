//! The driver of `Release`s: one chart on one cluster, as provider-helm keeps it.
//!
//! A release is deployed again if its chart or values change, or if Helm knows another revision than the
//! one this driver left behind. `set`, `valuesFrom` and `patchesFrom` are not supported: no composition of
//! this system uses them, and a release that does says so in `Synced`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use modelplane_api::names::{EXTERNAL_NAME_ANNOTATION, PAUSED_ANNOTATION, sha256_hex};
use modelplane_core::simulate::ObjectKey;
use serde_json::{Value, json};

use super::helm::{Chart, HelmError, HelmRunner, Place, ReleaseState};
use super::status::{Report, adopt, report};
use super::{FINALIZER, NEEDS_CROSSPLANE, Policies, SIMULATED_LABEL};
use crate::cache::Caches;
use crate::clusters::{AccessError, Cluster, Clusters, User};
use crate::composite::remove_finalizer;
use crate::conditions::NewCondition;
use crate::controller::{Controller, Next, ReconcileError};
use crate::metrics::{ControllerMetrics, Metrics};
use crate::object::Stored;
use crate::queue::WorkQueue;
use crate::usage::UsageIndex;

/// Group of `Release`s and of their provider configs.
pub const GROUP: &str = "helm.m.crossplane.io";
/// Annotation that says what was deployed last: digest and revision.
pub(super) const DEPLOYED_ANNOTATION: &str = "modelplane.ai/deployed-release";

const SOON: Duration = Duration::from_secs(60);

/// Keeps `Release`s.
pub struct ReleaseDriver {
    pub(crate) caches: Arc<Caches>,
    pub(crate) clusters: Arc<Clusters>,
    pub(crate) usages: Arc<UsageIndex>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) queue: WorkQueue,
    pub(crate) poll_interval: Duration,
    /// Helm on clusters that are real.
    pub(crate) helm: Arc<dyn HelmRunner>,
    /// Helm on clusters that are simulated.
    pub(crate) simulated: Arc<dyn HelmRunner>,
    /// When Helm was last asked about a release: it costs a process each time.
    pub(crate) looked: Mutex<HashMap<ObjectKey, tokio::time::Instant>>,
}

/// Why a release is not as it should be.
enum Problem {
    Access(AccessError),
    Unusable(String),
    Helm(HelmError),
    Engine(ReconcileError),
}

impl From<ReconcileError> for Problem {
    fn from(error: ReconcileError) -> Self {
        Self::Engine(error)
    }
}

impl From<HelmError> for Problem {
    fn from(error: HelmError) -> Self {
        Self::Helm(error)
    }
}

impl Controller for ReleaseDriver {
    const NAME: &'static str = "release";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(release) = self.caches.get(key) else {
            self.forget(key);
            return Ok(Next::OnChange);
        };
        if release.annotation(PAUSED_ANNOTATION) == Some("true") {
            let paused = NewCondition::not_synced("ReconcilePaused", "paused by annotation");
            report(&self.caches, &release, Report { conditions: vec![paused], at_provider: None }).await?;
            return Ok(Next::OnChange);
        }
        if release.is_deleting() && !release.finalizers().contains(&FINALIZER) {
            self.forget(key);
            return Ok(Next::OnChange);
        }
        let user = User { object: &release, queue: &self.queue };
        let outcome = match self.clusters.of(&user).await {
            Err(error) => Err(Problem::Access(error)),
            Ok(cluster) if release.is_deleting() => self.delete(&release, &cluster).await,
            Ok(cluster) => self.keep(&release, &cluster).await,
        };
        match outcome {
            Ok(next) => Ok(next),
            Err(problem) => self.fail(&release, problem).await,
        }
    }

    fn metrics(&self) -> &ControllerMetrics {
        &self.metrics.releases
    }
}

impl ReleaseDriver {
    async fn keep(&self, release: &Arc<Stored>, cluster: &Arc<Cluster>) -> Result<Next, Problem> {
        let chart = chart(release).map_err(Problem::Unusable)?;
        let name = external_name(release).to_owned();
        let labels: &[(&str, &str)] = if cluster.simulated { &[(SIMULATED_LABEL, "true")] } else { &[] };
        let release = adopt(&self.caches, release, &[(EXTERNAL_NAME_ANNOTATION, &name)], labels).await?;
        let digest = digest(&chart);
        if self.is_settled(&release, &digest) {
            return Ok(Next::After(self.poll_interval));
        }
        let namespace = namespace(&release).to_owned();
        let place = Place { cluster, namespace: &namespace, name: &name };
        let helm = self.runner(cluster);
        let known = helm.state(place).await?;
        let policies = Policies::of(&release);
        let deployed = match &known {
            Some(known) if is_deployed(&release, &digest, known) => known.clone(),
            Some(_) if !policies.update => {
                return Err(Problem::Unusable(format!("release {name} differs and may not be updated")));
            }
            None if !policies.create => {
                return Err(Problem::Unusable(format!(
                    "release {name} does not exist and may not be created"
                )));
            }
            known => {
                tracing::info!(release = %release.key, chart = chart.name, version = chart.version, "deploying");
                helm.deploy(place, &chart, known.as_ref()).await?
            }
        };
        self.looked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(release.key.clone(), tokio::time::Instant::now());
        let mark = format!("{digest}:{}", deployed.revision);
        let release = adopt(&self.caches, &release, &[(DEPLOYED_ANNOTATION, &mark)], &[]).await?;
        self.observed(&release, &deployed).await
    }

    /// Whether Helm need not be asked: this very chart is deployed, and was seen to be not long ago.
    fn is_settled(&self, release: &Stored, digest: &str) -> bool {
        let looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let recent =
            looked.get(&release.key).is_some_and(|at| at.elapsed() < self.poll_interval.mul_f64(0.8));
        let mark = release.annotation(DEPLOYED_ANNOTATION).unwrap_or_default();
        recent && mark.split(':').next() == Some(digest) && release.condition("Ready") == Some("True")
    }

    async fn observed(&self, release: &Stored, state: &ReleaseState) -> Result<Next, Problem> {
        let ready = state.state == "deployed";
        let message = format!("the release is {}", state.state);
        let condition = match ready {
            true => NewCondition::new("Ready", true, "Available"),
            false => NewCondition::new("Ready", false, "Unavailable").because(&message),
        };
        let at_provider = json!({"state": state.state, "revision": state.revision, "releaseDescription": state.description});
        let conditions = vec![NewCondition::synced(), condition];
        report(&self.caches, release, Report { conditions, at_provider: Some(at_provider) }).await?;
        let interval = if ready { self.poll_interval } else { SOON.min(self.poll_interval) };
        Ok(Next::After(interval))
    }

    async fn delete(&self, release: &Stored, cluster: &Arc<Cluster>) -> Result<Next, Problem> {
        if let Some(in_use) = self.usages.holds(&release.key) {
            return Err(Problem::Unusable(in_use.to_string()));
        }
        if Policies::of(release).delete {
            let place = Place { cluster, namespace: namespace(release), name: external_name(release) };
            self.runner(cluster).uninstall(place).await?;
        }
        remove_finalizer(self.caches.api(), release, FINALIZER).await?;
        self.forget(&release.key);
        Ok(Next::OnChange)
    }

    async fn fail(&self, release: &Stored, problem: Problem) -> Result<Next, ReconcileError> {
        let (reason, message, retry) = match problem {
            Problem::Engine(error) => return Err(error),
            Problem::Access(error @ AccessError::NeedsCrossplane { .. }) => {
                (NEEDS_CROSSPLANE, error.to_string(), false)
            }
            Problem::Access(error) => ("ReconcileError", error.to_string(), false),
            Problem::Unusable(message) => ("ReconcileError", message, false),
            Problem::Helm(error) => ("ReconcileError", error.to_string(), true),
        };
        let conditions = vec![NewCondition::not_synced(reason, &message)];
        report(&self.caches, release, Report { conditions, at_provider: None }).await?;
        if retry { Err(ReconcileError::Incomplete(message)) } else { Ok(Next::After(SOON)) }
    }

    fn runner(&self, cluster: &Cluster) -> &dyn HelmRunner {
        if cluster.simulated { self.simulated.as_ref() } else { self.helm.as_ref() }
    }

    fn forget(&self, key: &ObjectKey) {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.clusters.forget(key);
    }
}

fn external_name(release: &Stored) -> &str {
    release.annotation(EXTERNAL_NAME_ANNOTATION).unwrap_or(&release.key.name)
}

fn namespace(release: &Stored) -> &str {
    release.text_at(&["spec", "forProvider", "namespace"]).unwrap_or("default")
}

/// The chart a release asks for.
fn chart(release: &Stored) -> Result<Chart, String> {
    let spec = release.document().get(&["spec", "forProvider"]).and_then(|spec| spec.to_json().ok());
    let spec = spec.unwrap_or_default();
    let text = |field: &str| spec["chart"][field].as_str().unwrap_or_default().to_owned();
    for field in ["set", "valuesFrom", "patchesFrom"] {
        if spec[field].as_array().is_some_and(|list| !list.is_empty()) {
            return Err(format!("spec.forProvider.{field} is not supported by the embedded driver"));
        }
    }
    let name = text("name");
    if name.is_empty() {
        return Err("spec.forProvider.chart.name is missing".to_owned());
    }
    let wait = spec["wait"].as_bool().unwrap_or_default();
    let values = match &spec["values"] {
        Value::Object(values) => Value::Object(values.clone()),
        _ => json!({}),
    };
    Ok(Chart {
        name,
        repository: text("repository"),
        version: text("version"),
        values,
        wait: wait.then_some(Duration::from_secs(300)),
        skip_create_namespace: spec["skipCreateNamespace"].as_bool().unwrap_or_default(),
    })
}

fn digest(chart: &Chart) -> String {
    let text = json!([chart.name, chart.repository, chart.version, chart.values]).to_string();
    sha256_hex(&text).chars().take(16).collect()
}

/// Whether Helm has what this driver deployed, and that is what is wanted.
fn is_deployed(release: &Stored, digest: &str, known: &ReleaseState) -> bool {
    let mark = format!("{digest}:{}", known.revision);
    known.state == "deployed" && release.annotation(DEPLOYED_ANNOTATION) == Some(mark.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(spec: &Value, mark: &str) -> Stored {
        let metadata = json!({"name": "r", "annotations": {DEPLOYED_ANNOTATION: mark}});
        Stored::from_value(json!({"metadata": metadata, "spec": {"forProvider": spec}})).unwrap()
    }

    #[test]
    fn a_release_is_deployed_again_if_anything_differs() {
        let spec = json!({"chart": {"name": "c", "repository": "r", "version": "1"}, "values": {"a": 1}});
        let wanted = digest(&chart(&release(&spec, "")).unwrap());
        let known = |state: &str, revision| ReleaseState {
            state: state.to_owned(),
            revision,
            description: String::new(),
        };
        let mark = format!("{wanted}:2");
        for (name, mark, known, expected) in [
            ("as it was left", mark.as_str(), known("deployed", 2), true),
            ("another revision", mark.as_str(), known("deployed", 3), false),
            ("failed", mark.as_str(), known("failed", 2), false),
            ("another chart", "other:2", known("deployed", 2), false),
        ] {
            assert_eq!(is_deployed(&release(&spec, mark), &wanted, &known), expected, "{name}");
        }
        let mut other = spec.clone();
        other["values"]["a"] = json!(2);
        assert_ne!(digest(&chart(&release(&other, "")).unwrap()), wanted);
    }

    #[test]
    fn what_is_not_supported_is_said() {
        for (spec, expected) in [
            (json!({}), "spec.forProvider.chart.name is missing"),
            (
                json!({"chart": {"name": "c"}, "set": [{"name": "a"}]}),
                "spec.forProvider.set is not supported by the embedded driver",
            ),
        ] {
            assert_eq!(chart(&release(&spec, "")).unwrap_err(), expected);
        }
    }
}
