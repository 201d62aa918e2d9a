//! A response's body together with the connection that must be driven for it to arrive.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::{AnswerError, Http1};

/// A body that moves its connection on whenever it is asked for more.
#[derive(Debug)]
pub(crate) struct Driven {
    source: Source,
    /// What came together with the head.
    ahead: Option<Frame<Bytes>>,
}

#[derive(Debug)]
enum Source {
    /// A connection of its own, until that is taken out.
    Http1(Option<Box<Http1>>),
    /// A connection that drives itself.
    Shared(Incoming),
}

impl Driven {
    /// A body on a connection of its own.
    pub(super) fn over(connection: Box<Http1>, ahead: Option<Frame<Bytes>>) -> Self {
        Self { source: Source::Http1(Some(connection)), ahead }
    }

    /// A body on a connection that drives itself.
    pub(crate) fn shared(incoming: Incoming) -> Self {
        Self { source: Source::Shared(incoming), ahead: None }
    }

    /// Looks whether something has come already, without waiting. An endpoint that died right behind the head of its
    /// response is found out here, while another can still be asked.
    pub(crate) fn look_ahead(&mut self, cx: &mut Context<'_>) -> Result<(), AnswerError> {
        if self.ahead.is_none()
            && !self.is_end_stream()
            && let Poll::Ready(Some(frame)) = Pin::new(&mut *self).poll_frame(cx)
        {
            self.ahead = Some(frame?);
        }
        Ok(())
    }

    /// The whole body, if it has come already and nothing can follow.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        if !self.source.has_ended() {
            return None;
        }
        self.ahead.take_if(|frame| frame.is_data())?.into_data().ok()
    }

    /// Takes the connection out, once the body is complete.
    pub(crate) fn take_connection(&mut self) -> Option<Box<Http1>> {
        match &mut self.source {
            Source::Http1(connection) => connection.take(),
            Source::Shared(_) => None,
        }
    }
}

impl Source {
    fn has_ended(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.as_ref().is_none_or(|connection| connection.is_complete()),
            Self::Shared(incoming) => incoming.is_end_stream(),
        }
    }
}

impl Body for Driven {
    type Data = Bytes;
    type Error = AnswerError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnswerError>>> {
        if let Some(frame) = self.ahead.take() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match &mut self.source {
            Source::Http1(Some(connection)) => {
                connection.poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
            }
            Source::Http1(None) => Poll::Ready(None),
            Source::Shared(incoming) => {
                Pin::new(incoming).poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_none() && self.source.has_ended()
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.as_ref().and_then(|frame| frame.data_ref());
        let ahead = ahead.map_or(0, |data| data.len() as u64);
        let rest = match &self.source {
            Source::Http1(connection) => connection.as_ref().map(|connection| connection.size_hint()),
            Source::Shared(incoming) => Some(incoming.size_hint()),
        };
        let rest = rest.unwrap_or_else(|| SizeHint::with_exact(0));
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + ahead);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + ahead);
        }
        hint
    }
}
