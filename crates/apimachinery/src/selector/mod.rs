//! Label and field selectors, as text in a query and as objects.
//!
//! Selectors are parsed once and match objects by reference. Which fields of a kind can be selected is an
//! argument: `metadata.name` and `metadata.namespace` always can.

mod field;
mod label;

pub use field::{FieldSelector, FieldTerm};
pub use label::{LabelSelector, Operator, Requirement};

/// A selector cannot be read (400 BadRequest).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text is not a selector.
    #[error("unable to parse selector {selector:?}: {message}")]
    Syntax {
        /// The text.
        selector: String,
        /// What is wrong, where.
        message: String,
    },
    /// A label's key cannot exist.
    #[error("invalid label key {key:?}: {message}")]
    Key {
        /// The key.
        key: String,
        /// What is wrong with it.
        message: &'static str,
    },
    /// A label's value cannot exist.
    #[error("invalid label value {value:?} for key {key:?}: {message}")]
    Value {
        /// The label's key.
        key: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        message: &'static str,
    },
    /// An operator has the wrong number of values.
    #[error("label selector for key {key:?}: {message}")]
    Operator {
        /// The label's key.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// Objects of the kind cannot be selected by this field.
    #[error("field label not supported: {0}")]
    Field(String),
}
