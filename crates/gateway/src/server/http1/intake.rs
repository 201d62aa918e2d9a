//! A request's body on its way in: read off the connection when it is asked for, and thrown away when it never will be.

use std::task::{Context, Poll};

use tokio::io::AsyncRead;

use crate::http1::{Rest, poll_read, with_scratch};
use crate::incoming::{Demand, Pipe, Unreadable};

/// Most bytes of a body that are read for nothing but to keep the connection.
const DISCARDED: u64 = 64 << 10;

/// The part of a body that is still to come.
#[derive(Debug)]
pub(super) struct Intake {
    rest: Rest,
    pipe: Pipe,
    /// Whether the client waits to be told to go on (RFC 9110 §10.1.1).
    pub(super) waits: bool,
    discarded: u64,
}

/// What became of a connection that is asked for more of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// A piece was passed on, or the end was.
    Some,
    /// The body is complete, and passed on.
    All,
    /// It cannot be read on. Whoever reads it knows.
    Failed {
        /// Because it is malformed, and not because the client left.
        malformed: bool,
    },
    /// The client is to be told to go on first.
    Continue,
}

impl Intake {
    /// A body of which nothing was passed on yet.
    pub(super) fn new(rest: Rest, pipe: Pipe, waits: bool) -> Self {
        Self { rest, pipe, waits, discarded: 0 }
    }

    /// Whether it can be thrown away to keep the connection.
    pub(super) fn is_small(&self) -> bool {
        !self.waits && matches!(self.rest, Rest::Length(left) if left <= DISCARDED)
    }

    /// Reads a piece, if one is wanted. `ahead` is what came before.
    pub(super) fn poll(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        ahead: &mut Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Poll<Taken> {
        if self.pipe.demand(cx) != Demand::Wanted {
            return Poll::Pending;
        }
        if let Some(trailers) = self.rest.take_late_trailers() {
            self.pipe.put(trailers, true);
            return Poll::Ready(Taken::All);
        }
        if !ahead.is_empty() {
            let bytes = std::mem::take(ahead);
            let (taken, used) = self.take(&bytes);
            ahead.extend_from_slice(&bytes[used..]);
            return Poll::Ready(taken);
        }
        if std::mem::take(&mut self.waits) {
            return Poll::Ready(Taken::Continue);
        }
        with_scratch(|scratch| {
            let count = match std::task::ready!(poll_read(stream, scratch, cx)) {
                Ok(0) => {
                    self.pipe.end(Some(Unreadable("the connection closed before its end".to_owned())));
                    return Poll::Ready(Taken::Failed { malformed: false });
                }
                Ok(count) => count,
                Err(error) => {
                    self.pipe.end(Some(Unreadable(error.to_string())));
                    return Poll::Ready(Taken::Failed { malformed: false });
                }
            };
            let (taken, used) = self.take(&scratch[..count]);
            ahead.extend_from_slice(&scratch[used..count]);
            Poll::Ready(taken)
        })
    }

    /// Passes on what bytes hold, and says how many of them it was.
    fn take(&mut self, bytes: &[u8]) -> (Taken, usize) {
        match self.rest.decode(bytes) {
            Err(malformed) => {
                self.pipe.end(Some(Unreadable(malformed.to_string())));
                (Taken::Failed { malformed: true }, bytes.len())
            }
            Ok((frame, used)) => {
                let is_done = self.rest.is_done();
                match frame {
                    Some(frame) => self.pipe.put(frame, is_done),
                    None if is_done => self.pipe.end(None),
                    None => {}
                }
                (if is_done { Taken::All } else { Taken::Some }, used)
            }
        }
    }

    /// Throws the rest away. Ready with whether all of it came within bounds.
    pub(super) fn discard(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        ahead: &mut Vec<u8>,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        let bytes = std::mem::take(ahead);
        if !bytes.is_empty() {
            match self.throw(&bytes) {
                Some(used) => ahead.extend_from_slice(&bytes[used..]),
                None => return Poll::Ready(false),
            }
        }
        while !self.rest.is_done() {
            let is_over = with_scratch(|scratch| {
                let Ok(count @ 1..) = std::task::ready!(poll_read(stream, scratch, cx)) else {
                    return Poll::Ready(true);
                };
                let used = self.throw(&scratch[..count]);
                ahead.extend_from_slice(&scratch[used.unwrap_or(count)..count]);
                Poll::Ready(used.is_none())
            });
            if std::task::ready!(is_over) {
                return Poll::Ready(false);
            }
        }
        Poll::Ready(true)
    }

    fn throw(&mut self, bytes: &[u8]) -> Option<usize> {
        let (_, used) = self.rest.decode(bytes).ok()?;
        self.rest.take_late_trailers();
        self.discarded += used as u64;
        (self.discarded <= DISCARDED).then_some(used)
    }
}
