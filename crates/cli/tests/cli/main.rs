//! The `modelplane` binary as people call it: every command's output against a golden file.
//!
//! `UPDATE_GOLDEN=1 cargo test -p modelplane-cli` rewrites the golden files; look at the difference before
//! you commit it.

mod golden;
mod recorded_examples;
mod up;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The root of the workspace, where commands run, so that paths in their output are the same everywhere.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace has a root")
}

/// Runs the binary.
fn modelplane<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_modelplane"))
        .args(arguments)
        .current_dir(workspace())
        .output()
        .expect("the binary was built for this test")
}
