//! Why an object or a schema is refused, worded as an API server does.

use std::fmt;

use serde_json::Value;

use super::go_text::{go_json, quoted, shown};

/// The kind of a [`Cause`]: the `reason` in `Status.details.causes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CauseReason {
    /// A value is missing.
    Required,
    /// A value is malformed or out of bounds.
    Invalid,
    /// A value has the wrong type.
    TypeInvalid,
    /// A value is not among the allowed ones.
    NotSupported,
    /// A value that has to be unique occurs again.
    Duplicate,
    /// A value is not allowed here.
    Forbidden,
    /// A text is too long.
    TooLong,
    /// A list or a map has too many entries.
    TooMany,
    /// Something that is not the fault of the object.
    Internal,
}

impl CauseReason {
    /// The name in `Status.details.causes[].reason`.
    pub fn as_str(self) -> &'static str {
        self.texts().0
    }

    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Required => ("FieldValueRequired", "Required value"),
            Self::Invalid => ("FieldValueInvalid", "Invalid value"),
            Self::TypeInvalid => ("FieldValueTypeInvalid", "Invalid value"),
            Self::NotSupported => ("FieldValueNotSupported", "Unsupported value"),
            Self::Duplicate => ("FieldValueDuplicate", "Duplicate value"),
            Self::Forbidden => ("FieldValueForbidden", "Forbidden"),
            Self::TooLong => ("FieldValueTooLong", "Too long"),
            Self::TooMany => ("FieldValueTooMany", "Too many"),
            Self::Internal => ("InternalError", "Internal error"),
        }
    }

    /// Whether rules cannot be checked on an object with such a fault.
    pub(crate) fn blocks_rules(self) -> bool {
        matches!(
            self,
            Self::NotSupported | Self::Required | Self::TooLong | Self::TooMany | Self::TypeInvalid
        )
    }
}

/// One fault of one field; [`Display`](fmt::Display) gives `field: message`, as in `Status.message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The kind of the fault.
    pub reason: CauseReason,
    /// The path of the field, such as `spec.pools[2].name`; `<nil>` for the whole object.
    pub field: String,
    /// The message without the field, such as `Invalid value: "x": must be …`.
    pub message: String,
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.message)
    }
}

impl Cause {
    /// A fault with a message of which the value is a part.
    fn about(reason: CauseReason, field: impl Into<String>, value: Option<&str>, detail: &str) -> Self {
        let mut message = reason.texts().1.to_owned();
        for part in value.into_iter().chain((!detail.is_empty()).then_some(detail)) {
            message.push_str(": ");
            message.push_str(part);
        }
        let mut field = field.into();
        if field.is_empty() {
            field.push_str("<nil>");
        }
        Self { reason, field, message }
    }

    /// A missing value.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::about(CauseReason::Required, field, None, detail)
    }

    /// A malformed value.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::about(CauseReason::Invalid, field, Some(&shown(value)), detail)
    }

    /// A malformed value that is shown in its own way.
    pub(crate) fn invalid_shown(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        Self::about(CauseReason::Invalid, field, Some(shown), detail)
    }

    /// A malformed text.
    pub fn invalid_text(field: impl Into<String>, value: &str, detail: &str) -> Self {
        Self::about(CauseReason::Invalid, field, Some(&quoted(value)), detail)
    }

    /// A fault of a value that is too large to be shown.
    pub fn invalid_omitted(field: impl Into<String>, detail: &str) -> Self {
        Self::about(CauseReason::Invalid, field, None, detail)
    }

    /// A value of the wrong type, of which only the type or the text is shown.
    pub fn type_invalid(field: impl Into<String>, value: &str, detail: &str) -> Self {
        Self::about(CauseReason::TypeInvalid, field, Some(&quoted(value)), detail)
    }

    /// A value that is not among the supported ones.
    pub fn not_supported<'s>(
        field: impl Into<String>,
        value: &Value,
        supported: impl IntoIterator<Item = &'s Value>,
    ) -> Self {
        let names: Vec<String> = supported
            .into_iter()
            .map(|value| match value {
                Value::String(text) => quoted(text),
                other => quoted(&go_json(other)),
            })
            .collect();
        let detail = match names.is_empty() {
            true => String::new(),
            false => format!("supported values: {}", names.join(", ")),
        };
        Self::about(CauseReason::NotSupported, field, Some(&shown(value)), &detail)
    }

    /// A value that occurs a second time.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::about(CauseReason::Duplicate, field, Some(&shown(value)), "")
    }

    /// A value that occurs a second time and is too large to be shown.
    pub fn duplicate_omitted(field: impl Into<String>) -> Self {
        Self::about(CauseReason::Duplicate, field, None, "")
    }

    /// A value that is not allowed.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::about(CauseReason::Forbidden, field, None, detail)
    }

    /// A text that is too long.
    pub fn too_long(field: impl Into<String>, limit: u64) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::about(CauseReason::TooLong, field, None, &format!("may not be more than {limit} {unit}"))
    }

    /// A list or map with too many entries.
    pub fn too_many(field: impl Into<String>, count: usize, limit: u64) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {unit}");
        Self::about(CauseReason::TooMany, field, Some(&count.to_string()), &detail)
    }

    /// A fault that is not the object's.
    pub fn internal(field: impl Into<String>, detail: &str) -> Self {
        Self::about(CauseReason::Internal, field, None, detail)
    }
}
