//! What both sides of the gateway need to speak HTTP/1.1 (RFC 9112): the framing of bodies, writing messages, the
//! syntax of headers. Requests are read in `server::http1`, responses in `upstream::http1`.
//!
//! Stricter than the standard demands, where leniency lets two hops disagree on where a message ends (§11.2): lines end
//! in CRLF, nothing is folded, `chunked` is the only transfer coding, a length is digits.

pub(crate) mod chunks;
pub(crate) mod fields;
pub(crate) mod sending;

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, ReadBuf};

use self::chunks::Chunks;

/// Most bytes of an endpoint's head, or of trailers.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// Most bytes taken in at a time.
const READ_BYTES: usize = 64 << 10;

/// How a message breaks the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(crate) &'static str);

thread_local! {
    /// Where everything is read to. What is kept of it is copied out at its own size.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
}

/// Lends the buffer that everything is read to. Not to be asked for while it is lent.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut [u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| work(scratch))
}

/// Reads what there is. Zero bytes are the end.
pub(crate) fn poll_read(
    stream: &mut (impl AsyncRead + Unpin),
    into: &mut [u8],
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut into = ReadBuf::new(into);
    ready!(Pin::new(stream).poll_read(cx, &mut into))?;
    Poll::Ready(Ok(into.filled().len()))
}

/// What is left of a message's body.
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

impl Rest {
    /// The part of the body that bytes hold, and how many of them belong to the body.
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Result<(Option<Frame<Bytes>>, usize), Malformed> {
        match self {
            Self::Done => Ok((None, 0)),
            Self::UntilClosed => Ok((data(Bytes::copy_from_slice(bytes)), bytes.len())),
            Self::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= count as u64;
                if *left == 0 {
                    *self = Self::Done;
                }
                Ok((data(Bytes::copy_from_slice(&bytes[..count])), count))
            }
            Self::Chunked(chunks) => {
                let mut decoded = Vec::with_capacity(bytes.len());
                let taken = chunks.feed(bytes, &mut decoded)?;
                let mut frame = data(decoded.into());
                // With data before them, trailers wait for the next time.
                if chunks.has_ended() && frame.is_none() {
                    frame = chunks.take_trailers().map(Frame::trailers);
                }
                if chunks.is_done() {
                    *self = Self::Done;
                }
                Ok((frame, taken))
            }
        }
    }

    /// Trailers that data went before, once that is passed on.
    pub(crate) fn take_late_trailers(&mut self) -> Option<Frame<Bytes>> {
        let Self::Chunked(chunks) = self else { return None };
        if !chunks.has_ended() {
            return None;
        }
        let trailers = chunks.take_trailers();
        *self = Self::Done;
        trailers.map(Frame::trailers)
    }

    /// Whether nothing is left.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// How much is left.
    pub(crate) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Done => SizeHint::with_exact(0),
            Self::Length(left) => SizeHint::with_exact(*left),
            Self::Chunked(_) | Self::UntilClosed => SizeHint::new(),
        }
    }
}

fn data(bytes: Bytes) -> Option<Frame<Bytes>> {
    (!bytes.is_empty()).then(|| Frame::data(bytes))
}
