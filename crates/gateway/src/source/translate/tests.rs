use serde_json::{Value, json};

use super::*;

fn endpoint(name: &str, labels: Value, spec: Value) -> ((String, String), ModelEndpoint) {
    let metadata = json!({"name": name, "namespace": "ml-team", "labels": labels});
    let endpoint = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    (("ml-team".to_owned(), name.to_owned()), endpoint)
}

fn service(spec: Value) -> ((String, String), ModelService) {
    let metadata = json!({"name": "chat", "namespace": "ml-team"});
    let service = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    (("ml-team".to_owned(), "chat".to_owned()), service)
}

fn secret(labels: &[(&str, &str)], annotations: &[(&str, &str)], data: &[(&str, &'static str)]) -> Secret {
    let owned = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let data =
        data.iter().map(|&(key, value)| (key.to_owned(), Bytes::from_static(value.as_bytes()))).collect();
    Secret { labels: owned(labels), annotations: owned(annotations), data }
}

#[test]
fn an_endpoint_belongs_to_the_first_entry_that_selects_it() {
    let url = json!({"url": "http://127.0.0.1:9/ml-team/x/v1", "rewritePath": "/ml-team/x/"});
    let documents = Documents {
        services: [service(json!({"endpoints": [
            {"selector": {"matchLabels": {"app": "a"}}, "weight": 3},
            {"selector": {"matchLabels": {}}, "tier": 1},
        ]}))]
        .into(),
        endpoints: [
            endpoint("one", json!({"app": "a"}), url.clone()),
            endpoint("two", json!({"app": "b"}), url.clone()),
            endpoint("bad", json!({"app": "b"}), json!({"url": "nowhere"})),
        ]
        .into(),
        ..Documents::default()
    };
    let snapshot = snapshot(&documents);
    let entries: Vec<_> = snapshot.services[0]
        .entries
        .iter()
        .map(|entry| {
            let names: Vec<_> = entry.endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect();
            (entry.weight, entry.tier, names)
        })
        .collect();
    assert_eq!(entries, [(3, 0, vec!["one"]), (1, 1, vec!["two"])]);
    assert_eq!(snapshot.problems.len(), 1);
    assert_eq!(snapshot.problems[0].object, "ModelEndpoint ml-team/bad");
    let one = &snapshot.services[0].entries[0].endpoints[0];
    assert_eq!(one.address, Address::plain("127.0.0.1", 9));
    assert_eq!(one.rewrite_path.as_deref(), Some("/ml-team/x/"));
}

#[test]
fn an_endpoint_gets_its_credential_tls_and_headers() {
    let spec = json!({
        "url": "https://api.example.com/v1",
        "auth": {"secretRef": {"name": "provider", "key": "token"}},
        "tls": {"serverName": "inner.example.com", "caSecretRef": {"name": "provider", "key": "ca"}},
        "host": "models.example.com",
        "model": "llama-3",
        "headers": {"set": {"X-Org": "us"}, "remove": ["X-Debug"]},
    });
    let documents = Documents {
        services: [service(json!({"endpoints": [{"selector": {"matchLabels": {}}}]}))].into(),
        endpoints: [endpoint("one", json!({}), spec)].into(),
        secrets: [(
            ("ml-team".to_owned(), "provider".to_owned()),
            secret(&[], &[], &[("token", "sk-123\n"), ("ca", "PEM")]),
        )]
        .into(),
        ..Documents::default()
    };
    let translated = snapshot(&documents);
    let endpoint = &translated.services[0].entries[0].endpoints[0];
    let credential = endpoint.credential.as_ref().unwrap();
    assert_eq!(
        (credential.header.as_str(), credential.value.as_bytes()),
        ("authorization", &b"Bearer sk-123"[..])
    );
    assert!(!format!("{endpoint:?}").contains("sk-123"), "secrets are not printed");
    assert_eq!(endpoint.address.port, 443);
    let tls = endpoint.address.tls.as_ref().unwrap();
    assert_eq!(tls.server_name.as_deref(), Some("inner.example.com"));
    assert_eq!(tls.authorities.as_deref(), Some(&b"PEM"[..]));
    assert_eq!(endpoint.host_header.as_ref().unwrap(), "models.example.com");
    assert_eq!(endpoint.add_headers[0].0, "x-org");
    assert_eq!(endpoint.remove_headers[0], "x-debug");

    let without_secret = snapshot(&Documents { secrets: BTreeMap::new(), ..documents });
    assert!(without_secret.services[0].entries[0].endpoints.is_empty(), "no credential, no requests");
    assert_eq!(without_secret.problems[0].reason, "Secret ml-team/provider does not exist");
}

#[test]
fn callers_count_only_where_keys_are_required() {
    let key = |name: &str, secret| (("ml-team".to_owned(), name.to_owned()), secret);
    let label: &[(&str, &str)] = &[(CALLER_KEY_LABEL, "true")];
    let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let mut documents = Documents {
        secrets: [
            key("plain", secret(label, &[(caller::REQUESTS_PER_MINUTE, "60")], &[("key", "test")])),
            key("hashed", secret(label, &[], &[("sha256", digest)])),
            key("empty", secret(label, &[], &[])),
            key("limit", secret(label, &[(caller::TOKENS_PER_MINUTE, "many")], &[("key", "x")])),
            key("other", secret(&[], &[], &[("key", "y")])),
        ]
        .into(),
        ..Documents::default()
    };
    assert_eq!(snapshot(&documents).callers, None);
    let gateway = json!({"spec": {"backend": "Modelplane", "modelplane": {"callers": {"requireKey": true}}}});
    documents.gateways.insert("default".to_owned(), serde_json::from_value(gateway).unwrap());
    let translated = snapshot(&documents);
    let callers = translated.callers.unwrap();
    let ids: Vec<_> = callers.iter().map(|caller| caller.id.as_str()).collect();
    assert_eq!(ids, ["ml-team/hashed", "ml-team/plain"]);
    assert_eq!(callers[0].digest, callers[1].digest);
    assert_eq!(callers[1].limits.requests_per_minute, Some(60));
    let problems: Vec<_> = translated.problems.iter().map(|problem| problem.object.as_str()).collect();
    assert_eq!(problems, ["Secret ml-team/empty", "Secret ml-team/limit"]);
}

#[test]
fn https_is_served_with_the_named_secrets_for_the_named_host() {
    let spec = json!({"backend": "Modelplane", "modelplane": {"tls": {
        "hostname": "models.example.com", "certificateSecrets": ["there", "missing"],
    }}});
    let pair = secret(&[], &[], &[("tls.crt", "CHAIN"), ("tls.key", "KEY")]);
    let documents = Documents {
        gateways: [("default".to_owned(), serde_json::from_value(json!({"spec": spec})).unwrap())].into(),
        secrets: [(("modelplane-system".to_owned(), "there".to_owned()), pair)].into(),
        ..Documents::default()
    };
    let translated = snapshot(&documents);
    assert_eq!(translated.hostnames, ["models.example.com"]);
    let want = Certificate { chain: Bytes::from_static(b"CHAIN"), key: Bytes::from_static(b"KEY") };
    assert!(translated.certificates == [want], "the Secret's entries");
    let problem = Problem {
        object: "InferenceGateway default".to_owned(),
        reason: "Secret modelplane-system/missing does not exist".to_owned(),
    };
    assert_eq!(translated.problems, [problem], "what is missing is said");
}

#[test]
fn a_namespace_hands_out_keys_for_itself_only() {
    let only = |patterns: &[&str]| {
        AllowedServices::Only(patterns.iter().map(|&pattern| pattern.to_owned()).collect())
    };
    let cases = [
        ("modelplane-system", None, AllowedServices::All),
        ("modelplane-system", Some("a/b, c/*"), only(&["a/b", "c/*"])),
        ("team", None, only(&["team/*"])),
        ("team", Some("*"), only(&["team/*"])),
        ("team", Some("team/chat, other/chat, *"), only(&["team/chat", "team/*"])),
        ("team", Some(""), only(&[])),
    ];
    for (namespace, annotation, want) in cases {
        assert_eq!(allowed(namespace, annotation), want, "{namespace} {annotation:?}");
    }
}

#[test]
fn traffic_policies_keep_their_defaults_where_nothing_is_said() {
    let traffic = |value: Value| policy(&serde_json::from_value(value).unwrap());
    assert_eq!(traffic(json!({})), ServicePolicy::default());
    let got = traffic(json!({
        "balancing": "RoundRobin",
        "affinity": {"key": "Header", "header": "X-Session"},
        "locality": {"labelKey": "zone", "prefer": ["a", "b"]},
        "overflow": {"concurrentRequests": 8, "timeToFirstToken": "1500ms"},
        "retries": {"attempts": 0},
        "timeouts": {"firstByte": "2m"},
        "outlierDetection": {"consecutiveFailures": 0},
        "healthCheck": {"path": "/health"},
    }));
    let want = ServicePolicy {
        balancing: Balancing::RoundRobin,
        affinity: Some(Affinity {
            key: AffinityKey::Header(HeaderName::from_static("x-session")),
            load_percent: 125,
        }),
        locality: Some(Locality {
            label: "zone".to_owned(),
            preferred: vec!["a".to_owned(), "b".to_owned()],
        }),
        timeouts: Timeouts { first_byte: Duration::from_secs(120), ..Timeouts::default() },
        retries: Retries { attempts: 0, budget_percent: 20 },
        overflow: Overflow {
            concurrent_requests: Some(8),
            time_to_first_token: Some(Duration::from_millis(1_500)),
            ..Overflow::default()
        },
        outliers: Outliers { consecutive_failures: 0, ..Outliers::default() },
        probe: Some(Probe { path: "/health".to_owned(), interval: Duration::from_secs(10) }),
    };
    assert_eq!(got, want);
}
