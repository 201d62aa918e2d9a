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

/// An answer, with what a log or a metric says about it.
#[derive(Debug)]
pub struct Answer {
    /// Kind of the composite; empty if the request names none.
    pub kind: String,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The request's tag.
    pub tag: String,
    /// The message of the fatal result, if there is one.
    pub fatal: Option<String>,
    /// The wire bytes of the `RunFunctionResponse`.
    pub bytes: Vec<u8>,
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
    answer_request(request).map(|answer| answer.bytes)
}

/// [`run`] with the step said by the caller.
///
/// # Errors
///
/// As for [`run`].
pub fn run_step(request: &[u8], step: Step) -> Result<Vec<u8>, RequestError> {
    Ok(answer(&Request::parse(request)?, step).bytes)
}

/// [`run`], with what a log or a metric says about the call.
///
/// # Errors
///
/// As for [`run`].
pub fn answer_request(request: &[u8]) -> Result<Answer, RequestError> {
    let request = Request::parse(request)?;
    let step =
        request.input.and_then(|input| input.text_at(&["step"])).map_or(Step::Compose, Step::from_name);
    Ok(answer(&request, step))
}

fn answer(request: &Request<'_>, step: Step) -> Answer {
    let who = request.observed.composite.identity();
    let (bytes, fatal) = match catch_unwind(AssertUnwindSafe(|| compose(&request.observed, step))) {
        Ok(Ok(desired)) => (encode(request, &desired), None),
        Ok(Err(error)) => refuse(request, error.explained()),
        Err(_) => refuse(request, format!("{who}: internal error while composing it; please report this")),
    };
    let (kind, namespace) = (who.kind.to_owned(), who.namespace.to_owned());
    Answer { kind, namespace, name: who.name.to_owned(), tag: request.tag.to_owned(), fatal, bytes }
}

fn refuse(request: &Request<'_>, message: String) -> (Vec<u8>, Option<String>) {
    (encode_fatal(request, &message), Some(message))
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
