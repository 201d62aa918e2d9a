//! A message on its way out: its head and its body, sent as they can be, several pieces in one system call.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, HOST, TRAILER, TRANSFER_ENCODING};
use http_body::Body;
use tokio::io::AsyncWrite;

use super::{fields, with_scratch};

/// Most bytes that are copied together to be written.
const COPIED: usize = 4 << 10;

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is no body, whatever there is to send.
    Bodiless,
    /// By its length.
    Length(u64),
    /// By a last chunk, with trailers behind it or without.
    Chunked {
        /// Whether trailers are sent.
        trailers: bool,
    },
    /// By the end of the connection.
    UntilClosed,
}

/// Why a message cannot be sent whole.
#[derive(Debug)]
pub(crate) enum SendFailure<E> {
    /// The connection.
    Io(io::Error),
    /// Its body.
    Body(E),
}

/// A message that is being sent.
#[derive(Debug)]
pub(crate) struct Sending<B> {
    /// What goes out first: the head, or trailers.
    lead: Vec<u8>,
    /// How much of that is gone.
    lead_sent: usize,
    /// The line that precedes a chunk.
    size: SizeLine,
    /// A piece of the body.
    piece: Bytes,
    /// What ends the piece.
    tail: &'static [u8],
    body: B,
    framing: Framing,
    has_ended: bool,
    /// Bytes sent.
    sent: u64,
    /// Whether something waits for the other side to take what was sent before.
    is_blocked: bool,
    /// Whether what was sent may still lie in a buffer of ours.
    is_unflushed: bool,
}

