//! `modelplane cel`: the selector language on its own.

mod device;
mod eval;
mod quantity;

use clap::Subcommand;

use crate::outcome::CommandResult;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile device selectors and evaluate them on devices
    Eval(eval::Arguments),
    /// Parse Kubernetes quantities and show their canonical form
    Quantity(quantity::Arguments),
}

impl Command {
    pub(crate) fn run(self) -> CommandResult {
        match self {
            Self::Eval(arguments) => arguments.run(),
            Self::Quantity(arguments) => arguments.run(),
        }
    }
}
