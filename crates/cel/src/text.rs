//! The strings extension: functions over code points as cel-go's `ext.Strings` defines them.
//!
//! Each function takes time linear in its input and output. Positions are counted in code points. Texts longer than
//! [`LONGEST_TEXT`] are refused instead of built; Kubernetes has no such limit.

use std::borrow::Cow;

/// Longest text in bytes that a function here builds.
pub const LONGEST_TEXT: usize = 8 << 20;

/// Why a function over texts has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A position outside the text.
    #[error("index out of range: {0}")]
    IndexOutOfRange(i64),
    /// A range whose start lies behind its end.
    #[error("invalid substring range. start: {start}, end: {end}")]
    InvalidRange {
        /// First position.
        start: i64,
        /// Position behind the last.
        end: i64,
    },
    /// The result would exceed [`LONGEST_TEXT`].
    #[error("the resulting string would be longer than {LONGEST_TEXT} bytes")]
    TooLong,
}

/// Number of code points.
pub fn length(text: &str) -> i64 {
    count_to_i64(if text.is_ascii() { text.len() } else { text.chars().count() })
}

/// The code point at a position; nothing right behind the last one.
pub fn char_at(text: &str, index: i64) -> Result<&str, TextError> {
    let start = byte_offset(text, index).ok_or(TextError::IndexOutOfRange(index))?;
    let rest = &text[start..];
    Ok(&rest[..rest.chars().next().map_or(0, char::len_utf8)])
}

/// Position of the first occurrence, or −1.
pub fn index_of(text: &str, wanted: &str) -> i64 {
    text.find(wanted).map_or(-1, |found| length(&text[..found]))
}

/// Position of the first occurrence not before `offset`, or −1. An empty `wanted` is found at any `offset`.
pub fn index_of_from(text: &str, wanted: &str, offset: i64) -> Result<i64, TextError> {
    if wanted.is_empty() {
        return Ok(offset);
    }
    if offset < 0 {
        return Err(TextError::IndexOutOfRange(offset));
    }
    let Some(start) = byte_offset(text, offset) else { return Ok(-1) };
    Ok(text[start..].find(wanted).map_or(-1, |found| offset + length(&text[start..start + found])))
}

/// Position of the last occurrence, or −1.
pub fn last_index_of(text: &str, wanted: &str) -> i64 {
    text.rfind(wanted).map_or(-1, |found| length(&text[..found]))
}

/// Position of the last occurrence that starts not behind `offset`, or −1; also −1 for an `offset` behind the text.
/// An empty `wanted` is found at any `offset`.
pub fn last_index_of_to(text: &str, wanted: &str, offset: i64) -> Result<i64, TextError> {
    if wanted.is_empty() {
        return Ok(offset);
    }
    if offset < 0 {
        return Err(TextError::IndexOutOfRange(offset));
    }
    let Some(start) = byte_offset(text, offset).filter(|start| *start < text.len()) else { return Ok(-1) };
    let end = text.floor_char_boundary(start.saturating_add(wanted.len()));
    Ok(last_index_of(&text[..end], wanted))
}

/// The texts one after the other with `separator` between them.
pub fn join<'text>(
    texts: impl IntoIterator<Item = &'text str>,
    separator: &str,
) -> Result<String, TextError> {
    let mut joined = String::new();
    for (index, text) in texts.into_iter().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
        if joined.len() > LONGEST_TEXT {
            return Err(TextError::TooLong);
        }
    }
    Ok(joined)
}

/// ASCII letters in lower case, all else unchanged.
pub fn lower_ascii(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// ASCII letters in upper case, all else unchanged.
pub fn upper_ascii(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        Cow::Owned(text.to_ascii_uppercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// Replaces the first `limit` occurrences, all if `limit` is negative. An empty `old` occurs before each code point
/// and at the end.
pub fn replace(text: &str, old: &str, new: &str, limit: i64) -> Result<String, TextError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if new.len() > old.len() {
        let occurrences = text.matches(old).take(limit).count();
        let growth = occurrences.checked_mul(new.len() - old.len());
        if growth.is_none_or(|growth| growth.saturating_add(text.len()) > LONGEST_TEXT) {
            return Err(TextError::TooLong);
        }
    }
    Ok(text.replacen(old, new, limit))
}

/// Splits at each occurrence of `separator`, into code points if it is empty; into at most `limit` parts of which the
/// last has the rest, none if `limit` is 0, without bound if it is negative.
pub fn split<'text>(text: &'text str, separator: &str, limit: i64) -> Vec<&'text str> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit == 0 {
        return Vec::new();
    }
    if !separator.is_empty() {
        return text.splitn(limit, separator).collect();
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if parts.len() + 1 == limit { rest.len() } else { first.len_utf8() };
        let (part, behind) = rest.split_at(length);
        parts.push(part);
        rest = behind;
    }
    parts
}

/// The text from a position on.
pub fn substring(text: &str, start: i64) -> Result<&str, TextError> {
    byte_offset(text, start).map(|start| &text[start..]).ok_or(TextError::IndexOutOfRange(start))
}

/// The text from `start` to before `end`.
pub fn substring_range(text: &str, start: i64, end: i64) -> Result<&str, TextError> {
    if start > end {
        return Err(TextError::InvalidRange { start, end });
    }
    let rest = substring(text, start)?;
    let length = byte_offset(rest, end - start).ok_or(TextError::IndexOutOfRange(end))?;
    Ok(&rest[..length])
}

