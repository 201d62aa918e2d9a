//! The contents of string and bytes literals: quotes, raw prefixes, escapes.

use std::borrow::Cow;

/// The text of a string literal given with its quotes and optional `r` prefix.
pub(crate) fn string(token: &str) -> Result<Cow<'_, str>, &'static str> {
    let (body, raw) = body(token);
    if !body.contains('\r') && (raw || !body.contains('\\')) {
        return Ok(Cow::Borrowed(body));
    }
    let body = normalize_newlines(body);
    if raw {
        return Ok(Cow::Owned(body.into_owned()));
    }
    let mut text = String::with_capacity(body.len());
    let mut rest = body.as_ref();
    while let Some(position) = rest.find('\\') {
        text.push_str(&rest[..position]);
        let (escape, tail) = escape(&rest[position + 1..])?;
        let code_point = match escape {
            Escape::Character(character) => u32::from(character),
            Escape::Byte(byte) => u32::from(byte),
            Escape::CodePoint(code_point) => code_point,
        };
        text.push(char::from_u32(code_point).ok_or("the escape is not a unicode code point")?);
        rest = tail;
    }
    text.push_str(rest);
    Ok(Cow::Owned(text))
}

/// The bytes of a literal given without its `b` prefix.
pub(crate) fn bytes(token: &str) -> Result<Vec<u8>, &'static str> {
    let (body, raw) = body(token);
    let body = normalize_newlines(body);
    if raw {
        return Ok(body.as_bytes().to_vec());
    }
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body.as_ref();
    while let Some(position) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..position]);
        let (escape, tail) = escape(&rest[position + 1..])?;
        match escape {
            Escape::Character(character) => bytes.push(character as u8),
            Escape::Byte(byte) => bytes.push(byte),
            Escape::CodePoint(_) => return Err("\\u and \\U escapes are not allowed in bytes"),
        }
        rest = tail;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// What stands between the quotes, and whether escapes are to be left alone.
fn body(token: &str) -> (&str, bool) {
    let (quoted, raw) = match token.as_bytes().first() {
        Some(b'r' | b'R') => (&token[1..], true),
        _ => (token, false),
    };
    let quotes =
        if quoted.len() >= 6 && (quoted.starts_with("\"\"\"") || quoted.starts_with("'''")) { 3 } else { 1 };
    (&quoted[quotes..quoted.len() - quotes], raw)
}

fn normalize_newlines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

enum Escape {
    Character(char),
    Byte(u8),
    CodePoint(u32),
}

/// Reads one escape, of which `text` starts after the backslash.
fn escape(text: &str) -> Result<(Escape, &str), &'static str> {
    const INCOMPLETE: &str = "the escape sequence is incomplete";
    let first = text.bytes().next().ok_or(INCOMPLETE)?;
    let plain = |character| Ok((Escape::Character(character), &text[1..]));
    let digits = |start: usize, count: usize, radix: u32| -> Result<(u32, &str), &'static str> {
        let digits = text.get(start..start + count).ok_or(INCOMPLETE)?;
        if !digits.bytes().all(|byte| char::from(byte).is_digit(radix)) {
            return Err(INCOMPLETE);
        }
        let value = u32::from_str_radix(digits, radix).map_err(|_| INCOMPLETE)?;
        Ok((value, &text[start + count..]))
    };
    match first {
        b'a' => plain('\x07'),
        b'b' => plain('\x08'),
        b'f' => plain('\x0c'),
        b'n' => plain('\n'),
        b'r' => plain('\r'),
        b't' => plain('\t'),
        b'v' => plain('\x0b'),
        b'\\' | b'\'' | b'"' | b'`' | b'?' => plain(char::from(first)),
        b'x' | b'X' => digits(1, 2, 16).map(|(value, tail)| (Escape::Byte(value as u8), tail)),
        b'u' => digits(1, 4, 16).map(|(value, tail)| (Escape::CodePoint(value), tail)),
        b'U' => digits(1, 8, 16).map(|(value, tail)| (Escape::CodePoint(value), tail)),
        b'0'..=b'3' => digits(0, 3, 8).map(|(value, tail)| (Escape::Byte(value as u8), tail)),
        _ => Err("the escape sequence is unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded() {
        for (token, expected) in [
            (r#""a\n""#, "a\n"),
            (r#"'it\'s'"#, "it's"),
            (r#""\x41\101\u00e9\U0001F600""#, "AA\u{e9}\u{1F600}"),
            (r#"r"\d""#, r"\d"),
            ("'''a'b'''", "a'b"),
            (r#""""x"y""""#, r#"x"y"#),
            (r#""\xff""#, "\u{ff}"),
        ] {
            assert_eq!(string(token).as_deref(), Ok(expected), "{token}");
        }
        assert_eq!(bytes(r#""\xff\377a""#), Ok(vec![0xff, 0xff, b'a']));
        assert!(bytes(r#""\u0041""#).is_err());
        assert!(string(r#""\uD800""#).is_err());
    }
}
