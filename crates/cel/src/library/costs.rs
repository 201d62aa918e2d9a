//! What a call costs at run time, as cel-go and Kubernetes meter it.

use crate::eval::{Value, runtime_size};

use super::declarations::Cost;

/// The factor of traversing a text.
pub(crate) const TRAVERSAL: f64 = 0.1;
/// The factor of a regular expression's length.
pub(crate) const PATTERN: f64 = 0.25;
/// The cost of making a list.
pub(crate) const LIST_COST: u32 = 10;
/// The cost of making a map.
pub(crate) const MAP_COST: u32 = 30;

fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

fn traversal(size: u64) -> u64 {
    scaled(size, TRAVERSAL)
}

/// The size of an operand; an optional counts as its content.
fn open_size(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(inner)) => open_size(inner),
        value => runtime_size(value),
    }
}

/// The cost of a call, given its operands and its result.
pub(crate) fn cost(rule: Cost, operands: &[Value<'_>], result: &Value<'_>) -> u64 {
    let size = |index: usize| operands.get(index).map_or(1, runtime_size);
    match rule {
        Cost::Join => (runtime_size(result) as f64 * 2.0 * TRAVERSAL).ceil() as u64,
        Cost::Slice | Cost::Range | Cost::Reverse => allocation(1.0, runtime_size(result)),
        Cost::Flatten => {
            let depth = match operands.get(1) {
                Some(Value::Int(depth)) => *depth as f64,
                _ => 1.0,
            };
            allocation(depth, size(0))
        }
        rule => cost_before(rule, operands).unwrap_or(1),
    }
}

/// The cost where it does not depend on the result.
pub(crate) fn cost_before(rule: Cost, operands: &[Value<'_>]) -> Option<u64> {
    let size = |index: usize| operands.get(index).map_or(1, runtime_size);
    let open = |index: usize| operands.get(index).map_or(1, open_size);
    Some(match rule {
        Cost::Logic | Cost::Conditional => 0,
        Cost::Equality if operands.first().is_some_and(is_kubernetes) => 1,
        Cost::Equality | Cost::Comparison => traversal(open(0).min(open(1))),
        Cost::InList => open(1),
        Cost::AddText => traversal(open(0).saturating_add(open(1))),
        Cost::Affix | Cost::StringToBytes | Cost::BytesToString | Cost::Quote | Cost::FormatText => {
            traversal(open(0))
        }
        Cost::Contains => traversal(open(0)).saturating_mul(traversal(open(1))),
        Cost::Matches => pattern_cost(rule, operands.first()?, open(1)),
        Cost::Find => pattern_cost(rule, operands.first()?, size(1)),
        Cost::Traverse => operands.first().map_or(0, traverse),
        Cost::SameText | Cost::Parse | Cost::ParseSized => traversal(size(0)),
        Cost::Replace | Cost::Split | Cost::ParseTwice => (size(0) as f64 * 2.0 * TRAVERSAL).ceil() as u64,
        Cost::ContainsIp => traversal(size(0) * 2),
        Cost::ContainsIpText => traversal(size(0) * 2) + traversal(size(1)),
        Cost::ContainsCidr => traversal(size(0) * 2) + traversal(size(0)) + 1,
        Cost::ContainsCidrText => traversal(size(0) * 2) + traversal(size(0)) + 1 + traversal(size(1)),
        Cost::Validate => match operands.first() {
            Some(Value::Format(format)) => {
                let text = ((1.0 + size(1) as f64) * TRAVERSAL).ceil() as u64;
                text.saturating_mul(scaled(format.pattern_size(), PATTERN))
            }
            _ => 1,
        },
        Cost::Distinct | Cost::Sort { .. } => self_comparison(operands.first()?),
        Cost::SortByKeys { .. } => self_comparison(operands.get(1)?),
        Cost::Sets(factor) => 1 + ((size(0).saturating_mul(size(1))) as f64 * f64::from(factor)) as u64,
        Cost::Join | Cost::Slice | Cost::Range | Cost::Reverse | Cost::Flatten => return None,
        Cost::One | Cost::Dyn | Cost::IndexList | Cost::IndexMap | Cost::AddList | Cost::Includes => 1,
    })
}

/// The cost of a call with two operands, which does not depend on the result.
pub(crate) fn pair_cost(rule: Cost, left: &Value<'_>, right: &Value<'_>) -> u64 {
    match rule {
        Cost::Equality if is_kubernetes(left) => 1,
        Cost::Equality | Cost::Comparison => traversal(open_size(left).min(open_size(right))),
        rule => cost_before(rule, &[left.clone(), right.clone()]).unwrap_or(1),
    }
}

/// Types of Kubernetes, of which equality costs one unit.
fn is_kubernetes(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Quantity(_)
            | Value::Semver(_)
            | Value::Ip(_)
            | Value::Cidr(_)
            | Value::Url(_)
            | Value::Format(_)
    )
}

/// The operand that decides the cost and of which Kubernetes assumes that it is no fault.
pub(crate) fn measured<'v, 'a>(rule: Cost, operands: &'v [Value<'a>]) -> Option<&'v Value<'a>> {
    match rule {
        Cost::Distinct | Cost::Sort { .. } => operands.first(),
        Cost::SortByKeys { .. } | Cost::Flatten => operands.get(1),
        _ => None,
    }
}

/// The cost of matching a text against a pattern of a size.
pub(crate) fn pattern_cost(rule: Cost, text: &Value<'_>, pattern: u64) -> u64 {
    let size = match rule {
        Cost::Matches => open_size(text),
        Cost::Find => runtime_size(text),
        _ => return 1,
    };
    (((1.0 + size as f64) * TRAVERSAL).ceil() as u64).saturating_mul(scaled(pattern, PATTERN))
}

/// One traversal of all texts in a value, the rest counting one each. A cost that no evaluation can afford ends it.
fn traverse(value: &Value<'_>) -> u64 {
    let (mut cost, mut visits) = (0, 0);
    traverse_into(value, &mut cost, &mut visits);
    // Empty lists cost nothing, but visiting them takes time.
    if visits > UNAFFORDABLE { UNAFFORDABLE } else { cost }
}

/// More than any evaluation may spend.
const UNAFFORDABLE: u64 = 2_000_000;

fn traverse_into(value: &Value<'_>, cost: &mut u64, visits: &mut u64) {
    *visits += 1;
    if *cost > UNAFFORDABLE || *visits > UNAFFORDABLE {
        return;
    }
    match value {
        Value::String(text) => *cost += (text.as_str().len() as f64 * TRAVERSAL) as u64,
        Value::Bytes(bytes) => *cost += (bytes.len() as f64 * TRAVERSAL) as u64,
        Value::List(list) => list.iter().for_each(|element| traverse_into(&element, cost, visits)),
        Value::Map(map) => {
            for key in map.keys() {
                traverse_into(&key, cost, visits);
                if let Some(value) = map.find(&key) {
                    traverse_into(&value, cost, visits);
                }
            }
        }
        _ => *cost += 1,
    }
}

fn self_comparison(value: &Value<'_>) -> u64 {
    let Value::List(list) = value else { return 1 };
    let size = list.len() as u64;
    let factor = match list.get(0) {
        Some(Value::String(_) | Value::Bytes(_)) => 2.0 + TRAVERSAL,
        _ => 2.0,
    };
    allocation(factor, size.saturating_mul(size))
}

fn allocation(factor: f64, size: u64) -> u64 {
    ((size as f64 * factor) as u64).saturating_add(1 + u64::from(LIST_COST))
}
