//! Server-side apply (KEP-555): merges what a manager applies into the live object, and keeps track of who
//! owns which field, also through creates, updates and patches.
//!
//! Semantics are those of structured-merge-diff v6 as kube-apiserver 1.36 uses it; `tests/data/apply` holds
//! its recorded answers. There is no clock here (the time of a write is an argument) and no conversion: the
//! versions of a kind differ in their schemas only, which is all a definition without a webhook can do.

mod compare;
mod last_applied;
mod managers;
mod merge;
mod path;
mod scale;
mod set;
mod types;
mod update;
mod walk;
mod wire;

use std::fmt;

use serde_json::Value;

use crate::schema::Schema;

pub use managers::{ManagedFieldsError, Manager, Operation, decode_managers, encode_managers};
pub use path::{KeyField, Path, PathElement};
pub use scale::{managers_from_scale, managers_of_scale};
pub use set::FieldSet;
pub use types::object_metadata;
pub use walk::{TypeError, TypeErrors};
pub use wire::FieldsError;

use types::Type;
use update::{Change, Clash, Rules};

/// The manager that owns what was there before the first apply of an object without managed fields.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The served versions of a kind (`apps/v1`), with their schemas.
pub type Versions<'a> = &'a [(&'a str, &'a Schema)];

/// A write of an object, apart from the objects.
#[derive(Debug, Clone, Copy)]
pub struct WriteRequest<'a> {
    /// All served versions; others own nothing.
    pub versions: Versions<'a>,
    /// The version the request is made in; the objects are in it too.
    pub api_version: &'a str,
    /// The kind, for messages.
    pub kind: &'a str,
    /// Who writes (`fieldManager`, or the first part of the user agent).
    pub manager: &'a str,
    /// The subresource written; empty for the object itself.
    pub subresource: &'a str,
    /// When, as RFC 3339 with seconds.
    pub time: &'a str,
    /// What such a write leaves as it is, and so does not own.
    pub reset: &'a Reset,
    /// The object that has no fields set: `{}`, or for built-in kinds the one whose structs are there, empty
    /// ([`crate::builtin::BuiltinKind::empty`]).
    pub empty: &'a Value,
}

/// Which fields a write resets to their live values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reset(FieldSet);

impl Reset {
    /// Nothing: the kind has no status subresource.
    pub fn nothing() -> Reset {
        Reset::default()
    }

    /// For the object itself where there is a status subresource.
    pub fn status() -> Reset {
        Reset(FieldSet::of_fields(&[&["status"]]))
    }

    /// For the status subresource of a custom resource.
    pub fn all_but_status() -> Reset {
        Reset(FieldSet::of_fields(&[&["metadata"], &["spec"]]))
    }

    /// For a subresource that resets the given fields, each a list of names.
    pub fn fields(paths: &[&[&str]]) -> Reset {
        Reset(FieldSet::of_fields(paths))
    }

    fn filtered(&self, set: FieldSet) -> FieldSet {
        if self.0.is_empty() { set } else { set.recursive_difference(&self.0) }
    }
}

/// Applying failed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields that would change (409 Conflict, one cause each).
    #[error(transparent)]
    Conflicts(#[from] Conflicts),
    /// The applied object is of another kind or version (400).
    #[error("invalid object type: {api_version}, Kind={kind}")]
    WrongKind {
        /// Its version.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// The applied object has managed fields (400).
    #[error("metadata.managedFields must be nil")]
    ManagedFields,
    /// The applied object is not of its schema (500, as Kubernetes answers).
    #[error("failed to create typed patch object ({object}): {errors}")]
    Type {
        /// Namespace, name and kind.
        object: String,
        /// The fields.
        errors: TypeErrors,
    },
    /// The live object's managed fields cannot be read (500).
    #[error("failed to decode managed fields: {0}")]
    LiveManagedFields(#[from] ManagedFieldsError),
}

/// The fields an apply would take from other managers, by manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

/// A field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The field (`.spec.replicas`).
    pub field: String,
    /// The manager, with how it wrote (`"kubectl" using apps/v1`).
    pub manager: String,
}

impl Conflict {
    /// The cause in `details.causes`, whose reason is `FieldManagerConflict`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = &self.0[..] {
            return write!(f, "Apply failed with 1 conflict: {}: {}", conflict.message(), conflict.field);
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        for (position, of_manager) in self.0.chunk_by(|left, right| left.manager == right.manager).enumerate()
        {
            let line_break = if position == 0 { "" } else { "\n" };
            write!(f, "{line_break}conflicts with {}:", of_manager[0].manager)?;
            of_manager.iter().try_for_each(|conflict| write!(f, "\n- {}", conflict.field))?;
        }
        Ok(())
    }
}

