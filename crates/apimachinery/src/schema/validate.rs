//! Validation of values: types, limits, formats, enumerations, junctors.
//!
//! What is accepted and how it is worded, oddities included, follows kube-apiserver 1.36. Of several faults of one
//! object the order is that of its fields.

use serde_json::{Map, Number, Value};

use super::cause::{Cause, CauseReason};
use super::correlate::{Compared, Pair, same};
use super::format::Format;
use super::go_text::{shown_float, shown_number};
use super::node::{Additional, Bound, Checks, Kind, Schema};
use super::path::Place;

/// Where a value stands and what it was before.
#[derive(Clone, Copy)]
struct At<'v> {
    place: &'v Place<'v>,
    /// The former value, unless nothing is excused for being unchanged.
    former: Option<Pair<'v>>,
}

/// Faults and how many checks succeeded, by which the best of several alternatives is chosen.
#[derive(Default)]
struct Outcome {
    faults: Vec<Fault>,
    matches: u32,
}

/// A cause with the text by which repetitions are found.
struct Fault {
    cause: Cause,
    text: String,
}

/// Validates a value; `base` is put before the fields of causes.
pub(crate) fn validate(schema: &Schema, value: &Value, old: Option<&Value>, base: &str) -> Vec<Cause> {
    let former = old.map(|old| Pair { schema, new: value, old });
    let mut walk = Walk { base, compared: Compared::new() };
    let outcome = walk.value(schema, value, At { place: &Place::ROOT, former });
    outcome.faults.into_iter().map(|fault| fault.cause).collect()
}

struct Walk<'b> {
    base: &'b str,
    compared: Compared,
}

impl Outcome {
    fn add(&mut self, fault: Fault) {
        if !self.faults.iter().any(|known| known.text == fault.text) {
            self.faults.push(fault);
        }
    }

    fn merge(&mut self, other: Outcome) {
        self.matches += other.matches;
        for fault in other.faults {
            self.add(fault);
        }
    }

    fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Makes the causes of faults at one place.
struct Reporter<'r> {
    name: String,
    base: &'r str,
}

impl Reporter<'_> {
    /// The path in causes.
    fn field(&self, name: &str) -> String {
        match (self.base, name) {
            ("", name) => name.to_owned(),
            (base, "") => base.to_owned(),
            (base, name) => format!("{base}.{name}"),
        }
    }

    fn fault(&self, text: String, cause: impl FnOnce(String, &str) -> Cause) -> Fault {
        Fault { cause: cause(self.field(&self.name), &text), text }
    }

    /// A fault whose detail says what the field should be.
    fn body(&self, value: &Value, predicate: &str) -> Fault {
        let text = format!("{} in body {predicate}", self.name);
        self.fault(text, |field, text| Cause::invalid(field, value, text))
    }

    fn kind(&self, expected: &str, found: &str) -> Fault {
        let text =
            format!("{} in body must be of type {expected}: {}", self.name, super::go_text::quoted(found));
        self.fault(text, |field, text| Cause::type_invalid(field, found, text))
    }

    /// A fault that is not blamed on a field.
    fn general(&self, text: String) -> Fault {
        let cause = Cause::invalid_text(self.base, "", &text);
        Fault { cause, text }
    }

    fn required(&self, missing: &str) -> Fault {
        let name = match self.name.as_str() {
            "" => missing.to_owned(),
            name => format!("{name}.{missing}"),
        };
        Fault { cause: Cause::required(self.field(&name), ""), text: format!("{name} in body is required") }
    }
}