/// The text without Unicode white space at its ends.
pub fn trim(text: &str) -> &str {
    text.trim()
}

/// The text as a CEL literal in double quotes.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// The code points in reverse order (strings version 3; not available to DRA selectors).
pub fn reverse(text: &str) -> String {
    text.chars().rev().collect()
}

/// Byte offset of a position between 0 and the length.
fn byte_offset(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    let starts = text.char_indices().map(|(start, _)| start).chain(std::iter::once(text.len()));
    starts.into_iter().nth(index)
}

fn count_to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: fn(i64) -> Result<&'static str, TextError> = |index| Err(TextError::IndexOutOfRange(index));

    #[test]
    fn positions_are_counted_in_code_points() {
        assert_eq!(length("a©ü😀"), 4);
        let cases =
            [(0, Ok("a")), (3, Ok("😀")), (4, Ok("")), (5, OUT(5)), (-1, OUT(-1)), (i64::MAX, OUT(i64::MAX))];
        for (index, expected) in cases {
            assert_eq!(char_at("a©ü😀", index), expected, "{index}");
        }
        assert_eq!(index_of("a©ü😀", "😀"), 3);
        assert_eq!(last_index_of("üaüa", "ü"), 2);
    }

    #[test]
    fn searching_follows_the_reference_at_the_borders() {
        let first = [
            ("abcabc", "bc", 1, 1),
            ("abcabc", "bc", 2, 4),
            ("abc", "c", 3, -1),
            ("abc", "c", 9, -1),
            ("", "", 7, 7),
            ("ü", "x", -1, -2),
        ];
        for (text, wanted, offset, expected) in first {
            let found = index_of_from(text, wanted, offset).unwrap_or(-2);
            assert_eq!(found, expected, "{text} {wanted} {offset}");
        }
        let last = [
            ("abcabc", "bc", 4, 4),
            ("abcabc", "bc", 3, 1),
            ("abcabc", "abcabcd", 3, -1),
            ("abc", "a", 3, -1),
            ("aüb", "ü", 1, 1),
            ("aüb", "üb", 1, 1),
            ("aüb", "b", 1, -1),
            ("abc", "", -4, -4),
            ("a", "a", -1, -2),
        ];
        for (text, wanted, offset, expected) in last {
            let found = last_index_of_to(text, wanted, offset).unwrap_or(-2);
            assert_eq!(found, expected, "{text} {wanted} {offset}");
        }
        assert_eq!(last_index_of("hello", ""), 5);
        assert_eq!(index_of("hello", ""), 0);
    }

    #[test]
    fn replacing_and_splitting_treat_nothing_as_a_place_between_code_points() {
        assert_eq!(replace("aü", "", "-", -1).expect("short"), "-a-ü-");
        assert_eq!(replace("aü", "", "-", 2).expect("short"), "-a-ü");
        assert_eq!(replace("hello", "l", "L", 1).expect("short"), "heLlo");
        assert_eq!(replace("hello", "l", "L", 0).expect("short"), "hello");
        let long = "x".repeat(10_000);
        assert_eq!(replace(&long, "", &long, -1), Err(TextError::TooLong));
        let cases: [(&str, &str, i64, &[&str]); 9] = [
            ("a,b,c", ",", -1, &["a", "b", "c"]),
            ("a,b,c", ",", 2, &["a", "b,c"]),
            ("a,b,c", ",", 1, &["a,b,c"]),
            ("a,b,c", ",", 0, &[]),
            ("", ",", -1, &[""]),
            ("", "", -1, &[]),
            ("aüb", "", -1, &["a", "ü", "b"]),
            ("aüb", "", 2, &["a", "üb"]),
            (",", ",", 9, &["", ""]),
        ];
        for (text, separator, limit, expected) in cases {
            assert_eq!(split(text, separator, limit), expected, "{text} {separator} {limit}");
        }
    }

    #[test]
    fn substrings_outside_the_text_are_refused() {
        assert_eq!(substring("aüb", 1), Ok("üb"));
        assert_eq!(substring("aüb", 3), Ok(""));
        assert_eq!(substring("aüb", 4), OUT(4));
        assert_eq!(substring_range("aüb", 1, 2), Ok("ü"));
        assert_eq!(substring_range("aüb", 2, 1), Err(TextError::InvalidRange { start: 2, end: 1 }));
        assert_eq!(substring_range("aüb", 1, 4), OUT(4));
        assert_eq!(substring_range("aüb", -1, 4), OUT(-1));
        assert_eq!(substring_range("aüb", i64::MIN, i64::MAX), OUT(i64::MIN));
    }

    #[test]
    fn other_functions_change_what_they_should() {
        assert_eq!(lower_ascii("ÄBc"), "Äbc");
        assert_eq!(upper_ascii("äBc"), "äBC");
        assert_eq!(trim("\u{85}\u{a0} a b \u{3000}\n"), "a b");
        assert_eq!(quote("a\"\n\\\u{7}ü\u{1}"), "\"a\\\"\\n\\\\\\aü\u{1}\"");
        assert_eq!(reverse("aü😀"), "😀üa");
        assert_eq!(join(["a", "b", ""], ", ").expect("short"), "a, b, ");
        assert_eq!(join([], ", ").expect("short"), "");
    }
}
