//! The way of a request: path, identity, permission, negotiation, verb, answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;

use crate::access::{self, Action};
use crate::audit::Record;
use crate::core::Core;
use crate::discovery::{openapi, resources};
use crate::http::negotiate::{self, Format};
use crate::http::query::Query;
use crate::http::request::{Path, ResourcePath, Verb};
use crate::http::{body, respond};
use crate::identity::Identity;
use crate::profile;
use crate::status::{ApiError, ApiResult, Target};
use crate::verbs::{self, Context, selection};

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Whose request it is.
pub(crate) enum Caller {
    /// Known from the start: a request within the process.
    Known(Identity),
    /// To be found out: over the network.
    Network {
        /// Whom the client certificate stands for, if one was shown.
        certificate: Option<Identity>,
        source: IpAddr,
    },
}

/// Handles any request.
pub(crate) async fn handle<B>(core: Arc<Core>, caller: Caller, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let started = Instant::now();
    let received = Timestamp::now();
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query());
    let path = Path::parse(parts.uri.path());
    let asked = Asked::of(&core, &parts, &path, &query);
    let source = match &caller {
        Caller::Known(_) => None,
        Caller::Network { source, .. } => Some(*source),
    };
    let identity = match caller {
        Caller::Known(identity) => Ok(identity),
        Caller::Network { certificate, .. } => {
            access::authenticate(&core, certificate.as_ref(), &parts.headers)
        }
    };
    let caller = identity.as_ref().ok().cloned();
    let identity = identity.and_then(|caller| access::impersonate(&core.access, caller, &parts.headers));
    let audited = core.audit.as_ref().map(|log| {
        let impersonated = identity.as_ref().ok().filter(|found| Some(*found) != caller.as_ref()).cloned();
        (log, parts.clone(), (caller, impersonated), path.clone())
    });
    let head = parts.method == Method::HEAD;
    let outcome = match path {
        Path::Resource(path) => match identity {
            Ok(identity) => resource_request(&core, identity, (parts, query, path), body).await,
            Err(error) => Err(error),
        },
        Path::Other(path) => other_request(&core, identity, &parts, (&path, &query)).await,
    };
    let mut response = outcome.unwrap_or_else(|error| respond::error(&error, Format::Json));
    let code = response.status().as_u16();
    core.metrics.request(asked.verb, &asked.resource, code, started.elapsed());
    if let Some((log, parts, (identity, impersonated), path)) = audited {
        let uri = parts.uri.path_and_query().map(|uri| uri.as_str()).unwrap_or_default();
        let agent = parts.headers.get(http::header::USER_AGENT);
        log.write(&Record {
            id: core.uid().unwrap_or_default(),
            uri,
            verb: asked.verb,
            identity: identity.as_ref(),
            impersonated: impersonated.as_ref(),
            object: if let Path::Resource(path) = &path { Some(path) } else { None },
            source,
            user_agent: agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default(),
            code,
            received,
            finished: Timestamp::now(),
        });
    }
    if head {
        *response.body_mut() = Body::empty();
    }
    response
}

/// What a request asks for, as metrics and the audit log name it.
struct Asked {
    verb: &'static str,
    resource: String,
}

impl Asked {
    fn of(core: &Core, parts: &Parts, path: &Path, query: &Query) -> Asked {
        match path {
            Path::Resource(path) => {
                let verb = Verb::of(&parts.method, path, query).map_or("other", Verb::as_str);
                // Only names that are served become labels.
                let known =
                    core.registry().resource(&path.group, &path.resource).map(|found| found.qualified());
                Asked { verb, resource: known.unwrap_or_default() }
            }
            Path::Other(_) => Asked { verb: "get", resource: String::new() },
        }
    }
}

