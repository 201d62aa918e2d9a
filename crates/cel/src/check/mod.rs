//! The type checker: resolves names and overloads and gives every node a static type.

mod assign;
mod checker;
mod literals;
mod overloads;
mod suggest;

pub(crate) use checker::{Checked, Reference, check};
