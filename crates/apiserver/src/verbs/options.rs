//! Options of writes: dry run, field manager, field validation.

use serde_json::Value;

use super::Context;
use crate::http::query::Query;
use crate::status::{ApiError, ApiResult, StatusCause};

/// What happens to fields the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The options of a create, update or patch.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    /// `fieldManager`, or the beginning of the user agent.
    pub(crate) manager: String,
    pub(crate) validation: FieldValidation,
    /// Only for an apply.
    pub(crate) force: bool,
}

const MAX_MANAGER_LENGTH: usize = 128;

fn invalid_option(kind: &str, cause: StatusCause) -> ApiError {
    ApiError::invalid("meta.k8s.io", kind, "", vec![cause])
}

/// `dryRun`: absent, or `All`.
pub(crate) fn dry_run(query: &Query, kind: &str) -> ApiResult<bool> {
    let mut dry = false;
    for value in query.all("dryRun").filter(|value| !value.is_empty()) {
        if value != "All" {
            let cause = StatusCause {
                reason: "FieldValueNotSupported".to_owned(),
                message: format!("Unsupported value: {value:?}: supported values: \"All\""),
                field: "dryRun".to_owned(),
            };
            return Err(invalid_option(kind, cause));
        }
        dry = true;
    }
    Ok(dry)
}

impl WriteOptions {
    /// Reads the options of a request; `kind` is the options object that errors name.
    pub(crate) fn of(context: &Context, kind: &str) -> ApiResult<WriteOptions> {
        let query = &context.query;
        let validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(other) => {
                let cause = StatusCause {
                    reason: "FieldValueNotSupported".to_owned(),
                    message: format!(
                        "Unsupported value: {other:?}: supported values: \"Ignore\", \"Strict\", \"Warn\""
                    ),
                    field: "fieldValidation".to_owned(),
                };
                return Err(invalid_option(kind, cause));
            }
        };
        let manager = match query.get("fieldManager") {
            Some(manager) if manager.len() > MAX_MANAGER_LENGTH || manager.chars().any(char::is_control) => {
                let why = "may not be more than 128 bytes of printable characters";
                return Err(invalid_option(
                    kind,
                    StatusCause::invalid_value("fieldManager", &manager.into(), why),
                ));
            }
            Some(manager) => manager.to_owned(),
            None => manager_of_agent(context),
        };
        Ok(WriteOptions { dry_run: dry_run(query, kind)?, manager, validation, force: query.flag("force") })
    }

    /// Turns unknown and repeated fields into an error or warnings, as the client asked.
    pub(crate) fn judge_fields(
        &self,
        context: &mut Context,
        unknown: &[String],
        duplicates: &[String],
    ) -> ApiResult<()> {
        if unknown.is_empty() && duplicates.is_empty() {
            return Ok(());
        }
        let problems = duplicates
            .iter()
            .map(|field| format!("duplicate field \"{field}\""))
            .chain(unknown.iter().map(|field| format!("unknown field \"{field}\"")));
        match self.validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => context.warnings.extend(problems),
            FieldValidation::Strict => {
                let kind = &context.resource.kind;
                return Err(ApiError::bad_request(format!(
                    "{kind} in version \"{}\" cannot be handled as a {kind}: strict decoding error: {}",
                    context.version().name,
                    problems.collect::<Vec<_>>().join(", ")
                )));
            }
        }
        Ok(())
    }
}

fn manager_of_agent(context: &Context) -> String {
    let agent = context.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
    let name: String = agent
        .and_then(|agent| agent.split('/').next())
        .unwrap_or_default()
        .chars()
        .filter(|character| !character.is_control())
        .take(MAX_MANAGER_LENGTH)
        .collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// A `resourceVersion` parameter or field: absent, or a number.
pub(crate) fn revision(query: &Query, name: &str) -> ApiResult<Option<u64>> {
    query.get(name).map(parse_revision).transpose()
}

/// A resourceVersion as text.
pub(crate) fn parse_revision(text: &str) -> ApiResult<u64> {
    text.parse().map_err(|_| {
        let why = "resourceVersion must be a number";
        invalid_option("ListOptions", StatusCause::invalid_value("resourceVersion", &Value::from(text), why))
    })
}
