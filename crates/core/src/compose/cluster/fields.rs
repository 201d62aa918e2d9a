//! The free-form part of cloud resources: fields in the order they are set, written as they are.
//!
//! The providers' schemas are large and only a handful of their fields are ever set, so those are named
//! here and there as data instead of as types. Nothing is padded: what is not set is not written.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::selector::Selector;

/// An object's fields, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, FieldValue<'a>)>);

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// An integer.
    Integer(i64),
    /// A truth value.
    Flag(bool),
    /// A list.
    List(Vec<FieldValue<'a>>),
    /// An object.
    Object(Fields<'a>),
    /// A selector of composed resources.
    Selector(Selector<'a>),
}

/// Fields from `"name": value` pairs; a value is anything that converts to a [`FieldValue`].
macro_rules! fields {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::compose::cluster::Fields::default()$(.with($name, $value))*
    };
}
pub(crate) use fields;

impl<'a> Fields<'a> {
    /// The same with one more field.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<FieldValue<'a>>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    /// The same with one more field if there is a value for it.
    #[must_use]
    pub fn with_some(self, name: &'a str, value: Option<impl Into<FieldValue<'a>>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The same followed by all fields of `more`.
    #[must_use]
    pub fn and(mut self, more: Fields<'a>) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Whether no field is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a, K: Into<Cow<'a, str>>, V: Into<FieldValue<'a>>> FromIterator<(K, V)> for Fields<'a> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Serialize for FieldValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::List(items) => items.serialize(serializer),
            Self::Object(fields) => fields.serialize(serializer),
            Self::Selector(selector) => selector.serialize(serializer),
        }
    }
}

impl<'a> From<&'a str> for FieldValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for FieldValue<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<Cow<'a, str>> for FieldValue<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for FieldValue<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for FieldValue<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<'a> From<Fields<'a>> for FieldValue<'a> {
    fn from(fields: Fields<'a>) -> Self {
        Self::Object(fields)
    }
}

impl<'a> From<Selector<'a>> for FieldValue<'a> {
    fn from(selector: Selector<'a>) -> Self {
        Self::Selector(selector)
    }
}

impl<'a, T: Into<FieldValue<'a>>> From<Vec<T>> for FieldValue<'a> {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl<'a, T: Into<FieldValue<'a>>, const N: usize> From<[T; N]> for FieldValue<'a> {
    fn from(items: [T; N]) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}
