//! Kubernetes CEL: parser, type checker, metered evaluator, and the Kubernetes function libraries.
//!
//! Behaviour, including run-time cost and worst-case static cost, follows Kubernetes 1.36. The crate does no
//! I/O, has no clock and no randomness, and never recurses on user input without a bound.

pub mod device;
pub mod duration;
mod error;
pub mod named_format;
pub mod net;
pub mod numbers;
pub mod object;
pub mod quantity;
pub mod semver;
pub mod text;
pub mod timestamp;
pub mod validation;

pub use error::{CompileError, EvaluationError};
pub use quantity::{Quantity, QuantityError};
pub use semver::{Semver, SemverError};
