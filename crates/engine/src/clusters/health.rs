//! Whether a cluster answers: looked at once a request has failed, and then until it answers again.
//!
//! Drivers ask before they work on an object, so a cluster that is down costs one request now and then,
//! not one per object; and one broken connection alone reports nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client::{ApiClient, Fault};

/// What is wrong with a cluster as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// It does not answer; how.
    Unreachable(String),
    /// It does not accept the credentials; what it says.
    Unauthorized(String),
}

/// What is known of a cluster's health.
pub(super) struct Health {
    api: ApiClient,
    /// Wakes everybody on the cluster.
    wake: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    trouble: Option<Trouble>,
    /// Whether somebody is looking.
    probing: bool,
}

/// First time between two looks; doubles up to [`LONGEST_PAUSE`].
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// How often a cluster has to fail in a row before that is reported.
const CONFIRMED: u32 = 2;

impl Health {
    pub(super) fn new(api: ApiClient, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { api, wake, state: Mutex::default() }
    }

    pub(super) fn trouble(&self) -> Option<Trouble> {
        self.lock().trouble.clone()
    }

    /// Something failed that may be the cluster's fault: has it looked at, unless that is being done.
    pub(super) fn suspect(self: &Arc<Self>) {
        if std::mem::replace(&mut self.lock().probing, true) {
            return;
        }
        let health = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut pause = SHORTEST_PAUSE;
            let mut failures = 0;
            loop {
                let Some(strong) = health.upgrade() else { return };
                failures += 1;
                if strong.look(failures >= CONFIRMED).await {
                    return;
                }
                drop(strong);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
    }

    /// Asks the cluster for a sign of life; true if it gave one.
    async fn look(&self, report: bool) -> bool {
        let trouble = match self.api.probe().await {
            Ok(()) => None,
            Err(error) => Some(match error.fault() {
                Some(Fault::Unauthorized) => Trouble::Unauthorized(error.to_string()),
                _ => Trouble::Unreachable(error.to_string()),
            }),
        };
        let answers = trouble.is_none();
        let mut state = self.lock();
        if answers {
            state.probing = false;
        }
        let changed = (answers || report) && state.trouble != trouble;
        if changed {
            state.trouble = trouble;
        }
        drop(state);
        if changed {
            (self.wake)();
        }
        answers
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
