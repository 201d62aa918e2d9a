//! `modelplane cel quantity`.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use modelplane_cel::Quantity;
use serde_json::{Value, json};

use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Quantities, such as 141Gi or 500m
    #[arg(required_unless_present = "input", value_name = "QUANTITY", allow_negative_numbers = true)]
    quantities: Vec<String>,

    /// Read {"input"} documents, one a line, and print one JSON answer a line
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "quantities")]
    input: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let Some(file) = &self.input else { return self.show() };
        let text = fs::read_to_string(file)
            .map_err(|error| CommandError::new(format!("cannot read {}: {error}", file.display())))?;
        let answers = text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
            match serde_json::from_str::<Value>(line) {
                Ok(document) => answer(document["input"].as_str().unwrap_or_default()).to_string() + "\n",
                Err(error) => {
                    json!({"ok": false, "message": format!("not JSON: {error}")}).to_string() + "\n"
                }
            }
        });
        output::print(&answers.collect::<String>())?;
        Ok(Verdict::Good)
    }

    fn show(&self) -> CommandResult {
        let mut verdict = Verdict::Good;
        let rows = self.quantities.iter().map(|text| match Quantity::parse(text) {
            Ok(quantity) => vec![text.clone(), quantity.to_string(), quantity.is_integer().to_string()],
            Err(error) => {
                verdict = Verdict::Bad;
                vec![text.clone(), format!("error: {error}"), String::new()]
            }
        });
        let table = output::table(&["QUANTITY", "CANONICAL", "INTEGER"], rows.collect::<Vec<_>>());
        output::print(&(table + "\n"))?;
        Ok(verdict)
    }
}

fn answer(text: &str) -> Value {
    match Quantity::parse(text) {
        Ok(quantity) => json!({"ok": true, "canonical": quantity.to_string()}),
        Err(error) => json!({"ok": false, "message": error.to_string()}),
    }
}
