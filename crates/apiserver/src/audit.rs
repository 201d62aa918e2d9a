//! The audit log: one JSON line for each finished request, in the shape of `audit.k8s.io/v1` at level
//! `Metadata`: who asked for what, when, and how it ended, without any bodies.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::http::request::ResourcePath;
use crate::identity::Identity;

/// Where finished requests are noted.
pub(crate) struct AuditLog {
    file: Mutex<File>,
    failing: AtomicBool,
}

/// A finished request.
pub(crate) struct Record<'a> {
    /// A random id.
    pub(crate) id: String,
    /// Path and query.
    pub(crate) uri: &'a str,
    /// The API's verb, or the method in lower case.
    pub(crate) verb: &'a str,
    /// `None` if the client could not be authenticated.
    pub(crate) identity: Option<&'a Identity>,
    /// Whom they acted as, if someone else.
    pub(crate) impersonated: Option<&'a Identity>,
    /// The resource, unless the request was for something else.
    pub(crate) object: Option<&'a ResourcePath>,
    /// The client's address, unless the request came from this process.
    pub(crate) source: Option<std::net::IpAddr>,
    pub(crate) user_agent: &'a str,
    pub(crate) code: u16,
    pub(crate) received: Timestamp,
    pub(crate) finished: Timestamp,
}

impl AuditLog {
    /// Appends to a file, which only its owner may read.
    pub(crate) fn open(path: &Path) -> io::Result<AuditLog> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(AuditLog { file: Mutex::new(options.open(path)?), failing: AtomicBool::new(false) })
    }

    /// Notes a request. A log that cannot be written stops no request; it is said once.
    pub(crate) fn write(&self, record: &Record<'_>) {
        let mut line = record.event().to_string();
        line.push('\n');
        let written = self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
        let failed = written.is_err();
        if self.failing.swap(failed, Ordering::Relaxed) != failed {
            match written {
                Err(error) => tracing::error!(%error, "the audit log cannot be written"),
                Ok(()) => tracing::info!("the audit log can be written again"),
            }
        }
    }
}

impl Record<'_> {
    fn event(&self) -> Value {
        let user = |identity: &Identity| json!({"username": identity.user, "groups": identity.groups});
        let mut event = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self.id,
            "stage": "ResponseComplete",
            "requestURI": self.uri,
            "verb": self.verb,
            "user": self.identity.map_or_else(|| json!({}), user),
            "userAgent": self.user_agent,
            "responseStatus": {"metadata": {}, "code": self.code},
            "requestReceivedTimestamp": micros(self.received),
            "stageTimestamp": micros(self.finished),
        });
        if let Some(impersonated) = self.impersonated {
            event["impersonatedUser"] = user(impersonated);
        }
        if let Some(source) = self.source {
            event["sourceIPs"] = json!([source]);
        }
        if let Some(path) = self.object {
            event["objectRef"] = Value::Object(object_reference(path));
        }
        if self.identity.is_some() {
            let decision = if self.code == 403 { "forbid" } else { "allow" };
            event["annotations"] = json!({"authorization.k8s.io/decision": decision});
        }
        event
    }
}

/// A time as `MicroTime` is written.
fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn object_reference(path: &ResourcePath) -> Map<String, Value> {
    let fields = [
        ("resource", Some(path.resource.as_str())),
        ("namespace", path.namespace.as_deref()),
        ("name", path.name.as_deref()),
        ("apiGroup", Some(path.group.as_str())),
        ("apiVersion", Some(path.version.as_str())),
        ("subresource", path.subresource.as_deref()),
    ];
    let present = fields.into_iter().filter_map(|(field, value)| Some((field, value?)));
    present
        .filter(|(_, value)| !value.is_empty())
        .map(|(field, value)| (field.to_owned(), value.into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_one_line_in_the_shape_of_kubernetes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let log = AuditLog::open(&path).unwrap();
        let identity = Identity::new("ann", ["ml"]);
        let object = ResourcePath {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            namespace: Some("team".to_owned()),
            resource: "deployments".to_owned(),
            name: Some("a".to_owned()),
            ..ResourcePath::default()
        };
        let uri = "/apis/apps/v1/namespaces/team/deployments/a?pretty=true\n";
        let mut record = Record {
            id: "1".to_owned(),
            uri,
            verb: "get",
            identity: Some(&identity),
            impersonated: None,
            object: Some(&object),
            source: Some(std::net::IpAddr::from([127, 0, 0, 1])),
            user_agent: "kubectl/v1.32.0",
            code: 403,
            received: Timestamp::from_microsecond(1_000_001).unwrap(),
            finished: Timestamp::from_microsecond(1_500_000).unwrap(),
        };
        log.write(&record);
        (record.identity, record.object, record.source, record.code) = (None, None, None, 401);
        log.write(&record);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            lines[0],
            json!({
                "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "1",
                "stage": "ResponseComplete", "requestURI": uri, "verb": "get",
                "user": {"username": "ann", "groups": ["ml"]}, "userAgent": "kubectl/v1.32.0",
                "responseStatus": {"metadata": {}, "code": 403},
                "requestReceivedTimestamp": "1970-01-01T00:00:01.000001Z",
                "stageTimestamp": "1970-01-01T00:00:01.500000Z",
                "sourceIPs": ["127.0.0.1"],
                "objectRef": {
                    "resource": "deployments", "namespace": "team", "name": "a",
                    "apiGroup": "apps", "apiVersion": "v1",
                },
                "annotations": {"authorization.k8s.io/decision": "forbid"},
            })
        );
        assert_eq!((lines.len(), &lines[1]["user"]), (2, &json!({})));
        assert!(lines[1].get("objectRef").is_none() && lines[1].get("annotations").is_none());
    }
}
