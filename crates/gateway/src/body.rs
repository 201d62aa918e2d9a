//! Request bodies: streamed from the client to an endpoint, with the beginning kept while it is small so that the
//! request can be repeated elsewhere, or looked into before it is sent.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::endpoint::locked;
use crate::incoming::ClientBody;

/// Limits of request bodies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// Most bytes kept for repeating a request.
    pub(crate) replay: usize,
    /// Most bytes of a whole body.
    pub(crate) total: u64,
    /// Longest pause of the client.
    pub(crate) pause: Duration,
}

/// Memory that all kept beginnings together may take.
#[derive(Debug)]
pub(crate) struct Memory {
    used: AtomicUsize,
    limit: usize,
}

impl Memory {
    /// A budget of this many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: AtomicUsize::new(0), limit }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.limit;
        if !fits {
            self.give(bytes);
        }
        fits
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Why a body cannot be read on: the client's doing, not an endpoint's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClientFailure {
    /// The connection broke or its framing is malformed.
    #[error("the request body cannot be read: {0}")]
    Read(String),
    /// Longer than allowed.
    #[error("the request body exceeds {0} bytes")]
    TooLarge(u64),
    /// Nothing came for too long.
    #[error("the request body paused for more than {0:?}")]
    Paused(Duration),
    /// The beginning could not be kept.
    #[error("too many request bodies are held in memory")]
    Memory,
}

/// A client's body, shared by the attempts to send it. Only the latest attempt reads on.
#[derive(Debug)]
pub(crate) struct RequestSource {
    state: Mutex<State>,
    limits: BodyLimits,
    memory: Arc<Memory>,
    /// Announced length.
    length: Option<u64>,
}

#[derive(Debug)]
struct State {
    /// None once the body has ended.
    incoming: Option<ClientBody>,
    kept: Vec<Bytes>,
    kept_bytes: usize,
    trailers: Option<HeaderMap>,
    /// Whether everything received so far is in `kept`.
    repeatable: bool,
    received: u64,
    failure: Option<ClientFailure>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl RequestSource {
    /// A body that has not been read yet.
    pub(crate) fn new(incoming: ClientBody, limits: BodyLimits, memory: Arc<Memory>) -> Arc<Self> {
        let length = incoming.size_hint().exact();
        let mut state = State {
            incoming: None,
            kept: Vec::new(),
            kept_bytes: 0,
            trailers: None,
            repeatable: true,
            received: 0,
            failure: None,
            timer: None,
        };
        match incoming {
            // There is nothing to wait for: it is kept as if it had been read already.
            ClientBody::Whole(bytes)
                if bytes.len() <= limits.replay
                    && bytes.len() as u64 <= limits.total
                    && memory.take(bytes.len()) =>
            {
                (state.kept_bytes, state.received) = (bytes.len(), bytes.len() as u64);
                state.kept = vec![bytes];
            }
            incoming => state.incoming = Some(incoming),
        }
        Arc::new(Self { state: Mutex::new(state), limits, memory, length })
    }

    /// Whether another attempt can send the body from its beginning.
    pub(crate) fn is_repeatable(&self) -> bool {
        let state = locked(&self.state);
        state.repeatable && state.failure.is_none()
    }

    /// What the client did wrong, if it did.
    pub(crate) fn failure(&self) -> Option<ClientFailure> {
        locked(&self.state).failure.clone()
    }

    /// Bytes received so far.
    pub(crate) fn received(&self) -> u64 {
        locked(&self.state).received
    }

    /// Shows the body to `look` piece by piece, from its beginning, until that has seen enough, the body ends, or
    /// `limit` bytes are kept. Everything read is kept.
    pub(crate) async fn look_into(
        &self,
        limit: usize,
        mut look: impl FnMut(&Bytes) -> bool,
    ) -> Result<(), ClientFailure> {
        for index in 0.. {
            let piece = poll_fn(|cx| self.poll_piece(index, limit, cx)).await?;
            if !piece.is_some_and(|piece| look(&piece)) {
                break;
            }
        }
        Ok(())
    }

    /// A piece of the beginning: one that is kept, or the next.
    fn poll_piece(
        &self,
        index: usize,
        limit: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ClientFailure>> {
        let mut state = locked(&self.state);
        loop {
            if let Some(piece) = state.kept.get(index) {
                return Poll::Ready(Ok(Some(piece.clone())));
            }
            if !state.repeatable || state.kept_bytes >= limit {
                return Poll::Ready(Ok(None));
            }
            let frame = match self.poll_incoming(&mut state, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Ready(Some(frame)) => frame?,
            };
            if let Some(data) = frame.data_ref()
                && !self.keep(&mut state, data, usize::MAX)
            {
                state.failure = Some(ClientFailure::Memory);
                return Poll::Ready(Err(ClientFailure::Memory));
            }
        }
    }

    /// A body for one attempt, with a range of the kept beginning replaced.
    pub(crate) fn play(self: &Arc<Self>, edit: Option<(Range<usize>, Bytes)>) -> RequestBody {
        let mut state = locked(&self.state);
        if state.kept_bytes > self.limits.replay {
            state.repeatable = false;
        }
        let grown = edit.as_ref().map_or(0, |(range, with)| with.len() as i64 - range.len() as i64);
        let (first, queue) = match (edit, &state.kept[..]) {
            // The usual case needs no queue.
            (None, [piece]) => (Some(piece.clone()), VecDeque::new()),
            (None, pieces) => (None, pieces.to_vec().into()),
            (Some((range, with)), pieces) => (None, replace(pieces, range, with)),
        };
        if !state.repeatable {
            state.kept = Vec::new();
        }
        drop(state);
        let left = self.length.map(|length| length.saturating_add_signed(grown));
        RequestBody(Some(Box::new(Playing { source: self.clone(), first, queue, left, trailed: false })))
    }

    /// The length of the body after an edit, where it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Keeps a piece if it fits, else gives up repeating.
    fn keep(&self, state: &mut State, data: &Bytes, limit: usize) -> bool {
        if !state.repeatable {
            return false;
        }
        if state.kept_bytes.saturating_add(data.len()) <= limit && self.memory.take(data.len()) {
            state.kept_bytes += data.len();
            state.kept.push(data.clone());
            return true;
        }
        state.repeatable = false;
        false
    }

    /// The next frame from the client, checked against the limits.
    fn poll_incoming(
        &self,
        state: &mut State,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientFailure>>> {
        let Some(incoming) = &mut state.incoming else { return Poll::Ready(None) };
        let failure = match Pin::new(incoming).poll_frame(cx) {
            Poll::Pending => match self.poll_pause(state, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(()) => ClientFailure::Paused(self.limits.pause),
            },
            Poll::Ready(None) => {
                state.incoming = None;
                state.timer = None;
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Err(error))) => ClientFailure::Read(error.to_string()),
            Poll::Ready(Some(Ok(frame))) => {
                state.timer = None;
                state.received += frame.data_ref().map_or(0, |data| data.len() as u64);
                if state.received <= self.limits.total {
                    if let Some(trailers) = frame.trailers_ref() {
                        state.trailers = Some(trailers.clone());
                    }
                    return Poll::Ready(Some(Ok(frame)));
                }
                ClientFailure::TooLarge(self.limits.total)
            }
        };
        state.incoming = None;
        state.failure = Some(failure.clone());
        Poll::Ready(Some(Err(failure)))
    }

    fn poll_pause(&self, state: &mut State, cx: &mut Context<'_>) -> Poll<()> {
        if self.limits.pause.is_zero() {
            return Poll::Pending;
        }
        let limit = self.limits.pause;
        let timer = state.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        timer.as_mut().poll(cx)
    }
}

impl Drop for RequestSource {
    fn drop(&mut self) {
        self.memory.give(locked(&self.state).kept_bytes);
    }
}

/// The pieces with a range replaced. Nothing is copied.
fn replace(pieces: &[Bytes], range: Range<usize>, with: Bytes) -> VecDeque<Bytes> {
    let mut queue = VecDeque::with_capacity(pieces.len() + 2);
    let mut replacement = Some(with);
    let mut at = 0;
    for piece in pieces {
        let (start, end) = (at, at + piece.len());
        at = end;
        if start < range.start {
            queue.push_back(piece.slice(..range.start.min(end) - start));
        }
        if end >= range.start
            && let Some(with) = replacement.take_if(|_| range.start >= start && range.start <= end)
        {
            queue.push_back(with);
        }
        if end > range.end {
            queue.push_back(piece.slice(range.end.max(start) - start..));
        }
    }
    queue
}

/// The body of one attempt.
#[derive(Debug, Default)]
pub(crate) struct RequestBody(Option<Box<Playing>>);

#[derive(Debug)]
struct Playing {
    source: Arc<RequestSource>,
    /// What comes before the queue.
    first: Option<Bytes>,
    queue: VecDeque<Bytes>,
    /// Bytes still to come, where known.
    left: Option<u64>,
    trailed: bool,
}

impl RequestBody {
    /// No body.
    pub(crate) fn empty() -> Self {
        Self(None)
    }

    /// Takes back a piece that came from here last.
    pub(crate) fn put_back(&mut self, piece: Bytes) {
        if let Some(playing) = &mut self.0
            && !piece.is_empty()
        {
            playing.left = playing.left.map(|left| left + piece.len() as u64);
            if let Some(next) = playing.first.replace(piece) {
                playing.queue.push_front(next);
            }
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = ClientFailure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientFailure>>> {
        let Some(playing) = &mut self.0 else { return Poll::Ready(None) };
        if let Some(piece) = playing.first.take().or_else(|| playing.queue.pop_front()) {
            playing.count(&piece);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let source = playing.source.clone();
        let mut state = locked(&source.state);
        let polled = source.poll_incoming(&mut state, cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => match frame.data_ref() {
                Some(data) => {
                    playing.count(data);
                    source.keep(&mut state, data, source.limits.replay);
                    if !state.repeatable {
                        source.memory.give(std::mem::take(&mut state.kept_bytes));
                        state.kept = Vec::new();
                    }
                }
                None => playing.trailed = true,
            },
            Poll::Ready(None) if !playing.trailed => {
                playing.trailed = true;
                if let Some(trailers) = state.trailers.clone() {
                    return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                }
            }
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|playing| playing.left == Some(0))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            None => SizeHint::with_exact(0),
            Some(playing) => playing.left.map(SizeHint::with_exact).unwrap_or_default(),
        }
    }
}

impl Playing {
    fn count(&mut self, piece: &Bytes) {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(piece.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_replaced_wherever_the_pieces_break() {
        let text = b"{\"model\":\"team/chat\",\"n\":1}";
        let range = 9..20;
        let want = b"{\"model\":\"llama\",\"n\":1}";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]].map(Bytes::from_static);
                let queue = replace(&pieces, range.clone(), Bytes::from_static(b"\"llama\""));
                assert_eq!(queue.into_iter().collect::<Vec<_>>().concat(), want, "{first} {second}");
            }
        }
    }

    #[test]
    fn memory_is_given_back() {
        let memory = Memory::new(10);
        assert!(memory.take(6));
        assert!(!memory.take(6));
        memory.give(6);
        assert!(memory.take(10));
    }
}
