//! `xtask vendor`: fetches the third-party resource definitions named in `modelplane_core::versions` and
//! writes them to `third_party/crds/`; the schemas of built-in kinds go to `third_party/kubernetes/`.
//!
//! Definitions come from Go modules, through the Go tool and its checksum database. What a server does
//! not need (prose) or owns itself (`status`, `creationTimestamp`) is left out; schemas, defaults, CEL
//! rules, names and annotations are kept. Each folder records where its content is from, the module's
//! checksum, and the licence. With `check` nothing is written, only compared.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use modelplane_core::versions::{CRD_BUNDLES, CrdBundle};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::vendor_kubernetes;

/// What has been done to each file.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Files with their outcome, in the order of the table of bundles.
    pub files: Vec<(PathBuf, Outcome)>,
}

/// What a run did to a file, or would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is as it should be.
    Unchanged,
    /// It differs from its source: written, or with `check` left as it is.
    Changed,
}

/// Definitions cannot be vendored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VendorError {
    /// The Go tool is missing or failed.
    #[error("go mod download {module}: {message}")]
    Download {
        /// Module and version.
        module: String,
        /// What the tool said.
        message: String,
    },
    /// The module is not what was vendored before under the same version.
    #[error("{module}: checksum is {found}, but {recorded} is recorded for this version")]
    Checksum {
        /// Module and version.
        module: String,
        /// Checksum recorded in `origin.json`.
        recorded: String,
        /// Checksum of what was fetched.
        found: String,
    },
    /// A module has no definitions where they are expected.
    #[error("{0}: no CustomResourceDefinition found")]
    Empty(PathBuf),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {message}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// With `check`: files differ from their source.
    #[error("{} differ from their source; run `cargo xtask vendor`", .0.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    Stale(Vec<PathBuf>),
}

/// `origin.json`: where the content of a folder is from.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Origin {
    go_module: String,
    version: String,
    module_checksum: String,
    source_folder: String,
    licence: String,
    changes: String,
}

/// What `go mod download -json` prints.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Download {
    /// Where the module is.
    #[serde(default)]
    pub dir: PathBuf,
    /// Its checksum.
    #[serde(default)]
    pub sum: String,
    error: Option<String>,
}

/// What vendoring does to the definitions, for `origin.json`.
const CHANGES: &str = "made by `cargo xtask vendor`: converted to JSON, one list per bundle; \
                       descriptions, status and creationTimestamp removed";

/// Vendors every bundle below `root`, the folder of the workspace.
///
/// # Errors
///
/// If a module cannot be fetched, has changed under its version, or holds no definitions; with `check`
/// also if a file differs from what would be written.
pub(crate) fn run(root: &Path, check: bool) -> Result<Report, VendorError> {
    let mut report = Report::default();
    for bundle in CRD_BUNDLES {
        vendor(bundle, root, check, &mut report)?;
    }
    vendor_kubernetes::vendor(root, check, &mut report)?;
    let stale = report.stale();
    if check && !stale.is_empty() {
        return Err(VendorError::Stale(stale));
    }
    Ok(report)
}

impl Report {
    fn stale(&self) -> Vec<PathBuf> {
        let changed = self.files.iter().filter(|(_, outcome)| *outcome == Outcome::Changed);
        changed.map(|(path, _)| path.clone()).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, outcome) in &self.files {
            let word = if *outcome == Outcome::Changed { "changed" } else { "unchanged" };
            writeln!(f, "{word:<10} {}", path.display())?;
        }
        Ok(())
    }
}

fn vendor(bundle: &CrdBundle, root: &Path, check: bool, report: &mut Report) -> Result<(), VendorError> {
    let module = format!("{}@{}", bundle.go_module, bundle.version);
    let download = fetch(&module)?;
    let folder = root.join("third_party/crds").join(bundle.folder);
    let origin_path = folder.join("origin.json");
    verify_checksum(&origin_path, bundle.version, &module, &download.sum)?;

    let origin = Origin {
        go_module: bundle.go_module.to_owned(),
        version: bundle.version.to_owned(),
        module_checksum: download.sum,
        source_folder: bundle.source_folder.to_owned(),
        licence: bundle.licence.to_owned(),
        changes: CHANGES.to_owned(),
    };
    let definitions = definitions(&download.dir.join(bundle.source_folder))?;
    let licence = read(&download.dir.join("LICENSE"))?;
    for (path, content) in [
        (folder.join("crds.json"), pretty(&definitions)),
        (origin_path, pretty(&origin)),
        (folder.join("LICENSE"), licence),
    ] {
        let outcome = write(&path, &content, check)?;
        report.files.push((path, outcome));
    }
    Ok(())
}

