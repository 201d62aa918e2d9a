//! All rules of a schema: where they stand, what they cost together, and running them over a document.

use serde_json::Value as Json;

use super::declare::flag;
use super::{OBJECT_COST_LIMIT, Rule, RuleSource, Typed};
use crate::error::CompileError;

/// Schemas and documents nest at most this deep.
const MAXIMUM_DEPTH: u32 = 100;

/// The rules of a schema and of the schemas inside it.
#[derive(Debug, Clone, Default)]
pub struct SchemaRules {
    root: Level,
    total: u64,
}

/// A rule that does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// Where the schema with the rule stands, such as `spec.replicas`; empty for the root.
    pub path: String,
    /// The place among the rules of that schema.
    pub index: usize,
    /// What is wrong.
    pub error: CompileError,
}

/// A rule that a document violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The path of the value, such as `spec.pools[2]`.
    pub path: String,
    /// The rule's message, or the rule itself.
    pub message: String,
    /// The reason given in the schema, such as `FieldValueInvalid`.
    pub reason: Option<String>,
    /// Whether the rule could not be evaluated, rather than being violated.
    pub failed: bool,
}

/// The rules of one schema and its parts.
#[derive(Debug, Clone, Default)]
struct Level {
    rules: Vec<Placed>,
    properties: Vec<(String, Level)>,
    /// Of a list's items or a map's values.
    elements: Option<Box<Level>>,
    /// The keys that identify items, where changes of items can be followed.
    keys: Option<Vec<String>>,
}

#[derive(Debug, Clone)]
struct Placed {
    rule: Rule,
    text: String,
    message: Option<String>,
    reason: Option<String>,
    field: Option<String>,
}

impl Level {
    fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.properties.is_empty() && self.elements.is_none()
    }
}

impl SchemaRules {
    /// Compiles every rule of the schema of a whole resource.
    pub fn compile(schema: &Json) -> Result<SchemaRules, Vec<RuleError>> {
        let mut compiler = Compiler { errors: Vec::new(), total: 0 };
        let root = compiler.level(schema, Place { path: String::new(), root: true, depth: 0 }, Some(1));
        if compiler.errors.is_empty() {
            Ok(SchemaRules { root, total: compiler.total })
        } else {
            Err(compiler.errors)
        }
    }

    /// The worst-case cost of all rules; Kubernetes rejects a CRD above 100,000,000.
    pub fn estimated_cost(&self) -> u64 {
        self.total
    }

    /// Whether there is nothing to check.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Checks a document against its former version, if there is one.
    pub fn validate(&self, document: &Json, old: Option<&Json>) -> Vec<Violation> {
        let mut run = Run { violations: Vec::new(), budget: OBJECT_COST_LIMIT };
        run.level(&self.root, Change { value: document, old }, "", 0);
        run.violations
    }
}

struct Compiler {
    errors: Vec<RuleError>,
    total: u64,
}

/// Where a schema stands.
struct Place {
    path: String,
    root: bool,
    depth: u32,
}

