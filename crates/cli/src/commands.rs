//! The command line: one variant and one file per command.

mod function;

use clap::{Parser, Subcommand};

use crate::outcome::CommandResult;

/// Operates many Kubernetes clusters as one fleet for AI inference.
#[derive(Debug, Parser)]
#[command(name = "modelplane", version, propagate_version = true, subcommand_required = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run Modelplane's compositions as a Crossplane composition function
    #[command(subcommand)]
    Function(function::Command),
}

impl CommandLine {
    pub(crate) fn run(self) -> CommandResult {
        match self.command {
            Command::Function(command) => command.run(),
        }
    }
}