impl Walk<'_> {
    fn reporter(&self, at: At<'_>) -> Reporter<'_> {
        Reporter { name: at.place.dotted(), base: self.base }
    }

    /// Validates a value; faults of an unchanged one are forgotten.
    fn value(&mut self, schema: &Schema, value: &Value, at: At<'_>) -> Outcome {
        let mut outcome = self.checked(schema, value, at);
        if !outcome.is_valid() && at.former.is_some_and(|former| former.is_equal(&mut self.compared)) {
            outcome.faults.clear();
        }
        outcome
    }

    fn checked(&mut self, schema: &Schema, value: &Value, at: At<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        if value.is_null() {
            self.kind_of(schema, value, at, &mut outcome);
            self.enumeration(&schema.checks, value, at, &mut outcome);
            return outcome;
        }
        if schema.kind.is_some() || schema.int_or_string || schema.checks.format.is_some() {
            self.kind_of(schema, value, at, &mut outcome);
            outcome.matches += 1;
        }
        self.junctors(&schema.checks, value, at, &mut outcome);
        outcome.matches += 2;
        match value {
            Value::String(text) => self.text(&schema.checks, text, at, &mut outcome),
            Value::Number(number) => {
                self.number(schema, number, at, &mut outcome);
                outcome.matches += 1;
            }
            Value::Array(items) => {
                self.list(schema, items, at, &mut outcome);
                outcome.matches += 1;
            }
            _ => {}
        }
        self.enumeration(&schema.checks, value, at, &mut outcome);
        outcome.matches += 1;
        if let Value::Object(fields) = value {
            self.object(schema, fields, at, &mut outcome);
            outcome.matches += 1;
        }
        outcome.matches += 1;
        outcome
    }

    fn kind_of(&self, schema: &Schema, value: &Value, at: At<'_>, outcome: &mut Outcome) {
        match kind_mismatch(schema, value) {
            None => outcome.matches += 1,
            Some((expected, found)) => outcome.add(self.reporter(at).kind(&expected, found)),
        }
    }

    fn junctors(&mut self, checks: &Checks, value: &Value, at: At<'_>, outcome: &mut Outcome) {
        if !checks.any_of.is_empty() {
            self.any_of(&checks.any_of, value, at, outcome);
        }
        if !checks.one_of.is_empty() {
            self.one_of(&checks.one_of, value, at, outcome);
        }
        if !checks.all_of.is_empty() {
            self.all_of(&checks.all_of, value, at, outcome);
        }
        if let Some(not) = &checks.not
            && self.checked(not, value, at).is_valid()
        {
            let reporter = self.reporter(at);
            let text = format!("\"{}\" must not validate the schema (not)", reporter.name);
            outcome.add(reporter.general(text));
        }
    }

    fn any_of(&mut self, schemas: &[Schema], value: &Value, at: At<'_>, outcome: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        for schema in schemas {
            let result = self.checked(schema, value, at);
            if result.is_valid() {
                return outcome.merge(result);
            }
            if best.as_ref().is_none_or(|best| result.matches > best.matches) {
                best = Some(result);
            }
        }
        let reporter = self.reporter(at);
        let text = format!("\"{}\" must validate at least one schema (anyOf)", reporter.name);
        outcome.add(reporter.general(text));
        outcome.merge(best.unwrap_or_default());
    }

    fn one_of(&mut self, schemas: &[Schema], value: &Value, at: At<'_>, outcome: &mut Outcome) {
        let mut valid = 0;
        let mut first: Option<Outcome> = None;
        let mut best: Option<Outcome> = None;
        for schema in schemas {
            let result = self.checked(schema, value, at);
            if result.is_valid() {
                valid += 1;
                best = None;
                first.get_or_insert(result);
            } else if valid == 0 && best.as_ref().is_none_or(|best| result.matches > best.matches) {
                best = Some(result);
            }
        }
        if valid == 1 {
            return outcome.merge(first.unwrap_or_default());
        }
        let reporter = self.reporter(at);
        let found = match valid {
            0 => "Found none valid".to_owned(),
            count => format!("Found {count} valid alternatives"),
        };
        let text = format!("\"{}\" must validate one and only one schema (oneOf). {found}", reporter.name);
        outcome.add(reporter.general(text));
        outcome.merge(best.unwrap_or_default());
    }

    fn all_of(&mut self, schemas: &[Schema], value: &Value, at: At<'_>, outcome: &mut Outcome) {
        let mut valid = 0;
        for schema in schemas {
            let result = self.checked(schema, value, at);
            valid += usize::from(result.is_valid());
            outcome.merge(result);
        }
        if valid < schemas.len() {
            let reporter = self.reporter(at);
            let none = if valid == 0 { ". None validated" } else { "" };
            let text = format!("\"{}\" must validate all the schemas (allOf){none}", reporter.name);
            outcome.add(reporter.general(text));
        }
    }

    fn text(&self, checks: &Checks, text: &str, at: At<'_>, outcome: &mut Outcome) {
        outcome.matches += 1;
        // Only the first of these is reported.
        let length = || text.chars().count() as u64;
        let too_long = checks.max_length.filter(|limit| text.len() as u64 > *limit && length() > *limit);
        if let Some(limit) = too_long {
            let reporter = self.reporter(at);
            let message = format!("{} in body should be at most {limit} chars long", reporter.name);
            outcome.add(reporter.fault(message, |field, _| Cause::too_long(field, limit)));
        } else if let Some(limit) = checks.min_length.filter(|limit| length() < *limit) {
            let predicate = format!("should be at least {limit} chars long");
            outcome.add(self.reporter(at).body(&Value::from(text), &predicate));
        } else if let Some((_, pattern)) = checks.pattern.as_ref().filter(|(regex, _)| !regex.is_match(text))
        {
            let predicate = format!("should match '{pattern}'");
            outcome.add(self.reporter(at).body(&Value::from(text), &predicate));
        }
        if let Some((Format::Text(format), name)) = &checks.format {
            outcome.matches += 1;
            if !format.accepts(text) {
                outcome.add(self.reporter(at).kind(name, text));
            }
        }
    }

    fn number(&self, schema: &Schema, number: &Number, at: At<'_>, outcome: &mut Outcome) {
        outcome.matches += 1;
        let checks = &schema.checks;
        let range = Range::of(schema);
        if !range.holds(number) {
            self.out_of_range(range, "Checked", at, outcome);
        }
        if let Some(factor) = &checks.multiple_of {
            if !range.holds(factor) {
                self.out_of_range(range, "MultipleOf", at, outcome);
            }
            match multiple_fault(number, factor, range.holds(factor)) {
                None => {}
                Some(MultipleFault::Not(factor)) => {
                    let predicate = format!("should be a multiple of {factor}");
                    outcome.add(self.reporter(at).body(&Value::Number(number.clone()), &predicate));
                }
                Some(MultipleFault::Factor(factor)) => {
                    let (reporter, shown) = (self.reporter(at), shown_number(&factor));
                    let name = &reporter.name;
                    let text = format!("factor MultipleOf declared for {name} must be positive: {shown}");
                    let value = Value::Number(factor);
                    outcome.add(reporter.fault(text, |field, text| Cause::invalid(field, &value, text)));
                }
            }
        }
        for (bound, name, upper) in
            [(&checks.minimum, "Minimum boundary", false), (&checks.maximum, "Maximum boundary", true)]
        {
            let Some(bound) = bound else { continue };
            if !range.holds(&bound.value) {
                self.out_of_range(range, name, at, outcome);
            }
            if let Some(predicate) = bound_fault(bound, number, range.holds(&bound.value), upper) {
                outcome.add(self.reporter(at).body(&Value::Number(number.clone()), &predicate));
            }
        }
    }

    fn out_of_range(&self, range: Range, what: &str, at: At<'_>, outcome: &mut Outcome) {
        let reporter = self.reporter(at);
        outcome.add(reporter.general(range.text(what, &reporter.name)));
    }

    fn list(&mut self, schema: &Schema, items: &[Value], at: At<'_>, outcome: &mut Outcome) {
        if let Some(inner) = &schema.items {
            let former = match at.former {
                Some(pair) => super::correlate::Former::new(pair.schema, Some(pair.old)),
                None => super::correlate::Former::None,
            };
            for (index, item) in items.iter().enumerate() {
                let schema = at.former.and_then(|pair| pair.schema.items.as_deref());
                let former =
                    schema.zip(former.item(item)).map(|(schema, old)| Pair { schema, new: item, old });
                let place = at.place.item(index);
                outcome.merge(self.value(inner, item, At { place: &place, former }));
            }
        }
        let (count, checks) = (items.len() as u64, &schema.checks);
        if let Some(limit) = checks.min_items.filter(|limit| count < *limit) {
            let predicate = format!("should have at least {limit} items");
            outcome.add(self.reporter(at).body(&Value::from(count), &predicate));
        }
        if let Some(limit) = checks.max_items.filter(|limit| count > *limit) {
            let reporter = self.reporter(at);
            let text = format!("{} in body should have at most {limit} items", reporter.name);
            outcome.add(reporter.fault(text, |field, _| Cause::too_many(field, items.len(), limit)));
        }
        // Only schemas that no CRD may have; the cost is bounded by giving up on long lists.
        let repeated = |items: &[Value]| {
            items.iter().enumerate().any(|(index, item)| items[..index].iter().any(|other| same(item, other)))
        };
        if checks.unique_items && repeated(&items[..items.len().min(1000)]) {
            outcome.add(self.reporter(at).body(&Value::from(""), "shouldn't contain duplicates"));
        }
        outcome.matches += 1;
    }

    fn object(&mut self, schema: &Schema, fields: &Map<String, Value>, at: At<'_>, outcome: &mut Outcome) {
        let (count, checks) = (fields.len() as u64, &schema.checks);
        if let Some(limit) = checks.min_properties.filter(|limit| count < *limit) {
            let predicate = format!("should have at least {limit} properties");
            outcome.add(self.reporter(at).body(&Value::from(count), &predicate));
        }
        if let Some(limit) = checks.max_properties.filter(|limit| count > *limit) {
            let reporter = self.reporter(at);
            let text = format!("{} in body should have at most {limit} properties", reporter.name);
            outcome.add(reporter.fault(text, |field, _| Cause::too_many(field, fields.len(), limit)));
        }
        for (name, value) in fields {
            let place = at.place.field(name);
            let inner = match (schema.properties.get(name), &schema.additional_properties) {
                (Some(property), _) => property,
                (None, Additional::Schema(values)) => values,
                (None, _) if checks.closed => {
                    let reporter = self.reporter(at);
                    let text = format!("{}.{name} in body is a forbidden property", reporter.name);
                    let value = Value::from(name.as_str());
                    outcome.add(reporter.fault(text, |field, text| Cause::invalid(field, &value, text)));
                    continue;
                }
                _ => continue,
            };
            // The type of the whole object cannot be excused: both versions are read as the same type.
            let is_type =
                matches!(at.place, Place::Start(_)) && matches!(name.as_str(), "apiVersion" | "kind");
            let former = at.former.filter(|_| !is_type).and_then(|pair| pair.field(name));
            outcome.merge(self.value(inner, value, At { place: &place, former }));
        }
        for name in &checks.required {
            if !fields.contains_key(name) {
                outcome.add(self.reporter(at).required(name));
            }
        }
    }

    fn enumeration(&self, checks: &Checks, value: &Value, at: At<'_>, outcome: &mut Outcome) {
        let listed = &checks.enumeration;
        if !listed.is_empty() && !listed.iter().any(|known| is_listed(value, known)) {
            let reporter = self.reporter(at);
            let text = format!("{} in body should be one of the listed", reporter.name);
            outcome.add(reporter.fault(text, |field, _| Cause::not_supported(field, value, listed)));
        }
    }
}

