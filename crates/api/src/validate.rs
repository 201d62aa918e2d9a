//! Checks a document against the schema of its kind and says what is wrong in words.
//!
//! Structure only: types, required fields, bounds, enums, patterns, unknown fields, unique list keys, and the
//! metadata every object has. CEL rules are data here; [`rule_sites`] lists those that apply to a document,
//! and the caller runs them. Both published shapes are accepted; paths in problems are those of the document
//! as it was written.

use std::borrow::Cow;

use serde_json::Value;

use crate::defaults::fill;
use crate::field_path;
use crate::kind::{self, KindInfo, Scope, UnknownKind};
use crate::names::is_rfc1123_subdomain;
use crate::normalize::{Change, NormalizeError, normalize, original_path};
use crate::schema;
use crate::schema::rules::RuleSite;

mod node;
mod patterns;
mod suggest;

pub use patterns::PATTERNS;

/// Longest name of a composite resource: Crossplane uses it as a label value.
const MAX_NAME: usize = 63;

/// One thing that is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field, e.g. `spec.template.spec.engines[0].name`; empty for the document itself.
    pub path: String,
    /// What is wrong with it, in one line that shows the value.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem without a hint.
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), hint: None }
    }

    /// The same problem with a hint.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A document ready to be checked by CEL rules: normalized and with defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// The document.
    pub document: Value,
    changes: Vec<Change>,
}

impl Prepared {
    /// The path in the document as it was written.
    pub fn original_path(&self, path: &str) -> String {
        original_path(&self.changes, path)
    }

    /// The rules that apply to the document, each with the value it is about.
    pub fn rule_sites(&self) -> Vec<RuleSite<'_>> {
        rule_sites(&self.document)
    }
}

/// What is wrong with the document; nothing, if the list is empty. Errors if it is not of one of our kinds.
pub fn validate(document: &Value) -> Result<Vec<Problem>, UnknownKind> {
    let info = kind::of(document)?;
    let mut normalized = Cow::Borrowed(document);
    let mut changes = Vec::new();
    if crate::normalize::needs_normalizing(document) {
        match normalize(normalized.to_mut()) {
            Ok(made) => changes = made,
            Err(error) => return Ok(vec![mixed(&error)]),
        }
    }
    let mut problems = Vec::new();
    check_metadata(info, &normalized["metadata"], &mut problems);
    node::check(schema::normalized(info), &normalized, &mut problems);
    for problem in &mut problems {
        problem.path = original_path(&changes, &problem.path);
    }
    Ok(problems)
}

/// The document as an API server would hand it to the CEL rules.
pub fn prepare(document: &Value) -> Result<Prepared, PrepareError> {
    let info = kind::of(document)?;
    let mut document = document.clone();
    let changes = normalize(&mut document)?;
    fill(schema::normalized(info), &mut document);
    Ok(Prepared { document, changes })
}

/// Why a document cannot be prepared for its rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// The document is not of one of our kinds.
    #[error(transparent)]
    UnknownKind(#[from] UnknownKind),
    /// The document mixes the shapes of the API.
    #[error(transparent)]
    Normalize(#[from] NormalizeError),
}

/// The CEL rules that apply to a normalized document with its defaults filled in (see [`prepare`]), each with
/// the value it is about. None for a document of another kind.
pub fn rule_sites(document: &Value) -> Vec<RuleSite<'_>> {
    let mut sites = Vec::new();
    if let Ok(info) = kind::of(document) {
        schema::rules::collect_sites(schema::normalized(info), document, "", &mut sites);
    }
    sites
}

/// The problem of a document that mixes the shapes.
fn mixed(error: &NormalizeError) -> Problem {
    let message = "belongs to the v0.1 shape of the API and cannot stand beside spec.template";
    Problem::new(error.path(), message).with_hint(error.hint())
}

/// Checks what the schema does not say about metadata.
fn check_metadata(info: &KindInfo, metadata: &Value, problems: &mut Vec<Problem>) {
    let Some(fields) = metadata.as_object() else {
        problems.push(Problem::new("metadata", "required, with at least a name"));
        return;
    };
    match fields.get("name").filter(|name| !name.is_null()) {
        None if fields.contains_key("generateName") => {}
        None => problems.push(Problem::new("metadata.name", "required")),
        Some(Value::String(name)) => check_name(name, problems),
        Some(other) => problems.push(Problem::new("metadata.name", node::wrong_type("a text", other))),
    }
    if info.scope == Scope::Cluster && fields.get("namespace").is_some_and(|namespace| !namespace.is_null()) {
        let message = format!("{} is not in a namespace", info.kind);
        problems.push(Problem::new("metadata.namespace", message).with_hint("remove the field"));
    }
    for field in ["labels", "annotations"] {
        for (key, value) in fields.get(field).and_then(Value::as_object).into_iter().flatten() {
            if !value.is_string() {
                let path = field_path::field(&format!("metadata.{field}"), key);
                let problem = Problem::new(path, node::wrong_type("a text", value));
                problems.push(problem.with_hint("put the value in quotes"));
            }
        }
    }
}

/// Checks the name of an object.
fn check_name(name: &str, problems: &mut Vec<Problem>) {
    let length = name.chars().count();
    if length > MAX_NAME {
        let message = format!("{name:?} has {length} characters; at most {MAX_NAME} are allowed");
        problems.push(Problem::new("metadata.name", message));
    } else if !is_rfc1123_subdomain(name) {
        let message = format!("{name:?} is not a valid name");
        let hint = "use lower-case letters, digits, '-' and '.', with a letter or digit at both ends";
        problems.push(Problem::new("metadata.name", message).with_hint(hint));
    }
}
