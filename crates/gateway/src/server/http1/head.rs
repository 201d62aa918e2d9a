//! Heads: a request's as it is read, a response's as it is written (RFC 9112 §2 to §6).

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, EXPECT, HeaderMap, HeaderName, TE, TRANSFER_ENCODING};
use http::response::Parts;
use http::{Method, StatusCode, Uri, Version};

use crate::http1::sending::Framing;
use crate::http1::{Malformed, Rest, fields};
use crate::options::USUAL_HEADERS;
use crate::refusal::Refusal;

/// How much room a response's head gets to begin with: enough for most.
const ROOM: usize = 512;

/// Why a request cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is no HTTP/1.
    Malformed(Malformed),
    /// Its first line is too long.
    LongTarget,
    /// Its head is.
    LongHead,
}

impl From<Malformed> for Unreadable {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl Unreadable {
    /// The answer.
    pub(super) fn refusal(self) -> Refusal {
        match self {
            Self::Malformed(reason) => {
                Refusal::bad_request("malformed_request", format!("the request is malformed: {reason}"))
            }
            Self::LongTarget => {
                Refusal::new(StatusCode::URI_TOO_LONG, "uri_too_long", "the request's first line is too long")
            }
            Self::LongHead => Refusal::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers_too_large",
                "the request has too many headers, or too large ones",
            ),
        }
    }
}

/// The head of a request.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) version: Version,
    pub(super) headers: HeaderMap,
    /// What follows it.
    pub(super) body: Rest,
    /// What the client made of its connection.
    pub(super) manner: Manner,
}

/// What a request says of how it is to be answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// HTTP/1.1 and not older.
    pub(super) is_modern: bool,
    /// Another request may follow.
    pub(super) lasts: bool,
    /// There is to be a head only.
    pub(super) is_head: bool,
    /// Trailers are understood.
    pub(super) trailers: bool,
    /// The body comes only when it is asked for.
    pub(super) expects_continue: bool,
}

/// Finds the end of a head in what came so far, of which the first `seen` bytes were looked at before.
///
/// Lines end in CRLF. A line feed alone ends a line for some (§2.2), so no request with one gets any further.
pub(super) fn end(text: &[u8], seen: usize) -> Result<Option<usize>, Malformed> {
    for at in memchr::memchr_iter(b'\n', &text[seen..]) {
        let at = seen + at;
        if at == 0 || text[at - 1] != b'\r' {
            return Err(Malformed("a line ends in a line feed alone"));
        }
        if at >= 3 && text[at - 3..at - 1] == *b"\r\n" {
            return Ok(Some(at + 1));
        }
    }
    Ok(None)
}

/// Empty lines before a request, which are let pass (§2.2).
pub(super) fn empty_lines(text: &[u8]) -> usize {
    text.chunks_exact(2).take_while(|pair| pair == b"\r\n").count() * 2
}

/// Reads a head that is whole. Names and values are slices of `whole`, which begins with it.
pub(super) fn parse(whole: &Bytes, length: usize, most: usize) -> Result<Head, Unreadable> {
    let mut usual = [const { MaybeUninit::uninit() }; USUAL_HEADERS];
    let mut many = Vec::new();
    let lines = if most == USUAL_HEADERS {
        &mut usual[..]
    } else {
        many.resize_with(most, MaybeUninit::uninit);
        &mut many[..]
    };
    let text = &whole[..length];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(text, lines) {
        Ok(httparse::Status::Complete(parsed)) if parsed == length => {}
        Ok(_) => return Err(Malformed("its head ends too soon").into()),
        Err(httparse::Error::TooManyHeaders) => return Err(Unreadable::LongHead),
        Err(error) => return Err(Malformed(reason(error)).into()),
    }
    let method = Method::from_bytes(request.method.unwrap_or_default().as_bytes());
    let method = method.map_err(|_| Malformed("its method is none"))?;
    let target = whole.slice(fields::place(request.path.unwrap_or_default().as_bytes(), text));
    let uri = Uri::from_maybe_shared(target).map_err(|_| Malformed("its target is none"))?;
    let is_modern = request.version == Some(1);
    let headers = fields::headers(request.headers, text, whole)?;
    let body = framed(&headers, is_modern)?;
    let is = |name: HeaderName, value: &[u8]| {
        headers.get(name).is_some_and(|got| got.as_bytes().eq_ignore_ascii_case(value))
    };
    let manner = Manner {
        is_modern,
        lasts: if headers.contains_key(CONNECTION) {
            let says = |option| fields::connection_lists(&headers, option);
            if is_modern { !says(b"close") } else { says(b"keep-alive") && !says(b"close") }
        } else {
            is_modern
        },
        is_head: method == Method::HEAD,
        trailers: is_modern && headers.contains_key(TE) && fields::lists(&headers, &TE, b"trailers"),
        expects_continue: is_modern && !body.is_done() && is(EXPECT, b"100-continue"),
    };
    let version = if is_modern { Version::HTTP_11 } else { Version::HTTP_10 };
    Ok(Head { method, uri, version, headers, body, manner })
}

/// What is wrong with a head of which only a part came, if that can be told.
pub(super) fn doubt(text: &[u8]) -> Result<(), Malformed> {
    let mut lines = [const { MaybeUninit::uninit() }; USUAL_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(text, &mut lines) {
        Ok(_) | Err(httparse::Error::TooManyHeaders) => Ok(()),
        Err(error) => Err(Malformed(reason(error))),
    }
}

fn reason(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName | httparse::Error::HeaderValue => "it has a malformed header",
        httparse::Error::Version => "its version is none of HTTP/1",
        _ => "its head is malformed",
    }
}