impl<B> Sending<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    /// A message of which nothing was sent yet.
    pub(crate) fn new(head: Vec<u8>, body: B, framing: Framing) -> Self {
        Self {
            lead: head,
            lead_sent: 0,
            size: SizeLine::default(),
            piece: Bytes::new(),
            tail: b"",
            has_ended: framing == Framing::Bodiless || body.is_end_stream() && !is_chunked(framing),
            framing,
            body,
            sent: 0,
            is_blocked: false,
            is_unflushed: false,
        }
    }

    /// Bytes sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether something waits for the other side to take what was sent before.
    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// The body, and the piece of it that was taken last and not sent. Of use only while nothing was sent.
    pub(crate) fn into_body(self) -> (B, Bytes) {
        (self.body, self.piece)
    }

    /// Sends what can be sent. Ready when all is.
    pub(crate) fn poll(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> Result<Poll<()>, SendFailure<B::Error>> {
        self.is_blocked = false;
        loop {
            let waits = self.poll_piece(cx)?.is_pending();
            if self.is_empty() {
                // Before waiting for more, all that came so far is on its way.
                if self.is_unflushed {
                    let flushed = Pin::new(&mut *stream).poll_flush(cx).map_err(SendFailure::Io)?;
                    (self.is_unflushed, self.is_blocked) = (flushed.is_pending(), flushed.is_pending());
                }
                return Ok(if waits || self.is_unflushed { Poll::Pending } else { Poll::Ready(()) });
            }
            match self.poll_write(stream, cx) {
                Poll::Pending => {
                    self.is_blocked = true;
                    return Ok(Poll::Pending);
                }
                Poll::Ready(Ok(0)) => return Err(SendFailure::Io(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => self.advance(count),
                Poll::Ready(Err(error)) => return Err(SendFailure::Io(error)),
            }
        }
    }

    /// Writes what is there. A few small parts cost less to copy together than to hand over one by one.
    fn poll_write(
        &self,
        stream: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let parts = [&self.lead[self.lead_sent..], self.size.text(), &self.piece, self.tail];
        let total: usize = parts.iter().map(|part| part.len()).sum();
        if let Some(only) = parts.iter().find(|part| part.len() == total) {
            return Pin::new(stream).poll_write(cx, only);
        }
        if total > COPIED {
            return Pin::new(stream).poll_write_vectored(cx, &parts.map(IoSlice::new));
        }
        with_scratch(|scratch| {
            let mut at = 0;
            for part in parts {
                scratch[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
            Pin::new(stream).poll_write(cx, &scratch[..at])
        })
    }

    fn is_empty(&self) -> bool {
        self.lead.len() == self.lead_sent
            && self.size.text().is_empty()
            && self.piece.is_empty()
            && self.tail.is_empty()
    }

    fn advance(&mut self, mut count: usize) {
        self.sent += count as u64;
        self.is_unflushed = true;
        let of_lead = count.min(self.lead.len() - self.lead_sent);
        self.lead_sent += of_lead;
        count -= of_lead;
        if self.lead_sent == self.lead.len() {
            (self.lead, self.lead_sent) = (Vec::new(), 0);
        }
        count -= self.size.advance(count);
        let of_piece = count.min(self.piece.len());
        self.piece.advance(of_piece);
        if self.piece.is_empty() {
            // Not to hold on to what it was cut from.
            self.piece = Bytes::new();
        }
        self.tail = &self.tail[count - of_piece..];
    }

    /// Takes the next piece off the body, once the one before is gone. Pending while there is none.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, SendFailure<B::Error>> {
        while !self.has_ended && self.piece.is_empty() && self.tail.is_empty() {
            // A head waits for a piece that is there already, and for no other.
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(None) => self.end(None)?,
                Poll::Ready(Some(Err(failure))) => return Err(SendFailure::Body(failure)),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(piece) => self.take(piece)?,
                    Err(frame) => self.end(frame.into_trailers().ok())?,
                },
            }
        }
        Ok(Poll::Ready(()))
    }

    fn take(&mut self, piece: Bytes) -> Result<(), SendFailure<B::Error>> {
        let is_last = self.body.is_end_stream();
        match &mut self.framing {
            Framing::Bodiless | Framing::UntilClosed => self.has_ended = is_last,
            Framing::Length(left) => {
                // What is longer than announced would be taken for the next message.
                let rest = left.checked_sub(piece.len() as u64);
                *left = rest.ok_or_else(|| SendFailure::Io(io::ErrorKind::InvalidData.into()))?;
                self.has_ended = *left == 0;
            }
            Framing::Chunked { .. } => {
                if !piece.is_empty() {
                    self.size = SizeLine::of(piece.len());
                    self.tail = if is_last { b"\r\n0\r\n\r\n" } else { b"\r\n" };
                    self.has_ended = is_last;
                }
            }
        }
        self.piece = piece;
        Ok(())
    }

    fn end(&mut self, trailers: Option<HeaderMap>) -> Result<(), SendFailure<B::Error>> {
        self.has_ended = true;
        match self.framing {
            Framing::Length(left @ 1..) => {
                let reason = format!("the body ended {left} bytes before its end");
                return Err(SendFailure::Io(io::Error::new(io::ErrorKind::UnexpectedEof, reason)));
            }
            Framing::Chunked { trailers: wanted } => match trailers.filter(|_| wanted) {
                None => self.tail = b"0\r\n\r\n",
                Some(trailers) => self.trail(&trailers),
            },
            _ => {}
        }
        Ok(())
    }

    fn trail(&mut self, trailers: &HeaderMap) {
        let end = &mut self.lead;
        end.extend_from_slice(b"0\r\n");
        for (name, value) in trailers {
            // What says how a message is to be read is too late here (RFC 9110 §6.5.1).
            if ![CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER, HOST].contains(name) {
                fields::line(end, name, value.as_bytes());
            }
        }
        end.extend_from_slice(b"\r\n");
    }
}

fn is_chunked(framing: Framing) -> bool {
    matches!(framing, Framing::Chunked { .. })
}

/// The line with a chunk's size.
#[derive(Debug, Default, Clone, Copy)]
struct SizeLine {
    /// At the end of it.
    text: [u8; 18],
    left: u8,
}

impl SizeLine {
    fn of(mut size: usize) -> Self {
        let mut text = [0; 18];
        text[16..].copy_from_slice(b"\r\n");
        let mut at = 16;
        loop {
            at -= 1;
            text[at] = b"0123456789abcdef"[size & 15];
            size >>= 4;
            if size == 0 {
                break;
            }
        }
        Self { text, left: (text.len() - at) as u8 }
    }

    fn text(&self) -> &[u8] {
        &self.text[self.text.len() - usize::from(self.left)..]
    }

    fn advance(&mut self, count: usize) -> usize {
        let taken = count.min(usize::from(self.left));
        self.left -= taken as u8;
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    /// Takes as many bytes at a time as told.
    struct Narrow(Vec<u8>, usize);

    impl AsyncWrite for Narrow {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
            let count = from.len().min(self.1);
            self.0.extend_from_slice(&from[..count]);
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn sent(framing: Framing, frames: Vec<Frame<Bytes>>, width: usize) -> Result<String, ()> {
        let mut frames = VecDeque::from(frames);
        let stream =
            futures_util::stream::poll_fn(move |_| Poll::Ready(frames.pop_front().map(Ok::<_, Infallible>)));
        let mut sending = Sending::new(b"head ".to_vec(), StreamBody::new(stream), framing);
        let mut stream = Narrow(Vec::new(), width);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        while sending.poll(&mut stream, &mut cx).map_err(|_| ())?.is_pending() {}
        assert_eq!(sending.sent(), stream.0.len() as u64);
        Ok(String::from_utf8(stream.0).unwrap())
    }

    #[test]
    fn messages_are_framed_whatever_is_taken_at_a_time() {
        let data = |text: &'static str| Frame::data(Bytes::from_static(text.as_bytes()));
        let trailers = || {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", "1".parse().unwrap());
            trailers.insert("content-length", "7".parse().unwrap());
            Frame::trailers(trailers)
        };
        let chunked = |trailers| Framing::Chunked { trailers };
        type Case = (Framing, Vec<&'static str>, bool, Result<&'static str, ()>);
        let cases: [Case; 10] = [
            (Framing::Bodiless, vec!["x"], false, Ok("head ")),
            (Framing::UntilClosed, vec!["a", "b"], true, Ok("head ab")),
            (Framing::Length(3), vec!["ab", "c"], false, Ok("head abc")),
            (Framing::Length(0), vec![], false, Ok("head ")),
            (Framing::Length(3), vec!["ab"], false, Err(())),
            (Framing::Length(1), vec!["ab"], false, Err(())),
            (chunked(true), vec![], false, Ok("head 0\r\n\r\n")),
            (
                chunked(true),
                vec!["a", "", "0123456789abcdef"],
                true,
                Ok("head 1\r\na\r\n10\r\n0123456789abcdef\r\n0\r\nx-sum: 1\r\n\r\n"),
            ),
            (chunked(false), vec!["a"], true, Ok("head 1\r\na\r\n0\r\n\r\n")),
            (chunked(false), vec!["a", "b"], false, Ok("head 1\r\na\r\n1\r\nb\r\n0\r\n\r\n")),
        ];
        for (framing, pieces, with_trailers, want) in cases {
            for width in [1, 2, 3, 7, 100] {
                let mut frames: Vec<_> = pieces.iter().map(|piece| data(piece)).collect();
                frames.extend(with_trailers.then(trailers));
                assert_eq!(
                    sent(framing, frames, width).as_deref(),
                    want.as_ref().map(|want| *want).map_err(|()| &()),
                    "{framing:?} {pieces:?}"
                );
            }
        }
    }
}
