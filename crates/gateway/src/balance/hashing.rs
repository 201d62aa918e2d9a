//! Affinity: the same key goes to the same endpoint while that is not overloaded.
//!
//! Rendezvous hashing with weights and bounded load: every endpoint scores every key, the best score wins, and an
//! endpoint that carries more than its bounded share is passed over for the next best. Adding or withdrawing an
//! endpoint moves only the keys it wins or held.

use crate::random;

/// An endpoint, for the arithmetic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    /// Stable hash of the endpoint's name.
    pub(crate) identity: u64,
    /// Share relative to the others.
    pub(crate) weight: f64,
    /// Requests in flight.
    pub(crate) in_flight: u32,
}

/// The candidate that takes a key's requests. `bound` is how many times its even share of the requests in flight a
/// candidate may carry.
pub(crate) fn choose(key: u64, candidates: &[Candidate], bound: f64) -> Option<usize> {
    let weights: f64 = candidates.iter().map(|candidate| candidate.weight).sum();
    let in_flight: u64 = candidates.iter().map(|candidate| u64::from(candidate.in_flight)).sum();
    let fits = |candidate: &Candidate| {
        let share = candidate.weight / weights * (in_flight + 1) as f64;
        f64::from(candidate.in_flight) < (share * bound).ceil()
    };
    let best = |only_fitting: bool| {
        candidates
            .iter()
            .enumerate()
            .filter(|(_, candidate)| candidate.weight > 0.0 && (!only_fitting || fits(candidate)))
            .map(|(index, candidate)| (score(key, candidate), index))
            .max_by(|left, right| left.0.total_cmp(&right.0))
            .map(|(_, index)| index)
    };
    best(true).or_else(|| best(false))
}

/// Weighted rendezvous score: `-weight / ln(u)` for a `u` in (0, 1) drawn by key and endpoint.
fn score(key: u64, candidate: &Candidate) -> f64 {
    let drawn = random::mix(key ^ candidate.identity);
    let unit = ((drawn >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -candidate.weight / unit.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(weights: &[f64]) -> Vec<Candidate> {
        let identity = |index: usize| random::hash(format!("ns/endpoint-{index}").as_bytes());
        let of = |(index, &weight)| Candidate { identity: identity(index), weight, in_flight: 0 };
        weights.iter().enumerate().map(of).collect()
    }

    #[test]
    fn keys_spread_by_weight() {
        let candidates = candidates(&[1.0, 1.0, 2.0]);
        let mut counts = [0; 3];
        for key in 0..40_000_u64 {
            counts[choose(random::mix(key), &candidates, 1.25).unwrap()] += 1;
        }
        for (count, want) in counts.iter().zip([10_000, 10_000, 20_000_i32]) {
            assert!((count - want).abs() < want / 20, "{counts:?}");
        }
    }

    #[test]
    fn withdrawing_an_endpoint_moves_only_its_own_keys() {
        let before = candidates(&[1.0; 5]);
        let after = &before[..4];
        for key in (0..2_000_u64).map(random::mix) {
            let held = choose(key, &before, 1.25).unwrap();
            if held < 4 {
                assert_eq!(choose(key, after, 1.25), Some(held));
            }
        }
    }

    #[test]
    fn an_overloaded_endpoint_is_passed_over() {
        let mut candidates = candidates(&[1.0; 4]);
        let key = random::hash(b"conversation");
        let home = choose(key, &candidates, 1.25).unwrap();
        candidates[home].in_flight = 2;
        let other = choose(key, &candidates, 1.25).unwrap();
        assert_ne!(home, other);
        for candidate in &mut candidates {
            candidate.in_flight = 2;
        }
        assert_eq!(choose(key, &candidates, 1.25), Some(home));
    }

    #[test]
    fn nobody_is_chosen_from_nobody() {
        assert_eq!(choose(1, &[], 1.25), None);
        assert_eq!(choose(1, &candidates(&[0.0]), 1.25), None);
    }
}
