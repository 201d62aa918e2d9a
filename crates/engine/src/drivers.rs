//! The drivers: what Crossplane's providers do for composed `Object`s, `Release`s and cloud resources.

pub mod helm;
mod managed;
mod object;
mod provider_config;
pub mod readiness;
mod release;
pub mod simulated_helm;
mod status;

pub use self::managed::{CloudSimulator, ManagedDriver};
pub(crate) use self::managed::{is_managed, siblings};
pub use self::object::{GROUP as OBJECT_GROUP, ObjectDriver};
pub use self::provider_config::ProviderConfigController;
pub use self::release::{GROUP as RELEASE_GROUP, ReleaseDriver};

use crate::object::Stored;

/// Finalizer of managed resources.
pub const FINALIZER: &str = "finalizer.managedresource.crossplane.io";
/// Label of everything that is only simulated.
pub const SIMULATED_LABEL: &str = "modelplane.ai/simulated";
/// Reason of `Synced` where Crossplane and one of its providers would be needed.
pub const NEEDS_CROSSPLANE: &str = "NeedsCrossplane";

/// What a driver may do for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policies {
    pub(crate) create: bool,
    pub(crate) update: bool,
    pub(crate) delete: bool,
}

impl Policies {
    /// What `spec.managementPolicies` allows; everything if it says nothing.
    pub(crate) fn of(object: &Stored) -> Self {
        let listed: Option<Vec<&str>> =
            object.document().decode_at(&["spec", "managementPolicies"]).ok().flatten();
        let Some(listed) = listed else { return Self { create: true, update: true, delete: true } };
        let has = |policy: &str| listed.contains(&"*") || listed.contains(&policy);
        Self { create: has("Create"), update: has("Update"), delete: has("Delete") }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn policies_say_what_may_be_done() {
        let all = Policies { create: true, update: true, delete: true };
        for (name, spec, expected) in [
            ("nothing said", json!({}), all),
            ("everything", json!({"managementPolicies": ["*"]}), all),
            (
                "orphaned on deletion",
                json!({"managementPolicies": ["Observe", "Create", "Update"]}),
                Policies { delete: false, ..all },
            ),
            (
                "only watched",
                json!({"managementPolicies": ["Observe"]}),
                Policies { create: false, update: false, delete: false },
            ),
        ] {
            let object = Stored::from_value(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap();
            assert_eq!(Policies::of(&object), expected, "{name}");
        }
    }
}
