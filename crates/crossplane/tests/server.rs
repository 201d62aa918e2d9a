//! The function server as Crossplane sees it: gRPC over loopback, with and without TLS.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use modelplane_crossplane::json::{request_from_json, response_to_json};
use modelplane_crossplane::server::{self, Options};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tonic::Status;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

/// A running server that stops when dropped.
struct Running {
    address: SocketAddr,
    http: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<Result<(), server::ServeError>>,
}

async fn start(certificates: Option<&Path>, max_request_bytes: usize) -> Running {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = Options {
        address: loopback,
        certificates: certificates.map(Path::to_owned),
        max_request_bytes,
        http_address: Some(loopback),
    };
    let bound = server::bind(options).await.expect("loopback has free ports");
    let address = bound.address().expect("it is bound");
    let http = bound.http_address().expect("it is bound").expect("it was asked for");
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(bound.serve(async { drop(stopped.await) }));
    Running { address, http, stop: Some(stop), task }
}

impl Running {
    async fn stop(mut self) {
        drop(self.stop.take());
        let ended = tokio::time::timeout(Duration::from_secs(10), self.task).await;
        ended.expect("it stops in time").expect("it does not panic").expect("it ends well");
    }
}

#[derive(Default)]
struct Raw;

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

async fn call_raw(channel: &Channel, request: Vec<u8>) -> Result<Bytes, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";
    let path = http::uri::PathAndQuery::from_static(path);
    grpc.unary(tonic::Request::new(request), path, Raw).await.map(tonic::Response::into_inner)
}

async fn call(channel: &Channel, request: &Value) -> Value {
    let bytes = request_from_json(request).expect("the request is well formed");
    let answer = call_raw(channel, bytes).await.expect("the call is answered");
    response_to_json(&answer).expect("the answer is well formed")
}

fn class(tag: &str) -> Value {
    let class = json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceClass", "metadata": {"name": "l4"},
        "spec": {"devices": [{"name": "gpu", "driver": "gpu.nvidia.com"}]},
    });
    json!({"meta": {"tag": tag}, "observed": {"composite": {"resource": class}}})
}

async fn connect(running: &Running) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{}", running.address)).expect("a valid address");
    endpoint.connect().await.expect("it listens")
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_answered_and_counted() {
    let running = start(None, 1 << 20).await;
    let channel = connect(&running).await;
    let answer = call(&channel, &class("a-tag")).await;
    assert_eq!(answer["meta"], json!({"tag": "a-tag", "ttl": "60s"}));
    assert_eq!(answer["desired"]["composite"]["ready"], "READY_TRUE");
    let metrics = fetch(running.http, "/metrics").await;
    assert!(metrics.contains("modelplane_function_calls_total{kind=\"InferenceClass\"} 1"), "{metrics}");
    assert!(fetch(running.http, "/readyz").await.ends_with("ok\n"));
    drop(channel);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_kind_is_a_fatal_result_and_others_go_on() {
    let running = start(None, 1 << 20).await;
    let channel = connect(&running).await;
    let unknown = json!({"observed": {"composite": {"resource": {
        "apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "t"}
    }}}});
    let answer = call(&channel, &unknown).await;
    assert_eq!(answer["results"][0]["severity"], "SEVERITY_FATAL");
    assert!(answer["results"][0]["message"].as_str().is_some_and(|text| text.contains("Thing")));
    let refused = call_raw(&channel, vec![0xff; 16]).await.expect_err("that is no request");
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert_eq!(call(&channel, &class("still here")).await["meta"]["tag"], "still here");
    drop(channel);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_the_limit_are_refused() {
    let running = start(None, 1000).await;
    let channel = connect(&running).await;
    let refused = call_raw(&channel, vec![0; 2000]).await.expect_err("it is too large");
    assert_eq!(refused.code(), tonic::Code::OutOfRange);
    drop(channel);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_a_certificate_are_turned_away_and_renewed_ones_are_served() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let first = write_certificates(folder.path());
    let running = start(Some(folder.path()), 1 << 20).await;

    let anonymous = ClientTlsConfig::new().ca_certificate(first.ca.clone()).domain_name("localhost");
    let endpoint = Endpoint::from_shared(format!("https://{}", running.address)).expect("a valid address");
    let channel = endpoint.clone().tls_config(anonymous).expect("a valid configuration").connect_lazy();
    let bytes = request_from_json(&class("x")).expect("well formed");
    call_raw(&channel, bytes).await.expect_err("no certificate was presented");

    let channel =
        endpoint.clone().tls_config(first.client()).expect("valid").connect().await.expect("it is served");
    assert_eq!(call(&channel, &class("first")).await["meta"]["tag"], "first");

    // A renewed authority: the old client is turned away, the new one served.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let second = write_certificates(folder.path());
    let channel = endpoint.tls_config(second.client()).expect("valid").connect().await.expect("it is served");
    assert_eq!(call(&channel, &class("second")).await["meta"]["tag"], "second");
    drop(channel);
    running.stop().await;
}

struct Certificates {
    ca: Certificate,
    identity: Identity,
}

impl Certificates {
    fn client(&self) -> ClientTlsConfig {
        ClientTlsConfig::new()
            .ca_certificate(self.ca.clone())
            .identity(self.identity.clone())
            .domain_name("localhost")
    }
}

/// A new authority with a server and a client certificate; the server's files go to `folder`.
fn write_certificates(folder: &Path) -> Certificates {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
    let issue = |name: &str| {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a valid name");
        let certificate = params.signed_by(&key, &authority).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    };
    let (server, server_key) = issue("localhost");
    let (client, client_key) = issue("crossplane");
    let files = [("tls.crt", server), ("tls.key", server_key), ("ca.crt", authority.pem())];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("the folder is writable");
    }
    Certificates {
        ca: Certificate::from_pem(authority.pem()),
        identity: Identity::from_pem(client, client_key),
    }
}

/// One plain HTTP request, the whole response as text.
async fn fetch(address: SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("it answers");
    text
}
