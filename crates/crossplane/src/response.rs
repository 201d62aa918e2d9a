//! `RunFunctionResponse` on the wire.

use modelplane_core::contract::{
    Condition, ConditionStatus, Desired, Event, Match, Observed, Ready, Requirement, Resource, Severity,
};
use modelplane_core::document::{Field, Reader, map_entry, write_bytes_field};

use crate::request::{Capability, Request};
use crate::wire::{entry, message, string, varint};

/// Largest response Crossplane reads: its gRPC client keeps the default limit of 4 MiB.
pub const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;

/// How long Crossplane may reuse a response, in seconds.
const TTL_SECONDS: u64 = 60;

/// `SEVERITY_FATAL`; the core cannot say it, an error can.
const FATAL: u64 = 1;

/// Encodes what a composition wants as the response to `request`.
pub(crate) fn encode(request: &Request<'_>, desired: &Desired<'_>) -> Vec<u8> {
    let size: usize = desired.resources.values().map(|resource| resource.body.bytes().len() + 128).sum();
    let mut out = Vec::with_capacity(size + 1024);
    meta(&mut out, request.tag);
    message(&mut out, 2, |out| state(out, &request.observed, desired));
    for event in &desired.events {
        let severity = match event.severity {
            Severity::Warning => 2,
            Severity::Normal => 3,
        };
        result(&mut out, severity, event);
    }
    without_capabilities(&mut out, request, desired);
    if let Some(context) = request.context {
        write_bytes_field(&mut out, 4, context);
    }
    if !desired.requirements.is_empty() {
        message(&mut out, 5, |out| {
            for (key, requirement) in &desired.requirements {
                entry(out, 2, key, |out| selector(out, requirement));
            }
        });
    }
    for condition in &desired.conditions {
        message(&mut out, 6, |out| encode_condition(out, condition));
    }
    out
}

/// Encodes a refusal: a fatal result, and the desired state as it came. Crossplane then leaves
/// everything as it is.
pub(crate) fn encode_fatal(request: &Request<'_>, text: &str) -> Vec<u8> {
    let desired = Desired::starting_from(&request.observed);
    let mut out = encode(request, &desired);
    result(&mut out, FATAL, &Event { severity: Severity::Warning, reason: None, message: text.to_owned() });
    out
}

/// Encodes a refusal to send an answer of `size` bytes. It carries nothing else: Crossplane uses nothing of an answer
/// with a fatal result, and what earlier steps want may itself be what is too large.
pub(crate) fn encode_too_large(request: &Request<'_>, size: usize) -> (Vec<u8>, String) {
    let who = request.observed.composite.identity();
    let text = format!(
        "{who}: the answer takes {}, Crossplane reads at most {} from a function{}; nothing was changed; {}",
        mebibytes(size),
        mebibytes(MAX_RESPONSE_BYTES),
        match passed_on(request) {
            0 => String::new(),
            bytes => format!(" ({} of it come from earlier pipeline steps)", mebibytes(bytes)),
        },
        remedy(who.kind),
    );
    let mut out = Vec::with_capacity(text.len() + 64);
    meta(&mut out, request.tag);
    result(&mut out, FATAL, &Event { severity: Severity::Warning, reason: None, message: text.clone() });
    (out, text)
}

/// How many bytes of the answer are what earlier steps want, and the context.
fn passed_on(request: &Request<'_>) -> usize {
    let documents = request.observed.desired.values().chain(&request.observed.desired_composite);
    let size = |resource: &Resource<'_>| resource.document.as_struct_bytes().map_or(0, <[u8]>::len);
    documents.map(size).sum::<usize>() + request.context.map_or(0, <[u8]>::len)
}

/// What makes the answer of a kind smaller.
fn remedy(kind: &str) -> &'static str {
    match kind {
        "ModelCache" => "narrow spec.clusterSelector, or use several caches that select fewer clusters each",
        "ModelDeployment" => "lower spec.replicas, or use several deployments",
        "ModelService" => "select fewer endpoints, or use several services",
        _ => "make the object smaller, or have earlier pipeline steps want less",
    }
}

fn mebibytes(bytes: usize) -> String {
    format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0))
}