/// Whether a value is an entry of an enumeration; numbers are converted to the type of the entry.
fn is_listed(value: &Value, entry: &Value) -> bool {
    match (value, entry) {
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(entry)) => match (entry.as_i64(), value.as_i64()) {
            (Some(entry), Some(value)) => entry == value,
            (Some(entry), None) => value.as_f64().is_some_and(|value| value.trunc() as i64 == entry),
            (None, _) => entry.as_f64() == value.as_f64(),
        },
        (value, entry) => same(value, entry),
    }
}

/// The types that were expected and the one found, if that does not do.
fn kind_mismatch(schema: &Schema, value: &Value) -> Option<(String, &'static str)> {
    let types: &[Kind] = match (&schema.kind, schema.int_or_string) {
        (_, true) => &[Kind::Integer, Kind::String],
        (Some(kind), false) => std::slice::from_ref(kind),
        (None, false) => &[],
    };
    let expected = || types.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(",");
    let (found, format) = match value {
        Value::Null => {
            return (!types.is_empty() && !schema.nullable).then(|| (expected(), "null"));
        }
        Value::Bool(_) => (Kind::Boolean, ""),
        Value::Number(number) if number.is_i64() => (Kind::Integer, "int64"),
        Value::Number(_) => (Kind::Number, "float64"),
        Value::String(_) => (Kind::String, ""),
        Value::Array(_) => (Kind::Array, ""),
        Value::Object(_) => (Kind::Object, ""),
    };
    let whole = |number: &Number| number.as_f64().is_some_and(is_whole);
    let converts = match value {
        Value::Number(number) if found == Kind::Number => types.contains(&Kind::Integer) && whole(number),
        _ => found == Kind::Integer && types.contains(&Kind::Number),
    };
    let fits = types.contains(&found) || converts;
    if let Some((_, name)) = &schema.checks.format {
        let is_text_or_list = matches!(value, Value::String(_) | Value::Array(_));
        if !is_text_or_list && !fits && format != name {
            return Some((name.clone(), format));
        }
        let is_numeric = types.contains(&Kind::Number) || types.contains(&Kind::Integer);
        if is_text_or_list && !is_numeric {
            return None;
        }
    }
    let is_checked = !types.is_empty() || schema.checks.format.is_some();
    (!fits && is_checked).then(|| (expected(), found.as_str()))
}

