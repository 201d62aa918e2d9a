//! The same manifests give the same objects here and in `render`: every example, whole specs, all conditions.
//!
//! Both sides are brought to one form by [`normal`]; whatever still may differ is in [`DIFFERENCES`], with its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use modelplane_api::kind;
use modelplane_apimachinery::schema::Schema;
use modelplane_core::simulate::{ObjectKey, Options, Simulation};
use modelplane_engine::client::ApiClient;
use modelplane_engine::composite::render::is_within;
use modelplane_engine::drivers::CloudSimulator;
use serde_json::{Map, Value, json};

use crate::player::Player;
use crate::support::{
    Cluster, Clusters, OBJECTS, RELEASES, RESOURCE_NAME, SYSTEM, USAGES, apply, client, config, engine,
    eventually, example, examples, get, list, namespace, server,
};

/// A field that `render` and a control plane legitimately give other values.
struct Difference {
    /// Kind of the objects; empty for all.
    kind: &'static str,
    /// JSON pointer, `condition TYPE`, or [`DEFAULTS`].
    field: &'static str,
    /// Why.
    #[expect(dead_code, reason = "for whoever reads the table")]
    reason: &'static str,
}

/// Fields that the control plane adds.
const DEFAULTS: &str = "defaults";

const DIFFERENCES: &[Difference] = &[
    Difference {
        kind: "",
        field: "/spec/crossplane",
        reason: "where the reconciler keeps its references; `render` knows owners without",
    },
    Difference {
        kind: "",
        field: "condition Responsive",
        reason: "says that watches work; `render` has none",
    },
    Difference {
        kind: "Usage",
        field: "condition Ready",
        reason: "the engine resolves usages and reports on them; `render` deletes nothing, so it has no use for them",
    },
    Difference { kind: "ClusterUsage", field: "condition Ready", reason: "as for Usage" },
    Difference {
        kind: "Usage",
        field: DEFAULTS,
        reason: "the engine resolves selectors by adding the resourceRef they lead to, as Crossplane does",
    },
    Difference {
        kind: "Service",
        field: DEFAULTS,
        reason: "a built-in kind has its defaults from the API server; for all others they are applied below",
    },
    Difference { kind: "Deployment", field: DEFAULTS, reason: "as for Service" },
    Difference { kind: "CustomResourceDefinition", field: DEFAULTS, reason: "as for Service" },
    Difference {
        kind: "CustomResourceDefinition",
        field: "condition NamesAccepted",
        reason: "set by the API server; `render` simulates what compositions read, which is Established",
    },
];

/// What is compared of an object: its spec, and its conditions' statuses by type.
type Facts = (Value, BTreeMap<String, String>);

/// Addresses come from whoever plays the clusters, and whole numbers have no form of their own.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, field)| !field.is_null());
            Value::Object(fields.map(|(key, field)| (key.clone(), normal(field))).collect())
        }
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Number(number) => json!(number.as_f64()),
        Value::String(text) => Value::String(without_addresses(text)),
        other => other.clone(),
    }
}

fn without_addresses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("198.18.") {
        out.push_str(&rest[..at]);
        out.push_str("ADDRESS");
        let tail = &rest[at + 7..];
        let end = tail.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(tail.len());
        rest = &tail[end..];
    }
    out + rest
}

fn may_differ(object: &Value, field: &str) -> bool {
    DIFFERENCES.iter().any(|one| (one.kind.is_empty() || object["kind"] == one.kind) && one.field == field)
}

fn facts(object: &Value) -> Facts {
    let whole = object;
    let applies = |field: &str| may_differ(whole, field);
    let mut object = object.clone();
    for difference in DIFFERENCES.iter().filter(|one| applies(one.field)) {
        let Some((parent, field)) = difference.field.rsplit_once('/') else { continue };
        if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(field);
        }
    }
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let conditions = conditions
        .map(|c| (c["type"].as_str().unwrap_or_default(), c["status"].as_str().unwrap_or_default()))
        .filter(|(condition_type, _)| !applies(&format!("condition {condition_type}")))
        .map(|(condition_type, status)| (condition_type.to_owned(), status.to_owned()));
    let conditions = conditions.collect();
    (normal(&object["spec"]), conditions)
}

/// Kinds that are compared whether or not `render` has such objects.
fn always_compared() -> BTreeSet<(String, String)> {
    let ours = kind::ALL.iter().map(|info| (info.api_version(), info.kind.to_owned()));
    let theirs = [(OBJECTS, "Object"), (RELEASES, "Release"), (USAGES, "Usage"), (USAGES, "ClusterUsage")];
    ours.chain(theirs.map(|(api_version, kind)| (api_version.to_owned(), kind.to_owned()))).collect()
}

