//! Cheap random numbers for choices that need no secrecy: drawing endpoints, trace identifiers.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};

thread_local! {
    static STATE: Cell<u64> = Cell::new(RandomState::new().build_hasher().finish() | 1);
}

/// A random number (SplitMix64, seeded per thread by the operating system).
pub(crate) fn next() -> u64 {
    STATE.with(|state| {
        let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(next);
        mix(next)
    })
}

/// Spreads a number's bits over all 64.
pub(crate) fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A stable hash of bytes: the same in every process and on every replica of the gateway.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut value = 0xcbf2_9ce4_8422_2325_u64 ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        value = mix(value ^ u64::from_le_bytes(word));
    }
    let mut word = [0; 8];
    word[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    mix(value ^ u64::from_le_bytes(word))
}
