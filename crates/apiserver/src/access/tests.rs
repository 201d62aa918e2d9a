//! Roles, tokens and questions against a store in memory.

use bytes::Bytes;
use http::header::AUTHORIZATION;
use modelplane_store::{Options, Write};
use serde_json::json;

use super::*;

/// A store in memory with objects in it.
struct Fixture {
    store: Store,
    access: Access,
}

impl Fixture {
    fn new() -> Fixture {
        let store = Store::in_memory(Options::default());
        let access = Access::open(&store).unwrap();
        Fixture { store, access }
    }

    async fn bootstrapped() -> Fixture {
        let fixture = Fixture::new();
        for object in bootstrap::objects(&["models.example".to_owned()]) {
            fixture.put(&object).await;
        }
        fixture
    }

    async fn put(&self, object: &Value) {
        let key = key(object);
        let value = Bytes::from(object.to_string());
        let write = match self.store.get(&key).unwrap() {
            None => Write::Create { key, value },
            Some(entry) => Write::Update { key, value, expected: entry.modified },
        };
        self.store.write(write).await.unwrap();
    }

    async fn delete(&self, object: &Value) {
        let write = Write::Delete { key: key(object), expected: None, last: Bytes::new() };
        self.store.write(write).await.unwrap();
    }
}

fn key(object: &Value) -> String {
    let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
    let name = object["metadata"]["name"].as_str().unwrap();
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{GROUP}/{plural}/{namespace}/{name}"),
        None => format!("{GROUP}/{plural}/{name}"),
    }
}

fn role(namespace: &str, name: &str, rules: Value) -> Value {
    json!({"kind": "Role", "metadata": {"namespace": namespace, "name": name}, "rules": rules})
}