/// Whether a float counts as an integer.
fn is_whole(float: f64) -> bool {
    const LARGEST: f64 = ((1_u64 << 53) - 1) as f64;
    if !float.is_finite() || float.abs() > LARGEST {
        return false;
    }
    let difference = (float - float.trunc()).abs();
    difference == 0.0 || float >= 1.0 && difference / (float.abs() + float.trunc().abs()) < 1e-9
}

/// The numbers that a type and a format can hold.
#[derive(Clone, Copy)]
struct Range {
    integer: bool,
    format: Option<Format>,
}

impl Range {
    fn of(schema: &Schema) -> Self {
        let format = schema.checks.format.as_ref().map(|(format, _)| *format);
        Self { integer: schema.kind == Some(Kind::Integer) && !schema.int_or_string, format }
    }

    fn holds(self, number: &Number) -> bool {
        let float = number.as_f64().unwrap_or_default();
        match (self.integer, self.format) {
            (true, Some(Format::Int32)) => {
                float.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&float)
            }
            (true, _) => number.is_i64() || float.fract() == 0.0 && float.abs() < 9.2e18,
            (false, Some(Format::Float)) => float.abs() <= f64::from(f32::MAX),
            (false, _) => true,
        }
    }

    fn text(self, what: &str, name: &str) -> String {
        let kind = if self.integer { "integer" } else { "number" };
        let format = match self.format {
            Some(Format::Int32) => "with format int32",
            Some(Format::Int64) => "with format int64",
            Some(Format::Float) => "with format float",
            Some(Format::Double) => "with format double",
            _ => "(default format)",
        };
        format!("{what} value must be of type {kind} {format} in {name}")
    }
}

