//! Any schema and any two objects: nothing panics, and pruning and defaulting change nothing the second time.
//!
//! The input is three JSON texts with a newline in between: a schema, an object, its former version.
#![no_main]

use libfuzzer_sys::fuzz_target;
use modelplane_apimachinery::schema::Schema;
use modelplane_apimachinery::schema::decode::{decode, is_deeper_than};
use modelplane_apimachinery::schema::metadata::{self, NameRule};
use modelplane_apimachinery::schema::publish::{KindName, v2, v3};

fuzz_target!(|data: &[u8]| {
    let mut texts = data.splitn(3, |byte| *byte == b'\n');
    let mut next = || texts.next().and_then(|text| decode(text).ok()).map(|decoded| decoded.value);
    let Some(raw) = next() else { return };
    let Ok(schema) = Schema::parse(&raw) else { return };
    let kind = KindName { group: "example.org", version: "v1", kind: "Thing" };
    let _ = (v2(&raw, kind), v3(&raw, kind));
    let Some(mut object) = next() else { return };
    let old = next();
    assert!(!is_deeper_than(&object, 128));
    schema.apply_defaults(&mut object);
    schema.prune(&mut object);
    let settled = object.clone();
    assert!(schema.prune(&mut object).is_empty(), "pruning is idempotent");
    assert_eq!(object, settled);
    let _ = schema.validate(&object, None);
    let _ = schema.validate(&object, old.as_ref());
    let _ = schema.validate_status(&object, old.as_ref());
    let found = &object["metadata"];
    if metadata::check_types(found).is_ok() {
        let _ = metadata::check_create(found, NameRule::Subdomain, true, "metadata");
        let _ = metadata::check_update(found, &old.unwrap_or_default()["metadata"], "metadata");
    }
});
