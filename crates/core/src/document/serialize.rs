//! serde into `google.protobuf.Struct` wire bytes.
//!
//! A message's length precedes it, so each one is written behind a gap that is closed once its size is
//! known. Nulls inside objects are dropped: an absent field is absent, never null. Nulls in lists stay.

use serde::ser::{self, Serialize};

use super::wire::{PRIVATE_INTEGER_FIELD, Reader, next_entry, write_bytes_field, write_tag, write_varint};
use super::{Document, Form};

/// Deepest nesting written, as for reading.
const MAX_DEPTH: usize = 128;

/// A value cannot be expressed as a document.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct EncodeError(String);

impl ser::Error for EncodeError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

/// Encodes an object as the wire bytes of a `google.protobuf.Struct`.
///
/// # Errors
///
/// If the value is not an object, or holds something JSON cannot (a map with non-string keys, say).
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodeError> {
    let bytes = encode_value(value)?;
    match Document::from_value(&bytes).as_struct_bytes() {
        Some(object) => Ok(object.to_vec()),
        None => Err(EncodeError("not an object".to_owned())),
    }
}

/// Encodes any value as the wire bytes of a `google.protobuf.Value`.
///
/// # Errors
///
/// As for [`encode`], without the demand for an object.
pub fn encode_value<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::with_capacity(512);
    value.serialize(ValueSerializer { out: &mut out, depth: 0 })?;
    Ok(out)
}

/// Writes `number`'s field with whatever `content` writes, its length in front.
fn nested<E>(
    out: &mut Vec<u8>,
    number: u32,
    content: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let gap = open(out, number);
    content(out)?;
    close(out, gap);
    Ok(())
}

/// Starts a message field; returns where its content starts.
fn open(out: &mut Vec<u8>, number: u32) -> usize {
    write_tag(out, number, 2);
    out.push(0);
    out.len()
}

/// Ends the message that starts at `start`, widening the one-byte gap if its length needs more.
fn close(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    if length < 0x80 {
        out[start - 1] = length as u8;
        return;
    }
    let mut prefix = Vec::with_capacity(5);
    write_varint(&mut prefix, length as u64);
    out.splice(start - 1..start, prefix);
}

struct ValueSerializer<'o> {
    out: &'o mut Vec<u8>,
    depth: usize,
}

impl<'o> ValueSerializer<'o> {
    fn integer(self, integer: i64) {
        let double = integer as f64;
        if integer.unsigned_abs() <= 1 << 53 {
            self.double(double);
        } else {
            write_tag(self.out, PRIVATE_INTEGER_FIELD, 0);
            write_varint(self.out, integer.cast_unsigned());
        }
    }

    fn double(self, double: f64) {
        write_tag(self.out, 2, 1);
        self.out.extend_from_slice(&double.to_le_bytes());
    }

    fn compound(self, field: u32) -> Result<Compound<'o>, EncodeError> {
        if self.depth >= MAX_DEPTH {
            return Err(EncodeError(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let start = open(self.out, field);
        Ok(Compound { out: self.out, start, outer: None, key: String::new(), depth: self.depth + 1 })
    }

    fn variant(self, variant: &str, field: u32) -> Result<Compound<'o>, EncodeError> {
        let depth = self.depth;
        let object = open(self.out, 5);
        let entry = open(self.out, 1);
        write_bytes_field(self.out, 1, variant.as_bytes());
        let value = open(self.out, 2);
        let mut inner = ValueSerializer { out: self.out, depth: depth + 1 }.compound(field)?;
        inner.outer = Some([object, entry, value]);
        Ok(inner)
    }
}

/// An object or list being written.
struct Compound<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    /// Starts of the messages around an enum variant's content.
    outer: Option<[usize; 3]>,
    key: String,
    depth: usize,
}

impl Compound<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        let depth = self.depth;
        nested(self.out, 1, |out| value.serialize(ValueSerializer { out, depth }))
    }

    fn entry<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), EncodeError> {
        let depth = self.depth;
        let rollback = self.out.len();
        let entry = open(self.out, 1);
        write_bytes_field(self.out, 1, key.as_bytes());
        let start = open(self.out, 2);
        value.serialize(ValueSerializer { out: &mut *self.out, depth })?;
        if self.out[start..] == NULL {
            self.out.truncate(rollback);
        } else {
            close(self.out, start);
            close(self.out, entry);
        }
        Ok(())
    }

    fn finish(self) {
        close(self.out, self.start);
        if let Some([object, entry, value]) = self.outer {
            close(self.out, value);
            close(self.out, entry);
            close(self.out, object);
        }
    }
}

/// `null_value: NULL_VALUE` on the wire.
const NULL: [u8; 2] = [0x08, 0x00];

impl<'o> ser::Serializer for ValueSerializer<'o> {
    type Ok = ();
    type Error = EncodeError;
    type SerializeSeq = Compound<'o>;
    type SerializeTuple = Compound<'o>;
    type SerializeTupleStruct = Compound<'o>;
    type SerializeTupleVariant = Compound<'o>;
    type SerializeMap = Compound<'o>;
    type SerializeStruct = Compound<'o>;
    type SerializeStructVariant = Compound<'o>;

    fn serialize_bool(self, bit: bool) -> Result<(), EncodeError> {
        self.out.extend_from_slice(&[0x20, u8::from(bit)]);
        Ok(())
    }

    fn serialize_i8(self, integer: i8) -> Result<(), EncodeError> {
        self.serialize_i64(integer.into())
    }

    fn serialize_i16(self, integer: i16) -> Result<(), EncodeError> {
        self.serialize_i64(integer.into())
    }

