//! Idle connections to one address, kept per worker so that no other thread touches them.

use std::time::{Duration, Instant};

use hyper::client::conn::http2;

use super::Http1;
use crate::body::RequestBody;

/// How long a connection may idle. Below the keep-alive limits usual in servers.
const IDLE: Duration = Duration::from_secs(50);

/// Idle connections kept per worker and address.
const KEPT: usize = 256;

/// The worker that probes count as.
pub(crate) const NOBODY: usize = usize::MAX;

/// Connections to one address.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    #[expect(
        clippy::vec_box,
        reason = "connections are handed about boxed; the large ones would be copied each time"
    )]
    idle: Vec<Box<Http1>>,
    http2: Option<http2::SendRequest<RequestBody>>,
}

/// A connection to send on.
#[derive(Debug)]
pub(crate) enum Reused {
    /// One request at a time.
    Http1(Box<Http1>),
    /// Shared.
    Http2(http2::SendRequest<RequestBody>),
}

impl Pool {
    /// The connection used last, if it still works.
    pub(crate) fn checkout(&mut self) -> Option<Reused> {
        if let Some(sender) = &self.http2 {
            if sender.is_closed() {
                self.http2 = None;
            } else {
                return Some(Reused::Http2(sender.clone()));
            }
        }
        while let Some(mut connection) = self.idle.pop() {
            if connection.is_idle() {
                return Some(Reused::Http1(connection));
            }
        }
        None
    }

    /// Keeps a connection whose exchange is over.
    pub(crate) fn checkin(&mut self, mut connection: Box<Http1>) {
        if self.idle.len() < KEPT && connection.is_idle() {
            connection.used = Instant::now();
            self.idle.push(connection);
        }
    }

    /// Drops every idle connection.
    pub(super) fn clear(&mut self) {
        self.idle.clear();
    }

    /// Shares an HTTP/2 connection.
    pub(super) fn keep_http2(&mut self, sender: http2::SendRequest<RequestBody>) {
        self.http2 = Some(sender);
    }

    /// Stops sharing the HTTP/2 connection. Its exchanges go on.
    pub(super) fn forget_http2(&mut self) {
        self.http2 = None;
    }

    /// Drops connections that have idled for long or were closed by the endpoint.
    pub(crate) fn sweep(&mut self, now: Instant) {
        self.idle.retain_mut(|connection| {
            now.saturating_duration_since(connection.used) < IDLE && connection.is_idle()
        });
        if self.http2.as_ref().is_some_and(http2::SendRequest::is_closed) {
            self.http2 = None;
        }
    }
}
