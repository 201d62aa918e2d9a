//! Listing: selectors, pages, and the revision a list shows.

use std::sync::Arc;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Response, StatusCode};
use modelplane_store::{Entry, ListRequest, ReadError, Revision};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::items::Items;
use super::selection::Selection;
use super::{Context, options};
use crate::core::read_error;
use crate::discovery::{partial, table};
use crate::http::negotiate::{Format, View};
use crate::http::respond;
use crate::object::encode::append_number;
use crate::status::{ApiError, ApiResult, StatusCause};

/// Entries read at a time while a selector drops most of them.
const SELECT_CHUNK: usize = 500;

/// A list as read from the store.
pub(crate) struct Listed {
    pub(crate) entries: Vec<Entry>,
    pub(crate) revision: Revision,
    pub(crate) next: Option<String>,
    pub(crate) remaining: Option<usize>,
}

/// What a continue token holds; opaque to clients.
#[derive(Serialize, Deserialize)]
struct Continue {
    v: String,
    /// The revision of the first page.
    rv: Revision,
    /// The last key of the page before.
    start: String,
    /// How many objects come after that key, so that they are counted once for all pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<usize>,
}

/// Where a list starts, and what of.
#[derive(Default)]
struct Start {
    after: Option<String>,
    revision: Option<Revision>,
    left: Option<usize>,
}

/// `GET` of a collection.
pub(crate) fn list(context: &Context) -> ApiResult<Response<Body>> {
    let selection = Selection::of(context)?;
    let listed = read(context, &selection)?;
    if context.accept.view == View::Object
        && context.accept.format == Format::Json
        && !context.query.flag("pretty")
    {
        let opening = opening(context, &listed);
        let items = Items::new(opening, Arc::clone(&context.resource), context.version, listed.entries);
        return Ok(context.warned(respond::json(StatusCode::OK, items.into_body())));
    }
    let objects: Vec<Value> =
        listed.entries.iter().map(|entry| context.present(&entry.value, entry.modified)).collect();
    let mut document = match context.accept.view {
        View::Object => json!({
            "kind": context.resource.list_kind, "apiVersion": context.version().api_version, "metadata": {},
            "items": objects,
        }),
        View::Table(version) => table::table(context, version, &objects),
        View::Metadata(version) => partial::list(objects, version),
    };
    document["metadata"] = list_metadata(&listed);
    Ok(context.answer_value(StatusCode::OK, &document))
}

/// The entries a list request selects.
pub(crate) fn read(context: &Context, selection: &Selection) -> ApiResult<Listed> {
    let limit = usize::try_from(context.query.number("limit")?.unwrap_or_default()).unwrap_or(usize::MAX);
    let prefix = context.resource.key_prefix(context.namespace());
    let Start { after: start, revision, left } = start_of(context, &prefix, limit)?;
    let resumed = start.is_some();
    let fail = |error: ReadError| match error {
        // A revision that is not there yet is of an earlier life of a store that keeps nothing.
        ReadError::Compacted(_) | ReadError::Future { .. } if resumed => ApiError::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new \
             list without the continue parameter.",
        ),
        other => read_error(other),
    };
    let request = ListRequest {
        prefix: &prefix,
        start_after: start.as_deref(),
        limit,
        revision,
        count_remaining: left.is_none(),
    };
    if selection.is_everything() {
        let page = context.core.store.list(request).map_err(fail)?;
        let remaining = page.remaining.or_else(|| left?.checked_sub(page.entries.len()));
        let next = next_token(page.more, &page.entries, page.revision, remaining);
        return Ok(Listed { entries: page.entries, revision: page.revision, next, remaining });
    }
    let chunk = if limit == 0 { 0 } else { SELECT_CHUNK };
    let mut request = ListRequest { limit: chunk, count_remaining: false, ..request };
    let mut entries = Vec::new();
    let mut last = start.clone();
    loop {
        let page =
            context.core.store.list(ListRequest { start_after: last.as_deref(), ..request }).map_err(fail)?;
        request.revision = Some(page.revision);
        let read = page.entries.len();
        for (index, entry) in page.entries.into_iter().enumerate() {
            last = Some(entry.key.to_string());
            if !selection.matches(&context.resource, &entry.key, &entry.value) {
                continue;
            }
            entries.push(entry);
            if limit != 0 && entries.len() == limit {
                let next = next_token(page.more || index + 1 < read, &entries, page.revision, None);
                return Ok(Listed { entries, revision: page.revision, next, remaining: None });
            }
        }
        if !page.more {
            return Ok(Listed { entries, revision: page.revision, next: None, remaining: None });
        }
    }
}

