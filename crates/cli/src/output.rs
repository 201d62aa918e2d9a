//! How data is printed: tables for people, YAML and JSON for programs.

use std::io::{self, Write};

use clap::ValueEnum;
use comfy_table::{Table, presets};
use serde_json::Value;

use crate::outcome::CommandError;

/// Formats of commands that print objects or tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    /// YAML, one document per object
    Yaml,
    /// JSON: a list
    Json,
}

/// A table in kubectl's style: upper-case headings, columns separated by spaces.
pub(crate) fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Writes text to stdout; a closed pipe ends quietly.
pub(crate) fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| CommandError::new(format!("cannot write to stdout: {error}"))),
    }
}

/// Prints objects as YAML documents.
pub(crate) fn print_yaml<'v>(objects: impl IntoIterator<Item = &'v Value>) -> Result<(), CommandError> {
    print(&to_yaml(objects)?)
}

/// Objects as YAML documents.
pub(crate) fn to_yaml<'v>(objects: impl IntoIterator<Item = &'v Value>) -> Result<String, CommandError> {
    let mut text = String::new();
    for object in objects {
        let document = serde_saphyr::to_string(object)
            .map_err(|error| CommandError::new(format!("cannot write an object as YAML: {error}")))?;
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(document.trim_start_matches("---\n"));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

/// Prints a value as indented JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CommandError::new(format!("cannot write JSON: {error}")))?;
    print(&(text + "\n"))
}

/// A value as the JSON tree that is printed.
pub(crate) fn to_json(value: &impl serde::Serialize) -> Result<Value, CommandError> {
    serde_json::to_value(value).map_err(|error| CommandError::new(format!("cannot write JSON: {error}")))
}
