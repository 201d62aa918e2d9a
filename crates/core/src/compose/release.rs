//! provider-helm `Release`: one Helm chart on the cluster of a provider config.

use std::borrow::Cow;

use serde::Serialize;

use super::object::{KubernetesObject, ProviderConfigRef, RELEASE_API_VERSION, Spec};
use crate::versions::Chart;

/// The spec of a provider-helm `Release`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseSpec<'a, V> {
    /// Which cluster.
    pub provider_config_ref: ProviderConfigRef<'a>,
    /// What the provider may do; empty means everything.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub management_policies: &'a [&'a str],
    /// The chart.
    pub for_provider: ReleaseParameters<'a, V>,
}

/// `spec.forProvider` of a `Release`.
#[derive(Debug, Clone, Serialize)]
pub struct ReleaseParameters<'a, V> {
    /// The chart.
    pub chart: ChartReference<'a>,
    /// Namespace it is installed into.
    pub namespace: Cow<'a, str>,
    /// Its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<V>,
}

/// A chart in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChartReference<'a> {
    /// Name of the chart.
    pub name: Cow<'a, str>,
    /// Repository.
    pub repository: Cow<'a, str>,
    /// Version.
    pub version: Cow<'a, str>,
}

impl<'a, V> KubernetesObject<'a, Spec<ReleaseSpec<'a, V>>> {
    /// A `Release` of `chart` in its usual namespace.
    pub fn release(
        provider_config_ref: ProviderConfigRef<'a>,
        chart: &Chart,
        version: impl Into<Cow<'a, str>>,
        values: Option<V>,
    ) -> Self {
        let reference = ChartReference {
            name: chart.name.into(),
            repository: chart.repository.into(),
            version: version.into(),
        };
        let for_provider = ReleaseParameters { chart: reference, namespace: chart.namespace.into(), values };
        let spec = ReleaseSpec { provider_config_ref, management_policies: &[], for_provider };
        Self::with_spec(RELEASE_API_VERSION, "Release", spec)
    }
}
