//! The store in memory: every object's versions, and the events of the retained history.
//!
//! A version stays while some retained revision can still see it; compaction drops exactly the
//! versions that the dropped events replaced. There is one event per revision, so the event of
//! revision `r` is at index `r - compacted - 1`.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{
    Compacted, Entry, Event, EventKind, ListRequest, Page, ReadError, Retention, Revision, Sizes, Write,
    WriteError,
};

/// What an event costs beside the values it keeps alive.
const EVENT_OVERHEAD: usize = 160;

/// How many events one compaction drops at most, to bound the time the state is locked.
const COMPACTION_STEP: usize = 4096;

/// All objects and the retained history.
#[derive(Default)]
pub(crate) struct State {
    objects: BTreeMap<Arc<str>, Versions>,
    history: VecDeque<Recorded>,
    history_bytes: usize,
    revision: Revision,
    compacted: Revision,
    /// For each watched prefix, the revision of the last event under it.
    watched: HashMap<Box<str>, watch::Sender<Revision>>,
    pub(crate) closed: bool,
}

struct Recorded {
    event: Arc<Event>,
    at: Instant,
}

/// An object's versions. Most objects have one, and reading it is to cost no further step through memory.
struct Versions {
    latest: Version,
    /// Those before it that some retained revision sees, oldest first.
    older: Vec<Version>,
}

#[derive(Clone)]
struct Version {
    /// `None` once deleted.
    value: Option<Bytes>,
    created: Revision,
    modified: Revision,
}

/// What a compaction removes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Compaction {
    /// The new oldest revision.
    pub(crate) to: Revision,
    /// The records no retained revision can see.
    pub(crate) obsolete: Vec<Revision>,
}

