//! What can be done with a resource, one file per family of verbs.

pub(crate) mod convert;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod fields;
mod items;
pub(crate) mod kinds;
pub(crate) mod list;
pub(crate) mod modify;
pub(crate) mod options;
pub(crate) mod patch;
pub(crate) mod pods;
pub(crate) mod scale;
pub(crate) mod selection;
pub(crate) mod tokens;
pub(crate) mod update;
pub(crate) mod watch;

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use modelplane_store::Revision;
use serde_json::Value;

use crate::core::Core;
use crate::discovery::{partial, table};
use crate::http::negotiate::{Accept, Format, View};
use crate::http::query::Query;
use crate::http::request::{ResourcePath, Verb};
use crate::http::respond;
use crate::identity::Identity;
use crate::registry::resource::Special;
use crate::registry::{Resource, Version};
use crate::status::{ApiError, ApiResult};

/// A request for a served resource, once its path, version and answer form are known.
pub(crate) struct Context {
    pub(crate) core: Arc<Core>,
    pub(crate) identity: Identity,
    pub(crate) path: ResourcePath,
    pub(crate) verb: Verb,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) resource: Arc<Resource>,
    /// The index of the requested version.
    pub(crate) version: usize,
    pub(crate) accept: Accept,
    /// Sent as `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

impl Context {
    /// The requested version.
    pub(crate) fn version(&self) -> &Version {
        &self.resource.versions[self.version]
    }

    /// The namespace in the path.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.path.namespace.as_deref()
    }

    /// The name in the path; empty for collections.
    pub(crate) fn name(&self) -> &str {
        self.path.name.as_deref().unwrap_or_default()
    }

    /// The subresource in the path; empty for the object itself.
    pub(crate) fn subresource(&self) -> &str {
        self.path.subresource.as_deref().unwrap_or_default()
    }

    /// The store key of the object in the path.
    pub(crate) fn key(&self) -> String {
        self.resource.key(self.namespace(), self.name())
    }

    /// A stored object as the requested version has it.
    pub(crate) fn present(&self, stored: &[u8], revision: Revision) -> Value {
        convert::present(&self.resource, self.version, stored, revision)
    }

    /// A stored object's JSON in the requested version.
    pub(crate) fn render(&self, stored: &[u8], revision: Revision) -> Bytes {
        convert::render(&self.resource, self.version, stored, revision)
    }

    /// Answers with a stored object.
    pub(crate) fn answer(&self, code: StatusCode, stored: &[u8], revision: Revision) -> Response<Body> {
        let plain = self.accept == Accept { format: Format::Json, view: View::Object };
        if plain && !self.query.flag("pretty") {
            return self.warned(respond::json_bytes(code, self.render(stored, revision)));
        }
        self.answer_object(code, self.present(stored, revision))
    }

    /// Answers with an object of the requested version.
    pub(crate) fn answer_object(&self, code: StatusCode, object: Value) -> Response<Body> {
        let shown = match self.accept.view {
            View::Object => object,
            View::Table(version) => table::table(self, version, &[object]),
            View::Metadata(version) => partial::object(object, version),
        };
        self.answer_value(code, &shown)
    }

    /// Answers with any document.
    pub(crate) fn answer_value(&self, code: StatusCode, value: &Value) -> Response<Body> {
        self.warned(respond::document(code, self.accept.format, value, self.query.flag("pretty")))
    }

    /// Adds the warnings to an answer.
    pub(crate) fn warned(&self, mut response: Response<Body>) -> Response<Body> {
        let deprecated = self.version().deprecated.as_ref();
        for warning in deprecated.into_iter().chain(&self.warnings) {
            let text: String = warning
                .chars()
                .filter(|character| !character.is_control())
                .flat_map(|character| {
                    matches!(character, '"' | '\\').then_some('\\').into_iter().chain([character])
                })
                .collect();
            if let Ok(value) = http::HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
                response.headers_mut().append(http::header::WARNING, value);
            }
        }
        response
    }
}

/// Runs a request whose caller is authorized. `body` is what was sent with it.
pub(crate) async fn dispatch(mut context: Context, body: Bytes) -> ApiResult<Response<Body>> {
    check_scope(&context)?;
    if context.resource.rules.special == Special::Review {
        return crate::reviews::review(&context, &body);
    }
    let subresource = context.subresource().to_owned();
    match (context.verb, subresource.as_str()) {
        (Verb::Get, "" | "status") => get(&context),
        (Verb::Get, "scale") => scale::get(&context),
        (Verb::List, "") => list::list(&context),
        (Verb::Watch, "") => watch::watch(context),
        (Verb::Create, "") => create::create(&mut context, &body).await,
        (Verb::Create, "token") => tokens::create(&context, &body).await,
        (Verb::Create, name) => pods::create(&mut context, name, &body).await,
        (Verb::Update, "scale") | (Verb::Patch, "scale") => scale::change(&mut context, &body).await,
        (Verb::Update, _) => update::update(&mut context, &body).await,
        (Verb::Patch, _) => patch::patch(&mut context, &body).await,
        (Verb::Delete, "") => delete::delete(&mut context, &body).await,
        (Verb::DeleteCollection, "") => delete::delete_collection(&mut context, &body).await,
        _ => Err(ApiError::method_not_allowed()),
    }
}

fn check_scope(context: &Context) -> ApiResult<()> {
    let resource = &context.resource;
    if !resource.namespaced && context.path.namespace.is_some() {
        return Err(ApiError::no_such_resource());
    }
    let needs_namespace = context.path.name.is_some()
        || (context.verb == Verb::Create && resource.rules.special != Special::Review)
        || context.verb == Verb::DeleteCollection;
    if resource.namespaced && context.path.namespace.is_none() && needs_namespace {
        return match context.verb {
            Verb::Create | Verb::DeleteCollection => Err(ApiError::method_not_allowed()),
            _ => Err(ApiError::no_such_resource()),
        };
    }
    let served = match context.subresource() {
        "" => true,
        "status" => context.version().status,
        "scale" => context.version().scale.is_some(),
        "finalize" => resource.rules.special == Special::Namespace,
        other => crate::reviews::has_subresource(resource, other),
    };
    if served { Ok(()) } else { Err(ApiError::no_such_resource()) }
}

fn get(context: &Context) -> ApiResult<Response<Body>> {
    let asked = options::revision(&context.query, "resourceVersion")?.unwrap_or_default();
    let current = context.core.store.revision();
    if asked > current {
        return Err(ApiError::future_revision(asked, current));
    }
    let entry = context
        .core
        .read(&context.key())?
        .ok_or_else(|| ApiError::not_found(context.resource.target(context.name())))?;
    Ok(context.answer(StatusCode::OK, &entry.value, entry.modified))
}
