//! Who may do what, through whole requests: certificates, tokens, roles, resource names, acting as others.

#![expect(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod support;

use http::{Method, Request};
use http_body_util::Full;
use modelplane_apiserver::{ApiServer, Identity, Options, Profile};
use serde_json::{Value, json};
use support::served::{Served, ask};
use support::{Caller, server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/team/configmaps";
const TOKEN: &str = "/api/v1/namespaces/team/serviceaccounts/robot/token";

fn caller(server: &ApiServer, user: &str, groups: &[&str]) -> Caller {
    let groups = groups.iter().copied().chain(["system:authenticated"]);
    Caller(server.in_process(Identity::new(user, groups)))
}

async fn ok(caller: &Caller, path: &str, object: Value) {
    let created = caller.post(path, &object).await;
    assert_eq!(created.code, 201, "{}", created.text);
}

/// A namespace `team` with two config maps, a service account and a role for `ann`.
async fn team(server: &ApiServer, rules: Value) -> Caller {
    let admin = Caller::new(server);
    ok(&admin, "/api/v1/namespaces", json!({"metadata": {"name": "team"}})).await;
    for name in ["m", "n"] {
        ok(&admin, MAPS, json!({"metadata": {"name": name}})).await;
    }
    ok(&admin, "/api/v1/namespaces/team/serviceaccounts", json!({"metadata": {"name": "robot"}})).await;
    let roles = format!("{RBAC}/namespaces/team/roles");
    ok(&admin, &roles, json!({"metadata": {"name": "r"}, "rules": rules})).await;
    bind(&admin, "r", json!({"kind": "Role", "name": "r"}), json!([{"kind": "User", "name": "ann"}])).await;
    admin
}

async fn bind(admin: &Caller, name: &str, role: Value, subjects: Value) {
    let bindings = format!("{RBAC}/namespaces/team/rolebindings");
    ok(admin, &bindings, json!({"metadata": {"name": name}, "roleRef": role, "subjects": subjects})).await;
}

#[tokio::test]
async fn certificates_and_tokens_of_readers_and_editors_do_what_their_roles_say() {
    let served = Served::start(Options::in_memory(Profile::ControlPlane)).await;
    let admin = team(&served.server, json!([])).await;
    bind(
        &admin,
        "edit",
        json!({"kind": "ClusterRole", "name": "edit"}),
        json!([{"kind": "Group", "name": "ml"}]),
    )
    .await;
    bind(
        &admin,
        "view",
        json!({"kind": "ClusterRole", "name": "view"}),
        json!([{"kind": "User", "name": "bob"}]),
    )
    .await;
    let ann = Identity::new("ann", ["ml"]);
    let token = served.server.issue_token(&ann).await.unwrap();
    let secrets = "/api/v1/namespaces/team/secrets";
    let cases = [
        ("reader", served.client(&Identity::reader()).await, [200, 403, 403, 200]),
        ("editor by certificate", served.client(&ann).await, [200, 200, 200, 403]),
        ("editor by token", served.client_with_token(Some(&token)).await, [200, 200, 200, 403]),
        ("viewer", served.client(&Identity::new("bob", ["x"])).await, [200, 403, 403, 403]),
        ("stranger", served.client(&Identity::new("eve", ["x"])).await, [403, 403, 403, 403]),
        ("administrator", served.client(&Identity::admin()).await, [200, 200, 200, 200]),
    ];
    for (name, client, expected) in &cases {
        let found = [
            ask(client, "GET", MAPS).await.0,
            ask(client, "GET", secrets).await.0,
            ask(client, "DELETE", &format!("{MAPS}?dryRun=All")).await.0,
            ask(client, "GET", "/api/v1/configmaps").await.0,
        ];
        assert_eq!(found, *expected, "{name}");
    }
    let bearer = served.client_with_token(Some(&token)).await;
    served.server.revoke_tokens("ann").await.unwrap();
    assert_eq!(ask(&bearer, "GET", MAPS).await.0, 401, "a revoked token is worth nothing");
    let stranger = served.client_with_token(Some("wrong")).await;
    assert_eq!(ask(&stranger, "GET", MAPS).await.0, 401);
    drop(cases);
    served.stop().await;
}

#[tokio::test]
async fn resource_names_allow_collections_limited_to_a_name() {
    let server = server().await;
    let rules = json!([{
        "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["m"],
        "verbs": ["get", "list", "watch", "deletecollection"],
    }, {
        "apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list"],
    }]);
    team(&server, rules).await;
    let ann = caller(&server, "ann", &[]);
    let watch = "watch=true&timeoutSeconds=1";
    for (method, path, code) in [
        (Method::GET, format!("{MAPS}/m"), 200),
        (Method::GET, format!("{MAPS}/n"), 403),
        (Method::GET, MAPS.to_owned(), 403),
        (Method::GET, format!("{MAPS}?fieldSelector=metadata.name%3Dm"), 200),
        (Method::GET, format!("{MAPS}?fieldSelector=metadata.name%3D%3Dm"), 200),
        (Method::GET, format!("{MAPS}?fieldSelector=metadata.namespace%3Dteam,metadata.name%3Dm"), 200),
        (Method::GET, format!("{MAPS}?fieldSelector=metadata.name%3Dn"), 403),
        (Method::GET, format!("{MAPS}?fieldSelector=metadata.name!%3Dm"), 403),
        (Method::GET, format!("{MAPS}?fieldSelector=metadata.name%3Dn&fieldSelector=metadata.name%3Dm"), 403),
        (Method::GET, format!("{MAPS}?fieldSelector=metadata.name%3Dm,"), 200),
        (Method::GET, format!("{MAPS}?fieldSelector=metadata.name%3Dm%3D"), 403),
        (Method::GET, "/api/v1/configmaps?fieldSelector=metadata.name%3Dm".to_owned(), 403),
        (Method::GET, format!("{MAPS}?{watch}"), 403),
        (Method::GET, format!("{MAPS}?{watch}&fieldSelector=metadata.name%3Dm"), 200),
        (Method::GET, format!("{MAPS}?{watch}&fieldSelector=metadata.name%3Dn"), 403),
        (Method::DELETE, MAPS.to_owned(), 403),
        (Method::DELETE, format!("{MAPS}?dryRun=All&fieldSelector=metadata.name%3Dm"), 200),
        // A namespace counts as being within itself, a list of namespaces does not.
        (Method::GET, "/api/v1/namespaces/team".to_owned(), 200),
        (Method::GET, "/api/v1/namespaces?fieldSelector=metadata.name%3Dteam".to_owned(), 403),
    ] {
        let answer = ann.send(method.clone(), &path, "application/json", "").await;
        assert_eq!(answer.code, code, "{method} {path}: {}", answer.text);
    }
    let one = ann.get(&format!("{MAPS}?fieldSelector=metadata.name%3Dm")).await.value;
    assert_eq!(one["items"].as_array().unwrap().len(), 1, "what is allowed is all that is shown");
    let both = ann.get(&format!("{MAPS}?fieldSelector=metadata.name%3Dm,metadata.name%3Dn")).await;
    assert_eq!((both.code, both.value["items"].as_array().map(Vec::len)), (200, Some(0)));
}

