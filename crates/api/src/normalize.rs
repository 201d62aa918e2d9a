//! Rewrites documents in the v0.1 shape of the API to the newer one.
//!
//! This is the one place that knows how, for untyped documents; typed decoding, which cannot rewrite, accepts
//! both shapes by itself. Nothing is lost: a Google Cloud project, for which the newer shape has no field,
//! stays (the published schemas allow it) and is only taken out by [`convert`], which rewrites manifests.

use std::fmt;

use serde_json::{Map, Value};

use crate::field_path::below;
use crate::schema::older_shape::{INLINE_FIELDS, OLDER_GOOGLE_SECRET};

/// One thing that was rewritten. Paths are written like `spec.template.spec.engines`.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A field moved to another place.
    Moved {
        /// Where it was.
        from: String,
        /// Where it is now.
        to: String,
    },
    /// A value was rewritten; `to` is where its content is now.
    Rewritten {
        /// Where the value was.
        from: String,
        /// Where its content is now.
        to: String,
        /// The value it had.
        value: String,
    },
    /// A field that the newer shape does not have was taken out.
    Removed {
        /// Where it was.
        from: String,
        /// The value it had.
        value: String,
        /// What to do instead.
        hint: &'static str,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved { from, to } => write!(formatter, "{from} moved to {to}"),
            Self::Rewritten { from, to, value } => write!(formatter, "{from}: {value:?} rewritten at {to}"),
            Self::Removed { from, value, hint } => write!(formatter, "{from}: {value:?} removed; {hint}"),
        }
    }
}

/// Why a document cannot be rewritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NormalizeError {
    /// The document has fields of both shapes.
    #[error("{path} mixes the v0.1 and the newer shape of the API: it cannot stand beside spec.template")]
    MixedShapes {
        /// A field of the older shape.
        path: String,
    },
}

impl NormalizeError {
    /// The field that the error is about.
    pub fn path(&self) -> &str {
        match self {
            Self::MixedShapes { path } => path,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::MixedShapes { .. } => "move the field under spec.template.spec, or remove it",
        }
    }
}

/// Whether [`normalize`] has anything to do. Cheap: looks only where the shapes differ.
pub fn needs_normalizing(document: &Value) -> bool {
    let Some(kind) = older_kind(document) else { return false };
    match kind {
        "ModelDeployment" => INLINE_FIELDS.iter().any(|field| !document["spec"][field].is_null()),
        "InferenceCluster" => pools(document).any(|pool| pool["fabric"].is_string()),
        "GKECluster" => has_older_secret(&document["status"]),
        _ => has_older_secret(&document["spec"]),
    }
}

/// Rewrites a document to the newer shape, in place. A document that needs nothing, or is of another kind,
/// stays as it is. A field whose value is `null` counts as absent.
pub fn normalize(document: &mut Value) -> Result<Vec<Change>, NormalizeError> {
    let mut changes = Vec::new();
    if !needs_normalizing(document) {
        return Ok(changes);
    }
    match older_kind(document) {
        Some("ModelDeployment") => nest_template(document, &mut changes)?,
        Some("InferenceCluster") => spell_out_fabrics(document, &mut changes),
        Some("GKECluster") => rename_secrets(document, "status", &mut changes),
        Some(_) => rename_secrets(document, "spec", &mut changes),
        None => {}
    }
    Ok(changes)
}

/// Rewrites a manifest to the newer shape alone: [`normalize`], then takes out what that shape does not have.
pub fn convert(document: &mut Value) -> Result<Vec<Change>, NormalizeError> {
    let mut changes = normalize(document)?;
    let (pointer, path) = match older_kind(document) {
        Some("InferenceCluster") => ("/spec/cluster/gke", "spec.cluster.gke.project"),
        Some("GKECluster") => ("/spec", "spec.project"),
        _ => return Ok(changes),
    };
    let project = document.pointer_mut(pointer).and_then(Value::as_object_mut);
    if let Some(value) = project.and_then(|fields| fields.remove("project")) {
        changes.push(Change::Removed {
            from: path.to_owned(),
            value: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            hint: "name the project in spec.projectID of the ClusterProviderConfig that credentials refers to",
        });
    }
    Ok(changes)
}

