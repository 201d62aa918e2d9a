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
