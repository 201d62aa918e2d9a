//! What OpenAI's and Anthropic's clients send and expect, shape by shape (e2e/clients has the clients themselves).

use http::{Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::support::*;

/// A call of a client, and what an engine answers to it.
struct Shape {
    name: &'static str,
    path: &'static str,
    request: Value,
    /// Kind of the answer, and the answer.
    answer: (&'static str, String),
}

fn whole(answer: Value) -> (&'static str, String) {
    ("application/json", answer.to_string())
}

fn events(lines: &[&str]) -> (&'static str, String) {
    ("text/event-stream; charset=utf-8", lines.iter().map(|line| format!("{line}\n\n")).collect())
}

fn shapes() -> Vec<Shape> {
    let say = json!([{"role": "user", "content": "Zürich? \"quotes\" \u{1f600}"}]);
    let tool = json!({"type": "function", "function": {"name": "get_weather", "parameters": {
        "type": "object", "properties": {"model": {"type": "string"}}, "required": ["model"],
    }}});
    let shape = |name, path, request, answer| Shape { name, path, request, answer };
    vec![
        shape(
            "chat",
            "/v1/chat/completions",
            json!({"messages": say, "model": "?"}),
            whole(json!({"id": "1", "object": "chat.completion", "usage": {"total_tokens": 3}})),
        ),
        shape(
            "chat, streamed with usage",
            "/v1/chat/completions",
            json!({"messages": say, "model": "?", "stream": true, "stream_options": {"include_usage": true}}),
            events(&[
                "data: {\"choices\":[{\"delta\":{\"content\":\"ü\"}}]}",
                "data: {\"usage\":{}}",
                "data: [DONE]",
            ]),
        ),
        shape(
            "tools, with a parameter that is called model",
            "/v1/chat/completions",
            json!({"messages": say, "tools": [tool], "model": "?", "tool_choice": {"model": "no"}}),
            whole(json!({"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [
                {"function": {"name": "get_weather", "arguments": "{\"model\": \"x\"}"}},
            ]}}]})),
        ),
        shape(
            "embeddings",
            "/v1/embeddings",
            json!({"input": ["a", "b"], "model": "?", "encoding_format": "base64"}),
            whole(json!({"object": "list", "data": [{"embedding": "AACAPw=="}]})),
        ),
        shape(
            "completions",
            "/v1/completions",
            json!({"model": "?", "prompt": "a"}),
            whole(json!({"id": "1"})),
        ),
        shape(
            "responses, streamed",
            "/v1/responses",
            json!({"input": "hello", "model": "?", "stream": true}),
            events(&["event: response.created\ndata: {}", "event: response.completed\ndata: {}"]),
        ),
        shape(
            "messages",
            "/v1/messages",
            json!({"max_tokens": 50, "messages": say, "model": "?"}),
            whole(json!({"type": "message", "usage": {"input_tokens": 1, "output_tokens": 2}})),
        ),
        shape(
            "messages, streamed",
            "/v1/messages",
            json!({"max_tokens": 50, "messages": say, "model": "?", "stream": true}),
            events(&[
                "event: message_start\ndata: {\"message\":{}}",
                "event: ping\ndata: {}",
                "event: message_stop\ndata: {}",
            ]),
        ),
        shape(
            "tokens counted",
            "/v1/messages/count_tokens",
            json!({"model": "?"}),
            whole(json!({"input_tokens": 3})),
        ),
    ]
}

#[tokio::test]
async fn every_shape_of_the_usual_clients_passes_by_path_and_by_model() {
    let answers: Vec<_> = shapes().into_iter().map(|shape| shape.answer).collect();
    let endpoint = Endpoint::answering(move |seen| {
        if seen.target.ends_with("/v1/models") {
            return Response::new(full(json!({"data": [{"id": "qwen"}]}).to_string()));
        }
        let index: usize = seen.headers["x-shape"].to_str().unwrap().parse().unwrap();
        let (kind, body) = &answers[index];
        Response::builder().header("content-type", *kind).body(full(body.clone())).unwrap()
    })
    .await;
    let gateway = Running::start(on(&endpoint)).await;
    for (index, shape) in shapes().into_iter().enumerate() {
        for (prefix, model) in [("/ml-team/chat", "qwen"), ("", "ml-team/chat")] {
            let body = shape.request.to_string().replace("\"?\"", &format!("\"{model}\""));
            let request = Request::post(format!("{prefix}{}", shape.path))
                .header("content-type", "application/json")
                .header("anthropic-version", "2023-06-01")
                .header("x-shape", index);
            let answer = ask(gateway.address, request.body(body.into()).unwrap()).await;
            let name = format!("{} for model {model:?}", shape.name);
            assert_eq!((answer.status, answer.text()), (StatusCode::OK, shape.answer.1.as_str()), "{name}");
            assert_eq!(answer.headers["content-type"], shape.answer.0, "{name}");
            let seen = endpoint.last();
            assert_eq!(seen.target, format!("/ml-team/one{}", shape.path), "{name}");
            let want = shape.request.to_string().replace("\"?\"", "\"qwen\"");
            assert!(seen.body == want, "{name}: {:?} is not {want}", seen.body);
            assert_eq!(seen.headers["anthropic-version"], "2023-06-01", "{name}");
        }
    }
}

#[tokio::test]
async fn errors_are_those_that_both_clients_read() {
    let gateway = Running::start(only(chat(vec![(1, vec![])]))).await;
    let cases = [
        ("/v1/chat/completions", r#"{"model":"no/such"}"#, 404, "not_found_error", "model_not_found"),
        ("/no/such/v1/messages", "{}", 404, "not_found_error", "model_not_found"),
        ("/v1/embeddings", "{}", 400, "invalid_request_error", "missing_model"),
        ("/ml-team/chat/v1/messages", "{}", 503, "overloaded_error", "no_endpoints"),
    ];
    for (path, body, status, kind, code) in cases {
        let answer = post(gateway.address, path, body).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.headers["content-type"], "application/json");
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((&body["type"], &body["error"]["type"]), (&json!("error"), &json!(kind)), "{path}");
        assert_eq!((&body["error"]["code"], &body["error"]["param"]), (&json!(code), &Value::Null), "{path}");
        assert!(!body["error"]["message"].as_str().unwrap().is_empty());
    }
}
