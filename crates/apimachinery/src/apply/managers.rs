//! `metadata.managedFields`: who owns which fields of an object.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::set::FieldSet;
use super::wire::FieldsError;

/// More managers of operation `Update` than this are merged, oldest first.
const MAX_UPDATE_MANAGERS: usize = 10;
/// The manager that holds what the oldest managers owned.
const OLD_UPDATES: &str = "ancient-changes";

/// How a manager came to own its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

/// One entry of `metadata.managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    /// The manager's name.
    pub name: String,
    /// How it wrote.
    pub operation: Operation,
    /// The version of the object in which it names fields.
    pub api_version: String,
    /// The subresource it wrote; empty for the object itself.
    pub subresource: String,
    /// When the entry changed last, as RFC 3339.
    pub time: Option<String>,
    /// What it owns.
    pub fields: FieldSet,
}

/// `metadata.managedFields` cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ManagedFieldsError {
    /// It is not a list of objects.
    #[error("managedFields is not a list of objects")]
    NotAList,
    /// The operation is not known.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// No version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// The type of the fields is missing or not known.
    #[error("invalid fieldsType {fields_type:?} in managed fields entry {entry}")]
    FieldsType {
        /// The type.
        fields_type: String,
        /// The position of the entry.
        entry: usize,
    },
    /// The fields cannot be read.
    #[error(transparent)]
    Fields(#[from] FieldsError),
}

impl Manager {
    /// Whether both are the same writer: an applier is one whatever version it applies.
    pub(super) fn is_same(&self, other: &Manager) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// The order in which messages list managers.
    pub(super) fn compare(&self, other: &Manager) -> Ordering {
        let key = |manager: &Manager| {
            let version = if manager.operation == Operation::Apply { "" } else { &manager.api_version };
            (
                format!("{}\"", manager.name),
                manager.operation,
                version.to_owned(),
                manager.subresource.clone(),
            )
        };
        key(self).cmp(&key(other))
    }

    /// The manager as messages name it.
    pub(super) fn display(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }

    fn decode(entry: &Value, position: usize) -> Result<Manager, ManagedFieldsError> {
        let entry = entry.as_object().ok_or(ManagedFieldsError::NotAList)?;
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let operation = match text("operation").as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err(ManagedFieldsError::Operation),
        };
        let api_version = text("apiVersion");
        if api_version.is_empty() {
            return Err(ManagedFieldsError::ApiVersion);
        }
        let fields_type = text("fieldsType");
        if fields_type != "FieldsV1" {
            return Err(ManagedFieldsError::FieldsType { fields_type, entry: position });
        }
        let fields = match entry.get("fieldsV1") {
            None | Some(Value::Null) => FieldSet::new(),
            Some(fields) => FieldSet::from_fields_v1(fields)?,
        };
        let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
        let (name, subresource) = (text("manager"), text("subresource"));
        Ok(Manager { name, operation, api_version, subresource, time, fields })
    }

    fn encode(&self) -> Value {
        let mut entry = Map::new();
        entry.insert("apiVersion".to_owned(), json!(self.api_version));
        entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
        entry.insert("fieldsV1".to_owned(), self.fields.to_fields_v1());
        if !self.name.is_empty() {
            entry.insert("manager".to_owned(), json!(self.name));
        }
        entry.insert(
            "operation".to_owned(),
            json!(if self.operation == Operation::Apply { "Apply" } else { "Update" }),
        );
        if !self.subresource.is_empty() {
            entry.insert("subresource".to_owned(), json!(self.subresource));
        }
        if let Some(time) = &self.time {
            entry.insert("time".to_owned(), json!(time));
        }
        Value::Object(entry)
    }
}

/// The managers in an object's `metadata.managedFields`.
///
/// # Errors
///
/// If an entry cannot be read.
pub fn decode_managers(object: &Value) -> Result<Vec<Manager>, ManagedFieldsError> {
    let entries = match object.pointer("/metadata/managedFields") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err(ManagedFieldsError::NotAList),
    };
    let mut managers: Vec<Manager> = Vec::with_capacity(entries.len());
    for (position, entry) in entries.iter().enumerate() {
        let manager = Manager::decode(entry, position)?;
        match managers.iter_mut().find(|known| known.is_same(&manager)) {
            Some(known) => *known = manager,
            None => managers.push(manager),
        }
    }
    Ok(managers)
}

/// Writes the managers to an object's `metadata.managedFields`; none removes the field.
pub fn encode_managers(object: &mut Value, mut managers: Vec<Manager>) {
    managers.sort_by(|left, right| {
        let key = |manager: &Manager| (manager.operation, manager.time.clone());
        key(left).cmp(&key(right)).then_with(|| {
            (&left.name, &left.api_version, &left.subresource).cmp(&(
                &right.name,
                &right.api_version,
                &right.subresource,
            ))
        })
    });
    let Some(object) = object.as_object_mut() else { return };
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else { return };
    if managers.is_empty() {
        metadata.shift_remove("managedFields");
    } else {
        let entries = managers.iter().map(Manager::encode).collect();
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

/// Merges the oldest updaters, by version, until no more than ten are left.
pub(super) fn cap_updaters(managers: &mut Vec<Manager>) {
    let updates = |managers: &[Manager]| managers.iter().filter(|m| m.operation == Operation::Update).count();
    if updates(managers) <= MAX_UPDATE_MANAGERS {
        return;
    }
    let mut oldest: Vec<Manager> =
        managers.iter().filter(|manager| manager.operation == Operation::Update).cloned().collect();
    oldest.sort_by(|left, right| left.time.cmp(&right.time).then_with(|| left.compare(right)));
    let mut first_of: Vec<Manager> = Vec::new();
    for old in oldest {
        if updates(managers) <= MAX_UPDATE_MANAGERS {
            break;
        }
        let Some(first) = first_of.iter().find(|first| first.api_version == old.api_version) else {
            first_of.push(old);
            continue;
        };
        let bucket = Manager { name: OLD_UPDATES.to_owned(), subresource: String::new(), ..first.clone() };
        if !managers.iter().any(|manager| manager.is_same(&bucket)) {
            managers.retain(|manager| !manager.is_same(first));
            managers.push(bucket.clone());
        }
        managers.retain(|manager| !manager.is_same(&old));
        if let Some(bucket) = managers.iter_mut().find(|manager| manager.is_same(&bucket)) {
            bucket.fields = bucket.fields.union(&old.fields);
            bucket.time = old.time;
        }
    }
}
