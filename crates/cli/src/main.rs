//! The `modelplane` binary: parses the command line and hands over to one command.

mod commands;
mod fleet;
mod live;
mod manifests;
mod nearest;
mod outcome;
mod output;
mod process;
mod resolve;
mod scheduling;
mod view;

use std::process::ExitCode;

use clap::Parser;

use crate::outcome::Report;

fn main() -> ExitCode {
    commands::CommandLine::parse().run().report()
}
