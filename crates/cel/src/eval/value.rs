//! Values at run time. They borrow from the program's constants and from the input where possible.

use std::sync::Arc;

use crate::duration::Duration;
use crate::named_format::NamedFormat;
use crate::net::{Cidr, Ip, Url};
use crate::quantity::Quantity;
use crate::semver::Semver;
use crate::timestamp::Timestamp;
use crate::validation::SchemaNode;

use super::map::Map;

/// A text, borrowed or shared.
#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

/// A larger value, borrowed or shared.
#[derive(Debug, Clone)]
pub(crate) enum Handle<'a, T> {
    Borrowed(&'a T),
    Shared(Arc<T>),
}

impl<T> Handle<'_, T> {
    pub(crate) fn get(&self) -> &T {
        match self {
            Handle::Borrowed(value) => value,
            Handle::Shared(value) => value,
        }
    }
}

/// Why an evaluation step has no value. Faults are values, as `||`, `&&` and the macros absorb them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    Static(&'static str),
    Message(Arc<str>),
    NoOverload(&'static str),
    NoKey(Arc<str>),
}

impl Fault {
    pub(crate) fn message(message: impl Into<String>) -> Self {
        Fault::Message(message.into().into())
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Static(message) => formatter.write_str(message),
            Fault::Message(message) => formatter.write_str(message),
            Fault::NoOverload(name) => write!(formatter, "{name} does not accept values of these types"),
            Fault::NoKey(key) => write!(formatter, "no such key: {key}"),
        }
    }
}

/// A list, borrowed from constants, shared, or JSON that is converted element by element.
#[derive(Debug, Clone)]
pub(crate) enum List<'a> {
    Borrowed(&'a [Value<'a>]),
    Shared(Arc<Vec<Value<'a>>>),
    Json(&'a [serde_json::Value], Option<&'a SchemaNode>),
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            List::Borrowed(elements) => elements.len(),
            List::Shared(elements) => elements.len(),
            List::Json(elements, _) => elements.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            List::Borrowed(elements) => elements.get(index).map(Value::borrowed),
            List::Shared(elements) => elements.get(index).cloned(),
            List::Json(elements, schema) => {
                elements.get(index).map(|element| Value::from_json(element, SchemaNode::items(*schema)))
            }
        }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    pub(crate) fn schema(&self) -> Option<&'a SchemaNode> {
        match self {
            List::Json(_, schema) => *schema,
            _ => None,
        }
    }
}

/// A value of the language.
#[derive(Debug, Clone, Default)]
pub(crate) enum Value<'a> {
    /// A binding that is not evaluated yet; never seen by functions.
    #[default]
    Unset,
    Fault(Box<Fault>),
    /// What is found so far on a path with an optional part; never seen by functions.
    Path(Box<Value<'a>>),
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<[u8]>),
    Timestamp(Timestamp),
    Duration(Duration),
    Type(&'static str),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Arc<Value<'a>>>),
    Quantity(Handle<'a, Quantity>),
    Semver(Handle<'a, Semver>),
    Url(Arc<Url>),
    Ip(Ip),
    Cidr(Box<Cidr>),
    Format(NamedFormat),
}

impl<'a> Value<'a> {
    pub(crate) fn fault(fault: Fault) -> Self {
        Value::Fault(Box::new(fault))
    }

    pub(crate) fn message(message: impl Into<String>) -> Self {
        Value::fault(Fault::message(message))
    }

    pub(crate) fn no_overload(name: &'static str) -> Self {
        Value::fault(Fault::NoOverload(name))
    }

    pub(crate) fn text(text: impl Into<Arc<str>>) -> Self {
        Value::String(Text::Shared(text.into()))
    }

    pub(crate) fn list(elements: Vec<Value<'a>>) -> Self {
        Value::List(List::Shared(Arc::new(elements)))
    }

    pub(crate) fn some(value: Value<'a>) -> Self {
        Value::Optional(Some(Arc::new(value)))
    }

    pub(crate) const NONE: Value<'static> = Value::Optional(None);

    pub(crate) fn quantity(quantity: Quantity) -> Self {
        Value::Quantity(Handle::Shared(Arc::new(quantity)))
    }

    pub(crate) fn is_fault(&self) -> bool {
        matches!(self, Value::Fault(_))
    }

    /// The same value, sharing nothing that needs counting where it can be borrowed.
    #[inline]
    pub(crate) fn borrowed(&'a self) -> Value<'a> {
        match self {
            Value::Bool(value) => Value::Bool(*value),
            Value::Int(value) => Value::Int(*value),
            Value::String(text) => Value::String(Text::Borrowed(text.as_str())),
            Value::Quantity(quantity) => Value::Quantity(Handle::Borrowed(quantity.get())),
            Value::Semver(version) => Value::Semver(Handle::Borrowed(version.get())),
            Value::List(List::Shared(elements)) => Value::List(List::Borrowed(elements)),
            Value::Map(map) => Value::Map(map.borrowed()),
            other => other.clone(),
        }
    }

    /// The name `type(x)` compares by.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Type(_) => "type",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Optional(_) => "optional_type",
            Value::Quantity(_) => "kubernetes.Quantity",
            Value::Semver(_) => "kubernetes.Semver",
            Value::Url(_) => "kubernetes.URL",
            Value::Ip(_) => "net.IP",
            Value::Cidr(_) => "net.CIDR",
            Value::Format(_) => "kubernetes.NamedFormat",
            Value::Unset | Value::Fault(_) | Value::Path(_) => "error",
        }
    }

    /// A JSON value, typed by a schema if there is one.
    pub(crate) fn from_json(json: &'a serde_json::Value, schema: Option<&'a SchemaNode>) -> Self {
        if let Some(value) = schema.and_then(|schema| schema.convert(json)) {
            return value;
        }
        match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => number
                .as_i64()
                .map(Value::Int)
                .or_else(|| number.as_u64().map(Value::Uint))
                .or_else(|| number.as_f64().map(Value::Double))
                .unwrap_or(Value::Null),
            serde_json::Value::String(text) => Value::String(Text::Borrowed(text)),
            serde_json::Value::Array(elements) => Value::List(List::Json(elements, schema)),
            serde_json::Value::Object(fields) => Value::Map(Map::Json(fields, schema)),
        }
    }
}

/// How a value is shown to people, in explanations and in messages.
impl std::fmt::Display for Value<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Null => formatter.write_str("null"),
            Value::Bool(value) => write!(formatter, "{value}"),
            Value::Int(value) => write!(formatter, "{value}"),
            Value::Uint(value) => write!(formatter, "{value}"),
            Value::Double(value) => formatter.write_str(&crate::numbers::double_to_string(*value)),
            Value::String(text) => write!(formatter, "{:?}", text.as_str()),
            Value::Quantity(quantity) => write!(formatter, "{}", quantity.get()),
            Value::Semver(version) => write!(formatter, "{}", version.get()),
            Value::Timestamp(timestamp) => write!(formatter, "{timestamp}"),
            Value::Duration(duration) => write!(formatter, "{duration}"),
            Value::Ip(ip) => write!(formatter, "{ip}"),
            Value::Cidr(cidr) => write!(formatter, "{cidr}"),
            Value::Fault(fault) => write!(formatter, "{fault}"),
            Value::List(list) => write!(formatter, "a list of {}", list.len()),
            Value::Map(map) => write!(formatter, "a map of {}", map.len()),
            other => formatter.write_str(other.type_name()),
        }
    }
}
