//! The objects of one kind, by name and, where asked for, by label.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use modelplane_core::simulate::ObjectKey;
use tokio::sync::watch;

use super::Listener;
use crate::client::{ClientError, Resource};
use crate::object::Stored;

/// Which objects of a kind are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// All of them.
    All,
    /// Those somebody has subscribed to; the rest is dropped as it arrives.
    Subscribed,
}

/// An object changed.
#[derive(Debug, Clone)]
pub struct Change {
    /// As it was; none if it is new.
    pub old: Option<Arc<Stored>>,
    /// As it is; none if it is gone.
    pub new: Option<Arc<Stored>>,
}

/// The objects of one kind.
pub struct KindCache {
    resource: Resource,
    keep: Keep,
    listener: Arc<dyn Listener>,
    state: RwLock<State>,
    first_list: watch::Sender<FirstList>,
}

/// How far the first list of a kind is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FirstList {
    UnderWay,
    Failing(String),
    Done,
}

type Place = (String, String);

#[derive(Default)]
struct State {
    objects: BTreeMap<Place, Arc<Stored>>,
    subscribed: HashSet<Place>,
    /// The revision up to which the watch has told everything.
    seen: u64,
    /// Places by label value, for the label keys that have been asked for.
    labels: HashMap<String, HashMap<String, BTreeSet<Place>>>,
}

impl Change {
    /// The object, as it is or was.
    pub fn object(&self) -> Option<&Arc<Stored>> {
        self.new.as_ref().or(self.old.as_ref())
    }

    /// Who it is about.
    pub fn key(&self) -> Option<&ObjectKey> {
        self.object().map(|object| &object.key)
    }
}

impl KindCache {
    pub(super) fn new(resource: Resource, keep: Keep, listener: Arc<dyn Listener>) -> Self {
        let (first_list, _) = watch::channel(FirstList::UnderWay);
        Self { resource, keep, listener, state: RwLock::default(), first_list }
    }

    /// What serves the kind.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Waits until the first list is in.
    ///
    /// # Errors
    ///
    /// What the API server said, if it cannot be had for now.
    pub async fn listed(&self) -> Result<(), String> {
        let mut first_list = self.first_list.subscribe();
        match first_list.wait_for(|state| *state != FirstList::UnderWay).await.as_deref() {
            Ok(FirstList::Failing(problem)) => Err(problem.clone()),
            // The sender is a part of `self`, so it is there.
            _ => Ok(()),
        }
    }

    /// The API server cannot be listed or watched for now.
    pub(super) fn failing(&self, error: &ClientError) {
        self.first_list.send_if_modified(|state| {
            let open = *state != FirstList::Done;
            if open {
                *state = FirstList::Failing(error.to_string());
            }
            open
        });
        if error.fault().is_some() {
            self.listener.failing(error);
        }
    }

    /// An object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.objects.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    /// All objects, or those of a namespace, by namespace and name.
    pub fn list(&self, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        match namespace {
            None => state.objects.values().cloned().collect(),
            Some(namespace) => state
                .objects
                .range((namespace.to_owned(), String::new())..)
                .take_while(|((found, _), _)| found == namespace)
                .map(|(_, object)| Arc::clone(object))
                .collect(),
        }
    }

    /// The objects that carry all these labels, by namespace and name; all of them if there are no labels.
    pub fn select(&self, namespace: Option<&str>, labels: &BTreeMap<String, String>) -> Vec<Arc<Stored>> {
        let Some((first, value)) = labels.iter().next() else { return self.list(namespace) };
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let state = if state.labels.contains_key(first) {
            state
        } else {
            drop(state);
            self.write().index(first);
            self.state.read().unwrap_or_else(PoisonError::into_inner)
        };
        let places = state.labels.get(first).and_then(|values| values.get(value));
        let objects = places.into_iter().flatten().filter_map(|place| state.objects.get(place));
        objects
            .filter(|object| namespace.is_none_or(|namespace| object.key.namespace == namespace))
            .filter(|object| labels.iter().all(|(key, value)| object.label(key) == Some(value)))
            .cloned()
            .collect()
    }

    /// Keeps an object from now on, if it is only kept on subscription; true if that is new.
    pub fn subscribe(&self, namespace: &str, name: &str) -> bool {
        self.write().subscribed.insert((namespace.to_owned(), name.to_owned()))
    }

    /// Stops keeping an object.
    pub fn unsubscribe(&self, namespace: &str, name: &str) {
        let place = (namespace.to_owned(), name.to_owned());
        let mut state = self.write();
        if state.subscribed.remove(&place) && self.keep == Keep::Subscribed {
            state.remove(&place);
        }
    }

