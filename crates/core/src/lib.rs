//! The pure core of Modelplane: observed state in, desired state out.
//!
//! Nothing here does I/O, reads a clock, draws a random number or knows who calls it: the Crossplane
//! function, the embedded engine and the `render` command all hand over the same [`contract::Observed`]
//! and get the same [`contract::Desired`] back. Fleet policy exists only in this crate.

pub mod catalog;
pub mod check;
pub mod compose;
pub mod contract;
pub mod crds;
pub mod document;
pub mod schedule;
pub mod simulate;
pub mod versions;
