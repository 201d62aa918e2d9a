//! `modelplane package`: what Crossplane installs, as packages for a registry or as plain manifests.

mod archive;
mod binary;
mod build;
mod contents;
mod manifests;
mod names;
mod providers;

use clap::Subcommand;

use crate::outcome::CommandResult;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build the Function and the Configuration package as files that can be pushed to a registry
    Build(build::Arguments),
    /// Write what the Configuration package holds as plain manifests, for kubectl apply
    Manifests(manifests::Arguments),
}

impl Command {
    pub(crate) fn run(self) -> CommandResult {
        match self {
            Self::Build(arguments) => arguments.run(),
            Self::Manifests(arguments) => arguments.run(),
        }
    }
}
