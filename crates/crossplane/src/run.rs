//! One call: find the composition, run it, answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use modelplane_core::compose;
use modelplane_core::contract::{ComposeError, Desired, Observed, Work};

use crate::request::{Request, RequestError};
use crate::response::{MAX_RESPONSE_BYTES, encode, encode_fatal, encode_too_large};

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
    /// What the composition took and came to.
    pub work: Work,
    /// How long each part took.
    pub timings: Timings,
    /// The wire bytes of the `RunFunctionResponse`.
    pub bytes: Vec<u8>,
}

/// How long the parts of a call took, one after the other.
#[derive(Debug, Default, Clone, Copy)]
pub struct Timings {
    /// Reading the outline of the request.
    pub read: Duration,
    /// Composing.
    pub compose: Duration,
    /// Writing the response.
    pub encode: Duration,
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
    let started = Instant::now();
    let request = Request::parse(request)?;
    let read = started.elapsed();
    let step =
        request.input.and_then(|input| input.text_at(&["step"])).map_or(Step::Compose, Step::from_name);
    let mut answer = answer(&request, step);
    answer.timings.read = read;
    Ok(answer)
}

fn answer(request: &Request<'_>, step: Step) -> Answer {
    answer_by(request, |observed| compose(observed, step))
}

/// What came of a composition, as wire bytes.
#[derive(Default)]
struct Outcome {
    bytes: Vec<u8>,
    fatal: Option<String>,
    work: Work,
    timings: Timings,
}

fn answer_by<'a>(
    request: &Request<'a>,
    compose: impl FnOnce(&Observed<'a>) -> Result<Desired<'a>, ComposeError>,
) -> Answer {
    let who = request.observed.composite.identity();
    let span = tracing::info_span!(
        "call",
        kind = who.kind,
        namespace = who.namespace,
        name = who.name,
        tag = request.tag
    );
    let _entered = span.enter();
    let attempt = catch_unwind(AssertUnwindSafe(|| attempt(request, compose)));
    let mut outcome = attempt.unwrap_or_else(|_| {
        refuse(request, format!("{who}: internal error while composing it; please report this"))
    });
    if outcome.bytes.len() > MAX_RESPONSE_BYTES {
        // A refusal too large for what it passes on says what it says without that.
        let (bytes, text) = encode_too_large(request, outcome.bytes.len());
        outcome = Outcome { bytes, fatal: Some(text), ..outcome };
    }
    let Outcome { bytes, fatal, work, timings } = outcome;
    let (kind, namespace) = (who.kind.to_owned(), who.namespace.to_owned());
    Answer {
        kind,
        namespace,
        name: who.name.to_owned(),
        tag: request.tag.to_owned(),
        fatal,
        work,
        timings,
        bytes,
    }
}

fn attempt<'a>(
    request: &Request<'a>,
    compose: impl FnOnce(&Observed<'a>) -> Result<Desired<'a>, ComposeError>,
) -> Outcome {
    let started = Instant::now();
    let desired = compose(&request.observed);
    let composed = started.elapsed();
    let mut outcome = match desired {
        Ok(desired) => Outcome { bytes: encode(request, &desired), work: desired.work, ..Outcome::default() },
        Err(error) => refuse(request, error.explained()),
    };
    let encode = started.elapsed().saturating_sub(composed);
    outcome.timings = Timings { compose: composed, encode, ..Timings::default() };
    outcome
}

