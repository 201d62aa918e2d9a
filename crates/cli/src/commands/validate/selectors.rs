//! Device selectors, compiled and type-checked as Kubernetes would.

use modelplane_cel::device::Selector;
use serde_json::Value;

use super::{Finding, template_field};
use crate::manifests::Manifest;

/// Highest worst-case cost with which an API server accepts a claim (resource.k8s.io/v1).
const COST_LIMIT: u64 = 1_000_000;

/// Selectors of a ModelDeployment or ModelReplica that a cluster would refuse.
pub(super) fn check(manifest: &Manifest) -> Vec<Finding> {
    let Some((path, engines)) = template_field(manifest, "engines") else { return Vec::new() };
    let mut found = Vec::new();
    for (engine_index, engine) in list(engines) {
        for (member_index, member) in list(&engine["members"]) {
            let member_path = format!("{path}[{engine_index}].members[{member_index}]");
            for (name, requests) in [
                ("nodeSelector.devices", &member["nodeSelector"]["devices"]),
                ("deviceRequests", &member["deviceRequests"]),
            ] {
                for (index, request) in list(requests) {
                    found.extend(selectors_of(manifest, &format!("{member_path}.{name}[{index}]"), request));
                }
            }
        }
    }
    found
}

fn selectors_of(manifest: &Manifest, path: &str, request: &Value) -> Vec<Finding> {
    list(&request["selectors"])
        .filter_map(|(index, selector)| {
            let text = selector["cel"].as_str()?;
            check_text(manifest, format!("{path}.selectors[{index}].cel"), text)
        })
        .collect()
}

fn check_text(manifest: &Manifest, path: String, text: &str) -> Option<Finding> {
    match Selector::compile(text) {
        Err(error) => {
            let finding = Finding::error(manifest, path, format!("invalid selector: {error}"));
            let hint = error.hint().map(str::to_owned);
            Some(Finding { snippet: Some(error.snippet()), hint, ..finding })
        }
        Ok(selector) if selector.estimated_cost() > COST_LIMIT => {
            let cost = selector.estimated_cost();
            let message = format!("selector is too complex: worst-case cost {cost} is over {COST_LIMIT}");
            let hint = "every cluster refuses such a claim; for quantities and versions, \
                        write compareTo(…) != 0 or !(a == b) instead of !=";
            Some(Finding::error(manifest, path, message).with_hint(hint))
        }
        Ok(_) => None,
    }
}

fn list(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}
