//! How an entry's weight is spread over its endpoints (spec gateway-and-routing §5).
//!
//! Gateway API knows weights per backend only. All weights are scaled so that every endpoint gets a whole
//! number, then reduced, then squeezed into Gateway API's range.

/// Largest weight Gateway API accepts.
pub(super) const MAX_WEIGHT: u32 = 1_000_000;

/// An entry of the service, for the arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// The entry's weight, from 1 to [`MAX_WEIGHT`].
    pub(super) weight: u32,
    /// How many of its endpoints take requests.
    pub(super) endpoints: usize,
}

/// The weight of every endpoint, entries and their endpoints in order.
///
/// Entries without endpoints contribute nothing, so their share goes to the others in proportion. Endpoints
/// of one entry differ by at most one unit before reduction, and every weight is at least 1.
pub(super) fn spread(shares: &[Share]) -> Vec<u32> {
    let scale =
        shares.iter().map(|share| (share.endpoints as u64).div_ceil(weight_of(share))).max().unwrap_or(1);
    let mut weights = Vec::with_capacity(shares.iter().map(|share| share.endpoints).sum());
    for share in shares {
        let endpoints = share.endpoints as u64;
        let total = weight_of(share) * scale.max(1);
        weights.extend((0..endpoints).map(|index| total / endpoints + u64::from(index < total % endpoints)));
    }
    let divisor = weights.iter().copied().fold(0, greatest_common_divisor).max(1);
    let highest = weights.iter().max().copied().unwrap_or(0) / divisor;
    weights.into_iter().map(|weight| reduce(weight, divisor, highest)).collect()
}

fn weight_of(share: &Share) -> u64 {
    u64::from(share.weight.clamp(1, MAX_WEIGHT))
}

/// The final weight. The order of the floating-point operations is part of the specification.
fn reduce(weight: u64, divisor: u64, highest: u64) -> u32 {
    if highest <= u64::from(MAX_WEIGHT) {
        return (weight / divisor) as u32;
    }
    let scaled = weight as f64 / divisor as f64 / highest as f64 * f64::from(MAX_WEIGHT);
    (scaled.round_ties_even() as u32).max(1)
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(shares: &[(u32, usize)]) -> Vec<u32> {
        let shares: Vec<Share> =
            shares.iter().map(|&(weight, endpoints)| Share { weight, endpoints }).collect();
        spread(&shares)
    }

    #[test]
    fn weights_are_spread_as_the_specification_tabulates() {
        let ones = |count: usize| std::iter::repeat_n(1, count);
        type Case<'c> = (&'c [(u32, usize)], Vec<u32>);
        let cases: Vec<Case<'_>> = vec![
            (&[], vec![]),
            (&[(7, 0)], vec![]),
            (&[(1, 1)], vec![1]),
            (&[(1, 5)], vec![1; 5]),
            (&[(80, 3), (20, 1)], vec![27, 27, 26, 20]),
            (&[(1, 2), (3, 1)], vec![1, 1, 6]),
            (&[(2, 1), (2, 1)], vec![1, 1]),
            (&[(3, 2), (2, 3)], vec![3, 3, 2, 1, 1]),
            (&[(10, 3), (10, 7)], vec![4, 3, 3, 2, 2, 2, 1, 1, 1, 1]),
            (&[(7, 4), (3, 9)], [6, 5, 5, 5].into_iter().chain(ones(9)).collect()),
            (&[(1, 0), (5, 2)], vec![3, 2]),
            (&[(1_000_000, 3), (999_999, 2), (1, 1)], vec![333_334, 333_333, 333_333, 500_000, 499_999, 1]),
            (&[(333_333, 1), (1, 3)], vec![999_999, 1, 1, 1]),
            (&[(1_000_000, 1), (1, 2)], vec![1_000_000, 1, 1]),
            (&[(1_000_000, 2), (7, 15)], [1_000_000, 1_000_000].into_iter().chain(ones(15)).collect()),
            (&[(1_000_000, 1), (3, 2), (1, 2)], vec![1_000_000, 2, 2, 1, 1]),
            (&[(1_000_000, 1), (5, 2), (1, 2)], vec![1_000_000, 2, 2, 1, 1]),
            (&[(1_000_000, 1), (7, 2), (1, 2)], vec![1_000_000, 4, 4, 1, 1]),
            (&[(1_000_000, 1), (9, 2), (1, 2)], vec![1_000_000, 4, 4, 1, 1]),
        ];
        for (shares, want) in cases {
            assert_eq!(of(shares), want, "{shares:?}");
        }
    }

    proptest! {
        #[test]
        fn every_endpoint_gets_a_weight_gateway_api_accepts(
            shares in prop::collection::vec((1..=MAX_WEIGHT, 0_usize..40), 0..6)
        ) {
            let weights = of(&shares);
            prop_assert_eq!(weights.len(), shares.iter().map(|share| share.1).sum::<usize>());
            prop_assert!(weights.iter().all(|weight| (1..=MAX_WEIGHT).contains(weight)));
        }

        #[test]
        fn entries_keep_their_exact_ratio_where_nothing_is_rounded(
            shares in prop::collection::vec((1_u32..50, 1_usize..12), 2..5)
        ) {
            let weights = of(&shares);
            let mut rest = weights.as_slice();
            let sums: Vec<u64> = shares.iter().map(|&(_, endpoints)| {
                let (own, others) = rest.split_at(endpoints);
                rest = others;
                own.iter().map(|&weight| u64::from(weight)).sum()
            }).collect();
            for (&(weight, _), &sum) in shares.iter().zip(&sums) {
                prop_assert_eq!(u64::from(weight) * sums[0], u64::from(shares[0].0) * sum);
            }
        }
    }
}
