//! Points in time and spans as kubectl prints them, without a clock.

/// The seconds since 1970 of an RFC 3339 time; `None` if it is not one.
pub(super) fn seconds(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !(1..=12).contains(&month) {
        return None;
    }
    let rest =
        text.get(19..)?.trim_start_matches(|character: char| character == '.' || character.is_ascii_digit());
    let offset = match rest.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), ..] if rest.len() == 6 => {
            let minutes = rest.get(1..3)?.parse::<i64>().ok()? * 60 + rest.get(4..6)?.parse::<i64>().ok()?;
            if *sign == b'-' { -minutes * 60 } else { minutes * 60 }
        }
        _ => return None,
    };
    // Days since 1970 of a date of the Gregorian calendar, counting years from March.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second - offset)
}

/// A span as kubectl prints it: `45s`, `3m12s`, `5h`, `2d3h`, `3y41d` (`duration.HumanDuration`).
pub(super) fn span(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let years = days / 365;
    let two =
        |first: String, rest: i64, unit: &str| if rest == 0 { first } else { format!("{first}{rest}{unit}") };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(format!("{minutes}m"), seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(format!("{hours}h"), minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 192 => two(format!("{days}d"), hours % 24, "h"),
        () if hours < 24 * 365 * 2 => format!("{days}d"),
        () if hours < 24 * 365 * 8 => two(format!("{years}y"), days % 365, "d"),
        () => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_any_offset() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-11-21T07:59:23Z", Some(1_795_247_963)),
            ("2026-11-21T07:59:23.123456Z", Some(1_795_247_963)),
            ("2026-11-21T08:59:23+01:00", Some(1_795_247_963)),
            ("2024-02-29T12:00:00Z", Some(1_709_208_000)),
            ("soon", None),
            ("2026-13-21T07:59:23Z", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn spans_have_two_digits_of_meaning() {
        for (seconds, expected) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (7_261, "121m"),
            (3 * 3_600 + 120, "3h2m"),
            (9 * 3_600, "9h"),
            (50 * 3_600, "2d2h"),
            (30 * 86_400, "30d"),
            (800 * 86_400, "2y70d"),
            (9 * 365 * 86_400, "9y"),
        ] {
            assert_eq!(span(seconds), expected, "{seconds}");
        }
    }
}
