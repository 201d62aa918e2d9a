//! Timestamps with nanoseconds in the years 1 to 9999: RFC 3339 texts, arithmetic and calendar fields as in cel-go.
//!
//! A timestamp keeps the offset it was written with, which shows in its text only. Zone names are looked
//! up in the IANA database built into the program (`jiff`, about 0.2 MB), so that the result does not depend on the
//! host. There is no clock here.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::duration::{Duration, SECOND, TimeError};

/// `0001-01-01T00:00:00Z` in seconds since 1970.
const FIRST_SECOND: i64 = -62_135_596_800;
/// `9999-12-31T23:59:59Z` in seconds since 1970.
const LAST_SECOND: i64 = 253_402_300_799;
const SECONDS_PER_DAY: i64 = 86_400;
/// Larger offsets would not fit the reference's arithmetic.
const LONGEST_OFFSET_MINUTES: i64 = i64::MAX / (60 * SECOND);

/// A point in time; compared without regard to the offset it was written with.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    /// Since 1970, rounded down.
    seconds: i64,
    nanoseconds: u32,
    /// Seconds east of Greenwich.
    offset: i32,
}

/// What a timestamp's fields are computed in: an IANA zone or a fixed offset.
#[derive(Debug, Clone)]
pub struct Zone(ZoneKind);

#[derive(Debug, Clone)]
enum ZoneKind {
    /// Seconds east of Greenwich.
    Offset(i64),
    Named(TimeZone),
}

/// A calendar or clock field of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `getFullYear`.
    FullYear,
    /// `getMonth`, January is 0.
    Month,
    /// `getDayOfYear`, January 1st is 0.
    DayOfYear,
    /// `getDayOfMonth`, counted from 0.
    DayOfMonth,
    /// `getDate`, the day of the month counted from 1.
    Date,
    /// `getDayOfWeek`, Sunday is 0.
    DayOfWeek,
    /// `getHours`.
    Hours,
    /// `getMinutes`.
    Minutes,
    /// `getSeconds`.
    Seconds,
    /// `getMilliseconds`.
    Milliseconds,
}

impl Timestamp {
    /// The time that many seconds after 1970, which is also `timestamp(int)`.
    pub fn from_unix(seconds: i64) -> Result<Self, TimeError> {
        Self::new(seconds, 0, 0)
    }

    /// Reads an RFC 3339 text, with the leniencies of Go: an hour of one digit, a comma in front of the fraction.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let (seconds, nanoseconds, offset) = read(text)
            .ok_or_else(|| refused(text, "the form is 2006-01-02T15:04:05Z or 2006-01-02T15:04:05+01:00"))?;
        Self::new(seconds, nanoseconds, offset)
    }

    /// Seconds since 1970, rounded down, which is also `int(timestamp)`.
    pub fn unix(self) -> i64 {
        self.seconds
    }

    /// Whether this is the first representable time, which counts as the zero value.
    pub fn is_zero(self) -> bool {
        self.seconds == FIRST_SECOND && self.nanoseconds == 0
    }

    /// The time that much later.
    pub fn checked_add(self, duration: Duration) -> Result<Self, TimeError> {
        let length = duration.nanoseconds();
        let nanoseconds = i64::from(self.nanoseconds) + length.rem_euclid(SECOND);
        let seconds = self.seconds + length.div_euclid(SECOND) + nanoseconds / SECOND;
        Self::new(seconds, (nanoseconds % SECOND) as u32, self.offset)
    }

    /// The time that much earlier.
    pub fn checked_sub(self, duration: Duration) -> Result<Self, TimeError> {
        self.checked_add(duration.checked_neg()?)
    }

    /// How much later this time is than another.
    pub fn duration_since(self, earlier: Self) -> Result<Duration, TimeError> {
        (self.seconds - earlier.seconds)
            .checked_mul(SECOND)
            .and_then(|length| {
                length.checked_add(i64::from(self.nanoseconds) - i64::from(earlier.nanoseconds))
            })
            .map(Duration::from_nanoseconds)
            .ok_or(TimeError::DurationOverflow)
    }

    /// A field in UTC or in a zone; the offset the timestamp was written with does not count.
    pub fn field(self, field: Field, zone: Option<&Zone>) -> i64 {
        self.field_at(field, zone.map_or(0, |zone| zone.offset_at(self.seconds)))
    }

    fn field_at(self, field: Field, offset: i64) -> i64 {
        let local = self.seconds + offset;
        let (day, second) = (local.div_euclid(SECONDS_PER_DAY), local.rem_euclid(SECONDS_PER_DAY));
        match field {
            Field::FullYear => Date::of(day).year,
            Field::Month => Date::of(day).month - 1,
            Field::DayOfYear => day - day_number(Date::of(day).year, 1, 1),
            Field::DayOfMonth => Date::of(day).day - 1,
            Field::Date => Date::of(day).day,
            // 1970-01-01 was a Thursday.
            Field::DayOfWeek => (day + 4).rem_euclid(7),
            Field::Hours => second / 3600,
            Field::Minutes => second / 60 % 60,
            Field::Seconds => second % 60,
            Field::Milliseconds => i64::from(self.nanoseconds / 1_000_000),
        }
    }

    fn new(seconds: i64, nanoseconds: u32, offset: i32) -> Result<Self, TimeError> {
        if (FIRST_SECOND..=LAST_SECOND).contains(&seconds) {
            Ok(Self { seconds, nanoseconds, offset })
        } else {
            Err(TimeError::TimestampOverflow)
        }
    }
}

