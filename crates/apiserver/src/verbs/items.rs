//! The JSON of a list, made piece by piece while it is sent.
//!
//! A large list never is in memory as a whole. A page of a few hundred objects is one piece: smaller ones cost more in
//! passing them on than is gained by sending some while others are made.

use std::convert::Infallible;
use std::iter;
use std::sync::Arc;
use std::vec::IntoIter;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use modelplane_store::Entry;

use super::convert;
use crate::registry::Resource;

/// A piece is closed with the object that makes it this large.
const PIECE: usize = 1024 * 1024;
/// What an answer adds to an object as it is stored, about.
const ADDED: usize = 64;

/// What is left of a list.
pub(super) struct Items {
    resource: Arc<Resource>,
    version: usize,
    entries: IntoIter<Entry>,
    /// What comes before the next object; nothing once the list is closed.
    opening: Option<Vec<u8>>,
}

impl Items {
    /// A list of `entries` in a version of a resource; `opening` is its JSON up to the first item.
    pub(super) fn new(
        opening: Vec<u8>,
        resource: Arc<Resource>,
        version: usize,
        entries: Vec<Entry>,
    ) -> Items {
        Items { resource, version, entries: entries.into_iter(), opening: Some(opening) }
    }

    /// The body of the answer, of known length if it is one piece.
    pub(super) fn into_body(mut self) -> Body {
        let first = self.next().unwrap_or_default();
        if self.opening.is_none() {
            return Body::from(first);
        }
        Body::from_stream(stream::iter(iter::once(first).chain(self).map(Ok::<Bytes, Infallible>)))
    }
}

impl Iterator for Items {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut piece = self.opening.take()?;
        let (mut count, mut size) = (0, 0);
        for entry in self.entries.as_slice() {
            if size >= PIECE {
                break;
            }
            count += 1;
            size += entry.value.len() + ADDED;
        }
        piece.reserve(size);
        for (index, entry) in self.entries.by_ref().take(count).enumerate() {
            if index > 0 {
                piece.push(b',');
            }
            convert::append(&self.resource, self.version, &mut piece, (&entry.value, entry.modified));
        }
        if self.entries.as_slice().is_empty() {
            piece.extend_from_slice(b"]}");
        } else {
            self.opening = Some(vec![b',']);
        }
        Some(Bytes::from(piece))
    }
}
