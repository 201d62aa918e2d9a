//! One HTTP request to the gateway, as a client of it would make.

use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Posts JSON to an `http` URL; gives the status and the JSON answer.
pub(super) async fn post(
    url: &str,
    body: &Value,
) -> Result<(u16, Value), Box<dyn std::error::Error + Send + Sync>> {
    let uri: Uri = url.parse()?;
    let authority = uri.authority().ok_or("the URL has no host")?.clone();
    let port = authority.port_u16().unwrap_or(80);
    let stream = TcpStream::connect((authority.host(), port)).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::post(path)
        .header(header::HOST, authority.as_str())
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body.to_string())))?;
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    let answer = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    Ok((status, answer))
}
