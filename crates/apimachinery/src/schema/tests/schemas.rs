use serde_json::{Value, json};

use super::{data, recorded, shown};
use crate::schema::Schema;

/// Where our CEL compiler words an error its own way, only the field and the start of the message are compared.
const OWN_WORDING: &str = "compilation failed: ERROR";
/// Go's wording of broken patterns differs from ours.
const PATTERN: &str = "must be a valid regular expression";

fn comparable(shown: Vec<String>) -> Vec<String> {
    let cut = |text: String, end: &str| match text.find(end) {
        Some(position) => text[..position + end.len()].to_owned(),
        None => text,
    };
    shown.into_iter().map(|text| cut(cut(text, OWN_WORDING), PATTERN)).collect()
}

#[test]
fn schemas_are_judged_as_kube_apiserver_does() {
    let recordings = data(include_str!("../testdata/schemas.json"));
    let mut wrong = Vec::new();
    for case in recordings["cases"].as_array().unwrap() {
        let causes = Schema::parse(&case["schema"]).err().unwrap_or_default();
        let (ours, real) = (comparable(shown(&causes)), comparable(recorded(case)));
        if ours != real {
            wrong.push(format!("{}:\n  ours {ours:#?}\n  real {real:#?}", case["name"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn keywords_of_the_wrong_type_are_refused() {
    let causes = Schema::parse(&json!({
        "type": "object",
        "properties": { "a": { "type": ["string"], "maxLength": "5" } },
        "required": "a",
    }))
    .unwrap_err();
    assert_eq!(
        shown(&causes),
        [
            "FieldValueTypeInvalid openAPIV3Schema.required: Invalid value: \"string\": must be a list of strings"
        ]
    );
}

#[test]
fn schemas_that_nest_too_deep_are_refused() {
    let mut schema = json!({ "type": "string" });
    for _ in 0..200 {
        schema = json!({ "type": "object", "properties": { "a": schema } });
    }
    let causes = Schema::parse(&schema).unwrap_err();
    assert!(causes[0].message.contains("must not nest more than"), "{causes:?}");
    let mut value = Value::Null;
    for _ in 0..100 {
        value = json!([value]);
    }
    assert!(Schema::parse(&value).is_err());
}
