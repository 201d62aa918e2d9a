//! `modelplane cel eval`.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use modelplane_cel::device::{Device, PreparedDevice, Selector};
use serde_json::{Value, json};

use super::device::device_from_json;
use crate::outcome::{CommandError, CommandResult, Verdict};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Selectors to compile and evaluate
    #[arg(required_unless_present = "input", value_name = "EXPR")]
    expressions: Vec<String>,

    /// A device, or an InferenceClass whose devices are used, as YAML or JSON
    #[arg(long, value_name = "FILE")]
    device: Option<PathBuf>,

    /// Evaluate {"expr", "device"} documents, one a line, and print one JSON answer a line
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["expressions", "device"])]
    input: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        match &self.input {
            Some(file) => answer_lines(file),
            None => self.show(),
        }
    }

    /// Compiles each expression and evaluates it on each device, for people to read.
    fn show(&self) -> CommandResult {
        let documents = self.devices()?;
        let devices = documents.iter().map(|document| {
            let name = document["name"].as_str().or_else(|| document["driver"].as_str()).unwrap_or("device");
            let device =
                device_from_json(document).map_err(|error| CommandError::new(format!("{name}: {error}")))?;
            let device =
                PreparedDevice::new(device).map_err(|error| CommandError::new(format!("{name}: {error}")))?;
            Ok((name, device))
        });
        let devices = devices.collect::<Result<Vec<_>, CommandError>>()?;
        let mut verdict = Verdict::Good;
        let mut text = String::new();
        for expression in &self.expressions {
            text.push_str(expression);
            match Selector::compile(expression) {
                Ok(selector) => text.push_str(&describe(&selector, &devices, &mut verdict)),
                Err(error) => {
                    verdict = Verdict::Bad;
                    text.push_str(&format!("\n  does not compile: {error}\n{}\n", indent(&error.snippet())));
                    if let Some(hint) = error.hint() {
                        text.push_str(&format!("  hint: {hint}\n"));
                    }
                }
            }
        }
        output::print(&text)?;
        Ok(verdict)
    }

    fn devices(&self) -> Result<Vec<Value>, CommandError> {
        let Some(file) = &self.device else { return Ok(Vec::new()) };
        let text = fs::read_to_string(file)
            .map_err(|error| CommandError::new(format!("cannot read {}: {error}", file.display())))?;
        let document: Value = serde_saphyr::from_str(&text)
            .map_err(|error| CommandError::new(format!("{}: not valid YAML: {error}", file.display())))?;
        match document["spec"]["devices"].as_array() {
            Some(devices) => Ok(devices.clone()),
            None => Ok(vec![document]),
        }
    }
}

fn describe(selector: &Selector, devices: &[(&str, PreparedDevice<'_>)], verdict: &mut Verdict) -> String {
    let mut text = format!("\n  compiles; worst-case cost {}\n", selector.estimated_cost());
    for (name, device) in devices {
        let evaluation = selector.evaluate(device);
        let result = match &evaluation.result {
            Ok(true) => "matches".to_owned(),
            Ok(false) => "does not match".to_owned(),
            Err(error) => format!("error: {error}"),
        };
        if !matches!(evaluation.result, Ok(true)) {
            *verdict = Verdict::Bad;
        }
        text.push_str(&format!("  {name}: {result} (cost {})\n", evaluation.cost));
        for (path, value) in selector.explain_inputs(device) {
            text.push_str(&format!("    {path} = {value}\n"));
        }
    }
    text
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn answer_lines(file: &Path) -> CommandResult {
    let text = fs::read_to_string(file)
        .map_err(|error| CommandError::new(format!("cannot read {}: {error}", file.display())))?;
    let mut out = BufWriter::new(io::stdout().lock());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        writeln!(out, "{}", answer(line)).map_err(CommandError::new)?;
    }
    out.flush().map_err(CommandError::new)?;
    Ok(Verdict::Good)
}

/// Answers one `{"expr", "device"}` document.
fn answer(line: &str) -> Value {
    let document: Value = match serde_json::from_str(line) {
        Ok(document) => document,
        Err(error) => return failed(format!("not JSON: {error}")),
    };
    let selector = match Selector::compile(document["expr"].as_str().unwrap_or_default()) {
        Ok(selector) => selector,
        Err(error) => return failed(error),
    };
    let prepared = device_from_json(&document["device"])
        .and_then(|device: Device<'_>| PreparedDevice::new(device).map_err(|error| error.to_string()));
    let device = match prepared {
        Ok(device) => device,
        Err(error) => return json!({"compile": "ok", "result": "error", "cost": 0, "message": error}),
    };
    let evaluation = selector.evaluate(&device);
    match evaluation.result {
        Ok(result) => json!({"compile": "ok", "result": result, "cost": evaluation.cost}),
        Err(error) => {
            json!({"compile": "ok", "result": "error", "cost": evaluation.cost, "message": error.to_string()})
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Value {
    json!({"compile": "error", "result": "error", "message": error.to_string()})
}
