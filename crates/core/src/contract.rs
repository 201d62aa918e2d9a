//! The contract of a composition: `compose(&Observed) -> Result<Desired, ComposeError>`.
//!
//! [`Observed`] is everything a composition may know, [`Desired`] everything it may say. Both are plain
//! data; the Crossplane adapter, the engine and `render` translate to and from them. The rule above all
//! others: a composition never drops an observed resource because an input is missing, late or
//! malformed. [`Desired::hold`] is how a composition keeps what is there.

mod desired;
mod observed;

pub use desired::{
    Body, Condition, ConditionStatus, Desired, DesiredResource, Event, Match, Ready, Requirement, Scheduled,
    Severity, Work,
};
pub use observed::{Identity, Observed, Required, Resource};

/// A composition cannot go on; everything observed stays as it is (Crossplane: a fatal result).
#[derive(Debug, thiserror::Error)]
#[error("{object}: {message}")]
pub struct ComposeError {
    /// The composite, as `Kind namespace/name`.
    pub object: String,
    /// What is wrong: field, value and cause.
    pub message: String,
    /// How to put it right, if that is known.
    pub hint: Option<String>,
}

impl ComposeError {
    /// The error and its remedy in one line, as a composite's conditions and results carry it.
    pub fn explained(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }
}
