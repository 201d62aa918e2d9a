//! Which pool comes nearest to taking an engine, and what it lacks.

use modelplane_core::schedule::{
    ClusterRejection, ClusterReport, DeviceRejection, DeviceReport, PoolRejection, PoolReport,
};

use crate::view::one_line;

/// A pool and why it does not take an engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pool<'r> {
    pub(crate) cluster: &'r str,
    pub(crate) pool: &'r PoolReport,
    pub(crate) engine: &'r str,
    pub(crate) rejection: &'r PoolRejection,
}

/// Every pool's first reason against the engine that finds no pool.
pub(crate) fn pools<'r>(clusters: &[&'r ClusterReport]) -> Vec<Pool<'r>> {
    let mut found = Vec::new();
    for cluster in clusters {
        let unplaced = cluster.rejections.iter().find_map(|rejection| match rejection {
            ClusterRejection::NoPool { engine } => Some(engine.as_str()),
            _ => None,
        });
        for pool in &cluster.pools {
            let engine = pool.engines.iter().find(|report| Some(report.engine.as_str()) == unplaced);
            if let Some((engine, rejection)) =
                engine.and_then(|engine| Some((engine, engine.rejections.first()?)))
            {
                found.push(Pool { cluster: &cluster.name, pool, engine: &engine.engine, rejection });
            }
        }
    }
    found
}

/// The pool that comes nearest.
pub(crate) fn nearest<'p, 'r>(pools: &'p [Pool<'r>]) -> Option<&'p Pool<'r>> {
    pools.iter().min_by_key(|pool| distance(pool.rejection))
}

/// The device that comes nearest.
pub(crate) fn nearest_device(devices: &[DeviceReport]) -> Option<&DeviceReport> {
    devices.iter().min_by_key(|device| device_distance(&device.why))
}

/// The device and what is wrong with it, with the values before the selector.
pub(crate) fn brief(device: &DeviceReport) -> String {
    match &device.why {
        DeviceRejection::Selector { selector, inputs, error: None } if !inputs.is_empty() => {
            let values: Vec<String> =
                inputs.iter().map(|input| format!("{} {}", short(&input.path), input.value)).collect();
            let (values, selector) = (values.join(" and "), one_line(selector));
            format!("{} has {values}, which fails `{selector}`", device.device)
        }
        _ => one_line(&device.to_string()),
    }
}

/// The last part of a field's path, which is what people call it.
fn short(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The smaller, the nearer a pool is to taking an engine.
fn distance(rejection: &PoolRejection) -> u8 {
    match rejection {
        PoolRejection::TooFewNodes { .. } => 0,
        PoolRejection::NoMatch { devices, .. } => {
            devices.iter().map(|device| device_distance(&device.why)).min().unwrap_or(7)
        }
        PoolRejection::Stranded { .. } => 7,
        PoolRejection::NothingToClaim => 8,
        PoolRejection::NoDevices { .. } => 9,
    }
}

fn device_distance(why: &DeviceRejection) -> u8 {
    match why {
        DeviceRejection::TooFew { .. } => 1,
        DeviceRejection::Selector { error: None, .. } => 2,
        DeviceRejection::Selector { error: Some(_), .. } => 3,
        DeviceRejection::NoDeviceClass => 4,
        DeviceRejection::Unreadable { .. } => 5,
    }
}
