//! The rules of a schema (`x-kubernetes-validations`): compiling, their estimated costs, and where they point.

use modelplane_cel::CompileError;
use modelplane_cel::validation::{RULE_ESTIMATE_LIMIT, Rule, RuleSource, TOTAL_ESTIMATE_LIMIT};
use serde_json::{Value, json};

use super::cause::{Cause, CauseReason};
use super::go_text::go_json;
use super::path::Place;
use super::raw::Raw;

/// How many of the most expensive rules are named when all cost too much together.
const NAMED_EXPENSIVE_RULES: usize = 4;

/// The rules of one schema.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Vec<PlacedRule>);

/// A compiled rule and what to say when it is violated.
#[derive(Debug, Clone)]
pub(crate) struct PlacedRule {
    pub(crate) rule: Rule,
    /// The message, or the rule itself.
    pub(crate) label: String,
    pub(crate) message: Option<String>,
    pub(crate) reason: CauseReason,
    /// The field to blame, relative to the value.
    pub(crate) field: Option<String>,
}

/// What compiling a rule depends on beside its schema.
pub(crate) struct RuleScope<'s> {
    /// Whether the schema is that of a whole resource, top-level or embedded.
    pub(crate) is_resource: bool,
    /// The list or map within which former values cannot be found.
    pub(crate) uncorrelatable: Option<&'s str>,
    /// How many values of the schema an object has at most, if that is known.
    pub(crate) cardinality: Option<u64>,
}

impl Rules {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, PlacedRule> {
        self.0.iter()
    }

    pub(crate) fn compile(
        raw: Raw<'_>,
        place: &Place<'_>,
        scope: &RuleScope<'_>,
        cost: &mut Cost,
        causes: &mut Vec<Cause>,
    ) -> Self {
        let list = place.field("x-kubernetes-validations");
        let has_type = !raw.text("type").is_empty() || raw.flag("x-kubernetes-int-or-string");
        if !has_type {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            causes.push(Cause::internal(list.bracketed(), detail));
            return Self::default();
        }
        let mut rules = Vec::new();
        let schema = Value::Object(raw.0.clone());
        for (index, entry) in raw.schemas("x-kubernetes-validations").enumerate() {
            let place = list.item(index);
            let Some(placed) = compile_one(&schema, entry, raw, (scope, &place), causes) else { continue };
            observe_costs(&placed.rule, scope, &place, cost, causes);
            check_old_self(&placed.rule, entry, scope, &place, causes);
            rules.push(placed);
        }
        Self(rules)
    }
}

fn compile_one(
    schema: &Value,
    entry: Raw<'_>,
    raw: Raw<'_>,
    (scope, place): (&RuleScope<'_>, &Place<'_>),
    causes: &mut Vec<Cause>,
) -> Option<PlacedRule> {
    let text = entry.text("rule");
    let expression = Some(entry.text("messageExpression")).filter(|text| !text.is_empty());
    let mut source = RuleSource {
        rule: text,
        message_expression: expression,
        optional_old_self: entry.flag("optionalOldSelf"),
    };
    let rule = match Rule::compile(schema, scope.is_resource, source) {
        Ok(rule) => rule,
        Err(error) => {
            source.message_expression = None;
            let (keyword, result, error) = match Rule::compile(schema, scope.is_resource, source) {
                Err(error) => ("rule", ("cel expression", "a bool"), error),
                Ok(_) => ("messageExpression", ("messageExpression", "a string"), error),
            };
            let path = place.field(keyword).bracketed();
            causes.push(Cause::invalid_shown(path, &shown_rule(entry), &compile_detail(result, &error)));
            return None;
        }
    };
    let message = Some(entry.text("message").trim()).filter(|text| !text.is_empty()).map(str::to_owned);
    Some(PlacedRule {
        rule,
        label: message.clone().unwrap_or_else(|| text.trim().to_owned()),
        message,
        reason: match entry.text("reason") {
            "FieldValueForbidden" => CauseReason::Forbidden,
            "FieldValueRequired" => CauseReason::Required,
            "FieldValueDuplicate" => CauseReason::Duplicate,
            _ => CauseReason::Invalid,
        },
        field: Some(entry.text("fieldPath"))
            .filter(|path| !path.is_empty())
            .and_then(|path| resolve_field_path(path, raw)),
    })
}

/// A rule as messages about CRDs show it.
fn shown_rule(entry: Raw<'_>) -> String {
    const FIELDS: [(&str, &str); 6] = [
        ("Rule", "rule"),
        ("Message", "message"),
        ("MessageExpression", "messageExpression"),
        ("Reason", "reason"),
        ("FieldPath", "fieldPath"),
        ("OptionalOldSelf", "optionalOldSelf"),
    ];
    let fields = FIELDS.map(|(name, keyword)| {
        let absent = if matches!(keyword, "reason" | "optionalOldSelf") { Value::Null } else { json!("") };
        format!("\"{name}\":{}", go_json(entry.get(keyword).unwrap_or(&absent)))
    });
    format!("{{{}}}", fields.join(","))
}

/// The position and the wording are those of our compiler.
fn compile_detail((what, result): (&str, &str), error: &CompileError) -> String {
    if error.message().starts_with("the expression must evaluate to") {
        return format!("{what} must evaluate to {result}");
    }
    let prefix = if what == "messageExpression" { "messageExpression " } else { "" };
    let (line, column) = (error.line(), error.column());
    let snippet = error.snippet();
    let (source, caret) = snippet.split_once('\n').unwrap_or((&snippet, "^"));
    let pointer = caret.replace(' ', ".");
    format!(
        "{prefix}compilation failed: ERROR: <input>:{line}:{column}: {}\n | {source}\n | {pointer}",
        error.message()
    )
}

