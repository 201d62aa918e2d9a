//! A session with the real `kubectl`: the one on `PATH` and each of `MODELPLANE_KUBECTLS` (a list of paths);
//! skipped loudly where there is none.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

#[path = "../support/mod.rs"]
mod support;

mod built_in;
mod session;

use serde_json::json;
use session::{Session, replace};
use support::widget;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kubectl_works_unmodified() {
    let clients = session::clients().await;
    if clients.is_empty() {
        eprintln!("SKIPPED: there is no kubectl on PATH and MODELPLANE_KUBECTLS is not set");
    }
    let mut sessions = tokio::task::JoinSet::new();
    for client in clients {
        sessions.spawn(async move {
            let session = Session::start(client).await;
            discovery(&session).await;
            reading(&session).await;
            watching(&session).await;
            applying(&session).await;
            patching(&session).await;
            editing(&session).await;
            built_in::creating(&session).await;
            built_in::changing(&session).await;
            built_in::access(&session).await;
            waiting(&session).await;
            deleting(&session).await;
            session.failures()
        });
    }
    let failures: Vec<String> = sessions.join_all().await.into_iter().flatten().collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

async fn discovery(session: &Session) {
    session
        .all(&[
            ("version", "Server Version: v1.36"),
            ("cluster-info", "is running at"),
            ("apply -f definition.yaml", "widgets.example.org created"),
            ("wait --for=condition=Established crd/widgets.example.org --timeout=30s", "condition met"),
            ("get crd widgets.example.org", "widgets.example.org"),
            ("api-resources --api-group=example.org", "widgets"),
            ("api-resources", "deployments"),
            ("api-resources --verbs=list --namespaced -o name", "widgets.example.org"),
            ("api-resources -o wide --api-group=apps", "create,delete,deletecollection"),
            ("api-resources --categories=all", "widgets"),
            ("api-versions", "example.org/v1"),
            ("explain widget", "KIND:       Widget"),
            ("explain widget.spec.size", "How big."),
            ("explain widget --recursive", "size"),
            ("explain deployment.spec.replicas", "FIELD: replicas"),
            ("explain pod.spec.containers.resources --api-version v1", "ResourceRequirements"),
            ("get --raw /readyz", "ok"),
            ("get --raw /livez?verbose", "livez check passed"),
            ("get --raw /healthz", "ok"),
            ("get --raw /openapi/v3", "apis/example.org/v1"),
        ])
        .await;
    session.refuse("explain widget.spec.missing", "does not exist").await;
    session.refuse("get nothings", "doesn't have a resource type").await;
}

async fn reading(session: &Session) {
    session.expect("create -f widget.yaml", "widget.example.org/a created").await;
    session.refuse("create -f widget.yaml", "already exists").await;
    session
        .all(&[
            ("get widgets", "NAME   SIZE    READY"),
            ("get wd -o wide", "REPLICAS"),
            ("get widgets -A", "default     a"),
            ("get widget a -o yaml", "size: small"),
            ("get widget a -o json", "\"size\": \"small\""),
            ("get widget/a -o jsonpath={.spec.size}", "small"),
            ("get widgets -o jsonpath={.items[*].metadata.name}", "a"),
            ("get widgets -o go-template={{range.items}}{{.spec.size}}{{end}}", "small"),
            ("get widgets -o custom-columns=N:.metadata.name,S:.spec.size", "a     small"),
            ("get widgets -o name", "widget.example.org/a"),
            ("get widgets --show-labels", "<none>"),
            ("get widgets --show-kind --no-headers", "widget.example.org/a"),
            ("get widgets --sort-by .metadata.name --chunk-size=1", "small"),
            ("get all", "widget.example.org/a"),
            ("get -f widget.yaml", "small"),
            ("get widgets,configmaps", "widget.example.org/a"),
            ("get widgets --field-selector spec.size=small -o name", "widget.example.org/a"),
            ("get widgets -l app=none --ignore-not-found", ""),
            ("get widget missing --ignore-not-found", ""),
            ("get --raw /apis/example.org/v1/namespaces/default/widgets/a", "\"size\":\"small\""),
            ("describe widget a", "Size:"),
            ("describe widgets", "Name:         a"),
        ])
        .await;
    session.refuse("get widget missing", "NotFound").await;
    session.refuse("get widgets --field-selector spec.depth=1", "field label not supported").await;
    session.refuse("get widgets -l 'a in'", "unable to parse").await;
}

async fn watching(session: &Session) {
    let mut names = session.follow("get widget a -w -o name");
    assert_eq!(names.line().await.as_deref(), Some("widget.example.org/a"));
    let mut table = session.follow("get widgets -w --output-watch-events");
    let header = table.line().await.unwrap();
    assert!(header.starts_with("EVENT") && header.contains("SIZE"), "{header}");
    assert!(table.line().await.unwrap().starts_with("ADDED"));
    session.expect("label widget a seen=yes", "labeled").await;
    assert_eq!(names.line().await.as_deref(), Some("widget.example.org/a"));
    assert!(table.line().await.unwrap().starts_with("MODIFIED"));
    let other = widget("watched").to_string();
    session.write("watched.yaml", other);
    session.all(&[("create -f watched.yaml", "created"), ("delete -f watched.yaml", "deleted")]).await;
    assert!(table.line().await.unwrap().starts_with("ADDED"));
    assert!(table.line().await.unwrap().starts_with("DELETED"));
    names.stop().await;
    table.stop().await;
}

async fn applying(session: &Session) {
    let file = session.path("widget.yaml");
    session
        .all(&[
            ("apply -f widget.yaml", "configured"),
            ("apply -f widget.yaml", "unchanged"),
            ("apply view-last-applied widget a", "size: small"),
        ])
        .await;
    replace(&file, "small", "large");
    for line in ["diff -f widget.yaml", "diff -f widget.yaml --server-side --force-conflicts"] {
        let diff = session.run(line).await;
        if diff.ok || !diff.stdout.contains("+  size: large") {
            session.note(line, "a difference", &diff);
        }
    }
    session.expect("apply -f widget.yaml --dry-run=server", "configured (server dry run)").await;
    session.expect("apply -f widget.yaml --dry-run=client", "configured (dry run)").await;
    session.expect("get widget a -o jsonpath={.spec.size}", "small").await;
    let conflict = "conflict with \"kubectl-create\" using example.org/v1: .spec.size";
    session.refuse("apply -f widget.yaml --server-side --field-manager other", conflict).await;
    session
        .all(&[
            (
                "apply -f widget.yaml --server-side --field-manager other --force-conflicts",
                "serverside-applied",
            ),
            ("apply -f widget.yaml --server-side --field-manager other", "serverside-applied"),
            ("get widget a -o jsonpath={.spec.size}", "large"),
            ("get widget a -o yaml --show-managed-fields", "manager: other"),
            ("diff -f widget.yaml --server-side --field-manager other", ""),
        ])
        .await;
    replace(&file, "\"size\":\"large\"", "\"size\":\"large\",\"colour\":\"red\"");
    session.refuse("apply -f widget.yaml", "unknown field \"spec.colour\"").await;
    session.refuse("apply -f widget.yaml --server-side --field-manager other", "colour").await;
    session.expect("apply -f widget.yaml --validate=false", "widget.example.org/a").await;
    session.expect("apply -f widget.yaml --validate=warn", "widget.example.org/a").await;
    replace(&file, ",\"colour\":\"red\"", "");
    session.write("invalid.yaml", widget("b").to_string().replace("\"small\"", "7"));
    session.refuse("apply -f invalid.yaml", "spec.size").await;
    let mut pruned = widget("pruned");
    pruned["metadata"]["labels"] = json!({"set": "one"});
    session.write("pruned.yaml", pruned.to_string());
    let mut kept = widget("kept");
    kept["metadata"]["labels"] = json!({"set": "one"});
    session.write("kept.yaml", kept.to_string());
    session
        .all(&[
            ("apply -f pruned.yaml", "created"),
            (
                "apply -f kept.yaml --prune -l set=one --prune-allowlist=example.org/v1/Widget",
                "widget.example.org/pruned pruned",
            ),
        ])
        .await;
}

async fn patching(session: &Session) {
    let patches = [
        ("merge", r#"{"spec":{"replicas":2}}"#, "2"),
        ("json", r#"[{"op":"replace","path":"/spec/replicas","value":3}]"#, "3"),
    ];
    for (kind, patch, replicas) in patches {
        session.expect(&format!("patch widget a --type {kind} -p '{patch}'"), "patched").await;
        session.expect("get widget a -o jsonpath={.spec.replicas}", replicas).await;
    }
    session.refuse(r#"patch widget a --type strategic -p '{"spec":{"replicas":2}}'"#, "strategic").await;
    session.refuse(r#"patch widget a --type json -p '[{"op":"remove","path":"/none"}]'"#, "invalid").await;
    session
        .all(&[
            (r#"patch widget a --subresource status --type merge -p '{"status":{"replicas":3}}'"#, "patched"),
            (r#"patch widget a --type merge --dry-run=server -p '{"spec":{"replicas":9}}'"#, "patched"),
            ("get widget a --subresource status -o jsonpath={.status.replicas}", "3"),
            ("scale widget a --replicas 5", "scaled"),
            ("scale widget a --current-replicas 5 --replicas 5", "scaled"),
            ("get widget a -o jsonpath={.spec.replicas}/{.status.replicas}", "5/3"),
            ("annotate widget a note=hello", "annotated"),
            ("annotate widget a --overwrite note=again", "annotated"),
            ("annotate widget a note-", "annotated"),
            ("label widget a --overwrite seen=no", "labeled"),
            ("label widgets --all every=one", "labeled"),
            ("label widget a --list", "every=one"),
            ("get widgets -L every", "EVERY"),
            ("get widgets -l every=one,seen -o name", "widget.example.org/a"),
            ("label widget a seen-", "unlabeled"),
        ])
        .await;
    session.refuse("label widget a every=two", "already has a value").await;
    session.refuse("scale widget a --current-replicas 4 --replicas 6", "Expected replicas").await;
}

async fn editing(session: &Session) {
    let edits = [
        ("edit widget a", "s/replicas: 5/replicas: 6/", "edited"),
        ("edit widget a", "s/nothing/nothing/", ""),
        ("edit widget a --subresource status", "s/replicas: 3/replicas: 4/", "edited"),
        ("apply edit-last-applied widget a", "s/large/medium/", "edited"),
    ];
    for (line, script, printed) in edits {
        let script = format!("sed -i '{script}' \"$1\"\n");
        session.write("editor.sh", script);
        let mut command = session.command(line);
        command.env("EDITOR", format!("sh {}", session.path("editor.sh").display()));
        let output = session.finish(command).await;
        if !output.ok || !output.stdout.contains(printed) {
            session.note(line, printed, &output);
        }
    }
    session.expect("get widget a -o jsonpath={.spec.replicas}/{.status.replicas}", "6/4").await;
    let replaced =
        session.run("get widget a -o json").await.stdout.replace("\"replicas\": 6", "\"replicas\": 7");
    session.write("replacement.json", replaced);
    session.expect("replace -f replacement.json", "replaced").await;
    session.refuse("replace -f replacement.json", "the object has been modified").await;
    session.expect("replace --force -f widget.yaml", "replaced").await;
}

async fn waiting(session: &Session) {
    session.write("late.yaml", widget("late").to_string());
    let ready = r#"{"status":{"replicas":3,"conditions":[{"type":"Ready","status":"True"}]}}"#;
    let created = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        session.expect("create -f late.yaml", "created").await;
        session
            .expect(&format!("patch widget late --subresource status --type merge -p '{ready}'"), "patched")
            .await;
    };
    let waited = async {
        session.expect("wait --for=create widget/late --timeout=60s", "condition met").await;
        session
            .expect("wait --for=jsonpath={.status.replicas}=3 widget/late --timeout=60s", "condition met")
            .await;
        session.expect("wait --for=condition=Ready widget/late --timeout=60s", "condition met").await;
    };
    tokio::join!(created, waited);
    session.refuse("wait --for=condition=Lost widget/late --timeout=1s", "timed out").await;
    let gone = session.expect("wait --for=delete widget/late --timeout=60s", "condition met");
    let deleted = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        session.expect("delete widget late", "deleted").await;
    };
    tokio::join!(gone, deleted);
}

/// Each cascade does with an object's dependents what it says.
async fn deleting(session: &Session) {
    for (cascade, left) in [("background", false), ("orphan", true), ("foreground", false)] {
        session.write("owner.yaml", widget("owner").to_string());
        session.expect("create -f owner.yaml", "created").await;
        let uid = session.run("get widget owner -o jsonpath={.metadata.uid}").await.stdout;
        let name = format!("dependent-{cascade}");
        let mut dependent = widget(&name);
        dependent["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "example.org/v1", "kind": "Widget", "name": "owner", "uid": uid,
            "blockOwnerDeletion": true,
        }]);
        session.write("dependent.yaml", dependent.to_string());
        session.expect("create -f dependent.yaml", "created").await;
        session.expect(&format!("delete widget owner --cascade={cascade} --timeout=60s"), "deleted").await;
        session.refuse("get widget owner", "NotFound").await;
        if left {
            session.expect(&format!("get widget {name} -o jsonpath={{.metadata.uid}}"), "-").await;
            session.lacks(&format!("get widget {name} -o yaml"), "ownerReferences").await;
        } else {
            session.expect(&format!("wait --for=delete widget/{name} --timeout=60s"), "").await;
            session.refuse(&format!("get widget {name}"), "NotFound").await;
        }
    }
    session
        .all(&[
            ("delete widget kept --dry-run=server", "(server dry run)"),
            ("delete widget -l set=one", "\"kept\" deleted"),
            ("delete widget a --now", "deleted"),
            ("delete widget a --ignore-not-found", ""),
            ("create -f widget.yaml", "created"),
            ("delete widget a --grace-period=0 --force", "deleted"),
            ("create -f widget.yaml", "created"),
            ("delete --raw /apis/example.org/v1/namespaces/default/widgets/a", "Success"),
            ("create -f widget.yaml", "created"),
            ("delete widgets --all", "deleted"),
            ("delete namespace team --timeout=60s", "deleted"),
            ("delete crd widgets.example.org --timeout=60s", "deleted"),
        ])
        .await;
    session.refuse("get namespace team", "NotFound").await;
    session.refuse("delete namespace default", "forbidden").await;
}
