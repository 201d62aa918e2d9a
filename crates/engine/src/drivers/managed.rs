//! Clouds' managed resources: said to need Crossplane, or simulated where that was asked for.
//!
//! Nothing is ever created in a cloud from here. A simulated resource is ready once the siblings its
//! selectors refer to are, carries the label `modelplane.ai/simulated`, and reports what compositions read.

use std::sync::Arc;

use base64::Engine as _;
use futures_util::future::BoxFuture;
use modelplane_api::names::EXTERNAL_NAME_ANNOTATION;
use modelplane_core::simulate::ObjectKey;
use serde_json::{Value, json};

use super::status::{Report, adopt, report};
use super::{FINALIZER, NEEDS_CROSSPLANE, SIMULATED_LABEL};
use crate::cache::Caches;
use crate::client::{Resource, Target, Write};
use crate::composite::remove_finalizer;
use crate::conditions::NewCondition;
use crate::controller::{Controller, Next, ReconcileError, Trying};
use crate::metrics::{ControllerMetrics, Metrics};
use crate::object::Stored;
use crate::queue::WorkQueue;
use crate::usage::UsageIndex;

/// Plays the clouds.
pub trait CloudSimulator: Send + Sync {
    /// The kubeconfig of the simulated cluster that stands in for a managed resource; the object is the
    /// resource that would write it to its connection Secret.
    fn kubeconfig<'a>(&'a self, object: &'a Value) -> BoxFuture<'a, Option<String>>;
}

/// Reports on clouds' managed resources.
pub struct ManagedDriver {
    pub(crate) caches: Arc<Caches>,
    pub(crate) usages: Arc<UsageIndex>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) queue: WorkQueue,
    /// Whether resources are simulated, and by whom their clusters are.
    pub(crate) simulate: bool,
    pub(crate) simulator: Option<Arc<dyn CloudSimulator>>,
}

impl Controller for ManagedDriver {
    const NAME: &'static str = "managed";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(object) = self.caches.get(key) else { return Ok(Next::OnChange) };
        if object.is_deleting() {
            if object.finalizers().contains(&FINALIZER) && self.usages.holds(key, &self.queue).is_none() {
                remove_finalizer(self.caches.api(), &object, FINALIZER).await?;
            }
            return Ok(Next::OnChange);
        }
        if !self.simulate {
            let message = "clouds are provisioned by Crossplane and its providers, which the embedded engine has not; \
                           run Modelplane on Crossplane, or use source Existing";
            let conditions = vec![NewCondition::not_synced(NEEDS_CROSSPLANE, message)];
            report(&self.caches, &object, Report { conditions, at_provider: None }).await?;
            return Ok(Next::OnChange);
        }
        self.simulated(&object).await
    }

    fn metrics(&self) -> &ControllerMetrics {
        &self.metrics.managed
    }
}

impl ManagedDriver {
    async fn simulated(&self, object: &Arc<Stored>) -> Result<Next, ReconcileError> {
        let name = object.annotation(EXTERNAL_NAME_ANNOTATION).unwrap_or(&object.key.name).to_owned();
        let object =
            adopt(&self.caches, object, &[(EXTERNAL_NAME_ANNOTATION, &name)], &[(SIMULATED_LABEL, "true")])
                .await?;
        let value = object.value();
        let waiting = self.waits_for(&object, &value);
        let secret = match waiting {
            None => self.connect(&object, &value).await?,
            Some(_) => true,
        };
        let message = match &waiting {
            Some(sibling) => format!("waiting for {sibling}"),
            None => "no simulated cluster stands in for it".to_owned(),
        };
        let ready = match waiting.is_none() && secret {
            true => NewCondition::new("Ready", true, "Available").because("simulated"),
            false => NewCondition::new("Ready", false, "Creating").because(&message),
        };
        let conditions = vec![NewCondition::synced().because("simulated"), ready];
        let at_provider = Some(at_provider(&value));
        report(&self.caches, &object, Report { conditions, at_provider }).await?;
        Ok(Next::OnChange)
    }

    /// The first sibling it refers to by a selector that is not ready.
    fn waits_for(&self, object: &Stored, value: &Value) -> Option<ObjectKey> {
        let owner = object.controller()?;
        let mut selectors = Vec::new();
        collect_selectors(&value["spec"]["forProvider"], &mut selectors, 0);
        let siblings = self.caches.controlled_by(owner.uid);
        let waited = siblings.into_iter().find(|sibling| {
            sibling.key != object.key
                && sibling.condition("Ready") != Some("True")
                && selectors.iter().any(|selector| selector.matches(sibling))
        });
        waited.map(|sibling| sibling.key.clone())
    }

