//! The patterns that occur in our schemas, as functions.
//!
//! They are few, so this crate does without a regular-expression engine; a test holds the table complete.

use crate::duration::{self, Duration};

/// A pattern of the schemas.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The regular expression, as in the schema.
    pub expression: &'static str,
    /// What it asks for, in words that follow "should be".
    pub wanted: &'static str,
    /// Whether a text matches.
    pub matches: fn(&str) -> bool,
}

/// Every pattern of the schemas.
pub const PATTERNS: &[Pattern] = &[
    Pattern {
        expression: "^cr-[0-9a-f]+$",
        wanted: "'cr-' and hexadecimal digits in lower case, e.g. cr-0123456789abcdef0",
        matches: is_capacity_reservation,
    },
    Pattern {
        expression: "^[a-z][a-z0-9]{0,11}$",
        wanted: "up to 12 lower-case letters and digits, the first a letter",
        matches: is_aks_pool,
    },
    Pattern {
        expression: duration::PATTERN,
        wanted: "up to four whole numbers, each with h, m, s or ms, e.g. 90s or 1h30m",
        matches: |text| Duration::from(text).to_std().is_some(),
    },
    Pattern { expression: "^/", wanted: "a path that starts with /", matches: |text| text.starts_with('/') },
];

/// What the text should have been, if it does not match the pattern. A pattern that is not in the table
/// matches everything.
pub(super) fn mismatch(expression: &str, text: &str) -> Option<&'static str> {
    let pattern = PATTERNS.iter().find(|pattern| pattern.expression == expression)?;
    (!(pattern.matches)(text)).then_some(pattern.wanted)
}

fn is_capacity_reservation(text: &str) -> bool {
    text.strip_prefix("cr-").is_some_and(|id| {
        !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

fn is_aks_pool(text: &str) -> bool {
    text.len() <= 12
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}
