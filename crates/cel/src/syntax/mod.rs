//! Text to syntax tree: the CEL grammar with Kubernetes' options and every macro.
//!
//! The tree lives in one arena of nodes addressed by index, so it is built, walked and dropped without
//! recursion over its own length. The parser mirrors the limits of cel-go: 250 levels per grammar rule.

mod lexer;
mod literal;
mod macros;
mod parser;
mod primary;
mod tree;

pub(crate) use macros::BIND_ITERATION_VARIABLE;
pub(crate) use parser::{ParseOptions, parse};
pub(crate) use tree::{Comprehension, Kind, NodeId, Slice, Tree};
