//! A work queue of objects: each at most once, never two workers on one, later or sooner by a delay.
//!
//! An object that is added while it is worked on comes again afterwards. Of several delays of one object
//! only the earliest counts; adding it at once leaves a delay in force, since it may stand for something else.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use modelplane_core::simulate::ObjectKey;
use tokio::sync::Notify;
use tokio::time::Instant;

/// First delay after a failure; doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
/// Longest delay after failures.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// Failures in a row for which a shorter longest back-off holds.
const IMPATIENT_FAILURES: u32 = 40;

/// The queue; clones share it.
#[derive(Debug, Clone, Default)]
pub struct WorkQueue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    inner: Mutex<Inner>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    ready: VecDeque<Arc<ObjectKey>>,
    waiting: HashSet<Arc<ObjectKey>>,
    /// What is being worked on, and whether it was added again meanwhile.
    running: HashMap<Arc<ObjectKey>, bool>,
    delayed: BinaryHeap<Reverse<(Instant, Arc<ObjectKey>)>>,
    /// The delay in force of each object; other entries of the heap are void.
    due: HashMap<Arc<ObjectKey>, Instant>,
    failures: HashMap<Arc<ObjectKey>, u32>,
    closed: bool,
}

impl WorkQueue {
    /// Adds an object.
    pub fn add(&self, key: ObjectKey) {
        self.lock().add(Arc::new(key));
        self.0.wake.notify_one();
    }

    /// Adds an object after a delay, unless it is due earlier anyway.
    pub fn add_after(&self, key: ObjectKey, delay: Duration) {
        self.lock().add_at(Arc::new(key), Instant::now() + delay);
        // A worker may be asleep until something later.
        self.0.wake.notify_one();
    }

    /// Adds an object after its back-off, which grows with each call until [`Self::succeeded`].
    pub fn add_after_failure(&self, key: ObjectKey) -> Duration {
        self.add_after_failure_within(key, LONGEST_BACKOFF)
    }

    /// The same, for failures that something else is about to end: the back-off stays within `longest` at first.
    pub fn add_after_failure_within(&self, key: ObjectKey, longest: Duration) -> Duration {
        let key = Arc::new(key);
        let mut inner = self.lock();
        let failures = inner.failures.entry(key.clone()).or_default();
        let longest = if *failures < IMPATIENT_FAILURES { longest } else { LONGEST_BACKOFF };
        let delay = FIRST_BACKOFF.saturating_mul(1 << (*failures).min(16)).min(longest);
        *failures += 1;
        inner.add_at(key, Instant::now() + delay);
        drop(inner);
        self.0.wake.notify_one();
        delay
    }

    /// Forgets an object's failures.
    pub fn succeeded(&self, key: &ObjectKey) {
        self.lock().failures.remove(key);
    }

    /// The next object, once there is one; `None` once the queue is closed. [`Self::done`] has to follow.
    pub async fn next(&self) -> Option<Arc<ObjectKey>> {
        loop {
            // Created before looking, so that nothing added in between is missed.
            let woken = self.0.wake.notified();
            let until = {
                let mut inner = self.lock();
                if inner.closed {
                    self.0.wake.notify_one();
                    return None;
                }
                inner.promote(Instant::now());
                if let Some(key) = inner.take() {
                    if !inner.ready.is_empty() {
                        self.0.wake.notify_one();
                    }
                    return Some(key);
                }
                inner.delayed.peek().map(|Reverse((at, _))| *at)
            };
            match until {
                None => woken.await,
                Some(at) => {
                    // Whichever comes first; both are looked at again above.
                    let _ = tokio::time::timeout_at(at, woken).await;
                }
            }
        }
    }

    /// Ends the work on an object.
    pub fn done(&self, key: &Arc<ObjectKey>) {
        let mut inner = self.lock();
        if inner.running.remove(key) == Some(true) {
            inner.add(key.clone());
            drop(inner);
            self.0.wake.notify_one();
        }
    }

    /// Ends the queue: workers get nothing more.
    pub fn close(&self) {
        self.lock().closed = true;
        self.0.wake.notify_waiters();
        self.0.wake.notify_one();
    }

    /// Objects that wait or are being worked on; those with a delay do not count.
    pub fn depth(&self) -> usize {
        let inner = self.lock();
        inner.waiting.len() + inner.running.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn add(&mut self, key: Arc<ObjectKey>) {
        if let Some(again) = self.running.get_mut(&key) {
            *again = true;
        } else if self.waiting.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    fn add_at(&mut self, key: Arc<ObjectKey>, at: Instant) {
        if self.due.get(&key).is_none_or(|due| at < *due) {
            self.due.insert(key.clone(), at);
            self.delayed.push(Reverse((at, key)));
        }
    }

    /// Moves what is due to what is ready.
    fn promote(&mut self, now: Instant) {
        while let Some(Reverse((at, _))) = self.delayed.peek()
            && *at <= now
        {
            let Some(Reverse((at, key))) = self.delayed.pop() else { return };
            if self.due.get(&key) == Some(&at) {
                self.due.remove(&key);
                self.add(key);
            }
        }
    }

    fn take(&mut self) -> Option<Arc<ObjectKey>> {
        let key = self.ready.pop_front()?;
        self.waiting.remove(&key);
        self.running.insert(key.clone(), false);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::key;

    fn named(name: &str) -> ObjectKey {
        key("g", "K", "", name)
    }

    #[tokio::test]
    async fn an_object_waits_at_most_once() {
        let queue = WorkQueue::default();
        for name in ["a", "b", "a"] {
            queue.add(named(name));
        }
        assert_eq!(queue.depth(), 2);
        assert_eq!(queue.next().await.map(|key| key.name.clone()).as_deref(), Some("a"));
        assert_eq!(queue.next().await.map(|key| key.name.clone()).as_deref(), Some("b"));
    }

    #[tokio::test]
    async fn what_is_added_during_its_work_comes_again() {
        let queue = WorkQueue::default();
        queue.add(named("a"));
        let first = queue.next().await.expect("a key");
        queue.add(named("a"));
        queue.add(named("a"));
        queue.done(&first);
        let second = queue.next().await.expect("a key");
        queue.done(&second);
        assert_eq!(queue.depth(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_earliest_delay_counts() {
        let queue = WorkQueue::default();
        let start = Instant::now();
        queue.add_after(named("a"), Duration::from_secs(5));
        queue.add_after(named("a"), Duration::from_secs(1));
        queue.add_after(named("a"), Duration::from_secs(9));
        let first = queue.next().await.expect("a key");
        assert_eq!(start.elapsed().as_secs(), 1);
        queue.done(&first);
        queue.close();
        assert_eq!(queue.next().await, None);
    }

    #[tokio::test]
    async fn failures_double_the_delay_until_a_success() {
        let queue = WorkQueue::default();
        let delays: Vec<Duration> = (0..3).map(|_| queue.add_after_failure(named("a"))).collect();
        assert_eq!(delays, [FIRST_BACKOFF, FIRST_BACKOFF * 2, FIRST_BACKOFF * 4]);
        queue.succeeded(&named("a"));
        assert_eq!(queue.add_after_failure(named("a")), FIRST_BACKOFF);
    }
}
