//! Typed decoding of the two published shapes of the API (v0.3 and v0.1), for the types that differ.
//!
//! A composition decodes straight from the wire, so the older shape cannot be rewritten beforehand; each type
//! here accepts both and yields the newer one. [`crate::normalize`] does the same to untyped documents. Where
//! a document mixes the shapes, which the API's rules reject, the newer fields win.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, Error, MapAccess, Visitor};

use crate::common::{InfinibandFabric, LabelSelector, ResourceRef};
use crate::inference_cluster::{Fabric, FabricType};
use crate::model_deployment::{Engine, ModelDeploymentSpec, ReplicaTemplate, ReplicaTemplateSpec};
use crate::template::Serving;
use crate::wire;

/// A ModelDeployment's spec in either shape: with a template, or with the template's fields inline.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeploymentSpec {
    #[serde(deserialize_with = "wire::int")]
    replicas: i64,
    template: Option<ReplicaTemplate>,
    engines: Option<Vec<Engine>>,
    serving: Option<Serving>,
    cluster_selector: Option<LabelSelector>,
    model_cache_ref: Option<ResourceRef>,
}

impl DeploymentSpec {
    /// The spec in the newer shape.
    pub(crate) fn into_spec<E: Error>(self) -> Result<ModelDeploymentSpec, E> {
        let template = match (self.template, self.engines) {
            (Some(template), _) => template,
            (None, Some(engines)) => ReplicaTemplate {
                metadata: None,
                spec: ReplicaTemplateSpec {
                    engines,
                    serving: self.serving,
                    cluster_selector: self.cluster_selector,
                    model_cache_ref: self.model_cache_ref,
                    tolerations: Vec::new(),
                },
            },
            (None, None) => return Err(E::missing_field("template")),
        };
        Ok(ModelDeploymentSpec { replicas: self.replicas, template })
    }
}

/// Reads a fabric given as an object or as the name of its type.
pub(crate) struct FabricVisitor;

/// A fabric in the newer shape.
#[derive(serde::Deserialize)]
struct FabricObject {
    #[serde(rename = "type")]
    type_: Option<FabricType>,
    infiniband: Option<InfinibandFabric>,
}

impl<'de> Visitor<'de> for FabricVisitor {
    type Value = Fabric;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a fabric: an object with `type`, or the name of the type")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Fabric, E> {
        let type_ = FabricType::deserialize(StrDeserializer::<E>::new(value))?;
        Ok(Fabric { type_: Some(type_), infiniband: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Fabric, A::Error> {
        let object = FabricObject::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Fabric { type_: object.type_, infiniband: object.infiniband })
    }
}
