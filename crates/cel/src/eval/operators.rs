//! Operators with two operands.

use super::arithmetic;
use super::compare::{equal, order};
use super::machine::Step;
use super::meter::Budget;
use super::value::{Fault, Value};
use crate::library::declarations::Op;

/// A result that fits into registers.
#[derive(Clone, Copy)]
pub(super) enum Quick {
    Bool(bool),
    Int(i64),
}

impl From<Quick> for Value<'_> {
    fn from(quick: Quick) -> Self {
        match quick {
            Quick::Bool(value) => Value::Bool(value),
            Quick::Int(value) => Value::Int(value),
        }
    }
}

/// The most frequent operators and functions, on operands of the same type; `None` for the rest.
pub(super) fn quick(op: Op, left: &Value<'_>, right: &Value<'_>) -> Option<Quick> {
    use std::cmp::Ordering;
    let found: Ordering = match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            return Some(Quick::Bool(match op {
                Op::Equal => a == b,
                Op::NotEqual => a != b,
                Op::StartsWith => a.starts_with(b),
                Op::EndsWith => a.ends_with(b),
                Op::Contains => a.contains(b),
                _ => return None,
            }));
        }
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Quantity(a), Value::Quantity(b)) => a.get().cmp(b.get()),
        (Value::Semver(a), Value::Semver(b)) => a.get().cmp(b.get()),
        _ => return None,
    };
    Some(match (op, left) {
        (Op::Equal, _) => Quick::Bool(found.is_eq()),
        (Op::NotEqual, _) => Quick::Bool(found.is_ne()),
        (Op::Less, Value::Int(_) | Value::Bool(_)) => Quick::Bool(found.is_lt()),
        (Op::LessEqual, Value::Int(_) | Value::Bool(_)) => Quick::Bool(found.is_le()),
        (Op::Greater, Value::Int(_) | Value::Bool(_)) => Quick::Bool(found.is_gt()),
        (Op::GreaterEqual, Value::Int(_) | Value::Bool(_)) => Quick::Bool(found.is_ge()),
        (Op::CompareTo, Value::Quantity(_) | Value::Semver(_)) => Quick::Int(found as i64),
        (Op::IsLessThan, Value::Quantity(_) | Value::Semver(_)) => Quick::Bool(found.is_lt()),
        (Op::IsGreaterThan, Value::Quantity(_) | Value::Semver(_)) => Quick::Bool(found.is_gt()),
        _ => return None,
    })
}

/// The operators with two operands; `None` for functions of the libraries.
pub(super) fn binary<'a>(
    op: Op,
    left: &Value<'a>,
    right: &Value<'a>,
    budget: &mut Budget,
) -> Step<Option<Value<'a>>> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let settle = |outcome: Result<Value<'a>, Fault>| outcome.unwrap_or_else(Value::fault);
    let ordered = |accept: [std::cmp::Ordering; 2]| match order(left, right) {
        Ok(found) => Value::Bool(accept.contains(&found)),
        Err(fault) => Value::fault(fault),
    };
    Ok(Some(match op {
        Op::Equal => match equal(left, right, budget)? {
            Some(same) => Value::Bool(same),
            None => Value::no_overload("=="),
        },
        Op::NotEqual => Value::Bool(equal(left, right, budget)? != Some(true)),
        Op::Less => ordered([Less, Less]),
        Op::LessEqual => ordered([Less, Equal]),
        Op::Greater => ordered([Greater, Greater]),
        Op::GreaterEqual => ordered([Greater, Equal]),
        Op::Add => match (left, right) {
            (Value::List(a), Value::List(b)) => {
                budget.work(a.len() + b.len())?;
                arithmetic::join(a, b)
            }
            (Value::String(a), Value::String(b)) => {
                budget.work((a.as_str().len() + b.as_str().len()) / 8)?;
                arithmetic::add(left, right)
            }
            _ => arithmetic::add(left, right),
        },
        Op::Subtract => settle(arithmetic::subtract(left, right)),
        Op::Multiply => settle(arithmetic::multiply(left, right)),
        Op::Divide => settle(arithmetic::divide(left, right)),
        Op::Modulo => settle(arithmetic::modulo(left, right)),
        Op::CompareTo => Value::no_overload("compareTo"),
        Op::IsGreaterThan => Value::no_overload("isGreaterThan"),
        Op::IsLessThan => Value::no_overload("isLessThan"),
        _ => return Ok(None),
    }))
}
