//! Running the rules of a schema over an object and its former version.

use modelplane_cel::validation::OBJECT_COST_LIMIT;
use serde_json::Value;

use super::cause::{Cause, CauseReason};
use super::correlate::{Compared, Former, Pair};
use super::node::{Additional, Schema};
use super::path::Place;
use super::rules::PlacedRule;

/// The longest message that an expression may make, in bytes.
const LONGEST_MESSAGE: usize = 5 * 1024;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Checks the rules of a schema; `base` is the path of the value.
pub(crate) fn evaluate(schema: &Schema, value: &Value, old: Option<&Value>, base: &str) -> Vec<Cause> {
    let mut run = Run { causes: Vec::new(), budget: OBJECT_COST_LIMIT, compared: Compared::new() };
    let nearest = old.map(|old| Pair { schema, new: value, old });
    let state = State { value, old, nearest, follows: true };
    // Running out of budget ends the walk early and is already reported.
    let _ = run.level(schema, state, &Place::Start(base), base.is_empty());
    run.causes
}

/// The budget is spent.
struct Exhausted;

struct Run {
    causes: Vec<Cause>,
    budget: u64,
    compared: Compared,
}

/// A value on the walk.
#[derive(Clone, Copy)]
struct State<'v> {
    value: &'v Value,
    /// The former value as rules see it.
    old: Option<&'v Value>,
    /// The nearest value, this or one around it, whose former version is known: unchanged ones are excused.
    nearest: Option<Pair<'v>>,
    /// Whether `nearest` is this value.
    follows: bool,
}

impl<'v> State<'v> {
    fn with(self, value: &'v Value, old: Option<&'v Value>, inner: Option<Pair<'v>>) -> Self {
        match inner.filter(|_| self.follows) {
            Some(pair) => State { value, old, nearest: Some(pair), follows: true },
            None => State { value, old, nearest: self.nearest, follows: false },
        }
    }
}

impl Run {
    fn level(
        &mut self,
        schema: &Schema,
        state: State<'_>,
        place: &Place<'_>,
        is_root: bool,
    ) -> Result<(), Exhausted> {
        if !schema.holds.rules || state.value.is_null() {
            return Ok(());
        }
        let old = state.old.filter(|old| !old.is_null());
        for rule in schema.rules.iter() {
            if rule.rule.applies(old.is_some()) {
                self.rule(schema, rule, State { old, ..state }, place)?;
            }
        }
        match state.value {
            Value::Object(fields) => {
                let former = old.and_then(Value::as_object);
                for (name, value) in fields {
                    let (inner, place) = match (schema.properties.get(name), &schema.additional_properties) {
                        (Some(property), _) => (property, place.field(name)),
                        (None, Additional::Schema(values)) => (&**values, place.key(name)),
                        (None, _) => continue,
                    };
                    if !inner.holds.rules {
                        continue;
                    }
                    let old = former.and_then(|former| former.get(name));
                    let mut state = state.with(value, old, state.nearest.and_then(|pair| pair.field(name)));
                    if is_root && matches!(name.as_str(), "apiVersion" | "kind") {
                        state.nearest = None;
                    }
                    self.level(inner, state, &place, false)?;
                }
            }
            Value::Array(items) => {
                let Some(inner) = schema.items.as_deref().filter(|inner| inner.holds.rules) else {
                    return Ok(());
                };
                let former = Former::new(schema, old);
                for (index, value) in items.iter().enumerate() {
                    let old = former.item(value);
                    let pair = old.map(|old| Pair { schema: inner, new: value, old });
                    self.level(inner, state.with(value, old, pair), &place.item(index), false)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn rule(
        &mut self,
        schema: &Schema,
        placed: &PlacedRule,
        state: State<'_>,
        place: &Place<'_>,
    ) -> Result<(), Exhausted> {
        let kind = schema.kind.map_or("", super::Kind::as_str);
        let refuse = |run: &mut Self, detail: &str| {
            run.causes.push(Cause::invalid_text(place.bracketed(), kind, detail));
        };
        if self.budget == 0 {
            refuse(self, OUT_OF_BUDGET);
            return Err(Exhausted);
        }
        let verdict = placed.rule.evaluate(state.value, state.old);
        match self.budget.checked_sub(verdict.cost) {
            Some(left) => self.budget = left,
            None => {
                refuse(self, OUT_OF_BUDGET);
                return Err(Exhausted);
            }
        }
        let label = &placed.label;
        match verdict.result {
            Ok(true) => Ok(()),
            Ok(false) => {
                let excused = !placed.rule.uses_old_self()
                    && state.nearest.is_some_and(|pair| pair.is_equal(&mut self.compared));
                if !excused {
                    self.causes.push(violation(placed, state, place));
                }
                Ok(())
            }
            Err(error) if error.message().contains("exceeds the cost limit") => {
                let detail = format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {label}"
                );
                refuse(self, &detail);
                Err(Exhausted)
            }
            Err(error) if error.message().starts_with("no such overload") => {
                let detail = format!(
                    "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {label}"
                );
                refuse(self, &detail);
                Ok(())
            }
            Err(error) => {
                refuse(self, &format!("{error} evaluating rule: {label}"));
                Ok(())
            }
        }
    }
}

/// The cause that a violated rule gives.
fn violation(placed: &PlacedRule, state: State<'_>, place: &Place<'_>) -> Cause {
    let made = placed.rule.message(state.value, state.old);
    let usable = |text: &String| {
        let text = text.trim();
        !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n')
    };
    let detail = match (made.filter(usable), &placed.message) {
        (Some(made), _) => made.trim().to_owned(),
        (None, Some(message)) => message.clone(),
        (None, None) => format!("failed rule: {}", placed.label),
    };
    let mut field = place.bracketed();
    if let Some(inner) = &placed.field {
        if !field.is_empty() {
            field.push('.');
        }
        field.push_str(inner);
    }
    let is_large = matches!(state.value, Value::Object(_) | Value::Array(_));
    match placed.reason {
        CauseReason::Forbidden => Cause::forbidden(field, &detail),
        CauseReason::Required => Cause::required(field, &detail),
        CauseReason::Duplicate if is_large => Cause::duplicate_omitted(field),
        CauseReason::Duplicate => Cause::duplicate(field, state.value),
        _ if is_large => Cause::invalid_omitted(field, &detail),
        _ => Cause::invalid(field, state.value, &detail),
    }
}
