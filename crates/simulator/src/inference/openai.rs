//! The OpenAI API: chat completions, completions, responses, embeddings and models, and their streams.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Server;
use super::answers::{Answer, Usage, content_text, conversation, embedding, identifier};

/// Seconds since the epoch that answers carry: fixed, so that equal requests get equal answers.
const CREATED: u64 = 1_750_000_000;

/// An answer as one document, or as the events of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    /// One document.
    Document(Value),
    /// Server-sent events: the event's name, empty if it has none, and its data.
    Stream(Vec<(&'static str, String)>),
}

/// A request the API refuses, with the status to say it by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Refusal {
    pub(super) fn new(status: u16, kind: &str, message: String) -> Self {
        let error = json!({"message": message, "type": kind, "param": null, "code": status});
        Self { status, body: json!({ "error": error }) }
    }
}

/// `GET /v1/models`.
pub(super) fn models(server: &Server) -> Value {
    let model = json!({
        "id": server.model, "object": "model", "created": CREATED, "owned_by": "modelplane", "root": server.model,
    });
    json!({"object": "list", "data": [model]})
}

/// `POST /v1/chat/completions`.
pub(super) fn chat(server: &Server, request: &Value) -> Result<Reply, Refusal> {
    check_model(server, request)?;
    if !request["messages"].is_array() {
        return Err(missing("messages"));
    }
    let (all, last) = conversation(&request["messages"]);
    let limit = request["max_completion_tokens"].as_u64().or_else(|| request["max_tokens"].as_u64());
    let answer = offered_call(request).unwrap_or_else(|| Answer::to_prompt(server, &last, limit));
    let usage = usage(answer.usage(&all));
    let id = identifier("chatcmpl-", request);
    if !streams(request) {
        let message = match &answer {
            Answer::Text(_) => json!({"role": "assistant", "content": answer.text()}),
            Answer::Call { .. } => {
                json!({"role": "assistant", "content": null, "tool_calls": [tool_call(&answer, &id)]})
            }
        };
        let choice =
            json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish(&answer)});
        return Ok(Reply::Document(json!({
            "id": id, "object": "chat.completion", "created": CREATED, "model": server.model, "choices": [choice],
            "usage": usage,
        })));
    }
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": CREATED, "model": server.model, "choices": choices,
        });
        if wants_usage(request) {
            chunk["usage"] = usage;
        }
        ("", chunk.to_string())
    };
    let delta = |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let mut events =
        vec![chunk(delta(json!({"role": "assistant", "content": ""}), Value::Null), Value::Null)];
    match &answer {
        Answer::Text(tokens) => events.extend(
            tokens.iter().map(|token| chunk(delta(json!({"content": token}), Value::Null), Value::Null)),
        ),
        Answer::Call { .. } => {
            let mut call = tool_call(&answer, &id);
            call["index"] = json!(0);
            events.push(chunk(delta(json!({"tool_calls": [call]}), Value::Null), Value::Null));
        }
    }
    events.push(chunk(delta(json!({}), json!(finish(&answer))), Value::Null));
    if wants_usage(request) {
        events.push(chunk(json!([]), usage));
    }
    events.push(("", "[DONE]".to_owned()));
    Ok(Reply::Stream(events))
}

/// `POST /v1/completions`.
pub(super) fn completion(server: &Server, request: &Value) -> Result<Reply, Refusal> {
    check_model(server, request)?;
    let prompt = match &request["prompt"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.first().and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => return Err(missing("prompt")),
    };
    let answer = Answer::to_prompt(server, &prompt, request["max_tokens"].as_u64());
    let usage = usage(answer.usage(&prompt));
    let id = identifier("cmpl-", request);
    let document = |text: &str, finish: Value| {
        let choice = json!({"index": 0, "text": text, "logprobs": null, "finish_reason": finish});
        json!({
            "id": id, "object": "text_completion", "created": CREATED, "model": server.model, "choices": [choice],
        })
    };
    if !streams(request) {
        let mut document = document(&answer.text(), json!("stop"));
        document["usage"] = usage;
        return Ok(Reply::Document(document));
    }
    let Answer::Text(tokens) = &answer else { return Ok(Reply::Stream(Vec::new())) };
    let mut events: Vec<_> =
        tokens.iter().map(|token| ("", document(token, Value::Null).to_string())).collect();
    events.push(("", document("", json!("stop")).to_string()));
    if wants_usage(request) {
        let mut last = document("", Value::Null);
        last["choices"] = json!([]);
        last["usage"] = usage;
        events.push(("", last.to_string()));
    }
    events.push(("", "[DONE]".to_owned()));
    Ok(Reply::Stream(events))
}

