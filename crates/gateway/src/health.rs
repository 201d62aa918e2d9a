//! Whether an endpoint works, judged by the requests it is given (passive health) and by probes.
//!
//! An endpoint that fails several times in a row is ejected for a while that doubles each time in a row, and then
//! returns slowly: its first requests decide whether it stays.

use std::time::{Duration, Instant};

use crate::routes::config::Outliers;

/// Health of one address.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failures: u32,
    ejections: u32,
    state: State,
}

/// Where an endpoint stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Takes its share.
    #[default]
    In,
    /// Takes nothing until then.
    Ejected {
        /// End of the ejection.
        until: Instant,
    },
    /// Takes a growing share since then.
    Returning {
        /// End of the ejection.
        since: Instant,
    },
}

/// Least share of a returning endpoint, in percent.
const FIRST_SHARE: u32 = 10;

/// Over how long a returning endpoint's share grows to the whole.
const SLOW_RETURN: Duration = Duration::from_secs(20);

/// Longest ejection, in first ejections.
const LONGEST: u32 = 10;

impl Health {
    /// Where the endpoint stands now.
    pub(crate) fn state(&mut self, now: Instant) -> State {
        match self.state {
            State::Ejected { until } if now >= until => self.state = State::Returning { since: until },
            State::Returning { since } if now >= since + SLOW_RETURN && self.failures == 0 => {
                (self.state, self.ejections) = (State::In, 0);
            }
            _ => {}
        }
        self.state
    }

    /// The share of its usual requests the endpoint takes now, in percent.
    pub(crate) fn share(&mut self, now: Instant) -> u32 {
        match self.state(now) {
            State::In => 100,
            State::Ejected { .. } => 0,
            State::Returning { since } => {
                let grown = now.saturating_duration_since(since).as_millis() * 100;
                let share = grown / SLOW_RETURN.as_millis();
                u32::try_from(share).unwrap_or(100).clamp(FIRST_SHARE, 100)
            }
        }
    }

    /// A request went well.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// A request failed. Returns whether that ejects the endpoint.
    pub(crate) fn failed(&mut self, limits: &Outliers, may_eject: bool, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let enough = limits.consecutive_failures > 0
            && match self.state(now) {
                State::In => self.failures >= limits.consecutive_failures,
                State::Returning { .. } => true,
                State::Ejected { .. } => false,
            };
        if enough && may_eject {
            self.eject(limits, now);
        }
        enough && may_eject
    }

    fn eject(&mut self, limits: &Outliers, now: Instant) {
        let lasts = limits.ejection.saturating_mul((1 << self.ejections.min(8)).min(LONGEST));
        self.ejections = self.ejections.saturating_add(1);
        self.failures = 0;
        self.state = State::Ejected { until: now + lasts.max(Duration::from_millis(1)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Outliers =
        Outliers { consecutive_failures: 3, ejection: Duration::from_secs(10), max_ejected_percent: 100 };

    #[test]
    fn failures_in_a_row_eject_and_a_success_starts_the_count_anew() {
        let now = Instant::now();
        let mut health = Health::default();
        assert!(!health.failed(&LIMITS, true, now));
        assert!(!health.failed(&LIMITS, true, now));
        health.succeeded();
        assert!(!health.failed(&LIMITS, true, now));
        assert!(!health.failed(&LIMITS, true, now));
        assert!(health.failed(&LIMITS, true, now));
        assert_eq!(health.share(now), 0);
    }

    #[test]
    fn an_ejected_endpoint_returns_slowly() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut health = Health::default();
        for _ in 0..3 {
            health.failed(&LIMITS, true, start);
        }
        for (second, share) in [(0, 0), (9, 0), (10, 10), (11, 10), (20, 50), (29, 95), (30, 100), (31, 100)]
        {
            assert_eq!(health.share(at(second)), share, "{second} s");
        }
        assert_eq!(health.state(at(31)), State::In);
    }

    #[test]
    fn a_failure_while_returning_ejects_at_once_and_for_longer() {
        let mut now = Instant::now();
        let mut health = Health::default();
        for _ in 0..3 {
            health.failed(&LIMITS, true, now);
        }
        for lasts in [10, 20, 40, 80, 100, 100] {
            let lasts = Duration::from_secs(lasts);
            assert_eq!(health.state(now), State::Ejected { until: now + lasts });
            now += lasts;
            assert_eq!(health.share(now), FIRST_SHARE);
            assert!(health.failed(&LIMITS, true, now));
        }
    }

    #[test]
    fn an_endpoint_that_must_stay_is_not_ejected() {
        let now = Instant::now();
        let mut health = Health::default();
        for _ in 0..10 {
            assert!(!health.failed(&LIMITS, false, now));
        }
        assert_eq!(health.share(now), 100);
        assert!(health.failed(&LIMITS, true, now));
    }
}
