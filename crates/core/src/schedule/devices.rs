//! The distinct devices of a fleet, and the distinct sets of devices a node may have.
//!
//! Thousands of pools describe the same few kinds of node. Descriptions are recognised by their raw bytes
//! first and by what they say second: two writers may order the fields of equal devices differently.

use std::borrow::Cow;

use modelplane_api::common::ClaimMode;
use modelplane_cel::device::{Attribute, Device, PreparedDevice};

use super::hash::FastMap;
use super::solver::ProfileIndex;
use super::wire;
use crate::document::{DecodeError, Document};

/// Every distinct device and every distinct profile.
#[derive(Debug, Default)]
pub(crate) struct Devices<'a> {
    pub(crate) devices: Vec<DeviceFacts<'a>>,
    pub(crate) profiles: Vec<Profile>,
}

/// A device of [`Devices`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DeviceIndex(u32);

/// The devices of one node, in published order.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) devices: Vec<DeviceIndex>,
    /// What could not be read, if anything: matching on this profile may fail for no better reason.
    pub(crate) defect: Option<String>,
}

/// One distinct device.
#[derive(Debug)]
pub(crate) struct DeviceFacts<'a> {
    /// Its name, for people.
    pub(crate) name: &'a str,
    /// How many of it one node has; never negative.
    pub(crate) count: i64,
    /// Whether it lacks the driver that its names belong to.
    driverless: bool,
    /// What becomes of it when a request takes it.
    pub(crate) claim: Claimable<'a>,
    /// What selectors look at, unless the device says something no selector can read.
    pub(crate) prepared: Result<PreparedDevice<'a>, String>,
}

/// What becomes of a device that a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claimable<'a> {
    /// It is claimed through this DeviceClass.
    Through(&'a str),
    /// It is never claimed.
    Synthetic,
    /// It should be claimed but names no DeviceClass, so no request may take it.
    Nothing,
}

/// Numbers devices and profiles while a fleet is being read.
#[derive(Debug, Default)]
pub(crate) struct Interner<'a> {
    found: Devices<'a>,
    profile_by_bytes: FastMap<&'a [u8], ProfileIndex>,
    profile_by_content: FastMap<(Vec<DeviceIndex>, Option<String>), ProfileIndex>,
    device_by_bytes: FastMap<&'a [u8], DeviceIndex>,
    device_by_content: FastMap<wire::Device<'a>, DeviceIndex>,
}

impl<'a> Interner<'a> {
    /// The profile of a pool's list of devices.
    pub(crate) fn profile(&mut self, devices: Option<Document<'a>>) -> ProfileIndex {
        let bytes = devices.map(|list| list.bytes()).unwrap_or_default();
        if let Some(profile) = self.profile_by_bytes.get(bytes) {
            return *profile;
        }
        let content = self.read(devices);
        let next = ProfileIndex(index(self.found.profiles.len()));
        let profile = *self.profile_by_content.entry(content).or_insert_with_key(|(devices, defect)| {
            self.found.profiles.push(Profile { devices: devices.clone(), defect: defect.clone() });
            next
        });
        self.profile_by_bytes.insert(bytes, profile);
        profile
    }

    /// Everything found.
    pub(crate) fn finish(self) -> Devices<'a> {
        self.found
    }

    fn read(&mut self, devices: Option<Document<'a>>) -> (Vec<DeviceIndex>, Option<String>) {
        let Some(list) = devices else { return (Vec::new(), None) };
        let items: Vec<Document<'a>> = match list.decode() {
            Ok(items) => items,
            Err(error) => return (Vec::new(), Some(format!("devices cannot be read: {error}"))),
        };
        let mut defect = None;
        let mut indices = Vec::with_capacity(items.len());
        for (position, item) in items.into_iter().enumerate() {
            match self.device(item) {
                Ok(device) => {
                    if let Some(why) = self.found.device(device).defect() {
                        defect.get_or_insert(format!("devices[{position}] {why}"));
                    }
                    indices.push(device);
                }
                Err(error) => {
                    defect.get_or_insert(format!("devices[{position}] cannot be read: {error}"));
                }
            }
        }
        (indices, defect)
    }

    fn device(&mut self, document: Document<'a>) -> Result<DeviceIndex, DecodeError> {
        if let Some(device) = self.device_by_bytes.get(document.bytes()) {
            return Ok(*device);
        }
        let content: wire::Device<'a> = document.decode()?;
        let next = DeviceIndex(index(self.found.devices.len()));
        let device = *self.device_by_content.entry(content).or_insert_with_key(|content| {
            self.found.devices.push(DeviceFacts::new(content));
            next
        });
        self.device_by_bytes.insert(document.bytes(), device);
        Ok(device)
    }
}

