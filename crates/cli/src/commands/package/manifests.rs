//! `modelplane package manifests`: the content of the Configuration package as plain manifests.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::contents;
use super::names::{FUNCTION, Repository, Version};
use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where the Function package was pushed to, as HOST/PATH; without it the Function is left out and Compositions
    /// call one named modelplane-function
    #[arg(long, value_name = "REPOSITORY")]
    repository: Option<Repository>,

    /// Version of the Function package
    #[arg(long, default_value_t = Version::default(), value_name = "VERSION")]
    package_version: Version,

    /// Folder to write files to, instead of to the terminal
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let files = self.files();
        let Some(folder) = &self.output else {
            output::print_yaml(files.iter().flat_map(|(_, objects)| objects))?;
            return Ok(Verdict::Good);
        };
        for (name, objects) in &files {
            let path = folder.join(name);
            let text = output::to_yaml(objects)?;
            path.parent()
                .map_or(Ok(()), std::fs::create_dir_all)
                .and_then(|()| std::fs::write(&path, text))
                .map_err(|error| CommandError::new(format!("cannot write {}: {error}", path.display())))?;
        }
        Ok(Verdict::Good)
    }

    /// Names of files with what is in them, in the order they are best applied.
    fn files(&self) -> Vec<(String, Vec<Value>)> {
        let function =
            self.repository.as_ref().map_or_else(|| FUNCTION.to_owned(), Repository::function_name);
        let mut files = vec![
            ("prerequisites.yaml".to_owned(), contents::prerequisites()),
            ("activation-policy.yaml".to_owned(), vec![contents::activation_policy()]),
            ("providers.yaml".to_owned(), contents::providers()),
        ];
        if let Some(repository) = &self.repository {
            let function = contents::function(repository, &self.package_version);
            files.push(("function.yaml".to_owned(), vec![function]));
        }
        files.extend(contents::definitions().into_iter().map(|object| file("xrds", object)));
        files
            .extend(contents::compositions(&function).into_iter().map(|object| file("compositions", object)));
        files
    }
}

fn file(folder: &str, object: Value) -> (String, Vec<Value>) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    (format!("{folder}/{name}.yaml"), vec![object])
}
