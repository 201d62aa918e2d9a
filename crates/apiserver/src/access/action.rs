//! What a request wants to do, in the words of role-based access control.

/// A request as rules are matched against it; absent parts are empty. Without a resource it is about `path`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Action<'a> {
    /// A verb of the API, or the HTTP method in lower case for a path.
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) path: &'a str,
}

impl<'a> Action<'a> {
    /// Whether this is about objects rather than a path.
    pub(crate) fn is_about_objects(&self) -> bool {
        !self.resource.is_empty()
    }

    /// The namespace whose bindings count; a namespace counts as being within itself, but not a list of it.
    pub(crate) fn place(&self) -> &'a str {
        let collection = matches!(self.verb, "list" | "watch" | "deletecollection");
        let is_namespace = !collection && self.group.is_empty() && self.resource == "namespaces";
        if self.namespace.is_empty() && is_namespace { self.name } else { self.namespace }
    }

    /// Why it is forbidden, as Kubernetes words it.
    pub(crate) fn denial(&self, user: &str) -> String {
        let Action { verb, group, resource, subresource, path, .. } = self;
        if !self.is_about_objects() {
            return format!("User {user:?} cannot {verb} path {path:?}");
        }
        let slash = if subresource.is_empty() { "" } else { "/" };
        let place = match self.place() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!(
            "User {user:?} cannot {verb} resource \"{resource}{slash}{subresource}\" in API group {group:?} {place}"
        )
    }
}
