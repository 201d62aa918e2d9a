//! References between objects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Finding, Severity, name, namespace, of_kind, template_field};
use crate::manifests::Manifest;

/// References that lead nowhere among the manifests.
pub(super) fn check(manifests: &[Manifest], severity: Severity) -> Vec<Finding> {
    let mut findings = Vec::new();
    let classes: BTreeSet<&str> = of_kind(manifests, "InferenceClass").map(name).collect();
    for cluster in of_kind(manifests, "InferenceCluster") {
        let pools = cluster.body["spec"]["nodePools"].as_array();
        for (index, pool) in pools.into_iter().flatten().enumerate() {
            let Some(class) = pool["className"].as_str().filter(|class| !classes.contains(class)) else {
                continue;
            };
            let path = format!("spec.nodePools[{index}].className");
            findings.push(dangling(cluster, severity, path, "InferenceClass", class, &classes));
        }
    }
    let caches: BTreeSet<(&str, &str)> = of_kind(manifests, "ModelCache").map(identity).collect();
    for deployment in of_kind(manifests, "ModelDeployment") {
        let Some((path, reference)) = template_field(deployment, "modelCacheRef") else { continue };
        let Some(cache) = reference["name"].as_str() else { continue };
        let namespace = namespace(deployment);
        if !caches.contains(&(namespace, cache)) {
            let known = caches.iter().filter(|(own, _)| *own == namespace).map(|(_, name)| *name).collect();
            findings.push(dangling(
                deployment,
                severity,
                format!("{path}.name"),
                "ModelCache",
                cache,
                &known,
            ));
        }
    }
    findings.extend(
        of_kind(manifests, "ModelService").flat_map(|service| unmatched(manifests, service, severity)),
    );
    findings
}

fn identity(manifest: &Manifest) -> (&str, &str) {
    (namespace(manifest), name(manifest))
}

fn dangling(
    manifest: &Manifest,
    severity: Severity,
    path: String,
    kind: &str,
    target: &str,
    known: &BTreeSet<&str>,
) -> Finding {
    let finding =
        Finding::new(manifest, severity, path, format!("no {kind} named {target:?} among the manifests"));
    if known.is_empty() {
        return finding.with_hint("add it with another -f, or use --partial if it exists elsewhere");
    }
    let names: Vec<&str> = known.iter().copied().collect();
    finding.with_hint(format!("known: {}; use --partial if it exists elsewhere", names.join(", ")))
}

/// Entries of a service that no deployment and no endpoint answers.
fn unmatched(manifests: &[Manifest], service: &Manifest, severity: Severity) -> Vec<Finding> {
    let entries = service.body["spec"]["endpoints"].as_array();
    let unmatched = entries.into_iter().flatten().enumerate().filter_map(|(index, entry)| {
        let labels = entry["selector"]["matchLabels"].as_object()?;
        let answered = of_kind(manifests, "ModelEndpoint").any(|endpoint| carries(endpoint, labels))
            || of_kind(manifests, "ModelDeployment").any(|deployment| may_carry(deployment, labels));
        let path = format!("spec.endpoints[{index}].selector.matchLabels");
        (!answered).then(|| {
            let shown = Value::Object(labels.clone());
            let message = format!("no ModelDeployment or ModelEndpoint among the manifests answers {shown}");
            Finding::new(service, severity, path, message).with_hint(
                "endpoints of a deployment carry modelplane.ai/deployment and its template's labels",
            )
        })
    });
    unmatched.collect()
}

type Labels = serde_json::Map<String, Value>;

fn carries(endpoint: &Manifest, labels: &Labels) -> bool {
    labels.iter().all(|(key, value)| endpoint.body["metadata"]["labels"][key] == *value)
}

/// Whether endpoints of the deployment can carry the labels; cluster and index are not known yet.
fn may_carry(deployment: &Manifest, labels: &Labels) -> bool {
    labels.iter().all(|(key, value)| match key.as_str() {
        "modelplane.ai/deployment" => *value == name(deployment),
        "modelplane.ai/cluster" | "modelplane.ai/replica-index" => true,
        _ => deployment.body["spec"]["template"]["metadata"]["labels"][key] == *value,
    })
}