    /// Puts in an object that was just read or written; ignored if something newer is known.
    pub fn put(&self, object: Arc<Stored>) {
        let place = place(&object);
        let mut state = self.write();
        // Whatever the watch has passed, it has told better.
        if object.version <= state.seen && state.knows(self.keep, &place) {
            return;
        }
        let change = state.put(place, object);
        drop(state);
        self.tell(change);
    }

    /// What the watch says appeared or changed.
    pub(super) fn saw(&self, object: Stored) {
        let place = place(&object);
        let mut state = self.write();
        state.seen = state.seen.max(object.version);
        if !self.keeps(&state, &place) {
            return;
        }
        let change = state.put(place, Arc::new(object));
        drop(state);
        self.tell(change);
    }

    /// What the watch says is gone.
    pub(super) fn lost(&self, object: &Stored) {
        let place = place(object);
        let mut state = self.write();
        state.seen = state.seen.max(object.version);
        let known = state.objects.get(&place);
        if known.is_none_or(|known| known.version > object.version) {
            return;
        }
        let old = state.remove(&place);
        drop(state);
        self.tell(old.map(|old| Change { old: Some(old), new: None }));
    }

    /// What the watch says it has reached.
    pub(super) fn reached(&self, version: u64) {
        let mut state = self.write();
        state.seen = state.seen.max(version);
    }

    /// The revision after which to watch.
    pub(super) fn seen(&self) -> u64 {
        self.state.read().unwrap_or_else(PoisonError::into_inner).seen
    }

    /// A whole list as of a revision.
    pub(super) fn replace(&self, objects: Vec<Stored>, version: u64) {
        let mut state = self.write();
        let mut gone: BTreeMap<Place, Arc<Stored>> = state
            .objects
            .iter()
            .filter(|(_, object)| object.version <= version)
            .map(|(place, object)| (place.clone(), Arc::clone(object)))
            .collect();
        state.seen = version;
        let mut changes = Vec::new();
        for object in objects {
            let place = place(&object);
            gone.remove(&place);
            if self.keeps(&state, &place) {
                changes.extend(state.put(place, Arc::new(object)));
            }
        }
        for (place, old) in gone {
            state.remove(&place);
            changes.push(Change { old: Some(old), new: None });
        }
        drop(state);
        self.first_list.send_replace(FirstList::Done);
        changes.into_iter().for_each(|change| self.tell(Some(change)));
    }

    fn keeps(&self, state: &State, place: &Place) -> bool {
        self.keep == Keep::All || state.subscribed.contains(place)
    }

