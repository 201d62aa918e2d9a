//! Calls of library functions: dispatch by operation and by the types of the operands.

use std::sync::{Arc, LazyLock};

use super::declarations::Op;
use super::{convert, format, lists, math, texts};
use crate::duration::Duration;
use crate::eval::{Budget, Entries, Exhausted, Fault, Handle, Map, Value, contains, runtime_size};
use crate::named_format::NamedFormat;
use crate::net::{Cidr, Ip, Url};
use crate::quantity::Quantity;
use crate::semver::Semver;
use crate::timestamp::{Field, Timestamp, Zone};

pub(crate) use super::costs::{LIST_COST, MAP_COST, cost, cost_before, measured, pair_cost, pattern_cost};
pub(crate) use super::texts::search;

/// Calls a function. Faults among the operands are dealt with before.
pub(crate) fn call<'a>(op: Op, arguments: &[Value<'a>], budget: &mut Budget) -> Result<Value<'a>, Exhausted> {
    if let Some(value) = simple(op, arguments) {
        return Ok(value.unwrap_or_else(Value::fault));
    }
    match (op, arguments) {
        (Op::In, [value, Value::List(list)]) => return Ok(Value::Bool(contains(list, value, budget)?)),
        (Op::Range, [Value::Int(length)]) => return lists::range(*length, budget),
        (Op::Includes, [target, value]) => return lists::includes(target, value, budget),
        (Op::Format, [Value::String(text), Value::List(list)]) => {
            return format::format(text.as_str(), list, budget);
        }
        (Op::MapInsert, [Value::Map(map), key, value]) => return Ok(insert(map, key, value)),
        _ => {}
    }
    if let Some(value) = texts::call(op, arguments, budget)? {
        return Ok(value);
    }
    if let Some(value) = lists::call(op, arguments, budget)? {
        return Ok(value);
    }
    Ok(Value::no_overload(name(op)))
}

/// `left + right`, for sums.
pub(super) fn add<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    budget: &mut Budget,
) -> Result<Value<'a>, Exhausted> {
    budget.work(1)?;
    Ok(crate::eval::add(left, right))
}

fn insert<'a>(map: &Map<'a>, key: &Value<'a>, value: &Value<'a>) -> Value<'a> {
    let mut entries = Entries::default();
    for own in map.keys() {
        if let Some(value) = map.find(&own) {
            entries.insert(own, value);
        }
    }
    entries.insert(key.clone(), value.clone());
    Value::Map(Map::of(entries))
}

/// What a function is called in "no such overload" errors.
fn name(op: Op) -> &'static str {
    match op {
        Op::In => "in",
        Op::Not => "!",
        Op::Negate => "-",
        Op::Size => "size",
        Op::Matches => "matches",
        Op::Contains => "contains",
        Op::StartsWith => "startsWith",
        Op::EndsWith => "endsWith",
        Op::Major => "major",
        Op::Minor => "minor",
        Op::Patch => "patch",
        Op::LowerAscii => "lowerAscii",
        Op::UpperAscii => "upperAscii",
        Op::Sign => "sign",
        Op::Join => "join",
        Op::Split => "split",
        Op::Replace => "replace",
        _ => "the function",
    }
}

fn fault(error: impl std::fmt::Display) -> Fault {
    Fault::message(error.to_string())
}

/// Functions that take constant time and memory, texts of their operands aside.
fn simple<'a>(op: Op, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Fault>> {
    use Value as V;
    Some(match (op, arguments) {
        (
            Op::Bool
            | Op::Bytes
            | Op::Double
            | Op::Duration
            | Op::Dyn
            | Op::Int
            | Op::String
            | Op::Timestamp
            | Op::TypeOf
            | Op::Uint,
            [value],
        ) => convert::convert(op, value),
        (Op::Not, [V::Bool(value)]) => Ok(V::Bool(!value)),
        (Op::Negate, [value]) => return Some(Ok(crate::eval::negate(value))),
        (Op::Size, [value @ (V::String(_) | V::Bytes(_) | V::List(_) | V::Map(_))]) => {
            Ok(V::Int(runtime_size(value) as i64))
        }
        (Op::In, [key, V::Map(map)]) => Ok(V::Bool(map.has(key))),
        (Op::OptionalOf, [value]) => Ok(V::some(value.clone())),
        (Op::OptionalOfNonZero, [value]) => Ok(if is_zero(value) { V::NONE } else { V::some(value.clone()) }),
        (Op::OptionalNone, []) => Ok(V::NONE),
        (Op::OptionalValue, [V::Optional(value)]) => match value {
            Some(value) => Ok((**value).clone()),
            None => Err(Fault::Static("value() of an empty optional")),
        },
        (Op::OptionalHasValue, [V::Optional(value)]) => Ok(V::Bool(value.is_some())),
        _ => {
            return quantities(op, arguments)
                .or_else(|| addresses(op, arguments))
                .or_else(|| other(op, arguments));
        }
    })
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.as_str().is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Duration(value) => *value == Duration::default(),
        Value::Timestamp(value) => value.is_zero(),
        Value::List(list) => list.len() == 0,
        Value::Map(map) => map.len() == 0,
        _ => false,
    }
}

