//! `xtask tidy`: rules of the code base that no compiler checks.
//!
//! The pure crates must stay pure (no runtime, client, clock, randomness, environment or file access in
//! their sources, and none in what they depend on), files must stay small, and nothing unfinished or
//! foreign may be left behind.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::files::{Result, below, read, root};

/// Crates that compute and nothing else.
const PURE: [&str; 3] = ["api", "cel", "core"];

/// Dependencies a pure crate cannot have, directly or not.
const IMPURE_DEPENDENCIES: [&str; 14] = [
    "async-std",
    "axum",
    "getrandom",
    "hyper",
    "kube",
    "mio",
    "rand",
    "reqwest",
    "rustls",
    "socket2",
    "tempfile",
    "time",
    "tokio",
    "tonic",
];

/// Texts that betray an impure source.
const IMPURE_SOURCE: [&str; 10] = [
    "std::env",
    "std::fs",
    "std::io::stdin",
    "std::net::Tcp",
    "std::net::Udp",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant::now",
    "thread_rng",
];

/// Longest source file, tests included.
const MAX_LINES: usize = 1000;

/// Texts that may not be left in sources.
const LEFTOVERS: [&str; 4] =
    [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("FIX", "ME"), concat!("dbg", "!(")];

/// Checks everything; the error lists every finding.
pub(crate) fn run() -> Result<()> {
    let mut findings = impure_dependencies()?;
    for path in below(&root(), "rs")? {
        let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let text = read(&path)?;
        findings.extend(check_source(&shown, &text));
    }
    findings.extend(check_links()?);
    if findings.is_empty() { Ok(()) } else { Err(format!("tidy found:\n  {}", findings.join("\n  "))) }
}

fn check_source(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES && !path.contains("/generated/") {
        findings.push(format!("{path}: {lines} lines; split it (at most {MAX_LINES})"));
    }
    let leftovers =
        LEFTOVERS.iter().filter(|leftover| text.contains(**leftover) && !path.starts_with("xtask/"));
    findings.extend(leftovers.map(|leftover| format!("{path}: {leftover} is left in it")));
    let is_pure = PURE.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
    if is_pure && !path.ends_with("tests.rs") {
        let impure = IMPURE_SOURCE.iter().filter(|name| code_of(text).contains(**name));
        findings.extend(impure.map(|name| format!("{path}: uses {name}, but its crate is pure")));
    }
    findings
}

/// The text up to its test module, without comment lines.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]").next().unwrap_or(text);
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn impure_dependencies() -> Result<Vec<String>> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let names: HashMap<&str, &str> = list(&metadata["packages"])
        .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
        .collect();
    let nodes: HashMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let mut findings = Vec::new();
    for pure in PURE {
        let name = format!("modelplane-{pure}");
        let Some((id, _)) = names.iter().find(|(_, known)| **known == name) else { continue };
        let reached = reachable(id, &nodes);
        let found =
            reached.iter().filter_map(|id| names.get(id)).filter(|name| IMPURE_DEPENDENCIES.contains(name));
        findings.extend(found.map(|found| format!("crates/{pure} is pure but depends on {found}")));
    }
    Ok(findings)
}

/// Everything a package depends on to run, itself included.
fn reachable<'m>(start: &'m str, nodes: &HashMap<&'m str, &'m Value>) -> BTreeSet<&'m str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(id) = open.pop() {
        if !reached.insert(id) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        let needed = list(&node["deps"])
            .filter(|dependency| list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null()));
        open.extend(needed.filter_map(|dependency| dependency["pkg"].as_str()));
    }
    reached
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Relative links in Markdown files lead somewhere.
fn check_links() -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for path in below(&root(), "md")? {
        let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        for target in read(&path)?.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = file.is_empty() || file.contains("://") || file.contains(' ');
            if !elsewhere && !path.parent().unwrap_or(Path::new("")).join(file).exists() {
                findings.push(format!("{shown}: link to {target} leads nowhere"));
            }
        }
    }
    Ok(findings)
}
