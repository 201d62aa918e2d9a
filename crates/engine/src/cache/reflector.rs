//! Keeps the cache of a kind current: list, watch, and list again when the history is gone.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::sync::watch;

use super::KindCache;
use crate::client::{ApiClient, ClientError, ListQuery};
use crate::object::Stored;

/// Objects of a page.
const PAGE: usize = 500;
/// How long one watch lasts before it is renewed.
const WATCH_SECONDS: u64 = 290;
/// How long a watch may say nothing: bookmarks come about once a minute.
const SILENCE: Duration = Duration::from_secs(150);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How a watch ended.
enum End {
    /// Go on from where it was.
    Renew,
    /// The history it needs is gone.
    Expired,
    /// Something is wrong; wait a little.
    Failed(ClientError),
}

/// Runs until told to stop.
pub(super) async fn run(api: ApiClient, cache: Arc<KindCache>, mut stop: watch::Receiver<bool>) {
    tokio::select! {
        _ = stop.wait_for(|stop| *stop) => {}
        () = follow(&api, &cache) => {}
    }
}

async fn follow(api: &ApiClient, cache: &KindCache) {
    let resource = cache.resource();
    let mut pause = SHORTEST_PAUSE;
    let mut listed = false;
    loop {
        let problem = if listed {
            match watch_once(api, cache).await {
                End::Renew => {
                    pause = SHORTEST_PAUSE;
                    continue;
                }
                End::Expired => {
                    listed = false;
                    continue;
                }
                End::Failed(problem) => problem,
            }
        } else {
            match list(api, cache).await {
                Ok(()) => {
                    listed = true;
                    continue;
                }
                Err(error) => error,
            }
        };
        cache.failing(&problem);
        tracing::debug!(kind = resource.kind, api_version = resource.api_version, %problem, ?pause, "watch");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn list(api: &ApiClient, cache: &KindCache) -> Result<(), ClientError> {
    let resource = cache.resource();
    let mut query = ListQuery { limit: Some(PAGE), ..ListQuery::default() };
    let mut objects = Vec::new();
    loop {
        let mut page = match api.list(resource, &query).await {
            Ok(page) => page,
            // The definition is gone, and so are its objects.
            Err(error) if error.is_not_found() => {
                cache.replace(Vec::new(), cache.seen());
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
            objects.extend(items.into_iter().filter_map(|item| typed(item, cache)));
        }
        let metadata = &page["metadata"];
        match metadata["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => query.continue_token = Some(token.to_owned()),
            None => {
                let version = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok());
                cache.replace(objects, version.unwrap_or_default());
                return Ok(());
            }
        }
    }
}

/// An item of a list, which need not say what it is.
fn typed(mut item: Value, cache: &KindCache) -> Option<Stored> {
    let resource = cache.resource();
    let fields = item.as_object_mut()?;
    fields.insert("apiVersion".to_owned(), resource.api_version.clone().into());
    fields.insert("kind".to_owned(), resource.kind.clone().into());
    Stored::from_value(item)
}

async fn watch_once(api: &ApiClient, cache: &KindCache) -> End {
    let events = match api.watch(cache.resource(), cache.seen(), WATCH_SECONDS).await {
        Ok(events) => events,
        Err(error) if error.code() == Some(410) => return End::Expired,
        Err(error) if error.is_not_found() => return End::Expired,
        Err(error) => return End::Failed(error),
    };
    let mut events = std::pin::pin!(events);
    let mut any = false;
    loop {
        let event = match tokio::time::timeout(SILENCE, events.next()).await {
            Ok(Some(event)) => event,
            Ok(None) => break,
            // A connection that died without a word; a new one tells.
            Err(_) => return End::Renew,
        };
        any = true;
        match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                if let Some(object) = typed(object, cache) {
                    cache.saw(object);
                }
            }
            Ok(WatchEvent::Deleted(object)) => {
                if let Some(object) = typed(object, cache) {
                    cache.lost(&object);
                }
            }
            Ok(WatchEvent::Bookmark(bookmark)) => {
                if let Ok(version) = bookmark.metadata.resource_version.parse() {
                    cache.reached(version);
                }
            }
            Ok(WatchEvent::Error(status)) if status.code == 410 => return End::Expired,
            Ok(WatchEvent::Error(status)) => return End::Failed(kube::Error::Api(status).into()),
            Err(error) => return End::Failed(error.into()),
        }
    }
    // A watch that ends at once without a word is not to be renewed in a tight loop.
    if any { End::Renew } else { End::Failed(ClientError::Malformed("the watch ended at once".to_owned())) }
}