fn quantities<'a>(op: Op, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Fault>> {
    use Value as V;
    let semver = |text: &str, normalize: bool| {
        if normalize { Semver::parse_normalized(text) } else { Semver::parse(text) }
    };
    let version = |parsed: Semver| V::Semver(Handle::Shared(Arc::new(parsed)));
    Some(match (op, arguments) {
        (Op::Quantity, [V::String(text)]) => Quantity::parse(text.as_str()).map(V::quantity).map_err(fault),
        (Op::IsQuantity, [V::String(text)]) => Ok(V::Bool(Quantity::parse(text.as_str()).is_ok())),
        (Op::Sign, [V::Quantity(quantity)]) => Ok(V::Int(quantity.get().sign())),
        (Op::IsInteger, [V::Quantity(quantity)]) => Ok(V::Bool(quantity.get().is_integer())),
        (Op::AsInteger, [V::Quantity(quantity)]) => quantity
            .get()
            .as_integer()
            .map(V::Int)
            .ok_or_else(|| fault(format!("{} cannot be represented as an integer", quantity.get()))),
        (Op::AsApproximateFloat, [V::Quantity(quantity)]) => {
            Ok(V::Double(quantity.get().as_approximate_float()))
        }
        (Op::QuantityAdd, [V::Quantity(a), V::Quantity(b)]) => Ok(V::quantity(a.get().add(b.get()))),
        (Op::QuantityAdd, [V::Quantity(a), V::Int(b)]) => Ok(V::quantity(a.get().add_integer(*b))),
        (Op::QuantitySub, [V::Quantity(a), V::Quantity(b)]) => Ok(V::quantity(a.get().sub(b.get()))),
        (Op::QuantitySub, [V::Quantity(a), V::Int(b)]) => Ok(V::quantity(a.get().sub_integer(*b))),
        (Op::Semver, [V::String(text)]) => semver(text.as_str(), false).map(version).map_err(fault),
        (Op::Semver, [V::String(text), V::Bool(normalize)]) => {
            semver(text.as_str(), *normalize).map(version).map_err(fault)
        }
        (Op::IsSemver, [V::String(text)]) => Ok(V::Bool(semver(text.as_str(), false).is_ok())),
        (Op::IsSemver, [V::String(text), V::Bool(normalize)]) => {
            Ok(V::Bool(semver(text.as_str(), *normalize).is_ok()))
        }
        (Op::Major, [V::Semver(version)]) => Ok(V::Int(version.get().major())),
        (Op::Minor, [V::Semver(version)]) => Ok(V::Int(version.get().minor())),
        (Op::Patch, [V::Semver(version)]) => Ok(V::Int(version.get().patch())),
        _ => return None,
    })
}

