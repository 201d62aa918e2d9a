//! The pods behind a replica: which backend runs an engine, and what it composes (spec replica §3, §4).
//!
//! A backend turns one engine into one workload object. `native` makes a Deployment, `llm-d` a LeaderWorkerSet; the
//! additions prefill/decode needs are llm-d's too and go on top of either. `Dynamo` is reserved. Nothing here looks
//! at observed state: inputs are the replica's spec and the names derived from it.

pub mod claim;
pub mod deployment;
pub mod leader_worker_set;
pub mod llm_d;
pub mod picker_config;
pub mod pod;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use modelplane_api::model_replica::{Engine, Member};
use modelplane_api::template::{Container, MemberRole};
use serde::Serialize;

use self::leader_worker_set::LeaderWorkerSet;

/// Port on which the pods of a replica take requests.
pub const SERVING_PORT: u16 = 8000;

/// What runs an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// One pod per copy: a Deployment.
    Native,
    /// A gang per copy: a LeaderWorkerSet, as llm-d lays it out.
    LlmD,
    /// NVIDIA Dynamo: the name is reserved, nothing selects it.
    Dynamo,
}

/// What an engine takes from its replica.
#[derive(Debug, Clone)]
pub struct ReplicaContext {
    /// The replica's name.
    pub name: String,
    /// The replica's name as a label value: what the pool selects pods by.
    pub label: String,
    /// PersistentVolumeClaim with the weights, if the replica uses a cache.
    pub cache_claim: Option<String>,
}

/// A workload object.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Workload {
    /// One pod per copy.
    Deployment(Box<Deployment>),
    /// One gang per copy.
    LeaderWorkerSet(Box<LeaderWorkerSet>),
}

