//! Watching: the events of a resource as a stream, from a revision or from the current state on.
//!
//! An event is rendered once per version and shared by all its watchers; a watcher with a selector sees objects
//! come and go as they start and stop to match.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{Response, StatusCode};
use modelplane_store::{Event, EventKind, ListRequest, Revision, Watch, WatchError};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep};

use super::selection::Selection;
use super::{Context, convert, options};
use crate::core::read_error;
use crate::discovery::{partial, table};
use crate::http::negotiate::View;
use crate::http::respond;
use crate::metrics::WatcherGuard;
use crate::status::{ApiError, ApiResult, StatusCause};

const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// Watches without `timeoutSeconds` last this long, and up to twice that.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The types of watch events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Added,
    Modified,
    Deleted,
}

impl Kind {
    fn opening(self) -> &'static [u8] {
        match self {
            Kind::Added => b"{\"type\":\"ADDED\",\"object\":",
            Kind::Modified => b"{\"type\":\"MODIFIED\",\"object\":",
            Kind::Deleted => b"{\"type\":\"DELETED\",\"object\":",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Added => "ADDED",
            Kind::Modified => "MODIFIED",
            Kind::Deleted => "DELETED",
        }
    }
}

/// With so many watches on a resource its lines are rendered once for all of them, and kept with the events: for
/// fewer the memory is worth more than the time.
const SHARED_FROM: i64 = 5;

/// An event's lines as they were rendered so far, by version.
#[derive(Default)]
struct Rendered(Mutex<Vec<(RenderedAs, Bytes)>>);

/// The resource (by address, since a changed definition is another one), version, type and state of a line.
type RenderedAs = (usize, usize, Kind, bool);

/// A running watch.
struct Watching {
    context: Context,
    selection: Selection,
    everything: bool,
    events: Watch,
    ready: VecDeque<Bytes>,
    bookmarks: Option<Interval>,
    /// Kept, since a new timer for each event would cost more than the event.
    deadline: Pin<Box<Sleep>>,
    closed: watch::Receiver<bool>,
    stopping: watch::Receiver<bool>,
    ended: bool,
    tables: usize,
    counted: WatcherGuard,
}

/// `GET` with `watch=true`.
pub(crate) fn watch(context: Context) -> ApiResult<Response<Body>> {
    let query = &context.query;
    let selection = Selection::of(&context)?;
    let asked = options::revision(query, "resourceVersion")?.unwrap_or_default();
    let streaming = initial_events(&context)?;
    let bookmarks = query.flag("allowWatchBookmarks").then(|| {
        let mut ticks = interval_at(Instant::now() + BOOKMARK_INTERVAL, BOOKMARK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    });
    let timeout = match query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0) {
        Some(seconds) => Duration::from_secs(seconds.min(24 * 3600)),
        None => DEFAULT_TIMEOUT.mul_f64(1.0 + context.core.fraction()),
    };
    let prefix = context.resource.key_prefix(context.namespace());
    let mut ready = VecDeque::new();
    let core = Arc::clone(&context.core);
    let current = core.store.revision();
    let from_state = streaming == Some(true) || (streaming.is_none() && asked == 0);
    let mut tables = 0;
    let after = if from_state {
        if asked > current {
            return Err(ApiError::future_revision(asked, current));
        }
        let page =
            core.store.list(ListRequest { prefix: &prefix, ..ListRequest::default() }).map_err(read_error)?;
        for entry in &page.entries {
            if selection.matches(&context.resource, &entry.key, &entry.value) {
                ready.push_back(line(&context, Kind::Added, &entry.value, entry.modified, tables == 0));
                tables += 1;
            }
        }
        if streaming == Some(true) {
            ready.push_back(bookmark(&context, page.revision, true));
        }
        page.revision
    } else if asked == 0 {
        current
    } else {
        asked
    };
    let events = if after > current.max(core.store.revision()) {
        // A revision of an earlier life of a store that keeps nothing: the client has to list again.
        Err(format!("too old resource version: {after} ({current})"))
    } else {
        core.store
            .watch(&prefix, after)
            .map_err(|_| format!("too old resource version: {after} ({})", core.store.compacted()))
    };
    let events = match events {
        Ok(events) => events,
        Err(message) => {
            let only = error_line(&ApiError::expired(message));
            return Ok(respond::json(StatusCode::OK, Body::from(only)));
        }
    };
    let watching = Watching {
        everything: selection.is_everything(),
        closed: context.resource.closed.subscribe(),
        stopping: core.stopping.subscribe(),
        counted: core.metrics.watcher(&context.resource),
        context,
        selection,
        events,
        ready,
        bookmarks,
        deadline: Box::pin(sleep(timeout)),
        ended: false,
        tables,
    };
    let warned = Response::builder().status(StatusCode::OK).body(Body::empty()).unwrap_or_default();
    let headers = watching.context.warned(warned).headers().clone();
    let lines = stream::unfold(watching, |mut watching| async move {
        let line = watching.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(line), watching))
    });
    let mut response = respond::json(StatusCode::OK, Body::from_stream(lines));
    response.headers_mut().extend(headers);
    Ok(response)
}