impl std::error::Error for Conflicts {}

impl From<Vec<Clash>> for Conflicts {
    fn from(clashes: Vec<Clash>) -> Conflicts {
        let conflict =
            |clash: Clash| Conflict { field: clash.path.to_string(), manager: clash.manager.display() };
        Conflicts(clashes.into_iter().map(conflict).collect())
    }
}

/// Merges `applied` into `live`, which is absent when the apply creates the object.
///
/// The result is neither pruned, defaulted nor validated: the caller does that, and keeps `status` or all but
/// `status` as the subresource demands.
///
/// # Errors
///
/// Conflicts unless `force`; an applied object that is malformed.
pub fn apply(
    request: &WriteRequest<'_>,
    live: Option<&Value>,
    applied: &Value,
    force: bool,
) -> Result<Value, ApplyError> {
    check_applied(request, applied)?;
    let live = live.unwrap_or(request.empty);
    let rules = Rules { versions: request.versions, reset: request.reset };
    let mut managers = decode_managers(live)?;
    if managers.is_empty() {
        let before =
            update::writer(Operation::Update, BEFORE_FIRST_APPLY, request.api_version, request.subresource);
        managers =
            recorded(&rules, request, Change { before: request.empty, after: live }, managers, &before);
    }
    let writer = update::writer(Operation::Apply, request.manager, request.api_version, request.subresource);
    let change = Change { before: live, after: applied };
    let merged = match rules.apply(change, managers.clone(), &writer, force) {
        Ok(merged) => merged,
        Err(clashes) => {
            let left = last_applied::not_explained(request, live, clashes);
            if !left.is_empty() {
                return Err(Conflicts::from(left).into());
            }
            rules.apply(change, managers, &writer, true).map_err(Conflicts::from)?
        }
    };
    let (mut object, mut managers) = (merged.object, merged.managers);
    let changed = !path::same_value(live, &object);
    for own in managers.iter_mut().filter(|manager| manager.is_same(&writer)) {
        own.fields = update::without_system_fields(&own.fields);
        if changed {
            own.time = Some(request.time.to_owned());
        }
    }
    managers.retain(|manager| !manager.fields.is_empty());
    last_applied::refresh(request, &mut object, applied);
    encode_managers(&mut object, managers);
    Ok(object)
}

fn check_applied(request: &WriteRequest<'_>, applied: &Value) -> Result<(), ApplyError> {
    let text = |pointer: &str| applied.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    if (api_version, kind) != (request.api_version, request.kind) {
        return Err(ApplyError::WrongKind { api_version: api_version.to_owned(), kind: kind.to_owned() });
    }
    if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApplyError::ManagedFields);
    }
    let Some((_, schema)) = request.versions.iter().find(|(version, _)| *version == api_version) else {
        return Err(ApplyError::WrongKind { api_version: api_version.to_owned(), kind: kind.to_owned() });
    };
    walk::check(Type::root(schema), applied).map_err(|errors| {
        let namespace = text("/metadata/namespace");
        let object = format!("{namespace}/{}; {api_version}, Kind={kind}", text("/metadata/name"));
        ApplyError::Type { object, errors }
    })
}

