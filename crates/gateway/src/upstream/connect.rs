//! Dialling: TCP, TLS, the HTTP handshake.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::http1::Http1;
use crate::body::RequestBody;
use crate::endpoint::Live;

/// Most a response's head may take where a tunnel was asked for.
const HEAD_BYTES: usize = 64 << 10;

/// A connection with HTTP spoken on it.
#[derive(Debug)]
pub(super) enum Dialled {
    /// One request at a time.
    Http1(Box<Http1>),
    /// Many requests at a time.
    Http2(http2::SendRequest<RequestBody>),
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// Name resolution or TCP.
    #[error("cannot connect to {address}: {source}")]
    Tcp {
        /// Host and port.
        address: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// TLS, e.g. a certificate that does not verify.
    #[error("no TLS session with {address}: {source}")]
    Tls {
        /// Host and port.
        address: String,
        /// What failed.
        source: io::Error,
    },
    /// HTTP/2 preface or settings.
    #[error("no HTTP session with {address}: {source}")]
    Http {
        /// Host and port.
        address: String,
        /// What failed.
        source: hyper::Error,
    },
    /// All of it took too long.
    #[error("no connection to {address} within {limit:?}")]
    Timeout {
        /// Host and port.
        address: String,
        /// The limit.
        limit: Duration,
    },
}

/// Makes a connection, speaking HTTP/2 where configured or negotiated.
pub(super) async fn dial(live: &Live, limit: Duration) -> Result<Dialled, ConnectError> {
    within(live, limit, async {
        let (stream, http2) = open(live, true).await?;
        if http2 {
            return handshake_http2(live, stream).await.map(Dialled::Http2);
        }
        Ok(Dialled::Http1(Http1::new(stream)))
    })
    .await
}

/// Makes a connection that speaks HTTP/1.1 and may turn into a tunnel. A task drives it.
pub(super) async fn dial_upgradable(
    live: &Live,
    limit: Duration,
) -> Result<http1::SendRequest<RequestBody>, ConnectError> {
    within(live, limit, async {
        let (stream, _) = open(live, false).await?;
        let handshake = http1::Builder::new().max_buf_size(HEAD_BYTES).handshake(TokioIo::new(stream));
        let (sender, connection) = handshake
            .await
            .map_err(|source| ConnectError::Http { address: live.address.authority(), source })?;
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection ended");
            }
        });
        Ok(sender)
    })
    .await
}

async fn within<T>(
    live: &Live,
    limit: Duration,
    work: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    if limit.is_zero() {
        return work.await;
    }
    let timeout = |_| ConnectError::Timeout { address: live.address.authority(), limit };
    tokio::time::timeout(limit, work).await.map_err(timeout)?
}

/// The stream, and whether HTTP/2 is to be spoken on it.
async fn open(live: &Live, may_http2: bool) -> Result<(Stream, bool), ConnectError> {
    let address = &live.address;
    let tcp = TcpStream::connect((address.host.as_str(), address.port))
        .await
        .map_err(|source| ConnectError::Tcp { address: address.authority(), source })?;
    tcp.set_nodelay(true).ok();
    let Some(tls) = &live.tls else {
        return Ok((Stream::Plain(tcp), may_http2 && address.http2));
    };
    let config = if may_http2 { &tls.any } else { &tls.http1 };
    let stream = TlsConnector::from(config.clone())
        .connect(tls.server_name.clone(), tcp)
        .await
        .map_err(|source| ConnectError::Tls { address: address.authority(), source })?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((Stream::Tls(Box::new(stream)), http2))
}

async fn handshake_http2(
    live: &Live,
    stream: Stream,
) -> Result<http2::SendRequest<RequestBody>, ConnectError> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10))
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|source| ConnectError::Http { address: live.address.authority(), source })?;
    let address = live.address.authority();
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%address, %error, "an HTTP/2 connection ended");
        }
    });
    Ok(sender)
}

/// A plain or encrypted stream.
#[derive(Debug)]
pub(crate) enum Stream {
    /// TCP.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, from),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, from),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, from),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, from),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
