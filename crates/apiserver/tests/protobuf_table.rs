//! The table of protobuf fields agrees with the Go types it was made from, where the Go module cache has them.
//!
//! `UPDATE_PROTOBUF_TABLE=1` rewrites it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use modelplane_apimachinery::builtin;

const KUBERNETES: &str = "v0.36.3";
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/protobuf/fields.txt");
const HEADER: &str = "# Field numbers and types of the protobuf messages of Kubernetes' built-in kinds.\n\
    # Made by tests/protobuf_table.rs from the struct tags of k8s.io/{api,apimachinery,apiextensions-apiserver,\n\
    # kube-aggregator} v0.36.3 (Apache-2.0). One message a line: name, then number,name,type for each field;\n\
    # no name: inlined. Types: s text, b boolean, i integer, y bytes, or a message; * repeated, % map, ? absent\n\
    # if zero.\n";
/// Messages that are not kinds of the table of kinds.
const OTHERS: [&str; 7] = [
    "meta/v1.DeleteOptions",
    "autoscaling/v1.Scale",
    "policy/v1.Eviction",
    "core/v1.Binding",
    "authentication/v1.TokenRequest",
    "meta/v1.Status",
    "core/v1.Event",
];

/// Package folders below the module cache, with the names used in the table.
fn packages(cache: &Path) -> Vec<(String, PathBuf)> {
    let module = |name: &str| cache.join(format!("k8s.io/{name}@{KUBERNETES}"));
    let mut found = vec![
        ("meta/v1".to_owned(), module("apimachinery").join("pkg/apis/meta/v1")),
        ("apiextensions/v1".to_owned(), module("apiextensions-apiserver").join("pkg/apis/apiextensions/v1")),
        ("apiregistration/v1".to_owned(), module("kube-aggregator").join("pkg/apis/apiregistration/v1")),
    ];
    for group in std::fs::read_dir(module("api")).into_iter().flatten().flatten() {
        for version in ["v1", "v2"] {
            let folder = group.path().join(version);
            if folder.join("types.go").exists() {
                found.push((format!("{}/{version}", group.file_name().to_string_lossy()), folder));
            }
        }
    }
    found
}

/// What a package declares: structs with their tagged fields, and what other named types are.
#[derive(Default)]
struct Declared {
    structs: BTreeMap<String, Vec<(u32, String, bool, String)>>,
    named: BTreeMap<String, String>,
}

fn tag<'t>(tags: &'t str, name: &str) -> Option<&'t str> {
    let start = tags.find(&format!("{name}:\""))? + name.len() + 2;
    tags[start..].split('"').next()
}

fn imports(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim).filter(|line| line.contains("\"k8s.io/"));
    lines
        .filter_map(|line| {
            let path = line.split('"').nth(1).filter(|path| path.starts_with("k8s.io/"))?;
            let name = line.split('"').next()?.trim();
            let name = if name.is_empty() { path.rsplit('/').next()? } else { name };
            let (parents, last) = path.rsplit_once('/')?;
            let parent = parents.rsplit('/').next()?;
            Some((name.to_owned(), format!("{parent}/{last}")))
        })
        .collect()
}

/// A Go type in the words of the table, with the names of its package's imports resolved.
fn resolve(go: &str, package: &str, imports: &BTreeMap<String, String>) -> String {
    if let Some(item) = go.strip_prefix("[]") {
        return if item == "byte" { "y".to_owned() } else { format!("*{}", resolve(item, package, imports)) };
    }
    if let Some(rest) = go.strip_prefix("map[") {
        let value = rest.split_once(']').unwrap().1;
        return format!("%{}", resolve(value, package, imports));
    }
    match go.trim_start_matches('*') {
        "string" => "s".to_owned(),
        "bool" => "b".to_owned(),
        "int" | "int32" | "int64" | "uint32" | "uint64" => "i".to_owned(),
        name => match name.split_once('.') {
            Some((import, name)) => format!("{}.{name}", imports.get(import).map_or(import, String::as_str)),
            None => format!("{package}.{name}"),
        },
    }
}