    fn serialize_i32(self, integer: i32) -> Result<(), EncodeError> {
        self.serialize_i64(integer.into())
    }

    fn serialize_i64(self, integer: i64) -> Result<(), EncodeError> {
        self.integer(integer);
        Ok(())
    }

    fn serialize_u8(self, integer: u8) -> Result<(), EncodeError> {
        self.serialize_i64(integer.into())
    }

    fn serialize_u16(self, integer: u16) -> Result<(), EncodeError> {
        self.serialize_i64(integer.into())
    }

    fn serialize_u32(self, integer: u32) -> Result<(), EncodeError> {
        self.serialize_i64(integer.into())
    }

    fn serialize_u64(self, integer: u64) -> Result<(), EncodeError> {
        match i64::try_from(integer) {
            Ok(signed) => self.integer(signed),
            Err(_) => self.double(integer as f64),
        }
        Ok(())
    }

    fn serialize_f32(self, double: f32) -> Result<(), EncodeError> {
        self.serialize_f64(double.into())
    }

    fn serialize_f64(self, double: f64) -> Result<(), EncodeError> {
        self.double(double);
        Ok(())
    }

    fn serialize_char(self, character: char) -> Result<(), EncodeError> {
        self.serialize_str(character.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<(), EncodeError> {
        write_bytes_field(self.out, 3, text.as_bytes());
        Ok(())
    }

    /// Only [`Document`] gets here: documents hold no bytes of their own.
    fn serialize_bytes(self, value: &[u8]) -> Result<(), EncodeError> {
        self.out.extend_from_slice(if value.is_empty() { &NULL } else { value });
        Ok(())
    }

    /// Tells [`Document`] apart from serializers that need its tree.
    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_none(self) -> Result<(), EncodeError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), EncodeError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), EncodeError> {
        self.out.extend_from_slice(&NULL);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), EncodeError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), EncodeError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        let mut object = self.compound(5)?;
        object.entry(variant, value)?;
        object.finish();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'o>, EncodeError> {
        self.compound(6)
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'o>, EncodeError> {
        self.compound(6)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'o>, EncodeError> {
        self.compound(6)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'o>, EncodeError> {
        self.variant(variant, 6)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'o>, EncodeError> {
        self.compound(5)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Compound<'o>, EncodeError> {
        self.compound(5)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'o>, EncodeError> {
        self.variant(variant, 5)
    }
}

macro_rules! sequence {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = ();
            type Error = EncodeError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
                self.item(value)
            }

            fn end(self) -> Result<(), EncodeError> {
                self.finish();
                Ok(())
            }
        }
    )*};
}

sequence!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), EncodeError> {
        let mut encoded = Vec::new();
        key.serialize(ValueSerializer { out: &mut encoded, depth: self.depth })?;
        match super::wire::value_of(&encoded) {
            Ok(super::wire::Scalar::String(text)) => {
                self.key = String::from_utf8_lossy(text).into_owned();
                Ok(())
            }
            _ => Err(EncodeError("an object's key is not a string".to_owned())),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), EncodeError> {
        let key = std::mem::take(&mut self.key);
        self.entry(&key, value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeStruct for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.entry(key, value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeStructVariant for Compound<'_> {
    type Ok = ();
    type Error = EncodeError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), EncodeError> {
        self.entry(key, value)
    }

    fn end(self) -> Result<(), EncodeError> {
        self.finish();
        Ok(())
    }
}

/// Splices a captured sub-document back in unread; other serializers get its JSON tree.
impl Serialize for Document<'_> {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return self.to_json().map_err(ser::Error::custom)?.serialize(serializer);
        }
        match self.form {
            Form::Value => serializer.serialize_bytes(self.bytes),
            Form::Struct => {
                let mut value = Vec::with_capacity(self.bytes.len() + 6);
                write_bytes_field(&mut value, 5, self.bytes);
                serializer.serialize_bytes(&value)
            }
        }
    }
}

/// An object without `status`, `spec.crossplane` and the metadata a server sets, ready to be wanted as it is.
pub(crate) fn without_server_fields(document: Document<'_>) -> Vec<u8> {
    /// Metadata a client may set.
    const KEPT: [&[u8]; 7] = [
        b"name",
        b"namespace",
        b"generateName",
        b"labels",
        b"annotations",
        b"ownerReferences",
        b"finalizers",
    ];
    let filter = |object: &[u8], out: &mut Vec<u8>, keep: &dyn Fn(&[u8]) -> bool| {
        let mut reader = Reader::new(object);
        while let Ok(Some((key, value))) = next_entry(&mut reader) {
            if keep(key) {
                let gap = open(out, 1);
                write_bytes_field(out, 1, key);
                write_bytes_field(out, 2, value);
                close(out, gap);
            }
        }
    };
    let Some(object) = document.as_struct_bytes() else { return Vec::new() };
    let mut out = Vec::with_capacity(object.len());
    filter(object, &mut out, &|key| !matches!(key, b"status" | b"metadata" | b"spec"));
    let mut part = |name: &str, keep: &dyn Fn(&[u8]) -> bool| {
        let Some(value) = document.get(&[name]) else { return };
        let Some(object) = value.as_struct_bytes() else { return };
        let entry = open(&mut out, 1);
        write_bytes_field(&mut out, 1, name.as_bytes());
        let value = open(&mut out, 2);
        let inner = open(&mut out, 5);
        filter(object, &mut out, keep);
        for gap in [inner, value, entry] {
            close(&mut out, gap);
        }
    };
    part("metadata", &|key| KEPT.contains(&key));
    // `spec.crossplane` is Crossplane's bookkeeping of a composite; wanting an old state of it would undo it.
    part("spec", &|key| key != b"crossplane");
    out
}