fn kind_of(object: &Value) -> (String, String) {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    (text("apiVersion"), text("kind"))
}

/// Lends one simulated cluster to all clouds' managed resources that would have one.
struct Clouds;

impl CloudSimulator for Clouds {
    fn kubeconfig<'a>(&'a self, _: &'a Value) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(Some(Clusters::kubeconfig(CLOUD))))
    }
}

const CLOUD: &str = "cloud";

/// What `render` makes of an example.
struct Expected {
    objects: BTreeMap<ObjectKey, Value>,
    /// Objects outside the manifests that it takes for granted.
    assumed: Vec<Value>,
}

impl Expected {
    fn of(name: &str) -> Self {
        let mut simulation = Simulation::new(example(name), Options::default());
        assert!(simulation.run().converged, "{name} does not come to rest in render");
        let applied: BTreeSet<ObjectKey> = example(name).iter().map(ObjectKey::of).collect();
        let compared = always_compared();
        let assumed = simulation.assumed();
        let objects = simulation
            .world()
            .iter()
            .filter(|stored| !assumed.contains(&stored.key))
            .filter(|stored| {
                stored.owner.is_some()
                    || applied.contains(&stored.key)
                    || compared.contains(&kind_of(&stored.body))
            })
            .map(|stored| (stored.key.clone(), stored.body.clone()));
        let objects = objects.collect();
        let assumed = assumed.iter().filter_map(|key| simulation.world().get(key));
        Self { objects, assumed: assumed.map(|stored| stored.body.clone()).collect() }
    }

    /// Gives the expected objects the defaults of the definitions that the API server has.
    async fn default(&mut self, api: &ApiClient) {
        let definitions = list(api, "apiextensions.k8s.io/v1", "CustomResourceDefinition").await;
        for object in self.objects.values_mut() {
            let (api_version, kind) = kind_of(object);
            let of_kind = definitions.iter().find(|definition| {
                let spec = &definition["spec"];
                let version = &spec["versions"][0]["name"];
                api_version == format!("{}/{}", spec["group"].as_str().unwrap(), version.as_str().unwrap())
                    && spec["names"]["kind"] == kind.as_str()
            });
            let Some(definition) = of_kind else { continue };
            let schema =
                Schema::parse(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]).unwrap();
            schema.apply_defaults(object);
        }
    }
}

