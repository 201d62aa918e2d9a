//! The compositions, one file per kind, and the table that finds the one for a composite.

pub mod object;

use crate::contract::{ComposeError, Desired, Observed};

/// A composition.
pub type Composition = for<'a> fn(&Observed<'a>) -> Result<Desired<'a>, ComposeError>;

/// The composition of a kind, by `apiVersion` and kind of the composite; `None` if it has none.
pub fn composition(api_version: &str, kind: &str) -> Option<Composition> {
    let (group, _) = api_version.split_once('/')?;
    COMPOSITIONS.iter().find(|(g, k, _)| *g == group && *k == kind).map(|(_, _, composition)| *composition)
}

/// Group, kind, composition; one line per kind.
const COMPOSITIONS: &[(&str, &str, Composition)] = &[];
