//! Weights of a service.

use std::collections::BTreeMap;

use modelplane_api::kind::Object as _;
use modelplane_api::model_endpoint::ModelEndpoint;
use modelplane_api::model_service::ModelService;
use modelplane_api::names::DEPLOYMENT_LABEL;
use serde_json::{Value, json};

use super::view::{remove, serves};
use crate::environment::{Environment, TEAM};
use crate::failure::{Outcome, not_yet, until};
use crate::kube_api::{Target, conditions, is_true, label, list, text};
use crate::resources::{HTTP_ROUTE, Resource};

const MODEL_SERVICE: Resource = Resource::of(ModelService::INFO);
const MODEL_ENDPOINT: Resource = Resource::of(ModelEndpoint::INFO);

/// 95 to 5, then 50 to 50: each version gets its share, however many endpoints it has.
pub(super) async fn weights(environment: &mut Environment) -> Outcome {
    environment.apply("canary.yaml").await?;
    serves(environment, "stable", 2).await?;
    serves(environment, "canary", 1).await?;
    shares_are(environment, 95, 5).await?;
    let entry =
        |deployment: &str| json!({"weight": 50, "selector": {"matchLabels": {DEPLOYMENT_LABEL: deployment}}});
    let even = json!({"spec": {"endpoints": [entry("stable"), entry("canary")]}});
    environment.control().merge(Target::new(MODEL_SERVICE, TEAM, "chat"), "", &even).await?;
    shares_are(environment, 50, 50).await?;
    environment.control().delete(Target::new(MODEL_SERVICE, TEAM, "chat")).await?;
    remove(environment, "canary").await?;
    remove(environment, "stable").await
}

async fn shares_are(environment: &Environment, stable: u64, canary: u64) -> Outcome {
    let kube = environment.control();
    until(&format!("the route's weights are {stable} to {canary}"), async || {
        let service = kube.get(MODEL_SERVICE, TEAM, "chat").await.map_err(not_yet)?;
        let endpoints = kube.list(MODEL_ENDPOINT, TEAM, "").await.map_err(not_yet)?;
        let routes = kube.list(HTTP_ROUTE, TEAM, "").await.map_err(not_yet)?;
        let [route] = routes.as_slice() else {
            return Err(format!("{} routes; service: {}", routes.len(), conditions(&service)));
        };
        let shares = shares(route, &endpoints);
        let share = |name: &str| shares.get(name).copied().unwrap_or_default();
        let (found_stable, found_canary) = (share("stable"), share("canary"));
        let right =
            found_stable * canary == found_canary * stable && found_stable > 0 && is_true(&service, "Ready");
        if right { Ok(()) } else { Err(format!("{shares:?}; service: {}", conditions(&service))) }
    })
    .await
}

/// Sums of weights by deployment.
fn shares(route: &Value, endpoints: &[Value]) -> BTreeMap<String, u64> {
    let mut shares = BTreeMap::new();
    for backend in list(route, "/spec/rules/0/backendRefs") {
        let service = text(backend, "/name");
        let endpoint = endpoints.iter().find(|e| text(e, "/status/routing/backendName") == service);
        let deployment = endpoint.map_or("?", |endpoint| label(endpoint, DEPLOYMENT_LABEL));
        *shares.entry(deployment.to_owned()).or_default() += backend["weight"].as_u64().unwrap_or_default();
    }
    shares
}
