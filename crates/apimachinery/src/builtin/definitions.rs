//! The vendored OpenAPI definitions, by name and by kind.
//!
//! They stay the text they are, because a process needs few of them: what is asked for is parsed at each call.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

const TEXT: &str = include_str!("../../../../third_party/kubernetes/schemas.json");

static DEFINITIONS: LazyLock<Definitions> = LazyLock::new(|| Definitions::read(TEXT));

/// Where each definition is in the text.
struct Definitions {
    by_name: BTreeMap<&'static str, &'static RawValue>,
    names: HashMap<GroupVersionKind<'static>, &'static str>,
}

#[derive(PartialEq, Eq, Hash, Deserialize)]
struct GroupVersionKind<'t> {
    group: &'t str,
    version: &'t str,
    kind: &'t str,
}

/// The kinds that a definition is of.
#[derive(Deserialize)]
struct Kinds<'t> {
    #[serde(rename = "x-kubernetes-group-version-kind", default, borrow)]
    kinds: Vec<GroupVersionKind<'t>>,
}

impl Definitions {
    fn read(text: &'static str) -> Self {
        let by_name: BTreeMap<&'static str, &'static RawValue> =
            serde_json::from_str(text).unwrap_or_default();
        let mut names = HashMap::new();
        for (name, definition) in &by_name {
            let kinds = serde_json::from_str::<Kinds<'_>>(definition.get()).map(|found| found.kinds);
            for kind in kinds.into_iter().flatten() {
                names.entry(kind).or_insert(*name);
            }
        }
        Self { by_name, names }
    }
}

/// The name of a kind's definition.
pub(super) fn name_of(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    let names: &HashMap<GroupVersionKind<'_>, &'static str> = &DEFINITIONS.names;
    names.get(&GroupVersionKind { group, version, kind }).copied()
}

/// A definition, parsed.
pub(super) fn get(name: &str) -> Option<Value> {
    let text = DEFINITIONS.by_name.get(name)?;
    serde_json::from_str(text.get()).ok()
}
