//! The CEL rules of the schema, evaluated as an API server would.

use modelplane_api::validate::prepare;
use modelplane_cel::validation::Rule;

use super::Finding;
use crate::manifests::Manifest;

/// Rules of the object's schema that do not hold.
pub(super) fn check(manifest: &Manifest) -> Vec<Finding> {
    let Ok(prepared) = prepare(&manifest.body) else { return Vec::new() };
    let mut findings = Vec::new();
    for site in prepared.rule_sites() {
        let path = prepared.original_path(&site.path);
        let outcome = Rule::compile(site.schema, site.rule)
            .map_err(|error| error.to_string())
            .and_then(|rule| rule.evaluate(site.value, None).map_err(|error| error.to_string()));
        match outcome {
            Ok(true) => {}
            Ok(false) => findings.push(Finding::error(manifest, path, site.message)),
            Err(error) => {
                let text = format!("{} (the rule cannot be evaluated: {error})", site.message);
                findings.push(Finding::error(manifest, path, text));
            }
        }
    }
    findings
}