fn refuse(request: &Request<'_>, message: String) -> Outcome {
    Outcome { bytes: encode_fatal(request, &message), fatal: Some(message), ..Outcome::default() }
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

#[cfg(test)]
mod tests {
    use modelplane_core::contract::{Body, Ready};
    use serde_json::{Value, json};

    use super::*;
    use crate::json::{request_from_json, response_to_json};

    fn request(mut fields: Value) -> Vec<u8> {
        fields["meta"]["tag"] = json!("a-tag");
        fields["observed"] = json!({"composite": {"resource": {
            "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelCache",
            "metadata": {"name": "weights", "namespace": "ml-team"},
        }}});
        request_from_json(&fields).expect("a well-formed request")
    }

    fn answer_with(
        bytes: &[u8],
        compose: impl for<'a> FnOnce(&Observed<'a>) -> Result<Desired<'a>, ComposeError>,
    ) -> (Answer, Value) {
        let request = Request::parse(bytes).expect("a readable request");
        let answer = answer_by(&request, compose);
        let json = response_to_json(&answer.bytes).expect("a readable response");
        (answer, json)
    }

    /// Wants an object of this many bytes.
    fn want(observed: &Observed<'_>, size: usize) -> Desired<'static> {
        let mut desired = Desired::default();
        let padding = "x".repeat(size);
        desired.add("large", Body::of(&json!({"kind": "ConfigMap", "padding": padding})), Ready::True);
        assert!(observed.resources.is_empty());
        desired
    }

    #[test]
    fn a_panic_is_a_fatal_result_that_names_the_kind_and_keeps_what_others_want() {
        let bytes =
            request(json!({"desired": {"resources": {"theirs": {"resource": {"kind": "ConfigMap"}}}}}));
        let (answer, json) = answer_with(&bytes, |_| panic!("a defect"));
        let text = json["results"][0]["message"].as_str().expect("a result");
        assert_eq!(json["results"][0]["severity"], "SEVERITY_FATAL");
        assert!(text.starts_with("ModelCache ml-team/weights: internal error"), "{text}");
        assert_eq!(json["desired"]["resources"]["theirs"]["resource"]["kind"], "ConfigMap");
        assert_eq!(answer.fatal.as_deref(), Some(text));
    }

    #[test]
    fn an_answer_larger_than_crossplane_reads_is_refused_with_size_limit_and_remedy() {
        let bytes = request(json!({}));
        let (answer, json) = answer_with(&bytes, |observed| Ok(want(observed, 6 << 20)));
        assert!(answer.bytes.len() < 1000);
        assert_eq!(json["meta"]["tag"], "a-tag");
        assert_eq!(json["results"][0]["severity"], "SEVERITY_FATAL");
        let text = json["results"][0]["message"].as_str().expect("a result");
        for part in ["ModelCache ml-team/weights", "6.0 MiB", "at most 4.0 MiB", "spec.clusterSelector"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn the_largest_answer_crossplane_reads_is_sent() {
        let bytes = request(json!({}));
        let (small, _) = answer_with(&bytes, |observed| Ok(want(observed, 3 << 20)));
        let room = MAX_RESPONSE_BYTES - small.bytes.len();
        let (exact, _) = answer_with(&bytes, |observed| Ok(want(observed, (3 << 20) + room)));
        assert_eq!((exact.bytes.len(), exact.fatal), (MAX_RESPONSE_BYTES, None));
        let (over, _) = answer_with(&bytes, |observed| Ok(want(observed, (3 << 20) + room + 1)));
        assert!(over.fatal.is_some());
    }

    #[test]
    fn a_refusal_that_passes_on_too_much_goes_without_it() {
        let padding = "x".repeat(5 << 20);
        let theirs = json!({"resource": {"kind": "ConfigMap", "padding": padding}});
        let bytes = request(json!({"desired": {"resources": {"theirs": theirs}}}));
        let (answer, json) = answer_with(&bytes, |observed| Err(observed.error("it is malformed")));
        assert!(answer.bytes.len() < 1000);
        let text = json["results"][0]["message"].as_str().expect("a result");
        assert!(text.contains("5.0 MiB of it come from earlier pipeline steps"), "{text}");
    }

    #[test]
    fn what_crossplane_says_it_does_not_honour_is_said_as_events() {
        let cases = [
            ("it says nothing", json!([]), 0, false),
            ("all of it", json!(["CAPABILITIES", "REQUIRED_RESOURCES", "CONDITIONS"]), 0, false),
            ("no required resources", json!(["CAPABILITIES", "CONDITIONS"]), 1, true),
            ("no conditions", json!(["CAPABILITIES", "REQUIRED_RESOURCES"]), 1, false),
        ];
        for (name, capabilities, extra, names_requirement) in cases {
            let capabilities: Vec<String> = (capabilities.as_array().into_iter().flatten())
                .map(|name| format!("CAPABILITY_{}", name.as_str().unwrap_or_default()))
                .collect();
            let bytes = request_from_json(&json!({
                "meta": {"capabilities": capabilities},
                "observed": {"composite": {"resource": {
                    "apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelService",
                    "metadata": {"name": "s", "namespace": "ml-team"},
                    "spec": {"endpoints": [{"selector": {"matchLabels": {"model": "qwen"}}}]},
                }}},
            }));
            let bytes = bytes.expect("a well-formed request");
            let json =
                response_to_json(&run(&bytes).expect("a readable request")).expect("a readable response");
            let results = json["results"].as_array().cloned().unwrap_or_default();
            assert_eq!(results.len(), extra, "{name}: {json:#}");
            let named = results.iter().any(|result| {
                result["message"]
                    .as_str()
                    .is_some_and(|text| text.contains("does not fetch required resources"))
            });
            assert_eq!(named, names_requirement, "{name}");
        }
    }
}
