//! The arithmetic operators, with cel-go's overflow errors.

use std::sync::Arc;

use super::value::{Fault, List, Value};

const INTEGER_OVERFLOW: Fault = Fault::Static("integer overflow");
const UNSIGNED_OVERFLOW: Fault = Fault::Static("unsigned integer overflow");
const DIVISION_BY_ZERO: Fault = Fault::Static("division by zero");
const MODULUS_BY_ZERO: Fault = Fault::Static("modulus by zero");

type Outcome<'a> = Result<Value<'a>, Fault>;

fn time(error: crate::duration::TimeError) -> Fault {
    Fault::message(error.to_string())
}

/// `left + right` of everything but lists, which the machine joins.
pub(crate) fn add<'a>(left: &Value<'a>, right: &Value<'a>) -> Value<'a> {
    sum(left, right).unwrap_or_else(Value::fault)
}

fn sum<'a>(left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_add(*b).map(Value::Int).ok_or(INTEGER_OVERFLOW),
        (Value::Uint(a), Value::Uint(b)) => a.checked_add(*b).map(Value::Uint).ok_or(UNSIGNED_OVERFLOW),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Ok(Value::text(text))
        }
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes(Arc::from([&a[..], &b[..]].concat()))),
        (Value::Duration(a), Value::Duration(b)) => a.checked_add(*b).map(Value::Duration).map_err(time),
        (Value::Duration(a), Value::Timestamp(b)) | (Value::Timestamp(b), Value::Duration(a)) => {
            b.checked_add(*a).map(Value::Timestamp).map_err(time)
        }
        _ => Err(Fault::NoOverload("+")),
    }
}

/// The elements of two lists, one after the other.
pub(super) fn join<'a>(left: &List<'a>, right: &List<'a>) -> Value<'a> {
    if right.len() == 0 {
        return Value::List(left.clone());
    }
    if left.len() == 0 {
        return Value::List(right.clone());
    }
    Value::list(left.iter().chain(right.iter()).collect())
}

pub(super) fn subtract<'a>(left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_sub(*b).map(Value::Int).ok_or(INTEGER_OVERFLOW),
        (Value::Uint(a), Value::Uint(b)) => a.checked_sub(*b).map(Value::Uint).ok_or(UNSIGNED_OVERFLOW),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Duration(a), Value::Duration(b)) => a.checked_sub(*b).map(Value::Duration).map_err(time),
        (Value::Timestamp(a), Value::Duration(b)) => a.checked_sub(*b).map(Value::Timestamp).map_err(time),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.duration_since(*b).map(Value::Duration).map_err(time),
        _ => Err(Fault::NoOverload("-")),
    }
}

pub(super) fn multiply<'a>(left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_mul(*b).map(Value::Int).ok_or(INTEGER_OVERFLOW),
        (Value::Uint(a), Value::Uint(b)) => a.checked_mul(*b).map(Value::Uint).ok_or(UNSIGNED_OVERFLOW),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
        _ => Err(Fault::NoOverload("*")),
    }
}

pub(super) fn divide<'a>(left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(DIVISION_BY_ZERO),
        (Value::Int(a), Value::Int(b)) => a.checked_div(*b).map(Value::Int).ok_or(INTEGER_OVERFLOW),
        (Value::Uint(a), Value::Uint(b)) => Ok(Value::Uint(a / b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
        _ => Err(Fault::NoOverload("/")),
    }
}

pub(super) fn modulo<'a>(left: &Value<'a>, right: &Value<'a>) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(MODULUS_BY_ZERO),
        (Value::Int(a), Value::Int(b)) => a.checked_rem(*b).map(Value::Int).ok_or(INTEGER_OVERFLOW),
        (Value::Uint(a), Value::Uint(b)) => Ok(Value::Uint(a % b)),
        _ => Err(Fault::NoOverload("%")),
    }
}

/// `-value`.
pub(crate) fn negate<'a>(value: &Value<'a>) -> Value<'a> {
    negated(value).unwrap_or_else(Value::fault)
}

fn negated<'a>(value: &Value<'a>) -> Outcome<'a> {
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int).ok_or(INTEGER_OVERFLOW),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(value) => value.checked_neg().map(Value::Duration).map_err(time),
        _ => Err(Fault::NoOverload("-")),
    }
}
