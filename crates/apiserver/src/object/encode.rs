//! The stored form of an object, and how answers are made from it without decoding.
//!
//! Stored bytes are canonical JSON: `{"apiVersion":…,"kind":…,"metadata":{…},…}` in this order, never with a
//! `resourceVersion`. An answer is a prepared head (which names the requested version), the revision, and the
//! stored bytes from inside `metadata` on.

use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use modelplane_store::Revision;
use serde::Deserialize;
use serde_json::{Map, Value};

const METADATA_OPENING: &[u8] = b"\"metadata\":{";
/// `apiVersion` and `kind` are bounded by validation; the opening is never further in than this.
const HEAD_LIMIT: usize = 1024;

/// Serializes an object for the store.
pub(crate) fn encode(object: &Value) -> Bytes {
    let mut out = Vec::with_capacity(4096);
    let empty = Map::new();
    let fields = object.as_object().unwrap_or(&empty);
    out.extend_from_slice(b"{\"apiVersion\":");
    write(&mut out, fields.get("apiVersion").unwrap_or(&Value::Null));
    out.extend_from_slice(b",\"kind\":");
    write(&mut out, fields.get("kind").unwrap_or(&Value::Null));
    out.push(b',');
    out.extend_from_slice(METADATA_OPENING);
    let metadata = fields.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    write_fields(&mut out, metadata, &["resourceVersion", "selfLink"], false);
    out.push(b'}');
    write_fields(&mut out, fields, &["apiVersion", "kind", "metadata"], true);
    out.push(b'}');
    // What grew has room to spare, and this is kept for as long as the object.
    Bytes::copy_from_slice(&out)
}

fn write_fields(out: &mut Vec<u8>, fields: &Map<String, Value>, skipped: &[&str], follows: bool) {
    let mut separate = follows;
    for (key, value) in fields {
        if skipped.contains(&key.as_str()) {
            continue;
        }
        if separate {
            out.push(b',');
        }
        separate = true;
        write(out, key);
        out.push(b':');
        write(out, value);
    }
}

fn write<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("writing a JSON value to memory cannot fail");
}

/// The bytes after `"metadata":{` of a stored object.
fn tail(stored: &[u8]) -> &[u8] {
    static OPENING: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(METADATA_OPENING));
    let searched = &stored[..stored.len().min(HEAD_LIMIT)];
    OPENING.find(searched).map_or(b"}}", |at| &stored[at + METADATA_OPENING.len()..])
}

/// The beginning of every answer of one kind and version.
#[derive(Debug, Clone)]
pub(crate) struct Head(Vec<u8>);

impl Head {
    /// For objects of this `apiVersion` and kind.
    pub(crate) fn new(api_version: &str, kind: &str) -> Head {
        let mut out = Vec::new();
        out.extend_from_slice(b"{\"apiVersion\":");
        write(&mut out, api_version);
        out.extend_from_slice(b",\"kind\":");
        write(&mut out, kind);
        out.push(b',');
        out.extend_from_slice(METADATA_OPENING);
        out.extend_from_slice(b"\"resourceVersion\":\"");
        Head(out)
    }

    /// Appends the answer for a stored object.
    pub(crate) fn append(&self, out: &mut Vec<u8>, stored: &[u8], revision: Revision) {
        let tail = tail(stored);
        out.reserve(self.0.len() + tail.len() + 24);
        out.extend_from_slice(&self.0);
        append_number(out, revision);
        out.push(b'"');
        if tail.first() != Some(&b'}') {
            out.push(b',');
        }
        out.extend_from_slice(tail);
    }

    /// The answer for a stored object.
    pub(crate) fn answer(&self, stored: &[u8], revision: Revision) -> Bytes {
        let mut out = Vec::with_capacity(self.0.len() + stored.len() + 24);
        self.append(&mut out, stored, revision);
        Bytes::from(out)
    }
}

/// Appends a number in decimal.
pub(crate) fn append_number(out: &mut Vec<u8>, number: u64) {
    use std::io::Write as _;
    write!(out, "{number}").expect("writing to memory cannot fail");
}

/// Decodes a stored object and sets its `resourceVersion`.
pub(crate) fn decode(stored: &[u8], revision: Revision) -> Value {
    let mut object: Value = serde_json::from_slice(stored).unwrap_or_default();
    super::metadata_mut(&mut object)
        .insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
    object
}

/// What most decisions need of a stored object, read without decoding the rest.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Glance {
    #[serde(default)]
    pub(crate) labels: Option<Map<String, Value>>,
    #[serde(default)]
    pub(crate) deletion_timestamp: Option<String>,
    #[serde(default)]
    pub(crate) uid: Option<String>,
}

impl Glance {
    /// Reads `metadata` of a stored object.
    pub(crate) fn of(stored: &[u8]) -> Glance {
        let tail = tail(stored);
        // The opening brace precedes the tail; a stored object always has one.
        let start = stored.len().saturating_sub(tail.len() + 1);
        let mut deserializer = serde_json::Deserializer::from_slice(&stored[start..]);
        Glance::deserialize(&mut deserializer).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_bytes_become_answers_by_splicing() {
        let object = json!({
            "kind": "Thing", "metadata": {"name": "a", "resourceVersion": "3", "labels": {"x": "y"}},
            "spec": {"metadata": {"name": "inner"}}, "apiVersion": "g.io/v1",
        });
        let stored = encode(&object);
        assert_eq!(
            std::str::from_utf8(&stored).unwrap(),
            r#"{"apiVersion":"g.io/v1","kind":"Thing","metadata":{"name":"a","labels":{"x":"y"}},"spec":{"metadata":{"name":"inner"}}}"#
        );
        let answer = Head::new("g.io/v2", "Thing").answer(&stored, 17);
        assert_eq!(
            std::str::from_utf8(&answer).unwrap(),
            r#"{"apiVersion":"g.io/v2","kind":"Thing","metadata":{"resourceVersion":"17","name":"a","labels":{"x":"y"}},"spec":{"metadata":{"name":"inner"}}}"#
        );
        let glance = Glance::of(&stored);
        assert_eq!((glance.labels.unwrap()["x"].as_str(), glance.deletion_timestamp), (Some("y"), None));
        assert_eq!(super::super::metadata_text(&decode(&stored, 4), "resourceVersion"), "4");
    }
}
