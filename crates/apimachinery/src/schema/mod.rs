//! Structural schemas: what a CustomResourceDefinition says about its objects.
//!
//! [`Schema::parse`] checks and compiles the `openAPIV3Schema` of a CRD once. An object is then
//! [defaulted](Schema::apply_defaults), [pruned](Schema::prune) and [validated](Schema::validate), in this order. [`decode`]
//! reads bodies, [`metadata`] checks what every object has, [`publish`] makes the schemas of the OpenAPI endpoints.
//!
//! Behaviour and wording follow kube-apiserver 1.36 and are tested against its recorded answers. Deliberate
//! differences: faults are reported in the order of the object's fields (Kubernetes' order is random), schemas nest at
//! most [`MAXIMUM_SCHEMA_DEPTH`] deep, rules that do not compile are explained by our own compiler.

mod cause;
mod correlate;
pub mod decode;
mod defaults;
mod embedded;
mod evaluate;
mod format;
mod go_text;
mod lists;
pub mod metadata;
mod node;
mod parse;
mod path;
mod properties;
mod prune;
pub mod publish;
mod raw;
mod rules;
mod standard;
mod structural;
mod validate;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use cause::{Cause, CauseReason};
pub(crate) use go_text::go_json;
pub use node::{Additional, Kind, ListType, MapType, PatchStrategy, Schema};
pub use path::FieldPath;
pub use properties::Properties;
/// Schemas nest at most this deep.
pub use raw::MAXIMUM_DEPTH as MAXIMUM_SCHEMA_DEPTH;

impl Schema {
    /// Drops what the schema of a whole resource does not have, in its metadata too, and returns the paths, sorted.
    ///
    /// The paths are those of `unknown field "…"` in the errors and warnings of field validation (KEP-2885).
    pub fn prune(&self, object: &mut Value) -> Vec<FieldPath> {
        prune::prune(self, object, true)
    }

    /// Fills in defaults at all levels, dropping nulls that are neither allowed nor replaced.
    pub fn apply_defaults(&self, object: &mut Value) {
        defaults::apply(self, object);
    }

    /// Validates an object: values, embedded resources, lists of type set and map, rules.
    ///
    /// With an `old` version, faults of unchanged values are excused (KEP-4008) and rules about changes run. The type
    /// and the metadata of the object itself are [checked elsewhere](metadata). No causes: it is valid.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let causes = validate::validate(self, object, old, "");
        self.finish(object, old, causes)
    }

    /// [`Schema::validate`] for an update of the `status` subresource: of the values only the status is validated.
    pub fn validate_status(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let causes = match (self.properties.get("status"), object.get("status")) {
            (Some(schema), Some(status)) => {
                validate::validate(schema, status, old.and_then(|old| old.get("status")), "status")
            }
            _ => Vec::new(),
        };
        self.finish(object, old, causes)
    }

    fn finish(&self, object: &Value, old: Option<&Value>, mut causes: Vec<Cause>) -> Vec<Cause> {
        causes.extend(embedded::check(self, object, "", false));
        let old_is_fine = || old.is_none_or(|old| lists::check(self, old, "").is_empty());
        let repeated = lists::check(self, object, "");
        if !repeated.is_empty() && old_is_fine() {
            causes.extend(repeated);
        }
        if !self.holds.rules {
            // Kubernetes tells about skipped rules only where there are some.
            return causes;
        }
        if validate::blocks_rules(&causes) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            causes.push(Cause::invalid("", &Value::Null, detail));
        } else {
            causes.extend(evaluate::evaluate(self, object, old, ""));
        }
        causes
    }
}
