//! HTTP/2 connections to a server named by a kubeconfig.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// What can go wrong here is the end of the benchmark.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A server, and credentials for it.
pub(crate) struct Target {
    authority: String,
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// One connection; clones share it.
#[derive(Clone)]
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
}

impl Target {
    /// The first cluster and user of a kubeconfig, by client certificate.
    pub(crate) fn read(kubeconfig: &Path) -> Outcome<Target> {
        let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(kubeconfig)?)?;
        let pem = |pointer: &str| -> Outcome<Vec<u8>> {
            if let Some(data) = config.pointer(&format!("{pointer}-data")).and_then(Value::as_str) {
                return Ok(STANDARD.decode(data)?);
            }
            let file = config.pointer(pointer).and_then(Value::as_str);
            Ok(std::fs::read(file.ok_or_else(|| format!("the kubeconfig has no {pointer}"))?)?)
        };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem("/clusters/0/cluster/certificate-authority")?)?)?;
        let certificate = CertificateDer::from_pem_slice(&pem("/users/0/user/client-certificate")?)?;
        let key = PrivateKeyDer::from_pem_slice(&pem("/users/0/user/client-key")?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key)?;
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let server = config.pointer("/clusters/0/cluster/server").and_then(Value::as_str);
        let server: Uri = server.ok_or("the kubeconfig names no server")?.parse()?;
        let authority = server.authority().ok_or("the server's URL has no host")?;
        let name = ServerName::try_from(authority.host().to_owned())?;
        Ok(Target { authority: authority.to_string(), connector: TlsConnector::from(Arc::new(tls)), name })
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Outcome<Connection> {
        let stream = TcpStream::connect(&self.authority).await?;
        stream.set_nodelay(true)?;
        let stream = self.connector.connect(self.name.clone(), stream).await?;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        // As Go's client has them.
        builder.initial_stream_window_size(4 << 20).initial_connection_window_size(1 << 30);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Connection { sender, authority: self.authority.clone() })
    }
}

impl Connection {
    /// Sends a request; done with the head of the answer.
    pub(crate) async fn open(&self, method: Method, path: &str, body: Bytes) -> Outcome<Response<Incoming>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.authority))
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .header("user-agent", "load/1")
            .body(Full::new(body))?;
        let mut sender = self.sender.clone();
        sender.ready().await?;
        Ok(sender.send_request(request).await?)
    }

    /// Sends a request; done with all of the answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Outcome<(u16, Bytes)> {
        let response = self.open(method, path, body.into()).await?;
        let code = response.status().as_u16();
        Ok((code, response.into_body().collect().await?.to_bytes()))
    }

    /// Sends a request that must succeed.
    pub(crate) async fn done(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Outcome<Bytes> {
        let (code, answer) = self.send(method.clone(), path, body).await?;
        if code >= 300 {
            return Err(format!("{method} {path}: {code} {}", String::from_utf8_lossy(&answer)).into());
        }
        Ok(answer)
    }
}
