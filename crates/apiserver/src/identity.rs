//! Who makes a request.

/// An authenticated user and the groups they are in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The user's name.
    pub user: String,
    /// The groups, as RBAC subjects name them.
    pub groups: Vec<String>,
}

impl Identity {
    /// A user in groups.
    pub fn new<G: Into<String>>(user: impl Into<String>, groups: impl IntoIterator<Item = G>) -> Identity {
        Identity { user: user.into(), groups: groups.into_iter().map(Into::into).collect() }
    }

    /// A user who may do everything (`system:masters`).
    pub fn admin() -> Identity {
        Identity::new("kubernetes-admin", ["system:masters", "system:authenticated"])
    }

    /// A user who may read everything but secrets.
    pub fn reader() -> Identity {
        Identity::new("modelplane-reader", ["system:readers", "system:authenticated"])
    }

    /// The name a controller of this process goes by; it may do everything.
    pub fn component(name: &str) -> Identity {
        Identity::new(format!("system:{name}"), ["system:masters", "system:authenticated"])
    }

    /// Whoever sent no credentials.
    pub fn anonymous() -> Identity {
        Identity::new("system:anonymous", ["system:unauthenticated"])
    }

    /// Whether the user is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|found| found == group)
    }
}
