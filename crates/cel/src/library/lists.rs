//! Functions over lists and sets.

use std::cmp::Ordering;

use super::declarations::Op;
use crate::duration::Duration;
use crate::eval::{Budget, Exhausted, Fault, List, Value, contains, equal, order};

/// The largest list one call may make.
const MAXIMUM_LENGTH: usize = 1_000_000;
/// The items of a list attribute that `includes` looks at.
const INCLUDES_LIMIT: usize = 48;

/// Calls a function of which the first operand is a list; `None` if there is no such overload.
pub(super) fn call<'a>(
    op: Op,
    arguments: &[Value<'a>],
    budget: &mut Budget,
) -> Result<Option<Value<'a>>, Exhausted> {
    let [Value::List(list), rest @ ..] = arguments else { return Ok(None) };
    budget.work(list.len())?;
    Ok(Some(match (op, rest) {
        (Op::IsSorted, []) => is_sorted(list),
        (Op::Sum, []) => sum(list, Value::Int(0), budget)?,
        (Op::SumUint, []) => sum(list, Value::Uint(0), budget)?,
        (Op::SumDouble, []) => sum(list, Value::Double(0.0), budget)?,
        (Op::SumDuration, []) => sum(list, Value::Duration(Duration::default()), budget)?,
        (Op::Min, []) => extreme(list, Ordering::Greater, "min"),
        (Op::Max, []) => extreme(list, Ordering::Less, "max"),
        (Op::IndexOf, [item]) => position(list, item, false, budget)?,
        (Op::LastIndexOf, [item]) => position(list, item, true, budget)?,
        (Op::First, []) => list.get(0).map_or(Value::NONE, Value::some),
        (Op::Last, []) => {
            list.len().checked_sub(1).and_then(|last| list.get(last)).map_or(Value::NONE, Value::some)
        }
        (Op::Reverse, []) => Value::list(list.iter().rev().collect()),
        (Op::Slice, [Value::Int(start), Value::Int(end)]) => slice(list, *start, *end),
        (Op::Flatten, []) => flatten(list, 1, budget)?,
        (Op::Flatten, [Value::Int(depth)]) => flatten(list, *depth, budget)?,
        (Op::Distinct, []) => distinct(list, budget)?,
        (Op::Sort, []) => sort(list, list, budget)?,
        (Op::SortByKeys, [Value::List(keys)]) => sort(list, keys, budget)?,
        (Op::SetsContains, [Value::List(other)]) => Value::Bool(includes_all(list, other, budget)?),
        (Op::SetsEquivalent, [Value::List(other)]) => {
            Value::Bool(includes_all(list, other, budget)? && includes_all(other, list, budget)?)
        }
        (Op::SetsIntersects, [Value::List(other)]) => {
            let mut common = false;
            for element in list.iter() {
                if contains(other, &element, budget)? {
                    common = true;
                    break;
                }
            }
            Value::Bool(common)
        }
        (Op::OptionalUnwrap, []) => {
            let mut values = Vec::new();
            for element in list.iter() {
                match element {
                    Value::Optional(None) => {}
                    Value::Optional(Some(value)) => values.push((*value).clone()),
                    _ => return Ok(Some(Value::message("an element of the list is not an optional"))),
                }
            }
            Value::list(values)
        }
        (Op::Join, []) => super::texts::join(&list.iter().collect::<Vec<_>>(), "", budget)?,
        (Op::Join, [Value::String(separator)]) => {
            super::texts::join(&list.iter().collect::<Vec<_>>(), separator.as_str(), budget)?
        }
        _ => return Ok(None),
    }))
}

/// `lists.range(n)`; the cost of an unaffordable length is known beforehand.
pub(super) fn range<'a>(length: i64, budget: &mut Budget) -> Result<Value<'a>, Exhausted> {
    let length = usize::try_from(length).unwrap_or(0);
    let cost = (length as u64).saturating_add(11);
    if !budget.affords(cost) || length > MAXIMUM_LENGTH {
        budget.charge(cost)?;
        return Ok(Value::message(format!("a list may have {MAXIMUM_LENGTH} elements at most")));
    }
    Ok(Value::list((0..length as i64).map(Value::Int).collect()))
}

fn settle<'a, T>(outcome: Result<T, Fault>, value: impl FnOnce(T) -> Value<'a>) -> Value<'a> {
    outcome.map_or_else(Value::fault, value)
}

fn is_sorted<'a>(list: &List<'a>) -> Value<'a> {
    let mut previous: Option<Value<'a>> = None;
    for element in list.iter() {
        if !is_ordered(&element) {
            return Value::no_overload("isSorted");
        }
        // Kubernetes ignores errors of the comparison, of elements of different types.
        if let Some(previous) = &previous
            && order(previous, &element) == Ok(Ordering::Greater)
        {
            return Value::Bool(false);
        }
        previous = Some(element);
    }
    Value::Bool(true)
}

fn is_ordered(value: &Value<'_>) -> bool {
    order(value, value).is_ok() || matches!(value, Value::Double(_))
}

