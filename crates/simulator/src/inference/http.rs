//! Serves an engine's API over HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::openai::{Refusal, Reply};
use super::{Server, anthropic, openai};
use crate::edge::{Body, plain};
use crate::settings::Settings;

/// Largest request that is read.
const MAX_REQUEST: usize = 128 << 20;

/// What an engine counts.
#[derive(Debug, Default)]
struct Load {
    running: AtomicU64,
    served: AtomicU64,
}

/// Serves until the task is aborted.
pub(super) async fn serve(listener: TcpListener, server: Arc<Server>, settings: watch::Receiver<Settings>) {
    let load = Arc::new(Load::default());
    // Connections end with the engine, as they do when a pod goes.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (server, load, settings) = (Arc::clone(&server), Arc::clone(&load), settings.clone());
        connections.spawn(async move {
            let service = hyper::service::service_fn(move |request| {
                let (server, load) = (Arc::clone(&server), Arc::clone(&load));
                let settings = settings.borrow().clone();
                async move { Ok::<_, Infallible>(answer(&server, load, &settings, request).await) }
            });
            let connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.await {
                tracing::trace!(%error, "a connection to a simulated engine ended");
            }
        });
    }
}

async fn answer(
    server: &Server,
    load: Arc<Load>,
    settings: &Settings,
    request: Request<Incoming>,
) -> Response<Body> {
    let path = request.uri().path().to_owned();
    match (request.method(), path.as_str()) {
        (&Method::GET, "/health" | "/ping") => return plain(StatusCode::OK, ""),
        (&Method::GET, "/v1/models") => return document(StatusCode::OK, &openai::models(server)),
        (&Method::GET, "/metrics") => return plain(StatusCode::OK, &metrics(server, &load)),
        _ => {}
    }
    let make = match (request.method(), path.as_str()) {
        (&Method::POST, "/v1/chat/completions") => openai::chat,
        (&Method::POST, "/v1/completions") => openai::completion,
        (&Method::POST, "/v1/responses") => openai::response,
        (&Method::POST, "/v1/embeddings") => openai::embeddings,
        (&Method::POST, "/v1/messages") => anthropic::message,
        _ => return refuse(&Refusal::new(404, "NotFoundError", "Not Found".to_owned())),
    };
    if settings.faults.overloaded {
        return refuse(&Refusal::new(503, "ServiceUnavailableError", "the engine is overloaded".to_owned()));
    }
    let Ok(body) = Limited::new(request.into_body(), MAX_REQUEST).collect().await else {
        return refuse(&Refusal::new(
            413,
            "BadRequestError",
            "the request is too large or broke off".to_owned(),
        ));
    };
    let body: Value = match serde_json::from_slice(&body.to_bytes()) {
        Ok(body) => body,
        Err(error) => return refuse(&Refusal::new(400, "BadRequestError", format!("not JSON: {error}"))),
    };
    load.served.fetch_add(1, Ordering::Relaxed);
    let running = Running::new(load);
    tokio::time::sleep(settings.faults.slowdown).await;
    match make(server, &body) {
        Ok(Reply::Document(reply)) => document(StatusCode::OK, &reply),
        Ok(Reply::Stream(events)) => event_stream(events, settings.token_time, running),
        Err(refusal) => refuse(&refusal),
    }
}

/// A request that is being answered.
struct Running(Arc<Load>);

impl Running {
    fn new(load: Arc<Load>) -> Self {
        load.running.fetch_add(1, Ordering::Relaxed);
        Self(load)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn refuse(refusal: &Refusal) -> Response<Body> {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    document(status, &refusal.body)
}

fn document(status: StatusCode, value: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(value.to_string())).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Server-sent events, each a frame of its own, with the time a token takes between them.
fn event_stream(
    events: Vec<(&'static str, String)>,
    token_time: std::time::Duration,
    running: Running,
) -> Response<Body> {
    let frames = stream::unfold((events.into_iter(), running), move |(mut events, running)| async move {
        let (name, data) = events.next()?;
        if !token_time.is_zero() {
            tokio::time::sleep(token_time).await;
        }
        let text = if name.is_empty() {
            format!("data: {data}\n\n")
        } else {
            format!("event: {name}\ndata: {data}\n\n")
        };
        Some((Ok(Frame::data(Bytes::from(text))), (events, running)))
    });
    let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

/// The metrics of vLLM that schedulers and gateways look at.
fn metrics(server: &Server, load: &Load) -> String {
    let (model, running) = (&server.model, load.running.load(Ordering::Relaxed));
    let served = load.served.load(Ordering::Relaxed);
    format!(
        "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{{model_name=\"{model}\"}} {running}\n\
         # TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{{model_name=\"{model}\"}} 0\n\
         # TYPE vllm:request_success counter\nvllm:request_success_total{{model_name=\"{model}\"}} {served}"
    )
}
