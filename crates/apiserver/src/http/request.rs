//! What a request asks for: the path and method read as Kubernetes' request attributes.

use http::Method;

use super::query::{Query, decode};

/// A request for an API resource, or for anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Path {
    /// `/api/v1/…` or `/apis/<group>/<version>/…` with a resource.
    Resource(ResourcePath),
    /// Discovery, health, OpenAPI and the rest.
    Other(String),
}

/// The parts of a resource path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    /// Empty for the legacy group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    /// The plural.
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The deprecated `/watch/` prefix was used.
    pub(crate) watch: bool,
}

/// What a request does, in RBAC's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// The verb as RBAC rules and metrics spell it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }

    /// The verb of a method on a resource path; `None` for methods the API does not use.
    pub(crate) fn of(method: &Method, path: &ResourcePath, query: &Query) -> Option<Verb> {
        let named = path.name.is_some();
        Some(match *method {
            Method::GET | Method::HEAD if path.watch || (!named && query.flag("watch")) => Verb::Watch,
            Method::GET | Method::HEAD if named && path.subresource.is_none() && query.flag("watch") => {
                Verb::Watch
            }
            Method::GET | Method::HEAD if named => Verb::Get,
            Method::GET | Method::HEAD => Verb::List,
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE if named => Verb::Delete,
            Method::DELETE => Verb::DeleteCollection,
            _ => return None,
        })
    }
}

/// Subresources of a namespace itself; any other third segment is a resource inside it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

impl Path {
    /// Reads a URI path.
    pub(crate) fn parse(path: &str) -> Path {
        let mut segments = path.split('/').filter(|segment| !segment.is_empty()).map(|s| decode(s, false));
        let other = || Path::Other(path.trim_end_matches('/').to_owned());
        let (group, version) = match segments.next().as_deref() {
            Some("api") => (Some(String::new()), segments.next()),
            Some("apis") => (segments.next(), segments.next()),
            _ => return other(),
        };
        let (Some(group), Some(version)) = (group, version) else { return other() };
        let mut rest: Vec<String> = segments.collect();
        let watch = rest.first().is_some_and(|first| first == "watch") && rest.len() > 1;
        if watch {
            rest.remove(0);
        }
        let mut found = ResourcePath { group, version, watch, ..ResourcePath::default() };
        let in_namespace = rest.len() >= 3
            && rest[0] == "namespaces"
            && !(found.group.is_empty()
                && NAMESPACE_SUBRESOURCES.contains(&rest[2].as_str())
                && rest.len() == 3);
        let mut rest = rest.into_iter();
        if in_namespace {
            rest.next();
            found.namespace = rest.next();
        }
        let Some(resource) = rest.next() else { return other() };
        found.resource = resource;
        found.name = rest.next();
        found.subresource = rest.next();
        if rest.next().is_some() {
            return other();
        }
        Path::Resource(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> ResourcePath {
        match Path::parse(path) {
            Path::Resource(found) => found,
            Path::Other(other) => panic!("{other} is no resource"),
        }
    }

    #[test]
    fn resource_paths_are_split_into_attributes() {
        let cases = [
            ("/api/v1/namespaces", ("", "v1", None, "namespaces", None, None)),
            ("/api/v1/namespaces/a", ("", "v1", None, "namespaces", Some("a"), None)),
            ("/api/v1/namespaces/a/finalize", ("", "v1", None, "namespaces", Some("a"), Some("finalize"))),
            ("/api/v1/namespaces/a/pods", ("", "v1", Some("a"), "pods", None, None)),
            ("/api/v1/namespaces/a/pods/b/status", ("", "v1", Some("a"), "pods", Some("b"), Some("status"))),
            ("/apis/g.io/v2/things/x%2Dy", ("g.io", "v2", None, "things", Some("x-y"), None)),
            ("/apis/g.io/v2/namespaces/n/status", ("g.io", "v2", Some("n"), "status", None, None)),
        ];
        for (path, (group, version, namespace, plural, name, subresource)) in cases {
            let found = resource(path);
            assert_eq!((found.group.as_str(), found.version.as_str()), (group, version), "{path}");
            assert_eq!(found.namespace.as_deref(), namespace, "{path}");
            assert_eq!((found.resource.as_str(), found.name.as_deref()), (plural, name), "{path}");
            assert_eq!(found.subresource.as_deref(), subresource, "{path}");
        }
        for path in ["/", "/api", "/api/v1", "/apis/g.io", "/apis/g.io/v1", "/healthz", "/api/v1/a/b/c/d/e/f"]
        {
            assert!(matches!(Path::parse(path), Path::Other(_)), "{path}");
        }
    }
}
