//! When an endpoint counts as full, with hysteresis: it fills up at its limits and returns below four fifths of them.

use std::time::{Duration, Instant};

use crate::routes::config::Overflow;

/// Share of a limit below which a measure counts as low again.
const LOW: f64 = 0.8;

/// Measures of an endpoint at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measures {
    /// Requests in flight.
    pub(crate) in_flight: u32,
    /// Requests waiting in the engine.
    pub(crate) queued: u32,
    /// Moving average of the time to first token, in seconds.
    pub(crate) first_token: f64,
}

/// Whether an endpoint is full.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    saturated: bool,
    low_since: Option<Instant>,
    refuses_until: Option<Instant>,
}

/// What an endpoint may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Everything.
    Open,
    /// A request now and then, so that its measures do not stay what they were when it filled up.
    Trickle,
    /// Nothing: it is full at this moment.
    Full,
}

impl Gate {
    /// Takes in the endpoint's measures and says what it may be given.
    pub(crate) fn admit(&mut self, measures: Measures, limits: &Overflow, now: Instant) -> Admission {
        let loads = [
            (f64::from(measures.in_flight), limits.concurrent_requests.map(f64::from)),
            (f64::from(measures.queued), limits.queue_depth.map(f64::from)),
        ];
        let average = (measures.first_token, limits.time_to_first_token.map(|limit| limit.as_secs_f64()));
        let reach = |share: f64| {
            move |&(measure, limit): &(f64, Option<f64>)| limit.is_some_and(|limit| measure >= limit * share)
        };
        let high = loads.iter().any(reach(1.0)) || reach(1.0)(&average);
        let loaded = loads.iter().any(reach(LOW));
        self.turn(high, !loaded && !reach(LOW)(&average), limits.return_after, now);
        if self.refuses(now) {
            return Admission::Full;
        }
        match (self.saturated, loaded) {
            (false, _) => Admission::Open,
            (true, false) => Admission::Trickle,
            (true, true) => Admission::Full,
        }
    }

    /// The endpoint itself said that it is full.
    pub(crate) fn refused(&mut self, until: Instant) {
        self.refuses_until = Some(until);
    }

    /// Whether the endpoint's own refusal still holds.
    pub(crate) fn refuses(&mut self, now: Instant) -> bool {
        self.refuses_until(now).is_some()
    }

    /// Until when the endpoint's own refusal holds, if it still does.
    pub(crate) fn refuses_until(&mut self, now: Instant) -> Option<Instant> {
        self.refuses_until = self.refuses_until.filter(|&until| now < until);
        self.refuses_until
    }

    fn turn(&mut self, high: bool, low: bool, hold: Duration, now: Instant) {
        if high {
            (self.saturated, self.low_since) = (true, None);
        } else if !low {
            self.low_since = None;
        } else if self.saturated {
            let since = *self.low_since.get_or_insert(now);
            if now.saturating_duration_since(since) >= hold {
                (self.saturated, self.low_since) = (false, None);
            }
        }
    }
}

/// An average in which a sample weighs less the older it is.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct MovingAverage {
    value: f64,
    at: Option<Instant>,
}

/// Time after which a sample weighs 1/e of a new one.
const MEMORY: Duration = Duration::from_secs(10);

/// Least weight of a new sample, so that bursts count too.
const LEAST: f64 = 0.05;

impl MovingAverage {
    /// Takes in a sample.
    pub(crate) fn add(&mut self, sample: f64, now: Instant) {
        let weight = match self.at {
            None => 1.0,
            Some(at) => {
                let age = now.saturating_duration_since(at).as_secs_f64() / MEMORY.as_secs_f64();
                (1.0 - (-age).exp()).max(LEAST)
            }
        };
        self.value += (sample - self.value) * weight;
        self.at = Some(now);
    }

    /// The average.
    pub(crate) fn value(&self) -> f64 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_fills_at_its_limit_and_returns_with_hysteresis() {
        let limits = Overflow { concurrent_requests: Some(10), ..Overflow::default() };
        let start = Instant::now();
        // (second, requests in flight, what the endpoint may be given, why)
        let steps = [
            (0, 9, Admission::Open, "below the limit"),
            (1, 10, Admission::Full, "at the limit"),
            (2, 9, Admission::Full, "not low enough"),
            (3, 7, Admission::Trickle, "low, but not for long"),
            (12, 7, Admission::Trickle, "still not for long enough"),
            (12, 9, Admission::Full, "rises again, so the time starts anew"),
            (13, 1, Admission::Trickle, "low again"),
            (22, 1, Admission::Trickle, "nine seconds"),
            (23, 1, Admission::Open, "ten seconds"),
            (24, 9, Admission::Open, "an open endpoint takes all up to its limit"),
        ];
        let mut gate = Gate::default();
        for (second, in_flight, want, reason) in steps {
            let measures = Measures { in_flight, ..Measures::default() };
            let got = gate.admit(measures, &limits, start + Duration::from_secs(second));
            assert_eq!(got, want, "{second} s: {reason}");
        }
    }

    #[test]
    fn slow_first_tokens_leave_a_trickle() {
        let limits = Overflow { time_to_first_token: Some(Duration::from_secs(2)), ..Overflow::default() };
        let now = Instant::now();
        for (first_token, want) in [(1.9, Admission::Open), (2.0, Admission::Trickle)] {
            let measures = Measures { first_token, in_flight: 1_000_000, queued: 1_000_000 };
            assert_eq!(Gate::default().admit(measures, &limits, now), want, "{first_token}");
        }
    }

    #[test]
    fn an_endpoint_that_refuses_is_full_for_the_time_it_asks_for() {
        let start = Instant::now();
        let mut gate = Gate::default();
        gate.refused(start + Duration::from_secs(3));
        for (second, want) in [(0, Admission::Full), (2, Admission::Full), (3, Admission::Open)] {
            let now = start + Duration::from_secs(second);
            assert_eq!(gate.admit(Measures::default(), &Overflow::default(), now), want, "{second} s");
        }
    }

    #[test]
    fn an_average_forgets() {
        let start = Instant::now();
        let mut average = MovingAverage::default();
        average.add(10.0, start);
        assert_eq!(average.value(), 10.0);
        average.add(0.0, start);
        assert_eq!(average.value(), 9.5);
        average.add(0.0, start + Duration::from_secs(60));
        assert!(average.value() < 0.1);
    }
}
