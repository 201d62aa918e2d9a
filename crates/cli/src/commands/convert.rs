//! `modelplane convert`: rewrites manifests to the newest published shape.

use clap::Args;
use modelplane_api::normalize::convert;

use crate::manifests::Sources;
use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    sources: Sources,
}

impl Arguments {
    /// Prints every object as YAML; what moved is said on stderr.
    #[expect(clippy::print_stderr, reason = "notes beside the data on stdout")]
    pub(crate) fn run(self) -> CommandResult {
        let mut objects = Vec::new();
        for mut manifest in self.sources.load_all()? {
            let place = manifest.start();
            let changes = convert(&mut manifest.body)
                .map_err(|error| CommandError::new(format!("{place}: {error}")))?;
            for change in changes {
                eprintln!("{place}: {change}");
            }
            objects.push(manifest.body);
        }
        output::print_yaml(&objects)?;
        Ok(Verdict::Good)
    }
}
