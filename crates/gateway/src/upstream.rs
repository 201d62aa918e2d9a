//! Connections to endpoints: dialling, pooling, sending one request.
//!
//! An HTTP/1 connection is driven by the request that uses it, not by a task of its own: no wake-ups between tasks,
//! nothing to clean up when a client leaves. HTTP/2 connections are shared by requests, so each has a task.

mod connect;
mod driven;
mod http1;
pub(crate) mod pool;
pub(crate) mod tls;

use std::time::Duration;

use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri, Version};
use hyper::body::Incoming;

use crate::body::RequestBody;
use crate::endpoint::Live;

pub(crate) use self::connect::ConnectError;
pub(crate) use self::driven::Driven;
pub(crate) use self::http1::Http1;

/// A response whose body is still to come, on the connection it comes over.
pub(crate) type Answer = Response<Driven>;

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// No connection: nothing was sent.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A connection, but the request was not sent on it.
    #[error("the connection closed before the request was sent: {0}")]
    Unsent(hyper::Error),
    /// The request was sent at least in part; whether it was handled is unknown.
    #[error("the connection failed before a response: {source}")]
    Broken {
        /// What happened.
        source: hyper::Error,
        /// Whether the connection had idled before, so that the endpoint may have closed it for that.
        reused: bool,
    },
    /// The request was sent and no response came in time.
    #[error("no response within {0:?}")]
    Timeout(Duration),
}

impl SendError {
    /// Whether this says nothing about the endpoint but that it closed an idle connection.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self, Self::Broken { reused: true, .. })
    }
}

/// What [`send`] did besides getting an answer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sent {
    /// A new connection was made.
    pub(crate) dialled: bool,
}

/// Sends a request on an idle connection, or on a new one.
pub(crate) async fn send(
    live: &Live,
    worker: usize,
    mut request: Request<RequestBody>,
    connect_limit: Duration,
) -> Result<(Answer, Sent), SendError> {
    loop {
        let Some(reused) = live.pool(worker).checkout() else { break };
        let failure = match reused {
            pool::Reused::Http1(connection) => match connection.send(request).await {
                Ok(answer) => return Ok((answer, Sent::default())),
                Err(failure) => failure,
            },
            pool::Reused::Http2(mut sender) => match sender.try_send_request(absolute(live, request)).await {
                Ok(response) => return Ok((response.map(Driven::shared), Sent::default())),
                Err(mut failure) => {
                    live.pool(worker).forget_http2();
                    http1::Failure { unsent: failure.take_message(), error: failure.into_error() }
                }
            },
        };
        match failure.unsent {
            Some(unsent) => request = relative(unsent),
            None => {
                live.pool(worker).clear();
                return Err(SendError::Broken { source: failure.error, reused: true });
            }
        }
    }
    let sent = Sent { dialled: true };
    match connect::dial(live, connect_limit).await? {
        connect::Dialled::Http1(connection) => match connection.send(request).await {
            Ok(answer) => Ok((answer, sent)),
            Err(failure) => Err(failure.into()),
        },
        connect::Dialled::Http2(mut sender) => {
            live.pool(worker).keep_http2(sender.clone());
            match sender.try_send_request(absolute(live, request)).await {
                Ok(response) => Ok((response.map(Driven::shared), sent)),
                Err(mut failure) => {
                    live.pool(worker).forget_http2();
                    let unsent = failure.take_message();
                    Err(http1::Failure { unsent, error: failure.into_error() }.into())
                }
            }
        }
    }
}

/// Sends a request that may turn the connection into a tunnel, on a connection of its own.
pub(crate) async fn send_upgrade(
    live: &Live,
    request: Request<RequestBody>,
    connect_limit: Duration,
) -> Result<Response<Incoming>, SendError> {
    let connection = connect::dial_http1(live, connect_limit).await?;
    connection.send_upgrade(request).await.map_err(SendError::from)
}

/// The request as HTTP/2 wants it: the host in the URI.
fn absolute(live: &Live, mut request: Request<RequestBody>) -> Request<RequestBody> {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(if live.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP });
    parts.authority = request.headers().get(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    *request.version_mut() = Version::HTTP_2;
    request
}

/// The request as HTTP/1.1 wants it: the path only.
fn relative(mut request: Request<RequestBody>) -> Request<RequestBody> {
    let path = std::mem::take(request.uri_mut()).into_parts().path_and_query;
    *request.uri_mut() = path.map(Uri::from).unwrap_or_default();
    *request.version_mut() = Version::HTTP_11;
    request
}

impl From<http1::Failure> for SendError {
    fn from(failure: http1::Failure) -> Self {
        if failure.unsent.is_some() {
            Self::Unsent(failure.error)
        } else {
            Self::Broken { source: failure.error, reused: false }
        }
    }
}
