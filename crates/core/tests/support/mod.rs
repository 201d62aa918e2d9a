//! Helpers of the integration tests: requests in JSON, and the recorded cases beside the repository.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses some of it")]
#![allow(clippy::print_stderr, reason = "what is skipped is said loudly")]
#![allow(clippy::allow_attributes, reason = "an expectation would fail where everything is used")]

pub mod fixed_point;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use modelplane_core::contract::{Desired, Observed, Ready, Resource};
use modelplane_core::document::{Document, encode};
use serde_json::Value;

/// A request in wire form, which an [`Observed`] borrows.
#[derive(Debug, Default, Clone)]
pub struct Request {
    composite: Vec<u8>,
    resources: BTreeMap<String, Vec<u8>>,
    desired: BTreeMap<String, (Vec<u8>, Ready)>,
    desired_composite: Option<(Vec<u8>, Ready)>,
    required: BTreeMap<String, Vec<Vec<u8>>>,
}

impl Request {
    /// Reads a `RunFunctionRequest` in protobuf JSON, as far as compositions see it.
    pub fn from_json(request: &Value) -> Self {
        let objects = |entries: &Value| -> Vec<(String, Value)> {
            let entries = entries.as_object().into_iter().flatten();
            entries.map(|(key, entry)| (key.clone(), entry.clone())).collect()
        };
        let resources = objects(&request["observed"]["resources"]);
        let desired = objects(&request["desired"]["resources"]);
        let mut required = objects(&request["extraResources"]);
        required.extend(objects(&request["requiredResources"]));
        let items = |entry: &Value| -> Vec<Vec<u8>> {
            let items = entry["items"].as_array().into_iter().flatten();
            items.map(|item| wire(&item["resource"])).collect()
        };
        let composite = &request["desired"]["composite"];
        Self {
            desired_composite: composite
                .is_object()
                .then(|| (wire(&composite["resource"]), ready(&composite["ready"]))),
            composite: wire(&request["observed"]["composite"]["resource"]),
            resources: resources.into_iter().map(|(key, entry)| (key, wire(&entry["resource"]))).collect(),
            desired: desired
                .into_iter()
                .map(|(key, entry)| (key, (wire(&entry["resource"]), ready(&entry["ready"]))))
                .collect(),
            required: required.into_iter().map(|(key, entry)| (key, items(&entry))).collect(),
        }
    }

    /// Replaces the composite.
    pub fn set_composite(&mut self, composite: &Value) {
        self.composite = wire(composite);
    }

    /// Replaces an observed resource; `None` takes it away.
    pub fn set_resource(&mut self, key: &str, resource: Option<&Value>) {
        self.resources.remove(key);
        self.resources.extend(resource.map(|resource| (key.to_owned(), wire(resource))));
    }

    /// Replaces what was fetched for a requirement; `None` means nobody has looked yet.
    pub fn set_required(&mut self, key: &str, items: Option<&[Value]>) {
        self.required.remove(key);
        self.required.extend(items.map(|items| (key.to_owned(), items.iter().map(wire).collect())));
    }

    /// Keys of the observed resources.
    pub fn resource_keys(&self) -> impl Iterator<Item = &String> {
        self.resources.keys()
    }

    /// What a composition is given.
    pub fn observed(&self) -> Observed<'_> {
        Observed {
            composite: Resource::new(Document::from_struct(&self.composite)),
            resources: self
                .resources
                .iter()
                .map(|(key, bytes)| (key.as_str(), Resource::new(Document::from_struct(bytes))))
                .collect(),
            desired: self.desired.iter().map(|(key, entry)| (key.as_str(), declared(entry))).collect(),
            desired_composite: self.desired_composite.as_ref().map(declared),
            required: self
                .required
                .iter()
                .map(|(key, items)| {
                    let items = items.iter().map(|bytes| Resource::new(Document::from_struct(bytes)));
                    (key.as_str(), items.collect())
                })
                .collect(),
        }
    }
}

/// The body of a desired resource.
pub fn body(desired: &Desired<'_>, key: &str) -> Value {
    let resource = desired.resources.get(key).unwrap_or_else(|| panic!("no desired resource {key}"));
    resource.body.document().to_json().expect("bodies are JSON objects")
}

/// The recorded data beside the repository; `None`, loudly, where there is none.
pub fn conformance() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: there is no recorded data at {}", folder.display());
    None
}

/// Every recorded case of a file of lines, or of a folder of files and folders.
pub fn cases(path: &Path) -> Vec<Value> {
    let parse = |text: &str| -> Value { serde_json::from_str(text).expect("recorded cases are JSON") };
    let read = |path: &Path| std::fs::read_to_string(path).expect("recorded cases can be read");
    if path.is_dir() {
        let entries = std::fs::read_dir(path).expect("recorded folders can be read");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        return paths.iter().flat_map(|path| cases(path)).collect();
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl") => read(path).lines().map(parse).collect(),
        Some("json") => vec![parse(&read(path))],
        _ => Vec::new(),
    }
}

/// A resource as an earlier step wants it.
fn declared((bytes, ready): &(Vec<u8>, Ready)) -> Resource<'_> {
    Resource { ready: *ready, ..Resource::new(Document::from_struct(bytes)) }
}

fn wire(object: &Value) -> Vec<u8> {
    if object.is_null() {
        return Vec::new();
    }
    encode(object).expect("recorded resources are objects")
}

fn ready(value: &Value) -> Ready {
    match value.as_str() {
        Some("READY_TRUE") => Ready::True,
        Some("READY_FALSE") => Ready::False,
        _ => Ready::Unspecified,
    }
}
