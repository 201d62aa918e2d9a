//! The catalog's files against the API and against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use modelplane_api::common::{Device, DeviceAttribute};
use modelplane_api::inference_class::{InferenceClass, Provisioning};
use modelplane_cel::device::{self as cel, Attribute, PreparedDevice, Selector};
use modelplane_core::catalog::{self, EXISTING, Entry};
use serde_json::Value;

fn value(entry: &Entry) -> Value {
    serde_saphyr::from_str(entry.yaml).unwrap_or_else(|error| panic!("{}: {error}", entry.name))
}

fn class(entry: &Entry) -> InferenceClass {
    serde_json::from_value(value(entry)).unwrap_or_else(|error| panic!("{}: {error}", entry.name))
}

fn gpu(class: &InferenceClass) -> &Device {
    class.spec.devices.iter().find(|device| device.name == "gpu").expect("every class has a device gpu")
}

/// Whether a selector, evaluated as Kubernetes does, matches a device as its driver publishes it.
fn matches(selector: &str, device: &Device) -> bool {
    let attribute = |value: &DeviceAttribute| match value {
        DeviceAttribute { string: Some(text), .. } => Attribute::String(text.clone().into()),
        DeviceAttribute { version: Some(text), .. } => Attribute::Version(text.clone().into()),
        DeviceAttribute { bool: Some(value), .. } => Attribute::Bool(*value),
        DeviceAttribute { int: Some(value), .. } => Attribute::Int(*value),
        _ => panic!("{}: an attribute has no value", device.name),
    };
    let published = cel::Device {
        driver: device.driver.clone().into(),
        attributes: device.attributes.iter().map(|(name, value)| (name.into(), attribute(value))).collect(),
        capacity: device
            .capacity
            .iter()
            .map(|(name, amount)| (name.into(), (&amount.value).into()))
            .collect(),
        allow_multiple_allocations: false,
    };
    let device = PreparedDevice::new(published).unwrap_or_else(|error| panic!("{error}"));
    let selector = Selector::compile(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
    selector.matches(&device).unwrap_or(false)
}

/// Name, type of accelerator and number of accelerators of the recipe's blocks.
fn blocks(provisioning: &Provisioning) -> Vec<(&'static str, i64)> {
    let count = |block, accelerator: Option<&modelplane_api::inference_class::Accelerator>| {
        accelerator.map(|accelerator| (block, accelerator.count))
    };
    [
        count("GKE", provisioning.gke.as_ref().map(|block| &block.accelerator)),
        count("EKS", provisioning.eks.as_ref().map(|block| &block.accelerator)),
        count("AKS", provisioning.aks.as_ref().map(|block| &block.accelerator)),
        count("Nebius", provisioning.nebius.as_ref().map(|block| &block.accelerator)),
        count("Vultr", provisioning.vultr.as_ref().map(|block| &block.accelerator)),
        count("DOKS", provisioning.doks.as_ref().map(|block| &block.accelerator)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_file_is_listed_once_under_its_own_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../package/catalog");
    let files: BTreeSet<String> = std::fs::read_dir(&folder)
        .expect("the folder of the catalog")
        .filter_map(|file| {
            file.expect("a file").file_name().to_str()?.strip_suffix(".yaml").map(str::to_owned)
        })
        .collect();
    let listed: Vec<&str> = catalog::list().iter().map(|entry| entry.name).collect();
    assert_eq!(listed, files.iter().map(String::as_str).collect::<Vec<_>>(), "sorted, complete and unique");
}

#[test]
fn a_listing_says_what_the_manifest_says() {
    for entry in catalog::list() {
        let class = class(&entry);
        assert_eq!(class.metadata.name, entry.name);
        assert_eq!(class.spec.description.as_deref(), Some(entry.summary), "{}", entry.name);
        let provider = value(&entry)["spec"]["provisioning"]["provider"].as_str().map(str::to_owned);
        assert_eq!(provider.as_deref().unwrap_or(EXISTING), entry.provider, "{}", entry.name);
        assert_eq!(catalog::show(entry.name), Some(entry));
    }
    assert_eq!(catalog::show("no-such-class"), None);
}

#[test]
fn every_class_is_an_inference_class_and_nothing_else() {
    for entry in catalog::list() {
        let again = serde_json::to_value(class(&entry)).expect("a class serialises");
        assert_eq!(again, value(&entry), "{}: a field is unknown or misspelt", entry.name);
    }
}

#[test]
fn a_recipe_is_for_its_provider_and_has_as_many_accelerators_as_the_class() {
    for entry in catalog::list() {
        let class = class(&entry);
        let Some(provisioning) = &class.spec.provisioning else { continue };
        assert_eq!(blocks(provisioning), [(entry.provider, gpu(&class).count.expect("a count"))]);
    }
}

#[test]
fn classes_of_one_product_agree_on_what_it_is() {
    let mut products: BTreeMap<String, (String, Value)> = BTreeMap::new();
    for entry in catalog::list() {
        let class = class(&entry);
        let gpu = gpu(&class);
        let Some(product) = gpu.attributes.get("productName").and_then(|name| name.string.clone()) else {
            continue;
        };
        let facts = serde_json::json!([gpu.driver, gpu.attributes, gpu.capacity]);
        let (first, known) =
            products.entry(product).or_insert_with(|| (entry.name.to_owned(), facts.clone()));
        assert_eq!(*known, facts, "{} and {first} describe the same product differently", entry.name);
    }
    assert_eq!(products.len(), 11, "{:?}", products.keys());
}

#[test]
fn memory_is_the_usable_amount() {
    let cases = [
        ("an L4 passes 20Gi", "gke-l4-1x", "20Gi", true),
        ("an L4 has less than the 24Gi on its box", "gke-l4-1x", "24Gi", false),
        ("an A10G has less than the 24Gi on its box", "eks-a10g-1x", "24Gi", false),
        ("an A100 40GB passes 35Gi", "gke-a100-40-1x", "35Gi", true),
        ("an L40S passes 40Gi", "eks-l40s-1x", "40Gi", true),
        ("an L40S has less than 48Gi", "doks-l40s-1x", "48Gi", false),
        ("an H100 passes 79Gi", "nebius-h100-1x", "79Gi", true),
        ("an H100 has less than 80Gi", "doks-h100-8x", "80Gi", false),
        ("an A100 80GB passes 80Gi", "aks-a100-80-pcie-1x", "80Gi", true),
        ("an H200 passes 140Gi", "eks-h200-8x", "140Gi", true),
        ("an H200 has less than 141Gi", "eks-h200-8x", "141Gi", false),
        ("a B200 passes 179Gi", "vultr-b200-8x", "179Gi", true),
        ("a B200 has less than 180Gi", "nebius-b200-8x", "180Gi", false),
        ("a GB200 passes 180Gi", "existing-gb200-4x", "180Gi", true),
        ("an MI300X has less than the 192Gi on its box", "existing-mi300x-8x", "192Gi", false),
    ];
    for (name, class_name, wanted, passes) in cases {
        let class = class(&catalog::show(class_name).expect("a class of the catalog"));
        let gpu = gpu(&class);
        let selector =
            format!("device.capacity[\"{}\"].memory.compareTo(quantity(\"{wanted}\")) >= 0", gpu.driver);
        assert_eq!(matches(&selector, gpu), passes, "{name}");
    }
}

#[test]
fn selectors_as_people_write_them_find_what_they_mean() {
    let cases = [
        ("eks-h100-8x", r#"device.driver == "gpu.nvidia.com""#, true),
        ("eks-h100-8x", r#"device.attributes["gpu.nvidia.com"].type == "gpu""#, true),
        ("eks-h100-8x", r#"device.attributes["gpu.nvidia.com"].architecture == "Hopper""#, true),
        ("eks-l40s-1x", r#"device.attributes["gpu.nvidia.com"].architecture == "Hopper""#, false),
        ("aks-h200-8x", r#"device.attributes["gpu.nvidia.com"].productName.contains("H200")"#, true),
        (
            "gke-b200-8x",
            r#"device.attributes["gpu.nvidia.com"].cudaComputeCapability.compareTo(semver("9.0.0")) >= 0"#,
            true,
        ),
        (
            "gke-a100-80-8x",
            r#"device.attributes["gpu.nvidia.com"].cudaComputeCapability.isGreaterThan(semver("8.6.0"))"#,
            false,
        ),
        ("existing-mi300x-8x", r#"device.attributes["gpu.amd.com"].type == "amdgpu""#, true),
        (
            "existing-mi300x-8x",
            r#"device.capacity["gpu.amd.com"].computeUnits.compareTo(quantity("300")) > 0"#,
            true,
        ),
        ("existing-mi300x-8x", r#"device.driver == "gpu.nvidia.com""#, false),
        // What a class does not state matches nothing: the driver's version depends on the node.
        (
            "eks-h100-8x",
            r#"device.attributes["gpu.nvidia.com"].driverVersion.isGreaterThan(semver("1.0.0"))"#,
            false,
        ),
    ];
    for (name, selector, expected) in cases {
        let class = class(&catalog::show(name).expect("a class of the catalog"));
        assert_eq!(matches(selector, gpu(&class)), expected, "{name}: {selector}");
    }
}

#[test]
fn every_class_is_valid() {
    for entry in catalog::list() {
        let problems = modelplane_api::validate::validate(&value(&entry)).expect("a kind of ours");
        assert!(problems.is_empty(), "{}: {problems:?}", entry.name);
    }
}

#[test]
fn every_figure_has_a_public_source() {
    for entry in catalog::list() {
        let comments = entry.yaml.lines().take_while(|line| line.starts_with('#'));
        let sources = comments.filter(|line| line.contains("https://")).count();
        assert!(sources >= 2, "{} names {sources} sources", entry.name);
    }
}

#[test]
fn every_provider_has_classes() {
    let providers: BTreeSet<&str> = catalog::list().iter().map(|entry| entry.provider).collect();
    assert_eq!(providers, BTreeSet::from(["AKS", "DOKS", "EKS", EXISTING, "GKE", "Nebius", "Vultr"]));
}
