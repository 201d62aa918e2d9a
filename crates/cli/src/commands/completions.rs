//! `modelplane completions`: completion scripts for shells.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::CommandLine;
use crate::outcome::{CommandResult, Verdict};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "Example:
  modelplane completions bash > ~/.local/share/bash-completion/completions/modelplane")]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut CommandLine::command(), "modelplane", &mut script);
        output::print(&String::from_utf8_lossy(&script))?;
        Ok(Verdict::Good)
    }
}