fn next_token(more: bool, entries: &[Entry], revision: Revision, left: Option<usize>) -> Option<String> {
    let last = entries.last().filter(|_| more)?;
    let token = Continue { v: "meta.k8s.io/v1".to_owned(), rv: revision, start: last.key.to_string(), left };
    Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default()))
}

/// Where the list starts and at which revision, from `continue`, `resourceVersion` and its match rule.
fn start_of(context: &Context, prefix: &str, limit: usize) -> ApiResult<Start> {
    let query = &context.query;
    let asked = options::revision(query, "resourceVersion")?;
    let rule = query.get("resourceVersionMatch");
    if let Some(token) = query.get("continue") {
        if asked.is_some_and(|revision| revision != 0) {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let decoded = URL_SAFE_NO_PAD.decode(token).ok();
        let token = decoded
            .and_then(|bytes| serde_json::from_slice::<Continue>(&bytes).ok())
            .filter(|token| token.start.starts_with(prefix))
            .ok_or_else(|| ApiError::bad_request("continue key is not valid"))?;
        return Ok(Start { after: Some(token.start), revision: Some(token.rv), left: token.left });
    }
    check_rule(asked, rule)?;
    let current = context.core.store.revision();
    let Some(asked) = asked.filter(|asked| *asked != 0) else { return Ok(Start::default()) };
    if asked > current {
        return Err(ApiError::future_revision(asked, current));
    }
    let exact = rule == Some("Exact") || (rule.is_none() && limit != 0);
    Ok(Start { revision: exact.then_some(asked), ..Start::default() })
}

fn check_rule(asked: Option<Revision>, rule: Option<&str>) -> ApiResult<()> {
    let Some(rule) = rule else { return Ok(()) };
    let forbidden = |message: &str| StatusCause {
        reason: "FieldValueForbidden".to_owned(),
        message: format!("Forbidden: {message}"),
        field: "resourceVersionMatch".to_owned(),
    };
    let cause = match (rule, asked) {
        (_, None) => forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("Exact", Some(0)) => {
            forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
        }
        ("Exact" | "NotOlderThan", _) => return Ok(()),
        _ => StatusCause {
            reason: "FieldValueNotSupported".to_owned(),
            message: format!("Unsupported value: {rule:?}: supported values: \"Exact\", \"NotOlderThan\""),
            field: "resourceVersionMatch".to_owned(),
        },
    };
    Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", vec![cause]))
}

fn list_metadata(listed: &Listed) -> Value {
    let mut metadata = json!({"resourceVersion": listed.revision.to_string()});
    if let Some(next) = &listed.next {
        metadata["continue"] = next.as_str().into();
        if let Some(remaining) = listed.remaining.filter(|remaining| *remaining > 0) {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
    metadata
}

/// The JSON of a list up to its first item.
fn opening(context: &Context, listed: &Listed) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(context.resource.list_kind.as_bytes());
    out.extend_from_slice(b"\",\"apiVersion\":\"");
    out.extend_from_slice(context.version().api_version.as_bytes());
    out.extend_from_slice(b"\",\"metadata\":{\"resourceVersion\":\"");
    append_number(&mut out, listed.revision);
    out.push(b'"');
    if let Some(next) = &listed.next {
        out.extend_from_slice(b",\"continue\":\"");
        out.extend_from_slice(next.as_bytes());
        out.push(b'"');
        if let Some(remaining) = listed.remaining.filter(|remaining| *remaining > 0) {
            out.extend_from_slice(b",\"remainingItemCount\":");
            append_number(&mut out, remaining as u64);
        }
    }
    out.extend_from_slice(b"},\"items\":[");
    out
}
