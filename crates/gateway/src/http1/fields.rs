//! Header fields as both sides read and write them (RFC 9112 §5, §6).

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};

use super::Malformed;

/// Appends a field's line.
pub(crate) fn line(head: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    head.extend_from_slice(name.as_str().as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// Appends the line that announces a body's length.
pub(crate) fn length_line(head: &mut Vec<u8>, length: u64) {
    head.extend_from_slice(b"content-length: ");
    decimal(head, length);
    head.extend_from_slice(b"\r\n");
}

fn decimal(text: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

/// The headers of parsed lines. Values are slices of `whole`, which is a copy of the `text` that was parsed.
pub(crate) fn headers(
    lines: &[httparse::Header<'_>],
    text: &[u8],
    whole: &Bytes,
) -> Result<HeaderMap, Malformed> {
    const MALFORMED: Malformed = Malformed("it has a malformed header");
    let mut headers = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| MALFORMED)?;
        let value = whole.slice(place(line.value, text));
        let value = HeaderValue::from_maybe_shared(value).map_err(|_| MALFORMED)?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Where a part of a text stands in it.
pub(crate) fn place(part: &[u8], text: &[u8]) -> std::ops::Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// Whether a line ends in a line feed alone, which some take for its end and others do not (§2.2).
pub(crate) fn has_bare_line_feed(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', text).any(|at| at == 0 || text[at - 1] != b'\r')
}

/// Whether a `Connection` header lists an option.
pub(crate) fn connection_lists(headers: &HeaderMap, option: &[u8]) -> bool {
    lists(headers, &CONNECTION, option)
}

/// Whether one of a header's lists has an item.
pub(crate) fn lists(headers: &HeaderMap, name: &HeaderName, item: &[u8]) -> bool {
    let items = headers.get_all(name).iter().flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    items.into_iter().any(|listed| listed.trim_ascii().eq_ignore_ascii_case(item))
}

/// The announced length. The same length several times is one (§6.3).
pub(crate) fn length(headers: &HeaderMap) -> Result<Option<u64>, Malformed> {
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        for number in value.as_bytes().split(|&byte| byte == b',') {
            let number = number.trim_ascii();
            let digits = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
            let number =
                std::str::from_utf8(number).ok().filter(|_| digits).and_then(|text| text.parse().ok());
            let number: u64 = number.ok_or(Malformed("its length is no number"))?;
            if length.is_some_and(|length| length != number) {
                return Err(Malformed("it has two lengths"));
            }
            length = Some(number);
        }
    }
    Ok(length)
}

/// Whether the body comes in chunks, which is the only transfer coding that is understood.
pub(crate) fn is_chunked(headers: &HeaderMap) -> Result<bool, Malformed> {
    let mut values = headers.get_all(TRANSFER_ENCODING).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(false),
        (Some(value), None) if value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") => Ok(true),
        _ => Err(Malformed("it has an unknown transfer coding")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_digits() {
        for number in [0, 7, 10, 4096, u64::MAX] {
            let mut text = Vec::new();
            decimal(&mut text, number);
            assert_eq!(String::from_utf8(text).unwrap(), number.to_string());
        }
    }

    #[test]
    fn a_line_feed_is_bare_unless_a_return_is_right_before_it() {
        for (text, want) in
            [("", false), ("a\r\n\r\n", false), ("\n", true), ("a\nb\r\n", true), ("a\r\n\n", true)]
        {
            assert_eq!(has_bare_line_feed(text.as_bytes()), want, "{text:?}");
        }
    }
}
