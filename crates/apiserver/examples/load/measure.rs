//! The measurements.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::connection::{Connection, Outcome, Target};

const CALLERS: usize = 32;
const PAGE: usize = 500;
/// Below every server's limit of streams in one connection.
const WATCHERS_OF_A_CONNECTION: usize = 100;
const NAMESPACE: &str = "load";
const GROUP: &str = "load.example.org";
/// More than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much to do.
pub(crate) struct Sizes {
    /// Objects in the list.
    pub(crate) objects: usize,
    pub(crate) watchers: usize,
    /// Writes by many callers; a single one does a quarter.
    pub(crate) writes: usize,
    /// Changes that are watched.
    pub(crate) rounds: usize,
}

/// What is written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ConfigMap,
    Custom,
}

/// One number.
pub(crate) struct Measurement {
    pub(crate) title: String,
    value: f64,
    unit: Unit,
}

enum Unit {
    PerSecond,
    Milliseconds,
}

impl Measurement {
    /// How many times better this is than another.
    pub(crate) fn better_than(&self, other: &Measurement) -> f64 {
        match self.unit {
            Unit::PerSecond => self.value / other.value,
            Unit::Milliseconds => other.value / self.value,
        }
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            Unit::PerSecond => write!(formatter, "{:.0}/s", self.value),
            Unit::Milliseconds => write!(formatter, "{:.1} ms", self.value),
        }
    }
}

impl Kind {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Kind::ConfigMap => "ConfigMap",
            Kind::Custom => "custom resource",
        }
    }

    fn collection(self) -> String {
        match self {
            Kind::ConfigMap => format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
            Kind::Custom => format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/loads"),
        }
    }

    /// An object of about a KiB; an update goes on from a version.
    fn object(self, name: &str, round: usize, version: &str) -> Bytes {
        let mut metadata =
            json!({"name": name, "namespace": NAMESPACE, "labels": {"app": "load", "tier": "one"}});
        if !version.is_empty() {
            metadata["resourceVersion"] = version.into();
        }
        let text = "x".repeat(800);
        let object = match self {
            Kind::ConfigMap => json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                "data": {"text": text, "round": round.to_string()},
            }),
            Kind::Custom => json!({
                "apiVersion": format!("{GROUP}/v1"), "kind": "Load", "metadata": metadata,
                "spec": {"text": text, "round": round, "items": [{"name": "a", "weight": 1}, {"name": "b"}]},
            }),
        };
        Bytes::from(object.to_string())
    }
}

fn definition() -> Value {
    let item = json!({
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "weight": {"type": "integer", "default": 1}},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("loads.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": "loads", "kind": "Load"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "required": ["spec"],
                "properties": {"spec": {
                    "type": "object", "required": ["text"],
                    "properties": {
                        "text": {"type": "string", "maxLength": 4096},
                        "round": {"type": "integer", "minimum": 0},
                        "items": {
                            "type": "array", "items": item, "maxItems": 16,
                            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                        },
                    },
                    "x-kubernetes-validations": [{"rule": "self.round >= 0", "message": "rounds are counted from 0"}],
                }},
            }}}],
        },
    })
}

