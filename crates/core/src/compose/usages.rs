//! The usages step.

use crate::contract::{ComposeError, Desired, Observed};

/// Name of the pipeline step, and of its function upstream.
pub const STEP: &str = "compose-usages";

/// Composes the usages of what earlier steps want.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    Ok(Desired::starting_from(observed))
}
