//! The protobuf messages of Kubernetes' built-in kinds, from the `.proto` files and Go types in its modules.
//!
//! The `.proto` files give numbers and types; only the Go types tell how a field is named in JSON, whether it
//! is a pointer, and when it is left out. Fields are matched by message and number.
//!
//! A message is a list of fields, each `<number> <JSON name> <type> <flags>`. Flags: `[` list, `{` map with
//! text keys, `*` pointer, `?` left out if empty (`omitempty`), `0` left out if zero (`omitzero`), `.` its
//! fields belong to the message around it; a list with `.` stands for its message. A type without dots is a
//! scalar; `json` is JSON as bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;

use crate::vendor::{VendorError, read};

/// The folders with messages: module, folder in it.
const FOLDERS: &[(&str, &str)] = &[
    ("k8s.io/api", "admissionregistration/v1"),
    ("k8s.io/api", "apps/v1"),
    ("k8s.io/api", "authentication/v1"),
    ("k8s.io/api", "authorization/v1"),
    ("k8s.io/api", "autoscaling/v1"),
    ("k8s.io/api", "autoscaling/v2"),
    ("k8s.io/api", "batch/v1"),
    ("k8s.io/api", "coordination/v1"),
    ("k8s.io/api", "core/v1"),
    ("k8s.io/api", "discovery/v1"),
    ("k8s.io/api", "events/v1"),
    ("k8s.io/api", "networking/v1"),
    ("k8s.io/api", "policy/v1"),
    ("k8s.io/api", "rbac/v1"),
    ("k8s.io/api", "resource/v1"),
    ("k8s.io/api", "scheduling/v1"),
    ("k8s.io/api", "storage/v1"),
    ("k8s.io/apiextensions-apiserver", "pkg/apis/apiextensions/v1"),
    ("k8s.io/apimachinery", "pkg/api/resource"),
    ("k8s.io/apimachinery", "pkg/apis/meta/v1"),
    ("k8s.io/apimachinery", "pkg/runtime"),
    ("k8s.io/apimachinery", "pkg/util/intstr"),
    ("k8s.io/kube-aggregator", "pkg/apis/apiregistration/v1"),
];

/// What is sent beside objects of the vendored kinds.
const BODIES: &[&str] = &[
    "k8s.io.api.authentication.v1.TokenRequest",
    "k8s.io.api.autoscaling.v1.Scale",
    "k8s.io.api.core.v1.Binding",
    "k8s.io.api.policy.v1.Eviction",
    "k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions",
];

/// Fields that are JSON as bytes.
const JSON_FIELDS: &[&str] = &["FieldsV1.Raw", "JSON.raw", "RawExtension.raw"];

/// The modules that are read.
pub(crate) const MODULES: &[&str] =
    &["k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/kube-aggregator"];

/// A field of a message as its `.proto` file has it.
#[derive(Debug, PartialEq)]
struct Field {
    number: u32,
    name: String,
    type_name: String,
    /// `[`, `{` or nothing.
    shape: &'static str,
}

/// A field of a Go struct as its tags have it.
#[derive(Debug, Default, PartialEq)]
struct Tags {
    /// The name in JSON; empty if the field has none of its own.
    name: String,
    flags: String,
}

type Messages = BTreeMap<String, Vec<Field>>;
type Structs = BTreeMap<(String, u32), Tags>;

