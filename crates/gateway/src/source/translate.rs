//! From the API's objects to configuration. Pure: objects in, a snapshot out.
//!
//! An object that cannot be used is left out and named in the snapshot's problems; the rest keeps working.
//! Endpoints are selected in the service's own namespace only (spec gateway-and-routing §7, oddity 5).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use modelplane_api::inference_gateway::{GatewayTls, InferenceGateway};
use modelplane_api::model_endpoint::{
    EndpointAuth, EndpointTls, ModelEndpoint, ModelEndpointSpec, SecretKeyRef,
};
use modelplane_api::model_service::{ModelService, ServiceEndpoints};
use modelplane_api::names::{CALLER_KEY_LABEL, DEFAULT_GATEWAY, SYSTEM_NAMESPACE};
use modelplane_api::traffic;
use modelplane_core::compose::model_endpoint::url::EndpointUrl;
use sha2::{Digest, Sha256};

use crate::routes::config::{
    Address, Affinity, AffinityKey, AllowedServices, Balancing, CallerConfig, CallerLimits, Certificate,
    ClientTls, Credential, EndpointConfig, EntryConfig, Locality, Outliers, Overflow, Probe, Problem,
    Retries, ServiceConfig, ServicePolicy, Snapshot, Timeouts,
};

/// A Secret, as far as the gateway reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secret {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Entries, decoded.
    pub data: BTreeMap<String, Bytes>,
}

/// Annotations on the Secret of a caller's key.
pub mod caller {
    /// Services the caller may use, separated by commas: `namespace/name`, `namespace/*` or `*`. Absent allows the
    /// Secret's own namespace, or everything if that is the system namespace.
    pub const SERVICES: &str = "modelplane.ai/allowed-services";
    /// Requests per minute.
    pub const REQUESTS_PER_MINUTE: &str = "modelplane.ai/requests-per-minute";
    /// Prompt and completion tokens per minute.
    pub const TOKENS_PER_MINUTE: &str = "modelplane.ai/tokens-per-minute";
    /// Requests at the same time.
    pub const CONCURRENT_REQUESTS: &str = "modelplane.ai/concurrent-requests";
    /// Tokens in all, since the gateway started.
    pub const BUDGET_TOKENS: &str = "modelplane.ai/budget-tokens";
    /// Entry with the key in plain text.
    pub const KEY: &str = "key";
    /// Entry with the key's SHA-256 in hexadecimal, in place of the key.
    pub const DIGEST: &str = "sha256";
}

/// Everything the gateway reads, by namespace and name.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    /// Services.
    pub services: BTreeMap<(String, String), ModelService>,
    /// Endpoints.
    pub endpoints: BTreeMap<(String, String), ModelEndpoint>,
    /// Gateways by name.
    pub gateways: BTreeMap<String, InferenceGateway>,
    /// Secrets.
    pub secrets: BTreeMap<(String, String), Secret>,
}

/// What the documents ask for.
pub fn snapshot(documents: &Documents) -> Snapshot {
    let mut translation = Translation { documents, problems: Vec::new() };
    let endpoints = translation.endpoints();
    let services = documents
        .services
        .iter()
        .filter(|(_, service)| service.metadata.deletion_timestamp.is_none())
        .map(|((namespace, name), service)| self::service(namespace, name, service, &endpoints))
        .collect();
    let modelplane =
        documents.gateways.get(DEFAULT_GATEWAY).and_then(|gateway| gateway.spec.modelplane.as_ref());
    let tls = modelplane.and_then(|modelplane| modelplane.tls.as_ref());
    let requires_key =
        modelplane.and_then(|modelplane| modelplane.callers).is_some_and(|callers| callers.require_key);
    let callers = requires_key.then(|| translation.callers());
    let certificates = tls.map(|tls| translation.certificates(tls)).unwrap_or_default();
    // As the composed Gateway's HTTPS listener has it.
    let hostnames = tls.and_then(|tls| tls.hostname.clone()).into_iter().collect();
    Snapshot { services, callers, certificates, hostnames, problems: translation.problems }
}

struct Translation<'d> {
    documents: &'d Documents,
    problems: Vec<Problem>,
}

/// An endpoint and the labels it is selected by.
struct Selectable<'d> {
    labels: &'d BTreeMap<String, String>,
    config: Arc<EndpointConfig>,
}