    /// Writes the connection Secret of a resource that has one; false if there is nothing to write.
    async fn connect(&self, object: &Stored, value: &Value) -> Result<bool, ReconcileError> {
        let Some(name) = value["spec"]["writeConnectionSecretToRef"]["name"].as_str() else {
            return Ok(true);
        };
        let Some(simulator) = &self.simulator else { return Ok(true) };
        let Some(kubeconfig) = simulator.kubeconfig(value).await else { return Ok(false) };
        let encoded = base64::engine::general_purpose::STANDARD.encode(kubeconfig);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1",
            "metadata": {
                "name": name,
                "namespace": object.key.namespace,
                "labels": {SIMULATED_LABEL: "true"},
                "ownerReferences": [{
                    "apiVersion": object.api_version(), "kind": object.key.kind,
                    "name": object.key.name, "uid": object.uid,
                }],
            },
            "data": {"kubeconfig": encoded},
        });
        let resource = Resource::new("v1", "Secret", "secrets", true);
        let target = Target::named(&object.key.namespace, name);
        let written = self
            .caches
            .api()
            .write(&resource, &target, Write::Apply("modelplane-simulated-cloud"), &secret)
            .await;
        self.caches.put(written.trying("cannot write the connection Secret")?);
        Ok(true)
    }
}

/// What a simulated resource reports: what was asked for, and the outputs that others read.
fn at_provider(object: &Value) -> Value {
    let mut reported = object["spec"]["forProvider"].clone();
    if !reported.is_object() {
        reported = json!({});
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    reported["id"] = json!(name);
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    match (crate::object::group(api_version), object["kind"].as_str().unwrap_or_default()) {
        ("cloudplatform.gcp.m.upbound.io", "ServiceAccount") => {
            reported["email"] = json!(format!("{name}@simulated.iam.gserviceaccount.com"));
        }
        ("eks.aws.m.upbound.io", "Cluster") => {
            reported["vpcConfig"] = json!({"clusterSecurityGroupId": format!("sg-{name}")});
        }
        _ => {}
    }
    reported
}

/// A reference to siblings by labels.
struct Selector<'v> {
    /// The field's name without its ending, in lower case: it ends with the kind.
    stem: String,
    labels: Option<&'v serde_json::Map<String, Value>>,
}

impl Selector<'_> {
    fn matches(&self, sibling: &Stored) -> bool {
        let labelled = self
            .labels
            .is_none_or(|wanted| wanted.iter().all(|(key, value)| sibling.label(key) == value.as_str()));
        labelled && self.stem.ends_with(&sibling.key.kind.to_lowercase())
    }
}

/// Deepest field looked at; clouds' resources stay far below.
const DEEPEST: usize = 32;

fn collect_selectors<'v>(value: &'v Value, out: &mut Vec<Selector<'v>>, depth: usize) {
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let stem = name.strip_suffix("Selector").or_else(|| name.strip_suffix("Selectors"));
                match stem.filter(|_| field.get("matchControllerRef").is_some()) {
                    Some(stem) => {
                        let ends = ["Ids", "Id", "Names", "Name", "Arn"];
                        let stem = ends.iter().find_map(|end| stem.strip_suffix(end)).unwrap_or(stem);
                        let labels = field["matchLabels"].as_object();
                        out.push(Selector { stem: stem.to_lowercase(), labels });
                    }
                    None => collect_selectors(field, out, depth + 1),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_selectors(item, out, depth + 1)),
        _ => {}
    }
}

/// The managed resources whose simulation a change may let go on: the siblings of what changed.
pub(crate) fn siblings(caches: &Caches, object: &Stored) -> Vec<ObjectKey> {
    let Some(owner) = object.controller() else { return Vec::new() };
    let siblings = caches.controlled_by(owner.uid).into_iter();
    siblings.filter(|sibling| is_managed(sibling)).map(|sibling| sibling.key.clone()).collect()
}

/// Whether an object stands for something in a cloud.
pub(crate) fn is_managed(object: &Stored) -> bool {
    crate::bootstrap::is_cloud_kind(&object.key.group, &object.key.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_name_the_kind_they_want() {
        let spec = json!({
            "vpcIdSelector": {"matchControllerRef": true, "matchLabels": {"a": "b"}},
            "vpcConfig": {"subnetIdSelector": {"matchControllerRef": true}},
            "otherSelector": {"matchLabels": {"a": "b"}},
        });
        let mut selectors = Vec::new();
        collect_selectors(&spec, &mut selectors, 0);
        let sibling = |kind: &str, labels: Value| {
            let metadata = json!({"name": "s", "labels": labels});
            Stored::from_value(json!({"kind": kind, "metadata": metadata})).unwrap()
        };
        for (name, sibling, expected) in [
            ("labelled", sibling("VPC", json!({"a": "b"})), true),
            ("another label", sibling("VPC", json!({"a": "c"})), false),
            ("any of the kind", sibling("Subnet", json!({})), true),
            ("another kind", sibling("Role", json!({"a": "b"})), false),
        ] {
            assert_eq!(selectors.iter().any(|selector| selector.matches(&sibling)), expected, "{name}");
        }
    }
}
