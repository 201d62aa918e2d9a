//! Everything under a prefix of the store, and then each change, for as long as the controller wants.

use std::sync::Arc;

use modelplane_store::{Entry, Event, ListRequest, Store, Watch, WatchError};

/// What a feed brings.
pub(super) enum Change {
    /// The whole state: at the beginning, and when the follower was too slow for the changes.
    All(Vec<Entry>),
    /// Changes, oldest first.
    Some(Vec<Arc<Event>>),
    /// The store was closed.
    End,
}

/// Follows a prefix.
pub(super) struct Feed {
    store: Store,
    prefix: String,
    watch: Option<Watch>,
}

impl Feed {
    /// Follows everything under `prefix`; the first change is the whole state.
    pub(super) fn new(store: &Store, prefix: impl Into<String>) -> Feed {
        Feed { store: store.clone(), prefix: prefix.into(), watch: None }
    }

    /// Waits for the next change. Cancel-safe.
    pub(super) async fn next(&mut self) -> Change {
        loop {
            let Some(watch) = &mut self.watch else { return self.list() };
            match watch.next().await {
                Ok(events) => return Change::Some(events),
                Err(WatchError::Compacted(_)) => self.watch = None,
                Err(_) => return Change::End,
            }
        }
    }

    fn list(&mut self) -> Change {
        let request = ListRequest { prefix: &self.prefix, ..ListRequest::default() };
        let Ok(page) = self.store.list(request) else { return Change::End };
        match self.store.watch(&self.prefix, page.revision) {
            Ok(watch) => self.watch = Some(watch),
            Err(_) => return Change::End,
        }
        Change::All(page.entries)
    }
}
