//! Label and field selectors.

use modelplane_apimachinery::selector::{FieldSelector, LabelSelector};
use serde_json::json;

#[test]
fn label_selectors_select_by_all_requirements() {
    let object = json!({"metadata": {"labels": {"app": "web", "tier": "front", "n": "5", "empty": ""}}});
    for (selector, selects) in [
        ("", true),
        ("app", true),
        ("!app", false),
        ("!other", true),
        ("app=web", true),
        ("app==web", true),
        ("app = web , tier=front", true),
        ("app=db", false),
        ("app!=db", true),
        ("other!=x", true),
        ("app in (web, db)", true),
        ("app in (db)", false),
        ("app notin (db)", true),
        ("app notin (web)", false),
        ("other notin (web)", true),
        ("empty=", true),
        ("empty in ()", true),
        ("n>4", true),
        ("n>5", false),
        ("n<6,app", true),
        ("example.dev/x notin (a),app", true),
    ] {
        let parsed = LabelSelector::parse(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
        assert_eq!(parsed.matches_object(&object), selects, "{selector}");
        let again =
            LabelSelector::parse(&parsed.to_string()).unwrap_or_else(|error| panic!("{parsed}: {error}"));
        assert_eq!(again, parsed, "{selector} is printed as {parsed}");
    }
}

#[test]
fn a_malformed_label_selector_says_what_is_wrong() {
    for (selector, message) in [
        ("=a", "found \"=\", expected a label key"),
        ("a=b,", "a label is expected after the last comma"),
        ("a in", "expected '(' at the end"),
        ("a in (b", "expected ',' or ')' at the end"),
        ("a b", "found \"b\", expected '=', '!=', '==', 'in', 'notin', '>' or '<'"),
        ("a=b c", "found \"c\", expected a comma or the end"),
        ("a=(", "found \"(\", expected a value"),
        ("a>x", "exactly one integer is required"),
        ("-a=b", "invalid label key \"-a\""),
        ("UPPER/a=b", "the part before the slash must be a DNS name"),
        ("a=b/c", "invalid label value \"b/c\" for key \"a\""),
    ] {
        let error = LabelSelector::parse(selector).expect_err(selector).to_string();
        assert!(error.contains(message), "{selector}: {error}");
    }
}

#[test]
fn label_selector_objects_are_as_their_text() {
    let object = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "x", "operator": "DoesNotExist"},
        ],
    });
    let selector = LabelSelector::from_object(&object).expect("it is a selector");
    assert_eq!(selector.to_string(), "app=web,tier in (a,b),!x");
    let bad = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
    let error = LabelSelector::from_object(&bad).expect_err("there is no such operator");
    assert_eq!(
        error.to_string(),
        "label selector for key \"a\": \"Like\" is not a valid label selector operator"
    );
}

#[test]
fn field_selectors_select_by_supported_fields() {
    let object =
        json!({"metadata": {"name": "x", "namespace": "d"}, "spec": {"n": 3, "on": true, "t": "a,b=c"}});
    let supported = [".spec.n", ".spec.on", "spec.t", "spec.absent"];
    for (selector, selects) in [
        ("", true),
        ("metadata.name=x", true),
        ("metadata.name==x,metadata.namespace!=e", true),
        ("metadata.name!=x", false),
        ("spec.n=3,spec.on=true", true),
        ("spec.absent=", true),
        (r"spec.t=a\,b\=c", true),
    ] {
        let parsed =
            FieldSelector::parse(selector, &supported).unwrap_or_else(|error| panic!("{selector}: {error}"));
        assert_eq!(parsed.matches(&object), selects, "{selector}");
        let again = FieldSelector::parse(&parsed.to_string(), &supported);
        assert_eq!(again.as_ref(), Ok(&parsed), "{selector} is printed as {parsed}");
    }
    for (selector, message) in [
        ("spec.other=1", "field label not supported: spec.other"),
        ("metadata.name", "has none of '=', '==' and '!='"),
        (r"spec.t=a\x", "a backslash must be followed by"),
        ("spec.t=a=b", "an equals sign must be escaped"),
    ] {
        let error = FieldSelector::parse(selector, &supported).expect_err(selector).to_string();
        assert!(error.contains(message), "{selector}: {error}");
    }
}
