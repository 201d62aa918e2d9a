//! Reads the events of a watch.

use futures_util::io::AsyncBufRead;
use futures_util::{AsyncBufReadExt as _, Stream, stream};
use kube::core::{Status, WatchEvent};
use serde_json::Value;

/// The most memory that a watch keeps for its next line.
const LINE_KEPT: usize = 1024;

/// The events of a watch, a line each, until it ends or its connection does: whether the server can be reached
/// shows when the watch is renewed.
///
/// Between two events it keeps at most [`LINE_KEPT`], since an engine has hundreds of watches of which most say
/// nothing for hours.
pub(super) fn events(
    reader: impl AsyncBufRead + Send + 'static,
) -> impl Stream<Item = Result<WatchEvent<Value>, kube::Error>> {
    stream::unfold((Box::pin(reader), Vec::new()), |(mut reader, mut line)| async move {
        line.clear();
        line.shrink_to(LINE_KEPT);
        if let Err(error) = reader.read_until(b'\n', &mut line).await {
            tracing::debug!(%error, "the connection of a watch ended");
            return None;
        }
        // A line without an end was cut off.
        line.ends_with(b"\n").then(|| (event(&line), (reader, line)))
    })
}

fn event(line: &[u8]) -> Result<WatchEvent<Value>, kube::Error> {
    serde_json::from_slice(line).map_err(|error| match serde_json::from_slice::<Status>(line) {
        Ok(status) => kube::Error::Api(Box::new(status)),
        Err(_) => kube::Error::SerdeError(error),
    })
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use futures_util::io::Cursor;
    use serde_json::json;

    use super::*;

    async fn read(text: String) -> Vec<Result<WatchEvent<Value>, kube::Error>> {
        events(Cursor::new(text.into_bytes())).collect().await
    }

    #[tokio::test]
    async fn each_line_is_an_event() {
        let large = json!({"metadata": {"name": "b"}, "data": "x".repeat(100_000)});
        let lines = [
            json!({"type": "ADDED", "object": {"metadata": {"name": "a"}}}),
            json!({"type": "MODIFIED", "object": large}),
            json!({"type": "DELETED", "object": {"metadata": {"name": "a"}}}),
        ];
        let found = read(lines.map(|line| format!("{line}\n")).concat()).await;
        let [Ok(WatchEvent::Added(first)), Ok(WatchEvent::Modified(second)), Ok(WatchEvent::Deleted(third))] =
            found.as_slice()
        else {
            panic!("three events, not {found:?}");
        };
        assert_eq!((&first["metadata"]["name"], &third["metadata"]["name"]), (&json!("a"), &json!("a")));
        assert_eq!(*second, large);
    }

    #[tokio::test]
    async fn a_line_that_is_cut_off_is_the_end() {
        let whole = json!({"type": "ADDED", "object": {}}).to_string();
        let found = read(format!("{whole}\n{}", &whole[..12])).await;
        assert!(matches!(found.as_slice(), [Ok(WatchEvent::Added(_))]), "{found:?}");
        assert!(read(String::new()).await.is_empty());
    }

    #[tokio::test]
    async fn what_is_no_event_is_an_error() {
        let status = json!({"kind": "Status", "status": "Failure", "code": 403, "message": "no"});
        let found = read(format!("{status}\nnonsense\n")).await;
        let [Err(kube::Error::Api(refused)), Err(kube::Error::SerdeError(_))] = found.as_slice() else {
            panic!("a refusal and an error, not {found:?}");
        };
        assert_eq!(refused.code, 403);
    }
}
