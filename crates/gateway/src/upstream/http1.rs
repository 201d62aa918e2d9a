//! One HTTP/1 connection to an endpoint, driven by whoever holds it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;

use super::connect::Stream;
use super::{Answer, Driven};
use crate::body::RequestBody;

/// Most a response's head may take.
const HEAD_BYTES: usize = 64 * 1024;

/// A connection and the handle that sends requests on it.
#[derive(Debug)]
pub(crate) struct Http1 {
    sender: SendRequest<RequestBody>,
    /// None once the connection has ended.
    connection: Option<Connection<TokioIo<Stream>, RequestBody>>,
    /// When it last carried a request.
    pub(super) used: Instant,
}

/// Why a request got no response.
#[derive(Debug)]
pub(super) struct Failure {
    /// The request, if nothing of it was sent.
    pub(super) unsent: Option<Request<RequestBody>>,
    /// What happened.
    pub(super) error: hyper::Error,
}

impl Http1 {
    /// Starts speaking HTTP/1.1.
    pub(super) async fn handshake(stream: Stream) -> hyper::Result<Box<Self>> {
        let (sender, connection) =
            Builder::new().max_buf_size(HEAD_BYTES).handshake(TokioIo::new(stream)).await?;
        Ok(Box::new(Self { sender, connection: Some(connection), used: Instant::now() }))
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(mut self: Box<Self>, request: Request<RequestBody>) -> Result<Answer, Failure> {
        let answer = {
            let mut answer = pin!(self.sender.try_send_request(request));
            let connection = &mut self.connection;
            poll_fn(|cx| {
                drive(connection, cx);
                answer.as_mut().poll(cx)
            })
            .await
        };
        match answer {
            Ok(response) => Ok(response.map(|incoming| Driven::over(incoming, self))),
            Err(mut failure) => {
                let unsent = failure.take_message();
                Err(Failure { unsent, error: failure.into_error() })
            }
        }
    }

    /// Sends a request after which the connection may become a tunnel. A task drives it from here on.
    pub(super) async fn send_upgrade(
        mut self: Box<Self>,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, Failure> {
        if let Some(connection) = self.connection.take() {
            tokio::spawn(async move {
                if let Err(error) = connection.with_upgrades().await {
                    tracing::debug!(%error, "a connection ended");
                }
            });
        }
        self.sender.try_send_request(request).await.map_err(|mut failure| {
            let unsent = failure.take_message();
            Failure { unsent, error: failure.into_error() }
        })
    }

    /// Moves the connection on. A body's frames do not arrive otherwise.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        drive(&mut self.connection, cx);
    }

    /// Whether the connection can take another request now.
    pub(super) fn is_idle(&mut self) -> bool {
        drive(&mut self.connection, &mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// Polls a connection until it has ended. Its errors reach the request or the body that waits on it.
fn drive(connection: &mut Option<Connection<TokioIo<Stream>, RequestBody>>, cx: &mut Context<'_>) {
    if let Some(running) = connection
        && let Poll::Ready(_) = Pin::new(running).poll(cx)
    {
        *connection = None;
    }
}
