//! What a composition is given.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ComposeError;
use super::desired::Ready;
use crate::document::{DecodeError, Document};

/// Everything a composition may look at.
#[derive(Debug, Default)]
pub struct Observed<'a> {
    /// The composite resource.
    pub composite: Resource<'a>,
    /// Composed resources that exist, by their key.
    pub resources: BTreeMap<&'a str, Resource<'a>>,
    /// What earlier pipeline steps want composed, by key.
    pub desired: BTreeMap<&'a str, Resource<'a>>,
    /// The composite as earlier pipeline steps want it (its status), if they said so.
    pub desired_composite: Option<Resource<'a>>,
    /// Resources asked for and fetched, by requirement key; no entry means *not fetched yet*.
    pub required: BTreeMap<&'a str, Vec<Resource<'a>>>,
}

/// One object handed to a composition.
#[derive(Debug, Default, Clone)]
pub struct Resource<'a> {
    /// The object.
    pub document: Document<'a>,
    /// Its connection details.
    pub connection_details: Vec<(&'a str, &'a [u8])>,
    /// Readiness as an earlier step declared it; unspecified for observed resources.
    pub ready: Ready,
}

/// The three states of a required resource.
#[derive(Debug, Clone, Copy)]
pub enum Required<'r, 'a> {
    /// Nobody has looked yet: say nothing about it, ask again.
    NotFetched,
    /// Looked up, and there is none.
    Absent,
    /// Looked up and found; never empty.
    Present(&'r [Resource<'a>]),
}

/// Who an object is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity<'a> {
    /// `group/version`, or `v1`.
    pub api_version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

impl<'a> Observed<'a> {
    /// Decodes the composite.
    ///
    /// # Errors
    ///
    /// Names the composite, the field and the value: without a readable composite nothing can be wanted,
    /// and everything observed stays as it is.
    pub fn decode_composite<T: Deserialize<'a>>(&self) -> Result<T, ComposeError> {
        self.composite.decode().map_err(|error| self.error(error.to_string()))
    }

    /// An error about the composite.
    pub fn error(&self, message: impl Into<String>) -> ComposeError {
        ComposeError { object: self.composite.identity().to_string(), message: message.into(), hint: None }
    }

    /// The composite's name.
    ///
    /// # Errors
    ///
    /// If it has none.
    pub fn name(&self) -> Result<&'a str, ComposeError> {
        let name = self.composite.document.text_at(&["metadata", "name"]);
        name.ok_or_else(|| self.error("metadata.name: missing"))
    }

    /// The composite's namespace.
    ///
    /// # Errors
    ///
    /// If it has none.
    pub fn namespace(&self) -> Result<&'a str, ComposeError> {
        let namespace = self.composite.document.text_at(&["metadata", "namespace"]);
        namespace.ok_or_else(|| self.error("metadata.namespace: missing"))
    }

    /// The state of the requirement `key`.
    pub fn required(&self, key: &str) -> Required<'_, 'a> {
        match self.required.get(key) {
            None => Required::NotFetched,
            Some(items) if items.is_empty() => Required::Absent,
            Some(items) => Required::Present(items),
        }
    }

    /// The first resource fetched for `key`, if any.
    pub fn first_required(&self, key: &str) -> Option<&Resource<'a>> {
        self.required.get(key)?.first()
    }

    /// Whether the composed resource under `key` exists.
    pub fn has(&self, key: &str) -> bool {
        self.resources.contains_key(key)
    }

    /// Whether the composed resource under `key` exists with condition `condition_type` `True`.
    pub fn is_true(&self, key: &str, condition_type: &str) -> bool {
        self.resources.get(key).is_some_and(|resource| resource.is_true(condition_type))
    }

    /// Whether the composed resource under `key` exists and is `Ready`.
    pub fn is_ready(&self, key: &str) -> bool {
        self.is_true(key, "Ready")
    }
}

impl<'a> Resource<'a> {
    /// A resource that is just an object.
    pub fn new(document: Document<'a>) -> Self {
        Self { document, ..Self::default() }
    }

    /// Decodes the object.
    ///
    /// # Errors
    ///
    /// Names the field that cannot be read.
    pub fn decode<T: Deserialize<'a>>(&self) -> Result<T, DecodeError> {
        self.document.decode()
    }

    /// Who this is; absent parts are empty.
    pub fn identity(&self) -> Identity<'a> {
        let text = |path: &[&str]| self.document.text_at(path).unwrap_or_default();
        Identity {
            api_version: text(&["apiVersion"]),
            kind: text(&["kind"]),
            namespace: text(&["metadata", "namespace"]),
            name: text(&["metadata", "name"]),
        }
    }

    /// Whether `status.conditions` has `condition_type` with status `True`.
    pub fn is_true(&self, condition_type: &str) -> bool {
        self.condition(condition_type).is_some_and(|condition| condition.text_at(&["status"]) == Some("True"))
    }

    /// The first condition of that type, tolerant of anything malformed around it.
    pub fn condition(&self, condition_type: &str) -> Option<Document<'a>> {
        let conditions: Vec<Document<'a>> =
            self.document.decode_at(&["status", "conditions"]).ok().flatten()?;
        conditions.into_iter().find(|condition| condition.text_at(&["type"]) == Some(condition_type))
    }

    /// A connection detail.
    pub fn connection_detail(&self, key: &str) -> Option<&'a [u8]> {
        self.connection_details.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }
}

impl std::fmt::Display for Identity<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}