/// Says as events what Crossplane would overlook: it tells which of our fields it does not honour.
fn without_capabilities(out: &mut Vec<u8>, request: &Request<'_>, desired: &Desired<'_>) {
    let mut warn = |message| result(out, 2, &Event { severity: Severity::Warning, reason: None, message });
    if request.capabilities.lack(Capability::RequiredResources) && !desired.requirements.is_empty() {
        let keys: Vec<&str> = desired.requirements.keys().map(AsRef::as_ref).collect();
        warn(format!(
            "this Crossplane does not fetch required resources, so {} stay unknown and what exists is held; use \
             v2.3 or later",
            keys.join(", ")
        ));
    }
    if request.capabilities.lack(Capability::Conditions) {
        for condition in &desired.conditions {
            if let (ConditionStatus::False, Some(text)) = (condition.status, &condition.message) {
                warn(format!("{} is not true: {}: {text}", condition.condition_type, condition.reason));
            }
        }
    }
}

fn meta(out: &mut Vec<u8>, tag: &str) {
    message(out, 1, |out| {
        string(out, 1, tag);
        message(out, 2, |out| varint(out, 1, TTL_SECONDS));
    });
}

fn state(out: &mut Vec<u8>, observed: &Observed<'_>, desired: &Desired<'_>) {
    let earlier = observed.desired_composite.as_ref();
    if earlier.is_some() || desired.status.is_some() || desired.ready != Ready::Unspecified {
        message(out, 1, |out| composite(out, earlier, desired));
    }
    for (key, resource) in &desired.resources {
        entry(out, 2, key, |out| {
            write_bytes_field(out, 1, resource.body.bytes());
            if let Some(earlier) = observed.desired.get(key.as_ref()) {
                connection_details(out, earlier);
            }
            ready(out, resource.ready);
        });
    }
}

/// The composite as earlier steps want it, with this step's status in place of theirs.
fn composite(out: &mut Vec<u8>, earlier: Option<&Resource<'_>>, desired: &Desired<'_>) {
    message(out, 1, |out| {
        let before = earlier.and_then(|resource| resource.document.as_struct_bytes()).unwrap_or_default();
        let mut reader = Reader::new(before);
        while let Ok(Some((number, field))) = reader.next_field() {
            let (1, Field::Bytes(bytes)) = (number, field) else { continue };
            let replaced =
                desired.status.is_some() && map_entry(bytes).is_ok_and(|(key, _)| key == b"status");
            if !replaced {
                write_bytes_field(out, 1, bytes);
            }
        }
        if let Some(status) = &desired.status {
            entry(out, 1, "status", |out| write_bytes_field(out, 5, status.bytes()));
        }
    });
    if let Some(earlier) = earlier {
        connection_details(out, earlier);
    }
    ready(out, desired.ready);
}

fn connection_details(out: &mut Vec<u8>, resource: &Resource<'_>) {
    for (key, value) in &resource.connection_details {
        message(out, 2, |out| {
            string(out, 1, key);
            write_bytes_field(out, 2, value);
        });
    }
}

fn ready(out: &mut Vec<u8>, ready: Ready) {
    match ready {
        Ready::Unspecified => {}
        Ready::True => varint(out, 3, 1),
        Ready::False => varint(out, 3, 2),
    }
}

fn selector(out: &mut Vec<u8>, requirement: &Requirement) {
    string(out, 1, &requirement.api_version);
    string(out, 2, &requirement.kind);
    match &requirement.select {
        Match::All => {}
        Match::Name(name) => write_bytes_field(out, 3, name.as_bytes()),
        Match::Labels(labels) => message(out, 4, |out| {
            for (key, value) in labels {
                message(out, 1, |out| {
                    string(out, 1, key);
                    string(out, 2, value);
                });
            }
        }),
    }
    if let Some(namespace) = &requirement.namespace {
        write_bytes_field(out, 5, namespace.as_bytes());
    }
}

fn encode_condition(out: &mut Vec<u8>, condition: &Condition) {
    string(out, 1, &condition.condition_type);
    let status = match condition.status {
        ConditionStatus::Unknown => 1,
        ConditionStatus::True => 2,
        ConditionStatus::False => 3,
    };
    varint(out, 2, status);
    string(out, 3, &condition.reason);
    if let Some(text) = &condition.message {
        write_bytes_field(out, 4, text.as_bytes());
    }
}

fn result(out: &mut Vec<u8>, severity: u64, event: &Event) {
    message(out, 3, |out| {
        varint(out, 1, severity);
        string(out, 2, &event.message);
        if let Some(reason) = &event.reason {
            write_bytes_field(out, 3, reason.as_bytes());
        }
    });
}