/// A control plane with everything an example needs.
async fn composed(name: &str) {
    let mut expected = Expected::of(name);
    let server = server().await;
    let client = client(&server);
    let (api, clusters) = (ApiClient::new(client.clone()), Clusters::default());
    let manifests = example(name);
    let _clusters = existing_clusters(&api, &clusters, &manifests).await;
    let mut config = config(&client, &clusters);
    config.simulate_clouds = true;
    config.cloud_simulator = Some(Arc::new(Clouds));
    let engine = engine(config).await;
    let _player = Player::start(api.clone());
    let namespaces: BTreeSet<&str> =
        manifests.iter().filter_map(|object| object["metadata"]["namespace"].as_str()).collect();
    for one in namespaces {
        namespace(&api, one).await;
    }
    let assumed = std::mem::take(&mut expected.assumed);
    // Where replicas go depends on which clusters are there already, so those come first.
    let (models, platform): (Vec<&Value>, Vec<&Value>) =
        manifests.iter().chain(&assumed).partition(|object| object["kind"] == "ModelDeployment");
    for object in platform {
        apply_once_served(&api, object).await;
    }
    let clusters = ["InferenceCluster", "ServingStack", "Release"];
    expected.default(&api).await;
    let clusters: Vec<(&ObjectKey, &Value)> =
        expected.objects.iter().filter(|(key, _)| clusters.contains(&key.kind.as_str())).collect();
    for one in &clusters {
        eventually(&format!("{} is as in render", one.0), || {
            are_as_in_render(&api, std::slice::from_ref(one))
        })
        .await;
    }
    // All at once, too: while the others came, one may have been unready again.
    eventually("all clusters are as in render", || are_as_in_render(&api, &clusters)).await;
    for object in models {
        apply_once_served(&api, object).await;
    }
    let mut left = Vec::new();
    for round in 0..600 {
        if round % 20 == 0 {
            // Definitions of clouds' kinds come as they are composed.
            expected.default(&api).await;
        }
        left = differences(&expected.objects, &found(&api, &expected.objects).await);
        if left.is_empty() {
            engine.shutdown().await;
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    for object in list(&api, OBJECTS, "Object").await {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let problems = conditions.iter().filter(|condition| condition["status"] != "True");
        left.extend(problems.map(|condition| format!("{}: {condition}", ObjectKey::of(&object))));
    }
    panic!("{name}: {} differences:\n{}", left.len(), left.join("\n"));
}

/// Whether clusters are what `render` has them come to. They are also ready for a moment before their serving stacks
/// exist, and offer nothing then.
async fn are_as_in_render(api: &ApiClient, clusters: &[(&ObjectKey, &Value)]) -> Option<()> {
    let offers =
        |object: &Value| (normal(&object["status"]["gpuPools"]), normal(&object["status"]["gateway"]));
    for (key, object) in clusters {
        let found = get(api, object["apiVersion"].as_str()?, &key.kind, &key.namespace, &key.name).await?;
        if facts(object).1 != facts(&found).1 || offers(object) != offers(&found) {
            return None;
        }
    }
    Some(())
}

/// A cluster for each that the manifests say exists, and one for those in clouds.
async fn existing_clusters(api: &ApiClient, clusters: &Clusters, manifests: &[Value]) -> Vec<Cluster> {
    let mut started = Vec::new();
    for object in manifests.iter().filter(|object| object["kind"] == "InferenceCluster") {
        if let Some(secret) = object["spec"]["cluster"]["existing"]["secretRef"]["name"].as_str() {
            let name = secret.strip_suffix("-kubeconfig").expect("examples name their Secrets so");
            started.push(clusters.start(api, name).await);
        }
    }
    started.push(clusters.start(api, CLOUD).await);
    started
}

async fn apply_once_served(api: &ApiClient, object: &Value) {
    // The kubeconfigs of existing clusters are there already.
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if object["kind"] == "Secret"
        && object["metadata"]["namespace"] == SYSTEM
        && name.ends_with("-kubeconfig")
    {
        return;
    }
    let (api_version, kind) = kind_of(object);
    for _ in 0..100 {
        if api.resource(&api_version, &kind).await.is_ok() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    apply(api, object.clone()).await;
}

/// The objects on the control plane: of all kinds that are always compared, and of those that `render` composed.
async fn found(api: &ApiClient, expected: &BTreeMap<ObjectKey, Value>) -> BTreeMap<ObjectKey, Value> {
    let mut kinds = always_compared();
    kinds.extend(expected.values().map(kind_of));
    let mut found = BTreeMap::new();
    for (api_version, kind) in kinds {
        // Of other kinds there may be objects without us.
        let always = always_compared().contains(&(api_version.clone(), kind.clone()));
        for mut object in list(api, &api_version, &kind).await {
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(kind);
            let key = ObjectKey::of(&object);
            let composed = object["metadata"]["annotations"].get(RESOURCE_NAME).is_some();
            if always || composed || expected.contains_key(&key) {
                found.insert(key, object);
            }
        }
    }
    found
}

/// What composites refer to is all there is: nothing may be composed in a kind nobody looks at.
fn overlooked(found: &BTreeMap<ObjectKey, Value>) -> Vec<String> {
    let references: Vec<Map<String, Value>> = found
        .values()
        .flat_map(|object| {
            object["spec"]["crossplane"]["resourceRefs"].as_array().cloned().unwrap_or_default()
        })
        .filter_map(|reference| reference.as_object().cloned())
        .collect();
    let is_known = |reference: &Map<String, Value>| {
        found.keys().any(|key| reference["kind"] == key.kind && reference["name"] == key.name)
    };
    let unknown = references.into_iter().filter(|reference| !is_known(reference));
    unknown.map(|reference| format!("composed, and not compared: {reference:?}")).collect()
}

fn differences(expected: &BTreeMap<ObjectKey, Value>, found: &BTreeMap<ObjectKey, Value>) -> Vec<String> {
    let mut out = Vec::new();
    for (key, object) in expected {
        let Some(live) = found.get(key) else {
            out.push(format!("missing: {key}"));
            continue;
        };
        let ((spec, conditions), (live_spec, live_conditions)) = (facts(object), facts(live));
        let same = match may_differ(object, DEFAULTS) {
            true => is_within(&spec, &live_spec),
            false => spec == live_spec,
        };
        if !same {
            out.push(format!("spec of {key}:\n  {spec}\n  {live_spec}"));
        }
        if conditions != live_conditions {
            out.push(format!("conditions of {key}:\n  {conditions:?}\n  {live_conditions:?}"));
        }
    }
    out.extend(overlooked(found));
    out.extend(found.keys().filter(|key| !expected.contains_key(*key)).map(|key| format!("too much: {key}")));
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_is_composed_as_render_composes_it() {
    let examples = examples();
    assert!(examples.len() > 5, "{examples:?}");
    for name in examples {
        composed(&name).await;
    }
}
