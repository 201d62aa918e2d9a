//! Expressions over JSON objects without a schema: every declared variable is `dyn`.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::compile::{Compiled, compile};
use crate::env::{Environment, NEWEST, Results, Variable};
use crate::error::{CompileError, EvaluationError};
use crate::eval::{Value, run};
use crate::types::Type;

/// The cost at which an evaluation stops, that of one call in Kubernetes.
const COST_LIMIT: u64 = 1_000_000;

/// A compiled expression over JSON variables.
#[derive(Debug, Clone)]
pub struct Program {
    variables: Arc<[String]>,
    compiled: Arc<Compiled>,
}

impl Program {
    /// Compiles `text` with the variables named in `variables`.
    pub fn compile(variables: &[&str], text: &str) -> Result<Program, CompileError> {
        let mut environment = Environment::new(NEWEST, Results::BoolOrDyn);
        environment.variables = variables
            .iter()
            .map(|name| Variable { name: (*name).to_owned(), kind: Type::DYN, size: None })
            .collect();
        let compiled = compile(&environment, text, false).map_err(|error| *error)?;
        let variables = variables.iter().map(|name| (*name).to_owned()).collect();
        Ok(Program { variables, compiled: Arc::new(compiled) })
    }

    /// Evaluates to a bool; a variable without a binding is an error where it is read.
    pub fn evaluate_bool(&self, bindings: &[(&str, &Json)]) -> Result<bool, EvaluationError> {
        let values: Vec<Value<'_>> = self
            .variables
            .iter()
            .map(|name| match bindings.iter().find(|(bound, _)| bound == name) {
                Some((_, json)) => Value::from_json(json, None),
                None => Value::Unset,
            })
            .collect();
        run(&self.compiled.program, &values, COST_LIMIT, EvaluationError::truth)
            .outcome
            .unwrap_or_else(|exhausted| Err(exhausted.into()))
    }
}
