//! What the tests of the server share: a server in memory, raw requests, a definition to play with.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod served;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use modelplane_apiserver::{ApiServer, Identity, InProcess, Options, Profile};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// A server that keeps nothing.
pub(crate) async fn server() -> ApiServer {
    ApiServer::start(Options::in_memory(Profile::Workload)).await.unwrap()
}

/// An answer, decoded if it is JSON.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
    pub(crate) value: Value,
}

/// Raw requests as the administrator.
#[derive(Clone)]
pub(crate) struct Caller(pub(crate) InProcess);

impl Caller {
    pub(crate) fn new(server: &ApiServer) -> Caller {
        Caller(server.in_process(Identity::admin()))
    }

    pub(crate) async fn raw(&self, request: Request<Full<Bytes>>) -> Answer {
        let response = self.0.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let value = serde_json::from_str(&text).unwrap_or_default();
        Answer { code: parts.status.as_u16(), headers: parts.headers, text, value }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("user-agent", "tests/1")
            .body(Full::new(body.into()))
            .unwrap();
        self.raw(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "application/json", "").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let request = Request::builder().uri(path).header("accept", accept).body(Full::default()).unwrap();
        self.raw(request).await
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Answer {
        self.send(Method::POST, path, "application/json", object.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, object: &Value) -> Answer {
        self.send(Method::PUT, path, "application/json", object.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, "application/json", "").await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Answer {
        self.send(Method::PATCH, path, "application/merge-patch+json", patch.to_string()).await
    }

    pub(crate) async fn apply(&self, path: &str, manager: &str, object: &Value) -> Answer {
        let path = format!("{path}{}fieldManager={manager}", if path.contains('?') { '&' } else { '?' });
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", object.to_string()).await
    }
}

/// A definition with everything a definition can have.
pub(crate) fn widgets() -> Value {
    serde_json::from_str(include_str!("widgets.json")).unwrap()
}

pub(crate) const WIDGETS: &str = "/apis/example.org/v1/namespaces/default/widgets";

pub(crate) fn widget(name: &str) -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name},
        "spec": {"size": "small"},
    })
}

/// A server that knows widgets.
pub(crate) async fn with_widgets() -> (ApiServer, Caller) {
    let server = server().await;
    let caller = Caller::new(&server);
    let created = caller.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &widgets()).await;
    assert_eq!(created.code, 201, "{}", created.text);
    (server, caller)
}
