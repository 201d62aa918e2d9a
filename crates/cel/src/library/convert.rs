//! Conversions between types.

use std::sync::Arc;

use super::declarations::Op;
use crate::duration::Duration;
use crate::eval::{Fault, Value};
use crate::numbers;
use crate::timestamp::Timestamp;

fn fault(error: impl std::fmt::Display) -> Fault {
    Fault::message(error.to_string())
}

/// `bool(x)`, `int(x)` and the like.
pub(super) fn convert<'a>(op: Op, value: &Value<'a>) -> Result<Value<'a>, Fault> {
    match (op, value) {
        (Op::Dyn, value) => Ok(value.clone()),
        (Op::TypeOf, value) => Ok(Value::Type(value.type_name())),
        (Op::Bool, Value::Bool(_))
        | (Op::Bytes, Value::Bytes(_))
        | (Op::Double, Value::Double(_))
        | (Op::Duration, Value::Duration(_))
        | (Op::Int, Value::Int(_))
        | (Op::String, Value::String(_))
        | (Op::Timestamp, Value::Timestamp(_))
        | (Op::Uint, Value::Uint(_)) => Ok(value.clone()),
        (Op::Bool, Value::String(text)) => numbers::parse_bool(text.as_str()).map(Value::Bool).map_err(fault),
        (Op::Bytes, Value::String(text)) => Ok(Value::Bytes(Arc::from(text.as_str().as_bytes()))),
        (Op::Double, Value::Int(value)) => Ok(Value::Double(*value as f64)),
        (Op::Double, Value::Uint(value)) => Ok(Value::Double(*value as f64)),
        (Op::Double, Value::String(text)) => {
            numbers::parse_double(text.as_str()).map(Value::Double).map_err(fault)
        }
        (Op::Duration, Value::Int(value)) => Ok(Value::Duration(Duration::from_nanoseconds(*value))),
        (Op::Duration, Value::String(text)) => {
            Duration::parse(text.as_str()).map(Value::Duration).map_err(fault)
        }
        (Op::Int, Value::Uint(value)) => numbers::uint_to_int(*value).map(Value::Int).map_err(fault),
        (Op::Int, Value::Double(value)) => numbers::double_to_int(*value).map(Value::Int).map_err(fault),
        (Op::Int, Value::String(text)) => numbers::parse_int(text.as_str()).map(Value::Int).map_err(fault),
        (Op::Int, Value::Timestamp(value)) => Ok(Value::Int(value.unix())),
        (Op::Int, Value::Duration(value)) => Ok(Value::Int(value.nanoseconds())),
        (Op::Uint, Value::Int(value)) => numbers::int_to_uint(*value).map(Value::Uint).map_err(fault),
        (Op::Uint, Value::Double(value)) => numbers::double_to_uint(*value).map(Value::Uint).map_err(fault),
        (Op::Uint, Value::String(text)) => numbers::parse_uint(text.as_str()).map(Value::Uint).map_err(fault),
        (Op::Timestamp, Value::Int(value)) => {
            Timestamp::from_unix(*value).map(Value::Timestamp).map_err(fault)
        }
        (Op::Timestamp, Value::String(text)) => {
            Timestamp::parse(text.as_str()).map(Value::Timestamp).map_err(fault)
        }
        (Op::String, Value::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::text(text)),
            Err(_) => Err(Fault::Static("the bytes are not valid UTF-8")),
        },
        (Op::String, Value::Bool(value)) => Ok(Value::text(if *value { "true" } else { "false" })),
        (Op::String, Value::Int(value)) => Ok(Value::text(value.to_string())),
        (Op::String, Value::Uint(value)) => Ok(Value::text(value.to_string())),
        (Op::String, Value::Double(value)) => Ok(Value::text(numbers::double_to_string(*value))),
        (Op::String, Value::Timestamp(value)) => Ok(Value::text(value.to_string())),
        (Op::String, Value::Duration(value)) => Ok(Value::text(value.to_string())),
        (Op::String, Value::Ip(value)) => Ok(Value::text(value.to_string())),
        (Op::String, Value::Cidr(value)) => Ok(Value::text(value.to_string())),
        (op, _) => Err(Fault::NoOverload(match op {
            Op::Bool => "bool",
            Op::Bytes => "bytes",
            Op::Double => "double",
            Op::Duration => "duration",
            Op::Int => "int",
            Op::String => "string",
            Op::Timestamp => "timestamp",
            _ => "uint",
        })),
    }
}
