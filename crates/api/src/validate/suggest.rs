//! What someone may have meant who wrote a name that does not exist.

use serde_json::Value;

/// Longer names are not compared; nobody mistypes them into one of ours.
const LONGEST: usize = 64;

/// The known name closest to `name`, if one is close enough to be meant.
pub(super) fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().count() > LONGEST {
        return None;
    }
    let lower = name.to_lowercase();
    // A third of the letters may be wrong, at least one and at most three.
    let tolerated = (name.chars().count() / 3).clamp(1, 3);
    known
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= tolerated)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Where else in the spec a field of this name exists, if at exactly one place.
pub(super) fn elsewhere(schema: &Value, name: &str) -> Option<String> {
    let mut found = Vec::new();
    search(&schema["properties"]["spec"], "spec", name, &mut found);
    match found.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

fn search(schema: &Value, path: &str, name: &str, found: &mut Vec<String>) {
    for (field, child) in schema["properties"].as_object().into_iter().flatten() {
        let below = format!("{path}.{field}");
        search(child, &below, name, found);
        if field == name {
            found.push(below);
        }
    }
    if schema["items"].is_object() {
        search(&schema["items"], &format!("{path}[]"), name, found);
    }
}

/// The number of letters to insert, delete or replace to get from one text to the other (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
