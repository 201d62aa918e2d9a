//! `RunFunctionResponse` to protobuf JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use modelplane_core::document::{DecodeError, Document, Field, Malformed, Reader, map_entry};
use serde_json::{Map, Value, json};

/// Why a response cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ResponseError {
    /// The bytes are not a `RunFunctionResponse`.
    #[error("the response is not a RunFunctionResponse: {0}")]
    Malformed(#[from] Malformed),
    /// A resource in it cannot be read.
    #[error("a resource in the response cannot be read: {0}")]
    Resource(#[from] DecodeError),
}

type Result<T> = std::result::Result<T, ResponseError>;

/// Renders the wire bytes of a `RunFunctionResponse` as protobuf JSON.
///
/// # Errors
///
/// If the bytes are not such a message.
pub fn response_to_json(bytes: &[u8]) -> Result<Value> {
    let mut out = Map::new();
    let (mut results, mut conditions) = (Vec::new(), Vec::new());
    each(bytes, |number, bytes| {
        match number {
            1 => drop(out.insert("meta".to_owned(), meta(bytes)?)),
            2 => drop(out.insert("desired".to_owned(), state(bytes)?)),
            3 => results.push(scalars(bytes, &RESULT)?),
            4 => drop(out.insert("context".to_owned(), structure(bytes)?)),
            5 => drop(out.insert("requirements".to_owned(), requirements(bytes)?)),
            6 => conditions.push(scalars(bytes, &CONDITION)?),
            _ => {}
        }
        Ok(())
    })?;
    if !conditions.is_empty() {
        out.insert("conditions".to_owned(), conditions.into());
    }
    if !results.is_empty() {
        out.insert("results".to_owned(), results.into());
    }
    Ok(out.into())
}

/// How one field of a flat message is shown: number, name, names of its enum values (none: a string).
type Shown = (u32, &'static str, &'static [&'static str]);

const RESULT: [Shown; 3] = [
    (1, "severity", &["SEVERITY_UNSPECIFIED", "SEVERITY_FATAL", "SEVERITY_WARNING", "SEVERITY_NORMAL"]),
    (2, "message", &[]),
    (3, "reason", &[]),
];

const CONDITION: [Shown; 4] = [
    (1, "type", &[]),
    (
        2,
        "status",
        &[
            "STATUS_CONDITION_UNSPECIFIED",
            "STATUS_CONDITION_UNKNOWN",
            "STATUS_CONDITION_TRUE",
            "STATUS_CONDITION_FALSE",
        ],
    ),
    (3, "reason", &[]),
    (4, "message", &[]),
];

const SELECTOR: [Shown; 4] =
    [(1, "apiVersion", &[]), (2, "kind", &[]), (3, "matchName", &[]), (5, "namespace", &[])];

const READY: [&str; 3] = ["READY_UNSPECIFIED", "READY_TRUE", "READY_FALSE"];

fn scalars(bytes: &[u8], fields: &[Shown]) -> Result<Value> {
    let mut out = Map::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, field)) = reader.next_field()? {
        let Some((_, name, values)) = fields.iter().find(|(known, ..)| *known == number) else { continue };
        let value = match field {
            Field::Bytes(bytes) => text(bytes).into(),
            Field::Varint(index) => values.get(index as usize).map_or(json!(index), |name| json!(name)),
            _ => continue,
        };
        out.insert((*name).to_owned(), value);
    }
    Ok(out.into())
}

fn meta(bytes: &[u8]) -> Result<Value> {
    let mut out = Map::new();
    each(bytes, |number, bytes| {
        match number {
            1 => drop(out.insert("tag".to_owned(), text(bytes).into())),
            2 => {
                let mut reader = Reader::new(bytes);
                while let Some((number, field)) = reader.next_field()? {
                    if let (1, Field::Varint(seconds)) = (number, field) {
                        out.insert("ttl".to_owned(), format!("{seconds}s").into());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(out.into())
}

fn state(bytes: &[u8]) -> Result<Value> {
    let (mut out, mut resources) = (Map::new(), Map::new());
    each(bytes, |number, bytes| {
        match number {
            1 => drop(out.insert("composite".to_owned(), resource(bytes)?)),
            2 => {
                let (key, value) = map_entry(bytes)?;
                resources.insert(text(key), resource(value)?);
            }
            _ => {}
        }
        Ok(())
    })?;
    if !resources.is_empty() {
        out.insert("resources".to_owned(), resources.into());
    }
    Ok(out.into())
}

fn resource(bytes: &[u8]) -> Result<Value> {
    let (mut out, mut details) = (Map::new(), Map::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, field)) = reader.next_field()? {
        match (number, field) {
            (1, Field::Bytes(bytes)) => drop(out.insert("resource".to_owned(), structure(bytes)?)),
            (2, Field::Bytes(bytes)) => {
                let (key, value) = map_entry(bytes)?;
                details.insert(text(key), STANDARD.encode(value).into());
            }
            (3, Field::Varint(ready)) => {
                let name = READY.get(ready as usize).map_or(json!(ready), |name| json!(name));
                out.insert("ready".to_owned(), name);
            }
            _ => {}
        }
    }
    if !details.is_empty() {
        out.insert("connectionDetails".to_owned(), details.into());
    }
    Ok(out.into())
}

fn requirements(bytes: &[u8]) -> Result<Value> {
    let mut resources = Map::new();
    each(bytes, |number, bytes| {
        if number == 2 {
            let (key, value) = map_entry(bytes)?;
            resources.insert(text(key), selector(value)?);
        }
        Ok(())
    })?;
    Ok(json!({ "resources": resources }))
}

fn selector(bytes: &[u8]) -> Result<Value> {
    let mut out = scalars(bytes, &SELECTOR)?;
    each(bytes, |number, bytes| {
        if number == 4 {
            let mut labels = Map::new();
            each(bytes, |_, bytes| {
                let (key, value) = map_entry(bytes)?;
                labels.insert(text(key), text(value).into());
                Ok(())
            })?;
            out["matchLabels"] = json!({ "labels": labels });
        }
        Ok(())
    })?;
    Ok(out)
}

fn structure(bytes: &[u8]) -> Result<Value> {
    Ok(Document::from_struct(bytes).to_json()?)
}

/// Calls `visit` with every length-delimited field.
fn each(bytes: &[u8], mut visit: impl FnMut(u32, &[u8]) -> Result<()>) -> Result<()> {
    let mut reader = Reader::new(bytes);
    while let Some((number, field)) = reader.next_field()? {
        if let Field::Bytes(bytes) = field {
            visit(number, bytes)?;
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