/// `sendInitialEvents`, checked.
fn initial_events(context: &Context) -> ApiResult<Option<bool>> {
    let query = &context.query;
    let wanted = query.optional_flag("sendInitialEvents");
    let rule = query.get("resourceVersionMatch");
    let refuse = |field: &str, message: String| {
        let cause = StatusCause {
            reason: "FieldValueForbidden".to_owned(),
            message: format!("Forbidden: {message}"),
            field: field.to_owned(),
        };
        Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", vec![cause]))
    };
    match (wanted, rule) {
        (Some(_), Some("NotOlderThan")) | (None, None) => Ok(wanted),
        (Some(_), _) => refuse(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan".to_owned(),
        ),
        (None, Some(_)) => refuse(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided".to_owned(),
        ),
    }
}

impl Watching {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            if self.ended || *self.closed.borrow() || *self.stopping.borrow() {
                return None;
            }
            let tick = async {
                match &mut self.bookmarks {
                    Some(ticks) => ticks.tick().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                events = self.events.next() => match events {
                    Ok(events) => self.take(&events),
                    Err(WatchError::Compacted(compacted)) => {
                        self.ended = true;
                        let message = format!("too old resource version: {} ({})", compacted.requested, compacted.oldest);
                        return Some(error_line(&ApiError::expired(message)));
                    }
                    Err(_) => return None,
                },
                _ = tick => {
                    let line = bookmark(&self.context, self.events.revision(), false);
                    return Some(line);
                }
                () = &mut self.deadline => {
                    self.ended = true;
                    if self.bookmarks.is_some() {
                        return Some(bookmark(&self.context, self.events.revision(), false));
                    }
                }
                _ = self.closed.changed() => return None,
                _ = self.stopping.changed() => return None,
            }
        }
    }

    fn take(&mut self, events: &[Arc<Event>]) {
        for event in events {
            let Some((kind, previous)) = self.judge(event) else { continue };
            let is_shared = self.context.accept.view == View::Object && self.counted.watches() >= SHARED_FROM;
            let line = if is_shared {
                shared_line(&self.context, event, kind, previous)
            } else {
                let value = shown(event, previous);
                line(&self.context, kind, value, event.revision, self.tables == 0)
            };
            self.tables += 1;
            self.ready.push_back(line);
        }
    }

    /// What an event is to this watcher; whether it gets the object as it was before.
    fn judge(&self, event: &Event) -> Option<(Kind, bool)> {
        let put = event.kind == EventKind::Put;
        if self.everything {
            return Some(match (put, event.previous.is_none()) {
                (true, true) => (Kind::Added, false),
                (true, false) => (Kind::Modified, false),
                (false, _) => (Kind::Deleted, false),
            });
        }
        let matches = |value: &Bytes| self.selection.matches(&self.context.resource, &event.key, value);
        let before = event.previous.as_ref().is_some_and(matches);
        let now = put && matches(&event.value);
        match (before, now) {
            (false, false) => None,
            (false, true) => Some((Kind::Added, false)),
            (true, true) => Some((Kind::Modified, false)),
            (true, false) => Some((Kind::Deleted, put)),
        }
    }
}

fn shown(event: &Event, previous: bool) -> &Bytes {
    event.previous.as_ref().filter(|_| previous).unwrap_or(&event.value)
}

/// The line of an event, rendered by whichever watcher of the version comes first.
fn shared_line(context: &Context, event: &Event, kind: Kind, previous: bool) -> Bytes {
    let make = || line(context, kind, shown(event, previous), event.revision, false);
    let Some(rendered) = event.memo(Rendered::default) else { return make() };
    let mut lines = rendered.0.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = (Arc::as_ptr(&context.resource).addr(), context.version, kind, previous);
    if let Some((_, line)) = lines.iter().find(|(made, _)| *made == wanted) {
        return line.clone();
    }
    let line = make();
    lines.push((wanted, line.clone()));
    line
}

fn line(context: &Context, kind: Kind, stored: &[u8], revision: Revision, first: bool) -> Bytes {
    if context.accept.view == View::Object {
        let mut out = Vec::with_capacity(stored.len() + 128);
        out.extend_from_slice(kind.opening());
        convert::append(&context.resource, context.version, &mut out, (stored, revision));
        out.extend_from_slice(b"}\n");
        return Bytes::from(out);
    }
    let object = context.present(stored, revision);
    event_line(kind.name(), &view(context, object, first))
}

fn view(context: &Context, object: Value, first: bool) -> Value {
    match context.accept.view {
        View::Object => object,
        View::Metadata(version) => partial::object(object, version),
        View::Table(version) => {
            let revision = crate::object::metadata_text(&object, "resourceVersion").to_owned();
            let mut table = table::table(context, version, &[object]);
            table["metadata"] = json!({"resourceVersion": revision});
            if !first {
                table["columnDefinitions"] = Value::Null;
            }
            table
        }
    }
}

fn event_line(kind: &str, object: &Value) -> Bytes {
    let mut line = json!({"type": kind, "object": object}).to_string();
    line.push('\n');
    Bytes::from(line)
}

fn error_line(error: &ApiError) -> Bytes {
    event_line("ERROR", &error.to_status())
}

fn bookmark(context: &Context, revision: Revision, initial_end: bool) -> Bytes {
    let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
    if initial_end {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    let object = match context.accept.view {
        View::Table(version) => {
            let mut table = table::table(context, version, &[]);
            table["metadata"] = json!({"resourceVersion": revision.to_string()});
            let row = json!({"cells": [], "object": {
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            }});
            table["columnDefinitions"] = Value::Null;
            table["rows"] = json!([row]);
            table
        }
        View::Metadata(version) => json!({
            "kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata,
        }),
        View::Object => json!({
            "kind": context.resource.kind, "apiVersion": context.version().api_version, "metadata": metadata,
        }),
    };
    event_line("BOOKMARK", &object)
}
