//! HTTP as little as it takes to ask a gateway and to be what it forwards to: one exchange per connection.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::failure::{Failure, Outcome};

/// The name servers on this machine are known by.
pub const HOST: &str = "localhost";

/// Most bytes of a message that are read; nothing here is longer.
const MAX_MESSAGE: usize = 1 << 20;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Method and path.
    pub target: String,
    /// The header lines, in lower case.
    pub headers: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Something that serves a model: it answers every request, and tells which ones came.
#[derive(Debug)]
pub struct ModelServer {
    /// Where it listens, on [`HOST`].
    pub port: u16,
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

impl ModelServer {
    /// Starts one that calls itself `name` in its answers.
    ///
    /// # Errors
    ///
    /// If there is no port for it.
    pub async fn start(name: &'static str) -> Outcome<Self> {
        let listener = TcpListener::bind((HOST, 0)).await.map_err(Failure::io("listen"))?;
        let port = listener.local_addr().map_err(Failure::io("listen"))?.port();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let kept = Arc::clone(&received);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // A connection that breaks is the caller's loss.
                drop(serve(&mut stream, name, &kept).await);
            }
        });
        Ok(Self { port, received, task })
    }

    /// What has come since this was last asked.
    pub fn take(&self) -> Vec<Received> {
        std::mem::take(&mut *self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: &mut TcpStream, name: &str, received: &Mutex<Vec<Received>>) -> std::io::Result<()> {
    let (head, body) = read_message(stream).await?;
    let mut lines = head.lines();
    let target = lines.next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    let headers = lines.map(str::to_lowercase).collect();
    received.lock().unwrap_or_else(PoisonError::into_inner).push(Received { target, headers, body });
    let answer = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": name,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": name}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
    .to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    stream.write_all(format!("{head}{answer}").as_bytes()).await?;
    stream.shutdown().await
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// A request to make.
#[derive(Debug, Clone)]
pub struct Request<'r> {
    /// Its path.
    pub path: &'r str,
    /// A caller's key.
    pub key: Option<&'r str>,
    /// What to send; without, it is a GET.
    pub body: Option<&'r Value>,
}

impl<'r> Request<'r> {
    /// A GET.
    pub fn get(path: &'r str) -> Self {
        Self { path, key: None, body: None }
    }

    /// A POST.
    pub fn post(path: &'r str, body: &'r Value) -> Self {
        Self { path, key: None, body: Some(body) }
    }

    /// The same with a caller's key.
    pub fn with_key(self, key: &'r str) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Makes it over a new connection.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub async fn send(&self, port: u16) -> Outcome<Answer> {
        let action = || format!("ask port {port} for {}", self.path);
        let mut stream = TcpStream::connect((HOST, port)).await.map_err(Failure::io(action()))?;
        self.send_over(&mut stream).await.map_err(Failure::io(action()))
    }

    /// Makes it over a connection, which is used up by it.
    ///
    /// # Errors
    ///
    /// If there is no answer.
    pub async fn send_over<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
    ) -> std::io::Result<Answer> {
        let body = self.body.map(Value::to_string).unwrap_or_default();
        let method = if self.body.is_some() { "POST" } else { "GET" };
        let key = self.key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
        let request = format!(
            "{method} {} HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n{key}\r\n{body}",
            self.path,
            body.len(),
        );
        stream.write_all(request.as_bytes()).await?;
        let (head, body) = read_message(stream).await?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned() })
    }
}

/// Reads the head of a message, and as much of a body as it announces.
async fn read_message<S: AsyncRead + Unpin>(stream: &mut S) -> std::io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let announced = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            let body = bytes.split_off(end + 4);
            return Ok((head, read_body(stream, body, announced.unwrap_or_default()).await?));
        }
        if !read_more(stream, &mut bytes).await? {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn read_body<S: AsyncRead + Unpin>(
    stream: &mut S,
    mut body: Vec<u8>,
    length: usize,
) -> std::io::Result<Vec<u8>> {
    while body.len() < length && read_more(stream, &mut body).await? {}
    body.truncate(length);
    Ok(body)
}

async fn read_more<S: AsyncRead + Unpin>(stream: &mut S, into: &mut Vec<u8>) -> std::io::Result<bool> {
    if into.len() > MAX_MESSAGE {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    Ok(stream.read_buf(into).await? > 0)
}

/// Connects with TLS to [`HOST`], trusting one authority.
///
/// # Errors
///
/// If there is no connection, or the certificate is not to be trusted.
pub async fn connect_tls(port: u16, authority: &str) -> Outcome<TlsStream<TcpStream>> {
    let wrong = |what: &dyn std::fmt::Display| Failure::Wrong(format!("TLS to port {port}: {what}"));
    let certificate = CertificateDer::from_pem_slice(authority.as_bytes()).map_err(|error| wrong(&error))?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate).map_err(|error| wrong(&error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| wrong(&error))?.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(HOST).map_err(|error| wrong(&error))?;
    let stream = TcpStream::connect((HOST, port)).await.map_err(|error| wrong(&error))?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| wrong(&error))
}

/// The certificate that a server has presented.
pub fn presented(stream: &TlsStream<TcpStream>) -> Option<CertificateDer<'static>> {
    Some(stream.get_ref().1.peer_certificates()?.first()?.clone().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_model_server_answers_and_tells_what_came() {
        let server = ModelServer::start("a").await.expect("a port");
        let body = json!({"model": "m"});
        let answer =
            Request::post("/v1/x", &body).with_key("secret").send(server.port).await.expect("an answer");
        assert_eq!(answer.status, 200);
        assert!(answer.body.contains("\"content\":\"a\""), "{}", answer.body);
        let received = server.take();
        assert_eq!(received.len(), 1);
        assert_eq!(received[0].target, "POST /v1/x");
        assert_eq!(received[0].body, body.to_string().into_bytes());
        assert!(received[0].headers.contains(&"authorization: bearer secret".to_owned()));
        assert!(server.take().is_empty(), "each is told once");
    }
}