fn addresses<'a>(op: Op, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Fault>> {
    use Value as V;
    let cidr = |cidr: Cidr| V::Cidr(Box::new(cidr));
    Some(match (op, arguments) {
        (Op::Ip, [V::String(text)]) => Ip::parse(text.as_str()).map(V::Ip).map_err(fault),
        (Op::IsIp, [V::String(text)]) => Ok(V::Bool(Ip::parse(text.as_str()).is_ok())),
        (Op::IpIsCanonical, [V::String(text)]) => Ip::is_canonical(text.as_str()).map(V::Bool).map_err(fault),
        (Op::Family, [V::Ip(ip)]) => Ok(V::Int(ip.family())),
        (Op::IsUnspecified, [V::Ip(ip)]) => Ok(V::Bool(ip.is_unspecified())),
        (Op::IsLoopback, [V::Ip(ip)]) => Ok(V::Bool(ip.is_loopback())),
        (Op::IsLinkLocalMulticast, [V::Ip(ip)]) => Ok(V::Bool(ip.is_link_local_multicast())),
        (Op::IsLinkLocalUnicast, [V::Ip(ip)]) => Ok(V::Bool(ip.is_link_local_unicast())),
        (Op::IsGlobalUnicast, [V::Ip(ip)]) => Ok(V::Bool(ip.is_global_unicast())),
        (Op::Cidr, [V::String(text)]) => Cidr::parse(text.as_str()).map(cidr).map_err(fault),
        (Op::IsCidr, [V::String(text)]) => Ok(V::Bool(Cidr::parse(text.as_str()).is_ok())),
        (Op::CidrIp | Op::Ip, [V::Cidr(cidr)]) => Ok(V::Ip(cidr.ip())),
        (Op::PrefixLength, [V::Cidr(cidr)]) => Ok(V::Int(cidr.prefix_length())),
        (Op::Masked, [V::Cidr(own)]) => Ok(cidr(own.masked())),
        (Op::ContainsIp, [V::Cidr(cidr), V::Ip(ip)]) => Ok(V::Bool(cidr.contains_ip(*ip))),
        (Op::ContainsIp, [V::Cidr(cidr), V::String(text)]) => {
            Ip::parse(text.as_str()).map(|ip| V::Bool(cidr.contains_ip(ip))).map_err(fault)
        }
        (Op::ContainsCidr, [V::Cidr(cidr), V::Cidr(other)]) => Ok(V::Bool(cidr.contains_cidr(**other))),
        (Op::ContainsCidr, [V::Cidr(cidr), V::String(text)]) => {
            Cidr::parse(text.as_str()).map(|other| V::Bool(cidr.contains_cidr(other))).map_err(fault)
        }
        (Op::Url, [V::String(text)]) => {
            Url::parse(text.as_str()).map(|url| V::Url(Arc::new(url))).map_err(fault)
        }
        (Op::IsUrl, [V::String(text)]) => Ok(V::Bool(Url::is_valid(text.as_str()))),
        (Op::UrlScheme, [V::Url(url)]) => Ok(V::text(url.scheme())),
        (Op::UrlHost, [V::Url(url)]) => Ok(V::text(url.host())),
        (Op::UrlHostname, [V::Url(url)]) => Ok(V::text(url.hostname())),
        (Op::UrlPort, [V::Url(url)]) => Ok(V::text(url.port())),
        (Op::UrlEscapedPath, [V::Url(url)]) => Ok(V::text(url.escaped_path())),
        (Op::UrlQuery, [V::Url(url)]) => {
            let mut entries = Entries::default();
            for (key, values) in url.query() {
                entries.insert(V::text(key), V::list(values.into_iter().map(V::text).collect()));
            }
            Ok(V::Map(Map::of(entries)))
        }
        _ => return None,
    })
}

fn other<'a>(op: Op, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Fault>> {
    use Value as V;
    Some(match (op, arguments) {
        (Op::NamedFormat(format), []) => Ok(V::Format(format)),
        (Op::FormatNamed, [V::String(name)]) => {
            Ok(NamedFormat::named(name.as_str()).map_or(V::NONE, |format| V::some(V::Format(format))))
        }
        (Op::Validate, [V::Format(format), V::String(text)]) => Ok(match format.validate(text.as_str()) {
            Some(errors) => V::some(V::list(errors.into_iter().map(V::text).collect())),
            None => V::NONE,
        }),
        (Op::Hours, [V::Duration(duration)]) => Ok(V::Int(duration.hours())),
        (Op::Minutes, [V::Duration(duration)]) => Ok(V::Int(duration.minutes())),
        (Op::Seconds, [V::Duration(duration)]) => Ok(V::Int(duration.seconds())),
        (Op::Milliseconds, [V::Duration(duration)]) => Ok(V::Int(duration.milliseconds())),
        (op, [V::Timestamp(timestamp)]) => calendar(*timestamp, field(op)?, None),
        (op, [V::Timestamp(timestamp), V::String(zone)]) => {
            calendar(*timestamp, field(op)?, Some(zone.as_str()))
        }
        _ => return math::call(op, arguments),
    })
}

fn field(op: Op) -> Option<Field> {
    Some(match op {
        Op::FullYear => Field::FullYear,
        Op::Month => Field::Month,
        Op::DayOfYear => Field::DayOfYear,
        Op::DayOfMonth => Field::DayOfMonth,
        Op::Date => Field::Date,
        Op::DayOfWeek => Field::DayOfWeek,
        Op::Hours => Field::Hours,
        Op::Minutes => Field::Minutes,
        Op::Seconds => Field::Seconds,
        Op::Milliseconds => Field::Milliseconds,
        _ => return None,
    })
}

/// Kubernetes reads fields in UTC where no zone is given.
static UTC: LazyLock<Option<Zone>> = LazyLock::new(|| Zone::parse("UTC").ok());

fn calendar<'a>(timestamp: Timestamp, field: Field, zone: Option<&str>) -> Result<Value<'a>, Fault> {
    let parsed = zone.map(Zone::parse).transpose().map_err(fault)?;
    Ok(Value::Int(timestamp.field(field, parsed.as_ref().or(UTC.as_ref()))))
}
