//! Replays what a real kube-apiserver answered (`tests/data/apply`, recorded by `record_apply.py`).

mod support;

use modelplane_apimachinery::apply::{
    ApplyError, Operation, Reset, WriteRequest, apply, decode_managers, encode_managers,
    keep_times_if_unchanged, managers_from_scale, managers_of_scale, update_managers,
};
use modelplane_apimachinery::builtin;
use modelplane_apimachinery::schema::Schema;
use serde_json::{Value, json};
use support::{Recording, Step};

/// What the replay of a kind needs to know.
struct Replay {
    recording: Recording,
    versions: Vec<(String, Schema)>,
    empty: Value,
    status_reset: Reset,
    /// Whether absent fields may have been defaulted by the recorded server.
    has_defaults: bool,
}

impl Replay {
    fn run(&self) {
        let mut failures = Vec::new();
        for scenario in &self.recording.scenarios {
            let mut live: Option<Value> = None;
            for (position, step) in scenario.steps.iter().enumerate() {
                if let Err(message) = self.step(live.as_ref(), step) {
                    failures.push(format!("{} (step {position}): {message}", scenario.name));
                }
                let answer = step.main.as_ref().unwrap_or(&step.answer);
                if step.code < 300 {
                    live = Some(answer.clone());
                }
            }
        }
        assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    }

    fn step(&self, live: Option<&Value>, step: &Step) -> Result<(), String> {
        let version = step.version.as_deref().unwrap_or(&self.recording.api_version);
        let versions: Vec<(&str, &Schema)> =
            self.versions.iter().map(|(version, schema)| (version.as_str(), schema)).collect();
        let reset = if step.subresource == "status" { self.status_reset.clone() } else { Reset::status() };
        let time = time_of(live, step);
        // Objects come in the version of the request.
        let in_version = |object: &Value| {
            let mut object = object.clone();
            object["apiVersion"] = json!(version);
            object
        };
        let live = live.map(in_version);
        let empty = in_version(&self.empty);
        let request = WriteRequest {
            versions: &versions,
            api_version: version,
            kind: &self.recording.kind,
            manager: &step.manager,
            subresource: &step.subresource,
            time: &time,
            reset: &reset,
            empty: &empty,
        };
        match step.operation.as_str() {
            "apply" => self.applied(&request, live.as_ref(), step),
            _ if step.subresource == "scale" => scaled(&request, live.as_ref(), step),
            _ if step.code >= 300 => Ok(()),
            _ => updated(&request, live.as_ref(), step),
        }
    }

    fn applied(&self, request: &WriteRequest<'_>, live: Option<&Value>, step: &Step) -> Result<(), String> {
        let mut result = match apply(request, live, &step.sent, step.force) {
            Ok(object) => object,
            Err(error) => return refused(&error, step),
        };
        match step.code {
            200 | 201 => {}
            // Refused by the validation that comes later, which is not apply's business.
            422 => return Ok(()),
            code => return Err(format!("answered {code}, here it was applied: {}", step.answer["message"])),
        }
        let mut expected = step.answer.clone();
        if let Some(live) = live {
            keep_times_if_unchanged(live, &mut result);
        }
        same_managers(&result, &expected)?;
        if !self.has_defaults
            && let Some((_, schema)) = self.versions.iter().find(|(known, _)| known == request.api_version)
        {
            schema.prune(&mut result);
            schema.apply_defaults(&mut result);
        }
        for object in [&mut result, &mut expected] {
            support::without_system_metadata(object);
        }
        // The server keeps what a subresource does not write, and drops empty metadata.
        let part = if request.subresource == "status" { "status" } else { "spec" };
        let (ours, theirs) = (result.get(part), expected.get(part));
        let same = if self.has_defaults {
            support::is_part_of(ours.unwrap_or(&Value::Null), theirs.unwrap_or(&Value::Null))
        } else {
            support::is_same(ours.unwrap_or(&json!({})), theirs.unwrap_or(&json!({})))
        };
        let metadata = |object: &Value, name: &str| {
            let value = object["metadata"].get(name).cloned();
            value.filter(|value| *value != json!({}) && *value != json!([]))
        };
        for name in ["labels", "annotations", "finalizers", "ownerReferences"] {
            let (ours, theirs) = (metadata(&result, name), metadata(&expected, name));
            if request.subresource.is_empty() && ours != theirs {
                return Err(format!("{name}:\n  here:  {ours:?}\n  there: {theirs:?}"));
            }
        }
        if same { Ok(()) } else { Err(format!("{part}:\n  here:  {ours:?}\n  there: {theirs:?}")) }
    }
}

fn refused(error: &ApplyError, step: &Step) -> Result<(), String> {
    let theirs = step.answer["message"].as_str().unwrap_or_default();
    // Go prints values of a wrong type by their address.
    let theirs = theirs.replace("&{[a]}", "[\"a\"]");
    let ours = error.to_string();
    if step.code < 300 || ours != theirs {
        return Err(format!("\n  here:  {ours}\n  there: {} {theirs}", step.code));
    }
    let ApplyError::Conflicts(conflicts) = error else { return Ok(()) };
    let mut ours: Vec<Value> = conflicts
        .0
        .iter()
        .map(|c| json!({"reason": "FieldManagerConflict", "message": c.message(), "field": c.field}))
        .collect();
    let mut theirs = step.answer["details"]["causes"].as_array().cloned().unwrap_or_default();
    // The server goes through managers in random order.
    ours.sort_by_key(Value::to_string);
    theirs.sort_by_key(Value::to_string);
    if ours == theirs { Ok(()) } else { Err(format!("causes\n  here:  {ours:?}\n  there: {theirs:?}")) }
}

