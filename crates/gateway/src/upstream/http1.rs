//! HTTP/1.1 towards endpoints (RFC 9112): one exchange at a time, driven by the request it serves.
//!
//! Written for a proxy: heads are written straight from the client's headers, bodies pass without channels between
//! tasks, and nothing is held while nothing comes, so that a stream that waits for its next token costs a few hundred
//! bytes. Upgrades are not spoken here; they have connections of their own.

mod head;

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body::{Body, Frame, SizeHint};

use self::head::Head;
pub(crate) use self::head::write;
use super::connect::Stream;
use super::{Answer, Driven};
use crate::body::{ClientFailure, RequestBody};
use crate::http1::sending::{Framing, SendFailure, Sending};
use crate::http1::{HEAD_BYTES, Malformed, Rest, poll_read, with_scratch};

/// Most heads that may precede the one of the response (RFC 9110 §15.2).
const INTERIM: usize = 16;

/// What goes wrong on a connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Http1Error {
    /// The connection.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The endpoint closed it too soon.
    #[error("the endpoint closed the connection {0}")]
    Closed(&'static str),
    /// What the endpoint sends is not HTTP.
    #[error("the endpoint's response is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// The request's body could not be read from the client.
    #[error(transparent)]
    Client(#[from] ClientFailure),
}

/// Why a request got no response.
#[derive(Debug)]
pub(super) struct Failure {
    /// The request's body, if nothing of the request was sent.
    pub(super) unsent: Option<RequestBody>,
    /// What happened.
    pub(super) error: Http1Error,
}

/// A response's head, and what came of its body together with it.
type Begun = (Head, Option<Frame<Bytes>>);

/// A connection to an endpoint.
#[derive(Debug)]
pub(crate) struct Http1 {
    stream: Stream,
    /// The part of the request that is still to be sent.
    upload: Option<Sending<RequestBody>>,
    rest: Rest,
    /// Whether another request can follow.
    reusable: bool,
    /// When it last carried a request.
    pub(super) used: Instant,
}

impl Http1 {
    /// A connection on which nothing was said yet.
    pub(super) fn new(stream: Stream) -> Box<Self> {
        Box::new(Self { stream, upload: None, rest: Rest::Done, reusable: true, used: Instant::now() })
    }

    /// Sends a request, of which `head` is the head as it goes over the wire, and waits for the head of its response.
    pub(super) async fn send(
        mut self: Box<Self>,
        method: &Method,
        head: Vec<u8>,
        body: RequestBody,
    ) -> Result<Answer, Failure> {
        let framing = match body.size_hint().exact() {
            Some(length) => Framing::Length(length),
            None => Framing::Chunked { trailers: true },
        };
        self.upload = Some(Sending::new(head, body, framing));
        self.reusable = true;
        let mut reading = Reading::default();
        let answered = poll_fn(|cx| self.poll_answer(method, &mut reading, cx)).await;
        match answered {
            Ok((head, ahead)) => Ok(head.into_response(Driven::over(self, ahead))),
            Err(error) => {
                let unsent = self.upload.take().filter(|upload| upload.sent() == 0).map(|upload| {
                    let (mut body, piece) = upload.into_body();
                    body.put_back(piece);
                    body
                });
                Err(Failure { unsent, error })
            }
        }
    }

    fn poll_answer(
        &mut self,
        method: &Method,
        reading: &mut Reading,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Begun, Http1Error>> {
        if let Err(error) = self.poll_upload(cx) {
            match error {
                // An endpoint that has heard enough may have answered before it stopped to listen.
                Http1Error::Io(_) if self.upload.as_ref().is_some_and(|upload| upload.sent() > 0) => {
                    self.upload = None;
                    self.reusable = false;
                    reading.late = Some(error);
                }
                _ => return Poll::Ready(Err(error)),
            }
        }
        with_scratch(|scratch| {
            loop {
                let count = match ready!(poll_read(&mut self.stream, scratch, cx)) {
                    Ok(0) => Err(Http1Error::Closed("before it answered")),
                    Ok(count) => Ok(count),
                    Err(error) => Err(error.into()),
                };
                let count = count.map_err(|error| reading.late.take().unwrap_or(error))?;
                if let Some(answer) = self.take_in(method, reading, &scratch[..count])? {
                    return Poll::Ready(Ok(answer));
                }
            }
        })
    }

    /// Takes in bytes of a response until its head is complete.
    fn take_in(
        &mut self,
        method: &Method,
        reading: &mut Reading,
        piece: &[u8],
    ) -> Result<Option<Begun>, Http1Error> {
        let mut kept = std::mem::take(&mut reading.kept);
        let mut text = piece;
        if !kept.is_empty() {
            kept.extend_from_slice(piece);
            text = &kept;
        }
        while let Some((head, length)) = head::parse(text)? {
            text = &text[length..];
            if head.status.is_informational() {
                reading.interim += 1;
                if reading.interim > INTERIM || head.status == 101 {
                    return Err(Malformed("a status nobody asked for").into());
                }
                continue;
            }
            let (head, rest, reusable) = head.framed(method)?;
            self.rest = rest;
            self.reusable &= reusable;
            let ahead = self.decode(text)?;
            return Ok(Some((head, ahead)));
        }
        if text.len() > HEAD_BYTES {
            return Err(Malformed("its head is too long").into());
        }
        reading.kept = text.to_vec();
        Ok(None)
    }

    /// The part of the body that bytes hold.
    fn decode(&mut self, bytes: &[u8]) -> Result<Option<Frame<Bytes>>, Malformed> {
        let (frame, taken) = self.rest.decode(bytes)?;
        if taken < bytes.len() {
            // More than was asked for: nobody knows what an answer to the next request would be.
            self.reusable = false;
        }
        Ok(frame)
    }

    /// Moves the body on: sends what is left of the request, takes in the response's next piece.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Http1Error>>> {
        match self.poll_upload(cx) {
            Ok(()) => {}
            Err(error @ Http1Error::Client(_)) => return Poll::Ready(Some(Err(error))),
            // Whoever does not listen may still talk.
            Err(_) => {
                self.upload = None;
                self.reusable = false;
            }
        }
        if let Some(trailers) = self.rest.take_late_trailers() {
            return Poll::Ready(Some(Ok(trailers)));
        }
        if self.rest.is_done() {
            return Poll::Ready(None);
        }
        with_scratch(|scratch| {
            loop {
                let polled = match ready!(poll_read(&mut self.stream, scratch, cx)) {
                    Ok(0) if matches!(self.rest, Rest::UntilClosed) => {
                        self.rest = Rest::Done;
                        return Poll::Ready(None);
                    }
                    Ok(0) => Err(Http1Error::Closed("within its response")),
                    Ok(count) => self.decode(&scratch[..count]).map_err(Into::into),
                    Err(error) => Err(error.into()),
                };
                match polled {
                    Ok(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
                    Ok(None) if self.rest.is_done() => return Poll::Ready(None),
                    Ok(None) => {}
                    Err(error) => {
                        self.reusable = false;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
        })
    }

    /// Sends what can be sent of the request.
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Result<(), Http1Error> {
        let Some(upload) = &mut self.upload else { return Ok(()) };
        match upload.poll(&mut self.stream, cx) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(())) => self.upload = None,
            Err(SendFailure::Io(error)) => return Err(error.into()),
            Err(SendFailure::Body(failure)) => return Err(failure.into()),
        }
        Ok(())
    }

    /// Whether the response is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.rest.is_done()
    }

    /// How much of the response's body is still to come.
    pub(super) fn size_hint(&self) -> SizeHint {
        self.rest.size_hint()
    }

    /// Whether the connection can take another request now. One on which something comes, be it its end, cannot.
    pub(super) fn is_idle(&mut self) -> bool {
        let ready = self.reusable && self.upload.is_none() && self.is_complete();
        ready && poll_read(&mut self.stream, &mut [0], &mut Context::from_waker(Waker::noop())).is_pending()
    }
}

/// The head of a response that is being read.
#[derive(Debug, Default)]
struct Reading {
    /// What came of it so far.
    kept: Vec<u8>,
    /// Heads before it.
    interim: usize,
    /// Why the request could not be sent whole.
    late: Option<Http1Error>,
}

/// Reads the head of a response and the beginning of its body the way [`Http1`] does, for tests and fuzzing: the
/// status and what the bytes hold of the body, or nothing while the head is incomplete.
#[doc(hidden)]
pub fn decode(method: &Method, text: &[u8], size: usize) -> Result<Option<Decoded>, Malformed> {
    let Some((head, length)) = head::parse(text)? else { return Ok(None) };
    let status = head.status.as_u16();
    let (head, mut rest, _) = head.framed(method)?;
    let mut decoded = Decoded { status, headers: head.headers, body: Vec::new(), trailers: None };
    for mut piece in text[length..].chunks(size.max(1)) {
        while !piece.is_empty() && !rest.is_done() {
            let (frame, taken) = rest.decode(piece)?;
            piece = &piece[taken..];
            for frame in frame.into_iter().chain(rest.take_late_trailers()) {
                match frame.into_data() {
                    Ok(data) => decoded.body.extend_from_slice(&data),
                    Err(frame) => decoded.trailers = frame.into_trailers().ok(),
                }
            }
        }
    }
    Ok(Some(decoded))
}

/// A response as far as it came.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// Status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body so far.
    pub body: Vec<u8>,
    /// Trailers, once the body has ended.
    pub trailers: Option<HeaderMap>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARTS: [&str; 18] = [
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 204 \r\n",
        "transfer-encoding: chunked\r\n",
        "transfer-encoding: gzip\r\n",
        "content-length: 5\r\n",
        "connection: close\r\n",
        "\r\n",
        "5\r\nhello\r\n",
        "hello",
        "a;b=c\r\n0123456789\r\n",
        "0\r\n\r\n",
        "0\r\nx-sum: 1\r\n\r\n",
        "fffffffffffffff\r\n",
        "\n",
        "\r",
        ":",
        "\0",
    ];

    proptest! {
        #[test]
        fn pieces_make_no_difference_to_a_response_however_malformed(
            parts in prop::collection::vec(prop::sample::select(&PARTS[..]), 0..12),
            with_head in any::<bool>(),
            size in 1_usize..9,
        ) {
            let head = if with_head { "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" } else { "" };
            let text = format!("{head}{}", parts.concat());
            let whole = decode(&Method::POST, text.as_bytes(), text.len());
            prop_assert_eq!(decode(&Method::POST, text.as_bytes(), size), whole.clone());
            let body = whole.ok().flatten().map_or(0, |whole| whole.body.len());
            prop_assert!(body <= text.len());
        }
    }
}
