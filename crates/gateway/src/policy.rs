//! What happens to a request, in order: one list, read from top to bottom.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::time::Instant;

use arc_swap::Guard;
use http::header::{AUTHORIZATION, HOST};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body;

use crate::body::{BodyLimits, ClientFailure, RequestSource};
use crate::callers::{Caller, KEY_HEADERS};
use crate::forward::{self, Target};
use crate::headers;
use crate::incoming::ClientBody;
use crate::model::{self, Named};
use crate::record::Record;
use crate::refusal::Refusal;
use crate::reply::ReplyBody;
use crate::routes::path::{self, ServicePath};
use crate::routes::table::RouteTable;
use crate::server::{Client, Shared};

/// One of the things that happen to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Join the client's trace, or begin one.
    Trace,
    /// Refuse what is malformed.
    WellFormed,
    /// Find out who calls.
    Identify,
    /// Find the service by path.
    RouteByPath,
    /// List models.
    ListModels,
    /// Find the service by the model in the body.
    RouteByModel,
    /// Check that the caller may use the service.
    Authorize,
    /// Count the request against the caller's limits.
    Limit,
}

/// The order, and why each comes where it does. Forwarding follows the last.
pub(crate) const ORDER: [(Policy, &str); 8] = [
    (Policy::Trace, "first, so that refusals can be found again too"),
    (Policy::WellFormed, "everything after may take the request at its word"),
    (Policy::Identify, "before routing, so that strangers learn nothing of what is served"),
    (Policy::RouteByPath, "costs one look-up and reads no body"),
    (Policy::ListModels, "after paths, which may name a namespace v1; needs the caller"),
    (Policy::RouteByModel, "the first to read the body, so nobody unknown can make the gateway keep any"),
    (
        Policy::Authorize,
        "needs caller and service; before limits, so that a forbidden request uses nothing up",
    ),
    (Policy::Limit, "last, so that only requests that will be forwarded are counted"),
];

/// A request on its way through the policies.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// What all connections share.
    pub(crate) shared: Arc<Shared>,
    /// Who asks.
    pub(crate) client: Client,
    /// The request's head.
    pub(crate) head: Parts,
    /// The request's body, if it has one.
    pub(crate) body: Option<Arc<RequestSource>>,
    /// The protocol it asks to switch to.
    pub(crate) upgrade: Option<HeaderValue>,
    /// The header of the trace, where that begins here.
    pub(crate) trace: Option<HeaderValue>,
    /// What becomes of it.
    pub(crate) record: Box<Record>,
    caller: Option<Arc<Caller>>,
    target: Option<Target>,
}

/// What a policy decides: the next one, or the answer.
type Verdict = ControlFlow<Result<Response<ReplyBody>, Refusal>>;

/// Answers a request.
pub(crate) fn answer(
    shared: Arc<Shared>,
    client: Client,
    request: Request<ClientBody>,
) -> impl Future<Output = Response<ReplyBody>> + Send + 'static {
    // Boxed at once: it is handed on from step to step, and each would copy it.
    decide(Box::new(Exchange::new(shared, client, request)))
}

async fn decide(mut exchange: Box<Exchange>) -> Response<ReplyBody> {
    // A guard costs no write to memory that all workers share; nothing but waiting for a body needs more.
    let mut table = exchange.shared.table.load();
    for (policy, _) in ORDER {
        let verdict = match policy {
            Policy::RouteByModel => {
                if exchange.needs_body() {
                    table = Guard::from_inner(Guard::into_inner(table));
                }
                exchange.route_by_model(&table).await.into_verdict()
            }
            policy => exchange.pass(policy, &table),
        };
        match verdict {
            Continue(()) => {}
            Break(Ok(response)) => {
                exchange.record.served();
                return response;
            }
            Break(Err(refusal)) => return exchange.refuse(&refusal),
        }
    }
    drop(table);
    match exchange.target.take() {
        Some(target) => forward::forward(exchange, target).await,
        None => exchange.refuse(&Refusal::not_found("model_not_found", "nothing is served here")),
    }
}

trait IntoVerdict {
    fn into_verdict(self) -> Verdict;
}

impl IntoVerdict for Result<(), Refusal> {
    fn into_verdict(self) -> Verdict {
        match self {
            Ok(()) => Continue(()),
            Err(refusal) => Break(Err(refusal)),
        }
    }
}

