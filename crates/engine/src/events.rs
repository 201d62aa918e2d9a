//! Kubernetes Events about what the engine does, each of them at most once in a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::client::{ApiClient, Resource};
use crate::object::Stored;

/// How long the same event is not repeated.
const QUIET: Duration = Duration::from_secs(600);
/// Events that may wait to be written; more are dropped.
const BACKLOG: usize = 1024;
/// Longest message, in bytes (the API server's limit).
const LONGEST_MESSAGE: usize = 1024;
/// Who reports.
const COMPONENT: &str = "modelplane-engine";

/// How bad an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// For information.
    Normal,
    /// Something needs attention.
    Warning,
}

/// Records events; clones share what was recorded.
#[derive(Clone)]
pub struct Recorder {
    recent: Arc<Mutex<HashMap<[u8; 32], Instant>>>,
    writer: mpsc::Sender<Value>,
}

impl Recorder {
    /// A recorder that writes in the background until it is dropped.
    pub fn start(api: ApiClient) -> Self {
        let (writer, mut events) = mpsc::channel::<Value>(BACKLOG);
        tokio::spawn(async move {
            let resource = Resource::new("v1", "Event", "events", true);
            while let Some(event) = events.recv().await {
                if let Err(error) = api.create(&resource, &event).await {
                    tracing::debug!(%error, "an event could not be recorded");
                }
            }
        });
        Self { recent: Arc::default(), writer }
    }

    /// Records an event about an object, unless the same was recorded a short time ago.
    pub fn record(&self, object: &Stored, event_type: EventType, reason: &str, message: &str) {
        let digest = identity(object, event_type, reason, message);
        if !self.is_new(digest) {
            return;
        }
        let event = event(object, event_type, reason, message, digest);
        if self.writer.try_send(event).is_err() {
            tracing::debug!(object = %object.key, reason, "too many events; one was dropped");
        }
    }

    fn is_new(&self, digest: [u8; 32]) -> bool {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if recent.len() > 10_000 {
            recent.retain(|_, at| now.duration_since(*at) < QUIET);
        }
        match recent.get(&digest) {
            Some(at) if now.duration_since(*at) < QUIET => false,
            _ => {
                recent.insert(digest, now);
                true
            }
        }
    }
}

fn identity(object: &Stored, event_type: EventType, reason: &str, message: &str) -> [u8; 32] {
    let text = format!("{}\0{event_type:?}\0{reason}\0{message}", object.uid);
    Sha256::digest(text.as_bytes()).into()
}

fn event(object: &Stored, event_type: EventType, reason: &str, message: &str, digest: [u8; 32]) -> Value {
    let namespace = match object.key.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    let now = Timestamp::now();
    let suffix: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let name: String = object.key.name.chars().take(200).collect();
    let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut end = message.len().min(LONGEST_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{name}.{suffix}{:x}", now.as_millisecond()),
            "namespace": namespace,
        },
        "involvedObject": {
            "apiVersion": object.api_version(),
            "kind": object.key.kind,
            "namespace": object.key.namespace,
            "name": object.key.name,
            "uid": object.uid,
        },
        "type": match event_type { EventType::Normal => "Normal", EventType::Warning => "Warning" },
        "reason": reason,
        "message": &message[..end],
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_same_event_is_not_repeated_at_once() {
        let object = Stored::from_value(json!({"kind": "K", "metadata": {"name": "a", "uid": "u"}})).unwrap();
        let (writer, mut events) = mpsc::channel(8);
        let recorder = Recorder { recent: Arc::default(), writer };
        let long = "é".repeat(LONGEST_MESSAGE);
        for message in ["one", "two", "one", long.as_str()] {
            recorder.record(&object, EventType::Normal, "R", message);
        }
        let mut messages = Vec::new();
        while let Ok(event) = events.try_recv() {
            messages.push(event["message"].as_str().unwrap().len());
        }
        assert_eq!(messages, [3, 3, LONGEST_MESSAGE]);
    }
}
