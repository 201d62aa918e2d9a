//! A response's body together with the connection that must be driven for it to arrive.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::Http1;

/// A body that moves its connection on whenever it is asked for more.
#[derive(Debug)]
pub(crate) struct Driven {
    incoming: Incoming,
    /// None for HTTP/2, whose connections drive themselves.
    connection: Option<Box<Http1>>,
    /// What was looked at ahead of time.
    ahead: Option<Frame<Bytes>>,
}

impl Driven {
    /// A body on a connection of its own.
    pub(super) fn over(incoming: Incoming, connection: Box<Http1>) -> Self {
        Self { incoming, connection: Some(connection), ahead: None }
    }

    /// A body on a connection that drives itself.
    pub(crate) fn shared(incoming: Incoming) -> Self {
        Self { incoming, connection: None, ahead: None }
    }

    /// Looks whether something has come already, without waiting. An endpoint that died right behind the head of its
    /// response is found out here, while another can still be asked.
    pub(crate) async fn look_ahead(&mut self) -> hyper::Result<()> {
        let first = poll_fn(|cx| Poll::Ready(Pin::new(&mut *self).poll_frame(cx))).await;
        if let Poll::Ready(Some(frame)) = first {
            self.ahead = Some(frame?);
        }
        Ok(())
    }

    /// The whole body, if it has come already and nothing can follow.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        if !self.incoming.is_end_stream() {
            return None;
        }
        self.ahead.take_if(|frame| frame.is_data())?.into_data().ok()
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
        if let Some(frame) = self.ahead.take() {
            return Poll::Ready(Some(Ok(frame)));
        }
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
        self.ahead.is_none() && self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let ahead =
            self.ahead.as_ref().and_then(|frame| frame.data_ref()).map_or(0, |data| data.len() as u64);
        let rest = self.incoming.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + ahead);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + ahead);
        }
        hint
    }
}
