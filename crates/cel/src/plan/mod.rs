//! Checked trees to flat programs.

mod attribute;
mod fold;
mod planner;
mod program;

pub(crate) use planner::{bad_key, not_optional, plan};
pub(crate) use program::{ConstantSet, Input, Instruction, Program};
