//! The real binaries: where they are and which versions.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};

/// Names the folder with the binaries.
pub const FOLDER_VARIABLE: &str = "MODELPLANE_E2E_BIN";

/// What has to be in it, in the order it is reported.
const BINARIES: [&str; 7] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "crossplane",
    "provider-kubernetes",
    "kwok",
];

/// The folder that `just e2e-tools` fills.
#[derive(Debug, Clone)]
pub struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// Looks where [`FOLDER_VARIABLE`] says, else in the user's cache.
    ///
    /// # Errors
    ///
    /// If something is missing; says what and how to get it.
    pub fn find() -> Outcome<Self> {
        let folder = match std::env::var_os(FOLDER_VARIABLE) {
            Some(folder) => PathBuf::from(folder),
            None => user_cache().join("modelplane/e2e"),
        };
        let missing = |name: &&str| !folder.join(name).is_file();
        let mut lacks: Vec<&str> = BINARIES.iter().copied().filter(|name| missing(name)).collect();
        if !folder.join("definitions/crossplane").is_dir() {
            lacks.push("definitions");
        }
        if !lacks.is_empty() {
            let message = format!(
                "{} lacks {}; `just e2e-tools` builds them, {FOLDER_VARIABLE} names another folder",
                folder.display(),
                lacks.join(", ")
            );
            return Err(Failure::Wrong(message));
        }
        Ok(Self { folder })
    }

    /// A binary.
    pub fn binary(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A folder of resource definitions.
    pub fn definitions(&self, name: &str) -> PathBuf {
        self.folder.join("definitions").join(name)
    }

    /// Name and version of each component.
    pub fn versions(&self) -> Vec<(String, String)> {
        let text = std::fs::read_to_string(self.folder.join("versions")).unwrap_or_default();
        let version = |line: &str| line.split_once(' ').map(|(name, v)| (name.to_owned(), v.to_owned()));
        text.lines().filter_map(version).collect()
    }
}

fn user_cache() -> PathBuf {
    let from =
        |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    from("XDG_CACHE_HOME")
        .or_else(|| from("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
}

/// The `modelplane` binary under test: `MODELPLANE_BIN`, else the one built beside this program.
///
/// # Errors
///
/// If there is none.
pub fn modelplane() -> Outcome<PathBuf> {
    if let Some(path) = std::env::var_os("MODELPLANE_BIN") {
        return Ok(PathBuf::from(path));
    }
    let this = std::env::current_exe().map_err(Failure::io("find this program"))?;
    let beside = this.parent().map(|folder| folder.join("modelplane")).filter(|path| path.is_file());
    beside.ok_or_else(|| {
        Failure::Wrong("no modelplane binary; build it with `cargo build -p modelplane-cli`".to_owned())
    })
}

/// The root of this repository.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
