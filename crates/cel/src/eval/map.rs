//! Maps: literals and results, JSON objects, and the parts of a device.

use std::collections::HashMap;
use std::sync::Arc;

use crate::device::{Domain, PreparedDevice};
use crate::validation::SchemaNode;

use super::value::{Handle, Text, Value};

/// A key in the form in which keys are looked up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum MapKey {
    Bool(bool),
    Int(i64),
    /// Only numbers above the range of `Int`, so that equal numbers are equal keys.
    Uint(u64),
    /// Bits of a double that is no integer.
    Double(u64),
    String(Arc<str>),
}

impl MapKey {
    /// The lookup form of a value, or `None` if no map has such keys.
    pub(crate) fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Bool(value) => MapKey::Bool(*value),
            Value::Int(value) => MapKey::Int(*value),
            Value::Uint(value) => i64::try_from(*value).map_or(MapKey::Uint(*value), MapKey::Int),
            Value::Double(value) => MapKey::of_double(*value)?,
            Value::String(text) => MapKey::String(text.as_str().into()),
            _ => return None,
        })
    }

    fn of_double(value: f64) -> Option<Self> {
        const ABOVE_INT: f64 = 9_223_372_036_854_775_808.0;
        if value.is_nan() {
            return None;
        }
        Some(if value.fract() == 0.0 && (-ABOVE_INT..ABOVE_INT).contains(&value) {
            MapKey::Int(value as i64)
        } else if value.fract() == 0.0 && (ABOVE_INT..2.0 * ABOVE_INT).contains(&value) {
            MapKey::Uint(value as u64)
        } else {
            MapKey::Double(value.to_bits())
        })
    }
}

/// Entries in the order of insertion, indexed by key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    /// Kept only for more than [`Entries::SCANNED`] entries.
    index: HashMap<MapKey, usize>,
}

impl<'a> Entries<'a> {
    const SCANNED: usize = 8;

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn position(&self, key: &Value<'_>) -> Option<usize> {
        if self.entries.len() <= Self::SCANNED {
            return self.entries.iter().position(|(own, _)| same_key(own, key));
        }
        self.index.get(&MapKey::of(key)?).copied()
    }

    pub(crate) fn find(&self, key: &Value<'_>) -> Option<&Value<'a>> {
        self.position(key).map(|position| &self.entries[position].1)
    }

    /// Adds an entry, replacing the value of an equal key.
    pub(crate) fn insert(&mut self, key: Value<'a>, value: Value<'a>) {
        if let Some(position) = self.position(&key) {
            self.entries[position].1 = value;
            return;
        }
        self.entries.push((key, value));
        if self.entries.len() == Self::SCANNED + 1 {
            let keys = self.entries.iter().enumerate();
            self.index = keys.filter_map(|(at, (key, _))| Some((MapKey::of(key)?, at))).collect();
        } else if self.entries.len() > Self::SCANNED
            && let Some((key, _)) = self.entries.last()
            && let Some(key) = MapKey::of(key)
        {
            self.index.insert(key, self.entries.len() - 1);
        }
    }

    pub(crate) fn remove(&mut self, key: &Value<'_>) {
        if let Some(position) = self.position(key) {
            let rest = std::mem::take(self);
            for (at, (key, value)) in rest.entries.into_iter().enumerate() {
                if at != position {
                    self.insert(key, value);
                }
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Value<'a>, Value<'a>)> {
        self.entries.iter()
    }
}

fn same_key(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::String(a), Value::String(b)) => a.as_str() == b.as_str(),
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::String(_), _) | (_, Value::String(_)) => false,
        _ => match (MapKey::of(left), MapKey::of(right)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        },
    }
}

/// A map.
#[derive(Debug, Clone)]
pub(crate) enum Map<'a> {
    Entries(Handle<'a, Entries<'a>>),
    Json(&'a serde_json::Map<String, serde_json::Value>, Option<&'a SchemaNode>),
    /// `device`, of which the fields are keys at run time.
    Device(&'a PreparedDevice<'a>),
    /// `device.attributes`: an unknown domain reads as an empty map.
    Attributes(&'a PreparedDevice<'a>),
    /// `device.capacity`, likewise.
    Capacity(&'a PreparedDevice<'a>),
    Domain(&'a Domain<'a>),
}

const DEVICE_FIELDS: [&str; 4] = ["driver", "allowMultipleAllocations", "attributes", "capacity"];

fn text(text: &str) -> Value<'_> {
    Value::String(Text::Borrowed(text))
}

impl<'a> Map<'a> {
    pub(crate) fn of(entries: Entries<'a>) -> Self {
        Map::Entries(Handle::Shared(Arc::new(entries)))
    }

