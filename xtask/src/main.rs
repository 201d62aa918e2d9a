//! Project automation: `cargo xtask <command>`.

mod files;
mod generate;
mod tidy;
mod vendor;
mod vendor_kubernetes;
mod vendor_messages;
mod versions;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "xtask", about = "Project automation")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write everything that is generated from the Rust types
    Generate {
        /// Only check that what is committed is current
        #[arg(long)]
        check: bool,
    },
    /// Check the rules that compilers do not: purity of crates, sizes of files, leftovers
    Tidy,
    /// Make third_party/ anew from the modules it comes from (needs Go)
    Vendor {
        /// Only check that what is committed is current
        #[arg(long)]
        check: bool,
    },
    /// List which pinned charts, images and modules have newer versions
    Versions,
}

#[expect(clippy::print_stderr, reason = "a command's errors go to stderr")]
fn main() -> ExitCode {
    let result = match CommandLine::parse().command {
        Command::Generate { check } => generate::run(check),
        Command::Tidy => tidy::run(),
        Command::Vendor { check } => vendor_definitions(check),
        Command::Versions => {
            print(&versions::run());
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn vendor_definitions(check: bool) -> files::Result<()> {
    let report = vendor::run(&files::root(), check).map_err(|error| error.to_string())?;
    print(&report);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a command's report goes to stdout")]
fn print(report: &impl std::fmt::Display) {
    print!("{report}");
}
