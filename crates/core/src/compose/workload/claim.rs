//! The devices a member's pods claim: one ResourceClaimTemplate per member (spec replica §5).
//!
//! Devices are requested through Dynamic Resource Allocation only, never as extended resources.

use k8s_openapi::api::resource::v1::{
    CELDeviceSelector, DeviceClaim, DeviceRequest, DeviceSelector, ExactDeviceRequest, ResourceClaimSpec,
    ResourceClaimTemplate, ResourceClaimTemplateSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use modelplane_api::model_replica::{self as api, Engine, Member};
use modelplane_api::names;

use super::ReplicaContext;

/// The template of a member's claims; `None` if it claims nothing.
pub fn build(replica: &ReplicaContext, engine: &Engine, member: &Member) -> Option<ResourceClaimTemplate> {
    if member.device_requests.is_empty() {
        return None;
    }
    let requests = member.device_requests.iter().map(request).collect();
    let devices = DeviceClaim { requests: Some(requests), ..DeviceClaim::default() };
    Some(ResourceClaimTemplate {
        metadata: ObjectMeta {
            name: Some(names::claim_template_name(&replica.name, &engine.name, member.role())),
            namespace: Some(names::WORKLOAD_NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        spec: ResourceClaimTemplateSpec {
            metadata: None,
            spec: ResourceClaimSpec { devices: Some(devices) },
        },
    })
}

fn request(request: &api::DeviceRequest) -> DeviceRequest {
    let selectors: Vec<DeviceSelector> = request
        .expressions()
        .map(|expression| DeviceSelector {
            cel: Some(CELDeviceSelector { expression: expression.to_owned() }),
        })
        .collect();
    DeviceRequest {
        name: request.name.clone(),
        exactly: Some(ExactDeviceRequest {
            device_class_name: request.device_class_name.clone(),
            count: Some(request.count()),
            selectors: (!selectors.is_empty()).then_some(selectors),
            ..ExactDeviceRequest::default()
        }),
        first_available: None,
    }
}
