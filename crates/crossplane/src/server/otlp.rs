//! Spans as `opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest`.
//!
//! Field numbers are those of opentelemetry-proto 1.x; names of attributes follow the semantic conventions for RPC
//! and, for what only Modelplane has, start with `modelplane.`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use modelplane_core::document::write_bytes_field;

use super::service::SERVICE_NAME;
use super::traces::CallSpan;
use crate::wire::{fixed64, message, string, varint};

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u64 = 1;
/// `SPAN_KIND_SERVER`.
const SERVER: u64 = 2;
/// `STATUS_CODE_ERROR`.
const ERROR: u64 = 2;

/// One request for all these calls.
pub(super) fn encode(calls: &[CallSpan]) -> Vec<u8> {
    let mut out = Vec::with_capacity(calls.len() * 1024);
    message(&mut out, 1, |out| {
        message(out, 1, |out| {
            text(out, 1, "service.name", "modelplane-function");
            text(out, 1, "service.version", env!("CARGO_PKG_VERSION"));
        });
        message(out, 2, |out| {
            message(out, 1, |out| {
                string(out, 1, env!("CARGO_PKG_NAME"));
                string(out, 2, env!("CARGO_PKG_VERSION"));
            });
            calls.iter().for_each(|call| encode_call(out, call));
        });
    });
    out
}

/// A span of the call and one for each of its parts.
fn encode_call(out: &mut Vec<u8>, call: &CallSpan) {
    let begun = &call.begun;
    let span = Span {
        id: begun.context.span,
        parent: begun.parent,
        name: "RunFunction",
        kind: SERVER,
        start: begun.started,
        length: call.elapsed,
    };
    message(out, 2, |out| {
        span.write(out, &begun.context.trace);
        attributes(out, call);
        if let Some(fatal) = &call.answer.fatal {
            message(out, 15, |out| {
                string(out, 2, fatal);
                varint(out, 3, ERROR);
            });
        }
    });
    let timings = &call.answer.timings;
    let lengths = [("read", timings.read), ("compose", timings.compose), ("encode", timings.encode)];
    let mut start = begun.started;
    for ((name, length), id) in lengths.into_iter().zip(call.parts) {
        let part = Span { id, parent: Some(begun.context.span), name, kind: INTERNAL, start, length };
        message(out, 2, |out| part.write(out, &begun.context.trace));
        start += length;
    }
}

struct Span<'s> {
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    name: &'s str,
    kind: u64,
    start: SystemTime,
    length: Duration,
}

impl Span<'_> {
    fn write(&self, out: &mut Vec<u8>, trace: &[u8; 16]) {
        write_bytes_field(out, 1, trace);
        write_bytes_field(out, 2, &self.id);
        if let Some(parent) = &self.parent {
            write_bytes_field(out, 4, parent);
        }
        string(out, 5, self.name);
        varint(out, 6, self.kind);
        fixed64(out, 7, nanoseconds(self.start));
        fixed64(out, 8, nanoseconds(self.start + self.length));
    }
}

fn attributes(out: &mut Vec<u8>, call: &CallSpan) {
    let answer = &call.answer;
    let texts = [
        ("rpc.system", "grpc"),
        ("rpc.service", SERVICE_NAME),
        ("rpc.method", "RunFunction"),
        ("modelplane.composite.kind", &answer.kind),
        ("modelplane.composite.namespace", &answer.namespace),
        ("modelplane.composite.name", &answer.name),
        ("modelplane.request.tag", &answer.tag),
    ];
    texts.iter().for_each(|(key, value)| text(out, 9, key, value));
    let numbers = [
        ("modelplane.request.bytes", Some(call.request_bytes as u64)),
        ("modelplane.response.bytes", Some(answer.response_bytes as u64)),
        ("modelplane.selector.evaluations", Some(answer.work.selector_evaluations)),
        ("modelplane.replicas.placed", answer.work.replicas.map(|replicas| replicas.placed)),
        ("modelplane.replicas.unplaced", answer.work.replicas.map(|replicas| replicas.unplaced)),
    ];
    for (key, value) in numbers {
        if let Some(value) = value {
            attribute(out, 9, key, |out| varint(out, 3, value));
        }
    }
}

/// A string attribute; an empty one is left out.
fn text(out: &mut Vec<u8>, number: u32, key: &str, value: &str) {
    if !value.is_empty() {
        attribute(out, number, key, |out| string(out, 1, value));
    }
}

fn attribute(out: &mut Vec<u8>, number: u32, key: &str, value: impl FnOnce(&mut Vec<u8>)) {
    message(out, number, |out| {
        string(out, 1, key);
        message(out, 2, value);
    });
}

/// Since the epoch; a clock before it counts as at it.
fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