impl State {
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn compacted(&self) -> Revision {
        self.compacted
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// How much is held; walks over all objects.
    pub(crate) fn sizes(&self) -> Sizes {
        let mut sizes = Sizes {
            events: self.history.len(),
            history_bytes: self.history_bytes,
            watchers: self.watched.values().map(watch::Sender::receiver_count).sum(),
            ..Sizes::default()
        };
        for versions in self.objects.values() {
            if let Some(value) = &versions.latest.value {
                sizes.objects += 1;
                sizes.object_bytes += value.len();
            }
        }
        sizes
    }

    pub(crate) fn get(&self, key: &str) -> Option<Entry> {
        let (key, versions) = self.objects.get_key_value(key)?;
        versions.latest.entry(key)
    }

    /// Turns a write into the event it causes at `revision`, given what is at its key.
    pub(crate) fn judge(
        write: Write,
        current: Option<Entry>,
        revision: Revision,
    ) -> Result<Event, WriteError> {
        let (kind, key, value, expected) = match write {
            Write::Create { key, value } => {
                return match current {
                    Some(current) => Err(WriteError::Exists { key, current }),
                    None => Ok(Event::new(EventKind::Put, key.into(), value, revision, None)),
                };
            }
            Write::Update { key, value, expected } => (EventKind::Put, key, value, Some(expected)),
            Write::Delete { key, expected, last } => (EventKind::Delete, key, last, expected),
        };
        let Some(current) = current else {
            return Err(WriteError::NotFound { key });
        };
        if let Some(expected) = expected.filter(|expected| *expected != current.modified) {
            return Err(WriteError::Conflict { key, expected, current });
        }
        let shared = Arc::clone(&current.key);
        Ok(Event::new(kind, shared, value, revision, Some(&current)))
    }

    /// Adds events, in revision order, and wakes the watchers they concern.
    pub(crate) fn apply(&mut self, events: impl IntoIterator<Item = Arc<Event>>, at: Instant) {
        let first = self.history.len();
        for event in events {
            debug_assert_eq!(event.revision, self.revision + 1, "one event per revision");
            self.revision = event.revision;
            self.history_bytes += cost(&event);
            self.insert(&event);
            self.history.push_back(Recorded { event, at });
        }
        let added = self.history.range(first..);
        self.watched.retain(|prefix, sender| {
            let last = added.clone().rev().find(|added| added.event.key.starts_with(&**prefix));
            if let Some(last) = last {
                sender.send_replace(last.event.revision);
            }
            !sender.is_closed()
        });
    }

    /// Adds an object as it was when history begins; for loading.
    pub(crate) fn restore(&mut self, entry: Entry) {
        let version = Version { value: Some(entry.value), created: entry.created, modified: entry.modified };
        self.objects.insert(entry.key, Versions::new(version));
    }

    /// Sets where history begins; for loading.
    pub(crate) fn begin_at(&mut self, compacted: Revision) {
        self.compacted = compacted;
        self.revision = compacted;
    }

    /// What is visible at a revision under a prefix.
    pub(crate) fn list(&self, request: ListRequest<'_>) -> Result<Page, ReadError> {
        let revision = request.revision.unwrap_or(self.revision);
        self.check_readable(revision)?;
        let start = match request.start_after {
            Some(after) if after >= request.prefix => Bound::Excluded(after),
            _ => Bound::Included(request.prefix),
        };
        let limit = if request.limit == 0 { usize::MAX } else { request.limit };
        let is_past = |end: &str| request.start_after.is_some_and(|after| after >= end);
        let end = end_of(request.prefix).filter(|end| !is_past(end));
        let is_bounded = end.is_some();
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut visible = self
            .objects
            .range::<str, _>((start, end))
            .take_while(|(key, _)| is_bounded || key.starts_with(request.prefix))
            .filter_map(|(key, versions)| Some((key, versions.at(revision)?)));
        let entries: Vec<Entry> =
            visible.by_ref().take(limit).filter_map(|(key, version)| version.entry(key)).collect();
        let next = visible.next();
        let more = next.is_some();
        let remaining = request.count_remaining.then(|| if more { 1 + visible.count() } else { 0 });
        Ok(Page { entries, revision, more, remaining })
    }

    pub(crate) fn check_readable(&self, revision: Revision) -> Result<(), ReadError> {
        if revision > self.revision {
            return Err(ReadError::Future { requested: revision, current: self.revision });
        }
        self.check_retained(revision)?;
        Ok(())
    }

    pub(crate) fn check_retained(&self, revision: Revision) -> Result<(), Compacted> {
        if revision < self.compacted {
            return Err(Compacted { requested: revision, oldest: self.compacted });
        }
        Ok(())
    }

    /// The retained events after a revision, which must not be compacted.
    pub(crate) fn events_after(&self, revision: Revision) -> impl Iterator<Item = &Arc<Event>> {
        let start = usize::try_from(revision - self.compacted).unwrap_or(usize::MAX);
        self.history.range(start.min(self.history.len())..).map(|recorded| &recorded.event)
    }

    /// Follows the last revision under a prefix.
    pub(crate) fn subscribe(&mut self, prefix: &str) -> watch::Receiver<Revision> {
        match self.watched.get(prefix) {
            Some(sender) => sender.subscribe(),
            None => {
                let (sender, receiver) = watch::channel(self.revision);
                self.watched.insert(prefix.into(), sender);
                receiver
            }
        }
    }

    /// Ends all watches.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.watched.clear();
    }

    /// What the retention bounds ask to drop, leaving some slack so that compactions are rare
    /// and large rather than one per write.
    pub(crate) fn due_compaction(&self, retention: &Retention, now: Instant) -> Option<Compaction> {
        let over = |value: usize, bound: usize| value > bound.saturating_add(bound / 4);
        let full = over(self.history.len(), retention.events) || over(self.history_bytes, retention.bytes);
        let stale_after = retention.age + retention.age / 4;
        let stale = self.history.front().is_some_and(|oldest| now - oldest.at > stale_after);
        if !full && !stale {
            return None;
        }
        let (mut events, mut bytes) = (self.history.len(), self.history_bytes);
        let dropped = self
            .history
            .iter()
            .take_while(|recorded| {
                let drop =
                    events > retention.events || bytes > retention.bytes || now - recorded.at > retention.age;
                events -= 1;
                bytes -= cost(&recorded.event);
                drop
            })
            .take(COMPACTION_STEP)
            .count();
        Some(self.compaction(dropped))
    }

