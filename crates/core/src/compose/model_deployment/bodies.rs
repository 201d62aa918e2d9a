//! The replicas and endpoints of a plan, as objects (spec scheduling §§6, 7).

use modelplane_api::common::ResourceRef;
use modelplane_api::kind::Object;
use modelplane_api::model_deployment::ModelDeployment;
use modelplane_api::model_endpoint::{ModelEndpoint, ModelEndpointSpec};
use modelplane_api::model_replica::ModelReplica;
use modelplane_api::names::{
    CLUSTER_LABEL, DEPLOYMENT_LABEL, REPLICA_INDEX_LABEL, label_value, replica_name, route_path,
};
use modelplane_api::template::{EnginePhase, MemberRole, Worker};
use serde::{Deserialize, Serialize};

use crate::compose::object::{KubernetesObject, Metadata};
use crate::contract::{Body, Observed};
use crate::document::Document;
use crate::schedule::{EnginePlacement, MemberPlacement, Placement};

/// Turns placements into objects.
pub(super) struct Composer<'c, 'a> {
    pub(super) name: &'c str,
    pub(super) namespace: &'c str,
    pub(super) deployment: &'c ModelDeployment,
    pub(super) templates: Templates<'a>,
}

/// The parts of a deployment that its replicas carry exactly as given.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Templates<'a> {
    #[serde(borrow)]
    serving: Option<Document<'a>>,
    #[serde(borrow, default)]
    engines: Vec<EngineTemplates<'a>>,
}

#[derive(Debug, Deserialize)]
struct EngineTemplates<'a> {
    #[serde(borrow, default)]
    members: Vec<MemberTemplate<'a>>,
}

#[derive(Debug, Deserialize)]
struct MemberTemplate<'a> {
    #[serde(borrow)]
    template: Option<Document<'a>>,
}

impl<'a> Templates<'a> {
    /// Reads them from either published shape of the API. The deployment has been decoded before, so what is
    /// looked for here has the right type.
    pub(super) fn of(observed: &Observed<'a>) -> Self {
        let document = observed.composite.document;
        let parent: &[&str] = match document.get(&["spec", "template"]) {
            Some(_) => &["spec", "template", "spec"],
            None => &["spec"],
        };
        document.decode_at(parent).ok().flatten().unwrap_or_default()
    }

    fn of_member(&self, engine: usize, member: usize) -> Option<Document<'a>> {
        self.engines.get(engine)?.members.get(member)?.template
    }
}

/// The spec of a ModelReplica, its templates unread.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReplicaSpec<'c, 'a> {
    cluster_name: &'c str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_cache_ref: Option<&'c ResourceRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    serving: Option<Document<'a>>,
    engines: Vec<Engine<'c, 'a>>,
}

#[derive(Debug, Serialize)]
struct Engine<'c, 'a> {
    name: &'c str,
    copies: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<EnginePhase>,
    members: Vec<Member<'c, 'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Member<'c, 'a> {
    role: MemberRole,
    node_pool_name: &'c str,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<&'c Worker>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    device_requests: Vec<DeviceRequest<'c>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<Document<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeviceRequest<'c> {
    name: &'c str,
    device_class_name: &'c str,
    count: i64,
    selectors: Vec<Selector<'c>>,
}

#[derive(Debug, Serialize)]
struct Selector<'c> {
    cel: &'c str,
}

impl<'a> Composer<'_, 'a> {
    /// The ModelReplica of a placement.
    pub(super) fn replica(&self, placement: &Placement<'_>) -> Body<'a> {
        let spec = ReplicaSpec {
            cluster_name: placement.cluster,
            model_cache_ref: self.deployment.spec.template.spec.model_cache_ref.as_ref(),
            serving: self.templates.serving,
            engines: placement.engines.iter().map(|engine| self.engine(engine)).collect(),
        };
        let info = ModelReplica::INFO;
        let object = KubernetesObject::with_spec(info.api_version(), info.kind, spec);
        Body::of(&object.with_metadata(self.metadata(placement)))
    }

    /// The ModelEndpoint of a placement on a cluster with a gateway.
    pub(super) fn endpoint(&self, placement: &Placement<'_>, gateway: &str) -> Body<'a> {
        let path = route_path(self.namespace, &self.object_name(placement));
        let url = format!("http://{gateway}{path}v1");
        let spec = ModelEndpointSpec { url, rewrite_path: Some(path), ..ModelEndpointSpec::default() };
        let info = ModelEndpoint::INFO;
        let object = KubernetesObject::with_spec(info.api_version(), info.kind, spec);
        Body::of(&object.with_metadata(self.metadata(placement)))
    }

    fn object_name(&self, placement: &Placement<'_>) -> String {
        replica_name(self.name, placement.cluster, placement.index)
    }

    /// Replica and endpoint of a placement have the same.
    fn metadata(&self, placement: &Placement<'_>) -> Metadata {
        let template = &self.deployment.spec.template;
        Metadata {
            name: Some(self.object_name(placement)),
            namespace: Some(self.namespace.to_owned()),
            labels: template.labels().cloned().unwrap_or_default(),
            ..Metadata::default()
        }
        .and_label(DEPLOYMENT_LABEL, label_value(self.name))
        .and_label(CLUSTER_LABEL, label_value(placement.cluster))
        .and_label(REPLICA_INDEX_LABEL, placement.index.to_string())
    }

    fn engine<'c>(&'c self, placement: &'c EnginePlacement<'_>) -> Engine<'c, 'a> {
        let engine = &self.deployment.spec.template.spec.engines[placement.position];
        let member = |(position, member)| self.member(placement.position, position, member);
        Engine {
            name: &engine.name,
            copies: engine.copies(),
            phase: engine.phase,
            members: placement.members.iter().enumerate().map(member).collect(),
        }
    }

    fn member<'c>(
        &'c self,
        engine: usize,
        position: usize,
        placement: &'c MemberPlacement<'_>,
    ) -> Member<'c, 'a> {
        let member = &self.deployment.spec.template.spec.engines[engine].members[position];
        let request = |claim: &'c crate::schedule::Claim<'_>| DeviceRequest {
            name: claim.request,
            device_class_name: claim.device_class,
            count: claim.count,
            selectors: claim.selectors.iter().map(|cel| Selector { cel }).collect(),
        };
        Member {
            role: placement.role,
            node_pool_name: placement.pool,
            worker: member.worker.as_ref(),
            device_requests: placement.claims.iter().map(request).collect(),
            template: self.templates.of_member(engine, position),
        }
    }
}
