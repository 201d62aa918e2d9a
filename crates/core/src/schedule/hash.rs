//! A fast, fixed-seed hasher for the maps of one scheduling call.
//!
//! The keys are names and descriptions written by whoever runs the fleet, the maps live for one call and
//! are never iterated, so neither resistance to chosen keys nor a stable order is asked of it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map for look-ups only.
pub(super) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// Folds eight bytes at a time with a multiplication whose two halves are mixed.
#[derive(Default, Clone, Copy)]
pub(super) struct FastHasher {
    state: u64,
}

/// An odd number with evenly spread bits (2^64 divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl FastHasher {
    #[inline]
    fn fold(&mut self, word: u64) {
        self.state = mix(self.state, word);
    }
}

/// Mixes a word into a state: both halves of their product count.
#[inline]
fn mix(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word).wrapping_mul(u128::from(SPREAD));
    (product as u64) ^ ((product >> 64) as u64).wrapping_add(SPREAD)
}

impl Hasher for FastHasher {
    /// Four words at a time, each in a lane of its own, so that the multiplications overlap.
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<32>();
        if !blocks.is_empty() {
            let mut lanes = [self.state, SPREAD, !SPREAD, SPREAD.rotate_left(32)];
            for block in blocks {
                let (words, _) = block.as_chunks::<8>();
                for (lane, word) in lanes.iter_mut().zip(words) {
                    *lane = mix(*lane, u64::from_le_bytes(*word));
                }
            }
            self.state = lanes.into_iter().fold(0, mix);
        }
        let (words, rest) = rest.as_chunks::<8>();
        for word in words {
            self.fold(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.fold(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.fold(byte.into());
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.fold(word.into());
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.fold(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.fold(word as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}
