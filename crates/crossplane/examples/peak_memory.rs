//! Peak memory of one ModelDeployment composition, per size of fleet, against the size of its request.
//!
//! `cargo run --release -p modelplane-crossplane --example peak_memory` (Linux). Each size runs in a process of
//! its own that reads the request from a file, so that nothing of the generator counts: the peak resident set
//! less what the process needs without a request, request and response included.

#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::error::Error;
use std::path::Path;
use std::process::Command;

#[path = "../../core/benches/support/fleet.rs"]
mod fleet;

use fleet::{FieldOrder, Fleet, SIZES, Situation, Size};

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(path) => measure(Path::new(&path)),
        None => measure_all(),
    }
}

/// Prints a line per size.
fn measure_all() -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    println!("{:<10} {:<8} {:>12} {:>12} {:>7}", "fleet", "", "request kB", "peak kB", "ratio");
    for size in SIZES {
        for situation in [Situation::Steady, Situation::Placing] {
            let path = std::env::temp_dir().join(format!("modelplane-{}-{situation:?}.pb", size.name()));
            std::fs::write(&path, Fleet::generate(size, situation, FieldOrder::Random).request())?;
            let output = Command::new(&program).arg(&path).output()?;
            std::fs::remove_file(&path)?;
            let numbers = String::from_utf8(output.stdout)?;
            let mut numbers = numbers.split_whitespace().map(str::parse::<u64>);
            let (Some(Ok(request)), Some(Ok(peak))) = (numbers.next(), numbers.next()) else {
                return Err("the measuring process did not answer".into());
            };
            let ratio = peak as f64 / request as f64;
            println!(
                "{:<10} {:<8} {request:>12} {peak:>12} {ratio:>7.2}",
                size.name(),
                format!("{situation:?}")
            );
        }
    }
    Ok(())
}

/// Prints the size of the request and the peak it caused, in kB.
fn measure(path: &Path) -> Result<(), Box<dyn Error>> {
    // A first call brings the program's own pages into memory.
    let small = Size { clusters: 64, replicas: 64 };
    modelplane_crossplane::run(&Fleet::generate(small, Situation::Placing, FieldOrder::Random).request())?;
    let before = peak()?;
    let request = std::fs::read(path)?;
    let response = modelplane_crossplane::run(&request)?;
    let after = peak()?;
    println!("{} {}", request.len() / 1024, after.saturating_sub(before));
    drop(response);
    Ok(())
}

/// The process's peak resident set so far, in kB.
fn peak() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
