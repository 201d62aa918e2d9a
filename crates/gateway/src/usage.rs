//! Tokens used, as OpenAI's and Anthropic's APIs report them.

use serde_json::Value;

use crate::json::{Found, Wanted};

/// Tokens of one exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the prompt.
    pub prompt: u64,
    /// Of the completion.
    pub completion: u64,
    /// Of the prompt that came from a cache.
    pub cached: u64,
}

/// Where usage stands: outermost, or in the object of an event that wraps a response.
pub const WANTED: Wanted = Wanted { keys: &["usage"], depth: 2, limit: 4096, elements: usize::MAX };

impl Usage {
    /// Takes in a `usage` that was found. Several reports of one exchange add up to the largest of each number:
    /// Anthropic's API reports the prompt first and the completion last, others report running totals.
    pub fn merge(into: &mut Option<Self>, found: &Found) {
        let Some(read) = Self::read(&found.text) else { return };
        let before = into.unwrap_or_default();
        *into = Some(Self {
            prompt: before.prompt.max(read.prompt),
            completion: before.completion.max(read.completion),
            cached: before.cached.max(read.cached),
        });
    }

    fn read(text: &[u8]) -> Option<Self> {
        let usage: Value = serde_json::from_slice(text).ok()?;
        usage.is_object().then_some(())?;
        let number = |pointers: &[&str]| {
            pointers.iter().find_map(|pointer| usage.pointer(pointer)?.as_u64()).unwrap_or_default()
        };
        Some(Self {
            prompt: number(&["/prompt_tokens", "/input_tokens"]),
            completion: number(&["/completion_tokens", "/output_tokens"]),
            cached: number(&[
                "/prompt_tokens_details/cached_tokens",
                "/input_tokens_details/cached_tokens",
                "/cache_read_input_tokens",
            ]),
        })
    }
}
