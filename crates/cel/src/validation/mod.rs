//! Validation rules of CRDs (`x-kubernetes-validations`): `self` and `oldSelf` typed by an OpenAPI v3 schema.

mod schema;

pub(crate) use schema::SchemaNode;