fn sum<'a>(list: &List<'a>, zero: Value<'a>, budget: &mut Budget) -> Result<Value<'a>, Exhausted> {
    let mut total: Option<Value<'a>> = None;
    for element in list.iter() {
        let start = total.take().unwrap_or_else(|| match (&zero, &element) {
            // Where the element type is only known now, the first element decides.
            (Value::Int(_), Value::Uint(_)) => Value::Uint(0),
            (Value::Int(_), Value::Double(_)) => Value::Double(0.0),
            (Value::Int(_), Value::Duration(_)) => Value::Duration(Duration::default()),
            _ => zero.clone(),
        });
        let added = super::calls::add(&start, &element, budget)?;
        if added.is_fault() {
            return Ok(added);
        }
        total = Some(added);
    }
    Ok(total.unwrap_or(zero))
}

fn extreme<'a>(list: &List<'a>, replace_on: Ordering, name: &'static str) -> Value<'a> {
    let mut best: Option<Value<'a>> = None;
    for element in list.iter() {
        if !is_ordered(&element) {
            return Value::no_overload(name);
        }
        best = match best {
            Some(best) if order(&best, &element) != Ok(replace_on) => Some(best),
            _ => Some(element),
        };
    }
    best.unwrap_or_else(|| Value::message(format!("{name} of an empty list")))
}

fn position<'a>(
    list: &List<'a>,
    item: &Value<'a>,
    last: bool,
    budget: &mut Budget,
) -> Result<Value<'a>, Exhausted> {
    let length = list.len();
    for step in 0..length {
        let index = if last { length - 1 - step } else { step };
        if let Some(element) = list.get(index)
            && equal(&element, item, budget)? == Some(true)
        {
            return Ok(Value::Int(index as i64));
        }
    }
    Ok(Value::Int(-1))
}

fn slice<'a>(list: &List<'a>, start: i64, end: i64) -> Value<'a> {
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return Value::message(format!("slice({start}, {end}) has a negative index"));
    };
    if from > to {
        return Value::message(format!("slice({start}, {end}) ends before it starts"));
    }
    if to > list.len() {
        return Value::message(format!("slice({start}, {end}) of a list of {}", list.len()));
    }
    Value::list((from..to).filter_map(|index| list.get(index)).collect())
}

fn flatten<'a>(list: &List<'a>, depth: i64, budget: &mut Budget) -> Result<Value<'a>, Exhausted> {
    if depth < 0 {
        return Ok(Value::message("the depth of flatten must not be negative"));
    }
    let mut elements = Vec::new();
    flatten_into(list, depth, &mut elements, budget)?;
    Ok(Value::list(elements))
}

fn flatten_into<'a>(
    list: &List<'a>,
    depth: i64,
    elements: &mut Vec<Value<'a>>,
    budget: &mut Budget,
) -> Result<(), Exhausted> {
    for element in list.iter() {
        budget.work(1)?;
        match element {
            // The nesting of values is bounded by the nesting of expressions and of JSON.
            Value::List(inner) if depth > 0 => flatten_into(&inner, depth - 1, elements, budget)?,
            element => elements.push(element),
        }
    }
    Ok(())
}

fn distinct<'a>(list: &List<'a>, budget: &mut Budget) -> Result<Value<'a>, Exhausted> {
    let mut unique: Vec<Value<'a>> = Vec::new();
    for element in list.iter() {
        let mut seen = false;
        for other in &unique {
            if equal(&element, other, budget)? == Some(true) {
                seen = true;
                break;
            }
        }
        if !seen {
            unique.push(element);
        }
    }
    Ok(Value::list(unique))
}

fn sort<'a>(list: &List<'a>, keys: &List<'a>, budget: &mut Budget) -> Result<Value<'a>, Exhausted> {
    if list.len() != keys.len() {
        return Ok(Value::message("sortBy needs as many keys as elements"));
    }
    budget.work(list.len() * 4)?;
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.iter().zip(list.iter()).collect();
    let Some((first, _)) = pairs.first() else { return Ok(Value::List(list.clone())) };
    if !is_ordered(first) {
        return Ok(Value::message("the elements of the list have no order"));
    }
    let kind = first.type_name();
    if pairs.len() > 1 && pairs.iter().any(|(key, _)| key.type_name() != kind) {
        return Ok(Value::message("the elements of the list have different types"));
    }
    pairs.sort_by(|(a, _), (b, _)| order(a, b).unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, element)| element).collect()))
}

fn includes_all(list: &List<'_>, others: &List<'_>, budget: &mut Budget) -> Result<bool, Exhausted> {
    for element in others.iter() {
        if !contains(list, &element, budget)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `attribute.includes(value)`, of list and scalar attributes.
pub(super) fn includes<'a>(
    target: &Value<'a>,
    value: &Value<'a>,
    budget: &mut Budget,
) -> Result<Value<'a>, Exhausted> {
    let Value::List(list) = target else {
        return Ok(Value::Bool(equal(target, value, budget)? == Some(true)));
    };
    for (index, element) in list.iter().enumerate() {
        if index >= INCLUDES_LIMIT {
            return Ok(settle::<()>(Err(Fault::Static("includes looks at 48 items at most")), |()| {
                Value::Null
            }));
        }
        if equal(&element, value, budget)? == Some(true) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
