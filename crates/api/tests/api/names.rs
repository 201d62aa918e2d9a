//! Names agree with the published examples and are valid whatever goes in.

use modelplane_api::conditions::{ConditionType, Reason};
use modelplane_api::names;
use modelplane_api::template::MemberRole;
use proptest::prelude::*;

#[test]
fn child_names_match_the_published_examples() {
    let (a40, b40, a70, x60) = ("a".repeat(40), "b".repeat(40), "a".repeat(70), "x".repeat(60));
    let (a56, x56) = ("a".repeat(56), "x".repeat(56));
    let cases: &[(&[&str], String, &str)] = &[
        (&["r1", "pf"], "r1-pf-29834".into(), "spec replica §2"),
        (&["r1", "pf", "standalone", "devices"], "r1-pf-standalone-devices-9b005".into(), "spec replica §2"),
        (&[&x60, "main"], format!("{}-94dfb", "x".repeat(57)), "cut at 57"),
        (&["modelcache", "ml-team", "qwen"], "modelcache-ml-team-qwen-17db2".into(), "spec cache §4.1"),
        (&["c1", "kubeconfig"], "c1-kubeconfig-92289".into(), "spec clusters §0.5"),
        (&[&a40, &b40], format!("{a40}-{}-f5e42", "b".repeat(16)), "cut inside a later part"),
        (&[&x56, "y"], format!("{x56}-186a0"), "the dash at the cut is stripped"),
        (&[&a70, "cluster"], format!("{}-a108a", "a".repeat(57)), "spec serving-stack §1"),
        (&[&a56, "cluster"], format!("{a56}-c82b8"), "spec serving-stack §1"),
    ];
    for (parts, expected, reason) in cases {
        assert_eq!(names::child_name(parts), *expected, "{reason}");
    }
}

#[test]
fn replica_names_match_the_published_examples() {
    let (x60, m56) = ("x".repeat(60), "m".repeat(56));
    let cases = [
        ("my-model", "cluster-a", 0, "my-model-5ab63".to_owned()),
        ("qwen", "gke-west", 0, "qwen-254ab".to_owned()),
        ("qwen", "gke-west", 1, "qwen-5da09".to_owned()),
        (x60.as_str(), "a", 0, format!("{}-681c1", "x".repeat(57))),
        (&format!("{m56}-abc"), "a", 0, format!("{m56}-10f1e")),
        ("qwen-demo", "gpu-a", 0, "qwen-demo-35973".to_owned()),
    ];
    for (deployment, cluster, index, expected) in cases {
        assert_eq!(names::replica_name(deployment, cluster, index), expected);
    }
}

#[test]
fn a_picker_keeps_its_published_name_while_that_is_valid() {
    assert_eq!(names::picker_name("my-model-5ab63"), "my-model-5ab63-epp");
    let long = names::picker_name(&"r".repeat(63));
    assert!(names::is_rfc1035_label(&long), "{long}");
    for replica in ["qwen2.5-5ab63", "3b-5ab63", "a.b.c"] {
        let name = names::picker_name(replica);
        assert!(names::is_rfc1035_label(&name), "{replica} gives {name}");
        let dashed = replica.replace('.', "-");
        assert!(dashed == replica || names::picker_name(&dashed) != name, "{replica} and {dashed} differ");
    }
}

#[test]
fn a_gang_leaves_room_for_the_names_of_its_pods() {
    assert_eq!(names::gang_name("r1", "dc"), "r1-dc-78f96", "spec replica §6.6, worked example");
    let long = names::gang_name(&"r".repeat(63), &"e".repeat(63));
    // A pod is `<name>-<group>-<worker>`, a revision label `<name>-<group>-<10 hex>`; groups go up to 63.
    assert!(names::is_label_value(&format!("{long}-63-0123456789")), "{long}");
}

#[test]
fn words_are_published_as_written() {
    assert_eq!(Reason::InvalidUrl.as_str(), "InvalidURL");
    assert_eq!(Reason::WorkloadsAccepted.as_str(), "Accepted");
    assert_eq!(ConditionType::ReplicasScheduled.to_string(), "ReplicasScheduled");
    for reason in Reason::ALL {
        let word = reason.as_str();
        assert!(word.starts_with(|c: char| c.is_ascii_uppercase()), "{word}");
        assert!(word.chars().all(|c| c.is_ascii_alphanumeric()), "{word}");
    }
}

/// Names as an API server admits them: RFC 1123 subdomains of up to 63 characters.
fn object_name() -> impl Strategy<Value = String> {
    "[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,15}[a-z0-9])?){0,2}"
}

proptest! {
    #[test]
    fn derived_names_are_valid_for_valid_inputs(
        namespace in "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
        name in object_name(),
        engine in "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
        index in 0_u32..1000,
    ) {
        let replica = names::replica_name(&name, &engine, index);
        for derived in [
            replica.clone(),
            names::workload_name(&replica, &engine),
            names::gang_name(&replica, &engine),
            names::claim_template_name(&replica, &engine, MemberRole::Standalone),
            names::cache_claim_name(&namespace, &name),
            names::cache_job_name(&namespace, &name),
            names::serving_stack_name(&name),
            names::kubeconfig_name(&name),
        ] {
            prop_assert!(names::is_rfc1123_subdomain(&derived), "{derived}");
            prop_assert!(names::is_label_value(&derived), "{derived}");
        }
        prop_assert!(names::is_rfc1035_label(&names::picker_name(&replica)));
        prop_assert!(names::is_rfc1123_subdomain(&names::pool_name(&replica)));
    }

    #[test]
    fn repaired_names_are_valid_for_any_text(text in ".{0,200}") {
        prop_assert!(names::is_label_value(&names::label_value(&text)), "{text:?}");
        prop_assert!(names::is_rfc1035_label(&names::service_name(&text)), "{text:?}");
        prop_assert!(names::child_name(&[&text, "x"]).chars().count() <= names::MAX_NAME);
    }
}
