//! Ranges of sizes and costs, saturating.

/// A size or cost between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) minimum: u64,
    pub(super) maximum: u64,
}

impl Bounds {
    pub(super) const UNKNOWN: Bounds = Bounds { minimum: 0, maximum: u64::MAX };
    pub(super) const ZERO: Bounds = Bounds { minimum: 0, maximum: 0 };
    pub(super) const ONE: Bounds = Bounds { minimum: 1, maximum: 1 };
    /// The start of a union.
    pub(super) const NOTHING: Bounds = Bounds { minimum: u64::MAX, maximum: 0 };

    pub(super) fn fixed(value: u64) -> Self {
        Self { minimum: value, maximum: value }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            minimum: self.minimum.saturating_add(other.minimum),
            maximum: self.maximum.saturating_add(other.maximum),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            minimum: self.minimum.saturating_mul(other.minimum),
            maximum: self.maximum.saturating_mul(other.maximum),
        }
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { minimum: scale(self.minimum, factor), maximum: scale(self.maximum, factor) }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self { minimum: self.minimum.min(other.minimum), maximum: self.maximum.max(other.maximum) }
    }
}

/// `value * factor`, rounded up, at most the largest number.
fn scale(value: u64, factor: f64) -> u64 {
    let value = value as f64;
    if value > 0.0 && factor > 0.0 && value > u64::MAX as f64 / factor {
        return u64::MAX;
    }
    // Casting saturates.
    (value * factor).ceil() as u64
}
