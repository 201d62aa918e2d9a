//! Writing protobuf messages whose length is known once they are written.

use modelplane_core::document::{write_bytes_field, write_tag, write_varint};

/// Writes an entry of a map from strings to messages.
pub(crate) fn entry(out: &mut Vec<u8>, number: u32, key: &str, value: impl FnOnce(&mut Vec<u8>)) {
    message(out, number, |out| {
        string(out, 1, key);
        message(out, 2, value);
    });
}

/// Writes a sub-message with its length in front.
pub(crate) fn message(out: &mut Vec<u8>, number: u32, content: impl FnOnce(&mut Vec<u8>)) {
    write_tag(out, number, 2);
    let start = out.len();
    content(out);
    let mut prefix = Vec::with_capacity(5);
    write_varint(&mut prefix, (out.len() - start) as u64);
    out.splice(start..start, prefix);
}

/// Writes a string unless it is empty, which is the default.
pub(crate) fn string(out: &mut Vec<u8>, number: u32, text: &str) {
    if !text.is_empty() {
        write_bytes_field(out, number, text.as_bytes());
    }
}

/// Writes an integer or enumeration.
pub(crate) fn varint(out: &mut Vec<u8>, number: u32, value: u64) {
    write_tag(out, number, 0);
    write_varint(out, value);
}

/// Writes a `fixed64`.
pub(crate) fn fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    write_tag(out, number, 1);
    out.extend_from_slice(&value.to_le_bytes());
}
