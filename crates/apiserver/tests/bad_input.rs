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
    add("a bad selector", Method::GET, path("?labelSelector=a%20b%20c"), JSON, "", (400, "BadRequest"));
    add("a bad limit", Method::GET, path("?limit=x"), JSON, "", (400, "BadRequest"));
    add("a bad token", Method::GET, path("?continue=x"), JSON, "", (400, "BadRequest"));
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