impl Exchange {
    fn new(shared: Arc<Shared>, client: Client, request: Request<ClientBody>) -> Self {
        let upgrade = headers::upgrade(request.method(), request.version(), request.headers());
        let (head, incoming) = request.into_parts();
        let limits = BodyLimits {
            replay: shared.limits.replay_bytes,
            total: shared.limits.body_bytes,
            pause: shared.limits.body_pause,
        };
        let body =
            (!incoming.is_end_stream()).then(|| RequestSource::new(incoming, limits, shared.memory.clone()));
        let mut record = Record::new(shared.clone(), client, head.method.clone(), head.uri.clone());
        record.request.clone_from(&body);
        Self { shared, client, head, body, upgrade, record, trace: None, caller: None, target: None }
    }

    /// The host the request is for, with its port.
    pub(crate) fn host(&self) -> Option<HeaderValue> {
        // Where a target names its authority, that holds whatever the header says (RFC 9112 §3.2.2, RFC 9113 §8.3.1).
        match self.head.uri.authority() {
            Some(authority) => {
                let authority = authority.as_str();
                HeaderValue::from_str(authority.rsplit_once('@').map_or(authority, |(_, host)| host)).ok()
            }
            None => self.head.headers.get(HOST).cloned(),
        }
    }

    /// Who calls, if callers are known.
    pub(crate) fn caller(&self) -> Option<&Arc<Caller>> {
        self.caller.as_ref()
    }

    /// Answers with an error.
    pub(crate) fn refuse(mut self: Box<Self>, refusal: &Refusal) -> Response<ReplyBody> {
        self.record.refused(refusal);
        refusal.response()
    }

    /// Applies a policy that needs no more of the request than its head.
    fn pass(&mut self, policy: Policy, table: &RouteTable) -> Verdict {
        let passed = match policy {
            Policy::Trace => {
                let (trace, begun) = headers::trace(&self.head.headers);
                self.record.trace(trace);
                self.trace = begun;
                Ok(())
            }
            Policy::WellFormed => self.well_formed(table),
            Policy::Identify => self.identify(table),
            Policy::RouteByPath => {
                self.target = self.route_by_path(table);
                Ok(())
            }
            Policy::ListModels => match self.list_models(table) {
                Some(answer) => return Break(answer),
                None => Ok(()),
            },
            Policy::RouteByModel => Ok(()),
            Policy::Authorize => self.authorize(),
            Policy::Limit => self.limit(),
        };
        passed.into_verdict()
    }

