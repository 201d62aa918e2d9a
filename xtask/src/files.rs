//! Where the workspace is, and what is in it.

use std::fs;
use std::path::{Path, PathBuf};

/// A command's error, ready to be shown.
pub(crate) type Result<T, E = String> = std::result::Result<T, E>;

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map_or_else(|| xtask.to_owned(), Path::to_owned)
}

/// All files below `folder` with that extension, sorted; `target` folders are left out.
pub(crate) fn below(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                found.extend(below(&path, extension)?);
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A file's text.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Writes a file and the folders above it.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let complain = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(complain)?;
    }
    fs::write(path, text).map_err(complain)
}
