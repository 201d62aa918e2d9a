//! What a run says.

use std::io::Write as _;
use std::time::Duration;

use crate::failure::{Failure, Outcome};
use crate::tools::Tools;

/// How one scenario went.
#[derive(Debug)]
pub struct Result {
    /// The scenario's statement.
    pub statement: &'static str,
    /// How long it took.
    pub time: Duration,
    /// Why it does not hold, if it does not.
    pub outcome: Outcome,
}

/// Writes a line to stdout.
pub fn say(line: &str) {
    // A closed stdout is no reason to stop: the exit code still tells.
    drop(writeln!(std::io::stdout().lock(), "{line}"));
}

/// The versions of everything real.
pub fn versions(tools: &Tools) -> String {
    let rows = tools.versions();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let row = |(name, version): &(String, String)| format!("  {name:width$}  {version}");
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// The table of results.
pub fn table(results: &[Result]) -> String {
    let row = |result: &Result| {
        let verdict = if result.outcome.is_ok() { "holds" } else { "FAILS" };
        format!("  {verdict}  {:>6.1} s  {}", result.time.as_secs_f64(), result.statement)
    };
    let mut lines: Vec<String> = results.iter().map(row).collect();
    let reasons =
        results.iter().filter_map(|result| Some((result.statement, result.outcome.as_ref().err()?)));
    lines.extend(reasons.map(|(statement, failure)| format!("\n{statement}:\n  {}", reason(failure))));
    lines.join("\n")
}

fn reason(failure: &Failure) -> String {
    failure.describe().replace('\n', "\n  ")
}
