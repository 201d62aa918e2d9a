//! The StorageClass that a cloud's composition installs inside the cluster it provisions.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::compose::object::Metadata;

/// A StorageClass with read-write-many volumes, on which model weights are staged.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageClass<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    /// CSI driver.
    pub provisioner: &'static str,
    /// Parameters of the driver.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<&'static str, &'a str>,
    /// Mount options, in order.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub mount_options: &'static [&'static str],
    /// What becomes of a volume nobody claims any more; absent means the API's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<&'static str>,
    /// When a volume is bound.
    pub volume_binding_mode: &'static str,
    /// Whether volumes may grow; absent means they may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_volume_expansion: Option<bool>,
}

impl<'a> StorageClass<'a> {
    /// A class whose volumes are bound at once and have the driver's defaults.
    pub fn new(name: &str, provisioner: &'static str) -> Self {
        Self {
            api_version: "storage.k8s.io/v1",
            kind: "StorageClass",
            metadata: Metadata::named(name),
            provisioner,
            parameters: BTreeMap::new(),
            mount_options: &[],
            reclaim_policy: None,
            volume_binding_mode: "Immediate",
            allow_volume_expansion: None,
        }
    }

    /// The same with parameters of the driver.
    #[must_use]
    pub fn with_parameters(mut self, parameters: impl IntoIterator<Item = (&'static str, &'a str)>) -> Self {
        self.parameters.extend(parameters);
        self
    }
}
