//! A simulated cluster's gateway: HTTPRoutes by path prefix, their rewrite, and the ready pods of an InferencePool in turn.
//!
//! It plays what Envoy and the endpoint picker do on a real cluster (spec gateway-and-routing §1, hops 3 and 4). Bodies
//! pass through as they come, both ways.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::plan::serving_pods;
use crate::settings::Settings;
use crate::world::{World, list, name, namespace, text};

/// An answer's body.
pub(crate) type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// Where requests go, as of one look at the cluster.
#[derive(Debug, Default)]
pub struct Table {
    routes: Vec<Route>,
}

#[derive(Debug)]
struct Route {
    prefix: String,
    /// What replaces the prefix, if anything does.
    replacement: Option<String>,
    pods: Vec<Pod>,
    turn: AtomicUsize,
}

#[derive(Debug)]
struct Pod {
    name: String,
    address: SocketAddr,
}

impl Table {
    /// The routes of a cluster; `address_of` gives where a ready pod listens.
    pub(crate) fn of(world: &World, address_of: impl Fn(&Value) -> Option<SocketAddr>) -> Self {
        let mut routes = Vec::new();
        for route in &world.routes {
            for rule in list(route, "/spec/rules") {
                let pools = list(rule, "/backendRefs").iter().filter_map(|reference| {
                    world.inference_pools.iter().find(|pool| {
                        name(pool) == text(reference, "/name") && namespace(pool) == namespace(route)
                    })
                });
                let pods = pools
                    .flat_map(|pool| serving_pods(world, pool))
                    .filter_map(|pod| Some(Pod { name: name(pod).to_owned(), address: address_of(pod)? }));
                let pods: Vec<Pod> = pods.collect();
                let rewrite = list(rule, "/filters").iter().find_map(|filter| {
                    filter.pointer("/urlRewrite/path/replacePrefixMatch").and_then(Value::as_str)
                });
                for matching in list(rule, "/matches") {
                    routes.push(Route {
                        prefix: text(matching, "/path/value").trim_end_matches('/').to_owned(),
                        replacement: rewrite.map(str::to_owned),
                        pods: pods
                            .iter()
                            .map(|pod| Pod { name: pod.name.clone(), address: pod.address })
                            .collect(),
                        turn: AtomicUsize::new(0),
                    });
                }
            }
        }
        // Longest first, so that the first match is the one the Gateway API prefers.
        routes.sort_by_key(|route| std::cmp::Reverse(route.prefix.len()));
        Self { routes }
    }

    fn find(&self, path: &str) -> Option<(&Route, String)> {
        self.routes.iter().find_map(|route| {
            let rest = path.strip_prefix(&route.prefix)?;
            if !(rest.is_empty() || rest.starts_with('/')) {
                return None;
            }
            let path = match &route.replacement {
                None => path.to_owned(),
                Some(with) => format!("{}/{}", with.trim_end_matches('/'), rest.trim_start_matches('/')),
            };
            Some((route, path))
        })
    }
}

/// A cluster's gateway, listening but not serving yet.
pub struct Edge {
    listener: TcpListener,
    address: SocketAddr,
    table: watch::Sender<Arc<Table>>,
}

impl Edge {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub async fn bind() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, table: watch::Sender::new(Arc::default()) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes new routes.
    pub fn table(&self) -> watch::Sender<Arc<Table>> {
        self.table.clone()
    }

    /// Serves until the settings' owner is gone. While the gateway is down connections are closed as they come.
    pub async fn serve(self, settings: watch::Receiver<Settings>) {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else { continue };
            if settings.has_changed().is_err() {
                return;
            }
            if settings.borrow().faults.gateway_down {
                continue;
            }
            let table = self.table.subscribe();
            tokio::spawn(async move {
                let service = hyper::service::service_fn(move |request| {
                    let table = Arc::clone(&table.borrow());
                    async move { Ok::<_, Infallible>(forward(&table, request).await) }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                if let Err(error) = connection.await {
                    tracing::trace!(%error, "a connection to a simulated gateway ended");
                }
            });
        }
    }
}

async fn forward(table: &Table, mut request: Request<Incoming>) -> Response<Body> {
    let Some((route, mut path)) = table.find(request.uri().path()) else {
        return plain(StatusCode::NOT_FOUND, "no route has this path");
    };
    if route.pods.is_empty() {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "no healthy upstream");
    }
    let pod = &route.pods[route.turn.fetch_add(1, Ordering::Relaxed) % route.pods.len()];
    if let Some(query) = request.uri().query() {
        path.push('?');
        path.push_str(query);
    }
    let Ok(uri) = path.parse::<Uri>() else {
        return plain(StatusCode::BAD_REQUEST, "the rewritten path is not a path");
    };
    *request.uri_mut() = uri;
    match send(pod.address, request).await {
        Ok(mut response) => {
            if let Ok(name) = HeaderValue::from_str(&pod.name) {
                response.headers_mut().insert("x-simulated-pod", name);
            }
            response.map(|body| body.boxed_unsync())
        }
        Err(error) => plain(StatusCode::BAD_GATEWAY, &format!("pod {} does not answer: {error}", pod.name)),
    }
}

async fn send(
    address: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

/// A short answer in plain text.
pub(crate) fn plain(status: StatusCode, message: &str) -> Response<Body> {
    let body = Full::new(Bytes::from(format!("{message}\n"))).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Table;
    use crate::world::World;

    fn world() -> World {
        let route = |name: &str, prefix: &str| {
            json!({
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"rules": [{
                    "matches": [{"path": {"type": "PathPrefix", "value": prefix}}],
                    "filters": [{"type": "URLRewrite", "urlRewrite": {"path": {
                        "type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}],
                    "backendRefs": [{"kind": "InferencePool", "name": name}],
                }]},
            })
        };
        World { routes: vec![route("a", "/team/a/"), route("ab", "/team/a/b/")], ..World::default() }
    }

    #[test]
    fn the_longest_prefix_wins_and_is_replaced() {
        let table = Table::of(&world(), |_| None);
        for (path, expected) in [
            ("/team/a/v1/models", Some("/v1/models")),
            ("/team/a/b/v1/models", Some("/v1/models")),
            ("/team/a", Some("/")),
            ("/team/ab/v1", None),
            ("/other", None),
        ] {
            let found = table.find(path).map(|(_, path)| path);
            assert_eq!(found.as_deref(), expected, "{path}");
        }
        let (route, _) = table.find("/team/a/b/x").expect("a route");
        assert_eq!(route.prefix, "/team/a/b");
    }
}
