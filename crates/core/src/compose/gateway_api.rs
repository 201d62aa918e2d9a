//! The parts of Gateway API's `HTTPRoute` that compositions write.
//!
//! Only what is set is written: an empty list is absent, since server-side apply would own it otherwise.

use serde::Serialize;

/// `apiVersion` of an HTTPRoute.
pub const GATEWAY_API_VERSION: &str = "gateway.networking.k8s.io/v1";

/// The spec of an HTTPRoute with one rule.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRouteSpec<'a> {
    /// The gateway the route attaches to.
    pub parent_refs: [ParentReference<'a>; 1],
    /// The rule.
    pub rules: [HttpRouteRule<'a>; 1],
}

/// A gateway in another namespace.
#[derive(Debug, Clone, Serialize)]
pub struct ParentReference<'a> {
    /// Name of the Gateway.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
}

/// What happens to the requests below one path.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRouteRule<'a> {
    /// The requests meant.
    pub matches: [HttpRouteMatch<'a>; 1],
    /// Time limits; absent means the gateway's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<HttpRouteTimeouts<'a>>,
    /// Changes to every request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<HttpRouteFilter<'a>>,
    /// Where the requests go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backend_refs: Vec<HttpBackendRef<'a>>,
}

/// A path prefix.
#[derive(Debug, Clone, Serialize)]
pub struct HttpRouteMatch<'a> {
    path: PathMatch<'a>,
}

#[derive(Debug, Clone, Serialize)]
struct PathMatch<'a> {
    r#type: &'static str,
    value: &'a str,
}

/// Time limits of a rule.
#[derive(Debug, Clone, Serialize)]
pub struct HttpRouteTimeouts<'a> {
    /// Longest time from request to the end of the answer; `0s` is no limit.
    pub request: &'a str,
}

/// Replaces the matched path prefix.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRouteFilter<'a> {
    r#type: &'static str,
    url_rewrite: UrlRewrite<'a>,
}

#[derive(Debug, Clone, Serialize)]
struct UrlRewrite<'a> {
    path: PathRewrite<'a>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct PathRewrite<'a> {
    r#type: &'static str,
    replace_prefix_match: &'a str,
}

/// A place requests go to, by default a Service.
#[derive(Debug, Clone, Default, Serialize)]
pub struct HttpBackendRef<'a> {
    /// API group, absent for core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<&'a str>,
    /// Kind, absent for Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'a str>,
    /// Name.
    pub name: &'a str,
    /// Port, absent where the kind has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Share of the requests; absent means 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Changes to the requests that go here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<HttpRouteFilter<'a>>,
}

impl<'a> HttpRouteMatch<'a> {
    /// All requests at or below `prefix`.
    pub fn path_prefix(prefix: &'a str) -> Self {
        Self { path: PathMatch { r#type: "PathPrefix", value: prefix } }
    }
}

impl<'a> HttpRouteFilter<'a> {
    /// Puts `replacement` in place of the matched prefix.
    pub fn replace_prefix(replacement: &'a str) -> Self {
        let path = PathRewrite { r#type: "ReplacePrefixMatch", replace_prefix_match: replacement };
        Self { r#type: "URLRewrite", url_rewrite: UrlRewrite { path } }
    }
}