    pub(crate) fn borrowed(&'a self) -> Map<'a> {
        match self {
            Map::Entries(entries) => Map::Entries(Handle::Borrowed(entries.get())),
            other => other.clone(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Map::Entries(entries) => entries.get().len(),
            Map::Json(fields, schema) => match SchemaNode::properties(*schema) {
                Some(_) => self.keys().count(),
                None => fields.len(),
            },
            Map::Device(_) => DEVICE_FIELDS.len(),
            Map::Attributes(device) => device.attributes.len(),
            Map::Capacity(device) => device.capacity.len(),
            Map::Domain(domain) => domain.entries.len(),
        }
    }

    /// The value of a key; for devices, the default of an unknown domain.
    pub(crate) fn find(&self, key: &Value<'_>) -> Option<Value<'a>> {
        if let Value::String(name) = key {
            return self.field(name.as_str());
        }
        match self {
            Map::Entries(Handle::Borrowed(entries)) => entries.find(key).map(Value::borrowed),
            Map::Entries(Handle::Shared(entries)) => entries.find(key).cloned(),
            Map::Attributes(_) | Map::Capacity(_) => Some(Value::Map(Map::Domain(Domain::EMPTY))),
            _ => None,
        }
    }

    /// The value of a string key.
    pub(crate) fn field(&self, name: &str) -> Option<Value<'a>> {
        match self {
            Map::Entries(Handle::Borrowed(entries)) => entries.find(&text(name)).map(Value::borrowed),
            Map::Entries(Handle::Shared(entries)) => entries.find(&text(name)).cloned(),
            Map::Json(fields, schema) => {
                let (property, schema) = SchemaNode::property(*schema, name)?;
                fields.get(property.unwrap_or(name)).map(|json| Value::from_json(json, schema))
            }
            Map::Device(device) => match name {
                "driver" => Some(text(&device.driver)),
                "allowMultipleAllocations" => Some(Value::Bool(device.allow_multiple_allocations)),
                "attributes" => Some(Value::Map(Map::Attributes(device))),
                "capacity" => Some(Value::Map(Map::Capacity(device))),
                _ => None,
            },
            Map::Attributes(device) => Some(Value::Map(Map::Domain(device.attribute_domain(name)))),
            Map::Capacity(device) => Some(Value::Map(Map::Domain(device.capacity_domain(name)))),
            Map::Domain(domain) => domain.find(name).map(Value::borrowed),
        }
    }

    /// Whether the map has the key itself, defaults aside.
    pub(crate) fn has(&self, key: &Value<'_>) -> bool {
        match (self, key) {
            (Map::Attributes(device), Value::String(name)) => {
                device.attributes.iter().any(|domain| domain.name == name.as_str())
            }
            (Map::Capacity(device), Value::String(name)) => {
                device.capacity.iter().any(|domain| domain.name == name.as_str())
            }
            (Map::Attributes(_) | Map::Capacity(_), _) => false,
            _ => self.find(key).is_some(),
        }
    }

    /// The map as it is found in an optional, where Kubernetes forgets the default of unknown domains.
    pub(crate) fn without_default(&self) -> Map<'a> {
        let domains = match self {
            Map::Attributes(device) => &device.attributes,
            Map::Capacity(device) => &device.capacity,
            other => return other.clone(),
        };
        let mut entries = Entries::default();
        for domain in domains {
            entries.insert(text(&domain.name), Value::Map(Map::Domain(domain)));
        }
        Map::of(entries)
    }

    /// The key at a position, for iteration.
    pub(crate) fn keys(&self) -> Box<dyn Iterator<Item = Value<'a>> + '_> {
        match self {
            Map::Entries(Handle::Borrowed(entries)) => {
                Box::new(entries.iter().map(|(key, _)| key.borrowed()))
            }
            Map::Entries(Handle::Shared(entries)) => Box::new(entries.iter().map(|(key, _)| key.clone())),
            Map::Json(fields, schema) => {
                let schema = *schema;
                Box::new(fields.keys().filter_map(move |name| SchemaNode::escaped(schema, name)))
            }
            Map::Device(_) => Box::new(DEVICE_FIELDS.into_iter().map(text)),
            Map::Attributes(device) => Box::new(device.attributes.iter().map(|domain| text(&domain.name))),
            Map::Capacity(device) => Box::new(device.capacity.iter().map(|domain| text(&domain.name))),
            Map::Domain(domain) => Box::new(domain.entries.iter().map(|entry| text(&entry.name))),
        }
    }
}
