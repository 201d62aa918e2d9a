//! Documents: Kubernetes objects kept as `google.protobuf.Struct` wire bytes and decoded lazily.
//!
//! A fleet's request is tens of megabytes, of which a composition reads a few per cent. A [`Document`]
//! therefore borrows the bytes it arrived in; [`Document::decode`] runs serde directly over them, so
//! fields nobody asks for are skipped by their length prefix without being looked at, and strings are
//! borrowed. Callers that hold JSON or YAML encode it once with [`encode`]; there is no second
//! representation and so no second code path.
//!
//! Numbers on this wire are doubles. Integral ones decode as integers, and [`encode`] keeps integers
//! that a double cannot hold in a private field that never leaves the process.

mod deserialize;
mod serialize;
mod wire;

use serde::Deserialize;

pub(crate) use serialize::without_server_fields;
pub use serialize::{EncodeError, encode, encode_value};
pub use wire::{Entry, Field, Malformed, Reader, map_entry, write_bytes_field, write_tag, write_varint};

/// A value of the JSON data model on `google.protobuf.Struct`/`Value` wire bytes, borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Document<'a> {
    pub(crate) form: Form,
    pub(crate) bytes: &'a [u8],
}

/// Which protobuf message the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// `google.protobuf.Struct`: always an object.
    Struct,
    /// `google.protobuf.Value`: anything.
    Value,
}

/// What [`Document::shape`] says a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// JSON null, or nothing at all.
    Null,
    /// A boolean.
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// A list.
    List,
    /// An object.
    Object,
}

/// A document could not be read as the type asked for.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{}{message}", if path.is_empty() { String::new() } else { format!("{path}: ") })]
pub struct DecodeError {
    /// Dotted path of the offending field, empty for the document itself.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

impl<'a> Document<'a> {
    /// A document over the wire bytes of a `google.protobuf.Struct`.
    pub const fn from_struct(bytes: &'a [u8]) -> Self {
        Self { form: Form::Struct, bytes }
    }

    /// A document over the wire bytes of a `google.protobuf.Value`.
    pub const fn from_value(bytes: &'a [u8]) -> Self {
        Self { form: Form::Value, bytes }
    }

    /// The bytes, if this is an object: those of its `google.protobuf.Struct`.
    pub fn as_struct_bytes(&self) -> Option<&'a [u8]> {
        match self.form {
            Form::Struct => Some(self.bytes),
            Form::Value => match wire::value_of(self.bytes).ok()? {
                wire::Scalar::Struct(bytes) => Some(bytes),
                _ => None,
            },
        }
    }

    /// The raw bytes; equal bytes mean equal documents (the reverse need not hold).
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Decodes the document into `T`, borrowing strings where `T` can; the error names the field.
    pub fn decode<T: Deserialize<'a>>(&self) -> Result<T, DecodeError> {
        T::deserialize(deserialize::Deserializer::new(*self))
            .map_err(|error| DecodeError { path: error.path(), message: error.to_string() })
    }

    /// The value under a path of object keys; `None` if any step is missing, null or not an object.
    pub fn get(&self, path: &[&str]) -> Option<Document<'a>> {
        let mut current = *self;
        for key in path {
            current = Document::from_value(wire::field_of(current.as_struct_bytes()?, key.as_bytes())?);
        }
        (current.shape() != Shape::Null).then_some(current)
    }

    /// The string under a path of object keys, if there is one and it is not empty.
    pub fn text_at(&self, path: &[&str]) -> Option<&'a str> {
        match wire::value_of(self.get(path)?.bytes).ok()? {
            wire::Scalar::String(bytes) => std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    /// Decodes the value under a path; `Ok(None)` if it is missing or null.
    pub fn decode_at<T: Deserialize<'a>>(&self, path: &[&str]) -> Result<Option<T>, DecodeError> {
        let Some(found) = self.get(path) else { return Ok(None) };
        found.decode().map(Some).map_err(|error| error.below(path))
    }

    /// What kind of value this is.
    pub fn shape(&self) -> Shape {
        match self.form {
            Form::Struct => Shape::Object,
            Form::Value => match wire::value_of(self.bytes) {
                Err(_) | Ok(wire::Scalar::Null) => Shape::Null,
                Ok(wire::Scalar::Bool(_)) => Shape::Bool,
                Ok(wire::Scalar::Number(_) | wire::Scalar::Integer(_)) => Shape::Number,
                Ok(wire::Scalar::String(_)) => Shape::String,
                Ok(wire::Scalar::List(_)) => Shape::List,
                Ok(wire::Scalar::Struct(_)) => Shape::Object,
            },
        }
    }

    /// The document as a JSON tree.
    pub fn to_json(&self) -> Result<serde_json::Value, DecodeError> {
        self.decode()
    }
}

impl std::fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.to_json() {
            Ok(json) => write!(f, "{json}"),
            Err(error) => write!(f, "<undecodable: {error}>"),
        }
    }
}

/// The empty object.
impl Default for Document<'_> {
    fn default() -> Self {
        Self::from_struct(&[])
    }
}

impl DecodeError {
    /// The same error seen from the object that holds the value under `parents`.
    #[must_use]
    pub fn below(mut self, parents: &[&str]) -> Self {
        let mut path = parents.join(".");
        if !self.path.is_empty() && !path.is_empty() && !self.path.starts_with('[') {
            path.push('.');
        }
        path.push_str(&self.path);
        self.path = path;
        self
    }
}

#[cfg(test)]
mod tests;
