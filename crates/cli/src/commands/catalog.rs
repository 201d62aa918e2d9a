//! `modelplane catalog`: the default catalog of InferenceClasses.

use clap::{Args, Subcommand};
use modelplane_core::catalog;
use serde_json::{Value, json};

use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output::{self, Format};
use crate::resolve::closest;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the classes
    List(ListArguments),
    /// Print a class as a manifest, with the sources of its figures
    #[command(after_help = "Example:
  modelplane catalog show gke-l4-1x | kubectl apply -f -")]
    Show(ShowArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only classes whose name, provider or summary has this text in it
    #[arg(value_name = "TEXT")]
    filter: Option<String>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// Names of classes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

impl Command {
    pub(crate) fn run(self) -> CommandResult {
        match self {
            Self::List(arguments) => arguments.run(),
            Self::Show(arguments) => arguments.run(),
        }
    }
}

impl ListArguments {
    fn run(self) -> CommandResult {
        let wanted = self.filter.as_deref().unwrap_or_default().to_lowercase();
        let mut entries = catalog::list();
        entries.retain(|entry| {
            let texts = [entry.name, entry.provider, entry.summary];
            texts.iter().any(|text| text.to_lowercase().contains(&wanted))
        });
        if entries.is_empty() {
            return Err(CommandError::new(format!("no class of the catalog has {wanted:?} in it"))
                .with_hint("`modelplane catalog list` shows all"));
        }
        let to_json = |entry: &catalog::Entry| json!({"name": entry.name, "provider": entry.provider, "summary": entry.summary});
        match self.output {
            Format::Table => {
                let rows = entries.iter().map(|entry| [entry.name, entry.provider, entry.summary]);
                let rows = rows.map(|row| row.map(str::to_owned).to_vec());
                output::print(&(output::table(&["NAME", "PROVIDER", "SUMMARY"], rows) + "\n"))?;
            }
            Format::Json => output::print_json(&entries.iter().map(to_json).collect::<Vec<Value>>())?,
            Format::Yaml => output::print_yaml(&entries.iter().map(to_json).collect::<Vec<Value>>())?,
        }
        Ok(Verdict::Good)
    }
}

impl ShowArguments {
    fn run(self) -> CommandResult {
        let entries: Vec<catalog::Entry> =
            self.names.iter().map(|name| find(name)).collect::<Result<_, _>>()?;
        if self.output == Format::Json {
            let objects: Result<Vec<Value>, _> =
                entries.iter().map(|entry| serde_saphyr::from_str(entry.yaml)).collect();
            let objects = objects.map_err(|error| CommandError::new(format!("broken catalog: {error}")))?;
            output::print_json(&json!({"apiVersion": "v1", "kind": "List", "items": objects}))?;
            return Ok(Verdict::Good);
        }
        // As written, for the comments that name the sources.
        let texts: Vec<String> = entries.iter().map(|entry| format!("{}\n", entry.yaml.trim_end())).collect();
        output::print(&texts.join("---\n"))?;
        Ok(Verdict::Good)
    }
}

fn find(name: &str) -> Result<catalog::Entry, CommandError> {
    catalog::show(name).ok_or_else(|| {
        let error = CommandError::new(format!("the catalog has no class {name:?}"));
        match closest(name, catalog::list().iter().map(|entry| entry.name)) {
            Some(close) => error.with_hint(format!("did you mean {close}?")),
            None => error.with_hint("`modelplane catalog list` shows all"),
        }
    })
}
