//! The function libraries: declarations, costs and implementations.

pub(crate) mod calls;
mod convert;
mod costs;
pub(crate) mod declarations;
pub(crate) mod format;
mod lists;
mod math;
pub(crate) mod regex;
mod table;
mod texts;
