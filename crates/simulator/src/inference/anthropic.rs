//! The Anthropic Messages API, which vLLM serves as well.

use serde_json::{Value, json};

use super::Server;
use super::answers::{Answer, conversation, identifier};
use super::openai::{Refusal, Reply};

/// `POST /v1/messages`.
pub(super) fn message(server: &Server, request: &Value) -> Result<Reply, Refusal> {
    if !request["messages"].is_array() {
        let error = json!({"type": "invalid_request_error", "message": "messages: Field required"});
        return Err(Refusal { status: 400, body: json!({"type": "error", "error": error}) });
    }
    let (all, last) = conversation(&request["messages"]);
    let answer = offered_call(request)
        .unwrap_or_else(|| Answer::to_prompt(server, &last, request["max_tokens"].as_u64()));
    let usage = answer.usage(&all);
    let id = identifier("msg_", request);
    let (block, stop_reason) = match &answer {
        Answer::Text(_) => (json!({"type": "text", "text": answer.text()}), "end_turn"),
        Answer::Call { name, arguments } => {
            let input: Value = serde_json::from_str(arguments).unwrap_or_default();
            let block = json!({"type": "tool_use", "id": identifier("toolu_", request), "name": name, "input": input});
            (block, "tool_use")
        }
    };
    let document = |content: Value, stop: Value, output: usize| {
        json!({
            "id": id, "type": "message", "role": "assistant", "model": server.model, "content": content,
            "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": usage.prompt, "output_tokens": output},
        })
    };
    if request["stream"] != true {
        return Ok(Reply::Document(document(json!([block]), json!(stop_reason), usage.completion)));
    }
    let (empty, deltas): (Value, Vec<Value>) = match &answer {
        Answer::Text(tokens) => (
            json!({"type": "text", "text": ""}),
            tokens.iter().map(|token| json!({"type": "text_delta", "text": token})).collect(),
        ),
        Answer::Call { arguments, .. } => {
            let mut empty = block.clone();
            empty["input"] = json!({});
            (empty, vec![json!({"type": "input_json_delta", "partial_json": arguments})])
        }
    };
    let mut events = vec![
        ("message_start", json!({"message": document(json!([]), Value::Null, 1)})),
        ("content_block_start", json!({"index": 0, "content_block": empty})),
    ];
    events
        .extend(deltas.into_iter().map(|delta| ("content_block_delta", json!({"index": 0, "delta": delta}))));
    events.extend([
        ("content_block_stop", json!({"index": 0})),
        (
            "message_delta",
            json!({
                "delta": {"stop_reason": stop_reason, "stop_sequence": null},
                "usage": {"output_tokens": usage.completion},
            }),
        ),
        ("message_stop", json!({})),
    ]);
    let named = events.into_iter().map(|(name, mut event)| {
        event["type"] = json!(name);
        (name, event.to_string())
    });
    Ok(Reply::Stream(named.collect()))
}

/// A call of the tool the request insists on, or of the first one it offers; none once a tool has answered.
fn offered_call(request: &Value) -> Option<Answer> {
    let last = request["messages"].as_array()?.last()?;
    let has_result = last["content"]
        .as_array()
        .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"));
    if has_result || request["tool_choice"]["type"] == "none" {
        return None;
    }
    let wanted = request["tool_choice"]["name"].as_str();
    let mut tools = request["tools"].as_array()?.iter();
    let tool = tools.find(|tool| wanted.is_none_or(|wanted| tool["name"] == wanted))?;
    Some(Answer::call(tool["name"].as_str()?, &tool["input_schema"]))
}
