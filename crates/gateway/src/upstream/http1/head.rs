//! Heads: a request's as it is written, a response's as it is read.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderMap, TRANSFER_ENCODING};
use http::{Method, Response, StatusCode, Version};

use crate::headers::Forwarded;
use crate::http1::{Malformed, Rest, fields};
use crate::upstream::Outgoing;

/// Most headers of a response.
const HEADERS: usize = 128;

/// How much room a head gets to begin with: enough for most.
const ROOM: usize = 768;

/// The head of a request as it goes over the wire. `length` is the body's, where it is known; `None` sends chunks.
pub(crate) fn write(request: &Outgoing<'_>, length: Option<u64>) -> Vec<u8> {
    let mut head = Vec::with_capacity(ROOM);
    head.extend_from_slice(request.method.as_str().as_bytes());
    head.push(b' ');
    head.extend_from_slice(request.target.as_bytes());
    head.extend_from_slice(b" HTTP/1.1\r\n");
    let Outgoing { headers, endpoint, .. } = request;
    for (name, value) in &endpoint.adds {
        fields::line(&mut head, name, value.as_bytes());
    }
    let forwarded = || request.forwarded.into_iter().flat_map(Forwarded::headers);
    for (name, value) in forwarded().filter(|(name, _)| !endpoint.drops.contains(name)) {
        fields::line(&mut head, name, value.as_bytes());
    }
    for (name, value) in *headers {
        let is_framing = *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING || *name == HOST;
        let is_ours = || endpoint.drops.contains(name) || forwarded().any(|(own, _)| own == name);
        if !is_framing && !is_ours() {
            fields::line(&mut head, name, value.as_bytes());
        }
    }
    match length {
        None => head.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        // Where there is no body, what the client says of it tells whether there could have been one.
        Some(0) if !headers.contains_key(CONTENT_LENGTH) => {}
        Some(length) => fields::length_line(&mut head, length),
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The head of a response.
#[derive(Debug)]
pub(super) struct Head {
    /// Its status.
    pub(super) status: StatusCode,
    /// Its headers.
    pub(super) headers: HeaderMap,
    /// Whether it is HTTP/1.1 and not older.
    is_modern: bool,
}

/// Reads a head, unless it is incomplete. Returns it with its length.
pub(super) fn parse(text: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
    let mut lines = [const { MaybeUninit::uninit() }; HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default()
        .parse_response_with_uninit_headers(&mut response, text, &mut lines)
        .map_err(|error| match error {
            httparse::Error::TooManyHeaders => Malformed("it has too many headers"),
            httparse::Error::HeaderName | httparse::Error::HeaderValue => {
                Malformed("it has a malformed header")
            }
            _ => Malformed("its head is malformed"),
        })?;
    let httparse::Status::Complete(length) = parsed else { return Ok(None) };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(Malformed("its status is none"))?;
    let whole = Bytes::copy_from_slice(&text[..length]);
    let headers = fields::headers(response.headers, text, &whole)?;
    Ok(Some((Head { status, headers, is_modern: response.version == Some(1) }, length)))
}

impl Head {
    /// The response with a body.
    pub(super) fn into_response<B>(self, body: B) -> Response<B> {
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        *response.version_mut() = Version::HTTP_11;
        response
    }

    /// How the body is delimited, and whether the connection can carry another request behind it (RFC 9112 §6.3).
    pub(super) fn framed(mut self, method: &Method) -> Result<(Self, Rest, bool), Malformed> {
        let length = fields::length(&self.headers)?;
        let chunked = fields::is_chunked(&self.headers)?;
        let says = |option| fields::connection_lists(&self.headers, option);
        let lasts = if self.is_modern { !says(b"close") } else { says(b"keep-alive") };
        let bodiless = *method == Method::HEAD || matches!(self.status.as_u16(), 100..=199 | 204 | 304);
        let (rest, reusable) = if bodiless {
            (Rest::Done, lasts)
        } else if chunked {
            if !self.is_modern {
                return Err(Malformed("chunks in HTTP/1.0"));
            }
            // Whoever sends both may mean either, so nothing behind it can be trusted.
            let both = self.headers.remove(CONTENT_LENGTH).is_some();
            (Rest::Chunked(Box::default()), lasts && !both)
        } else {
            match length {
                Some(0) => (Rest::Done, lasts),
                Some(length) => (Rest::Length(length), lasts),
                None => (Rest::UntilClosed, false),
            }
        };
        Ok((self, rest, reusable))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn framed(method: Method, head: &str) -> Result<(String, bool), Malformed> {
        let (head, length) = parse(head.as_bytes())?.expect("a whole head");
        assert!(length > 0);
        let (_, rest, reusable) = head.framed(&method)?;
        Ok((format!("{rest:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(), reusable))
    }

    #[test]
    fn bodies_are_delimited_as_the_standard_says() {
        type Framed = Result<(&'static str, bool), Malformed>;
        let cases: [(&str, &str, Framed); 22] = [
            ("HTTP/1.1 200 OK", "", Ok(("UntilClosed", false))),
            ("HTTP/1.1 204 No Content", "", Ok(("Done", true))),
            ("HTTP/1.1 304 Not Modified", "content-length: 5\r\n", Ok(("Done", true))),
            ("HTTP/1.1 200 OK", "content-length: 0\r\n", Ok(("Done", true))),
            ("HTTP/1.1 200 OK", "content-length: 5\r\n", Ok(("Length", true))),
            ("HTTP/1.1 200 ", "content-length: 5, 5\r\ncontent-length: 5\r\n", Ok(("Length", true))),
            ("HTTP/1.1 200 OK", "content-length: 5\r\nconnection: x, Close\r\n", Ok(("Length", false))),
            ("HTTP/1.0 200 OK", "content-length: 5\r\n", Ok(("Length", false))),
            ("HTTP/1.0 200 OK", "content-length: 5\r\nconnection: keep-alive\r\n", Ok(("Length", true))),
            ("HTTP/1.1 200 OK", "transfer-encoding: Chunked\r\n", Ok(("Chunked", true))),
            (
                "HTTP/1.1 200 OK",
                "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
                Ok(("Chunked", false)),
            ),
            ("HTTP/1.0 200 OK", "transfer-encoding: chunked\r\n", Err(Malformed("chunks in HTTP/1.0"))),
            ("HTTP/1.1 200 OK", "content-length: 5, 6\r\n", Err(Malformed("it has two lengths"))),
            (
                "HTTP/1.1 200 OK",
                "content-length: 5\r\ncontent-length: 6\r\n",
                Err(Malformed("it has two lengths")),
            ),
            ("HTTP/1.1 200 OK", "content-length: +5\r\n", Err(Malformed("its length is no number"))),
            ("HTTP/1.1 200 OK", "content-length:\r\n", Err(Malformed("its length is no number"))),
            (
                "HTTP/1.1 200 OK",
                "content-length: 99999999999999999999\r\n",
                Err(Malformed("its length is no number")),
            ),
            (
                "HTTP/1.1 200 OK",
                "transfer-encoding: gzip, chunked\r\n",
                Err(Malformed("it has an unknown transfer coding")),
            ),
            (
                "HTTP/1.1 200 OK",
                "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
                Err(Malformed("it has an unknown transfer coding")),
            ),
            ("HTTP/1.1 200 OK", "x-a: b\r\n c\r\n", Err(Malformed("it has a malformed header"))),
            ("HTTP/1.1 200 OK", "x-a : b\r\n", Err(Malformed("it has a malformed header"))),
            ("HTTP/1.1 099 OK", "", Err(Malformed("its status is none"))),
        ];
        for (line, headers, want) in cases {
            let want = want.map(|(rest, reusable)| (rest.to_owned(), reusable));
            assert_eq!(framed(Method::GET, &format!("{line}\r\n{headers}\r\n")), want, "{line} {headers}");
        }
        let head = framed(Method::HEAD, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n");
        assert_eq!(head, Ok(("Done".to_owned(), true)), "an answer to HEAD has no body");
    }

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = b"HTTP/1.1 201 Created\r\nX-A: 1\r\nx-a: \xff2\r\nempty:\r\n\r\nbody";
        for length in 0..text.len() - 4 {
            assert!(parse(&text[..length]).unwrap().is_none(), "{length}");
        }
        let (head, length) = parse(text).unwrap().unwrap();
        assert_eq!((head.status, length), (StatusCode::CREATED, text.len() - 4));
        let values: Vec<_> = head.headers.get_all("x-a").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(values, [b"1".as_slice(), b"\xff2"]);
        assert_eq!(head.headers["empty"], "");
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(HEADERS + 1));
        assert_eq!(parse(many.as_bytes()).unwrap_err(), Malformed("it has too many headers"));
        assert!(parse(b"SSH-2.0-OpenSSH_9\r\n").is_err());
    }
}