fn cluster_role(name: &str, rules: Value) -> Value {
    json!({"kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
}

/// A binding of `Kind/name` to `User:name` or `Group:name`; cluster-wide without a namespace.
fn binding(namespace: &str, role: &str, subject: &str) -> Value {
    let (kind, role) = role.split_once('/').unwrap();
    let (subject_kind, subject) = subject.split_once(':').unwrap();
    let mut object = json!({
        "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{role}-{subject}")},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [{"kind": subject_kind, "apiGroup": GROUP, "name": subject}],
    });
    if !namespace.is_empty() {
        object["kind"] = "RoleBinding".into();
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

/// `verb group/resource[/subresource][ namespace[ name]]` (with `core` for the legacy group), or `verb /path`.
fn action(text: &str) -> Action<'_> {
    let mut words = text.split(' ');
    let verb = words.next().unwrap();
    let what = words.next().unwrap();
    if what.starts_with('/') {
        return Action { verb, path: what, ..Action::default() };
    }
    let mut parts = what.split('/');
    Action {
        verb,
        group: parts.next().filter(|group| *group != "core").unwrap_or_default(),
        resource: parts.next().unwrap(),
        subresource: parts.next().unwrap_or_default(),
        namespace: words.next().unwrap_or_default(),
        name: words.next().unwrap_or_default(),
        path: "",
    }
}

fn ann() -> Identity {
    Identity::new("ann", ["ml", AUTHENTICATED])
}

#[tokio::test]
async fn rules_match_as_in_kubernetes() {
    let cases = [
        (
            "exact",
            json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"]}),
            "get apps/deployments a",
            true,
        ),
        (
            "another verb",
            json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"]}),
            "list apps/deployments a",
            false,
        ),
        (
            "another group",
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["deployments"]}),
            "get apps/deployments a",
            false,
        ),
        (
            "all verbs",
            json!({"verbs": ["*"], "apiGroups": ["apps"], "resources": ["deployments"]}),
            "patch apps/deployments a",
            true,
        ),
        (
            "all groups",
            json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["deployments"]}),
            "get apps/deployments a",
            true,
        ),
        (
            "all resources with subresources",
            json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["*"]}),
            "get apps/deployments/scale a",
            true,
        ),
        (
            "a resource is not its subresource",
            json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"]}),
            "get apps/deployments/scale a",
            false,
        ),
        (
            "a subresource",
            json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments/scale"]}),
            "get apps/deployments/scale a",
            true,
        ),
        (
            "a subresource of all",
            json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["*/scale"]}),
            "get apps/deployments/scale a",
            true,
        ),
        (
            "a subresource of all is no resource",
            json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["*/scale"]}),
            "get apps/deployments a",
            false,
        ),
        (
            "by name",
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]}),
            "get core/pods a x",
            true,
        ),
        (
            "another name",
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]}),
            "get core/pods a y",
            false,
        ),
        (
            "no name",
            json!({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]}),
            "list core/pods a",
            false,
        ),
        ("a path", json!({"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}), "get /logs/today", true),
        (
            "a path is no prefix",
            json!({"verbs": ["get"], "nonResourceURLs": ["/logs"]}),
            "get /logs/today",
            false,
        ),
    ];
    for (name, rule, wanted, allowed) in cases {
        let fixture = Fixture::new();
        fixture.put(&cluster_role("r", json!([rule]))).await;
        fixture.put(&binding("", "ClusterRole/r", "User:ann")).await;
        assert_eq!(fixture.access.decide(&ann(), &action(wanted)).allowed, allowed, "{name}");
    }
}

#[tokio::test]
async fn a_binding_grants_at_once_only_in_its_namespace_and_until_it_is_gone() {
    let fixture = Fixture::bootstrapped().await;
    let create = |namespace| Action {
        verb: "create",
        group: "models.example",
        resource: "deployments",
        namespace,
        ..Action::default()
    };
    let why = fixture.access.authorize(&ann(), &create("team")).unwrap_err();
    assert_eq!(
        why,
        "User \"ann\" cannot create resource \"deployments\" in API group \"models.example\" in the namespace \"team\""
    );
    let grant = binding("team", "ClusterRole/edit", "Group:ml");
    fixture.put(&grant).await;
    fixture.access.authorize(&ann(), &create("team")).unwrap();
    let decision = fixture.access.decide(&ann(), &create("team"));
    assert_eq!(
        decision.reason,
        "RBAC: allowed by RoleBinding \"edit-ml/team\" of ClusterRole \"edit\" to Group \"ml\""
    );
    assert!(fixture.access.authorize(&ann(), &create("other")).is_err());
    assert!(fixture.access.authorize(&ann(), &create("")).is_err());
    let namespace = Action { verb: "get", resource: "namespaces", name: "team", ..Action::default() };
    fixture.access.authorize(&ann(), &namespace).unwrap();
    let other = Action { name: "other", ..namespace };
    assert_eq!(
        fixture.access.authorize(&ann(), &other).unwrap_err(),
        "User \"ann\" cannot get resource \"namespaces\" in API group \"\" in the namespace \"other\""
    );
    fixture.delete(&grant).await;
    assert!(fixture.access.authorize(&ann(), &create("team")).is_err());
}

#[tokio::test]
async fn user_facing_roles_nest_and_take_in_labelled_ones() {
    let fixture = Fixture::bootstrapped().await;
    for role in ["view", "edit", "admin"] {
        fixture.put(&binding("team", &format!("ClusterRole/{role}"), &format!("User:{role}"))).await;
    }
    let may = |user: &str, verb, group, resource| {
        let action = Action { verb, group, resource, namespace: "team", ..Action::default() };
        fixture.access.decide(&Identity::new(user, [AUTHENTICATED]), &action).allowed
    };
    let cases = [
        ("view", "get", "", "pods", true),
        ("view", "get", "", "secrets", false),
        ("view", "get", "models.example", "deployments", true),
        ("view", "create", "models.example", "deployments", false),
        ("edit", "get", "", "pods", true),
        ("edit", "get", "", "secrets", true),
        ("edit", "delete", "models.example", "deployments", true),
        ("edit", "create", GROUP, "rolebindings", false),
        ("admin", "get", "", "pods", true),
        ("admin", "create", GROUP, "rolebindings", true),
        ("admin", "create", "", "namespaces", false),
    ];
    for (user, verb, group, resource, expected) in cases {
        assert_eq!(may(user, verb, group, resource), expected, "{user} {verb} {resource}.{group}");
    }
    let rules = json!([{"verbs": ["get"], "apiGroups": ["new.example"], "resources": ["things"]}]);
    let mut added = cluster_role("things", rules);
    added["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    fixture.put(&added).await;
    for user in ["view", "edit", "admin"] {
        assert!(may(user, "get", "new.example", "things"), "{user}");
    }
}

#[tokio::test]
async fn everyone_may_discover_and_ask_and_readers_read_all_but_secrets() {
    let fixture = Fixture::bootstrapped().await;
    let access = &fixture.access;
    for allowed in ["get /apis/apps/v1", "get /openapi/v3", "get /version"] {
        access.authorize(&ann(), &action(allowed)).unwrap();
    }
    assert_eq!(
        access.authorize(&ann(), &action("get /metrics")).unwrap_err(),
        "User \"ann\" cannot get path \"/metrics\""
    );
    let reader = Identity::new("reader", [bootstrap::READERS, AUTHENTICATED]);
    let get = |resource| Action { verb: "list", resource, ..Action::default() };
    access.authorize(&reader, &get("nodes")).unwrap();
    access.authorize(&reader, &get("pods")).unwrap();
    assert_eq!(
        access.authorize(&reader, &get("secrets")).unwrap_err(),
        "User \"reader\" cannot list resource \"secrets\" in API group \"\" at the cluster scope"
    );
}

#[tokio::test]
async fn a_binding_to_a_missing_role_says_so() {
    let fixture = Fixture::new();
    fixture.put(&binding("", "ClusterRole/gone", "User:ann")).await;
    let why = fixture.access.authorize(&ann(), &action("get apps/deployments a")).unwrap_err();
    assert!(why.ends_with(": RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found"), "{why}");
}

#[tokio::test]
async fn nobody_grants_more_than_they_have() {
    let fixture = Fixture::bootstrapped().await;
    fixture.put(&binding("team", "ClusterRole/admin", "User:ann")).await;
    let check = |object: &Value| fixture.access.check_grant(&ann(), object, None);
    let pods = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]);
    check(&role("team", "fine", pods.clone())).unwrap();
    let nodes = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["nodes", "pods"]}]);
    assert_eq!(
        check(&role("team", "more", nodes.clone())).unwrap_err().message,
        "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"ann\" (groups=[\"ml\" \
         \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"list\"]}"
    );
    assert!(check(&role("other", "fine", pods)).is_err(), "what is held in one namespace counts there");
    check(&binding("team", "ClusterRole/view", "User:bob")).unwrap();
    assert_eq!(check(&binding("team", "ClusterRole/cluster-admin", "User:ann")).unwrap_err().code, 403);
    assert_eq!(
        check(&binding("team", "ClusterRole/none", "User:bob")).unwrap_err().message,
        "clusterroles.rbac.authorization.k8s.io \"none\" not found"
    );
    let mut whole = cluster_role("whole", json!([]));
    whole["aggregationRule"] = json!({"clusterRoleSelectors": []});
    assert!(
        check(&whole)
            .unwrap_err()
            .message
            .ends_with("must have cluster-admin privileges to use an aggregationRule")
    );
    let relabelled = role("team", "more", nodes);
    fixture.access.check_grant(&ann(), &relabelled, Some(&relabelled)).unwrap();
    let bind = json!([{"verbs": ["bind"], "apiGroups": [GROUP], "resources": ["clusterroles"],
        "resourceNames": ["cluster-admin"]}]);
    fixture.put(&cluster_role("binder", bind)).await;
    fixture.put(&binding("team", "ClusterRole/binder", "User:ann")).await;
    check(&binding("team", "ClusterRole/cluster-admin", "User:ann")).unwrap();
}

