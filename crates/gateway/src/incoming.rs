//! A request's body as it comes from the client: whole with its head, piece by piece over HTTP/1, or over HTTP/2.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::endpoint::locked;

/// A request's body.
#[derive(Debug)]
pub(crate) enum ClientBody {
    /// All of it came with the head.
    Whole(Bytes),
    /// The connection reads it when it is asked for.
    Piped(PipeEnd),
    /// On a stream of an HTTP/2 connection.
    Http2(Incoming),
}

/// Why a body cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(pub(crate) String);

/// Where a connection puts the pieces of a body, one at a time and only when one is wanted.
#[derive(Debug)]
pub(crate) struct Pipe(Arc<Mutex<Slot>>);

/// The end of a pipe where a body comes out.
#[derive(Debug)]
pub(crate) struct PipeEnd {
    slot: Arc<Mutex<Slot>>,
    /// The length that is left, where it was announced.
    left: Option<u64>,
}

#[derive(Debug, Default)]
struct Slot {
    next: Next,
    /// Who waits for a piece.
    reader: Option<Waker>,
    /// Whom to tell that one is wanted.
    connection: Option<Waker>,
}

#[derive(Debug, Default)]
enum Next {
    /// Nothing has come, and nobody has asked.
    #[default]
    Unasked,
    /// Somebody waits for a piece.
    Wanted,
    /// One has come, and whether it is the last.
    Piece(Frame<Bytes>, bool),
    /// Nothing more comes, or a reason why not.
    End(Option<Unreadable>),
    /// Nobody will ask again.
    Abandoned,
}

/// Whether the connection is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    /// A piece is wanted.
    Wanted,
    /// Not now.
    Later,
    /// Never again.
    Never,
}

impl Pipe {
    /// A pipe for a body of this length.
    pub(crate) fn new(length: Option<u64>) -> (Self, PipeEnd) {
        let slot = Arc::<Mutex<Slot>>::default();
        (Self(slot.clone()), PipeEnd { slot, left: length })
    }

    /// Whether a piece is wanted. If it will be later, the task is woken then.
    pub(crate) fn demand(&self, cx: &Context<'_>) -> Demand {
        let mut slot = locked(&self.0);
        match slot.next {
            Next::Wanted => return Demand::Wanted,
            Next::Abandoned => return Demand::Never,
            _ => {}
        }
        if !slot.connection.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            slot.connection = Some(cx.waker().clone());
        }
        Demand::Later
    }

    /// Passes a piece on, which may be the last.
    pub(crate) fn put(&self, piece: Frame<Bytes>, is_last: bool) {
        self.set(Next::Piece(piece, is_last));
    }

    /// Says that the body ends here, or why it cannot be read on.
    pub(crate) fn end(&self, failure: Option<Unreadable>) {
        self.set(Next::End(failure));
    }

    fn set(&self, next: Next) {
        let mut slot = locked(&self.0);
        if !matches!(slot.next, Next::Abandoned) {
            slot.next = next;
        }
        // The connection itself need not be woken; it goes on by itself.
        if let Some(reader) = slot.reader.take()
            && !slot.connection.as_ref().is_some_and(|connection| connection.will_wake(&reader))
        {
            reader.wake();
        }
    }
}

impl PipeEnd {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Unreadable>>> {
        let mut slot = locked(&self.slot);
        match std::mem::replace(&mut slot.next, Next::Wanted) {
            Next::Piece(piece, is_last) => {
                slot.next = if is_last { Next::End(None) } else { Next::Unasked };
                if let (Some(left), Some(data)) = (&mut self.left, piece.data_ref()) {
                    *left = left.saturating_sub(data.len() as u64);
                }
                Poll::Ready(Some(Ok(piece)))
            }
            Next::End(failure) => {
                slot.next = Next::End(None);
                Poll::Ready(failure.map(Err))
            }
            Next::Unasked | Next::Wanted | Next::Abandoned => {
                slot.reader = Some(cx.waker().clone());
                if let Some(connection) = &slot.connection
                    && !connection.will_wake(cx.waker())
                {
                    connection.wake_by_ref();
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        locked(&self.slot).next = Next::Abandoned;
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = Unreadable;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unreadable>>> {
        match self.get_mut() {
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Self::Piped(end) => end.poll_frame(cx),
            Self::Http2(incoming) => Pin::new(incoming)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|error| Unreadable(error.to_string())))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Piped(end) => end.left == Some(0),
            Self::Http2(incoming) => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Piped(end) => end.left.map(SizeHint::with_exact).unwrap_or_default(),
            Self::Http2(incoming) => incoming.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_carries_what_is_asked_for_and_no_more() {
        let mut cx = Context::from_waker(Waker::noop());
        let (pipe, mut end) = Pipe::new(Some(3));
        assert_eq!(pipe.demand(&cx), Demand::Later);
        assert!(end.poll_frame(&mut cx).is_pending());
        assert_eq!(pipe.demand(&cx), Demand::Wanted);
        pipe.put(Frame::data(Bytes::from_static(b"abc")), false);
        assert_eq!(pipe.demand(&cx), Demand::Later);
        let Poll::Ready(Some(Ok(piece))) = end.poll_frame(&mut cx) else { panic!("a piece") };
        assert_eq!((piece.into_data().unwrap(), end.left), (Bytes::from_static(b"abc"), Some(0)));
        assert_eq!(pipe.demand(&cx), Demand::Later, "what was taken was not asked for again");
        pipe.end(Some(Unreadable("no".to_owned())));
        assert!(matches!(end.poll_frame(&mut cx), Poll::Ready(Some(Err(_)))));
        assert!(matches!(end.poll_frame(&mut cx), Poll::Ready(None)));
        drop(end);
        assert_eq!(pipe.demand(&cx), Demand::Never);
    }
}