impl Zone {
    /// Reads a zone name such as `America/New_York`, or an offset such as `-02:30`; nothing means UTC.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let unknown = || TimeError::Zone(text.chars().take(64).collect());
        let Some((hours, minutes)) = text.split_once(':') else {
            return named_zone(text).map(Self).ok_or_else(unknown);
        };
        let (Ok(hours), Ok(minutes)) = (hours.parse::<i64>(), minutes.parse::<i64>()) else {
            return Err(unknown());
        };
        let minutes = if text.starts_with('-') { minutes.checked_neg() } else { Some(minutes) };
        hours
            .checked_mul(60)
            .zip(minutes)
            .and_then(|(hours, minutes)| hours.checked_add(minutes))
            .filter(|minutes| minutes.unsigned_abs() <= LONGEST_OFFSET_MINUTES.unsigned_abs())
            .map(|minutes| Self(ZoneKind::Offset(minutes * 60)))
            .ok_or_else(unknown)
    }

    fn offset_at(&self, seconds: i64) -> i64 {
        match &self.0 {
            ZoneKind::Offset(offset) => *offset,
            ZoneKind::Named(zone) => {
                // The last day of 9999 lies beyond the library's range; no zone changes its offset on it.
                let seconds = seconds.min(jiff::Timestamp::MAX.as_second());
                jiff::Timestamp::from_second(seconds)
                    .map_or(0, |timestamp| i64::from(zone.to_offset(timestamp).seconds()))
            }
        }
    }
}

fn named_zone(name: &str) -> Option<ZoneKind> {
    // The reference runs with UTC as its local zone.
    if matches!(name, "" | "UTC" | "Local") {
        return Some(ZoneKind::Offset(0));
    }
    let zone = TimeZoneDatabase::bundled().get(name).ok()?;
    // The database ignores case, the reference does not.
    (zone.iana_name() == Some(name)).then_some(ZoneKind::Named(zone))
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in the offset the timestamp was written with, the fraction without trailing zeros.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |field| self.field_at(field, i64::from(self.offset));
        let (year, month, date) = (part(Field::FullYear), part(Field::Month) + 1, part(Field::Date));
        let (hours, minutes, seconds) = (part(Field::Hours), part(Field::Minutes), part(Field::Seconds));
        write!(formatter, "{year:04}-{month:02}-{date:02}T{hours:02}:{minutes:02}:{seconds:02}")?;
        if self.nanoseconds > 0 {
            let digits = format!("{:09}", self.nanoseconds);
            write!(formatter, ".{}", digits.trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return formatter.write_str("Z");
        }
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.unsigned_abs() / 60;
        write!(formatter, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanoseconds).cmp(&(other.seconds, other.nanoseconds))
    }
}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timestamp {}

impl Hash for Timestamp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.seconds, self.nanoseconds).hash(state);
    }
}

fn refused(text: &str, cause: &'static str) -> TimeError {
    TimeError::Timestamp { text: text.chars().take(64).collect(), cause }
}

