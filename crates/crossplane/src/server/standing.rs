//! How the replicas of deployments stood when their ModelDeployment was last composed.
//!
//! Crossplane spreads calls over the servers, and nothing tells a server that a deployment is gone. So what it saw
//! counts for a while and is then forgotten; with several servers the largest of their figures is the best one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use modelplane_core::contract::Scheduled;

/// How long a deployment counts without another call; Crossplane calls at least once a minute.
const MEMORY: Duration = Duration::from_secs(600);

/// What was seen of every deployment.
#[derive(Debug, Default)]
pub(super) struct Standing {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// By namespace and name.
    deployments: HashMap<(String, String), (Scheduled, Instant)>,
    swept: Option<Instant>,
}

impl Standing {
    /// Notes how a deployment stands.
    pub(super) fn record(&self, namespace: &str, name: &str, scheduled: Scheduled) {
        self.record_at(namespace, name, scheduled, Instant::now());
    }

    /// All deployments together.
    pub(super) fn total(&self) -> Scheduled {
        self.total_at(Instant::now())
    }

    fn record_at(&self, namespace: &str, name: &str, scheduled: Scheduled, now: Instant) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.sweep(now);
        seen.deployments.insert((namespace.to_owned(), name.to_owned()), (scheduled, now));
    }

    fn total_at(&self, now: Instant) -> Scheduled {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.swept = None;
        seen.sweep(now);
        seen.deployments.values().fold(Scheduled::default(), |total, (scheduled, _)| Scheduled {
            placed: total.placed + scheduled.placed,
            unplaced: total.unplaced + scheduled.unplaced,
        })
    }
}

impl Seen {
    /// Forgets what is old, at most once in a while.
    fn sweep(&mut self, now: Instant) {
        if self.swept.is_none_or(|swept| now.saturating_duration_since(swept) >= MEMORY) {
            self.deployments.retain(|_, (_, at)| now.saturating_duration_since(*at) < MEMORY);
            self.swept = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployments_add_up_replace_what_was_seen_and_are_forgotten() {
        let standing = Standing::default();
        let start = Instant::now();
        let later = start + MEMORY / 2;
        let stands = |placed, unplaced| Scheduled { placed, unplaced };
        standing.record_at("ml-team", "a", stands(1, 3), start);
        standing.record_at("other", "a", stands(2, 0), start);
        assert_eq!(standing.total_at(start), stands(3, 3));
        standing.record_at("ml-team", "a", stands(4, 0), later);
        assert_eq!(standing.total_at(later), stands(6, 0));
        assert_eq!(standing.total_at(start + MEMORY), stands(4, 0), "the one not seen again is forgotten");
    }
}
