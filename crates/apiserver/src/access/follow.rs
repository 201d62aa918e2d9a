//! Keeps a [`Snapshot`] up to date by reading, before each decision, what was written since the last.

use std::sync::{Arc, Mutex, PoisonError};

use modelplane_store::{EventKind, ListRequest, Store, Watch};
use serde_json::Value;

use super::rules::GROUP;
use super::snapshot::Snapshot;

/// The roles and bindings of a store.
pub(crate) struct Follower {
    store: Store,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` until the objects were listed, and again when history was compacted under the watch.
    watch: Option<Watch>,
    snapshot: Arc<Snapshot>,
}

impl Follower {
    /// Follows a store; nothing is read before the first decision.
    pub(crate) fn new(store: Store) -> Follower {
        Follower { store, state: Mutex::default() }
    }

    /// The roles and bindings as of now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.catch_up() {
            self.list(&mut state);
        }
        Arc::clone(&state.snapshot)
    }

    fn list(&self, state: &mut State) {
        let prefix = format!("{GROUP}/");
        let request = ListRequest { prefix: &prefix, ..ListRequest::default() };
        let Ok(page) = self.store.list(request) else { return };
        let mut snapshot = Snapshot::default();
        for entry in &page.entries {
            set(&mut snapshot, &entry.key, Some(&entry.value));
        }
        state.snapshot = Arc::new(snapshot);
        state.watch = self.store.watch(&prefix, page.revision).ok();
    }
}

impl State {
    /// Applies what is new; false if that is no longer known.
    fn catch_up(&mut self) -> bool {
        let Some(watch) = &mut self.watch else { return false };
        loop {
            match watch.try_next() {
                Ok(None) => return true,
                Ok(Some(events)) => {
                    let snapshot = Arc::make_mut(&mut self.snapshot);
                    for event in events {
                        let value = (event.kind == EventKind::Put).then_some(&event.value[..]);
                        set(snapshot, &event.key, value);
                    }
                }
                Err(_) => {
                    self.watch = None;
                    return false;
                }
            }
        }
    }
}

/// Applies what is at a key: `<group>/<plural>/<namespace>/<name>` or `<group>/<plural>/<name>`.
fn set(snapshot: &mut Snapshot, key: &str, value: Option<&[u8]>) {
    let mut parts = key.split('/').skip(1);
    let (Some(plural), Some(first)) = (parts.next(), parts.next()) else { return };
    let at = match parts.next() {
        Some(name) => (first, name),
        None => ("", first),
    };
    let object: Option<Value> = value.and_then(|value| serde_json::from_slice(value).ok());
    snapshot.set(plural, at, object.as_ref());
}