impl<'a> Devices<'a> {
    /// A device.
    pub(crate) fn device(&self, device: DeviceIndex) -> &DeviceFacts<'a> {
        &self.devices[device.0 as usize]
    }

    /// A profile.
    pub(crate) fn profile(&self, profile: ProfileIndex) -> &Profile {
        &self.profiles[profile.0 as usize]
    }
}

impl DeviceIndex {
    /// Its place in [`Devices::devices`].
    pub(crate) fn position(self) -> usize {
        self.0 as usize
    }
}

impl<'a> DeviceFacts<'a> {
    fn new(wire: &wire::Device<'a>) -> Self {
        let class = wire.device_class_name.filter(|class| !class.is_empty());
        let claim = match (wire.claim.unwrap_or_default(), class) {
            (ClaimMode::Synthetic, _) => Claimable::Synthetic,
            (ClaimMode::Dra, Some(class)) => Claimable::Through(class),
            (ClaimMode::Dra, None) => Claimable::Nothing,
        };
        Self {
            name: wire.name.unwrap_or("(unnamed)"),
            count: wire.count.unwrap_or(0).max(0),
            driverless: wire.driver.unwrap_or_default().is_empty(),
            claim,
            prepared: selectable(wire)
                .and_then(|device| PreparedDevice::new(device).map_err(|error| error.to_string())),
        }
    }

    /// What keeps the device from being used by anybody.
    fn defect(&self) -> Option<String> {
        if self.driverless {
            return Some(format!("({}) has no driver", self.name));
        }
        match (&self.prepared, self.claim) {
            (Err(error), _) => Some(format!("({}) cannot be read by selectors: {error}", self.name)),
            (Ok(_), Claimable::Nothing) => {
                Some(format!("({}) has claim DRA but no deviceClassName", self.name))
            }
            (Ok(_), _) => None,
        }
    }
}

/// A device as selectors see it (spec cel §2). Of several values of one attribute the first of int, bool,
/// string, version counts, as in Kubernetes.
fn selectable<'a>(wire: &wire::Device<'a>) -> Result<Device<'a>, String> {
    let attributes = wire.attributes.iter().flatten().map(|(name, attribute)| {
        let value = attribute.as_ref().and_then(|attribute| match *attribute {
            wire::Attribute { int: Some(int), .. } => Some(Attribute::Int(int)),
            wire::Attribute { bool: Some(bit), .. } => Some(Attribute::Bool(bit)),
            wire::Attribute { string: Some(text), .. } => Some(Attribute::String(text.into())),
            wire::Attribute { version: Some(text), .. } => Some(Attribute::Version(text.into())),
            _ => None,
        });
        value
            .map(|value| (Cow::Borrowed(*name), value))
            .ok_or_else(|| format!("attribute {name} has no value"))
    });
    let capacity = wire.capacity.iter().flatten().filter_map(|(name, capacity)| {
        Some((Cow::Borrowed(*name), Cow::Borrowed(capacity.as_ref()?.value?)))
    });
    Ok(Device {
        driver: wire.driver.unwrap_or_default().into(),
        attributes: attributes.collect::<Result<_, _>>()?,
        capacity: capacity.collect(),
        allow_multiple_allocations: false,
    })
}

fn index(length: usize) -> u32 {
    u32::try_from(length).expect("a request of less than 4 GiB holds fewer than 2^32 devices")
}
