//! Which former value belongs to which new one, for ratcheting (KEP-4008) and rules about changes.

use std::collections::HashMap;

use serde_json::Value;

use super::go_text::go_json;
use super::node::{ListType, Schema};

/// A new value, its former one and their schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'v> {
    pub(crate) schema: &'v Schema,
    pub(crate) new: &'v Value,
    pub(crate) old: &'v Value,
}

/// Results of comparisons, by the address of the new value: a walk asks for the same ancestors again and again.
pub(crate) type Compared = HashMap<usize, bool>;

impl<'v> Pair<'v> {
    /// The pair of a field; `None` where the field is new or has no schema.
    pub(crate) fn field(&self, name: &str) -> Option<Pair<'v>> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        Some(Pair { schema: self.schema.field(name)?, new, old })
    }

    /// Whether nothing changed, regardless of the order of lists of type map.
    ///
    /// As in Kubernetes, objects with fields without a schema always count as changed.
    pub(crate) fn is_equal(&self, compared: &mut Compared) -> bool {
        let address = std::ptr::from_ref(self.new) as usize;
        if let Some(equal) = compared.get(&address) {
            return *equal;
        }
        let equal = self.compare();
        compared.insert(address, equal);
        equal
    }

    fn compare(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                match (&self.schema.items, self.schema.list_type) {
                    (Some(items), ListType::Map) => {
                        let former = Former::new(self.schema, Some(self.old));
                        new.iter().all(|new| {
                            former.item(new).is_some_and(|old| Pair { schema: items, new, old }.compare())
                        })
                    }
                    _ => same_list(new, old),
                }
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|name| self.field(name).is_some_and(|pair| pair.compare()))
            }
            (new, old) => same(new, old),
        }
    }
}

/// Whether two values are the same; `1` and `1.0` are not.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => same_list(left, right),
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| same(value, other)))
        }
        (left, right) => left == right,
    }
}

fn same_list(left: &[Value], right: &[Value]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
}

/// The former items of a list, found by the keys of a list of type map.
pub(crate) enum Former<'v> {
    /// Items cannot be followed.
    None,
    /// By keys.
    Keyed { keys: &'v [String], items: HashMap<String, &'v Value> },
}

impl<'v> Former<'v> {
    pub(crate) fn new(schema: &'v Schema, old: Option<&'v Value>) -> Self {
        let Some(Value::Array(old)) = old else { return Self::None };
        if schema.list_type != ListType::Map {
            return Self::None;
        }
        let keys = &*schema.list_map_keys;
        let mut items = HashMap::with_capacity(old.len());
        for item in old {
            items.entry(identity(item, keys)).or_insert(item);
        }
        Self::Keyed { keys, items }
    }

    /// The former version of an item.
    pub(crate) fn item(&self, item: &Value) -> Option<&'v Value> {
        match self {
            Self::None => None,
            Self::Keyed { keys, items } if item.is_object() => items.get(&identity(item, keys)).copied(),
            Self::Keyed { .. } => None,
        }
    }
}

/// What identifies an item of a list of type map: absent keys differ from all values.
pub(crate) fn identity(item: &Value, keys: &[String]) -> String {
    let mut identity = String::new();
    for key in keys {
        match item.get(key) {
            Some(Value::String(text)) => {
                identity.push('"');
                identity.push_str(&text.len().to_string());
                identity.push('"');
                identity.push_str(text);
            }
            Some(value) => identity.push_str(&go_json(value)),
            None => identity.push('-'),
        }
        identity.push(',');
    }
    identity
}