type Endpoints<'d> = BTreeMap<&'d str, Vec<Selectable<'d>>>;

/// An entry's endpoints are selected in order; an endpoint belongs to the first entry that selects it.
fn service(namespace: &str, name: &str, service: &ModelService, endpoints: &Endpoints<'_>) -> ServiceConfig {
    let mut taken = BTreeSet::new();
    let mut entry = |group: &ServiceEndpoints| {
        let selected = endpoints.get(namespace).into_iter().flatten();
        let selected = selected.filter(|endpoint| group.selector.matches(endpoint.labels));
        let endpoints = selected
            .filter(|endpoint| taken.insert(endpoint.config.name.clone()))
            .map(|endpoint| endpoint.config.clone())
            .collect();
        EntryConfig { weight: count(Some(group.weight()), 1), tier: count(Some(group.tier()), 0), endpoints }
    };
    ServiceConfig {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        entries: service.spec.endpoints.iter().map(&mut entry).collect(),
        policy: service.spec.traffic.as_ref().map(policy).unwrap_or_default(),
    }
}

impl<'d> Translation<'d> {
    fn endpoints(&mut self) -> Endpoints<'d> {
        let mut endpoints: Endpoints<'d> = BTreeMap::new();
        let documents = self.documents;
        for ((namespace, name), endpoint) in &documents.endpoints {
            if endpoint.metadata.deletion_timestamp.is_some() {
                continue;
            }
            match self.endpoint(namespace, name, &endpoint.spec) {
                Ok(mut config) => {
                    config.labels = endpoint.metadata.labels.clone();
                    let selectable =
                        Selectable { labels: &endpoint.metadata.labels, config: Arc::new(config) };
                    endpoints.entry(namespace).or_default().push(selectable);
                }
                Err(reason) => self.problem(format!("ModelEndpoint {namespace}/{name}"), reason),
            }
        }
        endpoints
    }

    fn endpoint(
        &self,
        namespace: &str,
        name: &str,
        spec: &ModelEndpointSpec,
    ) -> Result<EndpointConfig, String> {
        let url = EndpointUrl::parse(&spec.url)
            .map_err(|error| format!("spec.url {:?} is not usable: {error}", spec.url))?;
        let secure =
            spec.url.trim_start().get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
        let tls = secure
            .then(|| self.tls(namespace, spec.tls.as_ref().unwrap_or(&EndpointTls::default())))
            .transpose()?;
        let address = Address { host: url.host, port: url.port, tls, http2: false };
        let mut config = EndpointConfig::new(namespace, name, address);
        config.rewrite_path = spec.rewrite_path.clone().filter(|path| !path.is_empty());
        config.credential = spec.auth.as_ref().map(|auth| self.credential(namespace, auth)).transpose()?;
        config.model.clone_from(&spec.model);
        if let Some(host) = &spec.host {
            config.host_header = Some(header_value("spec.host", host)?);
        }
        if let Some(headers) = &spec.headers {
            for (name, value) in &headers.set {
                let value = header_value(&format!("spec.headers.set[{name:?}]"), value)?;
                config.add_headers.push((header_name("spec.headers.set", name)?, value));
            }
            for name in &headers.remove {
                config.remove_headers.push(header_name("spec.headers.remove", name)?);
            }
        }
        Ok(config)
    }

    fn tls(&self, namespace: &str, tls: &EndpointTls) -> Result<ClientTls, String> {
        let authorities =
            tls.ca_secret_ref.as_ref().map(|reference| self.entry(namespace, reference)).transpose()?;
        let identity = tls
            .client_certificate_secret
            .as_ref()
            .map(|name| self.certificate(namespace, name))
            .transpose()?;
        Ok(ClientTls { server_name: tls.server_name.clone(), authorities, identity })
    }

    fn credential(&self, namespace: &str, auth: &EndpointAuth) -> Result<Credential, String> {
        let header = match &auth.header {
            Some(header) => header_name("spec.auth.header", header)?,
            None => AUTHORIZATION,
        };
        let prefix = auth.prefix.as_deref().unwrap_or(if header == AUTHORIZATION { "Bearer " } else { "" });
        let secret = self.entry(namespace, &auth.secret_ref)?;
        let value = [prefix.as_bytes(), secret.trim_ascii()].concat();
        let mut value = HeaderValue::from_bytes(&value).map_err(|_| {
            format!("entry {:?} of {} is no header value", auth.secret_ref.key, auth.secret_ref.name)
        })?;
        value.set_sensitive(true);
        Ok(Credential { header, value })
    }

    fn secret(&self, namespace: &str, name: &str) -> Result<&'d Secret, String> {
        let key = (namespace.to_owned(), name.to_owned());
        self.documents.secrets.get(&key).ok_or_else(|| format!("Secret {namespace}/{name} does not exist"))
    }

    fn entry(&self, namespace: &str, reference: &SecretKeyRef) -> Result<Bytes, String> {
        let secret = self.secret(namespace, &reference.name)?;
        secret
            .data
            .get(&reference.key)
            .cloned()
            .ok_or_else(|| format!("Secret {namespace}/{} has no entry {:?}", reference.name, reference.key))
    }

    fn certificate(&self, namespace: &str, name: &str) -> Result<Certificate, String> {
        let entry =
            |key: &str| self.entry(namespace, &SecretKeyRef { name: name.to_owned(), key: key.to_owned() });
        Ok(Certificate { chain: entry("tls.crt")?, key: entry("tls.key")? })
    }

    fn certificates(&mut self, tls: &GatewayTls) -> Vec<Certificate> {
        let mut certificates = Vec::new();
        for name in &tls.certificate_secrets {
            match self.certificate(SYSTEM_NAMESPACE, name) {
                Ok(certificate) => certificates.push(certificate),
                Err(reason) => self.problem(format!("InferenceGateway {DEFAULT_GATEWAY}"), reason),
            }
        }
        certificates
    }

    fn callers(&mut self) -> Vec<CallerConfig> {
        let mut callers = Vec::new();
        for ((namespace, name), secret) in &self.documents.secrets {
            if secret.labels.get(CALLER_KEY_LABEL).is_none_or(|value| value != "true") {
                continue;
            }
            match self::caller(namespace, name, secret) {
                Ok(caller) => callers.push(caller),
                Err(reason) => self.problem(format!("Secret {namespace}/{name}"), reason),
            }
        }
        callers
    }

    fn problem(&mut self, object: String, reason: String) {
        self.problems.push(Problem { object, reason });
    }
}

