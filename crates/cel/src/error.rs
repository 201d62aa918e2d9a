//! The two public errors: one for text that is not a valid expression, one for an evaluation without a result.

use std::fmt;

use crate::eval::{Exhausted, Value};

/// Why an expression was refused before it ran: one sentence and the place it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    message: String,
    hint: Option<String>,
    line: u32,
    column: u32,
    source_line: String,
}

impl CompileError {
    /// An error at the byte `offset` of `source`.
    pub(crate) fn at(source: &str, offset: usize, message: String, hint: Option<String>) -> Self {
        let mut offset = offset.min(source.len());
        while !source.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &source[..offset];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = source[offset..].find('\n').map_or(source.len(), |length| offset + length);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            message,
            hint,
            line: number(before.matches('\n').count() + 1),
            column: number(source[start..offset].chars().count() + 1),
            source_line: source[start..end].trim_end_matches('\r').to_owned(),
        }
    }

    /// What is wrong, without the position.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The line, counted from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The column in code points, counted from 1.
    pub fn column(&self) -> u32 {
        self.column
    }

    /// What to write instead, where that can be guessed.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The source line and, below it, a caret under the column.
    pub fn snippet(&self) -> String {
        let padding: String = self
            .source_line
            .chars()
            .take(self.column as usize - 1)
            .map(|character| if character == '\t' { '\t' } else { ' ' })
            .collect();
        format!("{}\n{padding}^", self.source_line)
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for CompileError {}

/// Why an evaluation gave no result, for instance an absent attribute or an exceeded cost limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationError {
    message: String,
}

impl EvaluationError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// The result of an expression that has to be a bool.
    pub(crate) fn truth(value: &Value<'_>) -> Result<bool, Self> {
        match value {
            Value::Bool(value) => Ok(*value),
            Value::Fault(fault) => Err(Self::new(fault.to_string())),
            other => Err(Self::new(format!("the result is {}, not a bool", other.type_name()))),
        }
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for EvaluationError {}

impl From<Exhausted> for EvaluationError {
    fn from(exhausted: Exhausted) -> Self {
        Self::new(match exhausted {
            Exhausted::Cost => "the evaluation exceeds the cost limit",
            Exhausted::Internal => {
                "the operand of a call has no value that the evaluation could be metered by"
            }
            Exhausted::Work => "the evaluation copies or compares too much",
        })
    }
}
