//! From text to program: length, syntax, types, plan, estimate.

use crate::check;
use crate::cost;
use crate::env::Environment;
use crate::error::CompileError;
use crate::plan::{self, Program};
use crate::syntax;

/// A program and the worst-case cost of running it.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) program: Program,
    pub(crate) estimate: u64,
}

/// Compiles an expression; `device` tells that the first variable is one.
pub(crate) fn compile(
    environment: &Environment,
    source: &str,
    device: bool,
) -> Result<Compiled, Box<CompileError>> {
    if source.len() > environment.maximum_length {
        let message = format!(
            "the expression is {} bytes long, more than the {} allowed",
            source.len(),
            environment.maximum_length
        );
        return Err(Box::new(CompileError::at(source, 0, message, None)));
    }
    let (tree, root) = syntax::parse(source, &environment.parse_options())?;
    let checked = check::check(environment, source, &tree, root)?;
    let program = plan::plan(source, &tree, root, &checked, device)?;
    let estimate = cost::estimate(environment, &tree, root, &checked);
    Ok(Compiled { program, estimate })
}
