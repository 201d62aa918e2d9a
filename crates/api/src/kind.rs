//! The table of kinds: what a kind is called, where it lives, how it is printed, which functions compose it.

pub mod table;

/// Whether objects of a kind live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One object of a name per cluster.
    Cluster,
    /// One object of a name per namespace.
    Namespaced,
}

impl Scope {
    /// The scope as definitions spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Namespaced => "Namespaced",
        }
    }
}

/// A column that `kubectl get` prints for a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrinterColumn {
    /// Heading.
    pub name: &'static str,
    /// Type, as in a CustomResourceDefinition.
    pub type_: &'static str,
    /// JSON path of the value.
    pub json_path: &'static str,
}

/// Paths of the scale subresource of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Path of the desired number of replicas.
    pub spec_replicas_path: &'static str,
    /// Path of the current number of replicas.
    pub status_replicas_path: &'static str,
}

/// One step of the pipeline that composes a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name of the step, e.g. `compose-model-deployment`.
    pub name: &'static str,
    /// Name of the Crossplane Function the step calls.
    pub function: &'static str,
}

/// Everything about a kind that is not its schema.
#[derive(Clone, Copy, Debug)]
pub struct KindInfo {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in URLs.
    pub plural: &'static str,
    /// Short names for `kubectl`.
    pub short_names: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub scope: Scope,
    /// Categories for `kubectl get`.
    pub categories: &'static [&'static str],
    /// Columns printed beside the name.
    pub printer_columns: &'static [PrinterColumn],
    /// The scale subresource, if the kind has one.
    pub scale: Option<Scale>,
    /// Name of the Composition.
    pub composition: &'static str,
    /// Steps of the Composition's pipeline, in order.
    pub steps: &'static [Step],
    /// Whether the definition declares a status.
    pub(crate) declares_status: bool,
    /// Derives the schema of the kind's objects.
    pub(crate) schema: fn() -> serde_json::Value,
}

/// An object of one of the API's kinds.
pub trait Object: serde::de::DeserializeOwned + serde::Serialize + Clone + Default {
    /// The kind.
    const INFO: &'static KindInfo;
    /// What the user asks for.
    type Spec;
    /// What is reported back.
    type Status;

    /// The object's metadata.
    fn metadata(&self) -> &crate::common::ObjectMeta;
}

/// Declares the object type of a kind: `kind! { /// doc  X { spec: XSpec, status: XStatus } = table::X }`.
macro_rules! kind {
    ($(#[doc = $doc:literal])* $name:ident { spec: $spec:ty, status: $status:ty } = $info:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// API group and version.
            #[serde(default)]
            pub api_version: String,
            /// Kind.
            #[serde(default)]
            pub kind: String,
            /// Metadata.
            #[serde(default, deserialize_with = "crate::wire::nullable")]
            pub metadata: crate::common::ObjectMeta,
            /// What is asked for.
            pub spec: $spec,
            /// What is reported back.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub status: Option<$status>,
        }

        impl $name {
            /// An object of this kind with its `apiVersion` and `kind` filled in.
            pub fn new(metadata: crate::common::ObjectMeta, spec: $spec) -> Self {
                let info = <Self as crate::kind::Object>::INFO;
                Self {
                    api_version: info.api_version(),
                    kind: info.kind.to_owned(),
                    metadata,
                    spec,
                    status: None,
                }
            }
        }

        impl crate::kind::Object for $name {
            const INFO: &'static crate::kind::KindInfo = &crate::kind::table::$info;
            type Spec = $spec;
            type Status = $status;

            fn metadata(&self) -> &crate::common::ObjectMeta {
                &self.metadata
            }
        }

        impl crate::schema::Documented for $name {
            const DESCRIPTION: &'static str = concat!($($doc, "\n",)*);
        }
    };
}
pub(crate) use kind;

impl KindInfo {
    /// Group and version as objects spell them, e.g. `modelplane.ai/v1alpha1`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Name of the definition: plural and group.
    pub fn definition_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

pub use table::{ALL, MODELPLANE};

/// The kind with this API version and kind, if it is one of ours.
pub fn find(api_version: &str, kind: &str) -> Option<&'static KindInfo> {
    let (group, version) = api_version.split_once('/')?;
    ALL.iter().copied().find(|info| info.group == group && info.version == version && info.kind == kind)
}

/// Why a document is not of one of our kinds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownKind {
    /// The document does not say what it is.
    #[error("{field} is missing")]
    Untyped {
        /// The field it lacks.
        field: &'static str,
    },
    /// The kind exists under another API version.
    #[error("apiVersion of {kind} is {expected:?}, not {found:?}")]
    WrongVersion {
        /// The kind.
        kind: String,
        /// What the document says.
        found: String,
        /// What it should say.
        expected: String,
    },
    /// No kind of ours.
    #[error("unknown kind {kind:?} in {api_version:?}")]
    Foreign {
        /// API version of the document.
        api_version: String,
        /// Kind of the document.
        kind: String,
    },
}

/// The kind of a document.
pub fn of(document: &serde_json::Value) -> Result<&'static KindInfo, UnknownKind> {
    let text = |field: &'static str| document[field].as_str().ok_or(UnknownKind::Untyped { field });
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    if let Some(info) = find(api_version, kind) {
        return Ok(info);
    }
    let (kind, found) = (kind.to_owned(), api_version.to_owned());
    Err(match ALL.iter().find(|info| info.kind == kind) {
        // A kind of the same name may well exist in somebody else's group.
        Some(info) if found.contains("modelplane") || !found.contains('/') => {
            UnknownKind::WrongVersion { kind, found, expected: info.api_version() }
        }
        _ => UnknownKind::Foreign { api_version: found, kind },
    })
}
