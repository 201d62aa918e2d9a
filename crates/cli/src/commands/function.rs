//! `modelplane function`: the compositions as a Crossplane composition function.

mod run;
mod serve;

use clap::Subcommand;

use crate::outcome::CommandResult;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer recorded RunFunctionRequest documents, one response per line
    Run(run::Arguments),
    /// Serve the compositions to Crossplane over gRPC
    Serve(serve::Arguments),
}

impl Command {
    pub(crate) fn run(self) -> CommandResult {
        match self {
            Self::Run(arguments) => arguments.run(),
            Self::Serve(arguments) => arguments.run(),
        }
    }
}
