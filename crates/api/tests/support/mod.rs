//! Helpers of the tests: recorded inputs and documents of every kind.
#![allow(dead_code, reason = "each test binary uses some of the helpers")]

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A folder of recorded inputs beside the workspace; absent outside our own checkouts.
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
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            found.extend(documents(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let parsed: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            found.extend(parsed.into_iter().map(|document| (path.clone(), document)));
        }
    }
    found
}

/// Reads one YAML document.
pub(crate) fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
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