/// How the body is delimited (§6.3). Whatever could be read in two ways is refused (§6.1, §11.2).
fn framed(headers: &HeaderMap, is_modern: bool) -> Result<Rest, Malformed> {
    let length = fields::length(headers)?;
    if fields::is_chunked(headers)? {
        if !is_modern {
            return Err(Malformed("it has chunks in HTTP/1.0"));
        }
        if length.is_some() {
            return Err(Malformed("it has both a length and chunks"));
        }
        return Ok(Rest::Chunked(Box::default()));
    }
    Ok(length.filter(|&length| length > 0).map_or(Rest::Done, Rest::Length))
}

/// The head of a response as it goes over the wire.
pub(super) fn write(head: &Parts, framing: Framing, manner: Manner, lasts: bool) -> Vec<u8> {
    let status = head.status;
    let mut text = Vec::with_capacity(ROOM);
    if status == StatusCode::OK {
        text.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        text.extend_from_slice(b"HTTP/1.1 ");
        text.extend_from_slice(status.as_str().as_bytes());
        text.push(b' ');
        text.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    let switches = status == StatusCode::SWITCHING_PROTOCOLS;
    // Of a body that is not sent, a length may still tell (RFC 9110 §8.6), unless there could not be one.
    let keeps_length = framing == Framing::Bodiless && !status.is_informational() && status != 204;
    for (name, value) in &head.headers {
        let is_ours = *name == CONTENT_LENGTH && !keeps_length
            || *name == TRANSFER_ENCODING
            || *name == CONNECTION && !switches;
        if !is_ours {
            fields::line(&mut text, name, value.as_bytes());
        }
    }
    if !head.headers.contains_key(DATE) {
        text.extend_from_slice(b"date: ");
        text.extend_from_slice(&date());
        text.extend_from_slice(b"\r\n");
    }
    match framing {
        Framing::Length(length) => fields::length_line(&mut text, length),
        Framing::Chunked { .. } => text.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        Framing::Bodiless | Framing::UntilClosed => {}
    }
    if switches {
    } else if !lasts {
        text.extend_from_slice(b"connection: close\r\n");
    } else if !manner.is_modern {
        text.extend_from_slice(b"connection: keep-alive\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text
}

/// A date as HTTP spells it (RFC 9110 §5.6.7).
type Date = [u8; 29];

/// Now, spelt out once a second.
fn date() -> Date {
    thread_local! {
        static LAST: Cell<(u64, Date)> = const { Cell::new((u64::MAX, [b' '; 29])) };
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (second, date) = LAST.get();
    if second == now {
        return date;
    }
    let date = spelt(now);
    LAST.set((now, date));
    date
}

fn spelt(second: u64) -> Date {
    let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
    let timestamp = i64::try_from(second).ok().and_then(|second| jiff::Timestamp::from_second(second).ok());
    let text = printer.timestamp_to_rfc9110_string(&timestamp.unwrap_or_default()).unwrap_or_default();
    text.into_bytes().try_into().unwrap_or([b' '; 29])
}

/// Reads a request the way a connection does, for tests and fuzzing: its head and what there is of its body, or nothing
/// while the head is incomplete.
#[doc(hidden)]
pub fn receive(text: &[u8], size: usize) -> Result<Option<Received>, u16> {
    let refused = |unreadable: Unreadable| unreadable.refusal().status.as_u16();
    let malformed = |malformed: Malformed| refused(malformed.into());
    let start = empty_lines(text);
    let text = &text[start..];
    let mut seen = 0;
    let mut found = None;
    for piece in text.chunks(size.max(1)) {
        let so_far = &text[..seen + piece.len()];
        found = end(so_far, seen).map_err(malformed)?;
        if found.is_some() {
            break;
        }
        seen = so_far.len();
    }
    let Some(length) = found else { return Ok(None) };
    let head = parse(&Bytes::copy_from_slice(&text[..length]), length, USUAL_HEADERS).map_err(refused)?;
    let mut received = Received {
        method: head.method.to_string(),
        target: head.uri.to_string(),
        headers: head.headers,
        body: Vec::new(),
        trailers: None,
        taken: start + length,
        is_complete: false,
    };
    let mut rest = head.body;
    for mut piece in text[length..].chunks(size.max(1)) {
        while !piece.is_empty() && !rest.is_done() {
            let (frame, taken) = rest.decode(piece).map_err(malformed)?;
            piece = &piece[taken..];
            received.taken += taken;
            for frame in frame.into_iter().chain(rest.take_late_trailers()) {
                match frame.into_data() {
                    Ok(data) => received.body.extend_from_slice(&data),
                    Err(frame) => received.trailers = frame.into_trailers().ok(),
                }
            }
        }
    }
    received.is_complete = rest.is_done();
    Ok(Some(received))
}

/// A request as far as it came.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Method.
    pub method: String,
    /// Target.
    pub target: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body so far.
    pub body: Vec<u8>,
    /// Trailers, once the body has ended.
    pub trailers: Option<HeaderMap>,
    /// Bytes that belong to it.
    pub taken: usize,
    /// Whether all of it came.
    pub is_complete: bool,
}

#[cfg(test)]
mod tests;