/// Where a field of a rewritten document was before, for messages about the document as it was written.
pub fn original_path(changes: &[Change], path: &str) -> String {
    for change in changes {
        if let Change::Moved { from, to } = change
            && let Some(rest) = below(path, to)
        {
            return format!("{from}{rest}");
        }
        if let Change::Rewritten { from, to, .. } = change
            && below(path, to).is_some()
        {
            return from.clone();
        }
    }
    path.to_owned()
}

/// The kind of a document, if it is one whose shapes differ.
fn older_kind(document: &Value) -> Option<&str> {
    let kind = document["kind"].as_str()?;
    let group = match kind {
        "ModelDeployment" | "InferenceCluster" => "modelplane.ai/",
        "GKECluster" | "ServingStack" => "infrastructure.modelplane.ai/",
        _ => return None,
    };
    document["apiVersion"].as_str()?.starts_with(group).then_some(kind)
}

/// Moves the fields of the template from `spec` to `spec.template.spec`.
fn nest_template(document: &mut Value, changes: &mut Vec<Change>) -> Result<(), NormalizeError> {
    let Some(spec) = document["spec"].as_object_mut() else { return Ok(()) };
    if spec.get("template").is_some_and(|template| !template.is_null()) {
        let inline =
            INLINE_FIELDS.iter().find(|field| spec.get(**field).is_some_and(|value| !value.is_null()));
        let path = format!("spec.{}", inline.unwrap_or(&INLINE_FIELDS[0]));
        return Err(NormalizeError::MixedShapes { path });
    }
    let mut template = Map::new();
    for field in INLINE_FIELDS {
        // `shift_remove` keeps the order in which the manifest's author wrote the remaining fields.
        if let Some(value) = spec.shift_remove(field).filter(|value| !value.is_null()) {
            template.insert(field.to_owned(), value);
            changes.push(Change::Moved {
                from: format!("spec.{field}"),
                to: format!("spec.template.spec.{field}"),
            });
        }
    }
    spec.insert("template".to_owned(), serde_json::json!({ "spec": template }));
    Ok(())
}

/// Replaces the name of a fabric's type by an object.
fn spell_out_fabrics(document: &mut Value, changes: &mut Vec<Change>) {
    let Some(pools) = document["spec"]["nodePools"].as_array_mut() else { return };
    for (position, pool) in pools.iter_mut().enumerate() {
        let Some(fabric) = pool.get_mut("fabric").filter(|fabric| fabric.is_string()) else { continue };
        let name = fabric.take();
        let path = format!("spec.nodePools[{position}].fabric");
        changes.push(Change::Rewritten {
            to: format!("{path}.type"),
            from: path,
            value: name.as_str().unwrap_or_default().to_owned(),
        });
        *fabric = serde_json::json!({ "type": name });
    }
}

/// Gives Google credentials their newer name.
fn rename_secrets(document: &mut Value, section: &str, changes: &mut Vec<Change>) {
    let Some(secrets) = document[section]["secrets"].as_array_mut() else { return };
    for (position, secret) in secrets.iter_mut().enumerate() {
        if secret["type"] == OLDER_GOOGLE_SECRET {
            secret["type"] = Value::from("GoogleApplicationCredentials");
            let path = format!("{section}.secrets[{position}].type");
            changes.push(Change::Rewritten {
                from: path.clone(),
                to: path,
                value: OLDER_GOOGLE_SECRET.to_owned(),
            });
        }
    }
}

/// The node pools of a document.
fn pools(document: &Value) -> impl Iterator<Item = &Value> {
    document["spec"]["nodePools"].as_array().into_iter().flatten()
}

/// Whether a list `secrets` has an entry with the older name of Google credentials.
fn has_older_secret(section: &Value) -> bool {
    let secrets = section["secrets"].as_array().into_iter().flatten();
    secrets.into_iter().any(|secret| secret["type"] == OLDER_GOOGLE_SECRET)
}
