use serde_json::json;

use super::*;

#[test]
fn wildcards_match_whole_texts() {
    for (pattern, text, expected) in [
        ("Object", "Object", true),
        ("Object", "Objects", false),
        ("Object/*", "Object/a", true),
        ("*/a", "Object/a", true),
        ("serving-*-x", "serving-a-b-x", true),
        ("serving-*-x", "serving-a-b-y", false),
        ("*", "", true),
    ] {
        assert_eq!(glob(pattern, text), expected, "{pattern} on {text}");
    }
}

#[test]
fn composed_names_are_stable_and_valid() {
    let key = ObjectKey { group: "g".into(), kind: "K".into(), namespace: "n".into(), name: "x".repeat(63) };
    let name = composed_name(&key, "resource");
    assert_eq!(name, composed_name(&key, "resource"));
    assert_ne!(name, composed_name(&key, "other"));
    assert!(name.len() <= 63);
}

#[test]
fn objects_nobody_composes_stay_as_they_are() {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let mut simulation = Simulation::new([object.clone()], Options::default());
    let outcome = simulation.run();
    assert!(outcome.converged);
    assert_eq!(simulation.world().iter().map(|stored| &stored.body).collect::<Vec<_>>(), [&object]);
}

fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey { group: String::new(), kind: kind.into(), namespace: String::new(), name: name.into() }
}

fn object(kind: &str, name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
}

#[test]
fn what_was_composed_goes_with_its_composer() {
    let mut world = World::default();
    let owner = |name: &str| Owner { composite: key("A", name), resource_key: "below".to_owned() };
    world.apply(object("A", "top"), None);
    world.apply(object("A", "middle"), Some(owner("top")));
    world.apply(object("B", "bottom"), Some(owner("middle")));
    world.apply(object("B", "other"), None);
    world.remove(&key("A", "top"));
    let left: Vec<String> = world.iter().map(|object| object.key.to_string()).collect();
    assert_eq!(left, ["B/other"]);
}

#[test]
fn objects_of_a_kind_are_found_without_their_neighbours() {
    let mut world = World::default();
    for (kind, name) in [("A", "1"), ("AB", "2"), ("B", "1"), ("B", "2"), ("C", "1")] {
        world.apply(object(kind, name), None);
    }
    let names = |kind: &str| -> Vec<String> {
        world.of_kind("", kind).map(|object| object.key.name.clone()).collect()
    };
    assert_eq!(
        (names("A"), names("B"), names("D")),
        (vec!["1".into()], vec!["1".into(), "2".into()], vec![])
    );
}

fn gateway() -> serde_json::Value {
    json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceGateway", "metadata": {"name": "default"},
        "spec": {"backend": "Traefik", "traefik": {"version": "40.2.0"}},
    })
}

fn cluster(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "modelplane.ai/v1alpha1", "kind": "InferenceCluster", "metadata": {"name": name},
        "spec": {
            "cluster": {"source": "Existing", "existing": {"secretRef": {"name": "kubeconfig"}}},
            "nodePools": [],
        },
    })
}

fn address(simulation: &Simulation, kind: &str, name: &str) -> String {
    let found = simulation.world().of_kind("modelplane.ai", kind).find(|object| object.key.name == name);
    let status = found.map(|object| object.body["status"].clone()).unwrap_or_default();
    let address = status["address"].as_str().or(status["gateway"]["address"].as_str());
    address.unwrap_or_default().to_owned()
}

#[test]
fn applying_on_top_leaves_what_is_there_as_it_is() {
    let mut simulation = Simulation::new([gateway(), cluster("m")], Options::default());
    assert!(simulation.run().converged);
    let before: Vec<_> = simulation.world().iter().cloned().collect();
    let (fleet, of_m) =
        (address(&simulation, "InferenceGateway", "default"), address(&simulation, "InferenceCluster", "m"));
    assert!(!fleet.is_empty() && !of_m.is_empty() && fleet != of_m, "{fleet} {of_m}");

    simulation.apply([cluster("a")]);
    assert!(simulation.run().converged);
    let now: BTreeMap<_, _> = simulation.world().iter().map(|object| (&object.key, object)).collect();
    let changed: Vec<_> =
        before.iter().filter(|old| now[&old.key].body != old.body).map(|old| &old.key).collect();
    assert_eq!(changed, Vec::<&ObjectKey>::new(), "a cluster of its own changes nothing else");
    let of_a = address(&simulation, "InferenceCluster", "a");
    assert!(!of_a.is_empty() && of_a != of_m && of_a != fleet, "{of_a}");
}

#[test]
fn a_fixed_point_is_quiet_and_stays() {
    let mut simulation = Simulation::new([gateway(), cluster("m")], Options::default());
    let outcome = simulation.run();
    assert!(outcome.passes.last().is_some_and(Pass::is_quiet));
    assert_eq!(simulation.step(), Pass::default(), "nothing is composed, reported or changed again");
}

#[test]
fn what_stays_unready_holds_up_what_depends_on_it() {
    let options = Options { unready: vec![Unready("gateway".to_owned())], ..Options::default() };
    let mut simulation = Simulation::new([gateway(), cluster("m")], options);
    assert!(simulation.run().converged);
    let ready = |kind: &str| {
        let mut found = simulation.world().of_kind("modelplane.ai", kind);
        found.next().is_some_and(StoredObject::is_ready)
    };
    assert!(!ready("InferenceGateway") && !ready("InferenceCluster"));
}

#[test]
fn the_outermost_composite_names_all_that_is_composed_below_it() {
    let mut simulation = Simulation::new([cluster("m")], Options::default());
    assert!(simulation.run().converged);
    let label = |object: &StoredObject| {
        object.body["metadata"]["labels"]["crossplane.io/composite"].as_str().unwrap_or_default().to_owned()
    };
    let stack =
        simulation.world().of_kind("infrastructure.modelplane.ai", "ServingStack").next().expect("a stack");
    let below =
        |object: &&StoredObject| object.owner.as_ref().is_some_and(|owner| owner.composite == stack.key);
    let labels: Vec<String> = simulation.world().iter().filter(below).map(label).collect();
    assert!(stack.key.name != "m" && !labels.is_empty(), "{} {labels:?}", stack.key);
    assert!(labels.iter().all(|label| label == "m"), "{labels:?}");
}
