//! One served resource: its names, versions and the rules its objects follow.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use modelplane_apimachinery::builtin::BuiltinKind;
use modelplane_apimachinery::schema::Schema;
use modelplane_apimachinery::schema::metadata::NameRule;
use modelplane_store::Revision;
use serde_json::Value;
use tokio::sync::watch;

use crate::object::encode::Head;
use crate::object::json_path::JsonPath;
use crate::status::{Target, qualified};

/// A served resource.
#[derive(Debug)]
pub(crate) struct Resource {
    /// Empty for the legacy group.
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// The served versions, the preferred one first.
    pub(crate) versions: Vec<Version>,
    /// The `apiVersion` objects are stored with.
    pub(crate) storage_version: String,
    /// The storage version's schema, if that version is not served.
    pub(crate) prefix: String,
    pub(crate) rules: Rules,
    pub(crate) origin: Origin,
    /// Dropped or changed when watches on the resource must end.
    pub(crate) closed: watch::Sender<bool>,
}

/// How a kind's objects behave, beyond its schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) generation: Generation,
    pub(crate) name: NameRule,
    /// An update may come without a resourceVersion.
    pub(crate) unconditional_update: bool,
    /// A PUT to an absent name creates.
    pub(crate) create_on_update: bool,
    /// A create drops `status`.
    pub(crate) status_on_create: bool,
    pub(crate) special: Special,
}

/// What raises `metadata.generation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has none.
    None,
    /// A change outside of `metadata` and `status`.
    ExceptStatus,
    /// A change outside of `metadata`.
    ExceptMetadata,
}

/// Kinds the request path treats specially.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    None,
    Namespace,
    CustomResourceDefinition,
    Secret,
    ConfigMap,
    Service,
    Pod,
    /// A create that is answered and never stored, such as a SelfSubjectAccessReview.
    Review,
}

impl Special {
    /// Whether a create leaves an object in the store.
    pub(crate) fn is_stored(self) -> bool {
        self != Special::Review
    }
}

/// Where a resource comes from.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    BuiltIn(&'static BuiltinKind),
    /// A CustomResourceDefinition as of a revision. Objects older than it are brought up to its schema when
    /// they are read.
    Custom {
        revision: Revision,
        generation: i64,
    },
}

impl Origin {
    /// The generation of the definition, for custom resources.
    pub(crate) fn generation(&self) -> Option<i64> {
        match self {
            Origin::BuiltIn(_) => None,
            Origin::Custom { generation, .. } => Some(*generation),
        }
    }
}

/// One served version.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    /// `group/version`, or the version in the legacy group.
    pub(crate) api_version: String,
    pub(crate) head: Head,
    pub(crate) schema: LazySchema,
    /// `status` is a subresource.
    pub(crate) status: bool,
    pub(crate) scale: Option<Scale>,
    pub(crate) columns: Columns,
    /// Field selectors beyond `metadata.name` and `metadata.namespace`.
    pub(crate) selectable: Vec<(String, JsonPath)>,
    /// The warning a request for this version gets.
    pub(crate) deprecated: Option<String>,
}

/// The paths of the scale subresource, as field names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    pub(crate) spec_replicas: Vec<String>,
    pub(crate) status_replicas: Vec<String>,
    pub(crate) selector: Option<Vec<String>>,
}

/// One printer column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) path: JsonPath,
}

/// How a table of the kind looks, after the name.
#[derive(Debug)]
pub(crate) enum Columns {
    /// `additionalPrinterColumns`.
    Paths(Vec<Column>),
    BuiltIn(&'static BuiltinKind),
}

/// A schema that is parsed when first needed: most kinds are never used.
pub(crate) struct LazySchema {
    source: SchemaSource,
    parsed: OnceLock<Option<Arc<Schema>>>,
}

/// Where a schema's text is.
#[derive(Clone)]
pub(crate) enum SchemaSource {
    /// `spec.versions[index].schema.openAPIV3Schema` of a stored definition.
    Definition(Bytes, usize),
    /// A built-in kind's.
    BuiltIn(&'static BuiltinKind),
}

impl std::fmt::Debug for LazySchema {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LazySchema")
            .field("parsed", &self.parsed.get().is_some())
            .finish_non_exhaustive()
    }
}

impl LazySchema {
    /// A schema to be parsed from `source`.
    pub(crate) fn new(source: SchemaSource) -> LazySchema {
        LazySchema { source, parsed: OnceLock::new() }
    }

    /// The parsed schema.
    pub(crate) fn get(&self) -> Option<&Arc<Schema>> {
        self.parsed
            .get_or_init(|| match &self.source {
                SchemaSource::Definition(..) => crate::schema::shared(&self.document()?),
                SchemaSource::BuiltIn(kind) => Some(kind.schema()),
            })
            .as_ref()
    }

    /// The schema's text, for custom resources.
    pub(crate) fn document(&self) -> Option<Value> {
        let SchemaSource::Definition(definition, index) = &self.source else { return None };
        let mut definition: Value = serde_json::from_slice(definition).ok()?;
        let schema = definition.get_mut("spec")?.get_mut("versions")?.get_mut(*index)?.get_mut("schema")?;
        Some(schema.get_mut("openAPIV3Schema")?.take())
    }
}

impl Resource {
    /// The store key of an object.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{}{namespace}/{name}", self.prefix),
            None => format!("{}{name}", self.prefix),
        }
    }

    /// The store prefix of the resource's objects, or of those in one namespace.
    pub(crate) fn key_prefix(&self, namespace: Option<&str>) -> String {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{}{namespace}/", self.prefix),
            None => self.prefix.clone(),
        }
    }

    /// Namespace and name of one of the resource's keys.
    pub(crate) fn split_key<'k>(&self, key: &'k str) -> (Option<&'k str>, &'k str) {
        let rest = key.strip_prefix(self.prefix.as_str()).unwrap_or(key);
        match rest.split_once('/') {
            Some((namespace, name)) if self.namespaced => (Some(namespace), name),
            _ => (None, rest),
        }
    }

    /// The resource as errors name it.
    pub(crate) fn target<'a>(&'a self, name: &'a str) -> Target<'a> {
        Target { group: &self.group, resource: &self.plural, name }
    }

    /// `plural.group`.
    pub(crate) fn qualified(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// Whether objects written at `revision` in the storage version can be answered without decoding them.
    pub(crate) fn splices(&self, version: usize, revision: Revision) -> bool {
        let fresh = match self.origin {
            Origin::BuiltIn(_) => true,
            Origin::Custom { revision: definition, .. } => revision >= definition,
        };
        fresh && self.versions[version].api_version == self.storage_version
    }
}

/// `group/version`, or the version alone in the legacy group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The store prefix of a resource.
pub(crate) fn prefix(group: &str, plural: &str) -> String {
    format!("{}/{plural}/", if group.is_empty() { "core" } else { group })
}