/// `messages.json`: what `kinds` (API document, kind) need; `folder` gives the folder of a module.
pub(crate) fn messages<'p>(
    kinds: impl Iterator<Item = (&'p str, &'p str)>,
    folder: impl Fn(&str) -> &'p Path,
) -> Result<String, VendorError> {
    let (mut messages, mut structs) = (Messages::new(), Structs::new());
    for (module, sub_folder) in FOLDERS {
        let path = folder(module).join(sub_folder);
        let package = format!("{module}/{sub_folder}").replace('/', ".").replace('-', "_");
        read_proto(&read(&path.join("generated.proto"))?, &package, &mut messages);
        let failed = |source| VendorError::File { path: path.clone(), source };
        for entry in fs::read_dir(&path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            if file.extension().is_some_and(|extension| extension == "go") {
                read_go(&read(&file)?, &package, &mut structs);
            }
        }
    }
    let roots = kinds.map(|(document, kind)| format!("{}.{kind}", package_of(document)));
    let mut wanted: Vec<String> = roots.chain(BODIES.iter().map(|body| (*body).to_owned())).collect();
    let mut kept: BTreeMap<String, String> = BTreeMap::new();
    while let Some(name) = wanted.pop() {
        let Some(fields) = messages.get(&name).filter(|_| !kept.contains_key(&name)) else { continue };
        wanted.extend(fields.iter().map(|field| field.type_name.clone()));
        let fields: Vec<String> =
            fields.iter().map(|field| line(&name, field, fields.len(), &structs)).collect();
        kept.insert(name, json!(fields).to_string());
    }
    let lines: Vec<String> = kept.iter().map(|(name, fields)| format!("{}:{fields}", json!(name))).collect();
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

/// The package of an API document: `apis__rbac.authorization.k8s.io__v1` is `k8s.io.api.rbac.v1`.
fn package_of(document: &str) -> String {
    let mut parts = document.split("__").skip(1);
    match (parts.next().unwrap_or_default(), parts.next()) {
        ("apiextensions.k8s.io", Some(version)) => {
            format!("k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.{version}")
        }
        ("apiregistration.k8s.io", Some(version)) => {
            format!("k8s.io.kube_aggregator.pkg.apis.apiregistration.{version}")
        }
        (group, Some(version)) => {
            format!("k8s.io.api.{}.{version}", group.split('.').next().unwrap_or_default())
        }
        (version, None) => format!("k8s.io.api.core.{version}"),
    }
}

fn line(message: &str, field: &Field, fields: usize, structs: &Structs) -> String {
    let short = message.rsplit('.').next().unwrap_or_default();
    let path = format!("{short}.{}", field.name);
    let type_name = if JSON_FIELDS.contains(&path.as_str()) { "json" } else { &field.type_name };
    let known = structs.get(&(message.to_owned(), field.number));
    let (name, flags) = match known {
        Some(tags) if matches!(tags.name.as_str(), "" | "-") => (&field.name, tags.flags.as_str()),
        Some(tags) => (&tags.name, tags.flags.as_str()),
        // A Go list with a name of its own, which protobuf cannot express.
        None if fields == 1 && field.name == "items" => (&field.name, "."),
        None => (&field.name, "*"),
    };
    format!("{} {name} {type_name} {}{flags}", field.number, field.shape).trim_end().to_owned()
}

/// Reads the messages of a `.proto` file; those of Kubernetes are not nested.
fn read_proto(text: &str, package: &str, messages: &mut Messages) {
    let mut current: Option<String> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        if let Some(name) = line.strip_prefix("message ").and_then(|rest| rest.strip_suffix('{')) {
            let name = format!("{package}.{}", name.trim());
            messages.insert(name.clone(), Vec::new());
            current = Some(name);
        } else if line == "}" {
            current = None;
        } else if let (Some(message), Some(field)) = (&current, proto_field(line, package)) {
            messages.entry(message.clone()).or_default().push(field);
        }
    }
}

fn proto_field(line: &str, package: &str) -> Option<Field> {
    let (declaration, number) = line.split_once(';')?.0.split_once('=')?;
    let number = number.split_whitespace().next()?.parse().ok()?;
    let (declaration, name) = declaration.trim().rsplit_once(' ')?;
    let (shape, type_name) = match declaration.split_once(' ')? {
        ("optional" | "required", type_name) => ("", type_name),
        ("repeated", type_name) => ("[", type_name),
        ("map<string,", type_name) => ("{", type_name.strip_suffix('>')?),
        _ => return None,
    };
    let type_name = match type_name.trim().strip_prefix('.') {
        Some(absolute) => absolute.to_owned(),
        None if type_name.contains('.') || type_name.starts_with(|first: char| first.is_lowercase()) => {
            type_name.to_owned()
        }
        None => format!("{package}.{type_name}"),
    };
    Some(Field { number, name: name.to_owned(), type_name, shape })
}