    fn tell(&self, change: Option<Change>) {
        if let Some(change) = change {
            self.listener.changed(&change);
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(object: &Stored) -> Place {
    (object.key.namespace.clone(), object.key.name.clone())
}

impl State {
    /// Whether the watch would have told about the place.
    fn knows(&self, keep: Keep, place: &Place) -> bool {
        keep == Keep::All || self.objects.contains_key(place)
    }

    /// Puts an object in unless a newer one is there; says what changed, if anything did.
    fn put(&mut self, place: Place, object: Arc<Stored>) -> Option<Change> {
        let old = self.objects.get(&place).cloned();
        if old.as_ref().is_some_and(|old| old.version >= object.version && old.version > 0) {
            return None;
        }
        for (key, values) in &mut self.labels {
            let (before, after) = (old.as_ref().and_then(|old| old.label(key)), object.label(key));
            if before == after {
                continue;
            }
            remove_from(values, before, &place);
            if let Some(after) = after {
                values.entry(after.to_owned()).or_default().insert(place.clone());
            }
        }
        self.objects.insert(place, Arc::clone(&object));
        let same = old.as_ref().is_some_and(|old| old.is_same_as(&object));
        (!same).then_some(Change { old, new: Some(object) })
    }

    fn remove(&mut self, place: &Place) -> Option<Arc<Stored>> {
        let old = self.objects.remove(place)?;
        for (key, values) in &mut self.labels {
            remove_from(values, old.label(key), place);
        }
        Some(old)
    }

    fn index(&mut self, label: &str) {
        let mut values: HashMap<String, BTreeSet<Place>> = HashMap::new();
        for (place, object) in &self.objects {
            if let Some(value) = object.label(label) {
                values.entry(value.to_owned()).or_default().insert(place.clone());
            }
        }
        self.labels.insert(label.to_owned(), values);
    }
}

fn remove_from(values: &mut HashMap<String, BTreeSet<Place>>, value: Option<&str>, place: &Place) {
    let Some(value) = value else { return };
    if let Some(places) = values.get_mut(value) {
        places.remove(place);
        if places.is_empty() {
            values.remove(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl Listener for Log {
        fn changed(&self, change: &Change) {
            let verb = match (&change.old, &change.new) {
                (None, _) => "new",
                (_, None) => "gone",
                _ => "changed",
            };
            let name = change.key().map(|key| key.name.clone()).unwrap_or_default();
            self.0.lock().unwrap().push(format!("{verb} {name}"));
        }
    }

    fn object(name: &str, version: u64, tier: &str) -> Stored {
        Stored::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "n", "resourceVersion": version.to_string(), "labels": {"tier": tier}},
        }))
        .unwrap()
    }

    fn cache(keep: Keep) -> (KindCache, Arc<Log>) {
        let log = Arc::new(Log::default());
        let resource = Resource::new("v1", "Pod", "pods", true);
        (KindCache::new(resource, keep, log.clone()), log)
    }

    fn names(found: &[Arc<Stored>]) -> Vec<&str> {
        found.iter().map(|object| object.key.name.as_str()).collect()
    }

    #[test]
    fn a_write_is_read_at_once_and_told_once() {
        let (cache, log) = cache(Keep::All);
        cache.replace(vec![object("a", 3, "x")], 5);
        cache.put(Arc::new(object("a", 7, "y")));
        assert_eq!(cache.get("n", "a").unwrap().label("tier"), Some("y"));
        cache.saw(object("a", 7, "y"));
        cache.put(Arc::new(object("a", 4, "old")));
        cache.saw(object("a", 9, "y"));
        assert_eq!(*log.0.lock().unwrap(), ["new a", "changed a"]);
        assert_eq!(cache.seen(), 9);
    }

    #[test]
    fn what_was_deleted_does_not_come_back_with_an_old_answer() {
        let (cache, _) = cache(Keep::All);
        cache.replace(vec![object("a", 3, "x")], 5);
        cache.lost(&object("a", 8, "x"));
        cache.put(Arc::new(object("a", 7, "x")));
        assert!(cache.get("n", "a").is_none());
        cache.put(Arc::new(object("a", 10, "x")));
        cache.lost(&object("a", 8, "x"));
        assert!(cache.get("n", "a").is_some(), "created again after the deletion");
    }

    #[test]
    fn labels_find_what_carries_them_now() {
        let (cache, _) = cache(Keep::All);
        let tier = |value: &str| BTreeMap::from([("tier".to_owned(), value.to_owned())]);
        cache.replace(vec![object("a", 1, "x"), object("b", 2, "y"), object("c", 3, "x")], 5);
        assert_eq!(names(&cache.select(None, &tier("x"))), ["a", "c"]);
        cache.saw(object("c", 6, "y"));
        cache.lost(&object("b", 7, "y"));
        assert_eq!(names(&cache.select(None, &tier("x"))), ["a"]);
        assert_eq!(names(&cache.select(Some("n"), &tier("y"))), ["c"]);
        assert_eq!(names(&cache.select(Some("other"), &tier("y"))), [""; 0]);
        assert_eq!(names(&cache.select(None, &BTreeMap::new())), ["a", "c"]);
    }

    #[test]
    fn a_new_list_removes_what_it_does_not_have() {
        let (cache, log) = cache(Keep::All);
        cache.replace(vec![object("a", 1, "x"), object("b", 2, "x")], 5);
        cache.put(Arc::new(object("c", 12, "x")));
        cache.replace(vec![object("b", 8, "x")], 10);
        assert_eq!(names(&cache.list(None)), ["b", "c"], "c was written after the list");
        assert_eq!(*log.0.lock().unwrap(), ["new a", "new b", "new c", "gone a"]);
    }

    #[test]
    fn only_what_is_subscribed_is_kept() {
        let (cache, log) = cache(Keep::Subscribed);
        cache.replace(vec![object("a", 1, "x")], 5);
        assert!(cache.list(None).is_empty());
        assert!(cache.subscribe("n", "a"));
        cache.put(Arc::new(object("a", 1, "x")));
        cache.saw(object("b", 6, "x"));
        cache.saw(object("a", 7, "y"));
        assert_eq!(*log.0.lock().unwrap(), ["new a", "changed a"]);
        cache.unsubscribe("n", "a");
        assert!(cache.get("n", "a").is_none());
    }
}
