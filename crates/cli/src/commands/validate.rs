//! `modelplane validate`: finds mistakes in manifests before anything is applied.
//!
//! Per object: schema, CEL rules of the schema, selectors. Over all of them: references and lints.

mod hardware;
mod lints;
mod references;
mod rules;
mod selectors;

use clap::Args;
use modelplane_api::kind::{self, UnknownKind};
use serde::Serialize;
use serde_json::Value;

use crate::manifests::{Manifest, Place, Sources};
use crate::outcome::{CommandResult, Verdict};
use crate::output::{self, Format};
use crate::view::count;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  modelplane validate -f fleet/ -R
  modelplane validate -f model.yaml --partial --strict

Each finding is file:line: severity: field: problem. The exit code is 1 if there is an error, and with
--strict if there is a warning.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    sources: Sources,

    /// The manifests are only a part: objects they refer to may exist elsewhere
    #[arg(long)]
    partial: bool,

    /// Warnings fail the check too
    #[arg(long)]
    strict: bool,

    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Error,
    Warning,
}

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    place: Place,
    severity: Severity,
    path: String,
    message: String,
    /// The text in question, with a caret below it.
    snippet: Option<String>,
    hint: Option<String>,
}

impl Finding {
    fn new(
        manifest: &Manifest,
        severity: Severity,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let path = path.into();
        let place = manifest.place(&path);
        Self { place, severity, path, message: message.into(), snippet: None, hint: None }
    }

    fn error(manifest: &Manifest, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(manifest, Severity::Error, path, message)
    }

    fn warning(manifest: &Manifest, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(manifest, Severity::Warning, path, message)
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Arguments {
    pub(crate) fn run(self) -> CommandResult {
        let manifests = self.sources.load()?;
        let mut findings: Vec<Finding> = manifests
            .broken
            .iter()
            .map(|(place, message)| Finding {
                place: place.clone(),
                severity: Severity::Error,
                path: String::new(),
                message: message.clone(),
                snippet: None,
                hint: None,
            })
            .collect();
        for manifest in &manifests.items {
            findings.extend(check(manifest));
        }
        let reference_severity = if self.partial { Severity::Warning } else { Severity::Error };
        findings.extend(references::check(&manifests.items, reference_severity));
        findings.extend(lints::check(&manifests.items));
        findings.extend(hardware::check(&manifests.items));
        findings.sort_by(|one, other| (&one.place, one.severity).cmp(&(&other.place, other.severity)));
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
        self.print(manifests.items.len(), &findings, errors)?;
        let bad = errors > 0 || (self.strict && !findings.is_empty());
        Ok(if bad { Verdict::Bad } else { Verdict::Good })
    }

    fn print(
        &self,
        objects: usize,
        findings: &[Finding],
        errors: usize,
    ) -> Result<(), crate::outcome::CommandError> {
        if self.output != Format::Table {
            let list: Vec<Value> = findings.iter().map(Finding::to_json).collect();
            return match self.output {
                Format::Json => output::print_json(&list),
                _ => output::print_yaml(&list),
            };
        }
        let mut text: String = findings.iter().map(Finding::describe).collect();
        let warnings = findings.len() - errors;
        text.push_str(&match findings.len() {
            0 => format!("{}, no problems\n", count(objects, "object")),
            _ => format!(
                "{}, {}, {}\n",
                count(objects, "object"),
                count(errors, "error"),
                count(warnings, "warning")
            ),
        });
        output::print(&text)
    }
}

impl Finding {
    /// `file:line: severity: field: problem`, and the hint below it.
    fn describe(&self) -> String {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let path = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        let mut text = format!("{}: {severity}: {path}{}\n", self.place, self.message);
        for line in self.snippet.iter().flat_map(|snippet| snippet.lines()) {
            text.push_str(&format!("    {line}\n"));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("  hint: {hint}\n"));
        }
        text
    }

    fn to_json(&self) -> Value {
        serde_json::json!({
            "file": self.place.file, "line": self.place.line, "severity": self.severity, "field": self.path,
            "message": self.message, "hint": self.hint,
        })
    }
}

/// Checks one object on its own.
fn check(manifest: &Manifest) -> Vec<Finding> {
    let problems = match modelplane_api::validate(&manifest.body) {
        Ok(problems) => problems,
        Err(UnknownKind::Foreign { .. }) => return Vec::new(),
        Err(error) => {
            // The message names the field.
            let finding = Finding::error(manifest, "apiVersion", error.to_string());
            return vec![Finding { path: String::new(), ..finding }];
        }
    };
    // Rules assume the right types; on a broken object they would say the same again, less well.
    if problems.is_empty() {
        return [rules::check(manifest), selectors::check(manifest)].concat();
    }
    let mut findings: Vec<Finding> = problems
        .into_iter()
        .map(|problem| {
            let finding = Finding::error(manifest, problem.path, problem.message);
            Finding { hint: problem.hint, ..finding }
        })
        .collect();
    findings.extend(selectors::check(manifest));
    findings
}

/// The manifests of a kind of ours.
fn of_kind<'m>(manifests: &'m [Manifest], kind: &'m str) -> impl Iterator<Item = &'m Manifest> {
    manifests.iter().filter(move |manifest| kind::of(&manifest.body).is_ok_and(|info| info.kind == kind))
}

/// An object's namespace; `default` if it names none.
fn namespace(manifest: &Manifest) -> &str {
    manifest.body["metadata"]["namespace"].as_str().unwrap_or("default")
}

fn name(manifest: &Manifest) -> &str {
    manifest.body["metadata"]["name"].as_str().unwrap_or_default()
}

/// A field of a ModelDeployment's template, in either published shape, with the path it stands under.
fn template_field<'m>(manifest: &'m Manifest, field: &str) -> Option<(String, &'m Value)> {
    let spec = &manifest.body["spec"];
    let nested = (format!("spec.template.spec.{field}"), &spec["template"]["spec"][field]);
    let inline = (format!("spec.{field}"), &spec[field]);
    [nested, inline].into_iter().find(|(_, value)| !value.is_null())
}
