//! HTTP/1 connections from clients (RFC 9112). One that idles keeps its socket, its task and little else.

mod connection;
pub(crate) mod head;
mod intake;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

use self::connection::{Connection, End, Progress};
use super::{Client, Phase, Shared, reach};
use crate::tunnel;

/// How long a connection stays open for a client that is still sending, so that it can read its answer: closing one
/// with unread bytes makes the other side forget what it received (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(2);

/// Most bytes that such a client may send.
const LINGER_BYTES: usize = 8 << 20;

/// Serves a connection until it ends.
pub(super) async fn serve<S>(shared: Arc<Shared>, client: Client, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut phase = shared.phase.subscribe();
    let limit = shared.limits.idle;
    let mut connection = Connection::new(shared, client, stream);
    let end = drive(&mut connection, limit, &mut phase).await;
    // Boxed: the many connections that idle should not carry room for the ends of a few.
    match end {
        End::Broken => {}
        End::Done { lingers } => {
            let (stream, _) = connection.into_parts();
            Box::pin(close(stream, lingers)).await;
        }
        End::Tunnel(tunnel) => {
            let (stream, ahead) = connection.into_parts();
            Box::pin(tunnel::run(*tunnel, stream, ahead, phase)).await;
        }
    }
}

/// Drives a connection until it ends.
///
/// One timer watches over a connection as long as it lives: a timer for each request, and asking at each step whether
/// the gateway is to stop, would cost more than reading the requests' heads.
async fn drive<S>(connection: &mut Connection<S>, limit: Duration, phase: &mut watch::Receiver<Phase>) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let interval = (limit / 2).max(Duration::from_millis(1));
    let mut timer = pin!(tokio::time::sleep(interval));
    let mut watch = Watch { moves: (0, 0), waits_since: Instant::now() };
    let mut wanted = Phase::Draining;
    loop {
        let seen = phase.clone();
        let mut stop = pin!(reach(phase, wanted));
        let mut is_registered = false;
        let event = poll_fn(|cx| {
            if let Poll::Ready(end) = connection.poll(cx) {
                return Poll::Ready(Event::Ended(end));
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
            Event::Ended(end) => return end,
            Event::Stop(Phase::Closed) => return End::Broken,
            Event::Stop(_) => {
                wanted = Phase::Closed;
                connection.drain();
            }
            Event::Tick => {
                let now = Instant::now();
                timer.as_mut().reset((now + interval).into());
                // A head that does not come, or not whole; an answer that is not taken.
                if watch.look(connection.progress(), now) >= limit {
                    return End::Broken;
                }
            }
        }
    }
}

/// What happened to a connection.
enum Event {
    Ended(End),
    Stop(Phase),
    Tick,
}

/// What was seen of a connection at its timer's last tick.
struct Watch {
    moves: (u32, u64),
    /// Since when the client neither asks for anything nor takes what it asked for.
    waits_since: Instant,
}

impl Watch {
    /// For how long the connection has waited for its client.
    fn look(&mut self, progress: Progress, now: Instant) -> Duration {
        if progress.moves != self.moves || progress.waits_for_endpoint {
            (self.moves, self.waits_since) = (progress.moves, now);
        }
        now.saturating_duration_since(self.waits_since)
    }
}

/// Closes a connection, in a way that lets a client that is still sending read its answer.
async fn close<S>(mut stream: S, lingers: bool)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let closing = async {
        if stream.shutdown().await.is_ok() && lingers {
            let mut discarded = 0;
            let mut piece = vec![0; 16 << 10];
            while let Ok(count @ 1..) = stream.read(&mut piece).await {
                discarded += count;
                if discarded > LINGER_BYTES {
                    break;
                }
            }
        }
    };
    tokio::time::timeout(LINGER, closing).await.ok();
}
