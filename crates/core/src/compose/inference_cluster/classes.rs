//! The InferenceClasses of a cluster's pools (spec clusters §3.1, §3.4).

use std::collections::BTreeMap;

use modelplane_api::conditions::Reason;
use modelplane_api::inference_class::{InferenceClass, InferenceClassSpec};
use modelplane_api::inference_cluster::NodePool;
use modelplane_api::kind::Object;

use super::Problem;
use crate::contract::{Desired, Observed, Required, Requirement, Resource};

/// The classes that the pools name.
pub(super) struct Classes(BTreeMap<String, Class>);

/// What is known about a class.
enum Class {
    NotFetched,
    Absent,
    /// It exists, but not in a form that says what a node has.
    Unusable(String),
    Known(Box<InferenceClassSpec>),
}

impl Classes {
    /// Asks for the classes of the pools and reads those that are there.
    pub(super) fn resolve<'a>(
        desired: &mut Desired<'a>,
        observed: &Observed<'a>,
        pools: &[NodePool],
    ) -> Self {
        let mut classes = BTreeMap::new();
        for pool in pools {
            let name = &pool.class_name;
            let key = format!("class-{name}");
            let class = match observed.required(&key) {
                Required::NotFetched => Class::NotFetched,
                Required::Absent => Class::Absent,
                Required::Present(items) => {
                    read(&items[0]).map_or_else(Class::Unusable, |class| Class::Known(Box::new(class)))
                }
            };
            let info = InferenceClass::INFO;
            desired.require(key, Requirement::named(&info.api_version(), info.kind, name));
            classes.insert(name.clone(), class);
        }
        Self(classes)
    }

    /// The class of a pool, if it is usable.
    pub(super) fn of(&self, pool: &NodePool) -> Option<&InferenceClassSpec> {
        match self.0.get(&pool.class_name)? {
            Class::Known(class) => Some(class),
            _ => None,
        }
    }

    /// Each pool with its class; `None` unless all of them are usable.
    pub(super) fn of_all<'s>(
        &'s self,
        pools: &'s [NodePool],
    ) -> Option<Vec<(&'s NodePool, &'s InferenceClassSpec)>> {
        pools.iter().map(|pool| Some((pool, self.of(pool)?))).collect()
    }

    /// Names of the classes that do not exist, as far as is known.
    pub(super) fn missing(&self) -> Vec<&str> {
        let missing = |class: &Class| matches!(class, Class::NotFetched | Class::Absent);
        self.0.iter().filter(|(_, class)| missing(class)).map(|(name, _)| name.as_str()).collect()
    }

    /// Whether any class has not been looked up yet.
    pub(super) fn not_fetched(&self) -> bool {
        self.0.values().any(|class| matches!(class, Class::NotFetched))
    }

    /// The first pool whose class is unusable.
    pub(super) fn unusable(&self, pools: &[NodePool]) -> Option<Problem> {
        pools.iter().find_map(|pool| match self.0.get(&pool.class_name)? {
            Class::Unusable(problem) => {
                let NodePool { name, class_name, .. } = pool;
                let message = format!("pool {name}: InferenceClass {class_name}: {problem}");
                Some(Problem { reason: Reason::InvalidNodePool, message })
            }
            _ => None,
        })
    }
}

fn read(class: &Resource<'_>) -> Result<InferenceClassSpec, String> {
    let spec: Option<InferenceClassSpec> =
        class.document.decode_at(&["spec"]).map_err(|error| error.to_string())?;
    let spec = spec.ok_or_else(|| "spec is missing".to_owned())?;
    if spec.devices.is_empty() {
        return Err("spec.devices is empty; list the devices of a node".to_owned());
    }
    Ok(spec)
}