    /// What it takes to forget everything before a revision.
    pub(crate) fn compaction_to(&self, revision: Revision) -> Option<Compaction> {
        let to = revision.min(self.revision);
        (to > self.compacted).then(|| self.compaction((to - self.compacted) as usize))
    }

    fn compaction(&self, dropped: usize) -> Compaction {
        let mut obsolete = Vec::with_capacity(dropped);
        for Recorded { event, .. } in self.history.range(..dropped) {
            obsolete.extend(event.previous_revision);
            if event.kind == EventKind::Delete {
                obsolete.push(event.revision);
            }
        }
        Compaction { to: self.compacted + dropped as Revision, obsolete }
    }

    /// Forgets history up to a revision.
    pub(crate) fn compact(&mut self, to: Revision) {
        while self.compacted < to {
            let Some(Recorded { event, .. }) = self.history.pop_front() else { break };
            self.compacted = event.revision;
            self.history_bytes -= cost(&event);
            let Some(versions) = self.objects.get_mut(&event.key) else { continue };
            versions.forget_before(to);
            if versions.is_gone(to) {
                self.objects.remove(&event.key);
            }
        }
        if self.history.capacity() > 1024 && self.history.len() < self.history.capacity() / 4 {
            self.history.shrink_to(self.history.len() * 2);
        }
    }

    fn insert(&mut self, event: &Event) {
        let version = Version {
            value: (event.kind == EventKind::Put).then(|| event.value.clone()),
            created: event.created,
            modified: event.revision,
        };
        match self.objects.get_mut(&event.key) {
            Some(versions) => versions.push(version),
            None => {
                self.objects.insert(Arc::clone(&event.key), Versions::new(version));
            }
        }
    }
}

impl Versions {
    fn new(latest: Version) -> Versions {
        Versions { latest, older: Vec::new() }
    }

    fn push(&mut self, version: Version) {
        self.older.push(std::mem::replace(&mut self.latest, version));
    }

    /// Drops what no revision from `oldest` on sees.
    fn forget_before(&mut self, oldest: Revision) {
        if self.latest.modified <= oldest {
            self.older = Vec::new();
            return;
        }
        let until = self.older.partition_point(|version| version.modified <= oldest);
        if let Some(base) = until.checked_sub(1) {
            let keep = if self.older[base].value.is_some() { base } else { until };
            self.older.drain(..keep);
            if self.older.capacity() > 8 && self.older.len() < self.older.capacity() / 4 {
                self.older.shrink_to_fit();
            }
        }
    }

    /// Whether there is nothing to see from `oldest` on.
    fn is_gone(&self, oldest: Revision) -> bool {
        self.latest.value.is_none() && self.latest.modified <= oldest
    }

    /// The version a revision sees, if the object exists then.
    fn at(&self, revision: Revision) -> Option<&Version> {
        let seen = if self.latest.modified <= revision {
            &self.latest
        } else {
            self.older.iter().rev().find(|version| version.modified <= revision)?
        };
        seen.value.is_some().then_some(seen)
    }
}

impl Version {
    fn entry(&self, key: &Arc<str>) -> Option<Entry> {
        Some(Entry {
            key: Arc::clone(key),
            value: self.value.clone()?,
            created: self.created,
            modified: self.modified,
        })
    }
}

/// The first key after all that start with a prefix, where that is easily told: it saves comparing each of them.
fn end_of(prefix: &str) -> Option<String> {
    let last = prefix.bytes().last().filter(|last| *last < 0x7f)?;
    let mut end = prefix[..prefix.len() - 1].to_owned();
    end.push(char::from(last + 1));
    Some(end)
}

/// The memory an event keeps alive that would be free without it.
fn cost(event: &Event) -> usize {
    let deleted = if event.kind == EventKind::Delete { event.value.len() } else { 0 };
    EVENT_OVERHEAD + deleted + event.previous.as_ref().map_or(0, Bytes::len)
}
