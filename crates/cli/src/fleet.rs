//! A fleet from manifests: what `render`, `plan`, `explain` and `status` work on.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use modelplane_api::normalize::normalize;
use modelplane_core::simulate::{ObjectKey, Options, Simulation, Unready};

use crate::manifests::{Manifest, Place, Sources};
use crate::outcome::CommandError;

/// Which manifests, and how the simulation treats them.
#[derive(Debug, Clone, Args)]
pub(crate) struct FleetArguments {
    #[command(flatten)]
    sources: Sources,

    /// Keep composed resources from becoming ready: Kind, Kind/name or a resource key, with * as wildcard
    #[arg(long, value_name = "PATTERN")]
    unready: Vec<String>,

    /// Do not assume that credentials and tokens missing from the manifests exist
    #[arg(long)]
    no_assume: bool,
}

/// Manifests applied in order, ready to be simulated.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// Objects by identity; of several with the same one the last counts, as with `kubectl apply`.
    pub(crate) manifests: BTreeMap<ObjectKey, Manifest>,
    /// Manifests that another one with the same identity took the place of.
    pub(crate) replaced: Vec<(ObjectKey, Place)>,
    options: Options,
}

impl FleetArguments {
    /// The same treatment of other manifests: those under `path`.
    pub(crate) fn of_path(&self, path: &Path) -> Self {
        Self { sources: self.sources.of_path(path), ..self.clone() }
    }

    /// A fleet without anything, treated the same.
    pub(crate) fn nothing(&self) -> Fleet {
        Fleet { manifests: BTreeMap::new(), replaced: Vec::new(), options: self.options() }
    }

    /// Reads the manifests; either published shape is accepted.
    pub(crate) fn load(&self) -> Result<Fleet, CommandError> {
        let mut manifests: BTreeMap<ObjectKey, Manifest> = BTreeMap::new();
        let mut replaced = Vec::new();
        for mut manifest in self.sources.load_all()? {
            if let Err(error) = normalize(&mut manifest.body) {
                let place = manifest.start();
                return Err(CommandError::new(format!("{place}: {error}")));
            }
            modelplane_api::apply_defaults(&mut manifest.body);
            place_in_namespace(&mut manifest.body);
            let key = ObjectKey::of(&manifest.body);
            if let Some(earlier) = manifests.insert(key.clone(), manifest) {
                replaced.push((key, earlier.start()));
            }
        }
        Ok(Fleet { manifests, replaced, options: self.options() })
    }

    fn options(&self) -> Options {
        let unready = self.unready.iter().cloned().map(Unready).collect();
        Options { unready, assume_inputs: !self.no_assume, ..Options::default() }
    }
}

/// Gives a namespaced object that names no namespace the one `kubectl` would.
fn place_in_namespace(body: &mut serde_json::Value) {
    let api_version = body["apiVersion"].as_str().unwrap_or_default();
    let info = modelplane_api::kind::find(api_version, body["kind"].as_str().unwrap_or_default());
    if info.is_some_and(|info| info.scope == modelplane_api::kind::Scope::Namespaced)
        && body["metadata"]["namespace"].is_null()
    {
        body["metadata"]["namespace"] = "default".into();
    }
}

impl Fleet {
    /// A simulation of the fleet, not run yet.
    pub(crate) fn simulation(&self) -> Simulation {
        let objects = self.manifests.values().map(|manifest| manifest.body.clone());
        Simulation::new(objects, self.options.clone())
    }
}
