//! `InferenceClass`: pure data, so there is nothing to compose (spec clusters §1).
//!
//! The class itself is not looked at: whoever uses it reads it, and says what is wrong with it there.

use modelplane_api::conditions::{ConditionType, Reason};
use serde::Serialize;

use crate::contract::{ComposeError, Condition, Desired, Observed, Ready};

/// The status of a class, which has no fields of its own.
#[derive(Debug, Serialize)]
struct EmptyStatus {}

/// Composes an `InferenceClass`: accepts it.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let mut desired = Desired::starting_from(observed);
    desired.set_status(&EmptyStatus {});
    desired.ready = Ready::True;
    desired.condition(Condition::is_true(ConditionType::Accepted.as_str(), Reason::Available.as_str()));
    Ok(desired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_class_is_accepted_and_ready() {
        let desired = compose(&Observed::default()).expect("an answer");
        assert_eq!(desired.ready, Ready::True);
        assert!(desired.resources.is_empty());
        assert_eq!(desired.conditions[0].condition_type, "Accepted");
    }
}
