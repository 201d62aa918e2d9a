//! A running control plane, as people use it: `up`, and the commands that talk to it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::workspace;

/// A `modelplane up` of this test; interrupted at the end.
struct Up {
    process: Child,
    /// What it printed until it was ready.
    greeting: String,
    folder: TempDir,
}

impl Up {
    /// Starts it on free ports and waits for the line that says it is ready.
    fn start(folder: TempDir, arguments: &[&str], ready: &str) -> Self {
        let process = up(folder.path()).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut up = Self { process, greeting: String::new(), folder };
        for line in BufReader::new(up.process.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            up.greeting.push_str(&line);
            up.greeting.push('\n');
            if line.contains(ready) {
                return up;
            }
        }
        panic!("it ended before it said {ready:?}:\n{}", up.greeting);
    }

    fn demo() -> Self {
        Self::start(TempDir::new().unwrap(), &["--demo"], "The fleet stays up")
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Runs another command against it.
    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_modelplane"))
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig())
            .current_dir(workspace())
            .output()
            .unwrap()
    }

    /// What a command prints that must succeed.
    fn told(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Presses Ctrl-C; whether it ended well, and its folder.
    fn interrupt(mut self) -> (bool, TempDir) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let ended = self.process.wait().unwrap().success();
        let folder = std::mem::replace(&mut self.folder, TempDir::new().unwrap());
        (ended, folder)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn up(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_modelplane"));
    command.args(["up", "--listen", "127.0.0.1:0", "--gateway-listen", "127.0.0.1:0", "--kubeconfig"]);
    command.arg(folder.join("kubeconfig"));
    command
}

#[test]
fn the_demonstration_ends_with_an_answer() {
    let folder = TempDir::new().unwrap();
    let output = up(folder.path()).args(["--demo", "--once"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for expected in
        ["dc-west", "dc-east", "/ml-team/chat/v1/chat/completions", "This is a simulated answer of qwen"]
    {
        assert!(text.contains(expected), "{expected:?} in\n{text}");
    }
}

#[test]
fn commands_read_and_change_a_running_control_plane() {
    let up = Up::demo();

    let explained = up.told(&["explain", "md/qwen", "-n", "ml-team"]);
    assert!(explained.contains("all 2 replicas are placed and ready"), "{explained}");

    let status: Value = serde_json::from_str(&up.told(&["status", "-o", "json"])).unwrap();
    assert_eq!(status["clusters"].as_array().map(Vec::len), Some(2), "{status}");
    assert_eq!(status["deployments"][0]["ready"], 2, "{status}");

    // What is applied already changes nothing; what would be new is planned on what is really free.
    let kubeconfig = up.kubeconfig();
    let against = kubeconfig.to_str().unwrap();
    let plan = up.told(&["plan", "-f", "examples/demo", "--against", against]);
    assert_eq!(plan, "nothing changes\n");
    let demo = std::fs::read_to_string(workspace().join("examples/demo/model.yaml")).unwrap();
    let four = up.folder.path().join("four.yaml");
    std::fs::write(&four, demo.replace("replicas: 2", "replicas: 4")).unwrap();
    let plan = up.told(&["plan", "-f", four.to_str().unwrap(), "--against", against, "-o", "json"]);
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["objects"][0]["fields"], serde_json::json!(["spec.replicas"]), "{plan}");
    let added = plan["replicas"].as_array().unwrap();
    assert_eq!(added.len(), 2, "{plan}");
    assert!(added.iter().all(|replica| replica["to"] == "dc-east/l4"), "{plan}");

    up.told(&["cluster", "simulate", "dc-south", "--pool", "l4=existing-l4-1x:2"]);
    assert!(up.told(&["cluster", "list"]).contains("dc-south"));
    assert!(up.told(&["cluster", "kubeconfig", "dc-south"]).contains("certificate-authority-data"));
    up.told(&["cluster", "fault", "dc-south", "--gateway-down"]);
    up.told(&["cluster", "heal", "dc-south"]);
    up.told(&["cluster", "remove", "dc-south"]);
    assert!(!up.told(&["cluster", "list"]).contains("dc-south"));

    let (ended_well, _) = up.interrupt();
    assert!(ended_well, "Ctrl-C is not an error");
}

#[test]
fn what_was_written_is_there_after_a_restart_and_one_process_at_a_time_holds_it() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    let arguments = ["--data-dir", data.as_str()];
    let first = Up::start(folder, &arguments, "kubectl get");
    assert!(first.greeting.contains(&data), "{}", first.greeting);
    first.told(&["cluster", "simulate", "dc-east", "--pool", "l4=existing-l4-1x:1"]);

    let second = up(&first.folder.path().join("elsewhere")).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success());
    assert!(error.contains(&first.process.id().to_string()), "it names the process that holds it: {error}");

    let (ended_well, folder) = first.interrupt();
    assert!(ended_well);
    let again = Up::start(folder, &arguments, "kubectl get");
    assert!(again.told(&["cluster", "list"]).contains("dc-east"));
}
