//! Validation rules of CRDs (`x-kubernetes-validations`): `self` and `oldSelf` typed by an OpenAPI v3 schema.
//!
//! A [`Rule`] is one expression over the value that one schema describes. [`SchemaRules`] are all rules of a schema
//! and of the schemas inside it, with the total of their costs. The message of a violation is the caller's to
//! build where a rule has none.

mod declare;
mod names;
mod rules;
mod schema;

use std::sync::Arc;

use serde_json::Value as Json;

use crate::compile::{Compiled, compile};
use crate::env::{Environment, NEWEST, Results, Variable};
use crate::error::{CompileError, EvaluationError};
use crate::eval::{Value, run};
use crate::plan::Instruction;
use crate::types::Shape;

pub use rules::{RuleError, SchemaRules, Violation};
pub(crate) use schema::SchemaNode;

/// The cost at which one evaluation stops.
pub const EVALUATION_COST_LIMIT: u64 = 1_000_000;
/// The cost that all rules of one object may spend.
pub const OBJECT_COST_LIMIT: u64 = 10_000_000;
/// The estimated cost above which Kubernetes rejects one rule of a CRD.
pub const RULE_ESTIMATE_LIMIT: u64 = 10_000_000;
/// The estimated cost above which Kubernetes rejects a CRD.
pub const TOTAL_ESTIMATE_LIMIT: u64 = 100_000_000;

/// The text of a rule as it stands in a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleSource<'t> {
    /// The condition.
    pub rule: &'t str,
    /// An expression for the message of a violation.
    pub message_expression: Option<&'t str>,
    /// Whether `oldSelf` is an optional, so that the rule also runs on creation.
    pub optional_old_self: bool,
}

/// A compiled rule, cheap to clone and to share between threads.
#[derive(Debug, Clone)]
pub struct Rule {
    schema: Arc<SchemaNode>,
    condition: Arc<Compiled>,
    message: Option<Arc<Compiled>>,
    optional_old_self: bool,
    cardinality: u64,
}

/// What a rule says of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the condition holds.
    pub result: Result<bool, EvaluationError>,
    /// Cost units spent.
    pub cost: u64,
}

impl Rule {
    /// Compiles a rule for values of a schema; `root` if the schema is that of a whole resource.
    pub fn compile(schema: &Json, root: bool, source: RuleSource<'_>) -> Result<Rule, CompileError> {
        let typed = Typed::new(schema, root).ok_or_else(|| {
            CompileError::at(source.rule, 0, "the schema has no type that rules can use".into(), None)
        })?;
        typed.rule(source)
    }

    /// The worst-case cost of the condition.
    pub fn estimated_cost(&self) -> u64 {
        self.condition.estimate
    }

    /// The worst-case cost of the message expression.
    pub fn estimated_message_cost(&self) -> u64 {
        self.message.as_ref().map_or(0, |message| message.estimate)
    }

    /// How many values of the schema one request can hold at most.
    pub fn maximum_cardinality(&self) -> u64 {
        self.cardinality
    }

    /// Whether the rule compares with the former value.
    pub fn uses_old_self(&self) -> bool {
        self.condition.program.code.iter().any(|step| matches!(step, Instruction::Variable { index: 1, .. }))
    }

    /// Whether the rule applies to a change: transition rules need a former value unless it is optional.
    pub fn applies(&self, has_old: bool) -> bool {
        has_old || self.optional_old_self || !self.uses_old_self()
    }

    /// Evaluates the condition on a value and its former one.
    pub fn evaluate(&self, value: &Json, old: Option<&Json>) -> Verdict {
        let variables = self.variables(value, old);
        let evaluated =
            run(&self.condition.program, &variables, EVALUATION_COST_LIMIT, EvaluationError::truth);
        let result = evaluated.outcome.unwrap_or_else(|exhausted| Err(exhausted.into()));
        Verdict { result, cost: evaluated.cost }
    }

    /// The message that the rule's own expression makes, if it has one and that succeeds.
    pub fn message(&self, value: &Json, old: Option<&Json>) -> Option<String> {
        let variables = self.variables(value, old);
        let program = &self.message.as_ref()?.program;
        let read = |value: &Value<'_>| match value {
            Value::String(text) => Some(text.as_str().to_owned()),
            _ => None,
        };
        run(program, &variables, EVALUATION_COST_LIMIT, read).outcome.ok().flatten()
    }

    fn variables<'v>(&'v self, value: &'v Json, old: Option<&'v Json>) -> [Value<'v>; 2] {
        let read = |json: &'v Json| Value::from_json(json, Some(&self.schema));
        let old = match (old, self.optional_old_self) {
            (Some(old), false) => read(old),
            (None, false) => Value::Unset,
            (old, true) => old.map_or(Value::NONE, |old| Value::some(read(old))),
        };
        [read(value), old]
    }
}

/// A schema whose rules are compiled one by one.
pub(crate) struct Typed {
    environment: Environment,
    optional: Environment,
    schema: Arc<SchemaNode>,
    cardinality: u64,
}

impl Typed {
    pub(crate) fn new(schema: &Json, root: bool) -> Option<Self> {
        let mut environment = Environment::new(NEWEST, Results::Bool);
        environment.maximum_length = usize::MAX;
        environment.bindings = false;
        let declared = declare::declare(&mut environment, schema, root)?;
        environment.computed_root = Some(declared.size);
        let variable = |name: &str, kind| Variable { name: name.to_owned(), kind, size: Some(declared.size) };
        let mut optional = environment.clone();
        environment.variables = vec![variable("self", declared.kind), variable("oldSelf", declared.kind)];
        let old = optional.add_type(Shape::Optional(declared.kind));
        optional.variables = vec![variable("self", declared.kind), variable("oldSelf", old)];
        let cardinality = declare::LARGEST_REQUEST / (declared.smallest + 1);
        Some(Self { environment, optional, schema: Arc::new(declared.node), cardinality })
    }

    pub(crate) fn rule(&self, source: RuleSource<'_>) -> Result<Rule, CompileError> {
        let environment = if source.optional_old_self { &self.optional } else { &self.environment };
        let condition = compile(environment, source.rule, false).map_err(|error| *error)?;
        let message = source
            .message_expression
            .map(|text| {
                let environment = Environment { results: Results::String, ..environment.clone() };
                compile(&environment, text, false).map(Arc::new).map_err(|error| *error)
            })
            .transpose()?;
        Ok(Rule {
            schema: self.schema.clone(),
            condition: Arc::new(condition),
            message,
            optional_old_self: source.optional_old_self,
            cardinality: self.cardinality,
        })
    }
}
