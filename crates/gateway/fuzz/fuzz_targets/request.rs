//! Reading a request gives the same in whatever pieces it comes, takes no more than there is, and nobody who reads its
//! head more leniently finds another end of it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use modelplane_gateway::decode_request;

fuzz_target!(|input: (u8, &[u8])| {
    let (size, text) = input;
    let whole = decode_request(text, text.len());
    let pieces = decode_request(text, usize::from(size).max(1));
    assert_eq!(whole, pieces);
    let Ok(Some(whole)) = whole else { return };
    assert!(whole.taken <= text.len() && whole.body.len() <= whole.taken);
    let head = text.windows(4).position(|end| end == b"\r\n\r\n").expect("a head has an end");
    assert!(!text[..head].iter().enumerate().any(|(at, &byte)| byte == b'\n' && text[at - 1] != b'\r'));
    // What is behind the request does not change it.
    if whole.is_complete {
        let alone = decode_request(&text[..whole.taken], whole.taken);
        assert_eq!(alone, Ok(Some(whole.clone())));
    }
    let chunked = whole.headers.contains_key("transfer-encoding");
    assert!(!chunked || !whole.headers.contains_key("content-length"));
});