#[tokio::test]
async fn tokens_are_kept_as_hashes_and_survive_a_restart() {
    let fixture = Fixture::new();
    let token = fixture.access.tokens().issue(&Identity::new("ann", ["ml"])).await.unwrap();
    let kept = fixture.store.list(modelplane_store::ListRequest::default()).unwrap();
    for entry in &kept.entries {
        assert!(!String::from_utf8_lossy(&entry.value).contains(&token), "{} has the token", entry.key);
    }
    let reopened = Access::open(&fixture.store).unwrap();
    let ask = |access: &Access, header: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        access.authenticate(Some(&Identity::new("certificate", ["x"])), &headers)
    };
    for header in [format!("Bearer {token}"), format!("bearer  {token}")] {
        assert_eq!(ask(&reopened, &header).unwrap(), ann());
    }
    let wrong = [format!("Bearer {token}0"), "Bearer ".to_owned(), "Basic YTpi".to_owned(), token.clone()];
    for header in wrong {
        assert_eq!(ask(&reopened, &header).unwrap_err().code, 401, "{header}");
    }
    reopened.tokens().revoke("ann").await.unwrap();
    assert_eq!(ask(&reopened, &format!("Bearer {token}")).unwrap_err().code, 401);
    assert_eq!(reopened.authenticate(None, &HeaderMap::new()).unwrap_err().code, 401);
    let certificate = Identity::new("c", ["g"]);
    let known = reopened.authenticate(Some(&certificate), &HeaderMap::new()).unwrap();
    assert_eq!(known.groups, ["g", AUTHENTICATED]);
}

