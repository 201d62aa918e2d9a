//! The `compose-usages` pipeline step: keeps every ProviderConfig until the last Helm `Release` and
//! Kubernetes `Object` that needs it has gone (spec serving-stack §9, clusters §2).
//!
//! It works on what earlier steps want. A usage binds exactly one user, hence one usage per consumer,
//! found by a label this step puts on the consumer. The step reads nothing of the composite but its
//! namespace.

use std::borrow::Cow;
use std::collections::BTreeMap;

use modelplane_api::names::{USAGE_CONSUMER_LABEL, label_value, provider_config_usage_key};
use serde::Serialize;

use super::object::Metadata;
use super::usage::{UsedBy, usage};
use crate::contract::{Body, ComposeError, Desired, Observed, Ready, Severity};
use crate::document::{DecodeError, Document, Shape};

/// Name of the pipeline step, and of its function upstream.
pub const STEP: &str = "compose-usages";

/// API group and kind of what can be a consumer of a ProviderConfig.
const CONSUMERS: [(&str, &str); 2] =
    [("helm.m.crossplane.io", "Release"), ("kubernetes.m.crossplane.io", "Object")];

/// What every key of this step's resources starts with.
const KEY_PREFIX: &str = "usage-pc-";

/// Composes the usages of what earlier steps want.
///
/// # Errors
///
/// Never: a consumer that cannot be read is reported and left as it is.
pub fn compose<'a>(observed: &Observed<'a>) -> Result<Desired<'a>, ComposeError> {
    let mut desired = Desired::starting_from(observed);
    if let Some(namespace) = observed.composite.document.text_at(&["metadata", "namespace"]) {
        let entries: Vec<Cow<'a, str>> = desired.resources.keys().cloned().collect();
        for key in entries {
            protect(&mut desired, &key, namespace);
        }
    }
    hold_usages_in_use(&mut desired, observed);
    Ok(desired)
}

/// Adds the label and the usage of one entry, if it is a consumer.
fn protect<'a>(desired: &mut Desired<'a>, key: &str, namespace: &str) {
    let entry = &desired.resources[key];
    let (body, ready) = (entry.body.clone(), entry.ready);
    let (consumer, labelled) = match Consumer::read(body.document()) {
        Ok(None) => return,
        Ok(Some(consumer)) => (consumer, with_label(body.document(), &label_value(key))),
        Err(error) => return skip(desired, key, &error),
    };
    let usage_key = provider_config_usage_key(key);
    if desired.resources.contains_key(usage_key.as_str()) {
        let message = format!(
            "resource {key} gets no usage of its provider config: an earlier step already wants a resource \
             {usage_key}; rename one of the two"
        );
        return desired.event(Severity::Warning, message);
    }
    match labelled {
        Ok(labelled) => {
            desired.add(usage_key, consumer.usage(&label_value(key), namespace), Ready::True);
            desired.add(key.to_owned(), labelled, ready);
        }
        Err(error) => skip(desired, key, &error),
    }
}

fn skip(desired: &mut Desired<'_>, key: &str, error: &DecodeError) {
    let message = format!(
        "resource {key} gets no usage of its provider config, which may therefore be deleted before it: {error}"
    );
    desired.event(Severity::Warning, message);
}

/// Keeps the observed usages that this pass did not compose while their consumer is there: a consumer
/// that could not be read, or one that is on its way out and still needs its provider config.
fn hold_usages_in_use<'a>(desired: &mut Desired<'a>, observed: &Observed<'a>) {
    for (&key, resource) in &observed.resources {
        let Some(consumer) = key.strip_prefix(KEY_PREFIX) else { continue };
        if desired.resources.contains_key(consumer) || observed.has(consumer) {
            desired.hold(key, resource);
        }
    }
}

/// Something that needs a ProviderConfig to be deleted properly.
struct Consumer<'a> {
    api_version: &'a str,
    kind: &'a str,
    provider_config: &'a str,
}

impl<'a> Consumer<'a> {
    /// Reads an entry; `None` if it is of another kind or names no provider config.
    fn read(document: Document<'a>) -> Result<Option<Self>, DecodeError> {
        let text = |field| document.text_at(&[field]).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        if !CONSUMERS.contains(&(group, kind)) {
            return Ok(None);
        }
        for path in [&["spec"][..], &["spec", "providerConfigRef"]] {
            if document.get(path).is_some_and(|value| value.shape() != Shape::Object) {
                return Err(DecodeError { path: path.join("."), message: "not an object".to_owned() });
            }
        }
        let name = document.decode_at::<&str>(&["spec", "providerConfigRef", "name"])?;
        let named = name.filter(|name| !name.is_empty());
        Ok(named.map(|provider_config| Self { api_version, kind, provider_config }))
    }

    fn usage(&self, label: &str, namespace: &str) -> Body<'static> {
        let of = UsedBy::named(self.api_version, "ProviderConfig", self.provider_config);
        let by = UsedBy::sibling(self.api_version, self.kind).labelled(USAGE_CONSUMER_LABEL, label);
        Body::of(&usage(of, by).with_metadata(Metadata::in_namespace(namespace)))
    }
}

/// The object with the consumer label; an error names the field that is in the way.
fn with_label(document: Document<'_>, value: &str) -> Result<Body<'static>, DecodeError> {
    /// An object of which one branch is rewritten and the rest is spliced in unread.
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Part<'a> {
        Kept(Document<'a>),
        Text(&'a str),
        Rewritten(BTreeMap<&'a str, Part<'a>>),
    }
    fn fields<'a>(document: Document<'a>, path: &[&str]) -> Result<BTreeMap<&'a str, Part<'a>>, DecodeError> {
        let found: Option<BTreeMap<&'a str, Document<'a>>> = document.decode_at(path)?;
        Ok(found.unwrap_or_default().into_iter().map(|(key, value)| (key, Part::Kept(value))).collect())
    }

    let mut labels = fields(document, &["metadata", "labels"])?;
    labels.insert(USAGE_CONSUMER_LABEL, Part::Text(value));
    let mut metadata = fields(document, &["metadata"])?;
    metadata.insert("labels", Part::Rewritten(labels));
    let mut object = fields(document, &[])?;
    object.insert("metadata", Part::Rewritten(metadata));
    Body::try_of(&object).map_err(|error| DecodeError { path: String::new(), message: error.to_string() })
}
