//! Ages as tables show them.

use jiff::Timestamp;

/// The time since a timestamp as `kubectl` prints ages: `45s`, `3m20s`, `2d5h`, `1y3d`.
pub(crate) fn age(timestamp: &str, now: Timestamp) -> String {
    let Ok(then) = timestamp.parse::<Timestamp>() else { return "<unknown>".to_owned() };
    duration(now.as_second() - then.as_second())
}

/// A duration in seconds, with as much precision as its size deserves.
pub(crate) fn duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |large: i64, large_unit: char, small: i64, small_unit: char| match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds / MINUTE, 'm', seconds % MINUTE, 's'),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds / HOUR, 'h', seconds % HOUR / MINUTE, 'm'),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds / DAY, 'd', seconds % DAY / HOUR, 'h'),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds / YEAR, 'y', seconds % YEAR / DAY, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ages_are_short() {
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (3600, "60m"),
            (4 * 3600 + 120, "4h2m"),
            (47 * 3600, "47h"),
            (3 * 86_400 + 3600, "3d1h"),
            (400 * 86_400, "400d"),
            (3 * 365 * 86_400, "3y"),
            (-5, "<invalid>"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(super::duration(seconds), expected, "{seconds}");
        }
    }
}
