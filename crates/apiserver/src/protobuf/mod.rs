//! Reading Kubernetes' protobuf bodies of built-in kinds, which typed Go clients (and so `kubectl create`) send.
//!
//! Answers are never protobuf: those clients accept JSON as well. `fields.txt` says what each field of each
//! message is called in JSON.

mod table;
mod wire;

use serde_json::{Map, Value};

use self::table::{Base, Field, Shape};
use self::wire::{Payload, Reader};

/// What precedes the envelope (`runtime.Unknown`).
const MAGIC: &[u8] = b"k8s\0";
/// Messages nest at most this deep; schemas in definitions are the deepest.
const MAX_DEPTH: usize = 100;

/// Why a body cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtobufError {
    /// No kind of the table: a custom resource, or no envelope at all.
    #[error("the body is no protobuf of a known kind")]
    UnknownKind,
    /// The bytes are not what the kind's messages are made of.
    #[error("the body is not valid protobuf: {0}")]
    Malformed(&'static str),
}

type Result<T> = std::result::Result<T, ProtobufError>;

/// Decodes a body to the object it stands for.
pub(crate) fn decode(body: &[u8]) -> Result<Value> {
    let envelope = body.strip_prefix(MAGIC).ok_or(ProtobufError::UnknownKind)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    let mut reader = Reader::new(envelope);
    while let Some((number, payload)) = reader.next()? {
        match (number, payload) {
            (1, Payload::Bytes(types)) => {
                let mut types = Reader::new(types);
                while let Some((number, payload)) = types.next()? {
                    match number {
                        1 => api_version = payload.text()?,
                        2 => kind = payload.text()?,
                        _ => {}
                    }
                }
            }
            (2, Payload::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let name = message_name(&api_version, &kind);
    if table::line(&name).is_none() {
        return Err(ProtobufError::UnknownKind);
    }
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    message(&name, raw, &mut object, 0)?;
    Ok(Value::Object(object))
}

/// The table's name of a kind: the first label of the group, the version, the kind.
fn message_name(api_version: &str, kind: &str) -> String {
    // Every group has its own registration of these; they are all the same.
    if kind == "DeleteOptions" {
        return "meta/v1.DeleteOptions".to_owned();
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    let group = group.split('.').next().unwrap_or_default();
    format!("{group}/{version}.{kind}")
}

fn message(name: &str, bytes: &[u8], object: &mut Map<String, Value>, depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::Malformed("messages nest too deep"));
    }
    let fields = table::fields(name);
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        // As in any protobuf, what is not known is skipped.
        let Some(field) = fields.iter().find(|field| field.number == number) else { continue };
        read(field, payload, object, depth)?;
    }
    Ok(())
}

fn read(
    field: &Field<'_>,
    payload: Payload<'_>,
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<()> {
    if field.name.is_empty() {
        if let Base::Message(inlined) = field.base {
            message(inlined, payload.bytes()?, object, depth + 1)?;
        }
        return Ok(());
    }
    match field.shape {
        Shape::One => {
            let value = base(field.base, payload, depth)?;
            let zero = match &value {
                Value::Null => true,
                Value::Bool(flag) => !flag,
                Value::Number(number) => number.as_i64() == Some(0),
                Value::String(text) => text.is_empty(),
                _ => false,
            };
            if !(zero && (field.omit_zero || value.is_null())) {
                object.insert(field.name.to_owned(), value);
            }
        }
        Shape::Repeated => {
            let value = base(field.base, payload, depth)?;
            let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            if let Some(list) = list.as_array_mut() {
                list.push(value);
            }
        }
        Shape::Map => {
            let (mut key, mut value) = (String::new(), None);
            let mut entry = Reader::new(payload.bytes()?);
            while let Some((number, payload)) = entry.next()? {
                match number {
                    1 => key = payload.text()?,
                    2 => value = Some(base(field.base, payload, depth)?),
                    _ => {}
                }
            }
            let value = value.unwrap_or_else(|| match field.base {
                Base::Text | Base::Bytes => Value::String(String::new()),
                _ => Value::Object(Map::new()),
            });
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Some(map) = map.as_object_mut() {
                map.insert(key, value);
            }
        }
    }
    Ok(())
}

fn base(base: Base<'_>, payload: Payload<'_>, depth: usize) -> Result<Value> {
    use base64::Engine as _;
    Ok(match base {
        Base::Text => Value::String(payload.text()?),
        Base::Flag => Value::Bool(payload.integer()? != 0),
        Base::Integer => Value::from(payload.integer()?),
        Base::Bytes => Value::String(base64::engine::general_purpose::STANDARD.encode(payload.bytes()?)),
        Base::Message(name) => special(name, payload.bytes()?, depth)?,
    })
}

/// The fields of a message with few of them, by number: integers and bytes.
fn parts(bytes: &[u8]) -> Result<([i64; 4], [&[u8]; 4])> {
    let (mut integers, mut texts) = ([0; 4], [&[][..]; 4]);
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        let Some(index) = usize::try_from(number).ok().filter(|index| *index < 4) else { continue };
        match payload {
            Payload::Integer(value) => integers[index] = value,
            Payload::Bytes(value) => texts[index] = value,
            Payload::Fixed => {}
        }
    }
    Ok((integers, texts))
}

fn utf8(bytes: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(bytes).map_err(|_| ProtobufError::Malformed("a text is not UTF-8"))?;
    Ok(Value::String(text.to_owned()))
}

fn json(bytes: &[u8]) -> Result<Value> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(bytes).map_err(|_| ProtobufError::Malformed("embedded JSON is invalid"))
}

