//! `RunFunctionRequest` from protobuf JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use modelplane_core::document::{EncodeError, encode, write_bytes_field, write_tag, write_varint};
use serde_json::{Map, Value};

/// A document is not the protobuf JSON of a `RunFunctionRequest`.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// A field has the wrong type.
    #[error("{field}: expected {expected}")]
    Type {
        /// Dotted path.
        field: String,
        /// What should be there.
        expected: &'static str,
    },
    /// A resource cannot be expressed as a `google.protobuf.Struct`.
    #[error("{field}: {source}")]
    Resource {
        /// Dotted path.
        field: String,
        /// Why.
        source: EncodeError,
    },
}

type Result<T> = std::result::Result<T, JsonError>;

/// Encodes the protobuf JSON of a `RunFunctionRequest` as its wire bytes.
///
/// # Errors
///
/// Names the field that has the wrong type.
pub fn request_from_json(json: &Value) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for (name, value) in object(json, "request")? {
        match name.as_str() {
            _ if value.is_null() => {}
            "meta" => meta(&mut out, value)?,
            "observed" => message(&mut out, 2, |out| state(out, value, "observed"))?,
            "desired" => message(&mut out, 3, |out| state(out, value, "desired"))?,
            "input" => structure(&mut out, 4, value, "input")?,
            "context" => structure(&mut out, 5, value, "context")?,
            "extraResources" | "extra_resources" => resource_map(&mut out, 6, value, name)?,
            "requiredResources" | "required_resources" => resource_map(&mut out, 8, value, name)?,
            _ => {}
        }
    }
    Ok(out)
}

fn meta(out: &mut Vec<u8>, json: &Value) -> Result<()> {
    let meta = object(json, "meta")?;
    let tag = meta.get("tag").and_then(Value::as_str).unwrap_or_default();
    let capabilities = meta.get("capabilities").and_then(Value::as_array).into_iter().flatten();
    let capabilities: Vec<u8> =
        capabilities.filter_map(|name| capability(name.as_str().unwrap_or_default())).collect();
    message(out, 1, |out| {
        write_bytes_field(out, 1, tag.as_bytes());
        if !capabilities.is_empty() {
            write_bytes_field(out, 2, &capabilities);
        }
        Ok(())
    })
}

/// The number of an `apiextensions.fn.proto.v1.Capability`.
fn capability(name: &str) -> Option<u8> {
    let names = [
        "UNSPECIFIED",
        "CAPABILITIES",
        "REQUIRED_RESOURCES",
        "CREDENTIALS",
        "CONDITIONS",
        "REQUIRED_SCHEMAS",
    ];
    let name = name.strip_prefix("CAPABILITY_")?;
    names.iter().position(|known| *known == name).and_then(|number| u8::try_from(number).ok())
}

fn state(out: &mut Vec<u8>, json: &Value, field: &str) -> Result<()> {
    let state = object(json, field)?;
    if let Some(composite) = state.get("composite") {
        message(out, 1, |out| resource(out, composite, &format!("{field}.composite")))?;
    }
    let Some(resources) = state.get("resources") else { return Ok(()) };
    for (key, value) in object(resources, &format!("{field}.resources"))? {
        entry(out, 2, key, |out| resource(out, value, &format!("{field}.resources.{key}")))?;
    }
    Ok(())
}

fn resource_map(out: &mut Vec<u8>, number: u32, json: &Value, field: &str) -> Result<()> {
    for (key, value) in object(json, field)? {
        entry(out, number, key, |out| {
            let Some(items) = object(value, &format!("{field}.{key}"))?.get("items") else { return Ok(()) };
            let items = items.as_array().ok_or_else(|| wrong(&format!("{field}.{key}.items"), "a list"))?;
            for (index, item) in items.iter().enumerate() {
                message(out, 1, |out| resource(out, item, &format!("{field}.{key}.items[{index}]")))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn resource(out: &mut Vec<u8>, json: &Value, field: &str) -> Result<()> {
    for (name, value) in object(json, field)? {
        match name.as_str() {
            _ if value.is_null() => {}
            "resource" => structure(out, 1, value, &format!("{field}.resource"))?,
            "connectionDetails" | "connection_details" => {
                for (key, detail) in object(value, &format!("{field}.{name}"))? {
                    let bytes = detail.as_str().and_then(|text| STANDARD.decode(text).ok());
                    let bytes =
                        bytes.ok_or_else(|| wrong(&format!("{field}.{name}.{key}"), "base64 text"))?;
                    entry_bytes(out, 2, key, &bytes);
                }
            }
            "ready" => {
                write_tag(out, 3, 0);
                write_varint(out, ready(value).ok_or_else(|| wrong(&format!("{field}.ready"), "a Ready"))?);
            }
            _ => {}
        }
    }
    Ok(())
}

fn ready(json: &Value) -> Option<u64> {
    match json {
        Value::Number(number) => number.as_u64(),
        Value::String(name) => ["READY_UNSPECIFIED", "READY_TRUE", "READY_FALSE"]
            .iter()
            .position(|known| known == name)
            .map(|n| n as u64),
        _ => None,
    }
}

fn structure(out: &mut Vec<u8>, number: u32, json: &Value, field: &str) -> Result<()> {
    object(json, field)?;
    let bytes = encode(json).map_err(|source| JsonError::Resource { field: field.to_owned(), source })?;
    write_bytes_field(out, number, &bytes);
    Ok(())
}

fn object<'j>(json: &'j Value, field: &str) -> Result<&'j Map<String, Value>> {
    json.as_object().ok_or_else(|| wrong(field, "an object"))
}

fn wrong(field: &str, expected: &'static str) -> JsonError {
    JsonError::Type { field: field.to_owned(), expected }
}

fn entry(
    out: &mut Vec<u8>,
    number: u32,
    key: &str,
    value: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut bytes = Vec::new();
    value(&mut bytes)?;
    entry_bytes(out, number, key, &bytes);
    Ok(())
}

fn entry_bytes(out: &mut Vec<u8>, number: u32, key: &str, value: &[u8]) {
    let mut entry = Vec::with_capacity(key.len() + value.len() + 12);
    write_bytes_field(&mut entry, 1, key.as_bytes());
    write_bytes_field(&mut entry, 2, value);
    write_bytes_field(out, number, &entry);
}

fn message(out: &mut Vec<u8>, number: u32, content: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let mut bytes = Vec::new();
    content(&mut bytes)?;
    write_bytes_field(out, number, &bytes);
    Ok(())
}
