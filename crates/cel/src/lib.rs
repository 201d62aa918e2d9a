//! Kubernetes CEL: parser, type checker, metered evaluator, and the Kubernetes function libraries.
//!
//! Behaviour, including run-time cost and worst-case static cost, follows Kubernetes 1.36. The crate does no
//! I/O, has no clock and no randomness, and never recurses on user input without a bound.

mod check;
mod compile;
mod cost;
pub mod device;
pub mod duration;
mod env;
mod error;
mod eval;
mod library;
pub mod named_format;
pub mod net;
pub mod numbers;
pub mod object;
pub mod pattern;
mod plan;
pub mod quantity;
pub mod semver;
mod syntax;
pub mod text;
pub mod timestamp;
mod types;
pub mod validation;

pub use error::{CompileError, EvaluationError};
pub use quantity::{Quantity, QuantityError};
pub use semver::{Semver, SemverError};
