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
        let product = u128::from(self.state ^ word).wrapping_mul(u128::from(SPREAD));
        self.state = (product as u64) ^ ((product >> 64) as u64).wrapping_add(SPREAD);
    }
}

impl Hasher for FastHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
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
