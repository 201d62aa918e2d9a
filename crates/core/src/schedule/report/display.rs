//! The report in plain words, one line per fact, indented below what it is about.

use std::fmt::{Display, Formatter, Result};

use super::{
    ClusterRejection, ClusterReport, DeviceRejection, DeviceReport, EngineReport, PoolRejection, PoolReport,
    ReplicaOutcome, ReplicaReport, Report, Verdict,
};
use crate::schedule::plan::RemovalReason;
use crate::schedule::problem::NewReplicas;

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "{}: {} of {} replicas placed", self.deployment, self.placed, self.wanted)?;
        if self.new_replicas == NewReplicas::HeldByCache {
            writeln!(f, "  new replicas wait for the model cache")?;
        }
        for replica in &self.replicas {
            writeln!(f, "  {replica}")?;
        }
        for cluster in &self.clusters {
            writeln!(f, "  {cluster}")?;
        }
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
        }
        Ok(())
    }
}

impl Display for ReplicaReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "replica {} ({} #{}): {}", self.name, self.cluster, self.index, self.outcome)?;
        for engine in &self.pools {
            write!(f, ", engine {} on pool {}", engine.engine, engine.pool)?;
        }
        Ok(())
    }
}

impl Display for ReplicaOutcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Placed => f.write_str("new"),
            Self::Retained => f.write_str("stays"),
            Self::Kept { why } => write!(f, "left as it is, because {why}"),
            Self::Removed { why, in_place: false } => write!(f, "goes, because {why}"),
            Self::Removed { why, in_place: true } => {
                write!(f, "goes, because {why}; another takes its place under the same name")
            }
        }
    }
}

impl Display for RemovalReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::NotACandidate => {
                f.write_str("its cluster is gone or no longer has the labels of clusterSelector and cache")
            }
            Self::Duplicate => f.write_str("another replica has the same cluster and index"),
            Self::Evicted { taint } => {
                write!(f, "its cluster has the NoExecute taint {taint}, which is not tolerated")
            }
            Self::EngineCount { replica, deployment } => {
                write!(f, "it has {replica} engines where the deployment has {deployment}")
            }
            Self::UnknownEngine { engine } => write!(f, "the deployment has no engine {engine:?} for it"),
            Self::MemberCount { engine } => write!(f, "the number of members of engine {engine} changed"),
            Self::RoleChanged { engine } => write!(f, "the roles of the members of engine {engine} changed"),
            Self::NoPool { engine } => write!(f, "a member of engine {engine} names no node pool"),
            Self::PoolGone { pool } => write!(f, "its cluster no longer publishes pool {pool}"),
            Self::NoMatch { engine, pool } => {
                write!(f, "the devices of pool {pool} no longer satisfy engine {engine}")
            }
            Self::NothingToClaim { engine } => write!(f, "no member of engine {engine} claims a device"),
            Self::Surplus => f.write_str("fewer replicas are wanted"),
        }
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::Chosen => "chosen",
            Self::Retained => "retained",
            Self::Available => "available",
            Self::Rejected => "rejected",
        })
    }
}

impl Display for ClusterReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "cluster {}: {}", self.name, self.verdict())?;
        let mut separator = if self.verdict() == Verdict::Rejected { ": " } else { ", takes no other: " };
        for rejection in &self.rejections {
            write!(f, "{separator}{rejection}")?;
            separator = "; ";
        }
        for pool in &self.pools {
            write!(f, "\n    {pool}")?;
        }
        Ok(())
    }
}

impl Display for ClusterRejection {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let label = |f: &mut Formatter<'_>, key: &str, wanted: &str, found: &Option<String>| match found {
            Some(found) => write!(f, "label {key} is {found}, not {wanted}"),
            None => write!(f, "label {key} is missing, wanted {wanted}"),
        };
        match self {
            Self::Label { key, wanted, found } => label(f, key, wanted, found),
            Self::CacheFootprint { key, wanted, found } => {
                f.write_str("not covered by the model cache: ")?;
                label(f, key, wanted, found)
            }
            Self::Unreadable { why } => write!(f, "cannot be read: {why}"),
            Self::NotReady => f.write_str("not ready"),
            Self::NoGateway => f.write_str("its gateway has no address"),
            Self::Taint { taint } => write!(f, "taint {taint} is not tolerated"),
            Self::NoPool { engine } => write!(f, "no pool takes engine {engine}"),
        }
    }
}

impl Display for PoolReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "pool {} ({} of {} nodes free)", self.name, self.free, self.nodes)?;
        if let Some(defect) = &self.defect {
            write!(f, " [{defect}]")?;
        }
        let mut separator = ": ";
        for engine in &self.engines {
            write!(f, "{separator}{engine}")?;
            separator = "; ";
        }
        Ok(())
    }
}

impl Display for EngineReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "engine {} ", self.engine)?;
        if self.rejections.is_empty() {
            return f.write_str("fits");
        }
        f.write_str("does not fit: ")?;
        join(f, &self.rejections, "; ")
    }
}

impl Display for PoolRejection {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::NoDevices { member, request } => {
                write!(f, "{member} asks for {request}, but the nodes have no devices")
            }
            Self::NoMatch { member, request, devices } => {
                write!(f, "{member} asks for {request}: ")?;
                join(f, devices, ", ")
            }
            Self::Stranded { member } => {
                write!(f, "{member} could claim nothing here, but can on another pool")
            }
            Self::NothingToClaim => f.write_str("no member claims a device here or on another pool"),
            Self::TooFewNodes { needed, free, total } => {
                write!(f, "needs {needed} nodes, {free} of {total} are free")
            }
        }
    }
}

impl Display for DeviceReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "device {} {}", self.device, self.why)
    }
}

impl Display for DeviceRejection {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Selector { selector, inputs, error } => {
                write!(f, "fails `{selector}`")?;
                let mut separator = ", where ";
                for input in inputs {
                    write!(f, "{separator}{} is {}", input.path, input.value)?;
                    separator = " and ";
                }
                match error {
                    Some(error) => write!(f, " ({error})"),
                    None => Ok(()),
                }
            }
            Self::TooFew { needed, left, total } if left == total => {
                write!(f, "comes {total} to a node where {needed} are asked for")
            }
            Self::TooFew { needed, left, total } => {
                write!(f, "has {left} of {total} left on a node where {needed} are asked for")
            }
            Self::NoDeviceClass => f.write_str("has claim DRA but no deviceClassName"),
            Self::Unreadable { why } => write!(f, "cannot be read: {why}"),
        }
    }
}

fn join<T: Display>(f: &mut Formatter<'_>, items: &[T], separator: &str) -> Result {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            f.write_str(separator)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}
