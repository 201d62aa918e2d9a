//! What roles and bindings must look like, beyond their schemas.

use serde_json::Value;

use super::rules::GROUP;
use crate::status::StatusCause;

/// Everything wrong with a role or binding; other kinds pass.
pub(crate) fn check(object: &Value, old: Option<&Value>) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    match object.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "Role" => check_rules(object, true, &mut causes),
        "ClusterRole" => check_rules(object, false, &mut causes),
        kind @ ("RoleBinding" | "ClusterRoleBinding") => {
            check_role_ref(object, kind == "ClusterRoleBinding", &mut causes);
            check_subjects(object, kind == "ClusterRoleBinding", &mut causes);
            let reference = object.get("roleRef").cloned().unwrap_or_default();
            if old.is_some_and(|old| old.get("roleRef").is_some_and(|before| *before != reference)) {
                causes.push(StatusCause::invalid_value("roleRef", &reference, "cannot change roleRef"));
            }
        }
        _ => {}
    }
    causes
}

fn check_rules(role: &Value, namespaced: bool, causes: &mut Vec<StatusCause>) {
    let rules = role.get("rules").and_then(Value::as_array).into_iter().flatten();
    for (index, rule) in rules.enumerate() {
        let path = |field: &str| format!("rules[{index}].{field}");
        let filled =
            |field: &str| rule.get(field).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        let mut require = |field: &str, why: &str| {
            if !filled(field) {
                causes.push(StatusCause::required(&path(field), why));
            }
        };
        require("verbs", "verbs must contain at least one value");
        if filled("nonResourceURLs") {
            let urls = rule.get("nonResourceURLs").cloned().unwrap_or_default();
            let field = path("nonResourceURLs");
            if namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                causes.push(StatusCause::invalid_value(&field, &urls, why));
            } else if filled("apiGroups") || filled("resources") || filled("resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(StatusCause::invalid_value(&field, &urls, why));
            }
            continue;
        }
        require("apiGroups", "resource rules must supply at least one api group");
        require("resources", "resource rules must supply at least one resource");
    }
}

fn not_supported(field: &str, value: &str, supported: &[&str]) -> StatusCause {
    let supported: Vec<String> = supported.iter().map(|item| format!("{item:?}")).collect();
    StatusCause {
        reason: "FieldValueNotSupported".to_owned(),
        message: format!("Unsupported value: {value:?}: supported values: {}", supported.join(", ")),
        field: field.to_owned(),
    }
}

fn check_role_ref(binding: &Value, cluster: bool, causes: &mut Vec<StatusCause>) {
    let text = |field: &str| {
        binding.pointer(&format!("/roleRef/{field}")).and_then(Value::as_str).unwrap_or_default()
    };
    if text("apiGroup") != GROUP {
        causes.push(not_supported("roleRef.apiGroup", text("apiGroup"), &[GROUP]));
    }
    let kinds: &[&str] = if cluster { &["ClusterRole"] } else { &["ClusterRole", "Role"] };
    if !kinds.contains(&text("kind")) {
        causes.push(not_supported("roleRef.kind", text("kind"), kinds));
    }
    if text("name").is_empty() {
        causes.push(StatusCause::required("roleRef.name", ""));
    }
}

fn check_subjects(binding: &Value, cluster: bool, causes: &mut Vec<StatusCause>) {
    let subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
    for (index, subject) in subjects.enumerate() {
        let path = |field: &str| format!("subjects[{index}].{field}");
        let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("name").is_empty() {
            causes.push(StatusCause::required(&path("name"), ""));
        }
        match text("kind") {
            "ServiceAccount" => {
                if !text("apiGroup").is_empty() {
                    causes.push(not_supported(&path("apiGroup"), text("apiGroup"), &[""]));
                }
                if cluster && text("namespace").is_empty() {
                    causes.push(StatusCause::required(&path("namespace"), ""));
                }
            }
            "User" | "Group" => {
                if text("apiGroup") != GROUP {
                    causes.push(not_supported(&path("apiGroup"), text("apiGroup"), &[GROUP]));
                }
            }
            other => {
                causes.push(not_supported(&path("kind"), other, &["ServiceAccount", "User", "Group"]));
            }
        }
    }
}

/// Fills in what a role or binding may leave out.
pub(crate) fn default(object: &mut Value) {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    if !matches!(kind, "RoleBinding" | "ClusterRoleBinding") {
        return;
    }
    fill(object.get_mut("roleRef"));
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            fill(Some(subject));
        }
    }
}

fn fill(reference: Option<&mut Value>) {
    let Some(fields) = reference.and_then(Value::as_object_mut) else { return };
    if fields.get("apiGroup").and_then(Value::as_str).is_none_or(str::is_empty) {
        fields.insert("apiGroup".to_owned(), GROUP.into());
    }
}
