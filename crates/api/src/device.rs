//! Devices of nodes, in the terms of Dynamic Resource Allocation: what an InferenceClass declares and a cluster
//! publishes. Reached through [`crate::common`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::rules;
use crate::wire;

/// How a device of a node is given to the engines that ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum ClaimMode {
    /// Claimed on the cluster through Dynamic Resource Allocation. Needs `deviceClassName`.
    #[default]
    #[serde(rename = "DRA")]
    Dra,
    /// Considered when placing a replica, never claimed: for hardware without a DRA driver.
    Synthetic,
}

/// One kind of device on a node, in the terms of a Dynamic Resource Allocation ResourceSlice.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::DEVICE))]
pub struct Device {
    /// Name of this kind of device, unique within the list.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Driver that publishes the device, e.g. `gpu.nvidia.com`. It is also the domain under which selectors
    /// find the attributes and capacities below.
    #[schemars(length(min = 1, max = 253))]
    pub driver: String,
    /// How the device is given to an engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "DRA"))]
    pub claim: Option<ClaimMode>,
    /// DeviceClass that engines claim the device through. Required when `claim` is `DRA`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub device_class_name: Option<String>,
    /// How many of the device one node has.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64), extend("default" = 1))]
    pub count: Option<i64>,
    /// What is known about the device, by name without domain, e.g. `architecture: {string: Hopper}`.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub attributes: BTreeMap<String, DeviceAttribute>,
    /// How much the device has of something, by name without domain, e.g. `memory: {value: 141Gi}`.
    #[serde(default, deserialize_with = "wire::nullable", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub capacity: BTreeMap<String, DeviceCapacity>,
}

impl Device {
    /// How the device is claimed, `DRA` unless given.
    pub fn claim(&self) -> ClaimMode {
        self.claim.unwrap_or_default()
    }
}

/// The value of a device attribute: exactly one of the fields is set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::DEVICE_ATTRIBUTE))]
pub struct DeviceAttribute {
    /// A text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub string: Option<String>,
    /// A semantic version, e.g. `12.8.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub version: Option<String>,
    /// A truth value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bool: Option<bool>,
    /// A 64-bit integer.
    #[serde(default, deserialize_with = "wire::opt_int", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-keep-format" = "int64"))]
    pub int: Option<i64>,
}

/// An amount of something a device has.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct DeviceCapacity {
    /// The amount as a Kubernetes quantity, e.g. `141Gi`.
    #[schemars(length(min = 1, max = 32))]
    pub value: String,
}
