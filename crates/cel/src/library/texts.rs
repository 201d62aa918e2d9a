//! Functions over strings and regular expressions.

use std::borrow::Cow;
use std::sync::Arc;

use regex::Regex;

use super::declarations::Op;
use crate::eval::{Budget, Exhausted, Fault, Text, Value};
use crate::text::{self, TextError};

fn fault<'a>(error: impl std::fmt::Display) -> Value<'a> {
    Value::message(error.to_string())
}

/// A part of a text, borrowed where the text is.
fn part<'a>(text: &Text<'a>, cut: impl for<'t> Fn(&'t str) -> Result<&'t str, TextError>) -> Value<'a> {
    match text {
        Text::Borrowed(text) => match cut(text) {
            Ok(part) => Value::String(Text::Borrowed(part)),
            Err(error) => fault(error),
        },
        Text::Shared(text) => match cut(text) {
            Ok(part) => Value::text(part),
            Err(error) => fault(error),
        },
    }
}

/// A changed text, or the same one.
fn changed<'a>(text: &Text<'a>, change: impl for<'t> Fn(&'t str) -> Cow<'t, str>) -> Value<'a> {
    match change(text.as_str()) {
        Cow::Borrowed(_) => Value::String(text.clone()),
        Cow::Owned(text) => Value::text(text),
    }
}

fn texts<'a>(source: &Text<'a>, cut: impl for<'t> Fn(&'t str) -> Vec<&'t str>) -> Value<'a> {
    match source {
        Text::Borrowed(text) => {
            Value::list(cut(text).into_iter().map(|part| Value::String(Text::Borrowed(part))).collect())
        }
        Text::Shared(text) => Value::list(cut(text).into_iter().map(Value::text).collect()),
    }
}

/// Calls a function of which the first operand is a string; `None` if there is no such overload.
pub(super) fn call<'a>(
    op: Op,
    arguments: &[Value<'a>],
    budget: &mut Budget,
) -> Result<Option<Value<'a>>, Exhausted> {
    let [Value::String(source), rest @ ..] = arguments else { return Ok(None) };
    let whole = source.as_str();
    budget.work(whole.len() / 16)?;
    Ok(Some(match (op, rest) {
        (Op::Contains, [Value::String(wanted)]) => Value::Bool(whole.contains(wanted.as_str())),
        (Op::StartsWith, [Value::String(prefix)]) => Value::Bool(whole.starts_with(prefix.as_str())),
        (Op::EndsWith, [Value::String(suffix)]) => Value::Bool(whole.ends_with(suffix.as_str())),
        (Op::CharAt, [Value::Int(index)]) => part(source, |text| text::char_at(text, *index)),
        (Op::IndexOf, [Value::String(wanted)]) => Value::Int(text::index_of(whole, wanted.as_str())),
        (Op::IndexOf, [Value::String(wanted), Value::Int(offset)]) => {
            text::index_of_from(whole, wanted.as_str(), *offset).map_or_else(fault, Value::Int)
        }
        (Op::LastIndexOf, [Value::String(wanted)]) => Value::Int(text::last_index_of(whole, wanted.as_str())),
        (Op::LastIndexOf, [Value::String(wanted), Value::Int(offset)]) => {
            text::last_index_of_to(whole, wanted.as_str(), *offset).map_or_else(fault, Value::Int)
        }
        (Op::LowerAscii, []) => changed(source, text::lower_ascii),
        (Op::UpperAscii, []) => changed(source, text::upper_ascii),
        (Op::Trim, []) => part(source, |text| Ok(text::trim(text))),
        (Op::Substring, [Value::Int(start)]) => part(source, |text| text::substring(text, *start)),
        (Op::Substring, [Value::Int(start), Value::Int(end)]) => {
            part(source, |text| text::substring_range(text, *start, *end))
        }
        (Op::Replace, [Value::String(old), Value::String(new)]) => replace(whole, [old, new], -1, budget)?,
        (Op::Replace, [Value::String(old), Value::String(new), Value::Int(limit)]) => {
            replace(whole, [old, new], *limit, budget)?
        }
        (Op::Split, [Value::String(separator)]) => {
            budget.work(whole.len())?;
            texts(source, |text| text::split(text, separator.as_str(), -1))
        }
        (Op::Split, [Value::String(separator), Value::Int(limit)]) => {
            budget.work(whole.len())?;
            texts(source, |text| text::split(text, separator.as_str(), *limit))
        }
        (Op::Quote, []) => {
            budget.work(whole.len() / 4)?;
            Value::text(text::quote(whole))
        }
        (Op::Matches | Op::Find | Op::FindAll, [Value::String(pattern), ..]) => {
            let regex = match budget.regex(pattern.as_str())? {
                Ok(regex) => regex,
                Err(error) => {
                    return Ok(Some(Value::message(format!("invalid regular expression: {error}"))));
                }
            };
            let mut operands = vec![arguments[0].clone()];
            operands.extend(rest[1..].iter().cloned());
            search(op, &regex, &operands, budget)?
        }
        _ => return Ok(None),
    }))
}

fn replace<'a>(
    whole: &str,
    [old, new]: [&Text<'_>; 2],
    limit: i64,
    budget: &mut Budget,
) -> Result<Value<'a>, Exhausted> {
    let replaced = text::replace(whole, old.as_str(), new.as_str(), limit);
    if let Ok(text) = &replaced {
        budget.work(text.len() / 8)?;
    }
    Ok(replaced.map_or_else(fault, Value::text))
}

/// `matches`, `find` and `findAll` with a compiled pattern, on a text and perhaps a limit.
pub(crate) fn search<'a>(
    op: Op,
    regex: &Regex,
    operands: &[Value<'a>],
    budget: &mut Budget,
) -> Result<Value<'a>, Exhausted> {
    let (Some(Value::String(source)), limit) = (operands.first(), operands.get(1)) else {
        return Ok(Value::no_overload("matches"));
    };
    budget.work(source.as_str().len() / 8)?;
    Ok(match (op, limit) {
        (Op::Matches, None) => Value::Bool(regex.is_match(source.as_str())),
        (Op::Find, None) => part(source, |text| Ok(regex.find(text).map_or("", |found| found.as_str()))),
        (Op::FindAll, None) => texts(source, |text| find_all(regex, text, -1)),
        (Op::FindAll, Some(Value::Int(limit))) => texts(source, |text| find_all(regex, text, *limit)),
        _ => Value::fault(Fault::NoOverload("findAll")),
    })
}

fn find_all<'t>(regex: &Regex, text: &'t str, limit: i64) -> Vec<&'t str> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // Go does not report an empty match right behind a match.
    let mut end = None;
    regex
        .find_iter(text)
        .filter(|found| {
            let behind = found.is_empty() && end == Some(found.start());
            end = Some(found.end());
            !behind
        })
        .map(|found| found.as_str())
        .take(limit)
        .collect()
}

/// `list.join(separator)`.
pub(super) fn join<'a>(
    elements: &[Value<'a>],
    separator: &str,
    budget: &mut Budget,
) -> Result<Value<'a>, Exhausted> {
    let mut texts: Vec<&str> = Vec::with_capacity(elements.len());
    let mut length = 0;
    for element in elements {
        let Value::String(text) = element else { return Ok(Value::no_overload("join")) };
        length += text.as_str().len() + separator.len();
        budget.work((text.as_str().len() + separator.len()) / 8 + 1)?;
        texts.push(text.as_str());
    }
    debug_assert!(length >= texts.len().saturating_sub(1) * separator.len());
    Ok(text::join(texts, separator).map_or_else(fault, |text| Value::String(Text::Shared(Arc::from(text)))))
}
