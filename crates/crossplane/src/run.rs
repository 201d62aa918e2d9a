//! One call: find the composition, run it, answer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use modelplane_core::compose;
use modelplane_core::contract::{ComposeError, Desired, Observed};

use crate::request::{Request, RequestError};
use crate::response::{encode, encode_fatal};

/// A step of a kind's pipeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Step {
    /// The composition of the composite's kind.
    #[default]
    Compose,
    /// The guard that keeps provider configs until their users are gone.
    Usages,
}

impl Step {
    /// The step a pipeline step or function name stands for.
    pub fn from_name(name: &str) -> Self {
        if name.ends_with(compose::usages::STEP) { Self::Usages } else { Self::Compose }
    }
}

/// Answers the wire bytes of a `RunFunctionRequest` with those of a `RunFunctionResponse`.
///
/// The step is taken from the request's `input` (`step: compose-usages`), else it is the composition of
/// the composite's kind. Whatever goes wrong inside, a panic included, becomes a fatal result.
///
/// # Errors
///
/// Only if the bytes are not a request at all.
pub fn run(request: &[u8]) -> Result<Vec<u8>, RequestError> {
    let request = Request::parse(request)?;
    let step =
        request.input.and_then(|input| input.text_at(&["step"])).map_or(Step::Compose, Step::from_name);
    Ok(answer(&request, step))
}

/// [`run`] with the step said by the caller.
///
/// # Errors
///
/// As for [`run`].
pub fn run_step(request: &[u8], step: Step) -> Result<Vec<u8>, RequestError> {
    Ok(answer(&Request::parse(request)?, step))
}

fn answer(request: &Request<'_>, step: Step) -> Vec<u8> {
    match catch_unwind(AssertUnwindSafe(|| compose(&request.observed, step))) {
        Ok(Ok(desired)) => encode(request, &desired),
        Ok(Err(error)) => encode_fatal(request, &describe(&error)),
        Err(_) => {
            let who = request.observed.composite.identity();
            encode_fatal(request, &format!("{who}: internal error while composing it; please report this"))
        }
    }
}

fn compose<'a>(observed: &Observed<'a>, step: Step) -> Result<Desired<'a>, ComposeError> {
    if step == Step::Usages {
        return compose::usages::compose(observed);
    }
    let identity = observed.composite.identity();
    match compose::composition(identity.api_version, identity.kind) {
        Some(composition) => composition(observed),
        None => Err(observed.error(format!(
            "no composition for kind {:?} of apiVersion {:?}; known kinds: {}",
            identity.kind,
            identity.api_version,
            compose::kinds().collect::<Vec<_>>().join(", "),
        ))),
    }
}

fn describe(error: &ComposeError) -> String {
    match &error.hint {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}
