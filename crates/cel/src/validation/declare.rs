//! From OpenAPI schemas to types, sizes and readers of values (`k8s.io/apiserver/pkg/cel/common`).

use serde_json::Value as Json;

use super::names::escape;
use super::schema::{ListSemantics, Properties, SchemaNode};
use crate::env::{DeclaredSize, Environment, Field, Object};
use crate::types::{Shape, Type};

/// The largest request that an API server takes, from which missing maxima are derived.
pub(super) const LARGEST_REQUEST: u64 = 3 * 1024 * 1024;
/// Schemas nest at most this deep.
const MAXIMUM_DEPTH: u32 = 100;

/// A schema's type, its declared size and the least number of bytes of a value.
pub(super) struct Declared {
    pub(super) kind: Type,
    pub(super) size: u32,
    pub(super) smallest: u64,
    pub(super) node: SchemaNode,
}

/// Declares a schema in an environment; `None` if Kubernetes knows no type for it.
pub(super) fn declare(environment: &mut Environment, schema: &Json, root: bool) -> Option<Declared> {
    declare_at(environment, schema, root || flag(schema, "x-kubernetes-embedded-resource"), 0)
}

pub(super) fn flag(schema: &Json, name: &str) -> bool {
    schema[name].as_bool().unwrap_or(false)
}

fn number(schema: &Json, name: &str) -> Option<u64> {
    schema[name].as_i64().map(|value| u64::try_from(value).unwrap_or(0))
}

fn leaf(
    environment: &mut Environment,
    kind: Type,
    maximum: u64,
    smallest: u64,
    node: SchemaNode,
) -> Declared {
    let size = environment.add_size(DeclaredSize { maximum, ..DeclaredSize::default() });
    Declared { kind, size, smallest, node }
}

fn declare_at(environment: &mut Environment, schema: &Json, resource: bool, depth: u32) -> Option<Declared> {
    if depth > MAXIMUM_DEPTH {
        return None;
    }
    if flag(schema, "x-kubernetes-int-or-string") {
        let maximum = number(schema, "maxLength").map_or(LARGEST_REQUEST - 2, |length| length * 4);
        return Some(leaf(environment, Type::DYN, maximum, 1, SchemaNode::Dynamic));
    }
    match schema["type"].as_str().unwrap_or(if resource { "object" } else { "" }) {
        "array" => array(environment, schema, depth),
        "object" => match &schema["additionalProperties"] {
            values @ Json::Object(_) => map(environment, schema, values, depth),
            _ => object(environment, schema, resource, depth),
        },
        "string" => Some(string(environment, schema)),
        "boolean" => Some(leaf(environment, Type::BOOL, 0, 4, SchemaNode::Bool)),
        "number" => Some(leaf(environment, Type::DOUBLE, 0, 1, SchemaNode::Double)),
        "integer" => Some(leaf(environment, Type::INT, 0, 1, SchemaNode::Int)),
        _ => None,
    }
}

fn nested(environment: &mut Environment, schema: &Json, depth: u32) -> Option<Declared> {
    declare_at(environment, schema, flag(schema, "x-kubernetes-embedded-resource"), depth + 1)
}

fn string(environment: &mut Environment, schema: &Json) -> Declared {
    let length = number(schema, "maxLength");
    let unlimited = LARGEST_REQUEST - 2;
    match schema["format"].as_str().unwrap_or("") {
        "byte" => leaf(environment, Type::BYTES, length.unwrap_or(unlimited), 2, SchemaNode::Bytes),
        "duration" => leaf(environment, Type::DURATION, 32, 3, SchemaNode::Duration),
        "date" => leaf(environment, Type::TIMESTAMP, 12, 12, SchemaNode::Timestamp { date: true }),
        "date-time" => leaf(environment, Type::TIMESTAMP, 32, 21, SchemaNode::Timestamp { date: false }),
        _ => {
            let longest_value = schema["enum"]
                .as_array()
                .filter(|values| !values.is_empty())
                .map(|values| values.iter().filter_map(Json::as_str).map(str::len).max().unwrap_or(0) as u64);
            let maximum = length.map(|length| length * 4).or(longest_value).unwrap_or(unlimited);
            leaf(environment, Type::STRING, maximum, 2, SchemaNode::String)
        }
    }
}

fn array(environment: &mut Environment, schema: &Json, depth: u32) -> Option<Declared> {
    let items = nested(environment, schema.get("items")?, depth)?;
    let maximum = number(schema, "maxItems").unwrap_or((LARGEST_REQUEST - 2) / (items.smallest + 1));
    let semantics = match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Some(ListSemantics::Set),
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            Some(ListSemantics::Map(keys.filter_map(Json::as_str).map(str::to_owned).collect()))
        }
        _ => None,
    };
    let kind = environment.add_type(Shape::List(items.kind));
    let size =
        environment.add_size(DeclaredSize { maximum, elements: Some(items.size), ..DeclaredSize::default() });
    Some(Declared {
        kind,
        size,
        smallest: 2,
        node: SchemaNode::List { items: Box::new(items.node), semantics },
    })
}

fn map(environment: &mut Environment, schema: &Json, values: &Json, depth: u32) -> Option<Declared> {
    let values = nested(environment, values, depth)?;
    let maximum = number(schema, "maxProperties").unwrap_or((LARGEST_REQUEST - 2) / (values.smallest + 6));
    let kind = environment.add_type(Shape::Map(Type::STRING, values.kind));
    let keys = environment.add_size(DeclaredSize::default());
    let size = environment.add_size(DeclaredSize {
        maximum,
        elements: Some(values.size),
        keys: Some(keys),
        ..DeclaredSize::default()
    });
    Some(Declared { kind, size, smallest: 2, node: SchemaNode::Map { values: Box::new(values.node) } })
}

fn object(environment: &mut Environment, schema: &Json, resource: bool, depth: u32) -> Option<Declared> {
    let properties = schema["properties"].as_object();
    let untyped = properties.is_none_or(serde_json::Map::is_empty);
    if untyped && !resource && flag(schema, "x-kubernetes-preserve-unknown-fields") {
        return None;
    }
    let text = serde_json::json!({"type": "string"});
    let metadata = serde_json::json!({"type": "object", "properties": {"name": text, "generateName": text}});
    let mut declared: Vec<(&str, &Json)> =
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema)).collect();
    if resource {
        for (name, schema) in [("kind", &text), ("apiVersion", &text), ("metadata", &metadata)] {
            declared.retain(|(own, _)| *own != name);
            declared.push((name, schema));
        }
    }
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|own| own.as_str() == Some(name)))
    };
    let mut fields = Vec::new();
    let mut sizes = Vec::new();
    let mut nodes = Properties::default();
    let mut smallest = 2;
    for (property, schema) in declared {
        let Some(field) = nested(environment, schema, depth) else { continue };
        if required(property) && schema.get("default").is_none() {
            smallest += property.len() as u64 + field.smallest + 4;
        }
        if let Some(name) = escape(property) {
            fields.push(Field { name: name.clone(), kind: field.kind });
            sizes.push((name.clone(), field.size));
            nodes.insert(property, name, field.node);
        }
    }
    nodes.shrink();
    environment.objects.push(Object { name: "the object".to_owned(), fields });
    let kind = environment.add_type(Shape::Object(environment.objects.len() as u32 - 1));
    let size = environment.add_size(DeclaredSize { fields: sizes, ..DeclaredSize::default() });
    Some(Declared { kind, size, smallest, node: SchemaNode::Object(nodes) })
}
