//! A session with the real `kubectl`: `KUBECTL` or the one on `PATH`; skipped loudly where there is none.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a failure here is the test's failure")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;

use modelplane_apiserver::{ApiServer, Identity};
use support::{server, widget, widgets};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::process::Command;

struct Session {
    kubectl: PathBuf,
    folder: tempfile::TempDir,
    failures: Mutex<Vec<String>>,
    _task: tokio::task::JoinHandle<ApiServer>,
}

/// What a command left.
struct Output {
    ok: bool,
    stdout: String,
    stderr: String,
}

async fn kubectl() -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("KUBECTL").unwrap_or_else(|| "kubectl".into()));
    let probe = Command::new(&path).args(["version", "--client"]).stdout(Stdio::null()).status().await;
    if probe.is_ok_and(|status| status.success()) {
        return Some(path);
    }
    eprintln!("SKIPPED: there is no kubectl; set KUBECTL to one");
    None
}

async fn session() -> Option<Session> {
    let kubectl = kubectl().await?;
    let folder = tempfile::tempdir().unwrap();
    let server = server().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let config = server.kubeconfig(&Identity::admin(), &url).unwrap();
    std::fs::write(folder.path().join("config"), config).unwrap();
    std::fs::write(folder.path().join("definition.yaml"), widgets().to_string()).unwrap();
    std::fs::write(folder.path().join("widget.yaml"), widget("a").to_string()).unwrap();
    let task = tokio::spawn(async move {
        server.serve(listener, std::future::pending()).await.unwrap();
        server
    });
    Some(Session { kubectl, folder, failures: Mutex::default(), _task: task })
}

