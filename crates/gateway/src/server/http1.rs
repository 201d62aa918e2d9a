//! HTTP/1 connections from clients. One that idles gives its buffers back: it keeps its socket, its task and little
//! else until the next request.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use hyper::server::conn::http1::{Builder, UpgradeableConnection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;

use super::{Client, Exchanges, Phase, Shared, log_end, reach};
use crate::options::USUAL_HEADERS;

/// After how long of idling a connection gives its buffers back.
const DOZE: Duration = Duration::from_millis(300);

/// A client's stream.
pub(super) trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static {
    /// Whether [`ClientStream::wake`] says when the client sends something.
    const CAN_DOZE: bool;

    /// Resolves when the client has sent something or left.
    fn wake(&self) -> impl Future<Output = io::Result<()>> + Send;
}

impl ClientStream for TcpStream {
    const CAN_DOZE: bool = true;

    fn wake(&self) -> impl Future<Output = io::Result<()>> + Send {
        self.readable()
    }
}

/// TLS may hold on to data that was sent long ago, so its socket does not tell whether there is any.
impl ClientStream for TlsStream<TcpStream> {
    const CAN_DOZE: bool = false;

    fn wake(&self) -> impl Future<Output = io::Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// What goes on on a connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Exchanges whose response is not passed on yet.
    exchanges: AtomicU32,
    /// Exchanges so far.
    began: AtomicU32,
    /// Something was read since the last exchange ended: perhaps a part of the next request's head.
    has_read: AtomicBool,
    /// Something is still to be written.
    is_blocked: AtomicBool,
    /// Writes that got something across.
    writes: AtomicU32,
}

/// An exchange that goes on while this is held.
#[derive(Debug)]
pub(crate) struct Ongoing(Arc<Activity>);

impl Activity {
    /// An exchange begins.
    pub(super) fn begin(self: &Arc<Self>) -> Ongoing {
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        self.began.fetch_add(1, Ordering::Relaxed);
        Ongoing(self.clone())
    }