/// `POST /v1/responses`.
pub(super) fn response(server: &Server, request: &Value) -> Result<Reply, Refusal> {
    check_model(server, request)?;
    let prompt = match &request["input"] {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.last().map(|item| content_text(&item["content"])).unwrap_or_default(),
        _ => return Err(missing("input")),
    };
    let answer = Answer::to_prompt(server, &prompt, request["max_output_tokens"].as_u64());
    let counts = answer.usage(&prompt);
    let (id, item_id) = (identifier("resp_", request), identifier("msg_", request));
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let item = |status: &str, content: Value| json!({"id": item_id, "type": "message", "role": "assistant", "status": status, "content": content});
    let document = |status: &str, output: Value, usage: Value| {
        json!({
            "id": id, "object": "response", "created_at": CREATED, "model": server.model, "status": status,
            "output": output, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "usage": usage,
            "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "temperature": 1.0,
            "top_p": 1.0,
        })
    };
    let text = answer.text();
    let done_item = item("completed", json!([part(&text)]));
    let usage = json!({
        "input_tokens": counts.prompt, "output_tokens": counts.completion,
        "total_tokens": counts.prompt + counts.completion,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
    });
    let done = document("completed", json!([done_item]), usage);
    if !streams(request) {
        return Ok(Reply::Document(done));
    }
    let started = document("in_progress", json!([]), Value::Null);
    let place = json!({"item_id": item_id, "output_index": 0, "content_index": 0});
    let with_place = |mut event: Value| {
        for (key, value) in place.as_object().into_iter().flatten() {
            event[key] = value.clone();
        }
        event
    };
    let mut events = vec![
        ("response.created", json!({"response": started})),
        ("response.in_progress", json!({"response": started})),
        ("response.output_item.added", json!({"output_index": 0, "item": item("in_progress", json!([]))})),
        ("response.content_part.added", with_place(json!({"part": part("")}))),
    ];
    if let Answer::Text(tokens) = &answer {
        events.extend(tokens.iter().map(|token| {
            ("response.output_text.delta", with_place(json!({"delta": token, "logprobs": []})))
        }));
    }
    events.extend([
        ("response.output_text.done", with_place(json!({"text": text, "logprobs": []}))),
        ("response.content_part.done", with_place(json!({"part": part(&text)}))),
        ("response.output_item.done", json!({"output_index": 0, "item": done_item})),
        ("response.completed", json!({"response": done})),
    ]);
    let numbered = events.into_iter().enumerate().map(|(number, (name, mut event))| {
        event["type"] = json!(name);
        event["sequence_number"] = json!(number);
        (name, event.to_string())
    });
    Ok(Reply::Stream(numbered.collect()))
}

/// `POST /v1/embeddings`.
pub(super) fn embeddings(server: &Server, request: &Value) -> Result<Reply, Refusal> {
    check_model(server, request)?;
    let inputs: Vec<String> = match &request["input"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => {
            items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
        }
        _ => return Err(missing("input")),
    };
    let dimensions = request["dimensions"].as_u64().unwrap_or(64).clamp(1, 4096) as usize;
    let in_base64 = request["encoding_format"] == "base64";
    let data: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(index, input)| {
            let vector = embedding(input, dimensions);
            let embedding = if in_base64 {
                let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
                json!(STANDARD.encode(bytes))
            } else {
                json!(vector)
            };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    let tokens: usize = inputs.iter().map(|input| input.split_whitespace().count()).sum();
    Ok(Reply::Document(json!({
        "object": "list", "model": server.model, "data": data,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    })))
}

/// A request for another model is refused as vLLM does it.
fn check_model(server: &Server, request: &Value) -> Result<(), Refusal> {
    match request["model"].as_str() {
        // A request may leave the model out; vLLM then serves the one it has.
        None => Ok(()),
        Some(model) if model == server.model || server.model == "simulated" => Ok(()),
        Some(model) => {
            Err(Refusal::new(404, "NotFoundError", format!("The model `{model}` does not exist.")))
        }
    }
}

fn missing(field: &str) -> Refusal {
    Refusal::new(400, "BadRequestError", format!("{field} is missing or has the wrong type"))
}

fn streams(request: &Value) -> bool {
    request["stream"] == true
}

fn wants_usage(request: &Value) -> bool {
    request["stream_options"]["include_usage"] == true
}

fn usage(counts: Usage) -> Value {
    json!({
        "prompt_tokens": counts.prompt, "completion_tokens": counts.completion,
        "total_tokens": counts.prompt + counts.completion, "prompt_tokens_details": {"cached_tokens": 0},
    })
}

fn finish(answer: &Answer) -> &'static str {
    match answer {
        Answer::Text(_) => "stop",
        Answer::Call { .. } => "tool_calls",
    }
}

fn tool_call(answer: &Answer, id: &str) -> Value {
    let Answer::Call { name, arguments } = answer else { return Value::Null };
    json!({
        "id": id.replace("chatcmpl-", "call_"), "type": "function",
        "function": {"name": name, "arguments": arguments},
    })
}

/// A call of the function the request insists on, or of the first one it offers; none once a tool has answered.
fn offered_call(request: &Value) -> Option<Answer> {
    let last = request["messages"].as_array()?.last()?;
    if last["role"] == "tool" || request["tool_choice"] == "none" {
        return None;
    }
    let wanted = request["tool_choice"]["function"]["name"].as_str();
    let tools = request["tools"].as_array()?.iter().map(|tool| &tool["function"]);
    let function =
        tools.into_iter().find(|function| wanted.is_none_or(|wanted| function["name"] == wanted))?;
    Some(Answer::call(function["name"].as_str()?, &function["parameters"]))
}
