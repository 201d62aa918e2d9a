//! Response bodies: the gateway's own, or an endpoint's, passed on frame by frame as it arrives.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::endpoint::Lease;
use crate::record::Record;
use crate::tunnel::Tunnel;
use crate::upstream::{Answer, AnswerError, Driven};

/// The body of a response to a client.
#[derive(Debug)]
pub(crate) struct ReplyBody(Kind);

#[derive(Debug)]
enum Kind {
    Empty,
    Full(Option<Bytes>),
    Relayed(Box<Relayed>),
    Tunnel(Box<Tunnel>),
}

/// Why a body ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplyError {
    /// The endpoint's side broke.
    #[error("the endpoint's response ended early: {0}")]
    Endpoint(#[from] AnswerError),
    /// The endpoint paused for too long.
    #[error("the endpoint's response paused for more than {0:?}")]
    Paused(Duration),
}

/// A response on its way from an endpoint to a client.
#[derive(Debug)]
struct Relayed {
    body: Driven,
    worker: usize,
    lease: Lease,
    pause: Pause,
    record: Box<Record>,
    /// Whether what was passed on has had its chance to be written: writing happens when there is nothing more to
    /// pass on just now, and not at all after a failure.
    settled: bool,
    /// A failure that waits for that.
    late: Option<ReplyError>,
    ended: bool,
}

impl ReplyBody {
    /// No body.
    pub(crate) fn empty() -> Self {
        Self(Kind::Empty)
    }

    /// A body that is there already.
    pub(crate) fn full(bytes: Bytes) -> Self {
        Self(Kind::Full(Some(bytes)))
    }

    /// No body, but all that follows on the connection.
    pub(crate) fn tunnel(tunnel: Tunnel) -> Self {
        Self(Kind::Tunnel(Box::new(tunnel)))
    }

    /// Takes the tunnel out that the connection is to become.
    pub(crate) fn take_tunnel(&mut self) -> Option<Box<Tunnel>> {
        match std::mem::replace(&mut self.0, Kind::Empty) {
            Kind::Tunnel(tunnel) => Some(tunnel),
            other => {
                self.0 = other;
                None
            }
        }
    }

    /// Whether all of it is there.
    pub(crate) fn is_whole(&self) -> bool {
        !matches!(self.0, Kind::Relayed(_))
    }

    /// An endpoint's body. Where there is none, the connection goes back to the pool at once.
    pub(crate) fn relay(
        answer: Answer,
        worker: usize,
        lease: Lease,
        idle: Duration,
        record: Box<Record>,
    ) -> http::Response<Self> {
        let (head, body) = answer.into_parts();
        let mut relayed = Relayed {
            body,
            worker,
            lease,
            pause: Pause::new(idle),
            record,
            settled: false,
            late: None,
            ended: false,
        };
        if relayed.body.is_end_stream() {
            relayed.finish();
            return http::Response::from_parts(head, Self::empty());
        }
        if let Some(whole) = relayed.body.take_whole() {
            relayed.record.passed(&whole);
            relayed.finish();
            return http::Response::from_parts(head, Self::full(whole));
        }
        http::Response::from_parts(head, Self(Kind::Relayed(Box::new(relayed))))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = ReplyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ReplyError>>> {
        match &mut self.get_mut().0 {
            Kind::Empty | Kind::Tunnel(_) => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Relayed(relayed) => relayed.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty | Kind::Tunnel(_) => true,
            Kind::Full(bytes) => bytes.is_none(),
            Kind::Relayed(relayed) => relayed.ended && relayed.late.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty | Kind::Tunnel(_) | Kind::Full(None) => SizeHint::with_exact(0),
            Kind::Full(Some(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Relayed(relayed) => relayed.body.size_hint(),
        }
    }
}

impl Relayed {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ReplyError>>> {
        if let Some(error) = self.late.take() {
            return Poll::Ready(Some(Err(error)));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let settled = std::mem::take(&mut self.settled);
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => match self.pause.poll(cx) {
                Poll::Pending => {
                    self.settled = true;
                    Poll::Pending
                }
                Poll::Ready(limit) => {
                    self.record.broke("endpoint paused");
                    self.ended = true;
                    Poll::Ready(Some(Err(ReplyError::Paused(limit))))
                }
            },
            Poll::Ready(None) => {
                self.finish();
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                self.record.broke("endpoint broke off");
                self.ended = true;
                if settled {
                    return Poll::Ready(Some(Err(error.into())));
                }
                self.late = Some(error.into());
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.lease.arrived();
                    self.record.passed(data);
                }
                self.pause.moved();
                if self.body.is_end_stream() {
                    self.finish();
                }
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }

    /// The body is complete: the connection can carry the next request.
    fn finish(&mut self) {
        self.ended = true;
        self.record.completed();
        if let Some(connection) = self.body.take_connection() {
            self.lease.live().pool(self.worker).checkin(connection);
        }
    }
}

/// A limit on pauses. The timer is moved only when it fires, not at every frame.
#[derive(Debug)]
struct Pause {
    limit: Duration,
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pause {
    fn new(limit: Duration) -> Self {
        Self { limit, since: None, timer: None }
    }

    fn moved(&mut self) {
        self.since = None;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        if self.limit.is_zero() {
            return Poll::Pending;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let deadline = since + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(self.limit);
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}
