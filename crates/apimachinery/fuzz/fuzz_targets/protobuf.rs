//! Any bytes: nothing panics, and what is decoded is an object that JSON can carry, no deeper than its decoder reads.
//!
//! The input is a body, or what comes after the magic bytes in one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use modelplane_apimachinery::builtin;
use modelplane_apimachinery::protobuf::decode;
use modelplane_apimachinery::schema::decode::{decode as decode_json, is_deeper_than};

fuzz_target!(|data: &[u8]| {
    let body = if data.starts_with(b"k8s\0") { data.to_vec() } else { [b"k8s\0", data].concat() };
    let Ok(mut object) = decode(&body) else { return };
    assert!(object.is_object());
    assert!(!is_deeper_than(&object, 128));
    let text = serde_json::to_vec(&object).expect("a value is JSON");
    assert_eq!(decode_json(&text).expect("JSON is read again").value, object);
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let Some(kind) = builtin::find(group, version, &kind) else { return };
    let schema = kind.schema();
    schema.prune(&mut object);
    schema.apply_defaults(&mut object);
    let _ = schema.validate(&object, None);
});
