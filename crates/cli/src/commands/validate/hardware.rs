//! ModelDeployments that none of the InferenceClasses among the manifests can ever satisfy.

use std::collections::BTreeMap;

use modelplane_api::normalize::normalize;
use modelplane_core::schedule::{ClusterReport, DeviceRejection, PoolRejection};
use serde_json::Value;

use super::{Finding, name, of_kind, template_field};
use crate::manifests::Manifest;
use crate::nearest::{Pool, brief, nearest, nearest_device, pools};
use crate::scheduling;

/// One warning for each such deployment, at the selector that is in the way.
pub(super) fn check(manifests: &[Manifest]) -> Vec<Finding> {
    // Of several classes of one name the last counts.
    let classes: BTreeMap<&str, &Value> =
        of_kind(manifests, "InferenceClass").map(|class| (name(class), &class.body)).collect();
    let classes: Vec<&Value> = classes.into_values().collect();
    if classes.is_empty() {
        return Vec::new();
    }
    of_kind(manifests, "ModelDeployment").filter_map(|deployment| unsatisfied(deployment, &classes)).collect()
}

fn unsatisfied(deployment: &Manifest, classes: &[&Value]) -> Option<Finding> {
    let mut body = deployment.body.clone();
    normalize(&mut body).ok()?;
    modelplane_api::apply_defaults(&mut body);
    // What does not compile or decode has been reported already.
    let report = scheduling::report_on_classes(&body, classes.iter().copied()).ok()?;
    if !scheduling::suitable(&report).is_empty() {
        return None;
    }
    // An engine a class: engines of one replica may use pools of different classes.
    let clusters: Vec<&ClusterReport> = report.clusters.iter().collect();
    let pools = pools(&clusters);
    let stuck = |pool: &Pool<'_>| !satisfied_somewhere(&clusters, pool.engine);
    let stuck: Vec<Pool<'_>> = pools.into_iter().filter(stuck).collect();
    let pool = nearest(&stuck)?;
    let PoolRejection::NoMatch { request, devices, .. } = pool.rejection else {
        let message = format!("no InferenceClass among the manifests suits engine {}", pool.engine);
        return Some(Finding::warning(deployment, template_field(deployment, "engines")?.0, message));
    };
    let device = nearest_device(devices)?;
    let selector = match &device.why {
        DeviceRejection::Selector { selector, .. } => Some(selector.as_str()),
        _ => None,
    };
    let message = format!(
        "no InferenceClass among the manifests has a device for request {request} of engine {}; nearest is \
         class {}, whose {}",
        pool.engine,
        pool.cluster,
        brief(device)
    );
    let path = path_of(deployment, pool.engine, request, selector)?;
    Some(Finding::warning(deployment, path, message).with_hint(
        "ask for less, or add a pool of a class that suits: `modelplane explain` on the deployment names some",
    ))
}

/// Whether any class has the devices of the engine.
fn satisfied_somewhere(clusters: &[&ClusterReport], engine: &str) -> bool {
    let pools = clusters.iter().flat_map(|cluster| &cluster.pools);
    let mut engines = pools.flat_map(|pool| &pool.engines).filter(|report| report.engine == engine);
    engines.any(|report| report.rejections.is_empty())
}

/// Where the request, or the selector in it, is written.
fn path_of(deployment: &Manifest, engine: &str, request: &str, selector: Option<&str>) -> Option<String> {
    let (path, engines) = template_field(deployment, "engines")?;
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    for (engine_index, candidate) in list(engines).iter().enumerate() {
        if candidate["name"] != engine {
            continue;
        }
        for (member_index, member) in list(&candidate["members"]).iter().enumerate() {
            for (index, wanted) in list(&member["nodeSelector"]["devices"]).iter().enumerate() {
                if wanted["name"] != request {
                    continue;
                }
                let at =
                    format!("{path}[{engine_index}].members[{member_index}].nodeSelector.devices[{index}]");
                let texts = list(&wanted["selectors"]);
                let written = texts.iter().position(|text| text["cel"].as_str() == selector);
                return Some(match written {
                    Some(number) => format!("{at}.selectors[{number}].cel"),
                    None => at,
                });
            }
        }
    }
    Some(path)
}
