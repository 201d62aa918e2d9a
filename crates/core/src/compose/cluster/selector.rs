//! Selectors by which a composed resource refers to others of the same composite (clusters §0.7 `SEL`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

/// Selects resources composed by the same composite, by their labels if it has any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Selector<'a> {
    match_controller_ref: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    match_labels: BTreeMap<&'a str, Cow<'a, str>>,
}

impl<'a> Selector<'a> {
    /// The one resource of the wanted kind that the same composite composes.
    pub fn sibling() -> Self {
        Self { match_controller_ref: true, match_labels: BTreeMap::new() }
    }

    /// The sibling that carries this label.
    pub fn labelled(key: &'a str, value: impl Into<Cow<'a, str>>) -> Self {
        Self::sibling().and(key, value)
    }

    /// The same with one more label.
    #[must_use]
    pub fn and(mut self, key: &'a str, value: impl Into<Cow<'a, str>>) -> Self {
        self.match_labels.insert(key, value.into());
        self
    }
}
