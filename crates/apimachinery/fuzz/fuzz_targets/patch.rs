//! Any object and any patch: nothing panics, and no object becomes deeper than the decoder reads.
//!
//! The input is two JSON texts with a newline in between: an object and a patch, which is tried as each kind
//! of patch, as an applied object and as a selector.
#![no_main]

use libfuzzer_sys::fuzz_target;
use modelplane_apimachinery::apply::{FieldSet, Reset, WriteRequest, apply, update_managers};
use modelplane_apimachinery::builtin;
use modelplane_apimachinery::patch::{json_patch, merge_patch, strategic_merge_patch};
use modelplane_apimachinery::schema::decode::{decode, is_deeper_than};
use modelplane_apimachinery::selector::{FieldSelector, LabelSelector};

fuzz_target!(|data: &[u8]| {
    let mut texts = data.splitn(2, |byte| *byte == b'\n');
    let mut next = || texts.next().and_then(|text| decode(text).ok()).map(|decoded| decoded.value);
    let (Some(object), Some(patch)) = (next(), next()) else { return };
    let kind = builtin::find("", "v1", "Pod").expect("it is built in");
    let schema = kind.schema();
    let mut patched = object.clone();
    if json_patch(&mut patched, &patch).is_ok() {
        assert!(!is_deeper_than(&patched, 128));
    }
    let _ = merge_patch(&mut object.clone(), patch.clone());
    let _ = strategic_merge_patch(&schema, &mut object.clone(), patch.clone());
    if let Ok(set) = FieldSet::from_fields_v1(&patch) {
        assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()), Ok(set));
    }
    let versions = [("v1", &*schema)];
    let request = WriteRequest {
        versions: &versions,
        api_version: "v1",
        kind: "Pod",
        manager: "kubectl",
        subresource: "",
        time: "2026-01-01T00:00:00Z",
        reset: &Reset::status(),
        empty: &kind.empty(),
    };
    let _ = apply(&request, Some(&object), &patch, true);
    update_managers(&request, Some(&object), &mut patch.clone());
    let text = patch.to_string();
    if let Ok(selector) = LabelSelector::parse(&text) {
        selector.matches_object(&object);
    }
    let _ = LabelSelector::from_object(&patch);
    let _ = FieldSelector::parse(&text, &["spec.nodeName"]).map(|selector| selector.matches(&object));
});