impl Session {
    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .env("KUBECONFIG", self.folder.path().join("config"))
            .env("HOME", self.folder.path())
            .env("KUBECTL_EXTERNAL_DIFF", "diff -u")
            .current_dir(self.folder.path())
            .args(split(arguments))
            .kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &str) -> Output {
        let output = self.command(arguments).output().await.unwrap();
        Output {
            ok: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs a command that must succeed and print something; a failure is told at the end, with all others.
    async fn expect(&self, arguments: &str, printed: &str) {
        let output = self.run(arguments).await;
        if !output.ok || !output.stdout.contains(printed) {
            self.note(arguments, printed, &output);
        }
    }

    /// Runs a command that must fail and say something.
    async fn refuse(&self, arguments: &str, said: &str) {
        let output = self.run(arguments).await;
        if output.ok || !format!("{}{}", output.stdout, output.stderr).contains(said) {
            self.note(arguments, said, &output);
        }
    }

    fn note(&self, arguments: &str, wanted: &str, output: &Output) {
        let Output { ok, stdout, stderr } = output;
        let text = format!("kubectl {arguments}\nwanted {wanted:?}, got {ok}\n{stdout}{stderr}");
        self.failures.lock().unwrap().push(text);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Splits at spaces outside of single quotes.
fn split(arguments: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in arguments.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_works_unmodified() {
    let Some(session) = session().await else { return };
    discovery(&session).await;
    reading(&session).await;
    applying(&session).await;
    changing(&session).await;
    built_in(&session).await;
    deleting(&session).await;
    let failures = session.failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

async fn discovery(session: &Session) {
    session.expect("version", "Server Version: v1.36").await;
    session.expect("apply -f definition.yaml", "widgets.example.org created").await;
    session
        .expect("wait --for=condition=Established crd/widgets.example.org --timeout=30s", "condition met")
        .await;
    session.expect("api-resources --api-group=example.org", "widgets").await;
    session.expect("api-resources", "deployments").await;
    session.expect("api-versions", "example.org/v1").await;
    session.expect("explain widget.spec.size", "How big.").await;
    session.expect("explain deployment.spec.replicas", "FIELD: replicas").await;
    session.expect("auth can-i create widgets", "yes").await;
    session.expect("auth whoami", "kubernetes-admin").await;
    session.expect("get --raw /readyz", "ok").await;
}

async fn reading(session: &Session) {
    session.expect("create -f widget.yaml", "widget.example.org/a created").await;
    session.refuse("create -f widget.yaml", "already exists").await;
    session.expect("get widgets", "NAME   SIZE    READY").await;
    session.expect("get wd -o wide", "REPLICAS").await;
    session.expect("get widgets -A", "default     a").await;
    session.expect("get widget a -o yaml", "size: small").await;
    session.expect("get widget a -o jsonpath={.spec.size}", "small").await;
    session.expect("get all", "widget.example.org/a").await;
    session.expect("get widgets --field-selector spec.size=small -o name", "widget.example.org/a").await;
    session.refuse("get widget missing", "NotFound").await;
    session.expect("describe widget a", "Size:").await;
    let mut watching = session.command("get widget a -w -o name").stdout(Stdio::piped()).spawn().unwrap();
    let stdout = watching.stdout.take().unwrap();
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(stdout));
    let next = async |lines: &mut tokio::io::Lines<_>| {
        let line = tokio::time::timeout(std::time::Duration::from_secs(60), lines.next_line());
        line.await.expect("kubectl printed nothing").unwrap()
    };
    assert_eq!(next(&mut lines).await.as_deref(), Some("widget.example.org/a"));
    session.expect("label widget a seen=yes", "labeled").await;
    assert_eq!(next(&mut lines).await.as_deref(), Some("widget.example.org/a"));
    watching.kill().await.unwrap();
}

async fn applying(session: &Session) {
    let file = session.path("widget.yaml");
    session.expect("apply -f widget.yaml", "configured").await;
    session.expect("apply -f widget.yaml", "unchanged").await;
    replace(&file, "small", "large");
    let diff = session.run("diff -f widget.yaml").await;
    assert!(!diff.ok && diff.stdout.contains("+  size: large"), "{}{}", diff.stdout, diff.stderr);
    session.expect("apply -f widget.yaml --dry-run=server", "configured (server dry run)").await;
    session.expect("get widget a -o jsonpath={.spec.size}", "small").await;
    session.refuse("apply -f widget.yaml --server-side --field-manager other", "conflict").await;
    session
        .expect(
            "apply -f widget.yaml --server-side --field-manager other --force-conflicts",
            "serverside-applied",
        )
        .await;
    session.expect("get widget a -o jsonpath={.spec.size}", "large").await;
    session.expect("get widget a -o yaml --show-managed-fields", "manager: other").await;
    replace(&file, "\"size\":\"large\"", "\"size\":\"large\",\"colour\":\"red\"");
    session.refuse("apply -f widget.yaml", "unknown field \"spec.colour\"").await;
    session.expect("apply -f widget.yaml --validate=false", "widget.example.org/a").await;
    replace(&file, ",\"colour\":\"red\"", "");
}

async fn changing(session: &Session) {
    let patches = [
        ("merge", r#"{"spec":{"replicas":2}}"#, "2"),
        ("json", r#"[{"op":"replace","path":"/spec/replicas","value":3}]"#, "3"),
    ];
    for (kind, patch, replicas) in patches {
        session.expect(&format!("patch widget a --type {kind} -p '{patch}'"), "patched").await;
        session.expect("get widget a -o jsonpath={.spec.replicas}", replicas).await;
    }
    session.refuse(r#"patch widget a --type strategic -p '{"spec":{"replicas":2}}'"#, "strategic").await;
    session
        .expect(
            r#"patch widget a --subresource status --type merge -p '{"status":{"replicas":3}}'"#,
            "patched",
        )
        .await;
    session.expect("scale widget a --replicas 5", "scaled").await;
    session.expect("get widget a -o jsonpath={.spec.replicas}/{.status.replicas}", "5/3").await;
    session.expect("annotate widget a note=hello", "annotated").await;
    session.expect("label widget a seen-", "unlabeled").await;
    session.expect("wait --for=jsonpath={.status.replicas}=3 widget/a --timeout=30s", "condition met").await;
    let script = session.path("editor.sh");
    let mut file = tokio::fs::File::create(&script).await.unwrap();
    file.write_all(b"sed -i 's/replicas: 5/replicas: 6/' \"$1\"\n").await.unwrap();
    file.sync_all().await.unwrap();
    let edited = session
        .command("edit widget a")
        .env("EDITOR", format!("sh {}", script.display()))
        .output()
        .await
        .unwrap();
    assert!(edited.status.success(), "{edited:?}");
    session.expect("get widget a -o jsonpath={.spec.replicas}", "6").await;
    let replaced =
        session.run("get widget a -o json").await.stdout.replace("\"replicas\": 6", "\"replicas\": 7");
    std::fs::write(session.path("replacement.json"), replaced).unwrap();
    session.expect("replace -f replacement.json", "replaced").await;
    session.refuse("replace -f replacement.json", "the object has been modified").await;
}

async fn built_in(session: &Session) {
    session.expect("create namespace team", "namespace/team created").await;
    session.expect("create configmap m --from-literal a=b -n team", "configmap/m created").await;
    session.expect("create secret generic s --from-literal key=value -n team", "secret/s created").await;
    session.expect("get secret s -n team -o jsonpath={.data.key}", "dmFsdWU=").await;
    session.expect("get configmap,secret -n team", "configmap/m").await;
    session.expect("create deployment web --image nginx -n team", "deployment.apps/web created").await;
    let patch = r#"{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:2"}]}}}}"#;
    session.expect(&format!("patch deployment web -n team -p '{patch}'"), "patched").await;
    session.expect("set image deployment/web nginx=nginx:3 -n team", "image updated").await;
    session
        .expect("get deployment web -n team -o jsonpath={.spec.template.spec.containers[*].image}", "nginx:3")
        .await;
    session.expect("scale deployment web --replicas 3 -n team", "scaled").await;
    session.expect("get deployments -n team", "0/3").await;
    session.expect("create serviceaccount robot -n team", "created").await;
    session
        .expect("create rolebinding robots --clusterrole view --serviceaccount team:robot -n team", "created")
        .await;
    session.expect("get events -A", "").await;
    session.expect("describe namespace team", "Active").await;
}

async fn deleting(session: &Session) {
    for (name, cascade) in [("a", "background"), ("b", "orphan"), ("c", "foreground")] {
        if name != "a" {
            std::fs::write(session.path("other.yaml"), widget(name).to_string()).unwrap();
            session.expect("create -f other.yaml", "created").await;
        }
        let wait = if cascade == "background" { "" } else { " --wait=false" };
        session.expect(&format!("delete widget {name} --cascade={cascade}{wait}"), "deleted").await;
    }
    session.refuse("get widget a", "NotFound").await;
}
