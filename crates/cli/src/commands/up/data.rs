//! The folder that the control plane keeps its data in.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::outcome::CommandError;

/// A folder, removed at the end if it is a temporary one.
pub(super) struct DataFolder {
    path: PathBuf,
    temporary: bool,
}

impl DataFolder {
    /// The folder given, or the one for this user's data; made if it is not there.
    pub(super) fn open(given: Option<PathBuf>) -> Result<Self, CommandError> {
        let path = match given {
            Some(path) => path,
            None => user_data_folder()?,
        };
        make(&path)?;
        Ok(Self { path, temporary: false })
    }

    /// A folder of this process.
    pub(super) fn temporary() -> Result<Self, CommandError> {
        let path = std::env::temp_dir().join(format!("modelplane-{}", std::process::id()));
        make(&path)?;
        Ok(Self { path, temporary: true })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// A file in the folder.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed now is the operating system's to clean up.
            drop(fs::remove_dir_all(&self.path));
        }
    }
}

/// `$XDG_DATA_HOME/modelplane`, by the XDG base directory specification.
fn user_data_folder() -> Result<PathBuf, CommandError> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local").join("share")));
    base.map(|base| base.join("modelplane")).ok_or_else(|| {
        CommandError::new("there is no place to keep data: neither XDG_DATA_HOME nor HOME is set")
            .with_hint("give --data-dir or --ephemeral")
    })
}

/// Makes a folder that only its owner can read.
fn make(path: &Path) -> Result<(), CommandError> {
    let failed =
        |error: std::io::Error| CommandError::new(format!("cannot make {}: {error}", path.display()));
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(failed)
}

/// Writes a file that only its owner can read, replacing it whole.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), CommandError> {
    let failed =
        |error: std::io::Error| CommandError::new(format!("cannot write {}: {error}", path.display()));
    let next = path.with_extension("next");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&next).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&next, path).map_err(failed)
}
