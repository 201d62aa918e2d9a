//! References between objects.

use std::collections::BTreeSet;

use modelplane_api::names::{CLUSTER_LABEL, DEPLOYMENT_LABEL, REPLICA_INDEX_LABEL};
use serde_json::Value;

use super::{Finding, Severity, name, namespace, of_kind, template_field};
use crate::manifests::Manifest;
use crate::resolve::closest;
use crate::view::some_of;

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
            let reference = Reference { path, kind: "InferenceClass", target: class };
            findings.push(dangling(cluster, severity, reference, &classes));
        }
    }
    let caches: BTreeSet<(&str, &str)> = of_kind(manifests, "ModelCache").map(identity).collect();
    for deployment in of_kind(manifests, "ModelDeployment") {
        let Some((path, reference)) = template_field(deployment, "modelCacheRef") else { continue };
        let Some(cache) = reference["name"].as_str() else { continue };
        let namespace = namespace(deployment);
        if !caches.contains(&(namespace, cache)) {
            let known = caches.iter().filter(|(own, _)| *own == namespace).map(|(_, name)| *name).collect();
            let reference = Reference { path: format!("{path}.name"), kind: "ModelCache", target: cache };
            findings.push(dangling(deployment, severity, reference, &known));
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

/// A reference to an object by name.
struct Reference<'r> {
    path: String,
    kind: &'static str,
    target: &'r str,
}

fn dangling(
    manifest: &Manifest,
    severity: Severity,
    reference: Reference<'_>,
    known: &BTreeSet<&str>,
) -> Finding {
    let Reference { path, kind, target } = reference;
    let message = format!("no {kind} named {target:?} among the manifests");
    let finding = Finding::new(manifest, severity, path, message);
    let elsewhere = "use --partial if it exists elsewhere";
    if let Some(close) = closest(target, known.iter().copied()) {
        return finding.with_hint(format!("did you mean {close}?"));
    }
    if known.is_empty() {
        return finding.with_hint(format!("add it with another -f, or {elsewhere}"));
    }
    let names: Vec<&str> = known.iter().copied().collect();
    finding.with_hint(format!("known: {}; {elsewhere}", some_of(&names, 8)))
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
                match nearest_deployment(manifests, labels) {
                    Some(close) => format!("did you mean {DEPLOYMENT_LABEL}={close}?"),
                    None => format!(
                        "endpoints of a deployment carry {DEPLOYMENT_LABEL} and its template's labels"
                    ),
                },
            )
        })
    });
    unmatched.collect()
}

/// The deployment whose name is nearest to the one asked for.
fn nearest_deployment<'m>(manifests: &'m [Manifest], labels: &Labels) -> Option<&'m str> {
    let asked = labels.get(DEPLOYMENT_LABEL)?.as_str()?;
    closest(asked, of_kind(manifests, "ModelDeployment").map(name))
}

type Labels = serde_json::Map<String, Value>;

fn carries(endpoint: &Manifest, labels: &Labels) -> bool {
    labels.iter().all(|(key, value)| endpoint.body["metadata"]["labels"][key] == *value)
}

/// Whether endpoints of the deployment can carry the labels; cluster and index are not known yet.
fn may_carry(deployment: &Manifest, labels: &Labels) -> bool {
    labels.iter().all(|(key, value)| match key.as_str() {
        DEPLOYMENT_LABEL => *value == name(deployment),
        CLUSTER_LABEL | REPLICA_INDEX_LABEL => true,
        _ => deployment.body["spec"]["template"]["metadata"]["labels"][key] == *value,
    })
}