/// Who the server takes the caller for, given headers; or the code and message of the refusal.
async fn whoami(caller: &Caller, headers: &[(&str, &str)]) -> Result<Value, (u16, String)> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = caller.raw(request.body(Full::from("{}")).unwrap()).await;
    if answer.code == 201 {
        return Ok(answer.value["status"]["userInfo"].clone());
    }
    Err((answer.code, answer.value["message"].as_str().unwrap_or_default().to_owned()))
}

#[tokio::test]
async fn acting_as_others_takes_the_verb_impersonate_on_all_they_are() {
    let server = server().await;
    let admin = team(&server, json!([])).await;
    let rules = json!([
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["bob"]},
        {"apiGroups": [""], "resources": ["groups"], "verbs": ["impersonate"], "resourceNames": ["ml"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/reason"], "verbs": ["impersonate"]},
    ]);
    ok(&admin, &format!("{RBAC}/clusterroles"), json!({"metadata": {"name": "actor"}, "rules": rules})).await;
    let binding = json!({
        "metadata": {"name": "actor"}, "roleRef": {"kind": "ClusterRole", "name": "actor"},
        "subjects": [{"kind": "User", "name": "ann"}],
    });
    ok(&admin, &format!("{RBAC}/clusterrolebindings"), binding).await;
    let ann = caller(&server, "ann", &[]);
    let user = |name: &str, groups: &[&str]| Ok(json!({"username": name, "groups": groups}));
    let everyone = "system:authenticated";
    assert_eq!(whoami(&ann, &[]).await, user("ann", &[everyone]));
    assert_eq!(whoami(&ann, &[("Impersonate-User", "bob")]).await, user("bob", &[everyone]));
    let as_bob = |more: &[(&'static str, &'static str)]| [&[("Impersonate-User", "bob")], more].concat();
    let ml = as_bob(&[("Impersonate-Group", "ml")]);
    assert_eq!(whoami(&ann, &ml).await, user("bob", &["ml", everyone]));
    assert_eq!(whoami(&ann, &as_bob(&[("Impersonate-Extra-Reason", "x")])).await, user("bob", &[everyone]));
    let robot = "system:serviceaccount:team:robot";
    assert_eq!(
        whoami(&admin, &[("Impersonate-User", robot)]).await,
        user(robot, &["system:serviceaccounts", "system:serviceaccounts:team", everyone])
    );
    assert_eq!(
        whoami(&admin, &[("Impersonate-User", "system:anonymous")]).await.unwrap_err().0,
        403,
        "nobody may do anything without credentials, whoever plays them"
    );
    let refused = [
        (
            vec![("Impersonate-User", "eve")],
            "users \"eve\" is forbidden: User \"ann\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
        ),
        (as_bob(&[("Impersonate-Group", "system:masters")]), "groups \"system:masters\" is forbidden"),
        (as_bob(&[("Impersonate-Group", "ml"), ("Impersonate-Group", "ops")]), "groups \"ops\" is forbidden"),
        (as_bob(&[("Impersonate-Uid", "1")]), "uids.authentication.k8s.io \"1\" is forbidden"),
        (as_bob(&[("Impersonate-Extra-Scope", "x")]), "userextras.authentication.k8s.io \"x\" is forbidden"),
        (vec![("Impersonate-User", robot)], "serviceaccounts \"robot\" is forbidden"),
    ];
    for (headers, message) in refused {
        let (code, found) = whoami(&ann, &headers).await.unwrap_err();
        assert!(code == 403 && found.starts_with(message), "{headers:?}: {code} {found}");
    }
    let alone = whoami(&admin, &[("Impersonate-Group", "ml")]).await.unwrap_err();
    assert_eq!(alone.0, 400, "{}", alone.1);
    let bob = Request::get(MAPS).header("Impersonate-User", "bob").body(Full::default()).unwrap();
    let refused = admin.raw(bob).await;
    assert_eq!(refused.code, 403, "the administrator's own rights do not count: {}", refused.text);
}

#[tokio::test]
async fn service_accounts_get_tokens_that_end_with_them() {
    let served = Served::start(Options::in_memory(Profile::ControlPlane)).await;
    let admin = team(&served.server, json!([])).await;
    let subject = json!([{"kind": "ServiceAccount", "name": "robot"}]);
    bind(&admin, "view", json!({"kind": "ClusterRole", "name": "view"}), subject).await;
    let answer = admin.post(TOKEN, &json!({"spec": {"expirationSeconds": 600}})).await;
    assert_eq!((answer.code, &answer.value["kind"]), (201, &json!("TokenRequest")), "{}", answer.text);
    assert_eq!(answer.value["spec"]["expirationSeconds"], 600);
    let token = answer.value["status"]["token"].as_str().unwrap();
    let robot = served.client_with_token(Some(token)).await;
    assert_eq!(ask(&robot, "GET", MAPS).await.0, 200);
    assert_eq!(ask(&robot, "GET", "/api/v1/namespaces/default/configmaps").await.0, 403);
    for (request, code) in [
        (json!({"spec": {"expirationSeconds": 1}}), 422),
        (json!({"spec": {"audiences": ["vault"]}}), 422),
        (json!({"spec": {"boundObjectRef": {"kind": "Pod"}}}), 422),
        (json!({"spec": []}), 400),
        (json!({}), 201),
    ] {
        let answer = admin.post(TOKEN, &request).await;
        assert_eq!(answer.code, code, "{request}: {}", answer.text);
    }
    let missing = TOKEN.replace("robot", "nobody");
    assert_eq!(admin.post(&missing, &json!({})).await.code, 404);
    let ann = caller(&served.server, "ann", &[]);
    assert_eq!(ann.post(TOKEN, &json!({})).await.code, 403, "a token is as good as the account");
    let account = "/api/v1/namespaces/team/serviceaccounts";
    assert_eq!(admin.delete(&format!("{account}/robot")).await.code, 200);
    assert_eq!(ask(&robot, "GET", MAPS).await.0, 401);
    ok(&admin, account, json!({"metadata": {"name": "robot"}})).await;
    assert_eq!(ask(&robot, "GET", MAPS).await.0, 401, "another account of the same name is another account");
    served.stop().await;
}
