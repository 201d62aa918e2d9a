//! Nobody grants what they do not have: writing a role takes all of its permissions, or the verb `escalate` on
//! it; binding one takes them too, or the verb `bind` on the role (Kubernetes RBAC, "privilege escalation
//! prevention and bootstrapping").

use serde_json::Value;

use super::action::Action;
use super::rules::{self, GROUP, PolicyRule};
use super::snapshot::{RoleRef, Snapshot};
use crate::identity::Identity;
use crate::object::{metadata_text, name};
use crate::status::{ApiError, ApiResult, Target};

/// Checks a write of a role or binding.
pub(crate) fn check(
    snapshot: &Snapshot,
    identity: &Identity,
    object: &Value,
    old: Option<&Value>,
) -> ApiResult<()> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let resource = match kind {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        "RoleBinding" => "rolebindings",
        "ClusterRoleBinding" => "clusterrolebindings",
        _ => return Ok(()),
    };
    // Changing labels or finalizers alone grants nothing.
    let same = |field: &str| old.is_some_and(|old| old.get(field) == object.get(field));
    let grant = Grant { snapshot, identity, resource, object };
    if resource.ends_with("roles") {
        if same("rules") && same("aggregationRule") { Ok(()) } else { grant.check_role() }
    } else if same("subjects") && same("roleRef") {
        Ok(())
    } else {
        grant.check_binding()
    }
}

struct Grant<'a> {
    snapshot: &'a Snapshot,
    identity: &'a Identity,
    resource: &'static str,
    object: &'a Value,
}

impl Grant<'_> {
    fn check_role(&self) -> ApiResult<()> {
        if self.may("escalate", self.resource, name(self.object)) {
            return Ok(());
        }
        let aggregates = self.object.get("aggregationRule").is_some_and(|rule| !rule.is_null());
        if aggregates {
            let everything = PolicyRule {
                verbs: vec!["*".to_owned()],
                api_groups: vec!["*".to_owned()],
                resources: vec!["*".to_owned()],
                ..PolicyRule::default()
            };
            let urls = PolicyRule {
                verbs: vec!["*".to_owned()],
                non_resource_urls: vec!["*".to_owned()],
                ..PolicyRule::default()
            };
            let held = self.held();
            if !rules::missing(&held, &[everything, urls]).is_empty() {
                return Err(self.forbidden("must have cluster-admin privileges to use an aggregationRule"));
            }
        }
        self.check_rules(&rules::rules_of(self.object))
    }

    fn check_binding(&self) -> ApiResult<()> {
        let role = RoleRef::of(self.object);
        if self.may("bind", role.resource(), &role.name) {
            return Ok(());
        }
        let Some(rules) = self.snapshot.rules(&role, self.namespace()) else {
            let target = Target { group: GROUP, resource: role.resource(), name: &role.name };
            return Err(ApiError::not_found(target));
        };
        self.check_rules(rules)
    }

    fn check_rules(&self, wanted: &[PolicyRule]) -> ApiResult<()> {
        let missing = rules::missing(&self.held(), wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        Err(self.forbidden(&format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            self.identity.user,
            rules::quoted(&self.identity.groups),
            missing.join("\n")
        )))
    }

    fn namespace(&self) -> &str {
        metadata_text(self.object, "namespace")
    }

    fn held(&self) -> Vec<PolicyRule> {
        self.snapshot.rules_for(self.identity, self.namespace())
    }

    fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let namespace = self.namespace();
        let wanted = Action { verb, group: GROUP, resource, namespace, name, ..Action::default() };
        self.snapshot.decide(self.identity, &wanted).allowed
    }

    fn forbidden(&self, why: &str) -> ApiError {
        let target = Target { group: GROUP, resource: self.resource, name: name(self.object) };
        ApiError::forbidden(target, why)
    }
}