/// Seconds since 1970, nanoseconds, and offset of an RFC 3339 text.
fn read(text: &str) -> Option<(i64, u32, i32)> {
    let (date, rest) = text.split_once('T')?;
    let day = read_date(date)?;
    let (hour, rest) = rest.split_once(':')?;
    let hour = if hour.len() == 1 { digits(hour)? } else { two_digits(hour)? };
    let (minute, rest) = (two_digits(rest.get(..2)?)?, rest.get(2..)?.strip_prefix(':')?);
    let (second, rest) = (two_digits(rest.get(..2)?)?, rest.get(2..)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (nanoseconds, rest) = read_fraction(rest)?;
    let offset = read_offset(rest)?;
    let seconds = day * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - i64::from(offset);
    Some((seconds, nanoseconds, offset))
}

/// Day number of `2006-01-02`, if that day exists.
pub(crate) fn read_date(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (digits(text.get(..4)?)?, digits(text.get(5..7)?)?, digits(text.get(8..)?)?);
    let number = day_number(year, month, day);
    let exists = (1..=12).contains(&month) && Date::of(number) == Date { year, month, day };
    exists.then_some(number)
}

/// Nanoseconds of a fraction, further digits dropped, and what follows it.
fn read_fraction(text: &str) -> Option<(u32, &str)> {
    let Some(fraction) = text.strip_prefix(['.', ',']) else { return Some((0, text)) };
    let end = fraction.find(|next: char| !next.is_ascii_digit()).unwrap_or(fraction.len());
    let (fraction, rest) = fraction.split_at(end);
    if fraction.is_empty() {
        return None;
    }
    let kept = &fraction[..fraction.len().min(9)];
    let nanoseconds = digits(kept)? * 10i64.pow(9 - kept.len() as u32);
    Some((u32::try_from(nanoseconds).ok()?, rest))
}

/// Seconds east of Greenwich; the limits are Go's.
fn read_offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let unsigned = text.strip_prefix(['+', '-'])?;
    let (hours, minutes) = unsigned.split_once(':')?;
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    if hours > 24 || minutes > 60 {
        return None;
    }
    let offset = i32::try_from(hours * 3600 + minutes * 60).ok()?;
    Some(if text.starts_with('-') { -offset } else { offset })
}

fn two_digits(text: &str) -> Option<i64> {
    if text.len() == 2 { digits(text) } else { None }
}

fn digits(text: &str) -> Option<i64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// A day in the proleptic Gregorian calendar.
#[derive(Debug, PartialEq, Eq)]
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

/// Days in four centuries.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAY: i64 = 719_468;

