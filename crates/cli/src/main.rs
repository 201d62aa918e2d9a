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

/// musl's own allocator takes one lock for all threads, and glibc's spends a third of a busy fleet's time.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    commands::CommandLine::parse().run().report()
}
