//! Decoding request bodies: JSON, YAML or protobuf to a [`Value`], remembering keys that occur twice.
//!
//! Nesting is bounded by the parsers' own limits (128 levels in JSON), so hostile depth is a 400, not a stack.

use modelplane_apimachinery::protobuf::{self, ProtobufError};
use modelplane_apimachinery::schema;
use serde_json::Value;

use super::negotiate::BodyFormat;
use crate::status::{ApiError, ApiResult};

/// Nesting allowed in YAML, as deep as JSON's.
const MAX_YAML_DEPTH: usize = 128;
/// Nesting that the YAML parser, which takes kilobytes of stack for each level, handles on any thread.
const SHALLOW: usize = 32;
/// Enough stack for all of [`MAX_YAML_DEPTH`] in a build without optimizations, several times over.
const YAML_STACK: usize = 16 * 1024 * 1024;

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    /// Paths of the keys that occur more than once, e.g. `spec.replicas`; the last value counts.
    pub(crate) duplicates: Vec<String>,
}

/// Decodes a body of a declared format.
pub(crate) fn decode(body: &[u8], format: BodyFormat) -> ApiResult<Decoded> {
    match format {
        BodyFormat::Json => json(body),
        BodyFormat::Yaml => yaml(body),
        BodyFormat::Protobuf => protobuf(body),
    }
}

/// Decodes a body that must be an object, as creates and updates send.
pub(crate) fn decode_object(body: &[u8], format: BodyFormat) -> ApiResult<Decoded> {
    let decoded = decode(body, format)?;
    if !decoded.value.is_object() {
        return Err(ApiError::bad_request(format!(
            "the body must be an object, not {}",
            describe(&decoded.value)
        )));
    }
    Ok(decoded)
}

fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn json(body: &[u8]) -> ApiResult<Decoded> {
    let decoded = schema::decode::decode(body)
        .map_err(|error| ApiError::bad_request(format!("the body is not valid JSON: {error}")))?;
    let duplicates = decoded.repeated.iter().map(ToString::to_string).collect();
    Ok(Decoded { value: decoded.value, duplicates })
}

fn protobuf(body: &[u8]) -> ApiResult<Decoded> {
    match protobuf::decode(body) {
        Ok(value) => Ok(Decoded { value, duplicates: Vec::new() }),
        Err(ProtobufError::UnknownKind { .. } | ProtobufError::Magic) => {
            Err(ApiError::unsupported_media_type("application/json, application/yaml"))
        }
        Err(error @ ProtobufError::TooLarge) => Err(ApiError::too_large(error.to_string())),
        Err(error) => Err(ApiError::bad_request(error.to_string())),
    }
}

fn yaml(body: &[u8]) -> ApiResult<Decoded> {
    let text = std::str::from_utf8(body)
        .map_err(|error| ApiError::bad_request(format!("the body is not UTF-8: {error}")))?;
    if !may_nest_deeper_than(SHALLOW, text) {
        return parse_yaml(text);
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(YAML_STACK);
        let parsing = thread.spawn_scoped(scope, || parse_yaml(text)).map_err(ApiError::internal)?;
        parsing.join().unwrap_or_else(|_| Err(ApiError::internal("reading the YAML panicked")))
    })
}

/// Whether a text could nest deeper than so many levels: each takes a bracket, or a column of the indentation (of
/// which `- - -` is a part).
fn may_nest_deeper_than(levels: usize, text: &str) -> bool {
    let mut open: usize = 0;
    text.lines().any(|line| {
        let indentation = line.bytes().take_while(|byte| matches!(byte, b' ' | b'-' | b'?' | b':')).count();
        line.bytes().any(|byte| {
            match byte {
                b'[' | b'{' => open += 1,
                b']' | b'}' => open = open.saturating_sub(1),
                _ => {}
            }
            open + indentation > levels
        })
    })
}

fn parse_yaml(text: &str) -> ApiResult<Decoded> {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::Error;
    if let Some(budget) = options.budget.as_mut() {
        budget.max_depth = MAX_YAML_DEPTH;
    }
    let value = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| ApiError::bad_request(format!("the body is not valid YAML: {error}")))?;
    Ok(Decoded { value, duplicates: Vec::new() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repeated_keys_are_named_by_path_and_the_last_counts() {
        let decoded =
            decode(br#"{"spec":{"a":1,"list":[{"b":1},{"b":1,"b":2}],"a":3}}"#, BodyFormat::Json).unwrap();
        assert_eq!(decoded.value, json!({"spec": {"a": 3, "list": [{"b": 1}, {"b": 2}]}}));
        assert_eq!(decoded.duplicates, ["spec.list[1].b", "spec.a"]);
    }

    #[test]
    fn bad_bodies_are_refused() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        for body in ["", "{", "[]", "{\"a\":1} x", "\"text\"", &deep] {
            assert_eq!(decode_object(body.as_bytes(), BodyFormat::Json).unwrap_err().code, 400, "{body:.20}");
        }
        let deep = format!("{}1", "a: {b: ".repeat(300));
        assert!(decode_object(deep.as_bytes(), BodyFormat::Yaml).is_err());
    }

    #[test]
    fn yaml_becomes_the_same_value() {
        let decoded = decode_object(b"a: 1\nb:\n- x\n- y: true\n", BodyFormat::Yaml).unwrap();
        assert_eq!(decoded.value, json!({"a": 1, "b": ["x", {"y": true}]}));
    }
}
