//! Equality and order of values, as cel-go defines them at run time.

use std::cmp::Ordering;

use super::meter::{Budget, Exhausted};
use super::value::{Fault, Value};
use crate::validation::SchemaNode;

/// `left == right`: a bool, or `None` where comparing the kinds is an error in Kubernetes.
pub(crate) fn equal(
    left: &Value<'_>,
    right: &Value<'_>,
    budget: &mut Budget,
) -> Result<Option<bool>, Exhausted> {
    use Value::{
        Bool, Bytes, Cidr, Double, Duration, Format, Int, Ip, List, Map, Null, Optional, Quantity, Semver,
        String, Timestamp, Type, Uint, Url,
    };
    budget.work(1)?;
    Ok(Some(match (left, right) {
        (Null, Null) => true,
        (Null, _) | (_, Null) => false,
        (Bool(a), Bool(b)) => a == b,
        (Int(_) | Uint(_) | Double(_), Int(_) | Uint(_) | Double(_)) => {
            numbers(left, right) == Some(Ordering::Equal)
        }
        (String(a), String(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            budget.work(a.len().min(b.len()) / 64)?;
            a == b
        }
        (Bytes(a), Bytes(b)) => {
            budget.work(a.len().min(b.len()) / 64)?;
            a == b
        }
        (Timestamp(a), Timestamp(b)) => a == b,
        (Duration(a), Duration(b)) => a == b,
        (Type(a), Type(b)) => a == b,
        (List(a), List(b)) => match (SchemaNode::list_semantics(a.schema()), a.len() == b.len()) {
            (Some(semantics), _) => return semantics.equal(a, b, budget),
            (None, false) => false,
            (None, true) => return lists(a, b, budget),
        },
        (Map(a), Map(b)) => return maps(a, b, budget),
        (Optional(a), Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => return equal_inside(a, b, budget),
            (a, b) => a.is_none() && b.is_none(),
        },
        (Quantity(a), Quantity(b)) => a.get() == b.get(),
        (Semver(a), Semver(b)) => a.get() == b.get(),
        (Url(a), Url(b)) => a == b,
        (Ip(a), Ip(b)) => a == b,
        (Cidr(a), Cidr(b)) => a == b,
        (Format(a), Format(b)) => a == b,
        (Quantity(_) | Semver(_) | Url(_) | Ip(_) | Cidr(_) | Format(_), _) => return Ok(None),
        _ => false,
    }))
}

/// Contents of optionals are compared without the special case for null.
fn equal_inside(left: &Value<'_>, right: &Value<'_>, budget: &mut Budget) -> Result<Option<bool>, Exhausted> {
    equal(left, right, budget)
}

/// Elements whose comparison is an error count as equal, as in cel-go.
fn lists(
    left: &super::value::List<'_>,
    right: &super::value::List<'_>,
    budget: &mut Budget,
) -> Result<Option<bool>, Exhausted> {
    for (a, b) in left.iter().zip(right.iter()) {
        if equal(&a, &b, budget)? == Some(false) {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

fn maps(
    left: &super::map::Map<'_>,
    right: &super::map::Map<'_>,
    budget: &mut Budget,
) -> Result<Option<bool>, Exhausted> {
    if left.len() != right.len() {
        return Ok(Some(false));
    }
    for key in left.keys() {
        let (Some(a), Some(b)) = (left.find(&key), right.find(&key)) else { return Ok(Some(false)) };
        if equal(&a, &b, budget)? == Some(false) {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

/// Whether a list has an element equal to the value.
pub(crate) fn contains(
    list: &super::value::List<'_>,
    value: &Value<'_>,
    budget: &mut Budget,
) -> Result<bool, Exhausted> {
    for element in list.iter() {
        if equal(value, &element, budget)? == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Int(a), Value::Double(b)) => integer_and_double(i128::from(*a), *b),
        (Value::Uint(a), Value::Double(b)) => integer_and_double(i128::from(*a), *b),
        (Value::Double(a), Value::Int(b)) => integer_and_double(i128::from(*b), *a).map(Ordering::reverse),
        (Value::Double(a), Value::Uint(b)) => integer_and_double(i128::from(*b), *a).map(Ordering::reverse),
        _ => None,
    }
}

/// cel-go compares as doubles once the double is known to lie in the integer's range.
fn integer_and_double(integer: i128, double: f64) -> Option<Ordering> {
    (integer as f64).partial_cmp(&double)
}

/// The order of two values of comparable types.
pub(crate) fn order(left: &Value<'_>, right: &Value<'_>) -> Result<Ordering, Fault> {
    match (left, right) {
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => numbers(left, right).ok_or(Fault::Static("NaN values cannot be ordered")),
        (Value::String(a), Value::String(b)) => Ok(a.as_str().cmp(b.as_str())),
        (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(b)),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Ok(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Ok(a.cmp(b)),
        _ => Err(Fault::NoOverload("the comparison")),
    }
}
