//! Tokens used, as OpenAI's and Anthropic's APIs report them.

use std::sync::LazyLock;

use memchr::memmem::Finder as Search;
use serde::Deserialize;
use serde_json::Value;

use crate::json::{Finder, Found, Wanted};

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

/// Looks for usage in a whole response that passes by in pieces.
///
/// Jumps from one `"usage"` to the next and reads on only behind it. Text of a model cannot pass for one: quotes in
/// it are escaped.
#[derive(Debug, Default)]
pub struct UsageScanner {
    /// Bytes of the key that the piece before ended with.
    matched: usize,
    /// Whether what looks like the key has just been read. As a value, it has no colon behind it.
    is_behind_key: bool,
    finder: Option<Finder>,
    /// What was found.
    pub usage: Option<Usage>,
}

const KEY: &[u8] = b"\"usage\"";

const VALUE: Wanted = Wanted { depth: 1, ..WANTED };

impl UsageScanner {
    /// Takes in the next piece.
    pub fn feed(&mut self, mut piece: &[u8]) {
        while let Some(&byte) = piece.first() {
            match (&mut self.finder, self.is_behind_key) {
                (Some(finder), _) => {
                    let (found, taken) = finder.feed(piece);
                    let is_over = found.is_some() || finder.has_ended();
                    if let Some(found) = found {
                        Usage::merge(&mut self.usage, &found);
                    }
                    if is_over {
                        self.finder = None;
                    }
                    piece = &piece[taken..];
                }
                (None, true) if byte.is_ascii_whitespace() => piece = &piece[1..],
                (None, true) => {
                    self.is_behind_key = false;
                    if byte == b':' {
                        let mut finder = Finder::new(VALUE);
                        finder.feed(b"{");
                        finder.feed(KEY);
                        self.finder = Some(finder);
                    }
                }
                (None, false) => match self.key_in(piece) {
                    None => return,
                    Some(behind) => {
                        self.is_behind_key = true;
                        piece = &piece[behind..];
                    }
                },
            }
        }
    }

    /// Where the piece goes on behind the key, which may have begun in the piece before.
    fn key_in(&mut self, piece: &[u8]) -> Option<usize> {
        let before = std::mem::take(&mut self.matched);
        if before > 0 {
            let rest = &KEY[before..];
            let count = rest.len().min(piece.len());
            if piece[..count] == rest[..count] {
                if count == rest.len() {
                    return Some(count);
                }
                self.matched = before + count;
                return None;
            }
        }
        static SEARCH: LazyLock<Search<'static>> = LazyLock::new(|| Search::new(KEY));
        if let Some(at) = SEARCH.find(piece) {
            return Some(at + KEY.len());
        }
        let ends = |count: &usize| piece.ends_with(&KEY[..*count]);
        self.matched = (1..KEY.len()).rev().find(ends).unwrap_or_default();
        None
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
    fn usage_is_found_wherever_it_stands_and_however_the_pieces_break() {
        let cases = [
            (r#"{"id":"x","usage":{"prompt_tokens":7,"completion_tokens":3}}"#, Some((7, 3))),
            (r#"{"response":{"usage" : {"input_tokens":7,"output_tokens":3}},"x":1}"#, Some((7, 3))),
            (r#"{"type":"usage","usage":null,"a":["usage"],"usage":{"prompt_tokens":7}}"#, Some((7, 0))),
            (r#"{"text":"\"usage\":{\"prompt_tokens\":9}","usage":{"prompt_tokens":7}}"#, Some((7, 0))),
            (r#"{"text":"\"usage\":{\"prompt_tokens\":9}"}"#, None),
            (r#"{"usages":{"prompt_tokens":7},"usag":{"prompt_tokens":7}}"#, None),
            (r#"{"a":"usage"}{"prompt_tokens":7}"#, None),
            (r#""""usage"usage":{"#, None),
        ];
        for (text, want) in cases {
            let want = want.map(|(prompt, completion)| Usage { prompt, completion, cached: 0 });
            for size in 1..=text.len() {
                let mut scanner = UsageScanner::default();
                text.as_bytes().chunks(size).for_each(|piece| scanner.feed(piece));
                assert_eq!(scanner.usage, want, "{text} in pieces of {size}");
            }
        }
    }

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
