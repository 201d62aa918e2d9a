//! Tokens used, as OpenAI's and Anthropic's APIs report them.

use serde::Deserialize;
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
        if text.first() != Some(&b'{') {
            return None;
        }
        serde_json::from_slice::<Reported>(text).map(Self::from).ok().or_else(|| Self::read_leniently(text))
    }

    /// Reads what it can where something is not of the usual type.
    fn read_leniently(text: &[u8]) -> Option<Self> {
        let usage: Value = serde_json::from_slice(text).ok()?;
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

/// `usage` as it usually is.
#[derive(Deserialize)]
struct Reported {
    prompt_tokens: Option<u64>,
    input_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    output_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    input_tokens_details: Option<Details>,
    cache_read_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl From<Reported> for Usage {
    fn from(reported: Reported) -> Self {
        let details = reported.prompt_tokens_details.or(reported.input_tokens_details);
        let cached = details.and_then(|details| details.cached_tokens).or(reported.cache_read_input_tokens);
        Self {
            prompt: reported.prompt_tokens.or(reported.input_tokens).unwrap_or_default(),
            completion: reported.completion_tokens.or(reported.output_tokens).unwrap_or_default(),
            cached: cached.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_in_every_dialect_and_as_far_as_it_makes_sense() {
        let cases = [
            (r#"{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}"#, Some((7, 3, 0))),
            (r#"{"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":5}}"#, Some((7, 0, 5))),
            (r#"{"input_tokens":7,"output_tokens":3,"cache_read_input_tokens":5}"#, Some((7, 3, 5))),
            (r#"{"input_tokens":7,"input_tokens_details":{"cached_tokens":5}}"#, Some((7, 0, 5))),
            (r#"{"prompt_tokens":7.5,"completion_tokens":3,"prompt_tokens_details":null}"#, Some((0, 3, 0))),
            (r#"{"prompt_tokens":-1,"completion_tokens":"3","prompt_tokens_details":[]}"#, Some((0, 0, 0))),
            ("null", None),
            ("[1]", None),
            ("7", None),
            ("{", None),
        ];
        for (text, want) in cases {
            let want = want.map(|(prompt, completion, cached)| Usage { prompt, completion, cached });
            assert_eq!(Usage::read(text.as_bytes()), want, "{text}");
        }
    }
}
