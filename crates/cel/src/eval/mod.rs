//! Running compiled programs.

mod arithmetic;
mod collect;
mod compare;
mod machine;
mod map;
mod meter;
mod operators;
mod paths;
mod value;

pub(crate) use arithmetic::{add, negate};
pub(crate) use compare::{contains, equal, order};
pub(crate) use machine::run;
pub(crate) use map::{Entries, Map, MapKey};
pub(crate) use meter::{Budget, Exhausted, runtime_size};
pub(crate) use value::{Fault, Handle, List, Text, Value};
