//! Manifests from files, folders and standard input, with the line of every field.
//!
//! YAML is read into a tree that knows where each value stands, so that whatever is said about an object
//! later, `file:line` can be said with it. Nothing is checked here beyond YAML itself and `kind`.

mod tree;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::outcome::CommandError;
use crate::resolve::closest;
use tree::Tree;

/// Which manifests to read.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Sources {
    /// Files or folders with manifests (.yaml, .yml, .json), or - for standard input
    #[arg(short = 'f', long = "filename", required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Read folders below the given ones too
    #[arg(short = 'R', long)]
    recursive: bool,
}

/// One object as it was written.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    /// The object.
    pub(crate) body: Value,
    file: PathBuf,
    tree: Tree,
}

/// Where something is said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The file, as it was named.
    pub(crate) file: PathBuf,
    /// Line, from 1.
    pub(crate) line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// Manifests, and the files that are none.
#[derive(Debug, Default)]
pub(crate) struct Manifests {
    /// Objects in the order they were read.
    pub(crate) items: Vec<Manifest>,
    /// What could not be read, and why.
    pub(crate) broken: Vec<(Place, String)>,
}

impl Sources {
    pub(crate) fn new(paths: Vec<PathBuf>, recursive: bool) -> Self {
        Self { paths, recursive }
    }

    /// Other sources, read the same way.
    pub(crate) fn of_path(&self, path: &Path) -> Self {
        Self { paths: vec![path.to_owned()], recursive: self.recursive }
    }

    /// Reads all of it; files that are not YAML end up in [`Manifests::broken`].
    pub(crate) fn load(&self) -> Result<Manifests, CommandError> {
        let mut manifests = Manifests::default();
        for path in &self.paths {
            if path == Path::new("-") {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text).map_err(|error| unreadable(path, &error))?;
                manifests.read(Path::new("stdin"), &text);
                continue;
            }
            let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
            let files =
                if metadata.is_dir() { self.files_below(path)? } else { BTreeSet::from([path.clone()]) };
            if files.is_empty() {
                return Err(CommandError::new(format!("no .yaml, .yml or .json file in {}", path.display()))
                    .with_hint("use -R to read the folders below it too"));
            }
            for file in files {
                let text = fs::read_to_string(&file).map_err(|error| unreadable(&file, &error))?;
                manifests.read(&file, &text);
            }
        }
        Ok(manifests)
    }

    /// As [`Sources::load`], but anything that is not YAML is an error.
    pub(crate) fn load_all(&self) -> Result<Vec<Manifest>, CommandError> {
        let manifests = self.load()?;
        match manifests.broken.first() {
            None => Ok(manifests.items),
            Some((place, why)) => Err(CommandError::new(format!("{place}: {why}"))),
        }
    }

    fn files_below(&self, folder: &Path) -> Result<BTreeSet<PathBuf>, CommandError> {
        let mut files = BTreeSet::new();
        for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
            let path = entry.map_err(|error| unreadable(folder, &error))?.path();
            if path.is_dir() {
                if self.recursive {
                    files.extend(self.files_below(&path)?);
                }
            } else if path.extension().is_some_and(|extension| {
                ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
            }) {
                files.insert(path);
            }
        }
        Ok(files)
    }
}

fn unreadable(path: &Path, error: &io::Error) -> CommandError {
    if error.kind() != io::ErrorKind::NotFound {
        return CommandError::new(format!("cannot read {}: {error}", path.display()));
    }
    let error = CommandError::new(format!("there is no file or folder {}", path.display()));
    match similar(path) {
        Some(close) => error.with_hint(format!("did you mean {}?", close.display())),
        None => error,
    }
}

/// What stands beside the missing path and has nearly its name.
fn similar(path: &Path) -> Option<PathBuf> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let entries = fs::read_dir(parent.unwrap_or(Path::new("."))).ok()?;
    let names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let close = closest(path.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(path.with_file_name(close))
}

impl Manifests {
    fn read(&mut self, file: &Path, text: &str) {
        match tree::parse(text) {
            Ok(documents) => {
                for tree in documents {
                    self.add(file, tree);
                }
            }
            Err(error) => {
                let place = Place { file: file.to_owned(), line: error.line };
                self.broken.push((place, format!("not valid YAML: {}", error.message)));
            }
        }
    }

    /// Adds a document: an object, or a `List` of them.
    fn add(&mut self, file: &Path, tree: Tree) {
        if tree.is_null() {
            return;
        }
        let body = tree.to_json();
        let is_list = body["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        if let (true, Some(items)) = (is_list, tree.items("items")) {
            for item in items {
                self.add(file, item.clone());
            }
            return;
        }
        if body["kind"].is_string() && body["apiVersion"].is_string() {
            self.items.push(Manifest { body, file: file.to_owned(), tree });
        } else {
            let place = Place { file: file.to_owned(), line: tree.line() };
            self.broken.push((place, "not a Kubernetes object: apiVersion or kind is missing".to_owned()));
        }
    }
}

impl Manifest {
    /// Where the field under `path` (`spec.pools[0].name`) stands, or the nearest thing around it.
    pub(crate) fn place(&self, path: &str) -> Place {
        Place { file: self.file.clone(), line: self.tree.line_of(path) }
    }

    /// Where the object starts.
    pub(crate) fn start(&self) -> Place {
        self.place("")
    }
}

#[cfg(test)]
mod tests;