#[tokio::test]
async fn tokens_end_with_their_time_or_their_object() {
    let fixture = Fixture::new();
    let account = |uid: &str| json!({"kind": "ServiceAccount", "metadata": {"namespace": "a", "name": "r", "uid": uid}});
    // As the server stores it: `metadata` first, compact.
    let stored = |uid: &str| crate::object::encode::encode(&account(uid));
    let at = "core/serviceaccounts/a/r".to_owned();
    fixture.store.write(Write::Create { key: at.clone(), value: stored("1") }).await.unwrap();
    let robot = identity_of_service_account("a", "r");
    let now = jiff::Timestamp::now();
    let later = now + jiff::SignedDuration::from_hours(1);
    let bound = || Bound { key: at.clone(), uid: "1".to_owned() };
    let tokens = fixture.access.tokens();
    let expired = tokens.issue_bound(&robot, now, bound()).await.unwrap();
    let valid = tokens.issue_bound(&robot, later, bound()).await.unwrap();
    assert_eq!(tokens.identity(&expired), None);
    assert_eq!(tokens.identity(&valid).as_ref(), Some(&robot));
    let reopened = Access::open(&fixture.store).unwrap();
    assert_eq!(reopened.tokens().identity(&expired), None);
    assert_eq!(reopened.tokens().identity(&valid).as_ref(), Some(&robot));
    let entry = fixture.store.get(&at).unwrap().unwrap();
    let other = Write::Update { key: at.clone(), value: stored("2"), expected: entry.modified };
    fixture.store.write(other).await.unwrap();
    assert_eq!(tokens.identity(&valid), None, "another account of the same name");
    tokens.issue(&robot).await.unwrap();
    let record = fixture.store.get("internal/access-tokens").unwrap().unwrap();
    let kept: Value = serde_json::from_slice(&record.value).unwrap();
    assert_eq!(kept.as_array().unwrap().len(), 2, "what has expired is not kept: {kept}");
}

