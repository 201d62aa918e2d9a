//! Helpers of the tests: recorded inputs and documents of every kind.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A folder of recorded inputs beside the workspace; absent outside our own checkouts.
#[expect(clippy::print_stderr, reason = "a skipped test must not be silent")]
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    if !folder.exists() {
        eprintln!("SKIPPED: {} is absent", folder.display());
        return None;
    }
    Some(folder)
}

/// Every YAML document below a folder, with the file it is from.
pub(crate) fn documents(folder: &Path) -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            found.extend(documents(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            let parsed: Vec<Value> = serde_saphyr::from_multiple(&text).expect("valid YAML");
            found.extend(parsed.into_iter().map(|document| (path.clone(), document)));
        }
    }
    found
}

/// Reads one YAML document.
pub(crate) fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("valid YAML")
}

/// Decodes a document as its kind and writes it again; `None` for kinds that are not ours.
pub(crate) fn round_trip(document: &Value) -> Option<Result<Value, serde_json::Error>> {
    macro_rules! kinds {
        ($($kind:ident in $module:ident,)*) => {
            match document["kind"].as_str()? {
                $(stringify!($kind) => Some(
                    serde_json::from_value::<modelplane_api::$module::$kind>(document.clone())
                        .and_then(serde_json::to_value),
                ),)*
                _ => None,
            }
        };
    }
    modelplane_api::kind::of(document).ok()?;
    kinds! {
        InferenceClass in inference_class,
        InferenceCluster in inference_cluster,
        InferenceGateway in inference_gateway,
        ModelCache in model_cache,
        ModelDeployment in model_deployment,
        ModelReplica in model_replica,
        ModelService in model_service,
        ModelEndpoint in model_endpoint,
        ServingStack in serving_stack,
        GKECluster in gke_cluster,
        EKSCluster in eks_cluster,
        AKSCluster in aks_cluster,
        NebiusCluster in nebius_cluster,
        VultrCluster in vultr_cluster,
        DOKSCluster in doks_cluster,
        LLMInference in llm_inference,
    }
}
