//! HTTP/1.1 towards endpoints (RFC 9112): one exchange at a time, driven by the request it serves.
//!
//! Written for a proxy: heads are written straight from the client's headers, bodies pass without channels between
//! tasks, and nothing is held while nothing comes, so that a stream that waits for its next token costs a few hundred
//! bytes. Upgrades are not spoken here; they have connections of their own.

mod chunks;
mod head;
mod upload;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, ReadBuf};

use self::chunks::Chunks;
use self::head::Head;
pub(crate) use self::head::write;
use self::upload::Upload;
use super::connect::Stream;
use super::{Answer, Driven};
use crate::body::{ClientFailure, RequestBody};

/// Most bytes of a response's head, or of its trailers.
const HEAD_BYTES: usize = 64 << 10;

/// Most bytes taken in at a time.
const READ_BYTES: usize = 64 << 10;

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
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The request's body could not be read from the client.
    #[error(transparent)]
    Client(#[from] ClientFailure),
}

/// How a response breaks the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the endpoint's response is malformed: {0}")]
pub struct Malformed(pub(super) &'static str);

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

/// What is left of a response's body.
#[derive(Debug)]
pub(crate) enum Rest {
    /// Nothing.
    Done,
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked(Box<Chunks>),
    /// All until the connection closes.
    UntilClosed,
}

/// A connection to an endpoint.
#[derive(Debug)]
pub(crate) struct Http1 {
    stream: Stream,
    /// The part of the request that is still to be sent.
    upload: Option<Upload>,
    rest: Rest,
    /// Whether another request can follow.
    reusable: bool,
    /// When it last carried a request.
    pub(super) used: Instant,
}

thread_local! {
    /// Where everything is read to. What is kept of it is copied out at its own size.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
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
        self.upload = Some(Upload::new(head, body));
        self.reusable = true;
        let mut reading = Reading::default();
        let answered = poll_fn(|cx| self.poll_answer(method, &mut reading, cx)).await;
        match answered {
            Ok((head, ahead)) => Ok(head.into_response(Driven::over(self, ahead))),
            Err(error) => {
                let unsent = self.upload.take().filter(Upload::is_unsent).map(Upload::into_body);
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
                Http1Error::Io(_) if self.upload.as_ref().is_some_and(|upload| !upload.is_unsent()) => {
                    self.upload = None;
                    self.reusable = false;
                    reading.late = Some(error);
                }
                _ => return Poll::Ready(Err(error)),
            }
        }
        SCRATCH.with_borrow_mut(|scratch| {
            loop {
                let count = match ready!(self.poll_read(scratch, cx)) {
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
        let (frame, taken) = match &mut self.rest {
            Rest::Done => (None, 0),
            Rest::UntilClosed => (data(Bytes::copy_from_slice(bytes)), bytes.len()),
            Rest::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= count as u64;
                if *left == 0 {
                    self.rest = Rest::Done;
                }
                (data(Bytes::copy_from_slice(&bytes[..count])), count)
            }
            Rest::Chunked(chunks) => {
                let mut decoded = Vec::with_capacity(bytes.len());
                let taken = chunks.feed(bytes, &mut decoded)?;
                let mut frame = data(decoded.into());
                // With data before them, trailers wait for the next time.
                if chunks.has_ended() && frame.is_none() {
                    frame = chunks.take_trailers().map(Frame::trailers);
                }
                if chunks.is_done() {
                    self.rest = Rest::Done;
                }
                (frame, taken)
            }
        };
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
        if let Rest::Chunked(chunks) = &mut self.rest
            && chunks.has_ended()
        {
            let trailers = chunks.take_trailers();
            self.rest = Rest::Done;
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
        }
        if matches!(self.rest, Rest::Done) {
            return Poll::Ready(None);
        }
        SCRATCH.with_borrow_mut(|scratch| {
            loop {
                let polled = match ready!(self.poll_read(scratch, cx)) {
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
                    Ok(None) if matches!(self.rest, Rest::Done) => return Poll::Ready(None),
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
        if let Some(upload) = &mut self.upload
            && upload.poll(&mut self.stream, cx)?.is_ready()
        {
            self.upload = None;
        }
        Ok(())
    }

    fn poll_read(&mut self, into: &mut [u8], cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut into = ReadBuf::new(into);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut into))?;
        Poll::Ready(Ok(into.filled().len()))
    }

    /// Whether the response is complete.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.rest, Rest::Done)
    }

    /// How much of the response's body is still to come.
    pub(super) fn size_hint(&self) -> SizeHint {
        match &self.rest {
            Rest::Done => SizeHint::with_exact(0),
            Rest::Length(left) => SizeHint::with_exact(*left),
            Rest::Chunked(_) | Rest::UntilClosed => SizeHint::new(),
        }
    }

    /// Whether the connection can take another request now. One on which something comes, be it its end, cannot.
    pub(super) fn is_idle(&mut self) -> bool {
        let ready = self.reusable && self.upload.is_none() && self.is_complete();
        ready && self.poll_read(&mut [0], &mut Context::from_waker(Waker::noop())).is_pending()
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

fn data(bytes: Bytes) -> Option<Frame<Bytes>> {
    (!bytes.is_empty()).then(|| Frame::data(bytes))
}

/// Reads the head of a response and the beginning of its body the way [`Http1`] does, for tests and fuzzing: the
/// status and what the bytes hold of the body, or nothing while the head is incomplete.
#[doc(hidden)]
pub fn decode(method: &Method, text: &[u8], size: usize) -> Result<Option<Decoded>, Malformed> {
    let Some((head, length)) = head::parse(text)? else { return Ok(None) };
    let status = head.status.as_u16();
    let (head, mut rest, _) = head.framed(method)?;
    let mut decoded = Decoded { status, headers: head.headers, body: Vec::new(), trailers: None };
    for piece in text[length..].chunks(size.max(1)) {
        match &mut rest {
            Rest::Done => break,
            Rest::UntilClosed => decoded.body.extend_from_slice(piece),
            Rest::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(piece.len());
                *left -= count as u64;
                decoded.body.extend_from_slice(&piece[..count]);
            }
            Rest::Chunked(chunks) => {
                chunks.feed(piece, &mut decoded.body)?;
                if chunks.has_ended() {
                    decoded.trailers = chunks.take_trailers();
                    break;
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
