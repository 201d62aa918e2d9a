//! A fleet from manifests or a running control plane: what `render`, `plan`, `explain` and `status` work on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use modelplane_api::normalize::normalize;
use modelplane_core::simulate::{ObjectKey, Options, Simulation, Unready};

use crate::live::LiveArguments;
use crate::manifests::{Manifest, Place, Sources};
use crate::outcome::CommandError;
use crate::process;

/// Which manifests, and how the simulation treats them.
#[derive(Debug, Clone, Args)]
pub(crate) struct FleetArguments {
    #[command(flatten)]
    sources: Sources,

    #[command(flatten)]
    treatment: Treatment,
}

/// Manifests, or, if none are named, a running control plane.
#[derive(Debug, Clone, Args)]
pub(crate) struct FleetOrLiveArguments {
    /// Files or folders with manifests (.yaml, .yml, .json), or - for standard input; without, the running
    /// control plane is read
    #[arg(short = 'f', long = "filename", value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Read folders below the given ones too
    #[arg(short = 'R', long, requires = "paths")]
    recursive: bool,

    #[command(flatten)]
    treatment: Treatment,

    #[command(flatten)]
    live: LiveArguments,
}

/// How the simulation treats what it is given.
#[derive(Debug, Clone, Args)]
struct Treatment {
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

impl FleetOrLiveArguments {
    /// The fleet, and whether it stands still: from manifests once simulated, live as it is.
    pub(crate) fn settled(&self) -> Result<(Simulation, bool), CommandError> {
        if self.paths.is_empty() {
            let options = self.treatment.options();
            let fleet = async { self.live.connect().await?.fleet(options).await };
            return Ok((process::runtime()?.block_on(fleet)?, true));
        }
        let sources = Sources::new(self.paths.clone(), self.recursive);
        let fleet = FleetArguments { sources, treatment: self.treatment.clone() };
        Ok(fleet.load()?.settled())
    }
}

impl FleetArguments {
    /// The same treatment of other manifests: those under `path`.
    pub(crate) fn of_path(&self, path: &Path) -> Self {
        Self { sources: self.sources.of_path(path), ..self.clone() }
    }

    /// A fleet without anything, treated the same.
    pub(crate) fn nothing(&self) -> Fleet {
        Fleet { manifests: BTreeMap::new(), replaced: Vec::new(), options: self.treatment.options() }
    }

    /// How a simulation of other objects is to behave.
    pub(crate) fn options(&self) -> Options {
        self.treatment.options()
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
        Ok(Fleet { manifests, replaced, options: self.treatment.options() })
    }
}

impl Treatment {
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
    /// A simulation of the fleet run to its end, and whether it has come to a rest.
    pub(crate) fn settled(&self) -> (Simulation, bool) {
        let mut simulation = self.simulation();
        let converged = simulation.run().converged;
        (simulation, converged)
    }

    /// A simulation of the fleet, not run yet.
    pub(crate) fn simulation(&self) -> Simulation {
        let objects = self.manifests.values().map(|manifest| manifest.body.clone());
        Simulation::new(objects, self.options.clone())
    }
}