    fn is_idle(&self) -> bool {
        self.exchanges.load(Ordering::Relaxed) == 0
            && !self.has_read.load(Ordering::Relaxed)
            && !self.is_blocked.load(Ordering::Relaxed)
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.0.has_read.store(false, Ordering::Relaxed);
        self.0.exchanges.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why [`drive`] returns.
#[derive(Debug, PartialEq, Eq)]
enum Driven {
    Ended,
    Idle,
}

type Connection<S> = UpgradeableConnection<TokioIo<Watched<S>>, Exchanges>;

/// Serves a connection until it ends.
pub(super) async fn serve<S: ClientStream>(shared: Arc<Shared>, client: Client, stream: S) {
    let mut phase = shared.phase.subscribe();
    let limits = shared.limits;
    let mut builder = Builder::new();
    builder
        // Watched over in `drive`.
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes.max(8 << 10));
    if limits.headers != USUAL_HEADERS {
        builder.max_headers(limits.headers);
    }
    let activity = Arc::new(Activity::default());
    let mut stream = Watched { stream, ahead: Bytes::new(), activity: activity.clone() };
    loop {
        let exchanges = Exchanges { shared: shared.clone(), client, activity: Some(activity.clone()) };
        let mut connection =
            Box::new(builder.serve_connection(TokioIo::new(stream), exchanges).with_upgrades());
        if drive(&mut connection, &shared, client, &mut phase, &activity).await == Driven::Ended {
            return;
        }
        let Some(parts) = connection.into_parts() else { return };
        stream = parts.io.into_inner();
        stream.ahead = parts.read_buf;
        if stream.ahead.is_empty() {
            let woken = tokio::select! {
                woken = tokio::time::timeout(limits.idle, stream.stream.wake()) => woken,
                _ = reach(&mut phase, Phase::Draining) => return,
            };
            if !matches!(woken, Ok(Ok(()))) {
                return;
            }
        }
    }
}

/// Drives a connection until it ends or has idled for long enough to be put to sleep.
///
/// One timer watches over a connection as long as it lives: a timer for each request, and asking at each step whether
/// the gateway is to stop, would cost more than reading the requests' heads.
async fn drive<S: ClientStream>(
    connection: &mut Connection<S>,
    shared: &Shared,
    client: Client,
    phase: &mut watch::Receiver<Phase>,
    activity: &Activity,
) -> Driven {
    let limit = shared.limits.idle;
    let interval = if S::CAN_DOZE { DOZE / 2 } else { limit / 2 };
    let mut timer = pin!(tokio::time::sleep(interval));
    let mut watch = Watch { moves: (0, 0), waits_since: Instant::now(), was_idle: false };
    let mut wanted = Phase::Draining;
    loop {
        let seen = phase.clone();
        let mut stop = pin!(reach(phase, wanted));
        let mut is_registered = false;
        let event = poll_fn(|cx| {
            if let Poll::Ready(ended) = Pin::new(&mut *connection).poll(cx) {
                return Poll::Ready(Event::Ended(ended));
            }
            // Polled once, both wake this task by themselves.
            let registered = std::mem::replace(&mut is_registered, true);
            if (!registered || seen.has_changed().unwrap_or(true))
                && let Poll::Ready(reached) = stop.as_mut().poll(cx)
            {
                return Poll::Ready(Event::Stop(reached));
            }
            if (!registered || timer.is_elapsed()) && timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Tick);
            }
            Poll::Pending
        })
        .await;
        match event {
            Event::Ended(ended) => {
                log_end(shared, client, ended);
                return Driven::Ended;
            }
            Event::Stop(Phase::Closed) => return Driven::Ended,
            Event::Stop(_) => {
                wanted = Phase::Closed;
                Pin::new(&mut *connection).graceful_shutdown();
            }
            Event::Tick => {
                let now = Instant::now();
                timer.as_mut().reset((now + interval).into());
                match watch.look(activity, now) {
                    // A head that does not come, or not whole; an answer that is not taken.
                    waited if waited >= limit => return Driven::Ended,
                    _ if !S::CAN_DOZE || wanted == Phase::Closed => {}
                    _ => {
                        let idle = activity.is_idle();
                        if idle && watch.was_idle {
                            return Driven::Idle;
                        }
                        watch.was_idle = idle;
                    }
                }
            }
        }
    }
}

/// What happened to a connection.
enum Event {
    Ended(hyper::Result<()>),
    Stop(Phase),
    Tick,
}

/// What was seen of a connection at its timer's last tick.
struct Watch {
    /// Exchanges begun and writes made by then.
    moves: (u32, u32),
    /// Since when the client neither asks for anything nor takes what it asked for.
    waits_since: Instant,
    was_idle: bool,
}

impl Watch {
    /// For how long the connection has waited for its client.
    fn look(&mut self, activity: &Activity, now: Instant) -> Duration {
        let moves = (activity.began.load(Ordering::Relaxed), activity.writes.load(Ordering::Relaxed));
        let waits_for_endpoint =
            activity.exchanges.load(Ordering::Relaxed) > 0 && !activity.is_blocked.load(Ordering::Relaxed);
        if moves != self.moves || waits_for_endpoint {
            (self.moves, self.waits_since) = (moves, now);
        }
        now.saturating_duration_since(self.waits_since)
    }
}

/// A stream that tells what goes on, and gives back what was read from it before.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    ahead: Bytes,
    activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let count = self.ahead.len().min(into.remaining());
            into.put_slice(&self.ahead[..count]);
            self.ahead.advance(count);
            return Poll::Ready(Ok(()));
        }
        let polled = Pin::new(&mut self.stream).poll_read(cx, into);
        if polled.is_ready() {
            self.activity.has_read.store(true, Ordering::Relaxed);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    fn written<T>(&self, polled: Poll<T>) -> Poll<T> {
        self.activity.is_blocked.store(polled.is_pending(), Ordering::Relaxed);
        self.activity.writes.fetch_add(u32::from(polled.is_ready()), Ordering::Relaxed);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, from);
        self.written(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, from);
        self.written(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
