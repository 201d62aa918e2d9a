//! A server to call, and a client that sends bytes.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use modelplane_crossplane::json::{request_from_json, response_to_json};
use modelplane_crossplane::server::{self, Options};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tonic::Status;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};

pub(crate) const RUN_FUNCTION: &str = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

/// A running server that stops when dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) http: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<Result<(), server::ServeError>>,
}

/// Free ports on loopback, plain text, a limit of 1 MiB.
pub(crate) fn options() -> Options {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    Options {
        address: loopback,
        certificates: None,
        max_request_bytes: 1 << 20,
        http_address: Some(loopback),
        collector: None,
    }
}

pub(crate) async fn start(options: Options) -> Running {
    let bound = server::bind(options).await.expect("loopback has free ports");
    let address = bound.address().expect("it is bound");
    let http = bound.http_address().expect("it is bound").expect("it was asked for");
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(bound.serve(async { drop(stopped.await) }));
    Running { address, http, stop: Some(stop), task }
}

impl Running {
    /// Asks it to stop and waits until it has.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        let ended = tokio::time::timeout(Duration::from_secs(10), self.task).await;
        ended.expect("it stops in time").expect("it does not panic").expect("it ends well");
    }
}

/// Messages as the bytes they are.
#[derive(Default)]
pub(crate) struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(source.copy_to_bytes(source.remaining())))
    }
}

pub(crate) async fn call_raw(channel: &Channel, request: Vec<u8>) -> Result<Bytes, Status> {
    call_method(channel, RUN_FUNCTION, tonic::Request::new(request)).await
}

pub(crate) async fn call_method(
    channel: &Channel,
    path: &'static str,
    request: tonic::Request<Vec<u8>>,
) -> Result<Bytes, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = http::uri::PathAndQuery::from_static(path);
    grpc.unary(request, path, Raw).await.map(tonic::Response::into_inner)
}

pub(crate) async fn call(channel: &Channel, request: &Value) -> Value {
    let bytes = request_from_json(request).expect("the request is well formed");
    let answer = call_raw(channel, bytes).await.expect("the call is answered");
    response_to_json(&answer).expect("the answer is well formed")
}

pub(crate) fn class(tag: &str) -> Value {
    let class = json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceClass", "metadata": {"name": "l4"},
        "spec": {"devices": [{"name": "gpu", "driver": "gpu.nvidia.com"}]},
    });
    json!({"meta": {"tag": tag}, "observed": {"composite": {"resource": class}}})
}

pub(crate) async fn connect(running: &Running) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{}", running.address)).expect("a valid address");
    endpoint.connect().await.expect("it listens")
}

/// One plain HTTP request, the whole response as text.
pub(crate) async fn fetch(address: SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("it answers");
    text
}