/// Downloads a module, given with its version.
pub(crate) fn fetch(module: &str) -> Result<Download, VendorError> {
    let failed = |message: String| VendorError::Download { module: module.to_owned(), message };
    // The folder keeps an enclosing Go module, if there is one, out of it.
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        .current_dir(std::env::temp_dir())
        .output()
        .map_err(|error| failed(format!("the go tool cannot be run: {error}")))?;
    let download: Download = serde_json::from_slice(&output.stdout)
        .map_err(|_| failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))?;
    match download.error {
        Some(message) => Err(failed(message)),
        None => Ok(download),
    }
}

/// Fails if the same version had another checksum when it was vendored before.
pub(crate) fn verify_checksum(
    path: &Path,
    version: &str,
    module: &str,
    sum: &str,
) -> Result<(), VendorError> {
    if !path.exists() {
        return Ok(());
    }
    let recorded: Origin = serde_json::from_str(&read(path)?)
        .map_err(|error| VendorError::Malformed { path: path.to_owned(), message: error.to_string() })?;
    if recorded.version == version && recorded.module_checksum != sum {
        return Err(VendorError::Checksum {
            module: module.to_owned(),
            recorded: recorded.module_checksum,
            found: sum.to_owned(),
        });
    }
    Ok(())
}

/// The definitions in a folder of YAML files, by name.
fn definitions(folder: &Path) -> Result<Vec<Value>, VendorError> {
    let failed = |source| VendorError::File { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let documents: Vec<Value> = serde_saphyr::from_multiple(&read(&path)?)
                .map_err(|error| VendorError::Malformed { path: path.clone(), message: error.to_string() })?;
            found.extend(documents.into_iter().filter(is_definition).map(reduced));
        }
    }
    if found.is_empty() {
        return Err(VendorError::Empty(folder.to_owned()));
    }
    found.sort_by_cached_key(|definition| definition["metadata"]["name"].to_string());
    Ok(found)
}

fn is_definition(document: &Value) -> bool {
    document["kind"] == "CustomResourceDefinition"
}

/// A definition without prose and without what a server owns.
fn reduced(mut definition: Value) -> Value {
    if let Some(object) = definition.as_object_mut() {
        object.shift_remove("status");
    }
    if let Some(metadata) = definition["metadata"].as_object_mut() {
        metadata.shift_remove("creationTimestamp");
    }
    without_prose(&mut definition["spec"]);
    definition
}

/// Removes every `description` that is text; one that is an object is a property of that name.
fn without_prose(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|key, value| !(key == "description" && value.is_string()));
            // Defaults are data of the definition, whatever their keys are called.
            object
                .iter_mut()
                .filter(|(key, _)| *key != "default")
                .for_each(|(_, value)| without_prose(value));
        }
        Value::Array(items) => items.iter_mut().for_each(without_prose),
        _ => {}
    }
}

/// JSON indented by one space: diffs stay readable at two thirds of the usual size.
pub(crate) fn pretty<T: Serialize>(value: &T) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    value.serialize(&mut serializer).expect("values with string keys serialise to memory");
    out.push(b'\n');
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, VendorError> {
    fs::read_to_string(path).map_err(|source| VendorError::File { path: path.to_owned(), source })
}

/// Writes a file that differs; with `check` only says so.
pub(crate) fn write(path: &Path, content: &str, check: bool) -> Result<Outcome, VendorError> {
    if fs::read_to_string(path).is_ok_and(|present| present == content) {
        return Ok(Outcome::Unchanged);
    }
    if !check {
        let failed = |source| VendorError::File { path: path.to_owned(), source };
        fs::create_dir_all(path.parent().expect("files are in a folder")).map_err(failed)?;
        fs::write(path, content).map_err(failed)?;
    }
    Ok(Outcome::Changed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prose_and_server_owned_fields_are_left_out_and_properties_are_kept() {
        let definition = json!({
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "a.b", "annotations": {"description": "kept"}, "creationTimestamp": null},
            "spec": {"versions": [{"schema": {
                "description": "prose",
                "default": {"description": "data"},
                "properties": {"description": {"type": "string", "description": "prose"}},
            }}]},
            "status": {"conditions": null},
        });
        let expected = json!({
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "a.b", "annotations": {"description": "kept"}},
            "spec": {"versions": [{"schema": {
                "default": {"description": "data"},
                "properties": {"description": {"type": "string"}},
            }}]},
        });
        assert_eq!(reduced(definition), expected);
    }

    #[test]
    fn a_folder_without_definitions_is_an_error() {
        let folder = std::env::temp_dir();
        let empty = folder.join(format!("xtask-vendor-{}", std::process::id()));
        fs::create_dir_all(&empty).expect("a temporary folder can be made");
        let result = definitions(&empty);
        fs::remove_dir(&empty).expect("the folder is empty");
        assert!(matches!(result, Err(VendorError::Empty(_))), "{result:?}");
    }
}
