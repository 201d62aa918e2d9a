//! Valid requests of every kind, followed to a fixed point: everything wanted is observed and ready.

use std::collections::BTreeMap;
use std::path::Path;

use modelplane_core::compose::{self, Composition};
use modelplane_core::contract::{ComposeError, Desired, Observed, Resource};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Request, body};

/// `hold_rule/<Kind>.yaml`: a kind's valid request, and what has to be known to follow it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fixture {
    /// The composite.
    pub composite: Value,
    /// Required resources by key.
    #[serde(default)]
    pub required: BTreeMap<String, Vec<Value>>,
    /// Status of observed resources, by key; the rest are just ready.
    #[serde(default)]
    pub status: BTreeMap<String, Value>,
    /// Where dropping is right although an input is broken.
    #[serde(default)]
    pub exceptions: Vec<Exception>,
}

/// A broken input that does mean that something observed has to go.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// What the name of the breakage starts with.
    pub input: String,
    /// What the keys of the resources that go start with.
    pub drops: String,
    /// Why, and where that is written down.
    pub reason: String,
}

/// A request at a fixed point.
#[derive(Debug, Clone)]
pub struct State {
    /// The composite.
    pub composite: Value,
    /// Observed resources by key.
    pub resources: BTreeMap<String, Value>,
    /// Required resources by key.
    pub required: BTreeMap<String, Vec<Value>>,
}

/// Every kind that has a composition, with its valid request; an error names the file that is missing.
pub fn fixtures() -> Vec<Result<(String, Fixture), String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hold_rule");
    let read = |name: String| {
        let kind = name.split('.').next().unwrap_or_default().to_owned();
        let path = folder.join(format!("{kind}.yaml"));
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{kind} has no valid request in {}: {error}", path.display()))?;
        let fixture =
            serde_saphyr::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((kind, fixture))
    };
    compose::kinds().map(read).collect()
}

impl Fixture {
    /// The steps of the kind's pipeline.
    pub fn steps(&self) -> Vec<Composition> {
        let text = |field: &str| self.composite[field].as_str().unwrap_or_default();
        compose::pipeline(text("apiVersion"), text("kind"))
    }

    /// Composes until nothing new is wanted; everything wanted is observed ready on the next pass.
    pub fn fixed_point(&self) -> Result<State, String> {
        let steps = self.steps();
        let mut state = State {
            composite: self.composite.clone(),
            resources: BTreeMap::new(),
            required: self.required.clone(),
        };
        for _ in 0..12 {
            let wanted = run(&steps, &state.request(), bodies)
                .map_err(|error| format!("a valid request fails: {error}"))?;
            let next: BTreeMap<String, Value> =
                wanted.into_iter().map(|(key, body)| (key.clone(), self.observed(&key, body))).collect();
            let settled = next.keys().eq(state.resources.keys());
            state.resources = next;
            if settled {
                return Ok(state);
            }
        }
        Err(format!("no fixed point; the last pass wants {:?}", state.resources.keys()))
    }

    /// What becomes of a wanted resource: it exists, has a name, and reports every kind of success.
    fn observed(&self, key: &str, mut body: Value) -> Value {
        if body["metadata"]["name"].is_null() {
            body["metadata"]["name"] = format!("composed-{}", key.to_lowercase()).into();
        }
        if body["kind"] == "CustomResourceDefinition" {
            // Only their conditions are ever read, and they are large.
            body["spec"] = json!({});
        }
        let manifest = body["spec"]["forProvider"]["manifest"].clone();
        let mut status = self.status.get(key).cloned().unwrap_or_else(|| json!({}));
        if status["atProvider"].is_null() && !manifest.is_null() {
            status["atProvider"] = json!({"manifest": manifest});
        }
        if status["conditions"].is_null() {
            let conditions = ["Ready", "Synced", "Established", "Accepted"].map(|condition_type| {
                let time = "2026-01-01T00:00:00Z";
                json!({"type": condition_type, "status": "True", "reason": "Fine", "lastTransitionTime": time})
            });
            status["conditions"] = conditions.to_vec().into();
        }
        body["status"] = status;
        body
    }
}

impl State {
    /// The request as a composition gets it.
    pub fn request(&self) -> Request {
        let mut request = Request::default();
        request.set_composite(&self.composite);
        for (key, resource) in &self.resources {
            request.set_resource(key, Some(resource));
        }
        for (key, items) in &self.required {
            request.set_required(key, Some(items));
        }
        request
    }
}

/// Runs a kind's steps and reads what is wanted in the end.
pub fn run<T>(
    steps: &[Composition],
    request: &Request,
    read: fn(&Desired<'_>) -> T,
) -> Result<T, ComposeError> {
    let first = steps[0](&request.observed())?;
    match steps {
        [_] => Ok(read(&first)),
        [_, second] => {
            let desired = first.resources.iter().map(|(key, wanted)| {
                let resource = Resource { ready: wanted.ready, ..Resource::new(wanted.body.document()) };
                (key.as_ref(), resource)
            });
            let observed = Observed { desired: desired.collect(), ..request.observed() };
            Ok(read(&second(&observed)?))
        }
        _ => panic!("no kind has {} steps", steps.len()),
    }
}

fn bodies(wanted: &Desired<'_>) -> BTreeMap<String, Value> {
    wanted.resources.keys().map(|key| (key.to_string(), body(wanted, key))).collect()
}
