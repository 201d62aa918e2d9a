//! Simulated inference engines: an HTTP listener for each serving pod that answers as vLLM would, but deterministically.
//!
//! [`answers`] makes the answers from the requests; [`http`] serves them, streamed where asked for.

mod answers;
mod anthropic;
mod http;
mod openai;

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::settings::Settings;
use crate::world::{list, text};

/// The engine of one pod; it ends when dropped.
pub struct Engine {
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// Who answers.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// The model's name in requests and answers.
    pub(crate) model: String,
    /// The node it runs on.
    pub(crate) node: String,
    /// The cluster it runs on.
    pub(crate) cluster: String,
}

impl Engine {
    /// Starts an engine for a pod on a free port of loopback.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub(crate) async fn start(
        pod: &Value,
        cluster: &str,
        settings: watch::Receiver<Settings>,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let server = Arc::new(Server {
            model: model_name(pod),
            node: text(pod, "/spec/nodeName").to_owned(),
            cluster: cluster.to_owned(),
        });
        let task = tokio::spawn(http::serve(listener, server, settings));
        Ok(Self { address, task })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The name under which an engine's arguments say that it serves its model.
fn model_name(pod: &Value) -> String {
    let mut model = None;
    for container in list(pod, "/spec/containers") {
        let words =
            list(container, "/command").iter().chain(list(container, "/args")).filter_map(Value::as_str);
        let mut words = words.flat_map(str::split_whitespace).peekable();
        while let Some(word) = words.next() {
            let (flag, inline) = match word.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (word, None),
            };
            if !matches!(flag, "--served-model-name" | "--model" | "--model-path") {
                continue;
            }
            let Some(value) = inline.or_else(|| words.next()) else { continue };
            if flag == "--served-model-name" {
                return value.to_owned();
            }
            model = Some(value.to_owned());
        }
    }
    model.unwrap_or_else(|| "simulated".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::model_name;

    #[test]
    fn the_model_has_the_name_the_engine_serves_it_under() {
        for (arguments, expected) in [
            (json!(["--model=Qwen/Qwen3-8B", "--served-model-name=qwen"]), "qwen"),
            (json!(["--served-model-name", "qwen", "--model", "x"]), "qwen"),
            (json!(["--model", "Qwen/Qwen3-8B"]), "Qwen/Qwen3-8B"),
            (json!(["vllm serve --model a/b"]), "a/b"),
            (json!(["--model"]), "simulated"),
            (json!([]), "simulated"),
        ] {
            let pod = json!({"spec": {"containers": [{"args": arguments}]}});
            assert_eq!(model_name(&pod), expected, "{arguments}");
        }
    }
}
