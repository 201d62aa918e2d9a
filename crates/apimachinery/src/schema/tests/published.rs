use serde_json::{Value, json};

use super::data;
use crate::schema::publish::{KindName, v2, v3};

/// Without what is worded differently on purpose, lists of names sorted.
fn comparable(mut schema: Value) -> Value {
    fn clean(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if fields.get("description").is_some_and(Value::is_string) {
                    fields.remove("description");
                }
                fields.retain(|name, value| name != "properties" || *value != json!({}));
                fields.values_mut().for_each(clean);
            }
            Value::Array(items) => items.iter_mut().for_each(clean),
            // Go keeps limits as floats, 1 and 1.0 are written alike.
            Value::Number(number) => {
                if let Some(whole) = number.as_f64().filter(|float| float.fract() == 0.0) {
                    *value = json!(whole as i64);
                }
            }
            _ => {}
        }
    }
    clean(&mut schema);
    schema
}

#[test]
fn published_schemas_are_those_of_kube_apiserver() {
    let recordings = data(include_str!("../testdata/objects.json"));
    let kind = KindName { group: "t.io", version: "v1", kind: "Probe" };
    assert_eq!(kind.schema_name(), "io.t.v1.Probe");
    let real = data(include_str!("../testdata/published-v3.json"));
    assert_eq!(comparable(v3(&recordings["schema"], kind)), comparable(real));
    let real = data(include_str!("../testdata/published-v2.json"));
    assert_eq!(comparable(v2(&recordings["schema"], kind)), comparable(real));
}

#[test]
fn a_resource_of_unknown_fields_lists_none_in_v2() {
    let kind = KindName { group: "t.io", version: "v1", kind: "Probe" };
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    assert_eq!(v2(&schema, kind)["properties"], Value::Null);
    assert!(v3(&schema, kind)["properties"]["metadata"].is_object());
}
