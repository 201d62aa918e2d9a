//! Chunked transfer coding (RFC 9112 §7.1), decoded in whatever pieces it comes.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{HEAD_BYTES, Malformed, fields};

/// Most bytes of a chunk's extensions, which nobody uses.
const EXTENSION_BYTES: usize = 1024;

/// Most trailers.
const TRAILERS: usize = 64;

/// Decodes chunks.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    state: State,
    /// The trailers' text so far.
    trailers: Vec<u8>,
    parsed: Option<HeaderMap>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a chunk's size, of which so many digits were read.
    Size { value: u64, digits: u8 },
    /// In a chunk's extension.
    Extension { value: u64, length: usize },
    /// Behind the return that ends the line of a size.
    SizeEnd { value: u64 },
    /// In a chunk's data, of which so much is left.
    Data(u64),
    /// Before the return behind the data.
    DataReturn,
    /// Before the line feed behind the data.
    DataEnd,
    /// In the trailers.
    Trailers,
    /// Behind everything.
    Ended,
}

impl Default for State {
    fn default() -> Self {
        Self::Size { value: 0, digits: 0 }
    }
}

impl Chunks {
    /// Takes in bytes, appends the data they hold, and returns how many bytes belong to the body.
    pub(crate) fn feed(&mut self, bytes: &[u8], data: &mut Vec<u8>) -> Result<usize, Malformed> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match self.state {
                State::Ended => break,
                State::Data(left) => {
                    let rest = &bytes[at..];
                    let count = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    data.extend_from_slice(&rest[..count]);
                    at += count;
                    let left = left - count as u64;
                    self.state = if left == 0 { State::DataReturn } else { State::Data(left) };
                }
                State::Trailers => {
                    at += 1;
                    self.trailer(byte)?;
                }
                _ => {
                    at += 1;
                    self.state = self.step(byte)?;
                }
            }
        }
        Ok(at)
    }

    fn step(&self, byte: u8) -> Result<State, Malformed> {
        Ok(match (self.state, byte) {
            (State::Size { value, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                if digits == 15 {
                    return Err(Malformed("a chunk's size is too large"));
                }
                State::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
            }
            (State::Size { digits: 0, .. }, _) => return Err(Malformed("a chunk has no size")),
            (State::Size { value, .. }, b'\r') => State::SizeEnd { value },
            (State::Size { value, .. }, b';' | b' ' | b'\t') => State::Extension { value, length: 0 },
            (State::Extension { value, .. }, b'\r') => State::SizeEnd { value },
            (State::Extension { value, length }, _) if byte != b'\n' && length < EXTENSION_BYTES => {
                State::Extension { value, length: length + 1 }
            }
            (State::SizeEnd { value: 0 }, b'\n') => State::Trailers,
            (State::SizeEnd { value }, b'\n') => State::Data(value),
            (State::DataReturn, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::default(),
            (State::Size { .. } | State::Extension { .. } | State::SizeEnd { .. }, _) => {
                return Err(Malformed("a chunk's size is no number"));
            }
            _ => return Err(Malformed("a chunk is longer than it says")),
        })
    }

    fn trailer(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.trailers.len() >= HEAD_BYTES {
            return Err(Malformed("its trailers are too long"));
        }
        self.trailers.push(byte);
        if self.trailers == b"\r\n" || self.trailers.ends_with(b"\r\n\r\n") {
            self.state = State::Ended;
            self.parsed = trailers(&std::mem::take(&mut self.trailers))?;
        }
        Ok(())
    }

    /// Whether the last chunk and the trailers were read.
    pub(crate) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Whether they were, and the trailers were taken.
    pub(crate) fn is_done(&self) -> bool {
        self.has_ended() && self.parsed.is_none()
    }

    /// The trailers, if there are any.
    pub(crate) fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.parsed.take()
    }
}

fn trailers(text: &[u8]) -> Result<Option<HeaderMap>, Malformed> {
    if text == b"\r\n" {
        return Ok(None);
    }
    let malformed = Malformed("its trailers are no headers");
    if fields::has_bare_line_feed(text) {
        return Err(malformed);
    }
    let mut lines = [httparse::EMPTY_HEADER; TRAILERS];
    let Ok(httparse::Status::Complete((_, lines))) = httparse::parse_headers(text, &mut lines) else {
        return Err(malformed);
    };
    let mut headers = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| malformed)?;
        headers.append(name, HeaderValue::from_bytes(line.value).map_err(|_| malformed)?);
    }
    Ok(Some(headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data, the trailers and how much was taken, in pieces of a size.
    fn decode(text: &str, size: usize) -> Result<(String, Option<HeaderMap>, usize), Malformed> {
        let (mut chunks, mut data, mut taken) = (Chunks::default(), Vec::new(), 0);
        for piece in text.as_bytes().chunks(size) {
            taken += chunks.feed(piece, &mut data)?;
        }
        assert!(chunks.has_ended(), "{text:?}");
        Ok((String::from_utf8(data).unwrap(), chunks.take_trailers(), taken))
    }

    #[test]
    fn chunks_are_joined_however_they_come() {
        let cases = [
            ("0\r\n\r\n", "", 0),
            ("5\r\nhello\r\n0\r\n\r\n", "hello", 0),
            ("0005;a=b\r\nhello\r\n6 ; \"x\"\r\n world\r\n000\r\n\r\n", "hello world", 0),
            ("A\r\n0123456789\r\n0\r\nx-a: 1\r\nX-B: 2\r\n\r\n", "0123456789", 2),
        ];
        for (text, want, trailers) in cases {
            for size in 1..=text.len() + 3 {
                let (data, got, taken) = decode(&format!("{text}XYZ"), size).unwrap();
                assert_eq!((data.as_str(), taken), (want, text.len()), "{text:?} in pieces of {size}");
                assert_eq!(got.map_or(0, |headers| headers.len()), trailers);
            }
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for text in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "+1\r\nx\r\n",
            "0x1\r\nx\r\n",
            "1\nx\r\n",
            "1\r\nxx\r\n",
            "1\r\nx\n",
            "10000000000000000\r\n",
            "1;a\nb\r\nx\r\n",
            "0\r\nno header\r\n\r\n",
            "0\r\na: \0\r\n\r\n",
            "0\r\na: b\nc: d\r\n\r\n",
            "0\r\na: b\r\n c\r\n\r\n",
            "0\r\n\nGET / HTTP/1.1\r\n\r\n",
            "1\r\nx\r\n\n0\r\n\r\n",
        ] {
            for size in 1..=text.len() {
                let (mut chunks, mut data) = (Chunks::default(), Vec::new());
                let mut pieces = text.as_bytes().chunks(size);
                assert!(
                    pieces.any(|piece| chunks.feed(piece, &mut data).is_err()),
                    "{text:?} in pieces of {size}"
                );
            }
        }
    }

    #[test]
    fn extensions_and_trailers_are_bounded() {
        let mut data = Vec::new();
        let extension = [b"1;".as_slice(), &[b'a'; 2 * EXTENSION_BYTES]].concat();
        assert!(Chunks::default().feed(&extension, &mut data).is_err());
        let trailers = [b"0\r\na: ".as_slice(), &[b'a'; 2 * HEAD_BYTES]].concat();
        assert!(Chunks::default().feed(&trailers, &mut data).is_err());
    }
}
