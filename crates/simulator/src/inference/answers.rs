//! What every API's answer is made of: the text, its tokens, identifiers and embeddings, all from the request alone.

use serde_json::{Map, Value, json};

use super::Server;

/// What a simulated model has to say.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// Text, in tokens that join to it.
    Text(Vec<String>),
    /// A call of a function the request offers.
    Call {
        /// The function.
        name: String,
        /// Its arguments, as JSON.
        arguments: String,
    },
}

/// The counts of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) prompt: usize,
    pub(super) completion: usize,
}

impl Answer {
    /// The answer to a prompt: what it said and who answers, cut after `limit` tokens.
    pub(super) fn to_prompt(server: &Server, prompt: &str, limit: Option<u64>) -> Self {
        let said: Vec<&str> = prompt.split_whitespace().take(24).collect();
        let text = format!(
            "This is a simulated answer of {} from node {} of cluster {}. You said: {}",
            server.model,
            server.node,
            server.cluster,
            said.join(" ")
        );
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX).max(1));
        Self::Text(tokens(&text).take(limit).map(str::to_owned).collect())
    }

    /// A call of a function with the arguments its schema requires.
    pub(super) fn call(name: &str, parameters: &Value) -> Self {
        let mut arguments = Map::new();
        for required in parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            arguments.insert(required.to_owned(), example(&parameters["properties"][required]));
        }
        Self::Call { name: name.to_owned(), arguments: Value::Object(arguments).to_string() }
    }

    /// The whole text, empty for a call.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(tokens) => tokens.concat(),
            Self::Call { .. } => String::new(),
        }
    }

    /// The counts, for a prompt of this text.
    pub(super) fn usage(&self, prompt: &str) -> Usage {
        let completion = match self {
            Self::Text(tokens) => tokens.len(),
            Self::Call { name, arguments } => tokens(name).count() + tokens(arguments).count(),
        };
        Usage { prompt: tokens(prompt).count(), completion }
    }
}

/// Words with the space after them: the simulation's tokens.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// A value of the type a schema names.
fn example(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("simulated"),
    }
}

/// The text of a message's content: text itself, or the text of its parts.
pub(super) fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join(" ")
        }
        _ => String::new(),
    }
}

/// The text of all messages, and that of the last one a user wrote.
pub(super) fn conversation(messages: &Value) -> (String, String) {
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<String> = messages.iter().map(|message| content_text(&message["content"])).collect();
    let last = messages.iter().rposition(|message| message["role"] == "user");
    (texts.join(" "), last.map(|index| texts[index].clone()).unwrap_or_default())
}

/// An identifier that depends on the request alone.
pub(super) fn identifier(prefix: &str, request: &Value) -> String {
    format!("{prefix}{:016x}", hash(&request.to_string()))
}

/// A unit vector that depends on the text alone.
pub(super) fn embedding(text: &str, dimensions: usize) -> Vec<f32> {
    let raw: Vec<f32> = (0..dimensions)
        .map(|index| {
            let bits = hash(&format!("{index}:{text}")) >> 40;
            bits as f32 / (1u32 << 23) as f32 - 1.0
        })
        .collect();
    let length = raw.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    raw.into_iter().map(|value| value / length).collect()
}

/// FNV-1a, finished so that close texts differ in all bits.
fn hash(text: &str) -> u64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}
