//! Kubernetes' built-in kinds: names, scopes, subresources, printed columns and schemas.
//!
//! Schemas come from `third_party/kubernetes` (made by `xtask vendor`) and are read when first asked for,
//! kind by kind. Behaviour (defaults that are computed, validation beyond schemas) is not here.

mod cells;
mod columns;
mod definitions;
mod kinds;
mod schemas;
mod time;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::apply::Reset;
use crate::schema::Schema;

pub use columns::{Cell, Column};

/// A built-in kind.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinKind {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The resource: the last part of its URL.
    pub plural: &'static str,
    /// The singular name.
    pub singular: &'static str,
    /// Short names.
    pub short_names: &'static [&'static str],
    /// Categories, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects are in namespaces.
    pub namespaced: bool,
    /// Whether there is a status subresource.
    pub status: bool,
    /// Whether there is a scale subresource, of `spec.replicas`.
    pub scale: bool,
    /// Whether objects are answered and not stored, as reviews are.
    pub transient: bool,
    /// The fields by which objects can be selected, beside their name and namespace.
    pub selectable_fields: &'static [&'static str],
    /// What is printed of an object.
    pub columns: &'static [Column],
}

impl BuiltinKind {
    /// `apps/v1`, or `v1` for the core.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The schema, read when first asked for.
    pub fn schema(&self) -> Arc<Schema> {
        schema(self.group, self.version, self.kind).unwrap_or_default()
    }

    /// The object that sets nothing: structs that are not optional are there, empty.
    ///
    /// This is what an update that creates an object is compared with; see [`crate::apply::WriteRequest::empty`].
    pub fn empty(&self) -> Value {
        let mut empty = schemas::zero(&self.schema());
        if let Value::Object(fields) = &mut empty {
            fields.insert("apiVersion".to_owned(), json!(self.api_version()));
            fields.insert("kind".to_owned(), json!(self.kind));
        }
        empty
    }

    /// Brings an object to the form in which Kubernetes has it after decoding: without nulls, without empty
    /// lists and maps that are optional, with the structs that are not.
    pub fn normalize(&self, object: &mut Value) {
        schemas::normalize(&self.schema(), object);
    }

    /// What writes of the object itself reset.
    pub fn reset(&self) -> Reset {
        if self.status { Reset::status() } else { Reset::nothing() }
    }

    /// What writes of the status subresource reset.
    pub fn status_reset(&self) -> Reset {
        Reset::fields(&[&["spec"], &["metadata", "labels"]])
    }

    /// The cells of an object's row, in the order of the columns; `now` is in seconds since 1970.
    pub fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        self.columns.iter().map(|column| cells::cell(column.cell, object, now)).collect()
    }
}

/// All built-in kinds, by group and kind.
pub fn kinds() -> &'static [BuiltinKind] {
    kinds::KINDS
}

/// The kind of a group, version and kind.
pub fn find(group: &str, version: &str, kind: &str) -> Option<&'static BuiltinKind> {
    kinds().iter().find(|known| (known.group, known.version, known.kind) == (group, version, kind))
}

/// The schema of a kind; also of `autoscaling/v1` Scale, which is a kind of no resource.
pub fn schema(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    schemas::get(group, version, kind)
}

/// The name of a kind's OpenAPI definition.
pub fn definition_name(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    definitions::name_of(group, version, kind)
}

/// An OpenAPI v3 component, for discovery documents.
///
/// References are by definition name, without `#/components/schemas/`.
pub fn definition(name: &str) -> Option<Value> {
    definitions::get(name)
}