impl Compiler {
    /// Compiles a schema that occurs at most `cardinality` times, if that is known.
    fn level(&mut self, schema: &Json, place: Place, cardinality: Option<u64>) -> Level {
        let mut level = Level::default();
        if place.depth > MAXIMUM_DEPTH {
            return level;
        }
        self.rules(&mut level, schema, &place, cardinality);
        let inner = |step: &str| Place {
            path: if place.path.is_empty() {
                step.trim_start_matches('.').to_owned()
            } else {
                format!("{}{step}", place.path)
            },
            root: false,
            depth: place.depth + 1,
        };
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let compiled = self.level(property, inner(&format!(".{name}")), cardinality);
            if !compiled.is_empty() {
                level.properties.push((name.clone(), compiled));
            }
        }
        let (elements, maximum) = match &schema["additionalProperties"] {
            values @ Json::Object(_) => (Some(values), "maxProperties"),
            _ => (schema.get("items"), "maxItems"),
        };
        if let Some(elements) = elements {
            let count = schema[maximum].as_u64();
            let times = cardinality.zip(count).map(|(times, count)| times.saturating_mul(count));
            let compiled = self.level(elements, inner("[*]"), times);
            if !compiled.is_empty() {
                level.elements = Some(Box::new(compiled));
            }
        }
        if schema["x-kubernetes-list-type"] == "map" {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            level.keys = Some(keys.filter_map(Json::as_str).map(str::to_owned).collect());
        }
        level
    }

    fn rules(&mut self, level: &mut Level, schema: &Json, place: &Place, cardinality: Option<u64>) {
        let Some(rules) = schema["x-kubernetes-validations"].as_array() else { return };
        let typed = Typed::new(schema, place.root);
        for (index, entry) in rules.iter().enumerate() {
            let text = entry["rule"].as_str().unwrap_or("");
            let source = RuleSource {
                rule: text,
                message_expression: entry["messageExpression"].as_str().filter(|text| !text.is_empty()),
                optional_old_self: flag(entry, "optionalOldSelf"),
            };
            let compiled = match &typed {
                Some(typed) => typed.rule(source),
                None => Rule::compile(schema, place.root, source),
            };
            match compiled {
                Ok(rule) => {
                    let times = cardinality.unwrap_or_else(|| rule.maximum_cardinality());
                    let cost = rule.estimated_cost().saturating_add(rule.estimated_message_cost());
                    self.total = self.total.saturating_add(cost.saturating_mul(times));
                    let own = |name: &str| entry[name].as_str().map(str::to_owned);
                    level.rules.push(Placed {
                        rule,
                        text: text.to_owned(),
                        message: own("message"),
                        reason: own("reason"),
                        field: own("fieldPath"),
                    });
                }
                Err(error) => self.errors.push(RuleError { path: place.path.clone(), index, error }),
            }
        }
    }
}

/// A value and its former one.
#[derive(Clone, Copy)]
struct Change<'v> {
    value: &'v Json,
    old: Option<&'v Json>,
}

impl<'v> Change<'v> {
    /// The change of a field, of which the new value is known.
    fn field(self, name: &str, value: &'v Json) -> Self {
        Self { value, old: self.old.and_then(|old| old.get(name)) }
    }
}

struct Run {
    violations: Vec<Violation>,
    budget: u64,
}

impl Run {
    fn level(&mut self, level: &Level, change: Change<'_>, path: &str, depth: u32) {
        let Change { value, old } = change;
        if depth > MAXIMUM_DEPTH || self.budget == 0 {
            return;
        }
        for placed in &level.rules {
            if placed.rule.applies(old.is_some()) && !self.rule(placed, change, path) {
                return;
            }
        }
        let step = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for (name, inner) in &level.properties {
            if let Some(value) = value.get(name) {
                self.level(inner, change.field(name, value), &step(name), depth + 1);
            }
        }
        let Some(elements) = &level.elements else { return };
        match value {
            Json::Object(fields) => {
                for (name, value) in fields {
                    self.level(elements, change.field(name, value), &step(name), depth + 1);
                }
            }
            Json::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let old = level.keys.as_ref().and_then(|keys| matching(old?, item, keys));
                    self.level(elements, Change { value: item, old }, &format!("{path}[{index}]"), depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Runs one rule; whether there is budget left for more.
    fn rule(&mut self, placed: &Placed, Change { value, old }: Change<'_>, path: &str) -> bool {
        let verdict = placed.rule.evaluate(value, old);
        let (message, failed) = match verdict.result {
            Ok(true) => (None, false),
            Ok(false) => {
                let message = placed.rule.message(value, old).or_else(|| placed.message.clone());
                (Some(message.unwrap_or_else(|| format!("failed rule: {}", placed.text))), false)
            }
            Err(error) => (Some(format!("the rule {:?} cannot be evaluated: {error}", placed.text)), true),
        };
        if let Some(message) = message {
            let path = format!("{path}{}", placed.field.as_deref().unwrap_or(""));
            let reason = placed.reason.clone();
            self.violations.push(Violation { path, message, reason, failed });
        }
        match self.budget.checked_sub(verdict.cost) {
            Some(left) => {
                self.budget = left;
                true
            }
            None => {
                self.budget = 0;
                let message =
                    "the rules cost more than one object may spend, later ones are not run".to_owned();
                self.violations.push(Violation {
                    path: path.to_owned(),
                    message,
                    reason: None,
                    failed: true,
                });
                false
            }
        }
    }
}

/// The former item with the same keys.
fn matching<'v>(old: &'v Json, item: &Json, keys: &[String]) -> Option<&'v Json> {
    old.as_array()?.iter().find(|candidate| keys.iter().all(|key| candidate.get(key) == item.get(key)))
}
