//! Messages that JSON writes otherwise than as objects of their fields.

use modelplane_cel::timestamp::Timestamp;
use serde_json::{Map, Value};

/// Such a message; what is passed to [`value`] are its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    /// `seconds`, `nanos`: RFC 3339, to the second.
    Time,
    /// `seconds`, `nanos`: RFC 3339, to the microsecond.
    MicroTime,
    /// A text.
    Quantity,
    IntOrString,
    /// JSON that is sent as it is; no bytes are null.
    Json,
    /// A schema and a bool, or a schema and a list.
    SchemaOr,
}

impl Special {
    pub(super) fn of(message: &str) -> Option<Special> {
        Some(match message.rsplit_once(".pkg.")?.1 {
            "apis.meta.v1.Time" => Special::Time,
            "apis.meta.v1.MicroTime" => Special::MicroTime,
            "api.resource.Quantity" => Special::Quantity,
            "util.intstr.IntOrString" => Special::IntOrString,
            "apis.meta.v1.FieldsV1" | "runtime.RawExtension" | "apis.apiextensions.v1.JSON" => Special::Json,
            "apis.apiextensions.v1.JSONSchemaPropsOrArray"
            | "apis.apiextensions.v1.JSONSchemaPropsOrBool"
            | "apis.apiextensions.v1.JSONSchemaPropsOrStringArray" => Special::SchemaOr,
            _ => return None,
        })
    }

    /// What the value is called in errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Special::Time | Special::MicroTime => "seconds",
            Special::Quantity => "string",
            Special::IntOrString => "type",
            Special::Json => "raw",
            Special::SchemaOr => "schema",
        }
    }
}

/// The value of a special message.
pub(super) fn value(special: Special, mut fields: Map<String, Value>) -> Result<Value, &'static str> {
    let mut take = |name: &str| fields.shift_remove(name);
    let number = |value: Option<Value>| value.and_then(|value| value.as_i64());
    Ok(match special {
        Special::Time | Special::MicroTime => {
            let (seconds, nanos) = (number(take("seconds")), number(take("nanos")).unwrap_or(0));
            match seconds {
                // Not even zero is sent of the time that is not set.
                None if nanos == 0 => Value::Null,
                seconds => Value::String(time(seconds.unwrap_or(0), nanos, special == Special::MicroTime)?),
            }
        }
        Special::Quantity => match take("string") {
            Some(Value::String(text)) if !text.is_empty() => Value::String(text),
            _ => Value::String("0".to_owned()),
        },
        Special::IntOrString => match number(take("type")).unwrap_or(0) {
            0 => take("intVal").unwrap_or_else(|| Value::from(0)),
            1 => take("strVal").unwrap_or_else(|| Value::String(String::new())),
            _ => return Err("it is neither 0 (number) nor 1 (text)"),
        },
        Special::Json => take("raw").or_else(|| take("Raw")).unwrap_or(Value::Null),
        Special::SchemaOr => {
            let list = take("jSONSchemas").or_else(|| take("property"));
            match (take("schema"), list, take("allows")) {
                (Some(schema), _, _) => schema,
                (None, Some(list), _) => list,
                (None, None, Some(allows)) => allows,
                (None, None, None) => Value::Null,
            }
        }
    })
}

/// A time in RFC 3339, in UTC; years beyond four digits have no such form.
fn time(seconds: i64, nanos: i64, micros: bool) -> Result<String, &'static str> {
    if !(0..1_000_000_000).contains(&nanos) {
        return Err("the nanoseconds are not within a second");
    }
    let time = Timestamp::from_unix(seconds).map_err(|_| "the time is out of range")?.to_string();
    Ok(if micros { format!("{}.{:06}Z", time.trim_end_matches('Z'), nanos / 1_000) } else { time })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc() {
        for (seconds, nanos, micros, expected) in [
            (0, 0, false, Ok("1970-01-01T00:00:00Z")),
            (1_795_247_963, 123_456_789, false, Ok("2026-11-21T07:59:23Z")),
            (1_795_247_963, 123_456_789, true, Ok("2026-11-21T07:59:23.123456Z")),
            (1_709_208_000, 0, false, Ok("2024-02-29T12:00:00Z")),
            (-1, 0, false, Ok("1969-12-31T23:59:59Z")),
            (253_402_300_799, 0, false, Ok("9999-12-31T23:59:59Z")),
            (253_402_300_800, 0, false, Err("the time is out of range")),
            (i64::MIN, 0, true, Err("the time is out of range")),
            (0, -1, true, Err("the nanoseconds are not within a second")),
        ] {
            assert_eq!(time(seconds, nanos, micros), expected.map(str::to_owned), "{seconds}");
        }
    }
}
