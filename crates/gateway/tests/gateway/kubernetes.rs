//! Routes watched from a control plane, played by a service that lists and then feeds watches.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Frame;
use modelplane_gateway::Gateway;
use modelplane_gateway::routes::config::Certificate;
use modelplane_gateway::source::kubernetes::KubernetesRoutes;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use crate::external::{ask_tls, certificate, open_tls};
use crate::support::*;

/// A control plane: objects by plural, and the watches that are open.
#[derive(Default)]
struct ControlPlane {
    objects: BTreeMap<String, Vec<Value>>,
    watches: BTreeMap<String, Sender<Frame<Bytes>>>,
}

impl ControlPlane {
    fn answer(&mut self, request: &Request<kube::client::Body>) -> Response<Reply> {
        let plural = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        let query = request.uri().query().unwrap_or_default();
        if query.contains("watch=true") {
            let (sender, body) = channel();
            self.watches.insert(plural, sender);
            return Response::new(body);
        }
        let items = self.objects.get(&plural).cloned().unwrap_or_default();
        let list =
            json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items});
        Response::new(full(list.to_string()))
    }
}

fn client(control_plane: Arc<Mutex<ControlPlane>>) -> kube::Client {
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let response = control_plane.lock().unwrap().answer(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    kube::Client::new(service, "default")
}

fn endpoint(name: &str, address: std::net::SocketAddr) -> Value {
    json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelEndpoint",
        "metadata": {"name": name, "namespace": "ml-team", "resourceVersion": "1", "labels": {"app": "chat"}},
        "spec": {"url": format!("http://{address}/ml-team/{name}/v1"), "rewritePath": format!("/ml-team/{name}/")},
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "chat", "namespace": "ml-team", "resourceVersion": "1"},
        "spec": {"endpoints": [{"selector": {"matchLabels": {"app": "chat"}}}]},
    })
}