fn declarations(package: &str, folder: &Path, all: &mut Declared) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for file in files.filter(|path| path.extension().is_some_and(|end| end == "go")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let imports = imports(&text);
        let mut open: Option<String> = None;
        for line in text.lines() {
            let words: Vec<&str> = line.split('`').next().unwrap().split_whitespace().collect();
            match words.as_slice() {
                ["type", name, "struct", "{"] => {
                    open = Some(format!("{package}.{name}"));
                    all.structs.entry(format!("{package}.{name}")).or_default();
                }
                ["type", name, go] if *go != "interface" => {
                    all.named.insert(format!("{package}.{name}"), resolve(go, package, &imports));
                }
                ["}"] => open = None,
                _ => {
                    let (Some(message), Some(tags)) = (&open, line.split('`').nth(1)) else { continue };
                    let (Some(json), Some(protobuf)) = (tag(tags, "json"), tag(tags, "protobuf")) else {
                        continue;
                    };
                    let Some(Ok(number)) = protobuf.split(',').nth(1).map(str::parse) else { continue };
                    let go = words.last().unwrap();
                    let name = json.split(',').next().unwrap();
                    let omits = json.contains("omitempty") && !go.starts_with('*') && !name.is_empty();
                    let field = (number, name.to_owned(), omits, resolve(go, package, &imports));
                    all.structs.get_mut(message).unwrap().push(field);
                }
            }
        }
    }
}

/// Types whose form in JSON is their own; the decoder knows them.
fn is_special(name: &str) -> bool {
    [
        "meta/v1.Time",
        "meta/v1.MicroTime",
        "meta/v1.Duration",
        "meta/v1.FieldsV1",
        "util/intstr.IntOrString",
        "api/resource.Quantity",
        "pkg/runtime.RawExtension",
        "apiextensions/v1.JSON",
        "apiextensions/v1.JSONSchemaPropsOrArray",
        "apiextensions/v1.JSONSchemaPropsOrBool",
        "apiextensions/v1.JSONSchemaPropsOrStringArray",
    ]
    .contains(&name)
}

fn plain(all: &Declared, kind: &str) -> String {
    let shape: String = kind.chars().take_while(|mark| matches!(mark, '*' | '%')).collect();
    let base = &kind[shape.len()..];
    if base.len() == 1 || all.structs.contains_key(base) || is_special(base) {
        return kind.to_owned();
    }
    // These are messages with one repeated field of their own.
    if base.ends_with(".ExtraValue") {
        return format!("{shape}ExtraValue");
    }
    match all.named.get(base) {
        Some(named) => plain(all, &format!("{shape}{named}")),
        None => format!("{shape}s"),
    }
}

fn table(cache: &Path) -> String {
    let mut all = Declared::default();
    for (package, folder) in packages(cache) {
        declarations(&package, &folder, &mut all);
    }
    let group = |group: &str| match group.split('.').next().unwrap() {
        "" => "core".to_owned(),
        first => first.to_owned(),
    };
    let kinds =
        builtin::kinds().iter().map(|kind| format!("{}/{}.{}", group(kind.group), kind.version, kind.kind));
    let mut wanted: Vec<String> = kinds.chain(OTHERS.map(str::to_owned)).collect();
    // What the special messages refer to.
    wanted.push("apiextensions/v1.JSONSchemaProps".to_owned());
    let mut lines = BTreeMap::new();
    let mut seen = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        if !seen.insert(name.clone()) || is_special(&name) {
            continue;
        }
        let Some(fields) = all.structs.get(&name) else { continue };
        let mut line = name.clone();
        for (number, json, omits, kind) in fields {
            let kind = plain(&all, kind);
            let base = kind.trim_start_matches(['*', '%']);
            if base.contains('/') {
                wanted.push(base.to_owned());
            }
            write!(line, " {number},{json},{}{kind}", if *omits { "?" } else { "" }).unwrap();
        }
        lines.insert(name, line);
    }
    lines.values().fold(HEADER.to_owned(), |text, line| text + line + "\n")
}

#[test]
fn the_table_agrees_with_the_go_types() {
    let cache = std::env::var_os("GOMODCACHE")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join("go/pkg/mod")));
    let cache = cache.filter(|cache| cache.join(format!("k8s.io/api@{KUBERNETES}")).exists());
    let Some(cache) = cache else {
        eprintln!("SKIPPED: the Go module cache has no k8s.io/api@{KUBERNETES}");
        return;
    };
    let table = table(&cache);
    if std::env::var_os("UPDATE_PROTOBUF_TABLE").is_some() {
        std::fs::write(TABLE, &table).unwrap();
    }
    let kept = std::fs::read_to_string(TABLE).unwrap_or_default();
    assert!(kept == table, "{TABLE} is not what the Go types say; set UPDATE_PROTOBUF_TABLE=1 to rewrite it");
}