fn updated(request: &WriteRequest<'_>, live: Option<&Value>, step: &Step) -> Result<(), String> {
    let mut object = step.answer.clone();
    // Managed fields that the request sets are part of what is stored before they are brought up to date.
    let sent = step.sent.pointer("/metadata/managedFields").cloned();
    match (sent, live) {
        (Some(sent), _) => object["metadata"]["managedFields"] = sent,
        (None, Some(live)) => object["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone(),
        (None, None) => {
            object["metadata"].as_object_mut().map(|metadata| metadata.shift_remove("managedFields"));
        }
    }
    update_managers(request, live, &mut object);
    if let Some(live) = live {
        keep_times_if_unchanged(live, &mut object);
    }
    same_managers(&object, &step.answer)
}

fn scaled(request: &WriteRequest<'_>, live: Option<&Value>, step: &Step) -> Result<(), String> {
    let replicas = ["spec", "replicas"];
    let live = live.ok_or("nothing to scale")?;
    let parent = decode_managers(live).map_err(|error| error.to_string())?;
    let scale_of = |object: &Value| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": object["spec"]["replicas"]}});
    let mut before = scale_of(live);
    encode_managers(&mut before, managers_of_scale(&parent, &replicas));
    let main = step.main.as_ref().ok_or("the scaled object is not recorded")?;
    let mut after = scale_of(main);
    let schema = builtin::schema("autoscaling", "v1", "Scale").ok_or("no schema of scales")?;
    let versions = [("autoscaling/v1", &*schema)];
    let scale_request = WriteRequest {
        versions: &versions,
        api_version: "autoscaling/v1",
        kind: "Scale",
        reset: &Reset::nothing(),
        empty: &json!({}),
        ..*request
    };
    update_managers(&scale_request, Some(&before), &mut after);
    let scale = decode_managers(&after).map_err(|error| error.to_string())?;
    let mut object = main.clone();
    let mut managers = managers_from_scale(&parent, &scale, &replicas, request.api_version);
    // The real server loses the time of an entry that a scale makes, which is no use to anybody.
    for manager in managers.iter_mut().filter(|manager| manager.subresource == "scale") {
        if manager.time.take().is_none() {
            return Err("an entry without a time".to_owned());
        }
    }
    encode_managers(&mut object, managers);
    same_managers(&object, main)
}

fn same_managers(ours: &Value, theirs: &Value) -> Result<(), String> {
    let of = |object: &Value| object.pointer("/metadata/managedFields").cloned().unwrap_or(json!([]));
    let (ours, theirs) = (of(ours), of(theirs));
    if support::text(&ours) == support::text(&theirs) {
        return Ok(());
    }
    Err(format!("managed fields\n  here:  {}\n  there: {}", support::text(&ours), support::text(&theirs)))
}

/// When the recorded server made the step: the time of the writer's entry, or the latest of all.
fn time_of(live: Option<&Value>, step: &Step) -> String {
    let answer = step.main.as_ref().unwrap_or(&step.answer);
    let managers = decode_managers(answer).unwrap_or_default();
    let operation = if step.operation == "apply" { Operation::Apply } else { Operation::Update };
    let own = managers
        .iter()
        .filter(|m| m.name == step.manager && m.operation == operation && m.subresource == step.subresource);
    let latest = || {
        let before = live.and_then(|live| decode_managers(live).ok()).unwrap_or_default();
        managers.iter().chain(&before).filter_map(|manager| manager.time.clone()).max()
    };
    let own = own.filter_map(|manager| manager.time.clone()).max();
    own.or_else(latest).unwrap_or_default()
}

#[test]
fn a_custom_resource_is_applied_as_the_real_server_does() {
    let recording = Recording::read("apply/widget");
    let definition = &recording.definitions[0]["spec"];
    let group = definition["group"].as_str().unwrap_or_default();
    let versions = definition["versions"].as_array().into_iter().flatten().map(|version| {
        let name = version["name"].as_str().unwrap_or_default();
        let schema =
            Schema::parse(&version["schema"]["openAPIV3Schema"]).expect("the recorded server accepted it");
        (format!("{group}/{name}"), schema)
    });
    let versions: Vec<(String, Schema)> = versions.collect();
    let empty = json!({"kind": "Widget"});
    Replay { recording, versions, empty, status_reset: Reset::all_but_status(), has_defaults: false }.run();
}

#[test]
fn a_built_in_kind_is_applied_as_the_real_server_does() {
    let recording = Recording::read("apply/deployment");
    let kind = builtin::find("apps", "v1", "Deployment").expect("it is built in");
    let versions = vec![("apps/v1".to_owned(), Schema::clone(&kind.schema()))];
    Replay {
        recording,
        versions,
        empty: kind.empty(),
        status_reset: kind.status_reset(),
        has_defaults: true,
    }
    .run();
}

#[test]
fn a_write_that_changes_nothing_keeps_its_time() {
    let schema = Schema::trusted(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let (reset, empty) = (Reset::nothing(), json!({}));
    let versions = [("v1", &schema)];
    let request = |time: &'static str| WriteRequest {
        versions: &versions,
        api_version: "v1",
        kind: "K",
        manager: "a",
        subresource: "",
        time,
        reset: &reset,
        empty: &empty,
    };
    let applied = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}, "spec": {"a": 1}});
    let first =
        apply(&request("2026-01-01T00:00:00Z"), None, &applied, false).expect("nothing is in the way");
    let second = apply(&request("2026-01-02T00:00:00Z"), Some(&first), &applied, false).expect("nor now");
    assert_eq!(first, second);
}
