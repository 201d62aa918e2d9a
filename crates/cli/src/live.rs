//! Reaching a running control plane: the kubeconfig to use and a client made of it.

mod fleet;

use std::path::{Path, PathBuf};

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use modelplane_engine::client::{ApiClient, ClientError, Propagation, Target, Write};
use serde_json::Value;

use crate::outcome::CommandError;

/// Field manager of what commands write.
const MANAGER: &str = "modelplane-cli";

/// Which control plane.
#[derive(Debug, Clone, Args)]
pub(crate) struct LiveArguments {
    /// Kubeconfig of the control plane [default: $KUBECONFIG, ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context within the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A running control plane.
pub(crate) struct Live {
    api: ApiClient,
}

impl LiveArguments {
    /// The control plane of that kubeconfig.
    pub(crate) fn of_kubeconfig(path: &Path) -> Self {
        Self { kubeconfig: Some(path.to_owned()), context: None }
    }

    /// Connects; nothing is asked yet.
    pub(crate) async fn connect(&self) -> Result<Live, CommandError> {
        let client = self.client().await?;
        Ok(Live { api: ApiClient::new(client) })
    }

    /// A client of the control plane; in a pod without a kubeconfig, by the pod's service account.
    pub(crate) async fn client_or_in_cluster(&self) -> Result<kube::Client, CommandError> {
        if self.kubeconfig.is_none()
            && self.context.is_none()
            && std::env::var_os("KUBECONFIG").is_none()
            && let Ok(config) = kube::Config::incluster()
        {
            return kube::Client::try_from(config).map_err(crate::outcome::with_causes);
        }
        self.client().await
    }

    /// A client of the control plane.
    async fn client(&self) -> Result<kube::Client, CommandError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let unusable = |error: &dyn std::fmt::Display| {
            CommandError::new(format!("the kubeconfig cannot be used: {error}"))
                .with_hint("give --kubeconfig, or set KUBECONFIG to the file `modelplane up` printed")
        };
        let config = match &self.kubeconfig {
            Some(path) => {
                let kubeconfig = Kubeconfig::read_from(path).map_err(|error| unusable(&error))?;
                kube::Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .map_err(|error| unusable(&error))?
            }
            None => kube::Config::from_kubeconfig(&options).await.map_err(|error| unusable(&error))?,
        };
        kube::Client::try_from(config).map_err(|error| unusable(&error))
    }
}

impl Live {
    /// An object, if it is there.
    pub(crate) async fn get(
        &self,
        kind: (&str, &str),
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, CommandError> {
        let resource = self.api.resource(kind.0, kind.1).await.map_err(explain)?;
        self.api.get(&resource, namespace, name).await.map_err(explain)
    }

    /// All objects of a kind.
    pub(crate) async fn list(&self, kind: (&str, &str)) -> Result<Vec<Value>, CommandError> {
        let resource = self.api.resource(kind.0, kind.1).await.map_err(explain)?;
        self.pages(&resource, None).await.map_err(explain)
    }

    /// Applies an object, taking over what others own of it.
    pub(crate) async fn apply(&self, object: &Value) -> Result<(), CommandError> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let resource = self.api.resource(text("/apiVersion"), text("/kind")).await.map_err(explain)?;
        let target = Target::named(text("/metadata/namespace"), text("/metadata/name"));
        self.api.write(&resource, &target, Write::Apply(MANAGER), object).await.map(drop).map_err(explain)
    }

    /// Merges into an object without a namespace.
    pub(crate) async fn merge(
        &self,
        kind: (&str, &str),
        name: &str,
        patch: &Value,
    ) -> Result<(), CommandError> {
        let resource = self.api.resource(kind.0, kind.1).await.map_err(explain)?;
        let target = Target::named("", name);
        self.api.write(&resource, &target, Write::Merge, patch).await.map(drop).map_err(explain)
    }

    /// Deletes an object without a namespace; one that is gone is fine.
    pub(crate) async fn delete(&self, kind: (&str, &str), name: &str) -> Result<(), CommandError> {
        let resource = self.api.resource(kind.0, kind.1).await.map_err(explain)?;
        let target = Target::named("", name);
        self.api.delete(&resource, &target, None, Propagation::Background).await.map_err(explain)
    }
}

fn explain(error: ClientError) -> CommandError {
    let unserved = error.is_not_served();
    let error = crate::outcome::with_causes(error);
    if unserved { error.with_hint("is this the kubeconfig of a Modelplane control plane?") } else { error }
}
