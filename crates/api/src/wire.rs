//! Decoding rules shared by all kinds, used through `#[serde(deserialize_with = …)]`.
//!
//! A composition reads documents from JSON, from YAML and from `google.protobuf.Struct`. A Struct has no
//! integers, only doubles, and some writers send `null` for a field they mean to leave out; both are
//! accepted here, so that the types themselves need not know where a document came from.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// Decodes an integer, also from a double with an integral value (`3.0`).
pub fn int<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    deserializer.deserialize_i64(Integer)
}

/// Decodes an optional integer like [`int`]; `null` is an absent one.
pub fn opt_int<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    deserializer.deserialize_option(OptionalInteger)
}

/// Decodes a value, `null` being the default one: for lists and maps that may be left out.
pub fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

struct Integer;

impl Visitor<'_> for Integer {
    type Value = i64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an integer")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<i64, E> {
        Ok(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<i64, E> {
        i64::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<i64, E> {
        // Every integral double below 2^63 converts exactly; the bound itself is already out of range.
        let in_range = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
        if value.fract() == 0.0 && in_range {
            return Ok(value as i64);
        }
        Err(E::invalid_value(Unexpected::Float(value), &self))
    }
}

struct OptionalInteger;

impl<'de> Visitor<'de> for OptionalInteger {
    type Value = Option<i64>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an integer")
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        int(deserializer).map(Some)
    }
}
