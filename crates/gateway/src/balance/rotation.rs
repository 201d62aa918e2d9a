//! Turns: entries by weight, endpoints of an entry one after another (spec gateway-and-routing §5).
//!
//! The specification spreads an entry's weight over its endpoints because Gateway API knows weights per backend
//! only. Here entries take turns by their weights and then their endpoints do, which gives the same shares without
//! rounding: an entry's share never depends on how many endpoints it has or how many are left out just now.

/// Whose turn it is. Smooth weighted round robin: shares are exact over every full round and turns are interleaved.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    entries: Vec<Turn>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Turn {
    credit: i64,
    next: usize,
}

impl Rotation {
    /// A rotation over this many entries.
    pub(crate) fn new(entries: usize) -> Self {
        Self { entries: vec![Turn::default(); entries] }
    }

    /// The entry whose turn it is. `weight` is 0 for an entry that cannot take the request; its credit then stands
    /// still, and its share goes to the others in proportion.
    pub(crate) fn entry(&mut self, mut weight: impl FnMut(usize) -> u32) -> Option<usize> {
        let (mut total, mut best) = (0, None::<(i64, usize)>);
        for (index, turn) in self.entries.iter_mut().enumerate() {
            let weight = i64::from(weight(index));
            if weight == 0 {
                continue;
            }
            turn.credit += weight;
            total += weight;
            if best.is_none_or(|(credit, _)| turn.credit > credit) {
                best = Some((turn.credit, index));
            }
        }
        let (_, index) = best?;
        self.entries[index].credit -= total;
        Some(index)
    }

    /// The endpoint of an entry whose turn it is, of `count`, among those that can take the request.
    pub(crate) fn endpoint(
        &mut self,
        entry: usize,
        count: usize,
        mut can: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let turn = self.entries.get_mut(entry)?;
        let index = (0..count).map(|step| (turn.next + step) % count).find(|&index| can(index))?;
        turn.next = (index + 1) % count;
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(weights: &[u32], rounds: usize) -> Vec<usize> {
        let mut rotation = Rotation::new(weights.len());
        let mut counts = vec![0; weights.len()];
        for _ in 0..rounds {
            counts[rotation.entry(|index| weights[index]).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn a_full_round_gives_every_entry_exactly_its_weight() {
        for weights in [&[1][..], &[1, 1], &[3, 1], &[80, 20], &[5, 1, 1], &[1_000, 999, 1], &[0, 2, 3]] {
            let total: u32 = weights.iter().sum();
            let want: Vec<usize> = weights.iter().map(|&weight| weight as usize).collect();
            assert_eq!(counts(weights, total as usize), want);
        }
    }

    #[test]
    fn turns_are_interleaved() {
        let mut rotation = Rotation::new(2);
        let order: Vec<usize> = (0..4).map(|_| rotation.entry(|index| [3, 1][index]).unwrap()).collect();
        assert_eq!(order, [0, 0, 1, 0]);
    }

    #[test]
    fn an_entry_that_is_out_for_a_while_does_not_catch_up_later() {
        let mut rotation = Rotation::new(2);
        for _ in 0..1_000 {
            assert_eq!(rotation.entry(|index| [1, 0][index]), Some(0));
        }
        let later: usize = (0..10).map(|_| rotation.entry(|_| 1).unwrap()).sum();
        assert_eq!(later, 5);
    }

    #[test]
    fn no_entry_means_no_turn() {
        assert_eq!(Rotation::new(0).entry(|_| 1), None);
        assert_eq!(Rotation::new(2).entry(|_| 0), None);
        assert_eq!(Rotation::new(1).endpoint(0, 0, |_| true), None);
        assert_eq!(Rotation::new(1).endpoint(0, 3, |_| false), None);
    }

    #[test]
    fn endpoints_of_an_entry_take_turns_and_the_unfit_are_passed_over() {
        let mut rotation = Rotation::new(1);
        let order: Vec<_> = (0..6).map(|_| rotation.endpoint(0, 3, |index| index != 1).unwrap()).collect();
        assert_eq!(order, [0, 2, 0, 2, 0, 2]);
    }
}
