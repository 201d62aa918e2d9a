//! What a user means by `KIND/NAME`.

use modelplane_api::kind::{self, KindInfo, Scope};
use modelplane_core::simulate::{StoredObject, World};

use crate::outcome::CommandError;
use crate::view::full_name;

/// Whether a user may call the kind that: by kind, plural or short name, in any case.
pub(crate) fn is_called(info: &KindInfo, name: &str) -> bool {
    names(info).any(|known| known.eq_ignore_ascii_case(name))
}

fn names(info: &KindInfo) -> impl Iterator<Item = &'static str> {
    [info.kind, info.plural].into_iter().chain(info.short_names.iter().copied())
}

/// The kind of that name.
pub(crate) fn kind_called(name: &str) -> Result<&'static KindInfo, CommandError> {
    if let Some(info) = kind::ALL.iter().copied().find(|info| is_called(info, name)) {
        return Ok(info);
    }
    let lower = name.to_lowercase();
    let known: Vec<String> = kind::ALL.iter().flat_map(|info| names(info)).map(str::to_lowercase).collect();
    let error = CommandError::new(format!("there is no kind {name:?}"));
    Err(match closest(&lower, known.iter().map(String::as_str)) {
        Some(close) => error.with_hint(format!("did you mean {close}?")),
        None => error.with_hint("`modelplane xrds -o table` lists the kinds and their short names"),
    })
}

/// The object that `KIND/NAME` (or `KIND NAME`) means.
pub(crate) fn object<'w>(
    world: &'w World,
    reference: &[String],
    namespace: Option<&str>,
) -> Result<&'w StoredObject, CommandError> {
    let (kind_name, name) = match reference {
        [both] => both.split_once('/').unwrap_or((both, "")),
        [kind, name] => (kind.as_str(), name.as_str()),
        _ => ("", ""),
    };
    let info = kind_called(kind_name)?;
    let all: Vec<&StoredObject> = world.of_kind(info.group, info.kind).collect();
    let found: Vec<&StoredObject> = all
        .iter()
        .copied()
        .filter(|object| object.key.name == name)
        .filter(|object| namespace.is_none_or(|wanted| is_in(info, object, wanted)))
        .collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(not_found(info, name, namespace, &all)),
        several => {
            let namespaces: Vec<&str> = several.iter().map(|object| object.key.namespace.as_str()).collect();
            Err(CommandError::new(format!("{} {name} exists in several namespaces", info.kind))
                .with_hint(format!("name one with -n: {}", namespaces.join(", "))))
        }
    }
}

fn is_in(info: &KindInfo, object: &StoredObject, namespace: &str) -> bool {
    info.scope == Scope::Cluster || object.key.namespace == namespace
}

fn not_found(info: &KindInfo, name: &str, namespace: Option<&str>, all: &[&StoredObject]) -> CommandError {
    let place = match namespace.filter(|_| info.scope == Scope::Namespaced) {
        Some(namespace) => format!(" in namespace {namespace}"),
        None => String::new(),
    };
    let named = if name.is_empty() { "name one".to_owned() } else { format!("none is called {name:?}") };
    let error = CommandError::new(match all {
        [] => format!("there is no {} in this fleet", info.kind),
        _ if name.is_empty() => format!("which {}? {named}", info.kind),
        _ => format!("there is no {} {name:?}{place}", info.kind),
    });
    let same_name = all.iter().find(|object| object.key.name == name);
    let close = closest(name, all.iter().map(|object| object.key.name.as_str()));
    match (same_name, close) {
        (Some(elsewhere), _) => {
            error.with_hint(format!("there is one in namespace {}", elsewhere.key.namespace))
        }
        (None, Some(close)) => error.with_hint(format!("did you mean {close}?")),
        (None, None) if all.is_empty() => error.with_hint("give its manifests with -f"),
        (None, None) => {
            let known: Vec<String> = all.iter().map(|object| full_name(&object.key)).collect();
            error.with_hint(format!("there is {}", crate::view::some_of(&known, 8)))
        }
    }
}

/// The most similar of the known words, if any is similar enough to be a typing mistake.
pub(crate) fn closest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let likeness = |other: &str| strsim::jaro_winkler(word, other);
    let scored = known.map(|other| (likeness(other), other)).filter(|(score, _)| *score > 0.8);
    scored.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, word)| word)
}
