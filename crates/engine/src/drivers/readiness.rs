//! When an `Object` counts as ready: provider-kubernetes' four policies.

use modelplane_cel::object::Program;
use serde_json::Value;

use crate::object::Stored;

/// Whether the object on the cluster is ready by the policy in `spec.readiness`.
///
/// # Errors
///
/// Why the policy cannot be applied.
pub fn is_ready(object: &Stored, observed: &Value) -> Result<bool, String> {
    let setting = |field: &str| object.text_at(&["spec", "readiness", field]);
    match setting("policy").unwrap_or("SuccessfulCreate") {
        "SuccessfulCreate" => Ok(true),
        "DeriveFromObject" => {
            Ok(conditions(observed).any(|(kind, status)| kind == "Ready" && status == "True"))
        }
        "AllTrue" => {
            let mut statuses = conditions(observed).map(|(_, status)| status == "True").peekable();
            Ok(statuses.peek().is_some() && statuses.all(|holds| holds))
        }
        "DeriveFromCelQuery" => query(setting("celQuery").unwrap_or_default(), observed),
        other => Err(format!("spec.readiness.policy {other:?} is unknown")),
    }
}

fn query(text: &str, observed: &Value) -> Result<bool, String> {
    let program = Program::compile(&["object"], text);
    let program = program.map_err(|error| format!("spec.readiness.celQuery: {error}"))?;
    let holds = program.evaluate_bool(&[("object", observed)]);
    holds.map_err(|error| format!("spec.readiness.celQuery: {error}"))
}

fn conditions(observed: &Value) -> impl Iterator<Item = (&str, &str)> {
    let list = observed["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|condition| {
        (condition["type"].as_str().unwrap_or_default(), condition["status"].as_str().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_policy_reads_what_it_says() {
        let conditions = |list: &[(&str, &str)]| {
            let list: Vec<Value> = list.iter().map(|(t, s)| json!({"type": t, "status": s})).collect();
            json!({"kind": "K", "status": {"conditions": list, "count": 2}})
        };
        let query = |text: &str| json!({"policy": "DeriveFromCelQuery", "celQuery": text});
        for (name, readiness, observed, expected) in [
            ("created", json!({}), json!({}), Ok(true)),
            ("ready", json!({"policy": "DeriveFromObject"}), conditions(&[("Ready", "True")]), Ok(true)),
            ("not ready", json!({"policy": "DeriveFromObject"}), conditions(&[("Other", "True")]), Ok(false)),
            ("no conditions", json!({"policy": "AllTrue"}), json!({}), Ok(false)),
            ("all", json!({"policy": "AllTrue"}), conditions(&[("A", "True"), ("B", "True")]), Ok(true)),
            (
                "not all",
                json!({"policy": "AllTrue"}),
                conditions(&[("A", "True"), ("B", "False")]),
                Ok(false),
            ),
            ("a query", query("object.status.count > 1"), conditions(&[]), Ok(true)),
            ("a query that fails", query("object.nothing.at == 1"), conditions(&[]), Err(())),
            ("no query", query("1 +"), conditions(&[]), Err(())),
            ("another policy", json!({"policy": "Whatever"}), json!({}), Err(())),
        ] {
            let object = json!({"metadata": {"name": "a"}, "spec": {"readiness": readiness}});
            let object = Stored::from_value(object).unwrap();
            assert_eq!(is_ready(&object, &observed).map_err(|_| ()), expected, "{name}");
        }
    }
}
