//! Label and field selectors of lists, watches and collection deletes.

use modelplane_apimachinery::selector::{FieldSelector, LabelSelector};
use serde_json::{Map, Value};

use super::Context;
use crate::http::query::Query;
use crate::object::encode::Glance;
use crate::registry::Resource;
use crate::status::{ApiError, ApiResult};

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// The name that a field selector insists on, read without knowing the kind; authorization comes before that.
pub(crate) fn only_name(query: &Query) -> Option<String> {
    let fields = FieldSelector::parse_any(query.get("fieldSelector")?).ok()?;
    let name = fields.required(NAME)?;
    // A name that is none cannot be meant by a rule.
    (!name.is_empty() && !name.contains(['/', '%']) && !matches!(name, "." | "..")).then(|| name.to_owned())
}

/// Which objects a request is about.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
    /// The only name that can match, known without reading objects.
    name: Option<String>,
    /// The fields are found in the key alone.
    shallow: bool,
}

impl Selection {
    /// Reads `labelSelector` and `fieldSelector`; a name in the path selects as well.
    pub(crate) fn of(context: &Context) -> ApiResult<Selection> {
        let labels = context
            .query
            .get("labelSelector")
            .map(LabelSelector::parse)
            .transpose()
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let supported: Vec<&str> =
            context.version().selectable.iter().map(|(field, _)| field.as_str()).collect();
        let text = context.query.get("fieldSelector");
        let fields = text
            .map(|text| FieldSelector::parse(text, &supported))
            .transpose()
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let terms = fields.iter().flat_map(|fields| &fields.terms);
        let shallow = terms.into_iter().all(|term| matches!(term.field.as_str(), NAME | NAMESPACE));
        let name = context
            .path
            .name
            .clone()
            .or_else(|| fields.as_ref().and_then(|fields| fields.required(NAME)).map(str::to_owned));
        Ok(Selection { labels, fields, name, shallow })
    }

    /// Whether every object matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_none() && self.fields.is_none() && self.name.is_none()
    }

    /// Whether a stored object matches.
    pub(crate) fn matches(&self, resource: &Resource, key: &str, stored: &[u8]) -> bool {
        if let Some(wanted) = &self.name
            && resource.split_key(key).1 != wanted
        {
            return false;
        }
        if let Some(labels) = &self.labels
            && !labels.matches(Glance::of(stored).labels.as_ref())
        {
            return false;
        }
        let Some(fields) = &self.fields else { return true };
        if self.shallow {
            let (namespace, name) = resource.split_key(key);
            return fields.terms.iter().all(|term| {
                let value = if term.field == NAME { name } else { namespace.unwrap_or_default() };
                (value == term.value) != term.negated
            });
        }
        fields.matches(&serde_json::from_slice(stored).unwrap_or(Value::Object(Map::new())))
    }
}
