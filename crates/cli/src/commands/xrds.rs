//! `modelplane xrds`: the API's definitions.

use clap::{Args, ValueEnum};
use modelplane_api::{kind, xrd};
use serde_json::Value;

use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output::{self, Format};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only these kinds
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,

    /// Which definitions
    #[arg(long = "as", value_enum, default_value_t = Definition::Xrd)]
    kind_of_definition: Definition,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Definition {
    /// Crossplane CompositeResourceDefinitions
    Xrd,
    /// The CustomResourceDefinitions Crossplane makes of them
    Crd,
    /// Crossplane Compositions
    Composition,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let wanted = |info: &kind::KindInfo| {
            self.kinds.is_empty() || self.kinds.iter().any(|name| crate::resolve::is_called(info, name))
        };
        let infos: Vec<_> = kind::ALL.iter().copied().filter(|info| wanted(info)).collect();
        if infos.is_empty() {
            let known: Vec<_> = kind::ALL.iter().copied().map(|info| info.kind).collect();
            return Err(CommandError::new(format!("no kind is called {}", self.kinds.join(" or ")))
                .with_hint(format!("kinds: {}", known.join(", "))));
        }
        if self.output == Format::Table {
            let rows = infos.iter().map(|info| {
                let short = info.short_names.join(",");
                vec![info.kind.to_owned(), info.api_version(), short, info.scope.as_str().to_owned()]
            });
            output::print(&(output::table(&["KIND", "APIVERSION", "SHORTNAMES", "SCOPE"], rows) + "\n"))?;
            return Ok(Verdict::Good);
        }
        let objects: Vec<Value> = infos
            .iter()
            .map(|info| match self.kind_of_definition {
                Definition::Xrd => xrd::xrd(info),
                Definition::Crd => xrd::crd(info),
                Definition::Composition => xrd::composition(info),
            })
            .collect();
        match self.output {
            Format::Json => output::print_json(&objects)?,
            _ => output::print_yaml(&objects)?,
        }
        Ok(Verdict::Good)
    }
}
