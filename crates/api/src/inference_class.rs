//! `InferenceClass`: what one node of a pool has, and optionally how to provision such a node.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::{Condition, Device};
use crate::kind::kind;
use crate::schema::{bare_conditions, rules};
use crate::wire;

kind! {
    /// Describes the hardware of one kind of node and, optionally, how to provision it.
    InferenceClass { spec: InferenceClassSpec, status: InferenceClassStatus } = INFERENCE_CLASS
}

/// The devices of a node and the recipe to provision one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct InferenceClassSpec {
    /// What this class is for, in free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Recipe for provisioning a pool of such nodes. Without it the class describes pools that exist already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<Provisioning>,
    /// The devices of one node, one entry for each kind of device.
    #[serde(deserialize_with = "wire::nullable")]
    #[schemars(length(min = 1, max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub devices: Vec<Device>,
}

/// What is reported about a class.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct InferenceClassStatus {
    /// Conditions of the class.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = bare_conditions)]
    pub conditions: Vec<Condition>,
}

/// How to provision a pool of such nodes. The block named by `provider` is required; others are ignored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::PROVISIONING))]
pub struct Provisioning {
    /// The cloud the recipe is for.
    pub provider: Provider,
    /// Recipe for Google Kubernetes Engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gke: Option<GkeProvisioning>,
    /// Recipe for Amazon Elastic Kubernetes Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eks: Option<EksProvisioning>,
    /// Recipe for Azure Kubernetes Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aks: Option<AksProvisioning>,
    /// Recipe for Nebius Managed Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nebius: Option<NebiusProvisioning>,
    /// Recipe for Vultr Kubernetes Engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vultr: Option<VultrProvisioning>,
    /// Recipe for DigitalOcean Kubernetes. Not in the API as published upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doks: Option<DoksProvisioning>,
}

/// A cloud that Modelplane can provision clusters on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum Provider {
    /// Google Kubernetes Engine.
    #[default]
    #[serde(rename = "GKE")]
    Gke,
    /// Amazon Elastic Kubernetes Service.
    #[serde(rename = "EKS")]
    Eks,
    /// Azure Kubernetes Service.
    #[serde(rename = "AKS")]
    Aks,
    /// Nebius Managed Kubernetes.
    Nebius,
    /// Vultr Kubernetes Engine.
    Vultr,
    /// DigitalOcean Kubernetes.
    #[serde(rename = "DOKS")]
    Doks,
}

/// The accelerators of a node, in the cloud's terms.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Accelerator {
    /// The cloud's name of the accelerator, e.g. `nvidia-h100-80gb`; nodes are labelled with it.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 63))]
    pub type_: String,
    /// How many accelerators one node has. On GKE they are attached to the machine; elsewhere the machine
    /// type settles the number.
    #[serde(deserialize_with = "wire::int")]
    #[schemars(range(min = 1, max = 16))]
    pub count: i64,
}

/// A node on Google Kubernetes Engine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GkeProvisioning {
    /// Compute Engine machine type, e.g. `a3-highgpu-8g`.
    #[schemars(length(min = 1))]
    pub machine_type: String,
    /// Size of the boot disk in GB.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10), extend("default" = 100))]
    pub disk_size_gb: Option<i64>,
    /// Accelerators of the node.
    pub accelerator: Accelerator,
}

/// A node on Amazon Elastic Kubernetes Service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EksProvisioning {
    /// EC2 instance type, e.g. `p5.48xlarge`.
    #[schemars(length(min = 1))]
    pub instance_type: String,
    /// Size of the root volume in GB.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10), extend("default" = 100))]
    pub disk_size_gb: Option<i64>,
    /// Accelerators of the node.
    pub accelerator: Accelerator,
}

/// A node on Azure Kubernetes Service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AksProvisioning {
    /// Virtual machine size, e.g. `Standard_ND96isr_H100_v5`.
    #[schemars(length(min = 1))]
    pub vm_size: String,
    /// Size of the operating system disk in GB.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10), extend("default" = 100))]
    pub disk_size_gb: Option<i64>,
    /// Accelerators of the node.
    pub accelerator: Accelerator,
}

/// A node on Nebius Managed Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NebiusProvisioning {
    /// Nebius platform, e.g. `gpu-h100-sxm`.
    #[schemars(length(min = 1, max = 63))]
    pub platform: String,
    /// Nebius resource preset of the platform, e.g. `8gpu-128vcpu-1600gb`.
    #[schemars(length(min = 1, max = 63))]
    pub preset: String,
    /// Nebius preset of accelerator drivers installed on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), extend("default" = "cuda13.0"))]
    pub drivers_preset: Option<String>,
    /// Size of the boot disk in GB.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10), extend("default" = 100))]
    pub disk_size_gb: Option<i64>,
    /// Accelerators of the node.
    pub accelerator: Accelerator,
}

/// A node on Vultr Kubernetes Engine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct VultrProvisioning {
    /// Vultr plan, e.g. `vcg-l40s-16c-180g-48vram`.
    #[schemars(length(min = 1, max = 63))]
    pub plan: String,
    /// Accelerators of the node.
    pub accelerator: Accelerator,
}

/// A node on DigitalOcean Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct DoksProvisioning {
    /// Slug of the Droplet size, e.g. `gpu-h100x8-640gb`; it settles CPU, memory, disk and accelerators.
    #[schemars(length(min = 1, max = 63))]
    pub size: String,
    /// Accelerators of the node.
    pub accelerator: Accelerator,
}