    fn well_formed(&self, table: &RouteTable) -> Result<(), Refusal> {
        let head = &self.head;
        if matches!(head.method, Method::CONNECT | Method::TRACE) {
            let message = format!("method {} is not proxied", head.method);
            return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message));
        }
        let length = self.body.as_ref().and_then(|body| body.length()).unwrap_or(0);
        let most = self.shared.limits.body_bytes;
        if length > most {
            return Err(client_failed(&ClientFailure::TooLarge(most)));
        }
        let mut hosts = head.headers.get_all(HOST).iter();
        // RFC 9112 §3.2.
        if hosts.next().is_none() && head.version == Version::HTTP_11 {
            return Err(Refusal::bad_request("invalid_host", "there is no host header"));
        }
        if hosts.next().is_some() {
            return Err(Refusal::bad_request("invalid_host", "there is more than one host header"));
        }
        if path::has_dot_segments(head.uri.path()) {
            let message = "the path has dot segments; write the path they resolve to";
            return Err(Refusal::bad_request("invalid_path", message));
        }
        if self.client.secure { self.known_host(&table.hostnames) } else { Ok(()) }
    }

    fn known_host(&self, hostnames: &[String]) -> Result<(), Refusal> {
        let host = self.host();
        let host = host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default();
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name);
        if hostnames.is_empty() || hostnames.iter().any(|hostname| is_host(hostname, name)) {
            return Ok(());
        }
        let message = format!("host {host:?} is not served here");
        Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, "unknown_host", message))
    }

    fn identify(&mut self, table: &RouteTable) -> Result<(), Refusal> {
        let Some(callers) = &table.callers else { return Ok(()) };
        self.caller = Some(callers.identify(&self.head.headers)?);
        // The key is the gateway's business and nobody else's.
        self.head.headers.remove(AUTHORIZATION);
        for name in &KEY_HEADERS {
            self.head.headers.remove(name);
        }
        Ok(())
    }

    fn route_by_path(&self, table: &RouteTable) -> Option<Target> {
        let path = self.head.uri.path();
        let split = ServicePath::parse(path)?;
        let service = table.service(split.id)?;
        Some(Target {
            service: service.clone(),
            prefix: path.len() - split.rest.len(),
            by_model: false,
            model: None,
        })
    }

    fn list_models(&self, table: &RouteTable) -> Option<Result<Response<ReplyBody>, Refusal>> {
        let path = self.head.uri.path();
        if self.target.is_some() || self.head.method != Method::GET || !path.starts_with("/v1/models") {
            return None;
        }
        let unknown = || Refusal::not_found("model_not_found", "no such model is served here");
        Some(model::list(table, self.caller.as_ref(), path).ok_or_else(unknown))
    }

    /// Whether the model's name must be found in the body, to route by it or to replace it.
    fn needs_body(&self) -> bool {
        match &self.target {
            Some(target) => target.service.maps_model,
            None => model::is_in_body(&self.head.method, self.head.uri.path()),
        }
    }

    async fn route_by_model(&mut self, table: &RouteTable) -> Result<(), Refusal> {
        let path = self.head.uri.path();
        if !self.needs_body() {
            return self.target.as_ref().map(|_| ()).ok_or_else(|| unknown_path(path));
        }
        let limit = self.shared.limits.model_bytes;
        let named = match &self.body {
            Some(body) => model::find(body, limit).await.map_err(|failure| client_failed(&failure))?,
            None => None,
        };
        match (&mut self.target, named) {
            (Some(target), named) => target.model = named.map(|named| named.range),
            (None, Some(Named { name, range })) => {
                let service = table.service(&name).ok_or_else(|| unknown_model(&name))?;
                self.target =
                    Some(Target { service: service.clone(), prefix: 0, by_model: true, model: Some(range) });
            }
            (None, None) => {
                let message = "the body names no model; set \"model\" to \"<namespace>/<service>\"";
                return Err(Refusal::bad_request("missing_model", message));
            }
        }
        Ok(())
    }

    fn authorize(&self) -> Result<(), Refusal> {
        let (Some(caller), Some(target)) = (&self.caller, &self.target) else { return Ok(()) };
        if caller.may_use(&target.service.id) {
            return Ok(());
        }
        let message = format!("the API key does not allow ModelService {:?}", target.service.id);
        Err(Refusal::new(StatusCode::FORBIDDEN, "model_not_allowed", message))
    }

    fn limit(&mut self) -> Result<(), Refusal> {
        if let Some(caller) = &self.caller {
            self.record.caller = Some(caller.admit(Instant::now())?);
        }
        Ok(())
    }
}

/// Whether a host name is the one served. A wildcard stands for one label or more (Gateway API `Hostname`).
fn is_host(served: &str, name: &str) -> bool {
    match served.strip_prefix('*') {
        Some(suffix) => name
            .len()
            .checked_sub(suffix.len())
            .filter(|&at| at > 0)
            .and_then(|at| name.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(suffix)),
        None => served.eq_ignore_ascii_case(name),
    }
}

fn unknown_model(name: &str) -> Refusal {
    Refusal::not_found("model_not_found", format!("no ModelService {name:?} is served here"))
}

fn unknown_path(path: &str) -> Refusal {
    match ServicePath::parse(path) {
        Some(split) => unknown_model(split.id),
        None => Refusal::not_found("model_not_found", "a path starts with /<namespace>/<service>/"),
    }
}

/// The answer to a client whose request body could not be read.
pub(crate) fn client_failed(failure: &ClientFailure) -> Refusal {
    let (status, code) = match failure {
        ClientFailure::Read(_) => (StatusCode::BAD_REQUEST, "invalid_body"),
        ClientFailure::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "request_too_large"),
        ClientFailure::Paused(_) => (StatusCode::REQUEST_TIMEOUT, "request_timeout"),
        ClientFailure::Memory => return Refusal::unavailable("overloaded", failure.to_string()),
    };
    Refusal::new(status, code, failure.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_stands_for_one_label_or_more() {
        let cases = [
            ("models.example.com", "MODELS.example.com", true),
            ("models.example.com", "a.models.example.com", false),
            ("*.example.com", "models.example.com", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", ".example.com", false),
            ("*.example.com", "example.com", false),
            ("*.example.com", "modelsexample.com", false),
        ];
        for (served, name, want) in cases {
            assert_eq!(is_host(served, name), want, "{served} {name}");
        }
    }
}
