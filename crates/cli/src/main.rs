//! The `modelplane` binary: parses the command line and hands over to one command.

mod commands;
mod manifests;
mod outcome;

use std::process::ExitCode;

use clap::Parser;

use crate::outcome::Report;

fn main() -> ExitCode {
    commands::CommandLine::parse().run().report()
}