/// Reads the tagged fields of the structs of a Go file, which is formatted by `gofmt`.
fn read_go(text: &str, package: &str, structs: &mut Structs) {
    let mut current: Option<String> = None;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {")) {
            current = Some(format!("{package}.{name}"));
        } else if line == "}" {
            current = None;
        } else if let (Some(message), Some((number, tags))) = (&current, go_field(line)) {
            structs.insert((message.clone(), number), tags);
        }
    }
}

fn go_field(line: &str) -> Option<(u32, Tags)> {
    let line = line.trim();
    if line.starts_with("//") {
        return None;
    }
    let (declaration, tags) = line.split_once('`')?;
    let value = |key: &str| Some(tags.split_once(&format!("{key}:\""))?.1.split_once('"')?.0);
    let number = value("protobuf")?.split(',').nth(1)?.parse().ok()?;
    let mut names = declaration.split_whitespace();
    let first = names.next()?;
    let mut flags = String::new();
    if names.next().unwrap_or(first).starts_with('*') {
        flags.push('*');
    }
    let mut json = value("json").unwrap_or_default().split(',');
    let name = json.next().unwrap_or_default().to_owned();
    for option in json {
        flags.push_str(match option {
            "omitempty" => "?",
            "omitzero" => "0",
            "inline" => ".",
            _ => "",
        });
    }
    Some((number, Tags { name, flags }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proto_files_are_read() {
        for (line, expected) in [
            ("optional string name = 1;", Some((1, "name", "string", ""))),
            ("repeated Container containers = 2;", Some((2, "containers", "p.v1.Container", "["))),
            ("optional .k8s.io.m.v1.Time at = 3;", Some((3, "at", "k8s.io.m.v1.Time", ""))),
            ("map<string, bytes> data = 4;", Some((4, "data", "bytes", "{"))),
            ("map<string, .k8s.io.r.Quantity> a = 5;", Some((5, "a", "k8s.io.r.Quantity", "{"))),
            ("option go_package = \"x\";", None),
            ("}", None),
        ] {
            let expected = expected.map(|(number, name, type_name, shape)| Field {
                number,
                name: name.to_owned(),
                type_name: type_name.to_owned(),
                shape,
            });
            assert_eq!(proto_field(line, "p.v1"), expected, "{line}");
        }
    }

    #[test]
    fn tags_of_go_fields_are_read() {
        for (line, expected) in [
            (
                "	Replicas *int32 `json:\"replicas,omitempty\" protobuf:\"varint,1,opt,name=replicas\"`",
                Some((1, "replicas", "*?")),
            ),
            ("	Source `json:\",inline\" protobuf:\"bytes,2,opt,name=source\"`", Some((2, "", "."))),
            ("	Rules []Rule `json:\"rules\" protobuf:\"bytes,3,rep,name=rules\"`", Some((3, "rules", ""))),
            (
                "	At Time `json:\"at,omitempty,omitzero\" protobuf:\"bytes,4,opt,name=at\"`",
                Some((4, "at", "?0")),
            ),
            ("	TypeMeta `json:\",inline\"`", None),
            ("	Time time.Time `protobuf:\"-\"`", None),
            ("	// Old `json:\"old\" protobuf:\"bytes,5,opt,name=old\"`", None),
        ] {
            let expected = expected.map(|(number, name, flags)| {
                (number, Tags { name: name.to_owned(), flags: flags.to_owned() })
            });
            assert_eq!(go_field(line), expected, "{line}");
        }
    }

    #[test]
    fn documents_are_in_the_package_of_their_group() {
        assert_eq!(package_of("api__v1"), "k8s.io.api.core.v1");
        assert_eq!(package_of("apis__rbac.authorization.k8s.io__v1"), "k8s.io.api.rbac.v1");
    }
}