/// The sending end of a watch, once there is one.
async fn watch(control_plane: &Mutex<ControlPlane>, plural: &str) -> Sender<Frame<Bytes>> {
    soon(async {
        loop {
            if let Some(watch) = control_plane.lock().unwrap().watches.get(plural) {
                return watch.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

async fn tell(watch: &Sender<Frame<Bytes>>, kind: &str, object: Value) {
    let event = json!({"type": kind, "object": object});
    watch.send(Frame::data(format!("{event}\n").into())).await.unwrap();
}

/// Asks until the answer is the wanted one.
async fn answers(address: SocketAddr, want: &str) {
    let wanted = async {
        while get(address, "/ml-team/chat/v1/models").await.text() != want {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    soon(wanted).await;
}

#[tokio::test]
async fn an_endpoint_added_changed_or_withdrawn_takes_effect_at_once() {
    let (one, two) = (Endpoint::named("one").await, Endpoint::named("two").await);
    let control_plane = Arc::new(Mutex::new(ControlPlane::default()));
    control_plane.lock().unwrap().objects.extend([
        ("modelservices".to_owned(), vec![service()]),
        ("modelendpoints".to_owned(), vec![endpoint("one", one.address)]),
    ]);
    let gateway = Gateway::bind(options()).unwrap();
    let address = gateway.address();
    tokio::spawn(gateway.serve(KubernetesRoutes::new(client(control_plane.clone())), std::future::pending()));
    answers(address, "one").await;
    assert_eq!(one.last().target, "/ml-team/one/v1/models");
    let watch = watch(&control_plane, "modelendpoints").await;
    let mut took = BTreeMap::<&str, Vec<Duration>>::new();
    for _ in 0..10 {
        let changes = [
            ("withdrawn", vec![("DELETED", endpoint("one", one.address))], "no_endpoints"),
            ("added", vec![("ADDED", endpoint("one", one.address))], "one"),
            ("changed", vec![("MODIFIED", endpoint("one", two.address))], "two"),
            ("changed", vec![("MODIFIED", endpoint("one", one.address))], "one"),
        ];
        for (what, events, want) in changes {
            let told = Instant::now();
            for (kind, object) in events {
                tell(&watch, kind, object).await;
            }
            if want == "no_endpoints" {
                let gone = async { while get(address, "/ml-team/chat/x").await.status != 503 {} };
                soon(gone).await;
            } else {
                answers(address, want).await;
            }
            took.entry(what).or_default().push(told.elapsed());
        }
    }
    for (what, mut took) in took {
        took.sort_unstable();
        let longest = took[took.len() - 1];
        eprintln!("an endpoint {what} takes effect after {:?}, at most {longest:?}", took[took.len() / 2]);
        // The aim is 100 ms; a busy machine may take longer, a change that waits for something may not.
        assert!(longest < Duration::from_secs(2), "{what}: {longest:?}");
    }
}

#[tokio::test]
async fn a_request_under_way_on_a_withdrawn_endpoint_finishes() {
    let (feed, mut feeds) = tokio::sync::mpsc::unbounded_channel();
    let endpoint_server = Endpoint::serving(move |request| {
        let body = match request.uri().path().ends_with("stream") {
            true => {
                let (sender, body) = channel();
                feed.send(sender).unwrap();
                body
            }
            false => empty(),
        };
        Box::pin(async { Response::new(body) })
    })
    .await;
    let control_plane = Arc::new(Mutex::new(ControlPlane::default()));
    control_plane.lock().unwrap().objects.extend([
        ("modelservices".to_owned(), vec![service()]),
        ("modelendpoints".to_owned(), vec![endpoint("one", endpoint_server.address)]),
    ]);
    let gateway = Gateway::bind(options()).unwrap();
    let address = gateway.address();
    tokio::spawn(gateway.serve(KubernetesRoutes::new(client(control_plane.clone())), std::future::pending()));
    let request =
        || Request::get("/ml-team/chat/stream").header("host", "g").body(Full::<Bytes>::default()).unwrap();
    let mut client = Client::connect(address).await;
    let mut response = loop {
        let response = client.send(request()).await;
        if response.status() == 200 {
            break response;
        }
        response.into_body().collect().await.unwrap();
    };
    let sender = soon(feeds.recv()).await.unwrap();
    let watch = watch(&control_plane, "modelendpoints").await;
    tell(&watch, "DELETED", endpoint("one", endpoint_server.address)).await;
    let gone = async { while get(address, "/ml-team/chat/x").await.status != 503 {} };
    soon(gone).await;
    for _ in 0..3 {
        sender.send(Frame::data("still here".into())).await.unwrap();
        assert_eq!(soon(response.frame()).await.unwrap().unwrap().into_data().unwrap(), "still here");
    }
    drop(sender);
    assert!(soon(response.frame()).await.is_none());
}

/// A Secret as cert-manager writes it.
fn tls_secret(certificate: &Certificate) -> Value {
    let entry = |bytes: &Bytes| k8s_openapi::ByteString(bytes.to_vec());
    let secret = k8s_openapi::api::core::v1::Secret {
        data: Some(BTreeMap::from([
            ("tls.crt".to_owned(), entry(&certificate.chain)),
            ("tls.key".to_owned(), entry(&certificate.key)),
        ])),
        metadata: kube::api::ObjectMeta {
            name: Some("models-tls".to_owned()),
            namespace: Some("modelplane-system".to_owned()),
            resource_version: Some("1".to_owned()),
            ..kube::api::ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        ..k8s_openapi::api::core::v1::Secret::default()
    };
    serde_json::to_value(secret).unwrap()
}

#[tokio::test]
async fn a_renewed_certificate_is_presented_to_new_connections_and_old_ones_go_on() {
    let endpoint_server = Endpoint::named("one").await;
    let (first, renewed) = (certificate("models.example.com"), certificate("models.example.com"));
    let gateway = json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceGateway",
        "metadata": {"name": "default", "resourceVersion": "1"},
        "spec": {"backend": "Modelplane", "modelplane": {"tls": {"certificateSecrets": ["models-tls"]}}},
    });
    let control_plane = Arc::new(Mutex::new(ControlPlane::default()));
    control_plane.lock().unwrap().objects.extend([
        ("modelservices".to_owned(), vec![service()]),
        ("modelendpoints".to_owned(), vec![endpoint("one", endpoint_server.address)]),
        ("inferencegateways".to_owned(), vec![gateway]),
        ("secrets".to_owned(), vec![tls_secret(&first)]),
    ]);
    let mut options = options();
    options.listen_tls = Some(loopback());
    let gateway = Gateway::bind(options).unwrap();
    let (plain, secure) = (gateway.address(), gateway.tls_address().unwrap());
    tokio::spawn(gateway.serve(KubernetesRoutes::new(client(control_plane.clone())), std::future::pending()));
    answers(plain, "one").await;
    let path = "/ml-team/chat/v1/models";
    let ask = |trusted| ask_tls(secure, "models.example.com", trusted, path);
    assert_eq!(ask(&first).await.as_deref(), Some("one"));
    assert_eq!(ask(&renewed).await, None, "nobody has it yet");
    let mut open = open_tls(secure, "models.example.com", &first).await;
    let watch = watch(&control_plane, "secrets").await;
    tell(&watch, "MODIFIED", tls_secret(&renewed)).await;
    let presented = async { while ask(&renewed).await.as_deref() != Some("one") {} };
    soon(presented).await;
    assert_eq!(ask(&first).await, None, "the old one is presented no more");
    let request = Request::get(path).header("host", "g").body(Full::<Bytes>::default()).unwrap();
    let answer = soon(open.send_request(request)).await.unwrap();
    assert_eq!(answer.status(), 200, "a connection made with the old certificate goes on");
}