#[tokio::test]
async fn reviews_answer_what_kubectl_auth_asks() {
    let fixture = Fixture::bootstrapped().await;
    fixture.put(&binding("team", "ClusterRole/view", "Group:ml")).await;
    let ask = |namespace: Option<&str>, kind: &str, spec: Value| {
        let review = json!({"kind": kind, "spec": spec});
        reviews::answer(&fixture.access, &ann(), namespace, review).map(|answer| answer["status"].clone())
    };
    let pods = json!({"namespace": "team", "verb": "list", "resource": "pods"});
    let nodes = json!({"verb": "list", "resource": "nodes"});
    assert_eq!(
        ask(None, "SelfSubjectAccessReview", json!({"resourceAttributes": pods})).unwrap(),
        json!({
            "allowed": true,
            "reason": "RBAC: allowed by RoleBinding \"view-ml/team\" of ClusterRole \"view\" to Group \"ml\"",
        })
    );
    assert_eq!(
        ask(None, "SelfSubjectAccessReview", json!({"resourceAttributes": nodes})).unwrap(),
        json!({"allowed": false})
    );
    let path = json!({"nonResourceAttributes": {"verb": "get", "path": "/apis"}});
    assert_eq!(ask(None, "SelfSubjectAccessReview", path).unwrap()["allowed"], true);
    assert_eq!(ask(None, "SelfSubjectAccessReview", json!({})).unwrap_err().code, 422);
    let other = json!({"user": "bob", "groups": ["ml"], "resourceAttributes": pods});
    assert_eq!(ask(None, "SubjectAccessReview", other.clone()).unwrap()["allowed"], true);
    assert_eq!(ask(Some("team"), "LocalSubjectAccessReview", other.clone()).unwrap()["allowed"], true);
    assert_eq!(ask(Some("x"), "LocalSubjectAccessReview", other).unwrap_err().code, 422);
    assert_eq!(ask(None, "SubjectAccessReview", json!({"resourceAttributes": pods})).unwrap_err().code, 422);
    assert_eq!(
        ask(None, "SelfSubjectReview", Value::Null).unwrap(),
        json!({"userInfo": {"username": "ann", "groups": ["ml", AUTHENTICATED]}})
    );
    let rules = ask(None, "SelfSubjectRulesReview", json!({"namespace": "team"})).unwrap();
    let has = |list: &str, field: &str, wanted: &str| {
        rules[list]
            .as_array()
            .unwrap()
            .iter()
            .any(|rule| rule[field].as_array().unwrap().contains(&wanted.into()))
    };
    assert!(has("resourceRules", "resources", "pods") && has("nonResourceRules", "nonResourceURLs", "/apis"));
    assert_eq!(rules["incomplete"], false);
}

#[test]
fn bootstrap_adds_what_is_missing_and_leaves_the_rest() {
    let wanted = &bootstrap::objects(&[])[0];
    assert_eq!(bootstrap::reconcile(wanted, None).as_ref(), Some(wanted));
    assert_eq!(bootstrap::reconcile(wanted, Some(wanted)), None);
    let mut changed = wanted.clone();
    changed["rules"] = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let repaired = bootstrap::reconcile(wanted, Some(&changed)).unwrap();
    assert!(repaired["rules"].as_array().unwrap().len() > 1);
    assert_eq!(bootstrap::reconcile(wanted, Some(&repaired)), None);
    changed["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false".into();
    assert_eq!(bootstrap::reconcile(wanted, Some(&changed)), None);
}

#[test]
fn malformed_roles_and_bindings_are_refused() {
    let fields = |object: &Value, old: Option<&Value>| {
        validation::check(object, old).into_iter().map(|cause| cause.field).collect::<Vec<_>>()
    };
    let urls = json!([{"verbs": ["get"], "nonResourceURLs": ["/x"]}, {"resources": ["pods"]}]);
    assert_eq!(
        fields(&role("a", "r", urls), None),
        ["rules[0].nonResourceURLs", "rules[1].verbs", "rules[1].apiGroups"]
    );
    let good = binding("a", "Role/r", "User:ann");
    assert!(fields(&good, Some(&good)).is_empty());
    let mut moved = good.clone();
    moved["roleRef"]["name"] = "other".into();
    assert_eq!(fields(&moved, Some(&good)), ["roleRef"]);
    let mut short = good.clone();
    short["roleRef"] = json!({"kind": "Role", "name": "r"});
    short["subjects"] = json!([{"kind": "User", "name": "ann"}, {"kind": "Robot", "name": "x"}]);
    validation::default(&mut short);
    assert_eq!(fields(&short, None), ["subjects[1].kind"]);
    assert_eq!(fields(&binding("", "Role/r", "User:ann"), None), ["roleRef.kind"]);
}
