//! Borrowed views of clusters and replicas: only the fields the scheduler reads, straight from the wire.
//!
//! A fleet's request holds tens of thousands of objects; everything not named here is skipped by its length
//! prefix. Each level that can be malformed by itself (a pool, a device, a replica's spec) is captured as
//! a [`Document`] and read separately, so that one bad field costs no more than its own level.

use std::collections::BTreeMap;
use std::fmt;

use modelplane_api::common::ClaimMode;
use modelplane_api::template::MemberRole;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

use crate::document::Document;

/// An `InferenceCluster`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Cluster<'a> {
    #[serde(borrow)]
    pub(crate) metadata: Option<Metadata<'a>>,
    #[serde(borrow)]
    pub(crate) spec: Option<ClusterSpec<'a>>,
    #[serde(borrow)]
    pub(crate) status: Option<ClusterStatus<'a>>,
}

/// The metadata of an object whose labels are read only now and then.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Metadata<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) labels: Option<Document<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ClusterSpec<'a> {
    #[serde(borrow)]
    pub(crate) taints: Option<Vec<Document<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterStatus<'a> {
    #[serde(borrow)]
    pub(crate) gateway: Option<Gateway<'a>>,
    pub(crate) conditions: Option<IsReady>,
    #[serde(borrow)]
    pub(crate) gpu_pools: Option<Vec<Document<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Gateway<'a> {
    #[serde(borrow)]
    pub(crate) address: Option<&'a str>,
}

/// Whether a list of conditions has `Ready` with status `True`.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct IsReady(pub(super) bool);

/// An entry of `status.gpuPools`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Pool<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<&'a str>,
    pub(crate) nodes: Option<i64>,
    #[serde(borrow)]
    pub(crate) devices: Option<Document<'a>>,
}

/// A device of a pool. Two descriptions that are equal as values are the same device to the scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Device<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) driver: Option<&'a str>,
    pub(crate) claim: Option<ClaimMode>,
    #[serde(borrow)]
    pub(crate) device_class_name: Option<&'a str>,
    pub(crate) count: Option<i64>,
    #[serde(borrow)]
    pub(crate) attributes: Option<BTreeMap<&'a str, Option<Attribute<'a>>>>,
    #[serde(borrow)]
    pub(crate) capacity: Option<BTreeMap<&'a str, Option<Capacity<'a>>>>,
}

/// A device attribute; one of the fields is set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub(crate) struct Attribute<'a> {
    pub(crate) int: Option<i64>,
    pub(crate) bool: Option<bool>,
    #[serde(borrow)]
    pub(crate) string: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) version: Option<&'a str>,
}

/// A device capacity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub(crate) struct Capacity<'a> {
    #[serde(borrow)]
    pub(crate) value: Option<&'a str>,
}

/// A `ModelReplica`, its spec unread.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Replica<'a> {
    #[serde(borrow)]
    pub(crate) metadata: Option<ReplicaMetadata<'a>>,
    #[serde(borrow)]
    pub(crate) spec: Option<Document<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ReplicaMetadata<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) namespace: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) labels: Option<ReplicaLabels<'a>>,
}

/// The labels the scheduler reads; see `modelplane_api::names`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ReplicaLabels<'a> {
    #[serde(borrow, rename = "modelplane.ai/deployment")]
    pub(crate) deployment: Option<&'a str>,
    #[serde(borrow, rename = "modelplane.ai/replica-index")]
    pub(crate) replica_index: Option<&'a str>,
}

/// The spec of a `ModelReplica`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaSpec<'a> {
    #[serde(borrow)]
    pub(crate) cluster_name: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) engines: Option<Vec<Engine<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Engine<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<&'a str>,
    pub(crate) copies: Option<i64>,
    #[serde(borrow)]
    pub(crate) members: Option<Vec<Member<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Member<'a> {
    pub(crate) role: Option<MemberRole>,
    #[serde(borrow)]
    pub(crate) node_pool_name: Option<&'a str>,
    pub(crate) worker: Option<Worker>,
    #[serde(default)]
    pub(crate) device_requests: HasItems,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Worker {
    pub(crate) nodes: Option<i64>,
}

/// Whether a list has any item; the items are not read.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct HasItems(pub(super) bool);

impl Engine<'_> {
    /// Copies as stamped, 1 unless given.
    fn copies(&self) -> i64 {
        self.copies.unwrap_or(1)
    }

    /// Nodes that each member with claims holds, by pool name (spec scheduling §5.3).
    pub(crate) fn charges(&self) -> impl Iterator<Item = (&str, i64)> {
        self.members.iter().flatten().filter(|member| member.device_requests.0).filter_map(|member| {
            let pods = match (member.role, &member.worker) {
                (Some(MemberRole::Worker), Some(worker)) => worker.nodes.unwrap_or(1),
                _ => 1,
            };
            Some((member.node_pool_name?, pods.saturating_mul(self.copies()).max(0)))
        })
    }
}

impl<'de> Deserialize<'de> for IsReady {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Condition<'a> {
            #[serde(borrow, rename = "type")]
            kind: Option<&'a str>,
            #[serde(borrow)]
            status: Option<&'a str>,
        }

        struct Conditions;
        impl<'de> Visitor<'de> for Conditions {
            type Value = IsReady;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of conditions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<IsReady, A::Error> {
                let mut ready = false;
                while let Some(condition) = items.next_element::<Condition<'de>>()? {
                    ready |= condition.kind == Some("Ready") && condition.status == Some("True");
                }
                Ok(IsReady(ready))
            }
        }
        deserializer.deserialize_seq(Conditions)
    }
}

impl<'de> Deserialize<'de> for HasItems {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items;
        impl<'de> Visitor<'de> for Items {
            type Value = HasItems;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_unit<E>(self) -> Result<HasItems, E> {
                Ok(HasItems(false))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<HasItems, A::Error> {
                Ok(HasItems(items.next_element::<IgnoredAny>()?.is_some()))
            }
        }
        deserializer.deserialize_any(Items)
    }
}
