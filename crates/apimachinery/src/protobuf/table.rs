//! The vendored messages, read once.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use serde_json::Value;

use super::special::Special;
use crate::builtin;

const MESSAGES: &str = include_str!("../../../../third_party/kubernetes/messages.json");

/// What is sent to subresources, beside objects of built-in kinds: group, version, kind.
const BODIES: &[(&str, &str, &str)] = &[
    ("", "v1", "Binding"),
    ("authentication.k8s.io", "v1", "TokenRequest"),
    ("autoscaling", "v1", "Scale"),
    ("policy", "v1", "Eviction"),
];

/// A message: the fields of a Go struct.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: &'static str,
    /// By number.
    pub(super) fields: Vec<Field>,
    /// How it is written in JSON, if not as an object of its fields.
    pub(super) special: Option<Special>,
}

impl Message {
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        self.fields.binary_search_by_key(&number, |field| field.number).ok().map(|index| &self.fields[index])
    }
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// Its name in JSON.
    pub(super) name: &'static str,
    pub(super) type_: Type,
    pub(super) shape: Shape,
    /// Whether it is absent unless it was set.
    pub(super) pointer: bool,
    /// Whether its fields belong to the object around it.
    pub(super) inline: bool,
    omit_empty: bool,
    omit_zero: bool,
}

impl Field {
    /// Whether the message is this list, rather than an object with it.
    pub(super) fn is_list_itself(&self) -> bool {
        self.inline && self.shape == Shape::List
    }

    /// Whether Go's JSON leaves a single value out.
    pub(super) fn omits(&self, value: &Value) -> bool {
        if self.pointer {
            return false;
        }
        let omit = self.omit_empty || self.omit_zero;
        match (self.type_, value) {
            // A time that is not set.
            (Type::Message(_), Value::Null) => omit,
            // `omitempty` does not apply to structs.
            (Type::Message(_), Value::Object(fields)) => self.omit_zero && fields.is_empty(),
            (Type::Message(_), _) => false,
            (Type::Scalar(scalar), value) => omit && *value == scalar.zero(),
        }
    }
}

/// How often a field's type occurs in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Single,
    List,
    /// With text keys.
    Map,
}

/// The type of a field, or of its items.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type {
    Scalar(Scalar),
    Message(Reference),
}

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Text,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    /// JSON as bytes.
    Json,
}

impl Scalar {
    fn of(name: &str) -> Option<Scalar> {
        Some(match name {
            "string" => Scalar::Text,
            "bool" => Scalar::Bool,
            "int32" => Scalar::Int32,
            "int64" => Scalar::Int64,
            "double" => Scalar::Double,
            "bytes" => Scalar::Bytes,
            "json" => Scalar::Json,
            _ => return None,
        })
    }

    /// What Go's JSON has for the zero value.
    pub(super) fn zero(self) -> Value {
        match self {
            Scalar::Text | Scalar::Bytes => Value::String(String::new()),
            Scalar::Bool => Value::Bool(false),
            Scalar::Int32 | Scalar::Int64 | Scalar::Double => Value::from(0),
            Scalar::Json => Value::Null,
        }
    }
}

/// A message of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference(usize);

impl Reference {
    pub(super) fn get(self) -> &'static Message {
        &table().messages[self.0]
    }
}

struct Table {
    messages: Vec<Message>,
    by_name: HashMap<&'static str, usize>,
}

/// The message of a kind.
pub(super) fn find(api_version: &str, kind: &str) -> Option<&'static Message> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let name = match group {
        // Clients put the options of a delete into the version of what they delete.
        _ if kind == "DeleteOptions" => format!("k8s.io.apimachinery.pkg.apis.meta.v1.{kind}"),
        _ if !BODIES.contains(&(group, version, kind)) && builtin::find(group, version, kind).is_none() => {
            return None;
        }
        "" => format!("k8s.io.api.core.{version}.{kind}"),
        "apiextensions.k8s.io" => {
            format!("k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.{version}.{kind}")
        }
        "apiregistration.k8s.io" => {
            format!("k8s.io.kube_aggregator.pkg.apis.apiregistration.{version}.{kind}")
        }
        _ => {
            let package = group.split('.').next().unwrap_or_default();
            format!("k8s.io.api.{package}.{version}.{kind}")
        }
    };
    let table = table();
    table.messages.get(*table.by_name.get(name.as_str())?)
}

fn table() -> &'static Table {
    static READ: OnceLock<Table> = OnceLock::new();
    READ.get_or_init(|| {
        let vendored: BTreeMap<&'static str, Vec<&'static str>> =
            serde_json::from_str(MESSAGES).unwrap_or_default();
        let by_name: HashMap<&'static str, usize> =
            vendored.keys().enumerate().map(|(index, name)| (*name, index)).collect();
        let messages = vendored.iter().map(|(name, lines)| {
            let mut fields: Vec<Field> = lines.iter().filter_map(|line| field(line, &by_name)).collect();
            fields.sort_by_key(|field| field.number);
            Message { name, fields, special: Special::of(name) }
        });
        Table { messages: messages.collect(), by_name }
    })
}

fn field(line: &'static str, by_name: &HashMap<&'static str, usize>) -> Option<Field> {
    let mut parts = line.split(' ');
    let (number, name, type_name) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    let flags = parts.next().unwrap_or_default();
    let type_ = match Scalar::of(type_name) {
        Some(scalar) => Type::Scalar(scalar),
        None => Type::Message(Reference(*by_name.get(type_name)?)),
    };
    let shape = match flags.chars().next() {
        Some('[') => Shape::List,
        Some('{') => Shape::Map,
        _ => Shape::Single,
    };
    Some(Field {
        number,
        name,
        type_,
        shape,
        pointer: flags.contains('*') || (shape != Shape::Single && flags.contains('?')),
        inline: flags.contains('.'),
        omit_empty: flags.contains('?'),
        omit_zero: flags.contains('0'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let vendored: BTreeMap<&str, Vec<&str>> = serde_json::from_str(MESSAGES).unwrap();
        assert!(vendored.len() > 300, "{}", vendored.len());
        for message in &table().messages {
            assert_eq!(message.fields.len(), vendored[message.name].len(), "{}", message.name);
        }
    }

    #[test]
    fn every_builtin_kind_has_a_message() {
        let unknown: Vec<&str> = builtin::kinds()
            .iter()
            .filter(|kind| find(&kind.api_version(), kind.kind).is_none())
            .map(|kind| kind.kind)
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn fields_have_the_names_of_the_schemas() {
        for kind in builtin::kinds() {
            let Some(message) = find(&kind.api_version(), kind.kind) else { continue };
            let schema = kind.schema();
            for field in message.fields.iter().filter(|field| !field.inline) {
                assert!(schema.properties.contains_key(field.name), "{}: {}", kind.kind, field.name);
            }
        }
    }
}