/// A caller. A malformed limit leaves the caller out: half a limit is none.
fn caller(namespace: &str, name: &str, secret: &Secret) -> Result<CallerConfig, String> {
    let digest = match (secret.data.get(caller::DIGEST), secret.data.get(caller::KEY)) {
        (Some(digest), _) => digest_from(digest).ok_or("entry \"sha256\" is not 64 hexadecimal digits")?,
        (None, Some(key)) if !key.trim_ascii().is_empty() => Sha256::digest(key.trim_ascii()).into(),
        _ => return Err("there is neither an entry \"key\" nor an entry \"sha256\"".to_owned()),
    };
    let number = |annotation: &str| {
        let Some(text) = secret.annotations.get(annotation) else { return Ok(None) };
        text.parse::<u64>()
            .map(Some)
            .map_err(|_| format!("annotation {annotation} {text:?} is not a whole number"))
    };
    let small = |annotation: &str| {
        number(annotation).map(|number| number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
    };
    let limits = CallerLimits {
        requests_per_minute: small(caller::REQUESTS_PER_MINUTE)?,
        tokens_per_minute: small(caller::TOKENS_PER_MINUTE)?,
        concurrent_requests: small(caller::CONCURRENT_REQUESTS)?,
        budget_tokens: number(caller::BUDGET_TOKENS)?,
    };
    let services = allowed(namespace, secret.annotations.get(caller::SERVICES).map(String::as_str));
    Ok(CallerConfig { id: format!("{namespace}/{name}"), digest, services, limits })
}

/// Services a key may use. Whoever may write Secrets in a namespace decides for that namespace only, so a key from
/// any but the system namespace reaches no further, whatever it says.
fn allowed(namespace: &str, annotation: Option<&str>) -> AllowedServices {
    let is_system = namespace == SYSTEM_NAMESPACE;
    let own = format!("{namespace}/");
    let patterns =
        annotation.map(|text| text.split(',').map(str::trim).filter(|pattern| !pattern.is_empty()));
    match patterns {
        None if is_system => AllowedServices::All,
        None => AllowedServices::Only(vec![format!("{namespace}/*")]),
        Some(patterns) => {
            let within = patterns.filter_map(|pattern| match pattern {
                "*" if !is_system => Some(format!("{namespace}/*")),
                _ if is_system || pattern.starts_with(&own) => Some(pattern.to_owned()),
                _ => None,
            });
            AllowedServices::Only(within.collect())
        }
    }
}

fn digest_from(text: &[u8]) -> Option<[u8; 32]> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut digest = [0; 32];
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).ok()?;
    }
    Some(digest)
}