impl Date {
    /// The date of a day counted from 1970. Years are counted from March so that the leap day comes last.
    fn of(day: i64) -> Self {
        let day = day + EPOCH_DAY;
        let (era, day) = (day.div_euclid(DAYS_PER_ERA), day.rem_euclid(DAYS_PER_ERA));
        let year = (day - day / 1460 + day / 36_524 - day / (DAYS_PER_ERA - 1)) / 365;
        let day_of_year = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let (month, later_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        Self { year: year + era * 400 + later_year, month, day }
    }
}

/// The day counted from 1970 of a date.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * DAYS_PER_ERA + year * 365 + year / 4 - year / 100 + day_of_year - EPOCH_DAY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn timestamps_are_read_and_written() {
        let cases = [
            ("2009-02-13T23:31:30Z", Some("2009-02-13T23:31:30Z")),
            ("2009-02-13T23:31:30.1230000009+02:00", Some("2009-02-13T23:31:30.123+02:00")),
            ("2009-02-13T3:31:30,5-00:30", Some("2009-02-13T03:31:30.5-00:30")),
            ("2024-02-29T00:00:00+24:60", Some("2024-02-29T00:00:00+25:00")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("0000-12-31T23:30:00-01:00", Some("0000-12-31T23:30:00-01:00")),
            ("9999-12-31T23:59:59.999999999Z", Some("9999-12-31T23:59:59.999999999Z")),
            ("0001-01-01T00:00:00+00:01", None),
            ("9999-12-31T23:59:59-00:01", None),
            ("2023-02-29T00:00:00Z", None),
            ("2023-13-01T00:00:00Z", None),
            ("2023-00-01T00:00:00Z", None),
            ("2023-01-00T00:00:00Z", None),
            ("2023-01-01T24:00:00Z", None),
            ("2023-01-01T00:00:60Z", None),
            ("2023-01-01t00:00:00Z", None),
            ("2023-01-01T00:00:00z", None),
            ("2023-01-01T00:00:00", None),
            ("2023-01-01T00:00:00.Z", None),
            ("2023-01-01T00:00:00+0100", None),
            ("2023-01-01T00:00:00Z ", None),
            ("2023-1-01T00:00:00Z", None),
            ("2023-01-01", None),
            ("", None),
            ("ü023-01-01T00:00:00Z", None),
        ];
        for (text, expected) in cases {
            let written = Timestamp::parse(text).ok().map(|timestamp| timestamp.to_string());
            assert_eq!(written.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn fields_are_those_of_the_zone() {
        use Field::*;
        // 2024-03-10 is the day daylight saving time began in New York.
        let time = timestamp("2024-03-10T06:59:58.987Z");
        let cases = [
            ("UTC", [2024, 2, 69, 9, 10, 0, 6, 59, 58, 987]),
            ("", [2024, 2, 69, 9, 10, 0, 6, 59, 58, 987]),
            ("+02:00", [2024, 2, 69, 9, 10, 0, 8, 59, 58, 987]),
            ("-07:30", [2024, 2, 68, 8, 9, 6, 23, 29, 58, 987]),
            ("America/New_York", [2024, 2, 69, 9, 10, 0, 1, 59, 58, 987]),
            ("Asia/Kathmandu", [2024, 2, 69, 9, 10, 0, 12, 44, 58, 987]),
        ];
        let fields =
            [FullYear, Month, DayOfYear, DayOfMonth, Date, DayOfWeek, Hours, Minutes, Seconds, Milliseconds];
        for (zone, expected) in cases {
            let zone = Zone::parse(zone).expect(zone);
            assert_eq!(fields.map(|field| time.field(field, Some(&zone))), expected, "{zone:?}");
        }
        let zone = Zone::parse("Etc/GMT+5").expect("a zone");
        assert_eq!(timestamp("9999-12-31T23:00:00Z").field(Hours, Some(&zone)), 18);
        let later = time.checked_add(Duration::from_nanoseconds(2 * SECOND)).expect("in range");
        let new_york = Zone::parse("America/New_York").expect("a zone");
        assert_eq!(later.field(Hours, Some(&new_york)), 3);
        assert_eq!(timestamp("2024-03-10T06:00:00+05:00").field(Hours, None), 1);
    }

    #[test]
    fn what_names_no_zone_is_refused() {
        for zone in [
            "Mars/Olympus",
            "america/new_york",
            "../UTC",
            "/etc/UTC",
            ":",
            "1:",
            "a:b",
            "1:2:3",
            "99999999999999999:0",
        ] {
            assert!(Zone::parse(zone).is_err(), "{zone}");
        }
    }

    #[test]
    fn arithmetic_stays_in_range() {
        let last = timestamp("9999-12-31T23:59:59.999999999Z");
        assert_eq!(last.checked_add(Duration::from_nanoseconds(1)), Err(TimeError::TimestampOverflow));
        let first = timestamp("0001-01-01T00:00:00Z");
        assert!(first.is_zero());
        assert_eq!(first.checked_sub(Duration::from_nanoseconds(1)), Err(TimeError::TimestampOverflow));
        assert_eq!(last.duration_since(first), Err(TimeError::DurationOverflow));
        let (early, late) = (timestamp("2024-01-01T00:00:00.7+01:00"), timestamp("2024-01-01T00:00:00.2Z"));
        let length = late.duration_since(early).expect("in range");
        assert_eq!(length.to_string(), "3599.5s");
        assert_eq!(early.checked_add(length), Ok(late));
        assert_eq!(early.checked_add(length).expect("in range").to_string(), "2024-01-01T01:00:00.2+01:00");
        assert_eq!(late.checked_sub(length), Ok(early));
        assert!(early < late);
    }

    #[test]
    fn every_day_of_ten_thousand_years_has_one_date() {
        let mut previous = Date { year: -1, month: 12, day: 31 };
        for day in day_number(0, 1, 1)..=day_number(9999, 12, 31) {
            let date = Date::of(day);
            assert_eq!(day_number(date.year, date.month, date.day), day);
            let follows = (date.year, date.month, date.day) > (previous.year, previous.month, previous.day);
            assert!(follows, "{date:?} after {previous:?}");
            previous = date;
        }
    }
}
