//! Reading JSON bodies: repeated fields are found, nesting is limited.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::path::{FieldPath, Place};

/// A body and the fields that occur more than once in it; the last occurrence counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The value.
    pub value: Value,
    /// The paths of repeated fields.
    pub repeated: Vec<FieldPath>,
}

/// Reads a JSON text; nesting deeper than 127 levels is an error.
///
/// Floats without fraction that an integer holds exactly become integers, as they do when Kubernetes stores them.
pub fn decode(text: &[u8]) -> Result<Decoded, serde_json::Error> {
    let mut repeated = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let seed = Seed { place: &Place::ROOT, repeated: &mut repeated };
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Decoded { value, repeated })
}

struct Seed<'p, 'r> {
    place: &'p Place<'p>,
    repeated: &'r mut Vec<FieldPath>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        // Kubernetes has no unsigned integers: what does not fit into 64 bits with a sign is a float.
        Ok(match i64::try_from(value) {
            Ok(value) => Value::from(value),
            Err(_) => Number::from_f64(value as f64).map_or(Value::Null, Value::Number),
        })
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        const EXACT: f64 = (1_u64 << 53) as f64;
        if value.fract() == 0.0 && value.abs() < EXACT {
            return Ok(Value::from(value as i64));
        }
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let place = self.place.item(items.len());
            match access.next_element_seed(Seed { place: &place, repeated: &mut *self.repeated })? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let place = self.place.field(&name);
            let value = access.next_value_seed(Seed { place: &place, repeated: &mut *self.repeated })?;
            if fields.contains_key(&name) {
                let path = FieldPath(place.dotted());
                if !self.repeated.contains(&path) {
                    self.repeated.push(path);
                }
            }
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

/// Whether a value nests deeper than a limit; a scalar has depth 0.
pub fn is_deeper_than(value: &Value, limit: usize) -> bool {
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        let inner: &mut dyn Iterator<Item = &Value> = match value {
            Value::Array(items) => &mut items.iter(),
            Value::Object(fields) => &mut fields.values(),
            _ => continue,
        };
        if depth >= limit {
            return true;
        }
        open.extend(inner.map(|value| (value, depth + 1)));
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repeated_fields_are_reported_once_and_the_last_counts() {
        let decoded = decode(br#"{"a":1,"b":[{"c":1,"c":2,"c":3}],"a":{"x":null}}"#).unwrap();
        assert_eq!(decoded.value, json!({ "a": { "x": null }, "b": [{ "c": 3 }] }));
        let paths: Vec<&str> = decoded.repeated.iter().map(FieldPath::as_str).collect();
        assert_eq!(paths, ["b[0].c", "a"]);
    }

    #[test]
    fn numbers_are_read_as_kubernetes_stores_them() {
        let decoded = decode(br#"[1, 1.0, 1.5, 18446744073709551615, -0.0, 1e3]"#).unwrap();
        assert_eq!(decoded.value, json!([1, 1, 1.5, 18446744073709551615_u64 as f64, 0, 1000]));
    }

    #[test]
    fn nesting_and_trailing_text_are_refused() {
        let deep = [vec![b'['; 200], vec![b']'; 200]].concat();
        assert!(decode(&deep).unwrap_err().to_string().contains("recursion limit"));
        assert!(decode(b"{} {}").is_err());
        assert!(is_deeper_than(&json!([[[]]]), 2));
        assert!(!is_deeper_than(&json!([[[]]]), 3));
    }
}
