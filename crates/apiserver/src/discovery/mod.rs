//! What the server tells about itself: groups, versions, resources, schemas; and the forms clients ask for.

pub(crate) mod human;
pub(crate) mod openapi;
pub(crate) mod partial;
pub(crate) mod resources;
pub(crate) mod table;