/// What is wrong with a number that should be a multiple.
enum MultipleFault {
    /// It is not a multiple of this factor.
    Not(String),
    /// The factor is not positive.
    Factor(Number),
}

/// Compares as integers, for which Kubernetes truncates the factor, if the factor is `native`: of the number's type.
fn multiple_fault(number: &Number, factor: &Number, native: bool) -> Option<MultipleFault> {
    let float = factor.as_f64().unwrap_or_default();
    match number.as_i64().filter(|_| native) {
        Some(value) => match float as i64 {
            whole if whole <= 0 => Some(MultipleFault::Factor(Number::from(whole))),
            whole => (value % whole != 0).then(|| MultipleFault::Not(whole.to_string())),
        },
        None if float <= 0.0 => Some(MultipleFault::Factor(factor.clone())),
        None => {
            let value = number.as_f64().unwrap_or_default();
            let multiple = if float < 1.0 { 1.0 / float * value } else { value / float };
            (!is_whole(multiple)).then(|| MultipleFault::Not(shown_float(float)))
        }
    }
}

/// What is wrong with a number that should be within a bound, which is `native` if it is of the number's type.
fn bound_fault(bound: &Bound, number: &Number, native: bool, upper: bool) -> Option<String> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let limit = bound.value.as_f64().unwrap_or_default();
    let (ordering, shown) = match number.as_i64().filter(|_| native) {
        Some(value) => {
            let limit = bound.value.as_i64().unwrap_or(limit as i64);
            (value.cmp(&limit), limit.to_string())
        }
        None => {
            let value = number.as_f64().unwrap_or_default();
            (value.partial_cmp(&limit).unwrap_or(Equal), shown_float(limit))
        }
    };
    let violated = match ordering {
        Equal => bound.exclusive,
        Greater => upper,
        Less => !upper,
    };
    let relation = match (upper, bound.exclusive) {
        (true, false) => "less than or equal to",
        (true, true) => "less than",
        (false, false) => "greater than or equal to",
        (false, true) => "greater than",
    };
    violated.then(|| format!("should be {relation} {shown}"))
}

/// Whether rules cannot be checked because of what else is wrong.
pub(crate) fn blocks_rules(causes: &[Cause]) -> bool {
    causes.iter().map(|cause| cause.reason).any(CauseReason::blocks_rules)
}
