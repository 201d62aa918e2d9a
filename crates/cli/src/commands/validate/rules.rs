//! The CEL rules of the schema, evaluated as an API server would when the object is created.

use modelplane_api::validate::prepare;
use modelplane_cel::validation::{Rule, RuleSource};

use super::Finding;
use crate::manifests::Manifest;

/// Rules of the object's schema that do not hold.
pub(super) fn check(manifest: &Manifest) -> Vec<Finding> {
    let Ok(prepared) = prepare(&manifest.body) else { return Vec::new() };
    let mut findings = Vec::new();
    for site in prepared.rule_sites() {
        let path = prepared.original_path(&site.path);
        let source = RuleSource { rule: site.rule, ..RuleSource::default() };
        let verdict = match Rule::compile(site.schema, path.is_empty(), source) {
            Ok(rule) if !rule.applies(false) => continue,
            Ok(rule) => rule.evaluate(site.value, None).result.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match verdict {
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
