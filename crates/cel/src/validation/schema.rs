//! OpenAPI schemas as they type values.

use std::sync::Arc;

use crate::duration::Duration;
use crate::eval::{Budget, Exhausted, List, Text, Value, equal};
use crate::timestamp::Timestamp;

/// What a schema says about a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SchemaNode {
    /// Nothing: the value is read as JSON.
    Dynamic,
    Int,
    Double,
    Bool,
    String,
    Bytes,
    Duration,
    /// `date-time`, or `date` if set.
    Timestamp {
        date: bool,
    },
    List {
        items: Box<SchemaNode>,
        semantics: Option<ListSemantics>,
    },
    Map {
        values: Box<SchemaNode>,
    },
    Object(Properties),
}

/// The properties of an object. Schemas are many and live long, so this is kept small.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Properties {
    /// By property.
    known: Vec<Property>,
}

#[derive(Debug, Clone, PartialEq)]
struct Property {
    property: Box<str>,
    /// The name expressions use, where it is another.
    name: Option<Box<str>>,
    schema: SchemaNode,
}

impl Properties {
    pub(crate) fn insert(&mut self, property: &str, name: String, schema: SchemaNode) {
        let name = (name != property).then(|| name.into_boxed_str());
        let new = Property { property: property.into(), name, schema };
        match self.position(property) {
            Ok(at) => self.known[at] = new,
            Err(at) => self.known.insert(at, new),
        }
    }

    pub(crate) fn shrink(&mut self) {
        self.known.shrink_to_fit();
    }

    fn position(&self, property: &str) -> Result<usize, usize> {
        self.known.binary_search_by(|known| known.property.as_ref().cmp(property))
    }

    fn by_property(&self, property: &str) -> Option<&Property> {
        self.position(property).ok().map(|at| &self.known[at])
    }

    /// The property that expressions call so.
    fn by_name(&self, name: &str) -> Option<&Property> {
        let same = self.by_property(name).filter(|known| known.name.is_none());
        // Few properties are called otherwise: those with dots, dashes or the names of operators.
        same.or_else(|| self.known.iter().find(|known| known.name.as_deref() == Some(name)))
    }
}

/// How lists that are sets or maps compare.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ListSemantics {
    Set,
    /// The properties that identify an element.
    Map(Vec<String>),
}

impl ListSemantics {
    /// Equality without regard to the order.
    pub(crate) fn equal(
        &self,
        left: &List<'_>,
        right: &List<'_>,
        budget: &mut Budget,
    ) -> Result<Option<bool>, Exhausted> {
        if left.len() != right.len() {
            return Ok(Some(false));
        }
        for element in left.iter() {
            let mut found = false;
            for other in right.iter() {
                if equal(&element, &other, budget)? == Some(true) {
                    found = true;
                    break;
                }
            }
            if !found {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }
}

impl SchemaNode {
    /// The schema of a list's elements.
    pub(crate) fn items(schema: Option<&Self>) -> Option<&Self> {
        match schema {
            Some(SchemaNode::List { items, .. }) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn list_semantics(schema: Option<&Self>) -> Option<&ListSemantics> {
        match schema {
            Some(SchemaNode::List { semantics, .. }) => semantics.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn properties(schema: Option<&Self>) -> Option<&Properties> {
        match schema {
            Some(SchemaNode::Object(properties)) => Some(properties),
            _ => None,
        }
    }

    /// The property (where its name differs) and schema behind a name; `None` if an object has no such property.
    pub(crate) fn property<'n>(
        schema: Option<&'n Self>,
        name: &str,
    ) -> Option<(Option<&'n str>, Option<&'n Self>)> {
        match schema {
            Some(SchemaNode::Object(properties)) => {
                properties.by_name(name).map(|known| (Some(known.property.as_ref()), Some(&known.schema)))
            }
            Some(SchemaNode::Map { values }) => Some((None, Some(values))),
            _ => Some((None, None)),
        }
    }

    /// The name of a property as expressions see it; `None` if the schema does not have it.
    pub(crate) fn escaped<'a>(schema: Option<&'a Self>, property: &'a str) -> Option<Value<'a>> {
        let name = match schema {
            Some(SchemaNode::Object(properties)) => {
                properties.by_property(property)?.name.as_deref().unwrap_or(property)
            }
            _ => property,
        };
        Some(Value::String(Text::Borrowed(name)))
    }

    /// A scalar that the schema reads differently from plain JSON; `None` to read it as JSON.
    pub(crate) fn convert<'a>(&'a self, json: &'a serde_json::Value) -> Option<Value<'a>> {
        use serde_json::Value as Json;
        let malformed = |error: String| Some(Value::message(error));
        match (self, json) {
            (SchemaNode::Double, Json::Number(number)) => number.as_f64().map(Value::Double),
            (SchemaNode::Int, Json::Number(number)) => match number.as_f64() {
                Some(value) if number.as_i64().is_none() && value.fract() == 0.0 && value.abs() < 9e15 => {
                    Some(Value::Int(value as i64))
                }
                _ => None,
            },
            (SchemaNode::Duration, Json::String(text)) => match Duration::parse(text) {
                Ok(duration) => Some(Value::Duration(duration)),
                Err(error) => malformed(error.to_string()),
            },
            (SchemaNode::Timestamp { date }, Json::String(text)) => {
                let parsed = if *date {
                    Timestamp::parse(&format!("{text}T00:00:00Z"))
                } else {
                    Timestamp::parse(text)
                };
                match parsed {
                    Ok(timestamp) => Some(Value::Timestamp(timestamp)),
                    Err(error) => malformed(error.to_string()),
                }
            }
            (SchemaNode::Bytes, Json::String(text)) => match decode_base64(text) {
                Some(bytes) => Some(Value::Bytes(Arc::from(bytes))),
                None => malformed(format!("{text:?} is not base64")),
            },
            _ => None,
        }
    }
}

/// Standard base64 with padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let bytes: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    if !bytes.len().is_multiple_of(4) {
        return None;
    }
    let mut decoded = Vec::with_capacity(bytes.len() / 4 * 3);
    let last = bytes.len() / 4;
    for (index, chunk) in bytes.chunks_exact(4).enumerate() {
        let padding =
            if index + 1 == last { chunk.iter().rev().take_while(|&&byte| byte == b'=').count() } else { 0 };
        if padding > 2 {
            return None;
        }
        let mut group = 0u32;
        for &byte in &chunk[..4 - padding] {
            let digit = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            group = group << 6 | u32::from(digit);
        }
        group <<= 6 * padding;
        decoded.extend_from_slice(&group.to_be_bytes()[1..4 - padding]);
    }
    Some(decoded)
}
