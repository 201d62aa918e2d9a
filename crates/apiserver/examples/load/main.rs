//! Load on any Kubernetes API servers, the same on each, as a table of what they did:
//! `load <name>=<kubeconfig> [<name>=<kubeconfig> …]`.
//!
//! Measured over HTTP/2 and TLS, as clients use it: creates and updates by 1 and by 32 callers, a list in pages of 500,
//! and how long it takes until every one of many watchers has a change. Ratios are to the last server. `OBJECTS`,
//! `WATCHERS`, `WRITES` and `ROUNDS` change the size.
//!
//! The client runs beside the servers and takes its share of the machine.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a command")]

mod connection;
mod measure;

use std::path::Path;

use connection::{Outcome, Target};
use measure::{Kind, Measurement, Sizes};

#[tokio::main]
async fn main() -> Outcome<()> {
    let size = |name: &str, default: usize| match std::env::var(name) {
        Ok(text) => text.parse().map_err(|_| format!("{name} must be a number, not {text:?}")),
        Err(_) => Ok(default),
    };
    let sizes = Sizes {
        objects: size("OBJECTS", 10_000)?,
        watchers: size("WATCHERS", 1_000)?,
        writes: size("WRITES", 2_000)?,
        rounds: size("ROUNDS", 20)?,
    };
    let mut servers = Vec::new();
    for argument in std::env::args().skip(1) {
        let (name, kubeconfig) =
            argument.split_once('=').ok_or("servers are given as <name>=<kubeconfig>")?;
        servers.push((name.to_owned(), Target::read(Path::new(kubeconfig))?));
    }
    if servers.is_empty() {
        return Err("name at least one server".into());
    }
    let mut columns = Vec::new();
    for (name, target) in &servers {
        let mut measured = Vec::new();
        for kind in [Kind::ConfigMap, Kind::Custom] {
            eprintln!("{name}: {}", kind.title());
            measured.extend(measure::all(target, kind, &sizes).await?);
        }
        columns.push(measured);
    }
    let names: Vec<&str> = servers.iter().map(|(name, _)| name.as_str()).collect();
    print(&names, &columns);
    Ok(())
}

/// A table in Markdown; a ratio above 1 is in favour of its column.
fn print(names: &[&str], columns: &[Vec<Measurement>]) {
    let last = columns.len() - 1;
    let mut head = vec!["".to_owned()];
    head.extend(names.iter().map(|name| (*name).to_owned()));
    head.extend(names[..last].iter().map(|name| format!("{name} ÷ {}", names[last])));
    println!("| {} |", head.join(" | "));
    println!("|---{}|", "|---:".repeat(head.len() - 1));
    for row in 0..columns[0].len() {
        let mut cells = vec![columns[0][row].title.clone()];
        cells.extend(columns.iter().map(|column| column[row].to_string()));
        cells.extend(
            columns[..last]
                .iter()
                .map(|column| format!("{:.1}", column[row].better_than(&columns[last][row]))),
        );
        println!("| {} |", cells.join(" | "));
    }
}
