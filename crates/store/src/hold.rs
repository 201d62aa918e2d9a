//! The lock that keeps a store's file to one process, with the holder's process id in it.
//!
//! The lock file stays behind when the store closes: removing it would race with the next holder.
//! Only the operating system's lock counts, never the file's presence or content.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::OpenError;

/// The right to use a store's file, given up when dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    _file: File,
}

impl Hold {
    /// Takes the store at a path, or says who has it.
    pub(crate) fn take(path: &Path) -> Result<Hold, OpenError> {
        let lock = beside(path, "lock");
        let failed = |source| OpenError::Io { path: lock.clone(), source };
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::HeldBy { path: path.to_owned(), pid: read_pid(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // The id only serves an error message, so a full disk must not keep the store shut.
        if let Err(error) = write_pid(&mut file) {
            tracing::warn!(path = %lock.display(), %error, "cannot note the store's holder");
        }
        Ok(Hold { _file: file })
    }
}

/// The path of a file that goes with a store's.
pub(crate) fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// Makes an empty file that only its owner may read, since values may be secrets.
pub(crate) fn create_private(path: &Path) -> Result<(), OpenError> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let failed = |source| OpenError::Io { path: path.to_owned(), source };
    options.open(path).map(drop).map_err(failed)
}

/// Makes a new file's name durable; not every platform can, and a crash before the first
/// acknowledged write is all that could be lost.
pub(crate) fn sync_directory(path: &Path) {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let synced = File::open(directory.unwrap_or(Path::new("."))).and_then(|file| file.sync_all());
    if let Err(error) = synced {
        tracing::debug!(path = %path.display(), %error, "cannot sync the store's directory");
    }
}
