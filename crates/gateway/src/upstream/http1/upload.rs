//! A request on its way out: its head and its body, sent as they can be, several pieces in one system call.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, HOST, TRAILER, TRANSFER_ENCODING};
use http_body::Body;
use tokio::io::AsyncWrite;

use super::Http1Error;
use crate::body::RequestBody;
use crate::upstream::connect::Stream;

/// A request that is being sent.
#[derive(Debug)]
pub(super) struct Upload {
    /// What goes out first: the head, or what precedes a piece.
    lead: Vec<u8>,
    /// How much of that is gone.
    lead_sent: usize,
    /// A piece of the body.
    piece: Bytes,
    /// What ends the piece.
    tail: Bytes,
    body: RequestBody,
    is_chunked: bool,
    has_ended: bool,
    /// Whether anything was sent.
    is_begun: bool,
    /// Whether what was sent may still lie in a buffer of ours.
    is_unflushed: bool,
}

impl Upload {
    /// A request of which nothing was sent yet.
    pub(super) fn new(head: Vec<u8>, body: RequestBody) -> Self {
        Self {
            lead: head,
            lead_sent: 0,
            piece: Bytes::new(),
            tail: Bytes::new(),
            is_chunked: body.size_hint().exact().is_none(),
            has_ended: body.is_end_stream(),
            body,
            is_begun: false,
            is_unflushed: false,
        }
    }

    /// Whether nothing was sent.
    pub(super) fn is_unsent(&self) -> bool {
        !self.is_begun
    }

    /// The body, for another attempt. Of use only while nothing was sent.
    pub(super) fn into_body(mut self) -> RequestBody {
        self.body.put_back(self.piece);
        self.body
    }

    /// Sends what can be sent. Ready when all is.
    pub(super) fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Result<Poll<()>, Http1Error> {
        loop {
            let waits = self.poll_piece(cx)?.is_pending();
            if self.is_empty() {
                // Before waiting for the client, all it sent so far is on its way.
                if self.is_unflushed && Pin::new(&mut *stream).poll_flush(cx)?.is_ready() {
                    self.is_unflushed = false;
                }
                return Ok(if waits || self.is_unflushed { Poll::Pending } else { Poll::Ready(()) });
            }
            let slices = [
                IoSlice::new(&self.lead[self.lead_sent..]),
                IoSlice::new(&self.piece),
                IoSlice::new(&self.tail),
            ];
            match Pin::new(&mut *stream).poll_write_vectored(cx, &slices) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(0)) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Poll::Ready(Ok(count)) => self.sent(count),
                Poll::Ready(Err(error)) => return Err(error.into()),
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.lead.len() == self.lead_sent && self.piece.is_empty() && self.tail.is_empty()
    }

    fn sent(&mut self, mut count: usize) {
        (self.is_begun, self.is_unflushed) = (true, true);
        let of_lead = count.min(self.lead.len() - self.lead_sent);
        self.lead_sent += of_lead;
        count -= of_lead;
        if self.lead_sent == self.lead.len() {
            (self.lead, self.lead_sent) = (Vec::new(), 0);
        }
        for part in [&mut self.piece, &mut self.tail] {
            let taken = count.min(part.len());
            part.advance(taken);
            count -= taken;
        }
    }

    /// Takes the next piece off the body, once the one before is gone. Pending while there is none.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, Http1Error> {
        while !self.has_ended && self.piece.is_empty() && self.tail.is_empty() {
            // A head waits for a piece that is there already, and for no other.
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(None) => self.end(None),
                Poll::Ready(Some(Err(failure))) => return Err(failure.into()),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(piece) => self.piece(piece),
                    Err(frame) => self.end(frame.into_trailers().ok()),
                },
            }
        }
        Ok(Poll::Ready(()))
    }

    fn piece(&mut self, piece: Bytes) {
        if self.is_chunked && !piece.is_empty() {
            self.lead.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            self.tail = Bytes::from_static(b"\r\n");
        }
        self.piece = piece;
        self.has_ended = self.body.is_end_stream();
    }

    fn end(&mut self, trailers: Option<HeaderMap>) {
        self.has_ended = true;
        if !self.is_chunked {
            return;
        }
        let end = &mut self.lead;
        end.extend_from_slice(b"0\r\n");
        for (name, value) in trailers.iter().flatten() {
            // What says how a message is to be read is too late here (RFC 9110 §6.5.1).
            if ![CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER, HOST].contains(name) {
                end.extend_from_slice(name.as_str().as_bytes());
                end.extend_from_slice(b": ");
                end.extend_from_slice(value.as_bytes());
                end.extend_from_slice(b"\r\n");
            }
        }
        end.extend_from_slice(b"\r\n");
    }
}
