//! Connections to endpoints: dialling, pooling, sending one request.
//!
//! An HTTP/1 connection is driven by the request that uses it, not by a task of its own: no wake-ups between tasks,
//! nothing to clean up when a client leaves. HTTP/2 connections are shared by requests, so each has a task.

mod connect;
mod driven;
pub(crate) mod http1;
pub(crate) mod pool;
pub(crate) mod tls;

use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Response, Uri, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http2;

use crate::body::RequestBody;
use crate::endpoint::{Endpoint, Live};
use crate::headers::Forwarded;

pub(crate) use self::connect::ConnectError;
pub(crate) use self::driven::Driven;
pub(crate) use self::http1::{Http1, Http1Error};

/// A response whose body is still to come, on the connection it comes over.
pub(crate) type Answer = Response<Driven>;

/// A request to an endpoint, not yet in the shape of any protocol.
#[derive(Debug)]
pub(crate) struct Outgoing<'o> {
    /// Method.
    pub(crate) method: &'o Method,
    /// Path and query.
    pub(crate) target: String,
    /// Headers from the client, without those of its connection.
    pub(crate) headers: &'o HeaderMap,
    /// What the endpoint is told of where it comes from, if it comes from anywhere but the gateway.
    pub(crate) forwarded: Option<&'o Forwarded>,
    /// Whom it is for, which decides on further headers.
    pub(crate) endpoint: &'o Endpoint,
    /// Body.
    pub(crate) body: RequestBody,
}

/// Why there is no response, or not all of one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    /// On an HTTP/1 connection.
    #[error(transparent)]
    Http1(#[from] Http1Error),
    /// On an HTTP/2 connection, or one for an upgrade.
    #[error(transparent)]
    Hyper(#[from] hyper::Error),
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// No connection: nothing was sent.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A connection, but the request was not sent on it.
    #[error("the connection closed before the request was sent: {0}")]
    Unsent(AnswerError),
    /// The request was sent at least in part; whether it was handled is unknown.
    #[error("the connection failed before a response: {source}")]
    Broken {
        /// What happened.
        source: AnswerError,
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

/// A failure on one connection: the request's body if nothing was sent, and what happened.
type Failed = (Option<RequestBody>, AnswerError);

/// Sends a request on an idle connection, or on a new one.
pub(crate) async fn send(
    mut request: Outgoing<'_>,
    worker: usize,
    connect_limit: Duration,
) -> Result<(Answer, Sent), SendError> {
    let live = &request.endpoint.live;
    loop {
        let Some(reused) = live.pool(worker).checkout() else { break };
        let answer = match reused {
            pool::Reused::Http1(connection) => request.over_http1(connection).await,
            // Boxed as all that is rare here: what is usual should not carry room for it.
            pool::Reused::Http2(sender) => Box::pin(request.over_http2(sender, worker)).await,
        };
        match answer {
            Ok(answer) => return Ok((answer, Sent::default())),
            Err((Some(unsent), _)) => request.body = unsent,
            Err((None, source)) => {
                live.pool(worker).clear();
                return Err(SendError::Broken { source, reused: true });
            }
        }
    }
    let answer = match Box::pin(connect::dial(live, connect_limit)).await? {
        connect::Dialled::Http1(connection) => request.over_http1(connection).await,
        connect::Dialled::Http2(sender) => {
            live.pool(worker).keep_http2(sender.clone());
            Box::pin(request.over_http2(sender, worker)).await
        }
    };
    match answer {
        Ok(answer) => Ok((answer, Sent { dialled: true })),
        Err((Some(_), error)) => Err(SendError::Unsent(error)),
        Err((None, source)) => Err(SendError::Broken { source, reused: false }),
    }
}

/// Sends a request that may turn the connection into a tunnel, on a connection of its own.
pub(crate) async fn send_upgrade(
    live: &Live,
    request: Request<RequestBody>,
    connect_limit: Duration,
) -> Result<Response<Incoming>, SendError> {
    let mut sender = connect::dial_upgradable(live, connect_limit).await?;
    sender.try_send_request(request).await.map_err(|mut failure| {
        let unsent = failure.take_message().is_some();
        let source = failure.into_error().into();
        if unsent { SendError::Unsent(source) } else { SendError::Broken { source, reused: false } }
    })
}

impl Outgoing<'_> {
    async fn over_http1(&mut self, connection: Box<Http1>) -> Result<Answer, Failed> {
        let body = std::mem::take(&mut self.body);
        let length = body.size_hint().exact();
        let head = http1::write(self, length);
        let answer = connection.send(self.method, head, body).await;
        answer.map_err(|failure| (failure.unsent, failure.error.into()))
    }

    async fn over_http2(
        &mut self,
        mut sender: http2::SendRequest<RequestBody>,
        worker: usize,
    ) -> Result<Answer, Failed> {
        match sender.try_send_request(self.absolute()).await {
            Ok(response) => Ok(response.map(Driven::shared)),
            Err(mut failure) => {
                self.endpoint.live.pool(worker).forget_http2();
                let unsent = failure.take_message().map(Request::into_body);
                Err((unsent, failure.into_error().into()))
            }
        }
    }

    /// The request as HTTP/2 wants it: the host in the URI.
    fn absolute(&mut self) -> Request<RequestBody> {
        let mut request = self.relative();
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        let host = request.headers_mut().remove(http::header::HOST);
        parts.scheme = Some(if self.endpoint.live.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP });
        parts.authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        *request.version_mut() = Version::HTTP_2;
        request
    }

    /// The request as HTTP/1.1 wants it: the path only.
    pub(crate) fn relative(&mut self) -> Request<RequestBody> {
        let body = std::mem::take(&mut self.body);
        let mut headers = self.headers.clone();
        for (name, value) in self.forwarded.into_iter().flat_map(Forwarded::headers) {
            headers.insert(name, value.clone());
        }
        self.endpoint.adapt(&mut headers);
        if let Some(length) = body.size_hint().exact()
            && headers.contains_key(http::header::CONTENT_LENGTH)
        {
            headers.insert(http::header::CONTENT_LENGTH, length.into());
        }
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        let target = PathAndQuery::try_from(self.target.as_str());
        *request.uri_mut() = target.map(Uri::from).unwrap_or_else(|_| Uri::from_static("/"));
        *request.headers_mut() = headers;
        request
    }
}
