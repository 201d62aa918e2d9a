//! Expressions over JSON objects without a schema: every declared variable is `dyn`.

use serde_json::Value;

use crate::error::{CompileError, EvaluationError};

/// A compiled expression over JSON variables.
#[derive(Debug, Clone)]
pub struct Program {}

impl Program {
    /// Compiles `text` with the variables named in `variables`.
    pub fn compile(_variables: &[&str], text: &str) -> Result<Program, CompileError> {
        Err(CompileError::at(text, 0, "object expressions are not supported yet".into(), None))
    }

    /// Evaluates to a bool; a variable without a binding is an error where it is read.
    pub fn evaluate_bool(&self, _bindings: &[(&str, &Value)]) -> Result<bool, EvaluationError> {
        Err(EvaluationError::new("object expressions are not supported yet"))
    }
}