async fn resource_request<B>(
    core: &Arc<Core>,
    identity: Identity,
    request: (Parts, Query, ResourcePath),
    body: B,
) -> ApiResult<Response<Body>>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let (parts, query, path) = request;
    let verb = Verb::of(&parts.method, &path, &query).ok_or_else(ApiError::method_not_allowed)?;
    // Rules with resourceNames apply to a collection as far as it is limited to one name, as in Kubernetes.
    let selected = match verb {
        Verb::List | Verb::Watch | Verb::DeleteCollection if path.name.is_none() => {
            selection::only_name(&query)
        }
        _ => None,
    };
    let name = path.name.as_deref().or(selected.as_deref()).unwrap_or_default();
    let action = Action {
        verb: verb.as_str(),
        group: &path.group,
        resource: &path.resource,
        subresource: path.subresource.as_deref().unwrap_or_default(),
        namespace: path.namespace.as_deref().unwrap_or_default(),
        name,
        path: "",
    };
    access::authorize(core, &identity, &action).map_err(|why| {
        ApiError::forbidden(Target { group: &path.group, resource: &path.resource, name }, &why)
    })?;
    let registry = core.registry();
    let (resource, version) =
        registry.find(&path.group, &path.version, &path.resource).ok_or_else(ApiError::no_such_resource)?;
    let accept = negotiate::accept(&parts.headers)?;
    let context = Context {
        core: Arc::clone(core),
        identity,
        verb,
        query,
        resource: Arc::clone(resource),
        version,
        accept,
        warnings: Vec::new(),
        headers: parts.headers,
        path,
    };
    drop(registry);
    let body = if matches!(verb, Verb::Get | Verb::List | Verb::Watch) {
        Bytes::new()
    } else {
        tokio::time::timeout(BODY_TIMEOUT, body::read(body)).await.map_err(|_| ApiError::slow_body())??
    };
    // The largest futures of the server: on the heap, so that callers stay small.
    Box::pin(verbs::dispatch(context, body)).await
}

async fn other_request(
    core: &Arc<Core>,
    identity: ApiResult<Identity>,
    parts: &Parts,
    asked: (&str, &Query),
) -> ApiResult<Response<Body>> {
    let (path, query) = asked;
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    if reads && OPEN.contains(&path) {
        return Ok(health(core, path, query));
    }
    let identity = identity?;
    let verb = parts.method.as_str().to_ascii_lowercase();
    let action = Action { verb: &verb, path, ..Action::default() };
    access::authorize(core, &identity, &action).map_err(|why| {
        let mut error = ApiError::forbidden(Target { group: "", resource: "", name: "" }, &why);
        error.message = format!("forbidden: {why}");
        error
    })?;
    if !reads {
        return Err(ApiError::method_not_allowed());
    }
    let registry = core.registry();
    if let Some(response) = resources::answer(&registry, path, &parts.headers) {
        return Ok(response);
    }
    if path.starts_with("/openapi/") {
        return openapi::answer(core, &registry, path, (query, &parts.headers));
    }
    match path {
        "/version" => Ok(respond::document(StatusCode::OK, Format::Json, &version(), true)),
        "/debug/profile" if core.debug_profile => {
            let report = profile::profile(core, query).await?;
            Ok(respond::document(StatusCode::OK, Format::Json, &report, query.flag("pretty")))
        }
        "/metrics" => Ok(respond::text(StatusCode::OK, core.metrics.text(&core.store))),
        "" => {
            let paths = [
                "/api",
                "/apis",
                "/healthz",
                "/livez",
                "/metrics",
                "/openapi/v2",
                "/openapi/v3",
                "/readyz",
                "/version",
            ];
            Ok(respond::document(StatusCode::OK, Format::Json, &serde_json::json!({"paths": paths}), true))
        }
        _ if is_health(path) => Ok(health(core, path, query)),
        _ if path.starts_with("/api/") || path.starts_with("/apis/") => Err(ApiError::no_such_resource()),
        _ => Ok(respond::text(StatusCode::NOT_FOUND, "404 page not found\n")),
    }
}

/// What answers without credentials.
const OPEN: [&str; 2] = ["/livez", "/readyz"];
/// What health is made of, each part with a path of its own below the endpoints.
const CHECKS: [&str; 3] = ["ping", "shutdown", "store"];

/// Whether a path asks for health: an endpoint, or a part of it.
fn is_health(path: &str) -> bool {
    let rest = ["/healthz", "/livez", "/readyz"].into_iter().find_map(|endpoint| path.strip_prefix(endpoint));
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.strip_prefix('/').is_some_and(|part| CHECKS.contains(&part))
    })
}

fn health(core: &Core, path: &str, query: &Query) -> Response<Body> {
    let endpoint = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let stopping = *core.stopping.borrow();
    let ready = !(stopping && endpoint == "readyz");
    let code = if ready { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    if !query.has("verbose") && ready {
        return respond::text(code, "ok");
    }
    let mark = if ready { "[+]shutdown ok" } else { "[-]shutdown failed: the server is stopping" };
    let verdict = if ready { "passed" } else { "failed" };
    respond::text(code, format!("[+]ping ok\n[+]store ok\n{mark}\n{endpoint} check {verdict}\n"))
}

/// What `/version` says: the Kubernetes version whose behaviour is followed.
fn version() -> serde_json::Value {
    serde_json::json!({
        "major": "1", "minor": "36",
        "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": concat!("v1.36.0+modelplane-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, arch()),
    })
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
