//! Content negotiation: which media type the client wants back, and which one it sent.
//!
//! JSON and YAML are spoken, and protobuf of built-in kinds is read. It is not written: clients that accept JSON
//! as well get that, others get 406.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

use crate::status::{ApiError, ApiResult};

/// The serialization of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
}

impl Format {
    /// The media type.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::Json => "application/json",
            Format::Yaml => "application/yaml",
        }
    }
}

/// What the client wants an object or a list turned into (`;as=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Object,
    /// `meta.k8s.io` Table of this version (`v1` or `v1beta1`).
    Table(&'static str),
    /// `meta.k8s.io` PartialObjectMetadata of this version, or its list.
    Metadata(&'static str),
}

/// An acceptable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accept {
    pub(crate) format: Format,
    pub(crate) view: View,
}

/// One media range of an `Accept` header.
pub(crate) struct MediaRange<'a> {
    pub(crate) media_type: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl MediaRange<'_> {
    /// A parameter's value, e.g. of `as`.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }
}

/// The media ranges of an `Accept` header, most wanted first.
pub(crate) fn media_ranges(header: &str) -> Vec<MediaRange<'_>> {
    let mut ranges: Vec<MediaRange<'_>> = header
        .split(',')
        .filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next().filter(|media_type| !media_type.is_empty())?;
            let parameters: Vec<(&str, &str)> = parts
                .filter_map(|parameter| parameter.split_once('='))
                .map(|(key, value)| (key.trim(), value.trim().trim_matches('"')))
                .collect();
            let quality = parameters
                .iter()
                .find(|(key, _)| *key == "q")
                .and_then(|(_, value)| value.parse().ok())
                .unwrap_or(1.0);
            Some(MediaRange { media_type, parameters, quality })
        })
        .collect();
    ranges.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    ranges
}

fn format_of(media_type: &str) -> Option<Format> {
    match media_type {
        "application/json" | "application/*" | "*/*" => Some(Format::Json),
        "application/yaml" => Some(Format::Yaml),
        _ => None,
    }
}

fn view_of(range: &MediaRange<'_>) -> Option<View> {
    let Some(kind) = range.parameter("as") else { return Some(View::Object) };
    if range.parameter("g") != Some("meta.k8s.io") {
        return None;
    }
    let version = match range.parameter("v")? {
        "v1" => "v1",
        "v1beta1" => "v1beta1",
        _ => return None,
    };
    match kind {
        "Table" => Some(View::Table(version)),
        "PartialObjectMetadata" | "PartialObjectMetadataList" => Some(View::Metadata(version)),
        _ => None,
    }
}

/// The best answer for a resource request.
pub(crate) fn accept(headers: &HeaderMap) -> ApiResult<Accept> {
    let Some(header) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else {
        return Ok(Accept { format: Format::Json, view: View::Object });
    };
    if header.trim().is_empty() {
        return Ok(Accept { format: Format::Json, view: View::Object });
    }
    media_ranges(header)
        .iter()
        .find_map(|range| Some(Accept { format: format_of(range.media_type)?, view: view_of(range)? }))
        .ok_or_else(|| {
            ApiError::not_acceptable(
                "application/json, application/yaml, application/json;as=Table;v=v1;g=meta.k8s.io, \
                 application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            )
        })
}

/// The media type of the body without parameters; JSON when absent.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match header.split(';').next().unwrap_or_default().trim() {
        "" => "application/json",
        media_type => media_type,
    }
}

/// The serialization of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    Json,
    Yaml,
    /// Of built-in kinds only.
    Protobuf,
}

/// What Kubernetes calls its protobuf.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The format of an object sent in a create or update.
pub(crate) fn body_format(headers: &HeaderMap) -> ApiResult<BodyFormat> {
    match content_type(headers) {
        "application/json" => Ok(BodyFormat::Json),
        "application/yaml" => Ok(BodyFormat::Yaml),
        PROTOBUF => Ok(BodyFormat::Protobuf),
        _ => Err(ApiError::unsupported_media_type("application/json, application/yaml")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiate(header: &'static str) -> Result<Accept, u16> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, header.parse().unwrap());
        accept(&headers).map_err(|error| error.code)
    }

    #[test]
    fn the_first_understood_media_range_wins() {
        let json = |view| Ok(Accept { format: Format::Json, view });
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(negotiate(kubectl), json(View::Table("v1")));
        assert_eq!(negotiate("application/vnd.kubernetes.protobuf,application/json"), json(View::Object));
        assert_eq!(negotiate("*/*"), json(View::Object));
        assert_eq!(negotiate("application/json;q=0.1, application/yaml").unwrap().format, Format::Yaml);
        assert_eq!(negotiate("application/vnd.kubernetes.protobuf"), Err(406));
        assert_eq!(negotiate("application/json;as=Chart;v=v1;g=meta.k8s.io"), Err(406));
    }
}
