//! `modelplane function run`: compositions on recorded requests, without a server.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use modelplane_crossplane::json::{request_from_json, response_to_json};
use modelplane_crossplane::{Step, run, run_step};
use serde_json::{Value, json};

use crate::outcome::{CommandError, CommandResult, Verdict};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Requests: protobuf JSON (.json), one document a line (.jsonl), or wire bytes (.pb)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// How to print responses
    #[arg(long, value_enum, default_value_t = Format::Json)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Protobuf JSON, one line per response
    Json,
    /// Protobuf JSON, indented
    Pretty,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let mut out = BufWriter::new(io::stdout().lock());
        for file in &self.files {
            self.answer_file(file, &mut out)?;
        }
        out.flush().map_err(CommandError::new)?;
        Ok(Verdict::Good)
    }

    fn answer_file(&self, file: &Path, out: &mut impl Write) -> Result<(), CommandError> {
        let unreadable = |error| CommandError::new(format!("cannot read {}: {error}", file.display()));
        if file.extension().is_some_and(|extension| extension == "pb") {
            let request = fs::read(file).map_err(unreadable)?;
            return self.print(out, answer_bytes(&request));
        }
        let text = fs::read_to_string(file).map_err(unreadable)?;
        if file.extension().is_some_and(|extension| extension == "jsonl") {
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                self.print(out, answer_text(line))?;
            }
            return Ok(());
        }
        self.print(out, answer_text(&text))
    }

    fn print(&self, out: &mut impl Write, answer: Value) -> Result<(), CommandError> {
        match self.output {
            Format::Json => writeln!(out, "{answer}"),
            Format::Pretty => writeln!(out, "{answer:#}"),
        }
        .map_err(CommandError::new)
    }
}

/// Answers one document: `{"function"?, "request"}`, or a bare request.
fn answer_text(text: &str) -> Value {
    let document: Value = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(error) => return refusal(format!("not JSON: {error}")),
    };
    let request = match request_from_json(document.get("request").unwrap_or(&document)) {
        Ok(request) => request,
        Err(error) => return refusal(error),
    };
    match document.get("function").and_then(Value::as_str) {
        Some(function) => show(run_step(&request, Step::from_name(function))),
        None => answer_bytes(&request),
    }
}

fn answer_bytes(request: &[u8]) -> Value {
    show(run(request))
}

fn show(response: Result<Vec<u8>, modelplane_crossplane::RequestError>) -> Value {
    match response.map(|bytes| response_to_json(&bytes)) {
        Ok(Ok(json)) => json,
        Ok(Err(error)) => refusal(error),
        Err(error) => refusal(error),
    }
}

fn refusal(error: impl std::fmt::Display) -> Value {
    json!({ "error": error.to_string() })
}
