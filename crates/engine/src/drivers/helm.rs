//! Helm, behind a trait: the real program here, a stand-in for simulated clusters in
//! [`simulated_helm`](super::simulated_helm).

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::process::Command;

use crate::clusters::Cluster;

/// A release on a cluster.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Namespace of the release.
    pub namespace: &'a str,
    /// Name of the release.
    pub name: &'a str,
}

/// A chart and what it is installed with.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Name.
    pub name: String,
    /// Repository, `oci://…` included.
    pub repository: String,
    /// Version.
    pub version: String,
    /// Values.
    pub values: Value,
    /// Whether to wait until everything runs, and roll back if it does not.
    pub wait: Option<Duration>,
    /// Whether the release's namespace is to exist already.
    pub skip_create_namespace: bool,
}

/// What Helm says of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseState {
    /// `deployed`, `failed`, `pending-install`, …
    pub state: String,
    /// Revision, from 1.
    pub revision: i64,
    /// Description of the revision.
    pub description: String,
}

/// Helm could not do it.
#[derive(Debug, thiserror::Error)]
pub enum HelmError {
    /// There is no such program.
    #[error("cannot start {program}: {source}; install Helm or name it with --helm")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot hand values to helm: {0}")]
    File(#[source] std::io::Error),
    /// It ended with an error.
    #[error("helm {command}: {message}")]
    Failed {
        /// The command.
        command: String,
        /// The end of what it said.
        message: String,
    },
    /// It took too long.
    #[error("helm {command} did not end within {} s", limit.as_secs())]
    Slow {
        /// The command.
        command: String,
        /// How long it had.
        limit: Duration,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Installs charts.
pub trait HelmRunner: Send + Sync {
    /// What is known of a release; none if there is none.
    fn state<'a>(&'a self, place: Place<'a>) -> BoxFuture<'a, Result<Option<ReleaseState>, HelmError>>;

    /// Installs or upgrades a release.
    fn deploy<'a>(
        &'a self,
        place: Place<'a>,
        chart: &'a Chart,
        known: Option<&'a ReleaseState>,
    ) -> BoxFuture<'a, Result<ReleaseState, HelmError>>;

    /// Uninstalls a release; one that is gone is fine.
    fn uninstall<'a>(&'a self, place: Place<'a>) -> BoxFuture<'a, Result<(), HelmError>>;
}

/// The `helm` program.
#[derive(Debug, Clone)]
pub struct HelmProgram {
    program: PathBuf,
}

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(600);
/// How much of its complaint is kept, in characters.
const KEPT: usize = 800;

impl Default for HelmProgram {
    fn default() -> Self {
        Self::new("helm")
    }
}

impl HelmProgram {
    /// The program at this path, or of this name.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }

    async fn run(
        &self,
        place: Place<'_>,
        arguments: &[String],
        values: Option<&Value>,
    ) -> Result<String, HelmError> {
        let files = Files::write(place.cluster.kubeconfig.as_deref(), values).await?;
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--namespace", place.namespace]);
        if let Some(kubeconfig) = &files.kubeconfig {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        if let Some(values) = &files.values {
            command.arg("--values").arg(values);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        let named = arguments.first().cloned().unwrap_or_default();
        let output = match tokio::time::timeout(LIMIT, command.output()).await {
            Err(_) => return Err(HelmError::Slow { command: named, limit: LIMIT }),
            Ok(Err(source)) => {
                return Err(HelmError::Start { program: self.program.display().to_string(), source });
            }
            Ok(Ok(output)) => output,
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let message = message.trim();
        let skipped = message.chars().count().saturating_sub(KEPT);
        Err(HelmError::Failed { command: named, message: message.chars().skip(skipped).collect() })
    }

    async fn look(&self, place: Place<'_>) -> Result<Option<ReleaseState>, HelmError> {
        let arguments =
            texts(&["list", "--all", "--output", "json", "--filter", &format!("^{}$", place.name)]);
        let listed = self.run(place, &arguments, None).await?;
        let listed: Value = serde_json::from_str(&listed).unwrap_or_default();
        Ok(listed.as_array().and_then(|list| list.first()).map(state))
    }

    /// Brings a release that was interrupted back to where it can be upgraded.
    async fn recover(&self, place: Place<'_>, known: &ReleaseState) -> Result<(), HelmError> {
        let command = match (known.state.as_str(), known.revision) {
            ("pending-install", _) | ("failed" | "uninstalling", ..=1) => texts(&["uninstall", place.name]),
            ("pending-upgrade" | "pending-rollback", _) => texts(&["rollback", place.name]),
            _ => return Ok(()),
        };
        self.run(place, &command, None).await.map(drop)
    }
}

impl HelmRunner for HelmProgram {
    fn state<'a>(&'a self, place: Place<'a>) -> BoxFuture<'a, Result<Option<ReleaseState>, HelmError>> {
        Box::pin(self.look(place))
    }

    fn deploy<'a>(
        &'a self,
        place: Place<'a>,
        chart: &'a Chart,
        known: Option<&'a ReleaseState>,
    ) -> BoxFuture<'a, Result<ReleaseState, HelmError>> {
        Box::pin(async move {
            if let Some(known) = known {
                self.recover(place, known).await?;
            }
            self.run(place, &upgrade(place.name, chart), Some(&chart.values)).await?;
            let after = self.look(place).await?;
            after.ok_or_else(|| {
                HelmError::Other(format!("release {} is not there after its upgrade", place.name))
            })
        })
    }

    fn uninstall<'a>(&'a self, place: Place<'a>) -> BoxFuture<'a, Result<(), HelmError>> {
        Box::pin(async move {
            let arguments = texts(&["uninstall", place.name, "--ignore-not-found"]);
            self.run(place, &arguments, None).await.map(drop)
        })
    }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

/// The arguments that install or upgrade a release.
fn upgrade(name: &str, chart: &Chart) -> Vec<String> {
    let mut arguments = texts(&["upgrade", "--install", name]);
    if chart.repository.starts_with("oci://") {
        arguments.push(format!("{}/{}", chart.repository.trim_end_matches('/'), chart.name));
    } else {
        arguments.push(chart.name.clone());
        if !chart.repository.is_empty() {
            arguments.extend(texts(&["--repo", &chart.repository]));
        }
    }
    if !chart.version.is_empty() {
        arguments.extend(texts(&["--version", &chart.version]));
    }
    if !chart.skip_create_namespace {
        arguments.push("--create-namespace".to_owned());
    }
    if let Some(limit) = chart.wait {
        arguments.extend(texts(&["--wait", "--atomic", "--timeout", &format!("{}s", limit.as_secs())]));
    }
    arguments
}

/// An entry of `helm list --output json`.
fn state(entry: &Value) -> ReleaseState {
    let revision = match &entry["revision"] {
        Value::String(text) => text.parse().unwrap_or_default(),
        number => number.as_i64().unwrap_or_default(),
    };
    let state = entry["status"].as_str().unwrap_or_default().to_owned();
    let description = entry["chart"].as_str().unwrap_or_default().to_owned();
    ReleaseState { state, revision, description }
}

/// Files for one command, which nobody else can read and which are gone afterwards.
struct Files {
    kubeconfig: Option<PathBuf>,
    values: Option<PathBuf>,
    folder: PathBuf,
}

impl Files {
    async fn write(kubeconfig: Option<&str>, values: Option<&Value>) -> Result<Self, HelmError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("modelplane-helm-{}-{number}", std::process::id()));
        let mut builder = tokio::fs::DirBuilder::new();
        #[cfg(unix)]
        builder.mode(0o700);
        // Fails if somebody has put something there, so nothing is written into foreign hands.
        builder.create(&folder).await.map_err(HelmError::File)?;
        let mut files = Self { kubeconfig: None, values: None, folder };
        if let Some(text) = kubeconfig {
            files.kubeconfig = Some(private(&files.folder.join("kubeconfig"), text.as_bytes()).await?);
        }
        if let Some(values) = values {
            files.values =
                Some(private(&files.folder.join("values.json"), values.to_string().as_bytes()).await?);
        }
        Ok(files)
    }
}

async fn private(path: &Path, content: &[u8]) -> Result<PathBuf, HelmError> {
    use tokio::io::AsyncWriteExt as _;
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    let mut file = options.open(path).await.map_err(HelmError::File)?;
    file.write_all(content).await.map_err(HelmError::File)?;
    file.flush().await.map_err(HelmError::File)?;
    Ok(path.to_owned())
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!(folder = %self.folder.display(), %error, "a kubeconfig was left behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chart(repository: &str, wait: Option<Duration>) -> Chart {
        Chart {
            name: "c".to_owned(),
            repository: repository.to_owned(),
            version: "1.2".to_owned(),
            values: json!({}),
            wait,
            skip_create_namespace: false,
        }
    }

    #[test]
    fn charts_come_from_repositories_of_both_kinds() {
        for (name, chart, expected) in [
            (
                "a repository",
                chart("https://r", None),
                "upgrade --install n c --repo https://r --version 1.2 --create-namespace",
            ),
            (
                "a registry",
                chart("oci://r/x/", None),
                "upgrade --install n oci://r/x/c --version 1.2 --create-namespace",
            ),
            (
                "waiting",
                chart("oci://r", Some(Duration::from_secs(90))),
                "upgrade --install n oci://r/c --version 1.2 --create-namespace --wait --atomic --timeout 90s",
            ),
        ] {
            assert_eq!(upgrade("n", &chart).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn a_listed_release_has_its_revision_as_text() {
        let entry = json!({"name": "n", "revision": "3", "status": "deployed", "chart": "c-1.2"});
        let expected =
            ReleaseState { state: "deployed".to_owned(), revision: 3, description: "c-1.2".to_owned() };
        assert_eq!(state(&entry), expected);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn files_are_private_and_gone_afterwards() {
        use std::os::unix::fs::PermissionsExt as _;
        let files = Files::write(Some("secret"), Some(&json!({"a": 1}))).await.unwrap();
        let folder = files.folder.clone();
        for (path, mode) in [(&folder, 0o700), (files.kubeconfig.as_ref().unwrap(), 0o600)] {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
        }
        drop(files);
        assert!(!folder.exists());
    }
}
