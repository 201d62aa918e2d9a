//! Looking into a body gives the same in whatever pieces it comes, and finds what a JSON parser finds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use modelplane_gateway::json::{Finder, Found, Wanted};
use serde_json::Value;

const MODEL: Wanted = Wanted { keys: &["model"], depth: 1, limit: 1024, elements: usize::MAX };

fn all(text: &[u8], size: usize) -> Vec<Found> {
    let mut finder = Finder::new(MODEL);
    let mut found = Vec::new();
    for mut piece in text.chunks(size) {
        while !piece.is_empty() {
            let (one, taken) = finder.feed(piece);
            assert!(one.is_some() || taken == piece.len());
            found.extend(one);
            piece = &piece[taken..];
        }
    }
    found
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, text) = input;
    let whole = all(text, text.len().max(1));
    assert_eq!(all(text, usize::from(size).max(1)), whole);
    for found in &whole {
        assert!(found.text.len() <= 1024 && found.range.end <= text.len());
    }
    let Ok(Value::Object(object)) = serde_json::from_slice::<Value>(text) else { return };
    // With a key given twice, a parser keeps the last.
    match (object.get("model"), whole.last()) {
        (Some(model), Some(found)) if !found.cut => {
            assert_eq!(&serde_json::from_slice::<Value>(&text[found.range.clone()]).expect("a value"), model);
        }
        (model, found) => assert_eq!(model.is_some(), found.is_some()),
    }
});