/// Messages with a form of their own in JSON; all others are objects.
fn special(name: &str, bytes: &[u8], depth: usize) -> Result<Value> {
    let schema = |bytes: &[u8]| {
        let mut object = Map::new();
        message("apiextensions/v1.JSONSchemaProps", bytes, &mut object, depth + 1)
            .map(|()| Value::Object(object))
    };
    match name {
        "meta/v1.Time" | "meta/v1.MicroTime" => {
            let ([_, seconds, nanos, _], _) = parts(bytes)?;
            time(seconds, nanos, name.ends_with("MicroTime"))
        }
        "meta/v1.Duration" => Ok(Value::String(format!("{}ns", parts(bytes)?.0[1]))),
        "util/intstr.IntOrString" => {
            let ([_, kind, number, _], [.., text]) = parts(bytes)?;
            if kind == 0 { Ok(number.into()) } else { utf8(text) }
        }
        "api/resource.Quantity" => utf8(parts(bytes)?.1[1]),
        "pkg/runtime.RawExtension" | "meta/v1.FieldsV1" | "apiextensions/v1.JSON" => json(parts(bytes)?.1[1]),
        "apiextensions/v1.JSONSchemaPropsOrBool" => {
            let (integers, texts) = parts(bytes)?;
            if texts[2].is_empty() { Ok((integers[1] != 0).into()) } else { schema(texts[2]) }
        }
        "apiextensions/v1.JSONSchemaPropsOrArray" => schema(parts(bytes)?.1[1]),
        "apiextensions/v1.JSONSchemaPropsOrStringArray" => {
            let mut reader = Reader::new(bytes);
            let mut texts = Vec::new();
            while let Some((number, payload)) = reader.next()? {
                match number {
                    1 => return schema(payload.bytes()?),
                    2 => texts.push(Value::String(payload.text()?)),
                    _ => {}
                }
            }
            Ok(Value::Array(texts))
        }
        "ExtraValue" => {
            let mut reader = Reader::new(bytes);
            let mut texts = Vec::new();
            while let Some((_, payload)) = reader.next()? {
                texts.push(Value::String(payload.text()?));
            }
            Ok(Value::Array(texts))
        }
        _ => {
            let mut object = Map::new();
            message(name, bytes, &mut object, depth + 1)?;
            Ok(Value::Object(object))
        }
    }
}

fn time(seconds: i64, nanos: i64, micros: bool) -> Result<Value> {
    if seconds == 0 && nanos == 0 {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(nanos).map_err(|_| ProtobufError::Malformed("a time is out of range"))?;
    let time = jiff::Timestamp::new(seconds, nanos)
        .map_err(|_| ProtobufError::Malformed("a time is out of range"))?;
    let format = if micros { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(Value::String(time.strftime(format).to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        out.extend_from_slice(bytes);
        out
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &types), field(2, raw)].concat()
    }

    #[test]
    fn a_built_in_object_is_read_to_what_its_json_says() {
        let entry = [field(1, b"key"), field(2, b"value")].concat();
        let metadata = [field(1, b"name"), field(2, b""), field(8, &[])].concat();
        let body = envelope("v1", "ConfigMap", &[field(1, &metadata), field(2, &entry)].concat());
        let expected = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "name"}, "data": {"key": "value"},
        });
        assert_eq!(decode(&body), Ok(expected));
    }

    #[test]
    fn inlined_messages_and_special_types_have_their_json_form() {
        let source = field(19, &field(1, &field(1, b"map")));
        let volume = [field(1, b"data"), field(2, &source)].concat();
        let port =
            [field(1, b"http"), vec![3 << 3, 80], field(4, &[1 << 3, 1, 3 << 3 | 2, 1, b'x'])].concat();
        let _ = port;
        let spec = field(1, &volume);
        let body = envelope("v1", "Pod", &field(2, &spec));
        let decoded = decode(&body).unwrap();
        assert_eq!(decoded["spec"], json!({"volumes": [{"name": "data", "configMap": {"name": "map"}}]}));
    }

    #[test]
    fn what_is_no_body_of_a_known_kind_is_refused() {
        assert_eq!(decode(b"{}"), Err(ProtobufError::UnknownKind));
        assert_eq!(decode(MAGIC), Err(ProtobufError::UnknownKind));
        assert_eq!(decode(&envelope("example.org/v1", "Widget", b"")), Err(ProtobufError::UnknownKind));
        assert!(matches!(decode(&envelope("v1", "Pod", &[0x0a, 0x7f])), Err(ProtobufError::Malformed(_))));
        let mut deep = Vec::new();
        for _ in 0..40 {
            deep = field(18, &deep);
        }
        assert!(decode(&envelope("v1", "Pod", &deep)).is_ok(), "unknown fields are skipped");
    }
}
