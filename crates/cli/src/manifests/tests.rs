use std::path::Path;

use super::*;

const TEXT: &str = "apiVersion: v1
kind: A
metadata:
  labels:
    a.b/c: x
spec:
  list:
  - one
  - two: 2
---
# nothing here
---
kind: B
apiVersion: v1
";

fn read(text: &str) -> Manifests {
    let mut manifests = Manifests::default();
    manifests.read(Path::new("f.yaml"), text);
    manifests
}

#[test]
fn every_field_knows_its_line() {
    let manifests = read(TEXT);
    assert_eq!(manifests.items.len(), 2);
    let lines = [
        ("", 1),
        ("metadata.labels[\"a.b/c\"]", 5),
        ("spec.list[1].two", 9),
        ("spec.list[7]", 7),
        ("spec.none.of.this", 6),
    ];
    for (path, line) in lines {
        assert_eq!(manifests.items[0].place(path).line, line, "{path}");
    }
    assert_eq!(manifests.items[1].start().to_string(), "f.yaml:13");
}

#[test]
fn lists_are_taken_apart() {
    let manifests =
        read("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A}, {apiVersion: v1, kind: B}]}");
    let kinds: Vec<_> = manifests.items.iter().map(|item| item.body["kind"].clone()).collect();
    assert_eq!(kinds, ["A", "B"]);
}

#[test]
fn broken_yaml_is_reported_with_its_line() {
    let manifests = read("apiVersion: v1\nkind: A\nspec: [1, 2\n");
    let (place, why) = &manifests.broken[0];
    assert!(place.line >= 3, "{place}: {why}");
}

#[test]
fn documents_that_are_no_objects_are_reported() {
    assert_eq!(read("a: 1").broken[0].0.line, 1);
}

#[test]
fn plain_yes_is_a_boolean_as_kubectl_reads_it() {
    let body = &read("{apiVersion: v1, kind: A, a: yes, b: 'yes'}").items[0].body;
    assert_eq!((&body["a"], &body["b"]), (&true.into(), &"yes".into()));
}
