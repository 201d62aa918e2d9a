//! The tests of the API crate, in one binary.

mod definitions;
mod examples;
mod names;
mod shapes;
mod support;
mod validation;
