//! RE2 patterns for callers outside expressions, such as the `pattern` of a schema.

use std::sync::Arc;

use crate::library::regex::{LazyPattern, MAXIMUM_WEIGHT};

/// A pattern with the syntax and meaning that Go's `regexp` gives it, cheap to clone, compiled on first use.
#[derive(Debug, Clone)]
pub struct Pattern(Arc<LazyPattern>);

impl Pattern {
    /// Checks the syntax of a pattern and bounds its size; the error says what is wrong.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let parsed = LazyPattern::new(pattern)?;
        if parsed.weight() > MAXIMUM_WEIGHT {
            return Err("the pattern is too large".to_owned());
        }
        Ok(Self(Arc::new(parsed)))
    }

    /// Whether the pattern matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.get().is_ok_and(|pattern| pattern.is_match(text))
    }
}