/// Everything that is measured of a kind, in a namespace that is empty before and after.
pub(crate) async fn all(target: &Target, kind: Kind, sizes: &Sizes) -> Outcome<Vec<Measurement>> {
    let connection = target.connect().await?;
    prepare(&connection, kind).await?;
    let named = |what: &str| format!("{}: {what}", kind.title());
    let rate = |what: &str, value: f64| Measurement { title: named(what), value, unit: Unit::PerSecond };
    let time = |what: &str, value: f64| Measurement { title: named(what), value, unit: Unit::Milliseconds };
    let few = (sizes.writes / 4).max(1);
    let mut measured = vec![
        rate("creates, 1 caller", creates(&connection, kind, "one", 1, few).await?),
        rate("creates, 32 callers", creates(&connection, kind, "many", CALLERS, sizes.writes).await?),
        rate("updates, 1 caller", updates(&connection, kind, 1, few).await?),
        rate("updates, 32 callers", updates(&connection, kind, CALLERS, sizes.writes).await?),
    ];
    let there = few + sizes.writes + CALLERS;
    if sizes.objects > there {
        creates(&connection, kind, "more", CALLERS, sizes.objects - there).await?;
    }
    let mut times = Vec::new();
    let mut listed = 0;
    for _ in 0..5 {
        let started = Instant::now();
        listed = list(&connection, kind).await?;
        times.push(started.elapsed());
    }
    measured.push(time(&format!("list of {listed} objects in pages of {PAGE}"), median(&mut times)));
    let mut times = fan_out(target, &connection, kind, sizes).await?;
    measured.push(time(&format!("change seen by {} watchers", sizes.watchers), median(&mut times)));
    connection.done(Method::DELETE, &kind.collection(), "").await?;
    Ok(measured)
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

async fn prepare(connection: &Connection, kind: Kind) -> Outcome<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let existing = |(code, answer): (u16, Bytes)| match code {
        200 | 201 | 409 => Ok(()),
        _ => Err(String::from_utf8_lossy(&answer).into_owned()),
    };
    existing(connection.send(Method::POST, "/api/v1/namespaces", namespace.to_string()).await?)?;
    if kind == Kind::Custom {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        existing(connection.send(Method::POST, definitions, definition().to_string()).await?)?;
    }
    let started = Instant::now();
    let trial = format!("{}?dryRun=All", kind.collection());
    loop {
        let (code, answer) = connection.send(Method::POST, &trial, kind.object("trial", 0, "")).await?;
        if code == 201 {
            break;
        }
        if started.elapsed() > PATIENCE {
            return Err(format!("it is not served: {}", String::from_utf8_lossy(&answer)).into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // What an earlier run left.
    connection.done(Method::DELETE, &kind.collection(), "").await?;
    Ok(())
}

/// Lets callers do so many calls in all; how many they do in a second.
async fn rate<F>(callers: usize, calls: usize, call: impl Fn(usize) -> F) -> Outcome<f64>
where
    F: Future<Output = Outcome<()>> + Send + 'static,
{
    let started = Instant::now();
    let mut running = JoinSet::new();
    for caller in 0..callers {
        running.spawn(call(caller));
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(calls as f64 / started.elapsed().as_secs_f64())
}

async fn creates(
    connection: &Connection,
    kind: Kind,
    prefix: &'static str,
    callers: usize,
    calls: usize,
) -> Outcome<f64> {
    let next = Arc::new(AtomicUsize::new(0));
    rate(callers, calls, |_| {
        let (connection, next) = (connection.clone(), Arc::clone(&next));
        async move {
            let path = kind.collection();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= calls {
                    return Ok(());
                }
                let object = kind.object(&format!("{prefix}-{index}"), 0, "");
                connection.done(Method::POST, &path, object).await?;
            }
        }
    })
    .await
}

/// Each caller changes an object of its own.
async fn updates(connection: &Connection, kind: Kind, callers: usize, calls: usize) -> Outcome<f64> {
    let mut versions = Vec::new();
    for caller in 0..callers {
        let name = format!("updated-{callers}-{caller}");
        let created = connection.done(Method::POST, &kind.collection(), kind.object(&name, 0, "")).await?;
        versions.push((name, version_of(&created)?));
    }
    let rate = rate(callers, calls, |caller| {
        let (connection, (name, mut version)) = (connection.clone(), versions[caller].clone());
        async move {
            let path = format!("{}/{name}", kind.collection());
            for round in 1..=calls / callers {
                let changed =
                    connection.done(Method::PUT, &path, kind.object(&name, round, &version)).await?;
                version = version_of(&changed)?;
            }
            Ok(())
        }
    })
    .await?;
    Ok(rate)
}

/// The first `resourceVersion` in an answer.
fn version_of(answer: &[u8]) -> Outcome<String> {
    const FIELD: &[u8] = b"\"resourceVersion\":\"";
    let start = answer.windows(FIELD.len()).position(|window| window == FIELD);
    let rest = &answer[start.ok_or("an answer has no resourceVersion")? + FIELD.len()..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).copied().collect();
    Ok(String::from_utf8(digits)?)
}

/// Reads all pages; how many objects there were.
async fn list(connection: &Connection, kind: Kind) -> Outcome<usize> {
    // A client has better things to do than to read what it got: this must not be what is measured.
    let uid = memchr::memmem::Finder::new("\"uid\":\"");
    let mut count = 0;
    let mut token = String::new();
    loop {
        let path = format!("{}?limit={PAGE}{token}", kind.collection());
        let page = connection.done(Method::GET, &path, "").await?;
        count += uid.find_iter(&page).count();
        match continue_of(&page) {
            None => return Ok(count),
            Some(next) => token = format!("&continue={next}"),
        }
    }
}

fn continue_of(page: &[u8]) -> Option<String> {
    const FIELD: &[u8] = b"\"continue\":\"";
    // It is in the list's metadata, which comes first.
    let head = &page[..page.len().min(4096)];
    let start = head.windows(FIELD.len()).position(|window| window == FIELD)? + FIELD.len();
    let end = head[start..].iter().position(|byte| *byte == b'"')?;
    Some(String::from_utf8_lossy(&head[start..start + end]).into_owned())
}

/// Changes an object again and again; how long each time until the last watcher has heard of it.
async fn fan_out(target: &Target, writer: &Connection, kind: Kind, sizes: &Sizes) -> Outcome<Vec<Duration>> {
    let path = kind.collection();
    let created = writer.done(Method::POST, &path, kind.object("watched", 0, "")).await?;
    let mut version = version_of(&created)?;
    let heard = Arc::new((AtomicUsize::new(0), Notify::new()));
    let mut watchers = JoinSet::new();
    let mut connection = target.connect().await?;
    for index in 0..sizes.watchers {
        if index > 0 && index % WATCHERS_OF_A_CONNECTION == 0 {
            connection = target.connect().await?;
        }
        let query =
            format!("{path}?watch=true&resourceVersion={version}&fieldSelector=metadata.name%3Dwatched");
        let mut body = connection.open(Method::GET, &query, Bytes::new()).await?.into_body();
        let (heard, all) = (Arc::clone(&heard), sizes.watchers);
        watchers.spawn(async move {
            while let Some(Ok(frame)) = body.frame().await {
                let Ok(data) = frame.into_data() else { continue };
                let lines = data.iter().filter(|byte| **byte == b'\n').count();
                let before = heard.0.fetch_add(lines, Ordering::AcqRel);
                if (before + lines) / all > before / all {
                    heard.1.notify_one();
                }
            }
        });
    }
    let mut times = Vec::new();
    for round in 1..=sizes.rounds {
        let started = Instant::now();
        let changed = writer
            .done(Method::PUT, &format!("{path}/watched"), kind.object("watched", round, &version))
            .await?;
        version = version_of(&changed)?;
        while heard.0.load(Ordering::Acquire) < round * sizes.watchers {
            tokio::time::timeout(PATIENCE, heard.1.notified())
                .await
                .map_err(|_| "watchers missed a change")?;
        }
        times.push(started.elapsed());
    }
    watchers.shutdown().await;
    Ok(times)
}
