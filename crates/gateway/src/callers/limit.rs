//! A token bucket: so much a minute, the whole of it at once if need be. Time is an argument.

use std::time::{Duration, Instant};

/// Something that refills at a steady rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    per_minute: u32,
    /// May be negative: what is charged afterwards is charged whole.
    level: f64,
    at: Instant,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn full(per_minute: u32, now: Instant) -> Self {
        Self { per_minute, level: f64::from(per_minute), at: now }
    }

    /// Changes the rate; the level stays, unless it no longer fits.
    pub(crate) fn set_rate(&mut self, per_minute: u32, now: Instant) {
        self.refill(now);
        self.per_minute = per_minute;
        self.level = self.level.min(f64::from(per_minute));
    }

    /// Takes one, or says how long to wait for it.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.refill(now);
        self.wait_for(1.0)?;
        self.level -= 1.0;
        Ok(())
    }

    /// Whether anything is left, or how long to wait until there is.
    pub(crate) fn ready(&mut self, now: Instant) -> Result<(), Duration> {
        self.refill(now);
        self.wait_for(f64::MIN_POSITIVE)
    }

    /// Takes what was used, whether it is there or not.
    pub(crate) fn charge(&mut self, used: u64, now: Instant) {
        self.refill(now);
        self.level -= used as f64;
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        let most = f64::from(self.per_minute);
        self.level = (self.level + passed * most / 60.0).min(most);
        self.at = self.at.max(now);
    }

    fn wait_for(&self, level: f64) -> Result<(), Duration> {
        // A refill that falls short by a rounding error is no reason to wait.
        let missing = level - self.level - 1e-9;
        if missing <= 0.0 {
            return Ok(());
        }
        if self.per_minute == 0 {
            return Err(Duration::from_secs(3600));
        }
        let seconds = missing * 60.0 / f64::from(self.per_minute);
        Err(Duration::from_secs_f64(seconds.min(3600.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_rate_and_no_more() {
        let start = Instant::now();
        let mut bucket = Bucket::full(60, start);
        for _ in 0..60 {
            bucket.take(start).unwrap();
        }
        assert_eq!(bucket.take(start).unwrap_err().as_secs_f64().round(), 1.0);
        bucket.take(start + Duration::from_secs(1)).unwrap();
        assert!(bucket.take(start + Duration::from_millis(1_500)).is_err());
        assert!(bucket.take(start + Duration::from_secs(2)).is_ok());
    }

    #[test]
    fn what_was_overdrawn_must_refill_first() {
        let start = Instant::now();
        let mut bucket = Bucket::full(600, start);
        bucket.charge(1_200, start);
        let wait = bucket.ready(start).unwrap_err();
        assert_eq!(wait.as_secs_f64().round(), 60.0);
        assert!(bucket.ready(start + Duration::from_secs(61)).is_ok());
    }

    #[test]
    fn a_rate_of_nothing_gives_nothing() {
        let now = Instant::now();
        assert_eq!(Bucket::full(0, now).take(now), Err(Duration::from_secs(3600)));
    }
}