fn check_old_self(
    rule: &Rule,
    entry: Raw<'_>,
    scope: &RuleScope<'_>,
    place: &Place<'_>,
    causes: &mut Vec<Cause>,
) {
    if rule.uses_old_self() {
        if let Some(path) = scope.uncorrelatable {
            let detail =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {path}");
            causes.push(Cause::invalid_text(place.field("rule").bracketed(), entry.text("rule"), &detail));
        }
    } else if let Some(value) = entry.get("optionalOldSelf") {
        let path = place.field("optionalOldSelf").bracketed();
        causes.push(Cause::invalid(path, value, "may not be set if oldSelf is not used in rule"));
    }
}

fn observe_costs(
    rule: &Rule,
    scope: &RuleScope<'_>,
    place: &Place<'_>,
    cost: &mut Cost,
    causes: &mut Vec<Cause>,
) {
    let times = scope.cardinality.unwrap_or_else(|| rule.maximum_cardinality());
    for (keyword, name, estimate) in [
        ("rule", "estimated rule cost", rule.estimated_cost().saturating_mul(times)),
        ("messageExpression", "estimated messageExpression cost", rule.estimated_message_cost()),
    ] {
        let path = || place.field(keyword).bracketed();
        if estimate > RULE_ESTIMATE_LIMIT {
            causes.push(Cause::forbidden(path(), &excess(name, estimate, RULE_ESTIMATE_LIMIT)));
        }
        cost.total = cost.total.saturating_add(estimate);
        if estimate >= TOTAL_ESTIMATE_LIMIT / 100 {
            cost.expensive.push((estimate, path()));
        }
    }
}

fn excess(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// The estimated cost of all rules of a schema.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    total: u64,
    expensive: Vec<(u64, String)>,
}

impl Cost {
    /// Reports a total that is too high, with the rules that contribute most.
    pub(crate) fn report(&mut self, place: &Place<'_>, causes: &mut Vec<Cause>) {
        if self.total <= TOTAL_ESTIMATE_LIMIT {
            return;
        }
        self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        for (_, path) in self.expensive.drain(..).take(NAMED_EXPENSIVE_RULES) {
            let detail =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            causes.push(Cause::forbidden(path, detail));
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        causes.push(Cause::forbidden(place.bracketed(), &excess(name, self.total, TOTAL_ESTIMATE_LIMIT)));
    }
}

/// Checks the texts of rules without compiling them.
pub(crate) fn check_texts(raw: Raw<'_>, place: &Place<'_>, causes: &mut Vec<Cause>) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    let list = place.field("x-kubernetes-validations");
    for (index, entry) in raw.schemas("x-kubernetes-validations").enumerate() {
        let place = list.item(index);
        let path = |keyword: &str| place.field(keyword).bracketed();
        let invalid =
            |keyword: &str, detail: &str| Cause::invalid_text(path(keyword), entry.text(keyword), detail);
        let (rule, message) = (entry.text("rule").trim(), entry.text("message"));
        if rule.is_empty() {
            causes.push(Cause::required(path("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            causes.push(invalid("message", "must be non-empty if specified"));
        } else if message.trim().contains('\n') {
            causes.push(invalid("message", "must not contain line breaks"));
        } else if rule.contains('\n') && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            causes.push(Cause::required(path("message"), detail));
        }
        let expression = entry.text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            causes.push(Cause::required(path("messageExpression"), detail));
        }
        if let Some(reason) = entry.get("reason").filter(|_| !REASONS.contains(&entry.text("reason"))) {
            let known = REASONS.map(|name| json!(name));
            causes.push(Cause::not_supported(path("reason"), reason, &known));
        }
        let field = entry.text("fieldPath");
        if !field.is_empty() && field.trim().is_empty() {
            causes.push(invalid("fieldPath", "must be non-empty if specified"));
        }
        if field.contains('\n') {
            causes.push(invalid("fieldPath", "must not contain line breaks"));
        }
        if !field.is_empty() && resolve_field_path(field, raw).is_none() {
            causes.push(invalid("fieldPath", "must be a valid path"));
        }
    }
}

/// The plain path for a `fieldPath` such as `.spec['a.b']`, if the schema has that field.
fn resolve_field_path(path: &str, raw: Raw<'_>) -> Option<String> {
    let mut schema = raw;
    let mut output = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(behind) = rest.strip_prefix("['") {
            let (text, after) = quoted_key(behind)?;
            name = text;
            rest = after;
        } else {
            let behind = rest.strip_prefix('.')?;
            let end = behind.find(['.', '[', ']']).unwrap_or(behind.len());
            name = behind[..end].to_owned();
            rest = &behind[end..];
        }
        if schema.get("properties").is_some() {
            schema = schema.property(&name)?;
            if !output.is_empty() {
                output.push('.');
            }
            output.push_str(&name);
        } else {
            schema = schema.schema("additionalProperties")?;
            output.push('[');
            output.push_str(&name);
            output.push(']');
        }
    }
    (!output.is_empty()).then_some(output)
}

/// The text up to `']`, with escapes resolved, and what is behind it.
fn quoted_key(text: &str) -> Option<(String, &str)> {
    let mut key = String::new();
    let mut characters = text.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '\'' => return Some((key, text[position..].strip_prefix("']")?)),
            '\\' => key.push(match characters.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                escaped @ ('\'' | '\\') => escaped,
                _ => return None,
            }),
            other => key.push(other),
        }
    }
    None
}
