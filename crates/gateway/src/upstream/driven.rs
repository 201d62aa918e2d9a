//! A response's body together with the connection that must be driven for it to arrive.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::{Answer, Http1};

/// A body that moves its connection on whenever it is asked for more.
#[derive(Debug)]
pub(crate) struct Driven {
    incoming: Incoming,
    connection: Option<Box<Http1>>,
}

impl Driven {
    /// The body of an answer.
    pub(crate) fn new(answer: Answer) -> Self {
        Self { incoming: answer.response.into_body(), connection: answer.connection }
    }

    /// A body and its connection.
    pub(crate) fn of(incoming: Incoming, connection: Option<Box<Http1>>) -> Self {
        Self { incoming, connection }
    }

    /// Takes the connection out, once the body is complete.
    pub(crate) fn take_connection(&mut self) -> Option<Box<Http1>> {
        self.connection.take()
    }
}

impl Body for Driven {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        if polled.is_ready() {
            return polled;
        }
        // The body says that it wants more before the connection is asked to deliver it.
        match &mut self.connection {
            Some(connection) => connection.drive(cx),
            None => return polled,
        }
        Pin::new(&mut self.incoming).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
