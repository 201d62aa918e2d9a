//! Models by name: which service a request's body names, what an endpoint calls it, and the list of all.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};

use crate::body::{ClientFailure, RequestBody, RequestSource};
use crate::callers::Caller;
use crate::endpoint::Endpoint;
use crate::json::{Finder, Found, Wanted};
use crate::random;
use crate::reply::ReplyBody;
use crate::routes::path;
use crate::routes::table::RouteTable;
use crate::upstream::{self, Answer, Outgoing};

/// APIs whose requests name their model in the body.
const APIS: [&str; 9] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/rerank",
    "/v1/score",
    "/v1/moderations",
];

const MODEL: Wanted = Wanted { keys: &["model"], depth: 1, limit: 1024, elements: usize::MAX };

const PROMPT: Wanted = Wanted { keys: &["messages", "prompt", "input"], depth: 1, limit: 1024, elements: 2 };

/// Most of a body that is read to find the beginning of its prompt.
const PROMPT_BYTES: usize = 64 << 10;

/// Most bytes of an endpoint's list of models.
const LIST_BYTES: usize = 1 << 20;

/// How long an endpoint may take to list its models.
const LIST_TIME: Duration = Duration::from_secs(5);

/// The model a body names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    /// The name.
    pub(crate) name: String,
    /// Where it stands in the body, quotes included.
    pub(crate) range: Range<usize>,
}

/// Whether a request is routed by the model its body names.
pub(crate) fn is_in_body(method: &Method, path: &str) -> bool {
    *method == Method::POST && APIS.contains(&path)
}

/// Finds the model a body names, reading no further than that.
pub(crate) async fn find(body: &RequestSource, limit: usize) -> Result<Option<Named>, ClientFailure> {
    let found = look_for(body, MODEL, limit).await?;
    Ok(found.filter(|found| !found.cut).and_then(|found| {
        let name = serde_json::from_slice(&found.text).ok()?;
        Some(Named { name, range: found.range })
    }))
}

/// A hash of the prompt's beginning: the first message, and the second if the first is not the user's.
pub(crate) async fn prompt_hash(body: &RequestSource) -> Result<Option<u64>, ClientFailure> {
    let found = look_for(body, PROMPT, PROMPT_BYTES).await?;
    Ok(found.map(|found| {
        let is_user = |message: &[u8]| message.windows(6).any(|word| word == b"\"user\"");
        let end = match found.elements[..] {
            [first, ..] if is_user(&found.text[..first]) => first,
            [_, second, ..] => second,
            // A value without elements, or an array that ends with its first or second.
            _ => found.text.len() - usize::from(!found.cut && found.text.ends_with(b"]")),
        };
        random::hash(&found.text[..end])
    }))
}

async fn look_for(
    body: &RequestSource,
    wanted: Wanted,
    limit: usize,
) -> Result<Option<Found>, ClientFailure> {
    let mut finder = Finder::new(wanted);
    let mut found = None;
    body.look_into(limit, |piece| {
        (found, _) = finder.feed(piece);
        found.is_none() && !finder.has_ended()
    })
    .await?;
    Ok(found)
}

/// What an endpoint calls the model: as configured, else the first model it lists.
pub(crate) async fn name_at(endpoint: &Endpoint, worker: usize) -> Option<Arc<str>> {
    if let Some(name) = &endpoint.config.model {
        return Some(name.as_str().into());
    }
    let (known, due) = endpoint.live.model(Instant::now());
    if !due {
        return known;
    }
    let listed = tokio::time::timeout(LIST_TIME, first_listed(endpoint, worker)).await.ok().flatten();
    endpoint.live.discovered(listed);
    endpoint.live.model(Instant::now()).0
}

async fn first_listed(endpoint: &Endpoint, worker: usize) -> Option<Arc<str>> {
    let path = path::rewrite("/v1/models", "/v1/models", endpoint.rewrite_path.as_deref(), None);
    let (headers, body) = (HeaderMap::new(), RequestBody::empty());
    let request =
        Outgoing { method: &Method::GET, target: path, headers: &headers, forwarded: None, endpoint, body };
    let (answer, _) = upstream::send(request, worker, LIST_TIME).await.ok()?;
    let list = read(answer, LIST_BYTES).await?;
    let list: Value = serde_json::from_slice(&list).ok()?;
    Some(list.pointer("/data/0/id")?.as_str()?.into())
}

/// The whole body of a successful answer.
pub(crate) async fn read(answer: Answer, limit: usize) -> Option<Bytes> {
    if !answer.status().is_success() {
        return None;
    }
    Some(Limited::new(answer.into_body(), limit).collect().await.ok()?.to_bytes())
}

/// Answers requests for the list of models, or for one of them.
pub(crate) fn list(
    table: &RouteTable,
    caller: Option<&Arc<Caller>>,
    path: &str,
) -> Option<Response<ReplyBody>> {
    let mut ids: Vec<&str> = table
        .services()
        .map(|service| &*service.id)
        .filter(|id| caller.is_none_or(|caller| caller.may_use(id)))
        .collect();
    ids.sort_unstable();
    let model = |id: &str| {
        let owner = id.split('/').next().unwrap_or_default();
        json!({"id": id, "object": "model", "created": 0, "owned_by": owner})
    };
    let body = match path.strip_prefix("/v1/models")? {
        "" | "/" => {
            let models: Vec<Value> = ids.into_iter().map(model).collect();
            json!({"object": "list", "data": models, "has_more": false})
        }
        one => model(ids.into_iter().find(|id| one.strip_prefix('/') == Some(id))?),
    };
    let mut response = Response::new(ReplyBody::full(body.to_string().into()));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    Some(response)
}
