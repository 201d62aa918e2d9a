//! Helm, behind a trait: the real program here, a stand-in for simulated clusters in
//! [`simulated_helm`](super::simulated_helm).
//!
//! Helm 3 and 4 both do. Where their command lines differ, the program is asked once which it is; what there is
//! of a release is read from its history, which both print alike.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::process::Command;
use tokio::sync::OnceCell;

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
    /// The chart's package itself, in place of all of the above.
    pub url: String,
    /// Values.
    pub values: Value,
    /// Values by path (`a.b[0]`), which win over the others.
    pub set: Vec<(String, String)>,
    /// Whether to wait until everything runs, and roll back if it does not.
    pub wait: Option<Duration>,
    /// Whether the release's namespace is to exist already.
    pub skip_create_namespace: bool,
    /// Whether to leave out the definitions in the chart's `crds` folder.
    pub skip_crds: bool,
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
    #[error("cannot start {program}: {source}; install Helm 3 or 4 where this program finds it")]
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
#[derive(Debug)]
pub struct HelmProgram {
    program: PathBuf,
    major: OnceCell<Major>,
}

/// Which Helm it is, as far as its command line differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Major {
    Three,
    /// Or later.
    Four,
}

/// How long a command may take beside the waiting it was asked to do.
const LIMIT: Duration = Duration::from_secs(300);
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
        Self { program: program.into(), major: OnceCell::new() }
    }

    async fn major(&self) -> Result<Major, HelmError> {
        let ask = async {
            let mut command = Command::new(&self.program);
            command.args(["version", "--short"]);
            Ok(major(&self.output("version", command, LIMIT).await?))
        };
        self.major.get_or_try_init(|| ask).await.copied()
    }

    async fn run(
        &self,
        place: Place<'_>,
        arguments: &[String],
        chart: Option<&Chart>,
    ) -> Result<String, HelmError> {
        let values = chart.map(|chart| &chart.values);
        let files = Files::write(place.cluster.kubeconfig.as_deref(), values).await?;
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--namespace", place.namespace]);
        if let Some(kubeconfig) = &files.kubeconfig {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        if let Some(values) = &files.values {
            command.arg("--values").arg(values);
        }
        let named = arguments.first().map(String::as_str).unwrap_or_default();
        let limit = LIMIT + chart.and_then(|chart| chart.wait).unwrap_or_default();
        self.output(named, command, limit).await
    }

    async fn output(&self, named: &str, mut command: Command, limit: Duration) -> Result<String, HelmError> {
        command.stdin(Stdio::null()).kill_on_drop(true);
        let named = named.to_owned();
        let output = match tokio::time::timeout(limit, command.output()).await {
            Err(_) => return Err(HelmError::Slow { command: named, limit }),
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
        let arguments = texts(&["history", place.name, "--max", "1", "--output", "json"]);
        let listed = match self.run(place, &arguments, None).await {
            Err(HelmError::Failed { message, .. }) if message.contains("release: not found") => {
                return Ok(None);
            }
            listed => listed?,
        };
        let listed: Value = serde_json::from_str(&listed).unwrap_or_default();
        let last = listed.as_array().and_then(|list| list.last()).map(state);
        // One that was uninstalled with its history kept is not there any more.
        Ok(last.filter(|last| last.state != "uninstalled"))
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
            let arguments = upgrade(place.name, chart, self.major().await?);
            self.run(place, &arguments, Some(chart)).await?;
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

/// Which Helm says that of itself: `v3.19.0+g3d8990f`, for example.
fn major(version: &str) -> Major {
    let number = version.trim().trim_start_matches('v').split('.').next().unwrap_or_default();
    if number == "3" { Major::Three } else { Major::Four }
}

/// The arguments that install or upgrade a release.
fn upgrade(name: &str, chart: &Chart, major: Major) -> Vec<String> {
    // Without new values Helm would go on with those of the last revision.
    let mut arguments = texts(&["upgrade", "--install", "--reset-values", name]);
    if !chart.url.is_empty() {
        arguments.push(chart.url.clone());
    } else if chart.repository.starts_with("oci://") {
        arguments.push(format!("{}/{}", chart.repository.trim_end_matches('/'), chart.name));
    } else {
        arguments.push(chart.name.clone());
        if !chart.repository.is_empty() {
            arguments.extend(texts(&["--repo", &chart.repository]));
        }
    }
    if !chart.version.is_empty() && chart.url.is_empty() {
        arguments.extend(texts(&["--version", &chart.version]));
    }
    for (path, value) in &chart.set {
        arguments.extend(texts(&["--set", &format!("{path}={value}")]));
    }
    if !chart.skip_create_namespace {
        arguments.push("--create-namespace".to_owned());
    }
    if chart.skip_crds {
        arguments.push("--skip-crds".to_owned());
    }
    if let Some(limit) = chart.wait {
        let roll_back = match major {
            Major::Three => "--atomic",
            Major::Four => "--rollback-on-failure",
        };
        arguments.extend(texts(&["--wait", roll_back, "--timeout", &format!("{}s", limit.as_secs())]));
    }
    arguments
}

/// An entry of `helm history --output json`.
fn state(entry: &Value) -> ReleaseState {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let revision = entry["revision"].as_i64().unwrap_or_default();
    ReleaseState { state: text("status"), revision, description: text("description") }
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
            url: String::new(),
            values: json!({}),
            set: Vec::new(),
            wait,
            skip_create_namespace: false,
            skip_crds: false,
        }
    }

    #[test]
    fn charts_come_from_repositories_of_both_kinds() {
        let slow = Some(Duration::from_secs(90));
        let with_set = Chart { set: vec![("a.b".to_owned(), "1".to_owned())], ..chart("oci://r", None) };
        let package = Chart { url: "https://r/c-3.tgz".to_owned(), skip_crds: true, ..chart("", None) };
        let rest = "--version 1.2 --create-namespace";
        for (name, chart, major, expected) in [
            ("a repository", chart("https://r", None), Major::Three, format!("c --repo https://r {rest}")),
            ("a registry", chart("oci://r/x/", None), Major::Four, format!("oci://r/x/c {rest}")),
            (
                "a package",
                package,
                Major::Four,
                "https://r/c-3.tgz --create-namespace --skip-crds".to_owned(),
            ),
            (
                "values by path",
                with_set,
                Major::Three,
                "oci://r/c --version 1.2 --set a.b=1 --create-namespace".to_owned(),
            ),
            (
                "Helm 3 waits",
                chart("oci://r", slow),
                Major::Three,
                format!("oci://r/c {rest} --wait --atomic --timeout 90s"),
            ),
            (
                "Helm 4 waits",
                chart("oci://r", slow),
                Major::Four,
                format!("oci://r/c {rest} --wait --rollback-on-failure --timeout 90s"),
            ),
        ] {
            let arguments = upgrade("n", &chart, major).join(" ");
            assert_eq!(arguments, format!("upgrade --install --reset-values n {expected}"), "{name}");
        }
    }

    #[test]
    fn helm_says_which_it_is() {
        for (text, expected) in [
            ("v3.19.0+g3d8990f\n", Major::Three),
            ("v4.3.1+gc0d08d0", Major::Four),
            ("v5.0.0", Major::Four),
            ("", Major::Four),
        ] {
            assert_eq!(major(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_revision_tells_the_state_of_a_release() {
        let entry =
            json!({"revision": 3, "status": "deployed", "chart": "c-1.2", "description": "Upgrade complete"});
        let expected = ReleaseState {
            state: "deployed".to_owned(),
            revision: 3,
            description: "Upgrade complete".to_owned(),
        };
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
