//! YAML files as documents.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// The documents of a YAML file.
///
/// # Errors
///
/// If it cannot be read or is not YAML.
pub fn read(path: &Path) -> Outcome<Vec<Value>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(Failure::io(format!("read {shown}")))?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| Failure::Wrong(format!("{shown}: {error}")))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The documents of all YAML files of a folder, by file name.
///
/// # Errors
///
/// If one cannot be read.
pub fn read_folder(folder: &Path) -> Outcome<Vec<Value>> {
    let mut documents = Vec::new();
    for path in entries(folder)?.iter().filter(|path| path.extension().is_some_and(|end| end == "yaml")) {
        documents.extend(read(path)?);
    }
    Ok(documents)
}

/// What is in a folder, sorted.
///
/// # Errors
///
/// If it cannot be read.
pub fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let cannot = || Failure::io(format!("list {}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(cannot())?;
    let mut paths =
        entries.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(cannot())?;
    paths.sort();
    Ok(paths)
}

/// The documents of one of this crate's own manifests.
///
/// # Errors
///
/// If it cannot be read.
pub fn own(name: &str) -> Outcome<Vec<Value>> {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests").join(name))
}
