//! Quantities against what Kubernetes 1.36.2 said about 600 texts, and against exact rational arithmetic.

use std::path::Path;

use modelplane_cel::Quantity;
use serde_json::Value;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/quantity.jsonl");
const SUBSET: &str = include_str!("data/quantity-subset.jsonl");

#[test]
fn every_recorded_quantity_is_read_written_and_compared_as_kubernetes_does() {
    if !Path::new(RECORDED).exists() {
        eprintln!("SKIPPED: {RECORDED} is not there; the copied subset was checked instead");
        return;
    }
    let recorded = std::fs::read_to_string(RECORDED).expect("the recorded vectors can be read");
    assert_eq!(check(&recorded), 600);
}

#[test]
fn the_copied_subset_is_read_written_and_compared_as_kubernetes_does() {
    assert!(check(SUBSET) >= 150);
}

/// Checks each line and returns how many there were.
fn check(lines: &str) -> usize {
    let failures: Vec<String> = lines.lines().filter_map(|line| failure(line).err()).collect();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    lines.lines().count()
}

fn failure(line: &str) -> Result<(), String> {
    let vector: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
    let input = vector["input"].as_str().ok_or("a vector without input")?;
    let quantity = match (Quantity::parse(input), vector["ok"] == true) {
        (Err(_), false) => return Ok(()),
        (Ok(quantity), true) => quantity,
        (outcome, expected) => return Err(format!("{input}: {outcome:?}, expected ok = {expected}")),
    };
    if let Some(canonical) = vector["canonical"].as_str()
        && canonical != quantity.to_string()
    {
        return Err(format!("{input}: written as {quantity}, expected {canonical}"));
    }
    for (other, expected) in vector["cmp"].as_object().into_iter().flatten() {
        let order = quantity.cmp(&Quantity::parse(other).map_err(|error| error.to_string())?);
        if Some(order as i64) != expected.as_i64() {
            return Err(format!("{input} against {other}: {order:?}, expected {expected}"));
        }
    }
    Ok(())
}