fn policy(traffic: &traffic::Traffic) -> ServicePolicy {
    let defaults = ServicePolicy::default();
    ServicePolicy {
        balancing: match traffic.balancing.unwrap_or_default() {
            traffic::Balancing::LeastLoaded => Balancing::LeastLoaded,
            traffic::Balancing::RoundRobin => Balancing::RoundRobin,
        },
        affinity: traffic.affinity.as_ref().and_then(affinity),
        locality: traffic.locality.as_ref().map(|locality| Locality {
            label: locality.label_key.clone(),
            preferred: locality.prefer.clone(),
        }),
        timeouts: traffic.timeouts.as_ref().map_or(defaults.timeouts, timeouts),
        retries: traffic.retries.as_ref().map_or(defaults.retries, |retries| Retries {
            attempts: count(retries.attempts, defaults.retries.attempts),
            budget_percent: count(retries.budget_percent, defaults.retries.budget_percent),
        }),
        overflow: traffic.overflow.as_ref().map_or(defaults.overflow, overflow),
        outliers: traffic.outlier_detection.as_ref().map_or(defaults.outliers, outliers),
        probe: traffic.health_check.as_ref().map(|check| Probe {
            path: check.path.clone(),
            interval: span(check.interval.as_ref(), Duration::from_secs(10)).max(Duration::from_millis(100)),
        }),
    }
}

fn affinity(affinity: &traffic::Affinity) -> Option<Affinity> {
    let key = match affinity.key {
        traffic::AffinityKey::Prefix => AffinityKey::Prefix,
        traffic::AffinityKey::Caller => AffinityKey::Caller,
        traffic::AffinityKey::Header => {
            AffinityKey::Header(HeaderName::from_bytes(affinity.header.as_ref()?.as_bytes()).ok()?)
        }
    };
    Some(Affinity { key, load_percent: count(affinity.load_percent, 125) })
}

fn timeouts(timeouts: &traffic::Timeouts) -> Timeouts {
    let defaults = Timeouts::default();
    Timeouts {
        connect: span(timeouts.connect.as_ref(), defaults.connect),
        first_byte: span(timeouts.first_byte.as_ref(), defaults.first_byte),
        idle: span(timeouts.idle.as_ref(), defaults.idle),
    }
}

fn overflow(overflow: &traffic::Overflow) -> Overflow {
    let limit = |number: Option<i64>| number.map(|number| count(Some(number), u32::MAX));
    Overflow {
        concurrent_requests: limit(overflow.concurrent_requests),
        queue_depth: limit(overflow.queue_depth),
        time_to_first_token: overflow.time_to_first_token.as_ref().and_then(|span| span.to_std()),
        return_after: span(overflow.return_after.as_ref(), Overflow::default().return_after),
    }
}

fn outliers(detection: &traffic::OutlierDetection) -> Outliers {
    let defaults = Outliers::default();
    Outliers {
        consecutive_failures: count(detection.consecutive_failures, defaults.consecutive_failures),
        ejection: span(detection.ejection_time.as_ref(), defaults.ejection),
        max_ejected_percent: count(detection.max_ejected_percent, defaults.max_ejected_percent),
    }
}

fn count(number: Option<i64>, default: u32) -> u32 {
    number.map_or(default, |number| u32::try_from(number.max(0)).unwrap_or(u32::MAX))
}

/// A span, or the default if there is none or it cannot be read (the API server refuses those).
fn span(span: Option<&modelplane_api::duration::Duration>, default: Duration) -> Duration {
    span.and_then(|span| span.to_std()).unwrap_or(default)
}

fn header_name(field: &str, name: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{field}: {name:?} is no header name"))
}

fn header_value(field: &str, value: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(value).map_err(|_| format!("{field}: {value:?} is no header value"))
}

#[cfg(test)]
mod tests;
