//! The default catalog: InferenceClasses for the hardware people have, embedded from `package/catalog`.
//!
//! Each class states the attributes and the capacity that the device's DRA driver publishes, which is what
//! selectors are evaluated against, so memory is the usable amount and not the one on the box. The public
//! source of every figure is in the comment at the head of its file. Nothing here is applied by itself:
//! `modelplane catalog show NAME` prints a class to be applied.
//!
//! A class is added by putting its file into `package/catalog` and its name into the table below.

/// A class of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Name of the class.
    pub name: &'static str,
    /// What a node of the class is, in one line.
    pub summary: &'static str,
    /// The cloud that can provision it, as `spec.provisioning.provider` spells it, or [`EXISTING`].
    pub provider: &'static str,
    /// The manifest, with the sources of its figures in comments.
    pub yaml: &'static str,
}

/// [`Entry::provider`] of classes for nodes that exist already.
pub const EXISTING: &str = "Existing";

/// Every class, by name.
pub fn list() -> Vec<Entry> {
    FILES.iter().map(|(name, yaml)| entry(name, yaml)).collect()
}

/// The class of that name.
pub fn show(name: &str) -> Option<Entry> {
    FILES.iter().find(|(known, _)| *known == name).map(|(name, yaml)| entry(name, yaml))
}

/// Reads the two lines a listing needs; the files have one layout, which the tests hold them to.
fn entry(name: &'static str, yaml: &'static str) -> Entry {
    let value = |field: &str| yaml.lines().find_map(|line| line.strip_prefix(field)).map(str::trim);
    Entry {
        name,
        summary: value("  description: ").unwrap_or_default(),
        provider: value("    provider: ").unwrap_or(EXISTING),
        yaml,
    }
}

/// Name and text of each file, sorted by name.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../package/catalog/", $name, ".yaml")))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "aks-a100-40-8x",
    "aks-a100-80-8x",
    "aks-a100-80-pcie-1x",
    "aks-a100-80-pcie-4x",
    "aks-h100-8x",
    "aks-h200-8x",
    "doks-h100-1x",
    "doks-h100-8x",
    "doks-h200-1x",
    "doks-h200-8x",
    "doks-l40s-1x",
    "eks-a100-40-8x",
    "eks-a100-80-8x",
    "eks-a10g-1x",
    "eks-a10g-4x",
    "eks-a10g-8x",
    "eks-b200-8x",
    "eks-h100-1x",
    "eks-h100-8x",
    "eks-h100-8x-efa",
    "eks-h200-8x",
    "eks-h200-8x-efa",
    "eks-l4-1x",
    "eks-l4-4x",
    "eks-l4-8x",
    "eks-l40s-1x",
    "eks-l40s-4x",
    "eks-l40s-8x",
    "existing-a100-40-1x",
    "existing-a100-40-8x",
    "existing-a100-80-1x",
    "existing-a100-80-8x",
    "existing-a100-80-pcie-1x",
    "existing-a10g-1x",
    "existing-b200-8x",
    "existing-gb200-4x",
    "existing-h100-1x",
    "existing-h100-8x",
    "existing-h200-1x",
    "existing-h200-8x",
    "existing-l4-1x",
    "existing-l4-8x",
    "existing-l40s-1x",
    "existing-l40s-8x",
    "existing-mi300x-1x",
    "existing-mi300x-8x",
    "gke-a100-40-1x",
    "gke-a100-40-8x",
    "gke-a100-80-1x",
    "gke-a100-80-8x",
    "gke-b200-8x",
    "gke-h100-8x",
    "gke-h200-8x",
    "gke-l4-1x",
    "gke-l4-8x",
    "nebius-b200-1x",
    "nebius-b200-8x",
    "nebius-h100-1x",
    "nebius-h100-8x",
    "nebius-h200-1x",
    "nebius-h200-8x",
    "nebius-l40s-1x",
    "vultr-a100-80-1x",
    "vultr-b200-8x",
    "vultr-l40s-1x",
    "vultr-l40s-8x",
];
