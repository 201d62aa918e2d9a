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
    /// The same, with what it left behind.
    Left(String),
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
            Ok(cluster) => {
                let outcome = match release.is_deleting() {
                    true => self.delete(&release, &cluster).await,
                    false => self.keep(&release, &cluster).await,
                };
                if matches!(outcome, Err(Problem::Helm(_) | Problem::Left(_))) {
                    // Helm does not say whether it was the cluster's fault.
                    cluster.suspect();
                }
                outcome
            }
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
        if name.starts_with('-') {
            return Err(Problem::Unusable(format!("the release's name {name:?} begins with a dash")));
        }
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
                match helm.deploy(place, &chart, known.as_ref()).await {
                    Ok(deployed) => deployed,
                    Err(error) => return Err(self.rolled_back(&release, place, error).await),
                }
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

    /// Reports what a failed deployment left behind, and adds that to the error.
    async fn rolled_back(&self, release: &Stored, place: Place<'_>, error: HelmError) -> Problem {
        let Ok(Some(left)) = self.runner(place.cluster).state(place).await else { return error.into() };
        let conditions = vec![readiness(&left)];
        let at_provider = Some(at_provider(&left));
        if let Err(error) = report(&self.caches, release, Report { conditions, at_provider }).await {
            return error.into();
        }
        Problem::Left(format!("{error}; revision {} is {}: {}", left.revision, left.state, left.description))
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
        let conditions = vec![NewCondition::synced(), readiness(state)];
        let at_provider = Some(at_provider(state));
        report(&self.caches, release, Report { conditions, at_provider }).await?;
        let interval =
            if is_deployed_state(state) { self.poll_interval } else { SOON.min(self.poll_interval) };
        Ok(Next::After(interval))
    }

    async fn delete(&self, release: &Stored, cluster: &Arc<Cluster>) -> Result<Next, Problem> {
        if let Some(in_use) = self.usages.holds(&release.key, &self.queue) {
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
            Problem::Left(message) => ("ReconcileError", message, true),
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

fn is_deployed_state(state: &ReleaseState) -> bool {
    state.state == "deployed"
}

fn readiness(state: &ReleaseState) -> NewCondition<'_> {
    match is_deployed_state(state) {
        true => NewCondition::new("Ready", true, "Available"),
        false => NewCondition::new("Ready", false, "Unavailable").because(&state.state),
    }
}

fn at_provider(state: &ReleaseState) -> Value {
    json!({"state": state.state, "revision": state.revision, "releaseDescription": state.description})
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
    for field in ["valuesFrom", "patchesFrom"] {
        if spec[field].as_array().is_some_and(|list| !list.is_empty()) {
            return Err(format!("spec.forProvider.{field} is not supported by the embedded driver"));
        }
    }
    if spec["chart"]["pullSecretRef"]["name"].is_string() {
        return Err("spec.forProvider.chart.pullSecretRef is not supported by the embedded driver".to_owned());
    }
    let set = spec["set"].as_array().map(Vec::as_slice).unwrap_or_default();
    let set: Result<Vec<(String, String)>, String> =
        set.iter().enumerate().map(|(index, one)| setting(index, one)).collect();
    let set = set?;
    let name = text("name");
    let (repository, url) = (text("repository"), text("url"));
    check_source(&name, &repository, &url)?;
    let wait = spec["wait"].as_bool().unwrap_or_default();
    let values = match &spec["values"] {
        Value::Object(values) => Value::Object(values.clone()),
        _ => json!({}),
    };
    Ok(Chart {
        name,
        repository,
        version: text("version"),
        url,
        values,
        set,
        wait: if wait { Some(wait_limit(&spec)?) } else { None },
        skip_create_namespace: spec["skipCreateNamespace"].as_bool().unwrap_or_default(),
        skip_crds: spec["skipCRDs"].as_bool().unwrap_or_default(),
    })
}

/// Where charts may come from: not from files of this machine, and no name may pass for an option of Helm.
fn check_source(name: &str, repository: &str, url: &str) -> Result<(), String> {
    let at = "spec.forProvider.chart";
    let is_remote =
        |text: &str| ["https://", "http://", "oci://"].iter().any(|scheme| text.starts_with(scheme));
    if !url.is_empty() {
        return match is_remote(url) {
            true => Ok(()),
            false => Err(format!("{at}.url: {url:?} does not begin with https://, http:// or oci://")),
        };
    }
    if name.is_empty() {
        return Err(format!("{at}.name is missing"));
    }
    if name.starts_with('-') {
        return Err(format!("{at}.name: {name:?} begins with a dash"));
    }
    match is_remote(repository) {
        true => Ok(()),
        false => {
            Err(format!("{at}.repository: {repository:?} does not begin with https://, http:// or oci://"))
        }
    }
}

/// An entry of `spec.forProvider.set`.
fn setting(index: usize, entry: &Value) -> Result<(String, String), String> {
    let at = format!("spec.forProvider.set[{index}]");
    if entry.get("valueFrom").is_some_and(|from| !from.is_null()) {
        return Err(format!("{at}.valueFrom is not supported by the embedded driver"));
    }
    match (entry["name"].as_str().unwrap_or_default(), entry["value"].as_str()) {
        ("", _) => Err(format!("{at}.name is missing")),
        (_, None) => Err(format!("{at}.value is missing")),
        (name, Some(value)) => Ok((name.to_owned(), value.to_owned())),
    }
}

/// `spec.forProvider.waitTimeout`, five minutes unless given.
fn wait_limit(spec: &Value) -> Result<Duration, String> {
    let Some(text) = spec["waitTimeout"].as_str() else { return Ok(Duration::from_secs(300)) };
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let seconds = match unit {
        "s" => 1,
        "m" | "m0s" => 60,
        "h" | "h0m0s" => 3600,
        _ => 0,
    };
    let limit = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    match limit {
        Some(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!(
            "spec.forProvider.waitTimeout: {text:?} is not a time such as 90s or 5m, of a day at most"
        )),
    }
}

fn digest(chart: &Chart) -> String {
    let mut parts =
        vec![json!(chart.name), json!(chart.repository), json!(chart.version), chart.values.clone()];
    // Only if they say anything, so that what was deployed before there were such fields stays as it is.
    if !chart.url.is_empty() || !chart.set.is_empty() {
        parts.extend([json!(chart.url), json!(chart.set)]);
    }
    let text = Value::Array(parts).to_string();
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
        let spec =
            json!({"chart": {"name": "c", "repository": "https://r", "version": "1"}, "values": {"a": 1}});
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
                json!({"chart": {"name": "c"}, "valuesFrom": [{"secretKeyRef": {"name": "a"}}]}),
                "spec.forProvider.valuesFrom is not supported by the embedded driver",
            ),
            (
                json!({"chart": {"name": "c"}, "set": [{"name": "a", "valueFrom": {"secretKeyRef": {}}}]}),
                "spec.forProvider.set[0].valueFrom is not supported by the embedded driver",
            ),
            (
                json!({"chart": {"name": "c"}, "set": [{"name": "a"}]}),
                "spec.forProvider.set[0].value is missing",
            ),
            (
                json!({"chart": {"name": "c", "pullSecretRef": {"name": "a"}}}),
                "spec.forProvider.chart.pullSecretRef is not supported by the embedded driver",
            ),
            (
                json!({"chart": {"name": "--post-renderer=x", "repository": "https://r"}}),
                "spec.forProvider.chart.name: \"--post-renderer=x\" begins with a dash",
            ),
            (
                json!({"chart": {"name": "c", "repository": "/etc"}}),
                "spec.forProvider.chart.repository: \"/etc\" does not begin with https://, http:// or oci://",
            ),
            (
                json!({"chart": {"url": "file:///etc"}}),
                "spec.forProvider.chart.url: \"file:///etc\" does not begin with https://, http:// or oci://",
            ),
            (
                json!({"chart": {"name": "c", "repository": "oci://r"}, "wait": true, "waitTimeout": "soon"}),
                "spec.forProvider.waitTimeout: \"soon\" is not a time such as 90s or 5m, of a day at most",
            ),
        ] {
            assert_eq!(chart(&release(&spec, "")).unwrap_err(), expected);
        }
    }
}
