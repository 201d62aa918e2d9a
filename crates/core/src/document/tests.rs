use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

fn round_trip(value: &serde_json::Value) -> serde_json::Value {
    let bytes = encode_value(value).expect("encodable");
    Document::from_value(&bytes).to_json().expect("decodable")
}

#[test]
fn json_survives_the_wire() {
    let long = "x".repeat(300);
    for value in [
        json!({}),
        json!({"a": 1, "b": [true, null, "s", {"c": -2.5}], "long": long, "nested": {"x": {"y": {"z": long}}}}),
        json!([[], {}, ""]),
        json!(9_223_372_036_854_775_807_i64),
        json!(-9_007_199_254_740_993_i64),
    ] {
        assert_eq!(round_trip(&value), value);
    }
}

#[test]
fn nulls_in_objects_are_dropped() {
    assert_eq!(round_trip(&json!({"a": null, "b": {"c": null}})), json!({"b": {}}));
}

#[test]
fn integers_decode_from_doubles() {
    let bytes = encode(&json!({"n": 3.0})).expect("encodable");
    #[derive(Deserialize)]
    struct Probe {
        n: i64,
    }
    assert_eq!(Document::from_struct(&bytes).decode::<Probe>().expect("decodable").n, 3);
}

#[test]
fn strings_are_borrowed_and_unknown_fields_skipped() {
    #[derive(Deserialize)]
    struct Probe<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
    }
    let bytes = encode(&json!({"other": {"deep": [1, 2]}, "name": "n", "also": "x"})).expect("encodable");
    let probe: Probe<'_> = Document::from_struct(&bytes).decode().expect("decodable");
    assert!(matches!(probe.name, Cow::Borrowed("n")));
}

#[test]
fn sub_documents_are_captured_unread_and_spliced_back() {
    #[derive(Deserialize, Serialize)]
    struct Probe<'a> {
        #[serde(borrow)]
        inner: Document<'a>,
        #[serde(borrow)]
        list: Vec<Document<'a>>,
        #[serde(borrow, skip_serializing_if = "Option::is_none")]
        missing: Option<Document<'a>>,
    }
    let value = json!({"inner": {"a": {"b": 1}}, "list": ["x", {"y": 2}]});
    let bytes = encode(&value).expect("encodable");
    let probe: Probe<'_> = Document::from_struct(&bytes).decode().expect("decodable");
    assert_eq!(probe.inner.to_json().expect("decodable"), json!({"a": {"b": 1}}));
    assert!(probe.missing.is_none());
    let again = encode(&probe).expect("encodable");
    assert_eq!(Document::from_struct(&again).to_json().expect("decodable"), value);
}

#[test]
fn errors_name_the_field() {
    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "only the error is looked at")]
    struct Probe {
        spec: Spec,
    }
    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "only the error is looked at")]
    struct Spec {
        list: Vec<i64>,
    }
    let bytes = encode(&json!({"spec": {"list": [1, "two"]}})).expect("encodable");
    let error = Document::from_struct(&bytes).decode::<Probe>().expect_err("a word is no integer");
    assert_eq!(error.path, "spec.list[1]");
    assert!(error.message.contains("two"), "{error}");
}

#[test]
fn errors_name_every_step_to_the_value() {
    type Nested = BTreeMap<String, Vec<Vec<BTreeMap<String, bool>>>>;
    for (value, path) in [
        (json!({"a": [[], [{"x": true}, {"y.z/w": 1}]]}), "a[1][1].y.z/w"),
        (json!({"a": [3]}), "a[0]"),
        (json!({"a": {}}), "a"),
        (json!([]), ""),
    ] {
        let bytes = encode_value(&value).expect("encodable");
        let error = Document::from_value(&bytes).decode::<Nested>().expect_err("not what is asked for");
        assert_eq!(error.path, path, "{value}");
    }
    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "only the error is looked at")]
    struct Strict {
        spec: Only,
    }
    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the error is looked at")]
    struct Only {
        needed: bool,
    }
    for (spec, message) in [
        (json!({}), "missing field `needed`"),
        (json!({"neeeded": true}), "unknown field `neeeded`, expected `needed`"),
    ] {
        let bytes = encode(&json!({"spec": spec})).expect("encodable");
        let error = Document::from_struct(&bytes).decode::<Strict>().expect_err("a field is wrong");
        assert_eq!((error.path.as_str(), error.message.as_str()), ("spec", message));
    }
}

#[test]
fn paths_are_followed_without_decoding() {
    let bytes = encode(&json!({"status": {"gateway": {"address": "10.0.0.1", "none": null, "empty": ""}}}))
        .expect("encodable");
    let document = Document::from_struct(&bytes);
    assert_eq!(document.text_at(&["status", "gateway", "address"]), Some("10.0.0.1"));
    assert_eq!(document.text_at(&["status", "gateway", "empty"]), None);
    assert_eq!(document.get(&["status", "gateway", "none"]), None);
    assert_eq!(document.get(&["status", "address", "gateway"]), None);
}

#[test]
fn deep_nesting_is_refused_instead_of_overflowing_the_stack() {
    let mut bytes = Vec::new();
    for _ in 0..10_000 {
        let mut list = Vec::new();
        write_bytes_field(&mut list, 1, &bytes);
        bytes.clear();
        write_bytes_field(&mut bytes, 6, &list);
    }
    let error = Document::from_value(&bytes).to_json().expect_err("too deep");
    assert!(error.message.contains("nested deeper"), "{error}");
}

#[test]
fn truncated_bytes_are_an_error() {
    let bytes = encode(&json!({"a": {"b": "some text"}})).expect("encodable");
    for end in 1..bytes.len() {
        let _ = Document::from_struct(&bytes[..end]).to_json();
    }
    assert!(Document::from_struct(&bytes[..bytes.len() - 1]).to_json().is_err());
}
