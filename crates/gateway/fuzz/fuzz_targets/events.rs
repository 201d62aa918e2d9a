//! Reading events gives the same in whatever pieces they come.

#![no_main]

use libfuzzer_sys::fuzz_target;
use modelplane_gateway::sse::EventReader;

fuzz_target!(|input: (u8, &[u8])| {
    let (size, text) = input;
    let mut whole = EventReader::default();
    whole.feed(text);
    let mut pieces = EventReader::default();
    for piece in text.chunks(usize::from(size).max(1)) {
        pieces.feed(piece);
    }
    assert_eq!((whole.events, whole.usage), (pieces.events, pieces.usage));
});
