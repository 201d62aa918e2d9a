//! Manifests that are valid and still probably not what was meant.

use std::collections::BTreeMap;

use modelplane_api::normalize::needs_normalizing;
use modelplane_core::simulate::ObjectKey;
use serde_json::Value;

use super::{Finding, of_kind, template_field};
use crate::manifests::Manifest;

/// All lints over all manifests.
pub(super) fn check(manifests: &[Manifest]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = of_kind(manifests, "ModelDeployment")
        .flat_map(|deployment| [gang_without_cache(deployment), older_shape(deployment)])
        .flatten()
        .collect();
    findings.extend(
        of_kind(manifests, "InferenceCluster")
            .flat_map(|cluster| [older_shape(cluster), zones(cluster), bounds(cluster)])
            .flatten(),
    );
    findings.extend(duplicates(manifests));
    findings
}

/// A gang downloads the weights on every node at once unless a cache holds them.
fn gang_without_cache(deployment: &Manifest) -> Option<Finding> {
    if template_field(deployment, "modelCacheRef").is_some() {
        return None;
    }
    let (path, engines) = template_field(deployment, "engines")?;
    let gang = engines.as_array()?.iter().position(|engine| {
        engine["members"]
            .as_array()
            .is_some_and(|members| members.iter().any(|member| member["role"] == "Worker"))
    })?;
    let message = "a gang without a model cache: every node downloads the weights on its own";
    let finding = Finding::warning(deployment, format!("{path}[{gang}]"), message);
    Some(finding.with_hint("stage the weights with a ModelCache and name it in modelCacheRef"))
}

fn older_shape(manifest: &Manifest) -> Option<Finding> {
    let hint = "`modelplane convert` rewrites it";
    needs_normalizing(&manifest.body)
        .then(|| Finding::warning(manifest, "spec", "uses the older (v0.1) shape of the API").with_hint(hint))
}

/// GKE and EKS pools cannot be provisioned without zones.
fn zones(cluster: &Manifest) -> Option<Finding> {
    let source = cluster.body["spec"]["cluster"]["source"].as_str()?;
    let index = cluster.body["spec"]["nodePools"]
        .as_array()?
        .iter()
        .position(|pool| pool["zones"].as_array().is_none_or(Vec::is_empty))?;
    let message = format!("a pool on {source} without zones is not provisioned");
    matches!(source, "GKE" | "EKS").then(|| {
        Finding::warning(cluster, format!("spec.nodePools[{index}]"), message)
            .with_hint("name the zones to use in zones")
    })
}

/// A pool whose least number of nodes is more than its most cannot be provisioned.
fn bounds(cluster: &Manifest) -> Option<Finding> {
    let pools = cluster.body["spec"]["nodePools"].as_array()?.iter().enumerate();
    let mut wrong = pools.filter_map(|(index, pool)| {
        let (least, most) = (pool["minNodeCount"].as_i64()?, pool["maxNodeCount"].as_i64()?);
        (least > most).then(|| {
            let path = format!("spec.nodePools[{index}].minNodeCount");
            Finding::warning(cluster, path, format!("{least} is more than maxNodeCount {most}"))
        })
    });
    wrong.next()
}

/// Of several manifests for one object only the last counts.
fn duplicates(manifests: &[Manifest]) -> Vec<Finding> {
    let mut seen: BTreeMap<ObjectKey, &Manifest> = BTreeMap::new();
    let mut findings = Vec::new();
    for manifest in manifests {
        let key = ObjectKey::of(&manifest.body);
        let generated = manifest.body["metadata"]["name"] == Value::Null;
        if let Some(earlier) = seen.insert(key.clone(), manifest).filter(|_| !generated) {
            let message = format!("{key} stands in {} too; the later one wins", earlier.start());
            findings.push(Finding::warning(manifest, "metadata.name", message));
        }
    }
    findings
}
