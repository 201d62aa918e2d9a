//! "Did you mean": the closest of the known names.

/// The known name closest to `written`, if it is close enough to be a misspelling.
pub(crate) fn closest<'n>(written: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let allowed = match written.chars().count() {
        0..=2 => return None,
        3..=5 => 1,
        6..=10 => 2,
        11..=64 => 3,
        _ => return None,
    };
    known
        .into_iter()
        .filter(|name| *name != written && name.len().abs_diff(written.len()) <= allowed)
        .map(|name| (distance(written, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words, ignoring case.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().map(|character| character.to_ascii_lowercase()).collect();
    let right: Vec<char> = right.chars().map(|character| character.to_ascii_lowercase()).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, &a) in left.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, &b) in right.iter().enumerate() {
            let mut best = (row[j] + usize::from(a != b)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a == right[j - 1] && left[i - 1] == b {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn misspellings_are_recognised() {
        let known = ["driver", "attributes", "capacity", "allowMultipleAllocations"];
        assert_eq!(closest("atributes", known), Some("attributes"));
        assert_eq!(closest("capactiy", known), Some("capacity"));
        assert_eq!(closest("Driver", known), Some("driver"));
        assert_eq!(closest("memory", known), None);
    }
}
