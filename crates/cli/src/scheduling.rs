//! Asking the scheduler about a simulated fleet.

use modelplane_api::model_deployment::ModelDeployment;
use modelplane_core::catalog;
use modelplane_core::contract::Resource;
use modelplane_core::document::{Document, encode};
use modelplane_core::schedule::{self, ClusterLabels, Inputs, NewReplicas, Problem, Report};
use modelplane_core::simulate::{StoredObject, World};
use serde_json::{Value, json};

use crate::view::{key, resources, text};

/// Why a deployment cannot be scheduled at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Unschedulable {
    /// What is wrong, in one line.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl Unschedulable {
    fn new(message: impl ToString) -> Self {
        Self { message: message.to_string(), hint: None }
    }
}

/// What the scheduler says about `deployment` on the clusters of `world`, given the replicas of `replicas`
/// (usually the same world).
pub(crate) fn report(
    world: &World,
    replicas: &World,
    deployment: &StoredObject,
) -> Result<Report, Unschedulable> {
    let typed: ModelDeployment = deployment.document().decode().map_err(Unschedulable::new)?;
    let cache_name = typed.spec.template.spec.model_cache();
    let cache = cache_name.map(|name| world.get(&key("ModelCache", &deployment.key.namespace, name)));
    let document = cache.flatten().map(StoredObject::document);
    let (labels, readable) = match ClusterLabels::new(&typed, document) {
        Ok(labels) => (labels, true),
        Err(_) => (ClusterLabels::new(&typed, None).map_err(Unschedulable::new)?, false),
    };
    let held = matches!(cache, Some(None)) || !readable;
    let clusters = resources(world, "InferenceCluster");
    let replicas = resources(replicas, "ModelReplica");
    explain(Inputs {
        deployment: &typed,
        clusters: &clusters,
        replicas: &replicas,
        composed: &[],
        labels: Some(&labels),
        placement: if held { NewReplicas::HeldByCache } else { NewReplicas::Allowed },
    })
}

fn explain(inputs: Inputs<'_>) -> Result<Report, Unschedulable> {
    let problem = Problem::new(inputs).map_err(|error| Unschedulable {
        message: error.to_string(),
        hint: error.source.hint().map(|hint| hint.to_string()),
    })?;
    Ok(schedule::explain(&problem, &schedule::solve(&problem)))
}

/// What the scheduler would say of InferenceClasses if each had a cluster of its own with many nodes, named
/// after the class: which hardware suits, capacity and clusters aside.
pub(crate) fn report_on_classes<'c>(
    deployment: &Value,
    classes: impl IntoIterator<Item = &'c Value>,
) -> Result<Report, Unschedulable> {
    let deployment = encode(deployment).map_err(Unschedulable::new)?;
    let typed: ModelDeployment = Document::from_struct(&deployment).decode().map_err(Unschedulable::new)?;
    let clusters: Vec<Vec<u8>> =
        classes.into_iter().filter_map(|class| encode(&cluster_of(class)).ok()).collect();
    let clusters: Vec<Resource<'_>> =
        clusters.iter().map(|bytes| Resource::new(Document::from_struct(bytes))).collect();
    explain(Inputs {
        deployment: &typed,
        clusters: &clusters,
        replicas: &[],
        composed: &[],
        labels: None,
        placement: NewReplicas::Allowed,
    })
}

/// A ready cluster that has nothing but nodes of the class.
fn cluster_of(class: &Value) -> Value {
    let name = text(class, &["metadata", "name"]);
    json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceCluster", "metadata": {"name": name},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "gateway": {"address": "198.18.0.1"},
            "gpuPools": [{"name": name, "nodes": 1_000_000, "devices": class["spec"]["devices"]}],
        },
    })
}

/// Names of the classes of a report that suit the deployment.
pub(crate) fn suitable(report: &Report) -> Vec<&str> {
    let suits = report.clusters.iter().filter(|cluster| cluster.rejections.is_empty());
    suits.map(|cluster| cluster.name.as_str()).collect()
}

/// The classes of the default catalog that suit the deployment.
pub(crate) fn suitable_in_catalog(deployment: &Value) -> Vec<String> {
    let classes: Vec<Value> =
        catalog::list().iter().filter_map(|entry| serde_saphyr::from_str(entry.yaml).ok()).collect();
    let report = report_on_classes(deployment, &classes);
    report.map(|report| suitable(&report).into_iter().map(str::to_owned).collect()).unwrap_or_default()
}
