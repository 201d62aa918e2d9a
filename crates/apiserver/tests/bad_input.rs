//! Requests no well-behaved client sends: each gets the Status Kubernetes would give, and the server lives on.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod support;

use http::{Method, Request};
use http_body_util::Full;
use serde_json::json;
use support::{WIDGETS, widget, with_widgets};

struct Case {
    name: &'static str,
    method: Method,
    path: String,
    content_type: &'static str,
    body: Vec<u8>,
    code: u16,
    reason: &'static str,
}

fn case(
    name: &'static str,
    content_type: &'static str,
    body: impl Into<Vec<u8>>,
    expected: (u16, &'static str),
) -> Case {
    let (code, reason) = expected;
    Case {
        name,
        method: Method::POST,
        path: WIDGETS.to_owned(),
        content_type,
        body: body.into(),
        code,
        reason,
    }
}

fn cases() -> Vec<Case> {
    const JSON: &str = "application/json";
    let path = |path: &str| format!("{WIDGETS}{path}");
    let deep = format!("{{\"a\":{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let other = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut object = widget("b");
        change(&mut object);
        object.to_string()
    };
    let mut cases = vec![
        case("no body", JSON, "", (400, "BadRequest")),
        case("half a body", JSON, "{\"apiVersion\":", (400, "BadRequest")),
        case("a list", JSON, "[]", (400, "BadRequest")),
        case("text behind the body", JSON, format!("{} x", widget("b")), (400, "BadRequest")),
        case("no UTF-8", JSON, b"{\"\xff\xfe\":1}".to_vec(), (400, "BadRequest")),
        case("deep nesting", JSON, deep, (400, "BadRequest")),
        case("deep YAML", "application/yaml", "[".repeat(100_000), (400, "BadRequest")),
        case("a YAML bomb", "application/yaml", yaml_bomb(), (400, "BadRequest")),
        case("too large", JSON, vec![b' '; 4 << 20], (413, "RequestEntityTooLarge")),
        case("protobuf", "application/vnd.kubernetes.protobuf", "k8s\0", (415, "UnsupportedMediaType")),
        case("a form", "application/x-www-form-urlencoded", "a=b", (415, "UnsupportedMediaType")),
        case("another kind", JSON, other(&|object| object["kind"] = json!("Gadget")), (400, "BadRequest")),
        case(
            "another version",
            JSON,
            other(&|object| object["apiVersion"] = json!("v1")),
            (400, "BadRequest"),
        ),
        case(
            "another namespace",
            JSON,
            other(&|object| object["metadata"]["namespace"] = json!("x")),
            (400, "BadRequest"),
        ),
        case(
            "metadata of a wrong type",
            JSON,
            other(&|object| object["metadata"] = json!([])),
            (400, "BadRequest"),
        ),
        case(
            "labels of a wrong type",
            JSON,
            other(&|object| object["metadata"]["labels"] = json!({"a": 1})),
            (400, "BadRequest"),
        ),
        case(
            "a bad name",
            JSON,
            other(&|object| object["metadata"]["name"] = json!("../x")),
            (422, "Invalid"),
        ),
        case("no name", JSON, other(&|object| object["metadata"] = json!({})), (422, "Invalid")),
        case(
            "a wrong type in the spec",
            JSON,
            other(&|object| object["spec"]["replicas"] = json!("x")),
            (422, "Invalid"),
        ),
    ];
    let mut add =
        |name, method: Method, path: String, content_type, body: &str, expected: (u16, &'static str)| {
            let (code, reason) = expected;
            cases.push(Case { name, method, path, content_type, body: body.into(), code, reason });
        };
    let merge = "application/merge-patch+json";
    let patch = "application/json-patch+json";
    let strategic = "application/strategic-merge-patch+json";
    add(
        "a stale update",
        Method::PUT,
        path("/a"),
        JSON,
        &other(&|o| {
            o["metadata"] = json!({"name": "a", "resourceVersion": "1"});
        }),
        (409, "Conflict"),
    );
    add(
        "an update without a version",
        Method::PUT,
        path("/a"),
        JSON,
        &widget("a").to_string(),
        (422, "Invalid"),
    );
    add(
        "an update of another name",
        Method::PUT,
        path("/a"),
        JSON,
        &widget("c").to_string(),
        (400, "BadRequest"),
    );
    add("a merge patch that is a list", Method::PATCH, path("/a"), merge, "[]", (400, "BadRequest"));
    add("a JSON patch that is an object", Method::PATCH, path("/a"), patch, "{}", (400, "BadRequest"));
    add(
        "a failed test",
        Method::PATCH,
        path("/a"),
        patch,
        r#"[{"op":"test","path":"/spec/size","value":"x"}]"#,
        (422, "Invalid"),
    );
    add(
        "a strategic patch of a custom resource",
        Method::PATCH,
        path("/a"),
        strategic,
        "{}",
        (415, "UnsupportedMediaType"),
    );
    add(
        "an apply without a manager",
        Method::PATCH,
        path("/a"),
        "application/apply-patch+yaml",
        &widget("a").to_string(),
        (422, "Invalid"),
    );
    add(
        "a dry run of another sort",
        Method::POST,
        path("?dryRun=Some"),
        JSON,
        &widget("b").to_string(),
        (422, "Invalid"),
    );
    add("a bad revision", Method::GET, path("?resourceVersion=x"), JSON, "", (422, "Invalid"));
    add("a method without meaning", Method::TRACE, path("/a"), JSON, "", (405, "MethodNotAllowed"));
    add("a subresource that is not there", Method::GET, path("/a/log"), JSON, "", (404, "NotFound"));
    add(
        "a definition without versions",
        Method::POST,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
        JSON,
        r#"{"metadata":{"name":"x.y.z"},"spec":{"group":"y.z","scope":"Namespaced","names":{"plural":"x","kind":"X"},"versions":[]}}"#,
        (422, "Invalid"),
    );
    cases
}

/// Queries that a list refuses.
#[tokio::test]
async fn bad_queries_of_lists_are_refused() {
    let (_server, caller) = with_widgets().await;
    assert_eq!(caller.post(WIDGETS, &widget("a")).await.code, 201);
    let token = |text: &str| {
        use base64::Engine as _;
        format!("continue={}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text))
    };
    let bad = (400, "BadRequest");
    let invalid = (422, "Invalid");
    let cases: Vec<(String, (u16, &str))> = vec![
        ("labelSelector=a%20b%20c".to_owned(), bad),
        ("labelSelector=a%20in".to_owned(), bad),
        ("labelSelector=a%20in%20(".to_owned(), bad),
        ("labelSelector=a%20in%20()x".to_owned(), bad),
        ("labelSelector=,".to_owned(), bad),
        ("labelSelector=!".to_owned(), bad),
        ("labelSelector=-a%3Db".to_owned(), bad),
        (format!("labelSelector=a%3D{}", "x".repeat(64)), bad),
        ("labelSelector=a%3E1".to_owned(), (200, "")),
        ("labelSelector=a%3Ex".to_owned(), bad),
        ("labelSelector=%ff%fe".to_owned(), bad),
        ("fieldSelector=metadata.name".to_owned(), bad),
        ("fieldSelector=spec.unknown%3D1".to_owned(), bad),
        ("fieldSelector=metadata.name%3Da%5C".to_owned(), bad),
        ("fieldSelector=%3D".to_owned(), bad),
        ("limit=x".to_owned(), bad),
        ("limit=-1".to_owned(), bad),
        ("limit=99999999999999999999".to_owned(), bad),
        ("timeoutSeconds=soon&watch=true".to_owned(), bad),
        ("continue=x".to_owned(), bad),
        (token("{}"), bad),
        (token("[]"), bad),
        (token(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"core/secrets/default/a"}"#), bad),
        (token(r#"{"v":"meta.k8s.io/v1","rv":-1,"start":""}"#), bad),
        (
            token(r#"{"v":"meta.k8s.io/v1","rv":99999,"start":"example.org/widgets/default/a"}"#),
            (410, "Expired"),
        ),
        (format!("resourceVersion=5&{}", token("{}")), bad),
        ("resourceVersion=-1".to_owned(), invalid),
        ("resourceVersion=99999".to_owned(), (504, "Timeout")),
        ("resourceVersionMatch=Exact".to_owned(), invalid),
        ("resourceVersionMatch=Exact&resourceVersion=0".to_owned(), invalid),
        ("resourceVersionMatch=Roughly&resourceVersion=1".to_owned(), invalid),
        ("watch=true&sendInitialEvents=true".to_owned(), invalid),
        ("watch=true&resourceVersionMatch=NotOlderThan".to_owned(), invalid),
        ("watch=true&resourceVersion=x".to_owned(), invalid),
    ];
    let mut wrong = Vec::new();
    for (query, (code, reason)) in cases {
        let answer = caller.get(&format!("{WIDGETS}?{query}")).await;
        if (answer.code, answer.value["reason"].as_str().unwrap_or_default()) != (code, reason) {
            wrong.push(format!("{query}: {} {}", answer.code, answer.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(caller.get(&format!("{WIDGETS}/a")).await.code, 200);
}

/// Patches, and options of writes, that are refused.
#[tokio::test]
async fn bad_patches_and_options_are_refused() {
    const JSON: &str = "application/json-patch+json";
    const MERGE: &str = "application/merge-patch+json";
    const STRATEGIC: &str = "application/strategic-merge-patch+json";
    const APPLY: &str = "application/apply-patch+yaml";
    let (_server, caller) = with_widgets().await;
    assert_eq!(caller.post(WIDGETS, &widget("a")).await.code, 201);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(caller.post(pods, &pod).await.code, 201);
    let before = caller.get(&format!("{WIDGETS}/a")).await.value;
    let bad: &[u16] = &[400];
    let unprocessable: &[u16] = &[422];
    let (a, p) = (format!("{WIDGETS}/a"), format!("{pods}/a"));
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(5000), close.repeat(5000));
    let growing: Vec<_> = std::iter::once(
        json!({"op": "add", "path": "/metadata/annotations", "value": {"a": {}}}),
    )
    .chain((0..40).map(|step| {
        json!({
            "op": "copy", "from": "/metadata/annotations", "path": format!("/metadata/annotations/x{step}"),
        })
    }))
    .collect();
    let growing = serde_json::to_string(&growing).unwrap();
    let cases: Vec<(&str, String, &str, String, &[u16])> = vec![
        ("no content type", a.clone(), "", "{}".to_owned(), &[415]),
        ("plain JSON", a.clone(), "application/json", "{}".to_owned(), &[415]),
        ("half a patch", a.clone(), JSON, "[{\"op\":".to_owned(), bad),
        ("an unknown operation", a.clone(), JSON, r#"[{"op":"increase","path":"/spec/replicas"}]"#.to_owned(), unprocessable),
        ("no path", a.clone(), JSON, r#"[{"op":"remove"}]"#.to_owned(), unprocessable),
        ("a path of nothing", a.clone(), JSON, r#"[{"op":"remove","path":"/spec/none"}]"#.to_owned(), unprocessable),
        ("a path without a slash", a.clone(), JSON, r#"[{"op":"remove","path":"spec"}]"#.to_owned(), &[400, 422]),
        ("an index beyond the list", a.clone(), JSON, r#"[{"op":"add","path":"/spec/list/7","value":1}]"#.to_owned(), unprocessable),
        ("a move into itself", a.clone(), JSON, r#"[{"op":"move","from":"/spec","path":"/spec/size"}]"#.to_owned(), unprocessable),
        ("the removal of everything", a.clone(), JSON, r#"[{"op":"remove","path":""}]"#.to_owned(), &[400, 422]),
        ("a text instead of the object", a.clone(), JSON, r#"[{"op":"replace","path":"","value":"x"}]"#.to_owned(), &[400, 422]),
        ("a patch that doubles the object with each step", a.clone(), JSON, growing, &[400, 413, 422]),
        ("a deep patch", a.clone(), MERGE, deep("{\"a\":", "}"), bad),
        ("a list of metadata", a.clone(), MERGE, r#"{"metadata":[]}"#.to_owned(), bad),
        ("another name", a.clone(), MERGE, r#"{"metadata":{"name":"b"}}"#.to_owned(), &[400, 422]),
        ("another uid", a.clone(), MERGE, r#"{"metadata":{"uid":"b"}}"#.to_owned(), &[409]),
        ("another kind", a.clone(), MERGE, r#"{"kind":"Gadget"}"#.to_owned(), bad),
        ("a stale version", a.clone(), MERGE, r#"{"metadata":{"resourceVersion":"1"}}"#.to_owned(), &[409]),
        ("a version that is none", a.clone(), MERGE, r#"{"metadata":{"resourceVersion":"x"}}"#.to_owned(), &[400, 409, 422]),
        ("a wrong type", a.clone(), MERGE, r#"{"spec":{"replicas":"many"}}"#.to_owned(), unprocessable),
        ("an unknown directive", p.clone(), STRATEGIC, r#"{"spec":{"$patch":"improve"}}"#.to_owned(), &[400, 500]),
        ("an item without its key", p.clone(), STRATEGIC, r#"{"spec":{"containers":[{"image":"x"}]}}"#.to_owned(), &[400, 422, 500]),
        ("an order that is no list", p.clone(), STRATEGIC, r#"{"spec":{"$setElementOrder/containers":1}}"#.to_owned(), &[400, 500]),
        ("a text for a list", p.clone(), STRATEGIC, r#"{"spec":{"containers":"x"}}"#.to_owned(), &[400, 422, 500]),
        ("an apply of another name", format!("{a}?fieldManager=m"), APPLY, widget("b").to_string(), bad),
        ("an apply of a list", format!("{a}?fieldManager=m"), APPLY, "[]".to_owned(), bad),
        ("an apply of broken YAML", format!("{a}?fieldManager=m"), APPLY, "a: [".to_owned(), bad),
        ("an apply of deep YAML", format!("{a}?fieldManager=m"), APPLY, "[".repeat(100_000), bad),
        ("a deep apply", format!("{a}?fieldManager=m"), APPLY, deep("{\"a\":", "}"), bad),
        (
            "an apply with managed fields",
            format!("{a}?fieldManager=m"),
            APPLY,
            r#"{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"a","managedFields":[{"manager":"x"}]}}"#.to_owned(),
            &[400, 422],
        ),
        ("an unknown field validation", format!("{a}?fieldValidation=Maybe"), MERGE, "{}".to_owned(), unprocessable),
        ("a long manager", format!("{a}?fieldManager={}", "m".repeat(129)), MERGE, "{}".to_owned(), unprocessable),
        ("force without apply", format!("{a}?force=true"), MERGE, "{}".to_owned(), unprocessable),
        ("strict unknown fields", format!("{a}?fieldValidation=Strict"), MERGE, r#"{"spec":{"colour":"red"}}"#.to_owned(), bad),
        ("strict repeated fields", format!("{a}?fieldValidation=Strict"), MERGE, r#"{"spec":{"size":"x","size":"y"}}"#.to_owned(), bad),
    ];
    let mut wrong = Vec::new();
    for (name, path, kind, body, codes) in cases {
        let answer = caller.send(Method::PATCH, &path, kind, body).await;
        if !codes.contains(&answer.code)
            || answer.value["kind"] != "Status"
            || answer.value["code"] != answer.code
        {
            wrong.push(format!("{name}: {} {:.500}", answer.code, answer.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(caller.get(&a).await.value, before, "nothing was changed");
}

/// Kubernetes' protobuf, damaged in all ways one byte can be, and options of deletions.
#[tokio::test]
async fn damaged_protobuf_and_delete_options_are_refused() {
    let (_server, caller) = with_widgets().await;
    let path = "/api/v1/namespaces/default/configmaps";
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../apimachinery/testdata/protobuf");
    let good = std::fs::read(folder.join("configmap.bin")).unwrap();
    for (name, body, codes) in [
        ("nothing", Vec::new(), &[400, 415][..]),
        ("the magic alone", b"k8s\0".to_vec(), &[400, 415]),
        ("no magic", good[4..].to_vec(), &[400, 415]),
        ("a length beyond the end", b"k8s\0\x0a\xff\xff\xff\xff\x0f".to_vec(), &[400]),
        ("an endless number", [b"k8s\0".to_vec(), vec![0xff; 64]].concat(), &[400]),
        ("JSON", b"{}".to_vec(), &[400, 415]),
    ] {
        let answer = caller.send(Method::POST, path, PROTOBUF, body).await;
        assert!(codes.contains(&answer.code) && answer.value["kind"] == "Status", "{name}: {}", answer.text);
    }
    for index in 0..good.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = good.clone();
            damaged[index] ^= change;
            let answer = caller.send(Method::POST, &format!("{path}?dryRun=All"), PROTOBUF, damaged).await;
            assert!(answer.code < 500, "byte {index}: {}", answer.text);
        }
        let answer =
            caller.send(Method::POST, &format!("{path}?dryRun=All"), PROTOBUF, good[..index].to_vec()).await;
        assert!(answer.code < 500, "{index} bytes: {}", answer.text);
    }
    assert_eq!(caller.post(path, &json!({"metadata": {"name": "a"}})).await.code, 201);
    let path = format!("{path}/a");
    for (name, query, body, code) in [
        ("a list", "", "[]", 400),
        ("half", "", "{", 400),
        ("a policy", "", r#"{"propagationPolicy":"Sideways"}"#, 422),
        ("a policy in the query", "?propagationPolicy=Sideways", "", 422),
        ("a dry run", "?dryRun=Half", "", 422),
        ("a precondition", "", r#"{"preconditions":{"uid":"x"}}"#, 409),
        ("a version", "", r#"{"preconditions":{"resourceVersion":"1"}}"#, 409),
    ] {
        let answer = caller.send(Method::DELETE, &format!("{path}{query}"), "application/json", body).await;
        assert!(
            answer.code == code && answer.value["kind"] == "Status",
            "{name}: {} {}",
            answer.code,
            answer.text
        );
    }
    assert_eq!(caller.get(&path).await.code, 200);
}

/// An object that nests as deep as is allowed goes through everything an object goes through.
#[tokio::test]
async fn the_deepest_object_harms_nobody() {
    let (_server, caller) = with_widgets().await;
    let definition = json!({
        "metadata": {"name": "boxes.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"plural": "boxes", "kind": "Box"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(caller.post(definitions, &definition).await.code, 201);
    let boxes = WIDGETS.replace("widgets", "boxes");
    let nested = |levels: usize| {
        let mut value = json!("x");
        for level in 0..levels {
            value = if level % 2 == 0 { json!({"a": value}) } else { json!([value]) };
        }
        value
    };
    let mut deepest = None;
    for levels in 100..128 {
        let mut object = json!({"apiVersion": "example.org/v1", "kind": "Box", "metadata": {"name": "deep"}});
        object["spec"] = json!({"more": nested(levels)});
        let created = caller.post(&format!("{boxes}?dryRun=All"), &object).await;
        match created.code {
            201 => deepest = Some(object),
            code => assert_eq!(code, 400, "{}", created.text),
        }
    }
    let object = deepest.unwrap();
    let item = format!("{boxes}/deep");
    assert_eq!(caller.post(&boxes, &object).await.code, 201);
    let live = caller.get(&item).await.value;
    assert_eq!(live["spec"], object["spec"], "it is kept");
    assert_eq!(caller.put(&item, &live).await.code, 200);
    assert_eq!(caller.merge(&item, &json!({"spec": object["spec"]})).await.code, 200);
    assert_eq!(caller.apply(&format!("{item}?force=true"), "m", &object).await.code, 200);
    let yaml = caller.get_as(&item, "application/yaml").await;
    assert_eq!(yaml.code, 200);
    let again = caller.send(http::Method::PUT, &item, "application/yaml", yaml.text).await;
    assert!(matches!(again.code, 200 | 409), "{}", again.text);
    assert_eq!(caller.delete(&item).await.code, 200);
    for depth in [1, 31, 64, 300] {
        for text in ["- ".repeat(depth), "{a: ".repeat(depth), "? ".repeat(depth), "[".repeat(depth)] {
            let answer = caller.send(http::Method::POST, WIDGETS, "application/yaml", text.clone()).await;
            assert_eq!(answer.code, 400, "{text:.20}: {}", answer.text);
        }
    }
}

/// The three modes of field validation, on each verb that takes them.
#[tokio::test]
async fn unknown_fields_are_judged_by_every_verb_that_writes() {
    let (_server, caller) = with_widgets().await;
    assert_eq!(caller.post(WIDGETS, &widget("a")).await.code, 201);
    let mut unknown = widget("a");
    unknown["spec"]["colour"] = json!("red");
    let item = format!("{WIDGETS}/a");
    for mode in ["Ignore", "Warn", "Strict", ""] {
        let latest = caller.get(&item).await.value["metadata"]["resourceVersion"].clone();
        let mut updated = unknown.clone();
        updated["metadata"]["resourceVersion"] = latest;
        for (method, path, kind, body) in [
            (
                Method::POST,
                format!("{WIDGETS}?dryRun=All&"),
                "application/json",
                unknown.to_string().replace("\"a\"", "\"b\""),
            ),
            (Method::PUT, format!("{item}?"), "application/json", updated.to_string()),
            (
                Method::PATCH,
                format!("{item}?"),
                "application/merge-patch+json",
                json!({"spec": {"colour": "red"}}).to_string(),
            ),
            (
                Method::PATCH,
                format!("{item}?fieldManager=m&force=true&"),
                "application/apply-patch+yaml",
                unknown.to_string(),
            ),
        ] {
            let answer =
                caller.send(method.clone(), &format!("{path}fieldValidation={mode}"), kind, body).await;
            let warning = answer.headers.get("warning").map(|text| text.to_str().unwrap());
            match mode {
                "Strict" => assert!(
                    answer.code == 400
                        && answer.text.contains("strict decoding error: unknown field \\\"spec.colour\\\""),
                    "{method} {path}: {}",
                    answer.text
                ),
                "Ignore" => {
                    assert_eq!((answer.code < 300, warning), (true, None), "{method} {path}: {}", answer.text)
                }
                _ => assert_eq!(
                    (answer.code < 300, warning),
                    (true, Some("299 - \"unknown field \\\"spec.colour\\\"\"")),
                    "{method} {path}: {}",
                    answer.text
                ),
            }
            assert!(!answer.text.contains("\"colour\":"), "{method} {path}: it is pruned");
        }
    }
}

fn yaml_bomb() -> String {
    let mut text = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in
        [('b', 'a'), ('c', 'b'), ('d', 'c'), ('e', 'd'), ('f', 'e'), ('g', 'f'), ('h', 'g'), ('i', 'h')]
    {
        let item = format!("*{before}");
        text.push_str(&format!("{name}: &{name} [{}]\n", vec![item; 9].join(",")));
    }
    text
}

#[tokio::test]
async fn every_bad_request_gets_its_status() {
    let (_server, caller) = with_widgets().await;
    assert_eq!(caller.post(WIDGETS, &widget("a")).await.code, 201);
    let mut wrong = Vec::new();
    for case in cases() {
        let answer = caller.send(case.method, &case.path, case.content_type, case.body).await;
        let reason = answer.value["reason"].as_str().unwrap_or_default();
        if (answer.code, reason) != (case.code, case.reason) || answer.value["kind"] != "Status" {
            wrong.push(format!("{}: {} {}", case.name, answer.code, answer.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(caller.get(&format!("{WIDGETS}/a")).await.code, 200);
}

#[tokio::test]
async fn clients_that_accept_only_protobuf_are_refused() {
    let (_server, caller) = with_widgets().await;
    let answer = caller.get_as(WIDGETS, "application/vnd.kubernetes.protobuf").await;
    assert_eq!((answer.code, &answer.value["reason"]), (406, &json!("NotAcceptable")));
    let answer = caller.get_as(WIDGETS, "application/vnd.kubernetes.protobuf,application/json").await;
    assert_eq!(answer.code, 200);
    let answer = caller.get_as(WIDGETS, "application/yaml").await;
    assert_eq!((answer.code, answer.headers["content-type"].to_str().unwrap()), (200, "application/yaml"));
}

#[tokio::test]
async fn a_body_is_refused_as_soon_as_it_is_known_to_be_too_large() {
    let (_server, caller) = with_widgets().await;
    let request = Request::builder()
        .method(Method::POST)
        .uri(WIDGETS)
        .body(Full::from(vec![b'x'; 3 * 1024 * 1024 + 1]))
        .unwrap();
    assert_eq!(caller.raw(request).await.code, 413);
}