/// Records a create (`live` is absent), update or patch: gives what it changed to its manager.
///
/// `object` is what will be stored, after defaults. Managed fields that the request itself sets replace the
/// live ones, and a list of one empty entry resets them; through a subresource they are ignored.
pub fn update_managers(request: &WriteRequest<'_>, live: Option<&Value>, object: &mut Value) {
    let before = live.unwrap_or(request.empty);
    let managers = managers_in_request(request, live, object);
    take_managed_fields(object);
    if managers.is_empty() && live.is_some() {
        // Nothing is tracked until the first apply.
        return;
    }
    let rules = Rules { versions: request.versions, reset: request.reset };
    let name = if request.manager.is_empty() { "unknown" } else { request.manager };
    let writer = update::writer(Operation::Update, name, request.api_version, request.subresource);
    let mut managers = recorded(&rules, request, Change { before, after: object }, managers, &writer);
    managers::cap_updaters(&mut managers);
    encode_managers(object, managers);
}

/// The managers an update starts from.
fn managers_in_request(request: &WriteRequest<'_>, live: Option<&Value>, object: &Value) -> Vec<Manager> {
    let of_live = || live.and_then(|live| decode_managers(live).ok()).unwrap_or_default();
    if !request.subresource.is_empty() {
        return of_live();
    }
    if let Some(Value::Array(sent)) = object.pointer("/metadata/managedFields") {
        let is_empty = |entry: &Value| entry.as_object().is_some_and(serde_json::Map::is_empty);
        if sent.len() == 1 && is_empty(&sent[0]) {
            return Vec::new();
        }
    }
    match decode_managers(object) {
        Ok(managers) if !managers.is_empty() => managers,
        _ => of_live(),
    }
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.shift_remove("managedFields")
}

/// The managers after a change by `writer`.
fn recorded(
    rules: &Rules<'_>,
    request: &WriteRequest<'_>,
    change: Change<'_>,
    managers: Vec<Manager>,
    writer: &Manager,
) -> Vec<Manager> {
    let (mut managers, fields) = rules.update(change, managers, writer);
    let fields = update::without_system_fields(&fields);
    if fields.is_empty() {
        return managers;
    }
    let time = Some(request.time.to_owned());
    match managers.iter_mut().find(|manager| manager.is_same(writer)) {
        Some(own) => {
            own.fields = own.fields.union(&fields);
            own.time = time;
        }
        None => managers.push(Manager { fields, time, ..writer.clone() }),
    }
    managers
}

/// Takes back the times of managed fields if they are all that a write changed, so that it changes nothing.
pub fn keep_times_if_unchanged(live: &Value, object: &mut Value) {
    let (Ok(before), Ok(mut after)) = (decode_managers(live), decode_managers(object)) else { return };
    let same_owners = before.len() == after.len()
        && !after.is_empty()
        && before.iter().zip(&after).all(|(left, right)| {
            left.is_same(right) && left.api_version == right.api_version && left.fields == right.fields
        });
    if !same_owners || before == after {
        return;
    }
    let Some(sent) = take_managed_fields(object) else { return };
    if same_but_managed_fields(live, object) {
        for (left, right) in before.into_iter().zip(&mut after) {
            right.time = left.time;
        }
        encode_managers(object, after);
    } else if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("managedFields".to_owned(), sent);
    }
}

/// Whether `object`, which has no managed fields, is `live` without them.
fn same_but_managed_fields(live: &Value, object: &Value) -> bool {
    let (Some(left), Some(right)) = (live.as_object(), object.as_object()) else { return false };
    left.len() == right.len()
        && left.iter().all(|(name, left)| match (right.get(name), left) {
            (Some(Value::Object(right)), Value::Object(left)) if name == "metadata" => {
                let rest = || left.iter().filter(|(name, _)| *name != "managedFields");
                rest().count() == right.len() && rest().all(|(name, value)| right.get(name) == Some(value))
            }
            (right, left) => right == Some(left),
        })
}
