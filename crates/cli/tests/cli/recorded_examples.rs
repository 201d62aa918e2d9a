//! The published examples of Modelplane and of LLMInference: every folder renders to a fixed point with every
//! composite ready, but for those whose manifests do not go together.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::modelplane;

/// Composites of a folder that cannot become ready, and why.
const NEVER_READY: [(&str, &[&str], &str); 8] = [
    (
        "modelplane-v0.3.1/concepts",
        &["ModelDeployment ml-team/qwen3-coder"],
        "asks for GPUs of 120Gi, and no class has them",
    ),
    ("modelplane-v0.1.0/concepts", &["ModelDeployment ml-team/qwen3-coder"], "the same"),
    (
        "modelplane-v0.3.1/examples/qwen3-coder",
        &["ModelDeployment ml-team/qwen3-coder-sgl"],
        "two variants for one cluster of two nodes; the other one takes both",
    ),
    ("modelplane-v0.1.0/examples/qwen3-coder", &["ModelDeployment ml-team/qwen3-coder-sgl"], "the same"),
    (
        "modelplane-v0.3.1/getting-started/aks",
        &["ModelDeployment ml-team/qwen-west"],
        "applied at once and not step by step, the first deployment takes the only node in eastus",
    ),
    (
        "modelplane-v0.3.1/examples/qwen3-8b-speculative-decoding",
        &["ModelDeployment ml-team/qwen3-8b-spec"],
        "there is no cluster among the manifests",
    ),
    ("modelplane-v0.3.1/overview", &["ModelDeployment ml-team/qwen-demo"], "the same"),
    (
        "reference",
        &["InferenceCluster/west-gke", "ModelCache ml-team/qwen-72b", "ModelDeployment ml-team/qwen3-8b"],
        "one object of each kind; the class that the cluster names is not among them",
    ),
];

fn shared_examples() -> Option<PathBuf> {
    let path = crate::workspace().join("../shared/examples");
    if path.is_dir() {
        return path.canonicalize().ok();
    }
    #[expect(clippy::print_stderr, reason = "a test that does nothing has to say so")]
    {
        eprintln!("SKIPPED: {} does not exist", path.display());
    }
    None
}

/// Folders that hold manifests themselves.
fn folders_below(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the examples can be read").flatten() {
        if entry.path().is_dir() {
            folders_below(&entry.path(), found);
        } else {
            found.insert(folder.to_owned());
        }
    }
}

fn expected(folder: &str) -> BTreeSet<String> {
    let known = NEVER_READY.iter().filter(|(end, ..)| folder.ends_with(end));
    known.flat_map(|(_, names, _)| names.iter().map(|name| (*name).to_owned())).collect()
}

/// What is wrong with how the folder renders, if anything.
fn failure(root: &Path, path: &Path) -> Option<String> {
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let path = path.display().to_string();
    let output = modelplane(&["render", "--no-tree", "-f", &path]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary = text.lines().last().unwrap_or_default();
    if !output.status.success() || !summary.contains("fixed point after") {
        return Some(format!("{name}: {summary}{}", String::from_utf8_lossy(&output.stderr)));
    }
    let state = summary.split("; ").nth(2).unwrap_or_default();
    let waiting = state.split_once(" not ready: ").map(|(_, names)| names).unwrap_or_default();
    let waiting: BTreeSet<String> =
        waiting.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let expected = expected(&name);
    (waiting != expected).then(|| format!("{name}: not ready: {waiting:?}, expected {expected:?}"))
}

#[test]
fn every_published_example_renders_to_a_fixed_point() {
    let Some(root) = shared_examples() else { return };
    let mut folders = BTreeSet::new();
    folders_below(&root, &mut folders);
    let mut paths: Vec<PathBuf> = folders.into_iter().collect();
    let single = fs::read_dir(root.join("llm-inference")).expect("the examples can be read");
    paths.extend(single.flatten().map(|entry| entry.path()));
    assert!(paths.len() > 30, "only {} folders of examples", paths.len());
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(failure) = failure(&root, path) {
                        failures.lock().expect("no other thread panicked").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no thread panicked");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
