//! Routes watched from a control plane, played by a service that lists and then feeds watches.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Frame;
use modelplane_gateway::Gateway;
use modelplane_gateway::source::kubernetes::KubernetesRoutes;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

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

#[tokio::test]
async fn a_change_on_the_control_plane_takes_effect_at_once() {
    let (one, two) = (Endpoint::named("one").await, Endpoint::named("two").await);
    let service = json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelService",
        "metadata": {"name": "chat", "namespace": "ml-team", "resourceVersion": "1"},
        "spec": {"endpoints": [{"selector": {"matchLabels": {"app": "chat"}}}]},
    });
    let control_plane = Arc::new(Mutex::new(ControlPlane::default()));
    control_plane.lock().unwrap().objects.extend([
        ("modelservices".to_owned(), vec![service]),
        ("modelendpoints".to_owned(), vec![endpoint("one", one.address)]),
    ]);
    let gateway = Gateway::bind(options()).unwrap();
    let address = gateway.address();
    let source = KubernetesRoutes::new(client(control_plane.clone()));
    tokio::spawn(gateway.serve(source, std::future::pending()));
    let answers = |want: &'static str| async move {
        while get(address, "/ml-team/chat/v1/models").await.text() != want {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(answers("one")).await;
    assert_eq!(one.last().target, "/ml-team/one/v1/models");
    let watch = soon(async {
        loop {
            if let Some(watch) = control_plane.lock().unwrap().watches.get("modelendpoints") {
                return watch.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    for event in [
        json!({"type": "ADDED", "object": endpoint("two", two.address)}),
        json!({"type": "DELETED", "object": endpoint("one", one.address)}),
    ] {
        watch.send(Frame::data(format!("{event}\n").into())).await.unwrap();
    }
    soon(answers("two")).await;
}
