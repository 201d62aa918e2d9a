//! Reading a response gives the same in whatever pieces its body comes, and no more body than bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use modelplane_gateway::decode_response;

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (size, is_head, text) = input;
    let method = if is_head { http::Method::HEAD } else { http::Method::POST };
    let whole = decode_response(&method, text, text.len());
    let pieces = decode_response(&method, text, usize::from(size).max(1));
    assert_eq!(whole, pieces);
    if let Ok(Some(whole)) = whole {
        assert!(whole.body.len() <= text.len());
        assert!(!is_head || whole.body.is_empty());
    }
});
