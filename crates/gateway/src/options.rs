//! How a gateway process is set up. What it routes is not here: that comes from a [`RouteSource`](crate::RouteSource).

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Listeners, threads and limits of a gateway.
#[derive(Clone, Debug)]
pub struct Options {
    /// Plain HTTP.
    pub listen: SocketAddr,
    /// HTTPS, if served.
    pub listen_tls: Option<SocketAddr>,
    /// Metrics, health and the live routes, if served. Not for clients.
    pub listen_admin: Option<SocketAddr>,
    /// Who does the work.
    pub workers: Workers,
    /// How long exchanges under way may go on after the gateway is told to stop.
    pub drain: Duration,
    /// Sizes and times that keep a client from holding on to more than its share.
    pub limits: Limits,
}

impl Options {
    /// The defaults, listening for plain HTTP.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            listen_tls: None,
            listen_admin: None,
            workers: Workers::default(),
            drain: Duration::from_secs(300),
            limits: Limits::default(),
        }
    }
}

/// Who does the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workers {
    /// The runtime that [`Gateway::serve`](crate::Gateway::serve) is called on.
    #[default]
    Ambient,
    /// Threads of the gateway's own, each with a runtime: no request ever moves between threads. Fastest.
    Threads(NonZeroUsize),
}

/// Sizes and times that keep a client from holding on to more than its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a connection may idle, and how long a request's head may take.
    pub idle: Duration,
    /// Longest pause in a request's body.
    pub body_pause: Duration,
    /// Most headers of a request.
    pub headers: usize,
    /// Most bytes of a request's head.
    pub head_bytes: usize,
    /// Most bytes of a request's body.
    pub body_bytes: u64,
    /// Most bytes of a request's body kept so that it can be repeated at another endpoint.
    pub replay_bytes: usize,
    /// Most bytes of a request's body read to find the model's name.
    pub model_bytes: usize,
    /// Memory for kept bodies of all requests together.
    pub memory_bytes: usize,
    /// Most connections from clients at a time.
    pub connections: usize,
}

/// Most headers unless told: as many as are taken without allocating for them.
pub(crate) const USUAL_HEADERS: usize = 100;

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(75),
            body_pause: Duration::from_secs(60),
            headers: USUAL_HEADERS,
            head_bytes: 64 << 10,
            body_bytes: 4 << 30,
            replay_bytes: 256 << 10,
            model_bytes: 16 << 20,
            memory_bytes: 512 << 20,
            connections: 100_000,
        }
    }
}
