//! Structural schemas: what a CustomResourceDefinition says about its objects.

mod node;

pub use node::{Additional, Kind, ListType, MapType, PatchStrategy, Schema};