/// An engine cannot be turned into a workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// The backend has no implementation.
    #[error("backend {0} is reserved and not implemented; use Standalone or Leader and Worker members")]
    Reserved(&'static str),
    /// The engine lacks a member.
    #[error("members: no member has role {0}")]
    NoMember(&'static str),
    /// A member lacks the container that runs the engine.
    #[error("members: the {role} member has no container named engine")]
    NoContainer {
        /// The member's role.
        role: &'static str,
    },
    /// A number that does not fit.
    #[error("{field}: {value} is out of range")]
    OutOfRange {
        /// The field, below the engine.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// `--port` of the decode engine.
    #[error("args: --port {0:?} is not a port number from 1 to 65535; correct it or leave it out for 8001")]
    Port(String),
    /// `--port` of the decode engine is the one its sidecar listens on.
    #[error("args: --port {0} is the port of the sidecar in front of the decode engine; choose another")]
    PortTaken(u16),
}

impl Backend {
    /// The backend an engine's shape calls for; Dynamo is never the answer.
    pub fn of(engine: &Engine) -> Self {
        if engine.members.iter().any(|member| member.role() == MemberRole::Standalone) {
            Self::Native
        } else {
            Self::LlmD
        }
    }

    /// The workload object of an engine.
    ///
    /// # Errors
    ///
    /// If the backend is reserved, or the engine lacks what the backend needs.
    pub fn build(self, replica: &ReplicaContext, engine: &Engine) -> Result<Workload, WorkloadError> {
        match self {
            Self::Native => {
                deployment::build(replica, engine).map(|built| Workload::Deployment(Box::new(built)))
            }
            Self::LlmD => leader_worker_set::build(replica, engine)
                .map(|built| Workload::LeaderWorkerSet(Box::new(built))),
            Self::Dynamo => Err(WorkloadError::Reserved("Dynamo")),
        }
    }
}

impl Workload {
    /// The template of the pods that take requests.
    pub fn serving_template(&mut self) -> &mut PodTemplateSpec {
        match self {
            Self::Deployment(deployment) => {
                &mut deployment.spec.get_or_insert_with(Default::default).template
            }
            Self::LeaderWorkerSet(set) => &mut set.content.spec.leader_worker_template.leader_template,
        }
    }
}

/// The member whose pods take requests: Standalone, or else Leader.
pub fn serving_member(engine: &Engine) -> Option<&Member> {
    let with_role = |role| engine.members.iter().find(|member| member.role() == role);
    with_role(MemberRole::Standalone).or_else(|| with_role(MemberRole::Leader))
}

fn member(engine: &Engine, role: MemberRole) -> Result<&Member, WorkloadError> {
    let member = engine.members.iter().find(|member| member.role() == role);
    member.ok_or(WorkloadError::NoMember(role.as_str()))
}

fn container(member: &Member) -> Result<&Container, WorkloadError> {
    let container = member.template.spec.as_ref().and_then(|spec| spec.engine());
    container.ok_or(WorkloadError::NoContainer { role: member.role().as_str() })
}

fn to_i32(field: &'static str, value: i64) -> Result<i32, WorkloadError> {
    i32::try_from(value).map_err(|_| WorkloadError::OutOfRange { field, value })
}

/// The value of the first of `flags` among `args`, written `--flag value` or `--flag=value`.
fn flag_value<'a>(args: &'a [String], flags: &[&str]) -> Option<&'a str> {
    args.iter().enumerate().find_map(|(index, arg)| match arg.split_once('=') {
        Some((flag, value)) => flags.contains(&flag).then_some(value),
        None if flags.contains(&arg.as_str()) => args.get(index + 1).map(String::as_str),
        None => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn engine(roles: &[Option<&str>], container: &str) -> Engine {
        let members: Vec<Value> = roles
            .iter()
            .map(|role| {
                json!({
                    "role": role,
                    "nodePoolName": "p",
                    "template": {"spec": {"containers": [{"name": container, "image": "i"}]}},
                })
            })
            .collect();
        serde_json::from_value(json!({"name": "main", "members": members})).expect("a readable engine")
    }

    fn replica() -> ReplicaContext {
        ReplicaContext { name: "r".to_owned(), label: "r".to_owned(), cache_claim: None }
    }

    #[test]
    fn the_backend_follows_from_the_engines_shape_and_is_never_dynamo() {
        let cases: &[(&[Option<&str>], Backend)] = &[
            (&[None], Backend::Native),
            (&[Some("Standalone")], Backend::Native),
            (&[Some("Leader"), Some("Worker")], Backend::LlmD),
            (&[Some("Worker"), Some("Leader")], Backend::LlmD),
        ];
        for (roles, want) in cases {
            assert_eq!(Backend::of(&engine(roles, "engine")), *want, "{roles:?}");
        }
    }

    #[test]
    fn a_reserved_backend_is_refused_by_name() {
        let error = Backend::Dynamo.build(&replica(), &engine(&[None], "engine")).expect_err("reserved");
        assert_eq!(error, WorkloadError::Reserved("Dynamo"));
        assert!(error.to_string().contains("Dynamo is reserved"));
    }

    #[test]
    fn an_engine_that_lacks_a_part_is_refused_by_field() {
        let cases: &[(&[Option<&str>], &str, WorkloadError)] = &[
            (&[Some("Leader")], "engine", WorkloadError::NoMember("Worker")),
            (&[Some("Worker")], "engine", WorkloadError::NoMember("Leader")),
            (&[], "engine", WorkloadError::NoMember("Leader")),
            (&[None], "sidecar", WorkloadError::NoContainer { role: "Standalone" }),
        ];
        for (roles, container, want) in cases {
            let engine = engine(roles, container);
            let error = Backend::of(&engine).build(&replica(), &engine).expect_err("an incomplete engine");
            assert_eq!(error, *want, "{roles:?}");
        }
    }

    #[test]
    fn a_number_that_does_not_fit_is_refused_by_field() {
        let mut engine = engine(&[None], "engine");
        engine.copies = Some(1 << 40);
        let error = Backend::Native.build(&replica(), &engine).expect_err("too many copies");
        assert_eq!(error.to_string(), "copies: 1099511627776 is out of range");
    }
}
