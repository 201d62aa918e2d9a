//! Crossplane `Usage` and `ClusterUsage`: one object may not be deleted while another still uses it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::object::{KubernetesObject, Spec, USAGE_API_VERSION};

/// The spec of a `Usage` or `ClusterUsage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageSpec<'a> {
    /// The protected object.
    pub of: UsedBy<'a>,
    /// The object that uses it; absent protects it for the reason given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<UsedBy<'a>>,
    /// Why it is protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// Whether a refused deletion is tried again once the usage is gone.
    pub replay_deletion: bool,
}

/// One side of a usage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsedBy<'a> {
    /// `group/version`, or `v1`.
    pub api_version: Cow<'a, str>,
    /// Kind.
    pub kind: Cow<'a, str>,
    /// Which object of that kind.
    #[serde(flatten)]
    pub which: Which<'a>,
}

/// How a usage finds an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Which<'a> {
    /// By name.
    ResourceRef {
        /// Name.
        name: Cow<'a, str>,
    },
    /// By labels, among the objects of one composite.
    #[serde(rename_all = "camelCase")]
    ResourceSelector {
        /// Whether the object must have the same controller as the usage; always true.
        match_controller_ref: bool,
        /// Labels the object must have.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        match_labels: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    },
}

/// A `Usage` or `ClusterUsage` object.
pub type UsageObject<'a> = KubernetesObject<'a, Spec<UsageSpec<'a>>>;

impl<'a> UsedBy<'a> {
    /// The object of that name.
    pub fn named(
        api_version: impl Into<Cow<'a, str>>,
        kind: impl Into<Cow<'a, str>>,
        name: impl Into<Cow<'a, str>>,
    ) -> Self {
        let which = Which::ResourceRef { name: name.into() };
        Self { api_version: api_version.into(), kind: kind.into(), which }
    }

    /// The object of that kind which the same composite controls.
    pub fn sibling(api_version: impl Into<Cow<'a, str>>, kind: impl Into<Cow<'a, str>>) -> Self {
        let which = Which::ResourceSelector { match_controller_ref: true, match_labels: BTreeMap::new() };
        Self { api_version: api_version.into(), kind: kind.into(), which }
    }

    /// The same with a label the object must have; makes no difference to an object found by name.
    #[must_use]
    pub fn labelled(mut self, key: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) -> Self {
        if let Which::ResourceSelector { match_labels, .. } = &mut self.which {
            match_labels.insert(key.into(), value.into());
        }
        self
    }
}

/// A `Usage` that keeps `of` until `by` is gone.
pub fn usage<'a>(of: UsedBy<'a>, by: UsedBy<'a>) -> UsageObject<'a> {
    let spec = UsageSpec { of, by: Some(by), reason: None, replay_deletion: true };
    KubernetesObject::with_spec(USAGE_API_VERSION, "Usage", spec)
}

/// A `ClusterUsage` that keeps a cluster-scoped object as long as the usage itself exists.
pub fn cluster_usage<'a>(of: UsedBy<'a>, reason: impl Into<Cow<'a, str>>) -> UsageObject<'a> {
    let spec = UsageSpec { of, by: None, reason: Some(reason.into()), replay_deletion: true };
    KubernetesObject::with_spec(USAGE_API_VERSION, "ClusterUsage", spec)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::Body;

    #[test]
    fn usages_say_only_what_is_set() {
        let object = usage(
            UsedBy::named("helm.m.crossplane.io/v1beta1", "ProviderConfig", "pc"),
            UsedBy::sibling("helm.m.crossplane.io/v1beta1", "Release").labelled("a", "b"),
        );
        let expected = json!({
            "apiVersion": "protection.crossplane.io/v1beta1",
            "kind": "Usage",
            "spec": {
                "of": {
                    "apiVersion": "helm.m.crossplane.io/v1beta1",
                    "kind": "ProviderConfig",
                    "resourceRef": {"name": "pc"},
                },
                "by": {
                    "apiVersion": "helm.m.crossplane.io/v1beta1",
                    "kind": "Release",
                    "resourceSelector": {"matchControllerRef": true, "matchLabels": {"a": "b"}},
                },
                "replayDeletion": true,
            },
        });
        assert_eq!(Body::of(&object).document().to_json().expect("an object"), expected);
    }
}
