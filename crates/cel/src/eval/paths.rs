//! Paths: selections, indices and tests, one step after the other.

use std::sync::Arc;

use super::machine::{Machine, Step};
use super::map::{Map, MapKey};
use super::value::{Fault, Text, Value};

impl<'a> Machine<'a, '_> {
    /// Whether the path goes on.
    pub(super) fn begin(&mut self) -> bool {
        let top = self.top();
        match top {
            Value::Optional(Some(value)) => {
                let inner = match &**value {
                    Value::Map(map) => Value::Map(map.without_default()),
                    inner => inner.clone(),
                };
                *top = Value::Path(Box::new(inner));
                true
            }
            Value::Optional(None) | Value::Fault(_) => false,
            _ => true,
        }
    }

    /// Selects a key from the topmost value; whether the path goes on.
    pub(super) fn select(&mut self, key: &Value<'_>, optional: bool) -> Step<bool> {
        let top = self.top();
        let (object, maybe) = match top {
            Value::Fault(_) => return Ok(false),
            Value::Path(inner) => (&**inner, true),
            _ => (&*top, optional),
        };
        match qualify(object, key) {
            Ok(Some(value)) => {
                *top = if maybe { Value::Path(Box::new(value)) } else { value };
                self.budget.charge(1)?;
                Ok(true)
            }
            Ok(None) if maybe => {
                *top = Value::NONE;
                Ok(false)
            }
            Ok(None) => {
                *top = missing(object, key);
                self.budget.charge(1)?;
                Ok(false)
            }
            Err(fault) => {
                *top = Value::fault(fault);
                // An optional selection that fails is not observed by the meter.
                self.budget.charge(u64::from(!maybe))?;
                Ok(false)
            }
        }
    }

    pub(super) fn index(&mut self, optional: bool) -> Step<bool> {
        let key = self.pop();
        let valid = matches!(
            key,
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_)
        );
        if valid {
            return self.select(&key, optional);
        }
        let top = self.top();
        let maybe = optional || matches!(top, Value::Path(_));
        *top = if key.is_fault() { key } else { Value::message("a value of this type cannot be an index") };
        self.budget.charge(u64::from(!maybe))?;
        Ok(false)
    }

    pub(super) fn test(&mut self, key: &Value<'_>) -> Step<()> {
        let top = self.top();
        let (object, maybe) = match top {
            Value::Fault(_) => return Ok(()),
            Value::Path(inner) => (&**inner, true),
            _ => (&*top, false),
        };
        let found = qualify(object, key);
        let charge = !maybe || matches!(found, Ok(Some(_)));
        *top = match found {
            Ok(found) => Value::Bool(found.is_some()),
            Err(fault) => Value::fault(fault),
        };
        self.budget.charge(u64::from(charge))
    }

    pub(super) fn device_value(&self, path: u32) -> Option<&'a Value<'a>> {
        let path = &self.program.paths[path as usize];
        match self.variables.first() {
            Some(Value::Map(Map::Device(device))) => {
                let domains = if path.capacity { &device.capacity } else { &device.attributes };
                let domain = domains
                    .iter()
                    .find(|domain| domain.hash == path.domain_hash && *domain.name == *path.domain)?;
                domain.find_hashed(&path.name, path.name_hash)
            }
            _ => None,
        }
    }

    #[cold]
    pub(super) fn missing_path(&self, path: u32) -> Value<'a> {
        Value::fault(Fault::NoKey(Arc::from(&*self.program.paths[path as usize].name)))
    }
}

/// Looks a key up; `None` if it is absent, a fault if it cannot be looked up.
fn qualify<'a>(object: &Value<'a>, key: &Value<'_>) -> Result<Option<Value<'a>>, Fault> {
    match object {
        Value::Map(map) => Ok(match key {
            Value::String(name) => map.field(name.as_str()),
            key => map.find(key),
        }),
        Value::List(list) => {
            let index = match MapKey::of(key) {
                Some(MapKey::Int(index)) if !matches!(key, Value::Bool(_)) => index,
                _ => return Err(Fault::Static("a list is indexed by integers")),
            };
            Ok(usize::try_from(index).ok().and_then(|index| list.get(index)))
        }
        _ => Ok(None),
    }
}

#[cold]
fn missing<'a>(object: &Value<'_>, key: &Value<'_>) -> Value<'a> {
    match (object, key) {
        (Value::List(_), _) => Value::message(format!("index out of bounds: {key}")),
        (_, Value::String(Text::Shared(name))) => Value::fault(Fault::NoKey(name.clone())),
        (_, Value::String(Text::Borrowed(name))) => Value::fault(Fault::NoKey(Arc::from(*name))),
        _ => Value::fault(Fault::NoKey(Arc::from(key.to_string()))),
    }
}
