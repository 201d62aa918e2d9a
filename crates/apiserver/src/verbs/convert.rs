//! Between the version an object is stored in and the one a request uses.
//!
//! The only conversion is `None`: versions differ in `apiVersion` and in what their schemas keep.

use bytes::Bytes;
use modelplane_store::Revision;
use serde_json::Value;

use crate::object::encode;
use crate::registry::Resource;
use crate::registry::resource::Origin;

/// A stored object as a version has it.
pub(crate) fn present(resource: &Resource, version: usize, stored: &[u8], revision: Revision) -> Value {
    let mut object = encode::decode(stored, revision);
    if !resource.splices(version, revision) {
        to_version(resource, version, &mut object);
    }
    object
}

/// A stored object's JSON in a version; spliced from the stored bytes where their schema is current.
pub(crate) fn render(resource: &Resource, version: usize, stored: &[u8], revision: Revision) -> Bytes {
    if resource.splices(version, revision) {
        return resource.versions[version].head.answer(stored, revision);
    }
    let object = present(resource, version, stored, revision);
    resource.versions[version].head.answer(&encode::encode(&object), revision)
}

/// Appends the same to a buffer.
pub(crate) fn append(resource: &Resource, version: usize, out: &mut Vec<u8>, stored: (&[u8], Revision)) {
    let (stored, revision) = stored;
    if resource.splices(version, revision) {
        resource.versions[version].head.append(out, stored, revision);
    } else {
        out.extend_from_slice(&render(resource, version, stored, revision));
    }
}

fn to_version(resource: &Resource, version: usize, object: &mut Value) {
    let version = &resource.versions[version];
    set_api_version(object, &version.api_version);
    if let (Origin::Custom { .. }, Some(schema)) = (&resource.origin, version.schema.get()) {
        crate::schema::normalize(schema, object);
    }
}

/// An object of a request as it is to be stored; `None` if that is how it is.
pub(crate) fn for_storage(resource: &Resource, object: &Value) -> Option<Value> {
    if object.get("apiVersion").and_then(Value::as_str) == Some(resource.storage_version.as_str()) {
        return None;
    }
    let mut stored = object.clone();
    set_api_version(&mut stored, &resource.storage_version);
    let storage = resource.versions.iter().find(|version| version.api_version == resource.storage_version);
    if let (Origin::Custom { .. }, Some(schema)) =
        (&resource.origin, storage.and_then(|storage| storage.schema.get()))
    {
        crate::schema::normalize(schema, &mut stored);
    }
    Some(stored)
}

fn set_api_version(object: &mut Value, api_version: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), api_version.into());
    }
}
