//! The distinct devices of a fleet, and the distinct sets of devices a node may have.
//!
//! Thousands of pools describe the same few kinds of node. A device is recognised by its raw bytes first and by
//! what it says second: Go, and so Crossplane, writes the fields of equal devices in a different order each
//! time. Whole lists are not looked up by their bytes, because those orders multiply.

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
    profile_by_devices: FastMap<Vec<DeviceIndex>, ProfileIndex>,
    device_by_bytes: FastMap<&'a [u8], DeviceIndex>,
    device_by_content: FastMap<wire::Device<'a>, DeviceIndex>,
    /// Scratch space for the devices of one pool.
    devices: Vec<DeviceIndex>,
}

impl<'a> Interner<'a> {
    /// The profile of a pool's list of devices.
    pub(crate) fn profile(&mut self, devices: Option<Document<'a>>) -> ProfileIndex {
        self.devices.clear();
        let unread = devices.and_then(|devices| self.read(devices).err());
        if let (None, Some(known)) = (&unread, self.profile_by_devices.get(self.devices.as_slice())) {
            return *known;
        }
        let profile = ProfileIndex(index(self.found.profiles.len()));
        let flawed = self.devices.iter().find_map(|device| self.found.device(*device).defect());
        if unread.is_none() {
            self.profile_by_devices.insert(self.devices.clone(), profile);
        }
        self.found.profiles.push(Profile { devices: self.devices.clone(), defect: unread.or(flawed) });
        profile
    }

    /// Everything found.
    pub(crate) fn finish(self) -> Devices<'a> {
        self.found
    }

    /// Numbers the devices that can be read, and tells of the first that cannot.
    fn read(&mut self, list: Document<'a>) -> Result<(), String> {
        let items: Vec<Document<'a>> =
            list.decode().map_err(|error| format!("devices cannot be read: {error}"))?;
        let mut read = Ok(());
        for (position, item) in items.into_iter().enumerate() {
            match self.device(item) {
                Ok(device) => self.devices.push(device),
                Err(error) => {
                    read = read.and(Err(format!("devices[{position}] cannot be read: {error}")));
                }
            }
        }
        read
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
            (Err(error), _) => Some(format!("device {} cannot be read by selectors: {error}", self.name)),
            (Ok(_), Claimable::Nothing) => {
                Some(format!("device {} has claim DRA but no deviceClassName", self.name))
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
