//! One `kubectl` at work on one server, in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use modelplane_apiserver::{ApiServer, Identity};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdout, Command};

use crate::support::{server, widget, widgets};

/// A server, a client and what went wrong between them.
pub(crate) struct Session {
    kubectl: PathBuf,
    /// `Client Version: …`, the first line of its answer.
    version: String,
    folder: tempfile::TempDir,
    failures: Mutex<Vec<String>>,
    _task: tokio::task::JoinHandle<ApiServer>,
}

/// What a command left.
pub(crate) struct Output {
    pub(crate) ok: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command that goes on, and its lines.
pub(crate) struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// The next line, `None` at the end.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let line = tokio::time::timeout(Duration::from_secs(60), self.lines.next_line());
        line.await.expect("kubectl printed nothing").unwrap()
    }

    pub(crate) async fn stop(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// The clients to test: the one on `PATH` and those of `MODELPLANE_KUBECTLS`, with what they say they are.
pub(crate) async fn clients() -> Vec<(PathBuf, String)> {
    let named = std::env::var_os("MODELPLANE_KUBECTLS").unwrap_or_default();
    let named: Vec<PathBuf> =
        std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect();
    let mut found = Vec::new();
    for (path, required) in
        [(PathBuf::from("kubectl"), false)].into_iter().chain(named.into_iter().map(|path| (path, true)))
    {
        let probe = Command::new(&path).args(["version", "--client"]).stdin(Stdio::null()).output().await;
        let output = probe.ok().filter(|output| output.status.success());
        assert!(
            output.is_some() || !required,
            "MODELPLANE_KUBECTLS names {}, which does not run",
            path.display()
        );
        let Some(output) = output else { continue };
        let version = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
        found.push((path, version));
    }
    found
}

impl Session {
    /// Starts a server and writes the files the session uses.
    pub(crate) async fn start((kubectl, version): (PathBuf, String)) -> Session {
        let folder = tempfile::tempdir().unwrap();
        let server = server().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        for (name, identity) in [("config", Identity::admin()), ("reader", Identity::reader())] {
            let config = server.kubeconfig(&identity, &url).unwrap();
            std::fs::write(folder.path().join(name), config).unwrap();
        }
        std::fs::write(folder.path().join("definition.yaml"), widgets().to_string()).unwrap();
        std::fs::write(folder.path().join("widget.yaml"), widget("a").to_string()).unwrap();
        let task = tokio::spawn(async move {
            server.serve(listener, std::future::pending()).await.unwrap();
            server
        });
        Session { kubectl, version, folder, failures: Mutex::default(), _task: task }
    }

    /// The command of a line, which is split at spaces outside of single quotes.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .env("KUBECONFIG", self.path("config"))
            .env("HOME", self.folder.path())
            .env("KUBECTL_EXTERNAL_DIFF", "diff -u")
            .current_dir(self.folder.path())
            .args(split(line))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, line: &str) -> Output {
        self.finish(self.command(line)).await
    }

    pub(crate) async fn finish(&self, mut command: Command) -> Output {
        let output = tokio::time::timeout(Duration::from_secs(120), command.output());
        let output = output.await.expect("kubectl did not end").unwrap();
        Output {
            ok: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts a command that goes on.
    pub(crate) fn follow(&self, line: &str) -> Running {
        let mut child = self.command(line).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }

    /// Runs a command that must succeed and print something; a failure is told at the end, with all others.
    pub(crate) async fn expect(&self, line: &str, printed: &str) {
        let output = self.run(line).await;
        if !output.ok || !output.stdout.contains(printed) {
            self.note(line, printed, &output);
        }
    }

    /// Runs a command that must succeed and say nothing of something.
    pub(crate) async fn lacks(&self, line: &str, unwanted: &str) {
        let output = self.run(line).await;
        if !output.ok || output.stdout.contains(unwanted) {
            self.note(line, &format!("no {unwanted}"), &output);
        }
    }

    /// Runs commands that must succeed.
    pub(crate) async fn all(&self, commands: &[(&str, &str)]) {
        for (line, printed) in commands {
            self.expect(line, printed).await;
        }
    }

    /// Runs a command that must fail and say something.
    pub(crate) async fn refuse(&self, line: &str, said: &str) {
        let output = self.run(line).await;
        if output.ok || !format!("{}{}", output.stdout, output.stderr).contains(said) {
            self.note(line, said, &output);
        }
    }

    /// Notes a failure.
    pub(crate) fn note(&self, line: &str, wanted: &str, output: &Output) {
        let Output { ok, stdout, stderr } = output;
        let ended = if *ok { "it succeeded" } else { "it failed" };
        let text = format!("kubectl {line}\nwanted {wanted:?}, {ended}\n{stdout}{stderr}");
        self.failures.lock().unwrap().push(text);
    }

    /// All failures as one text.
    pub(crate) fn failures(self) -> Option<String> {
        let failures = self.failures.into_inner().unwrap();
        (!failures.is_empty()).then(|| format!("== {}\n{}", self.version, failures.join("\n")))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }
}

fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

pub(crate) fn replace(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}
