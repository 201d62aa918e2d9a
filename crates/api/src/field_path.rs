//! Where a field stands in a document, written as people write it: `spec.engines[0].name`.

use std::fmt::Write as _;

/// Extends a path by a field or map key. Keys that a reader could take for several steps are quoted.
pub fn field(path: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match (plain, path.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{path}.{name}"),
        (false, _) => format!("{path}[{name:?}]"),
    }
}

/// Extends a path by the place in a list.
pub fn index(path: &str, position: usize) -> String {
    let mut longer = path.to_owned();
    // Writing to a String cannot fail.
    let _ = write!(longer, "[{position}]");
    longer
}

/// What follows `prefix` in `path`, if `path` is at or below it.
pub fn below<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(prefix)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}
