//! serde over `google.protobuf.Struct` wire bytes, without an intermediate tree.

use serde::de::{self, IntoDeserializer, Visitor};

use super::wire::{self, Reader, Scalar};
use super::{Document, Form};

/// Deepest nesting followed; Kubernetes objects stay far below, and the stack is bounded.
const MAX_DEPTH: u16 = 128;

/// Name under which [`Document`] asks for the raw bytes instead of a decoded value.
pub(super) const RAW: &str = "$modelplane::Document";

/// Why a document could not be decoded, and where. It is one pointer, because every step of decoding returns it.
#[derive(Debug, Clone)]
pub(super) struct Error(Box<Fault>);

#[derive(Debug, Clone)]
struct Fault {
    message: String,
    /// The way to the offending value, innermost step first: each level adds its own as the error passes.
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    Field(Box<str>),
    Item(usize),
}

impl Error {
    fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Fault { message: message.into(), steps: Vec::new() }))
    }

    #[cold]
    fn inside(mut self, step: Step) -> Self {
        self.0.steps.push(step);
        self
    }

    /// The dotted path of the offending value, empty for the document itself.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        for step in self.0.steps.iter().rev() {
            match step {
                Step::Field(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                }
                Step::Item(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl From<wire::Malformed> for Error {
    fn from(error: wire::Malformed) -> Self {
        Self::new(error.to_string())
    }
}

#[derive(Clone, Copy)]
pub(super) struct Deserializer<'a> {
    document: Document<'a>,
    depth: u16,
}

impl<'a> Deserializer<'a> {
    pub(super) fn new(document: Document<'a>) -> Self {
        Self { document, depth: 0 }
    }

    #[inline]
    fn scalar(&self) -> Result<Scalar<'a>, Error> {
        match self.document.form {
            Form::Struct => Ok(Scalar::Struct(self.document.bytes)),
            Form::Value => Ok(wire::value_of(self.document.bytes)?),
        }
    }

    fn descend(&self) -> Result<u16, Error> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::new(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(self.depth + 1)
    }
}

fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|_| Error::new("a string is not valid UTF-8"))
}

/// The integer a double stands for, if it is one.
fn integral(number: f64) -> Option<i64> {
    // 2^63 is exactly representable; everything below it in magnitude converts without loss.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (number.trunc() == number && (-LIMIT..LIMIT).contains(&number)).then_some(number as i64)
}

impl<'de> de::Deserializer<'de> for Deserializer<'de> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.scalar()? {
            Scalar::Null => visitor.visit_unit(),
            Scalar::Bool(bit) => visitor.visit_bool(bit),
            Scalar::Integer(integer) => visitor.visit_i64(integer),
            Scalar::Number(number) => match integral(number) {
                Some(integer) => visitor.visit_i64(integer),
                None => visitor.visit_f64(number),
            },
            Scalar::String(bytes) => visitor.visit_borrowed_str(text(bytes)?),
            Scalar::Struct(bytes) => {
                let depth = self.descend()?;
                visitor.visit_map(Entries { reader: Reader::new(bytes), key: &[], value: &[], depth })
            }
            Scalar::List(bytes) => {
                let depth = self.descend()?;
                visitor.visit_seq(Items { reader: Reader::new(bytes), next: 0, depth })
            }
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.scalar()? {
            Scalar::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name != RAW {
            return visitor.visit_newtype_struct(self);
        }
        visitor.visit_map(Raw { document: Some(self.document) })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.scalar()? {
            Scalar::String(bytes) => visitor.visit_enum(text(bytes)?.into_deserializer()),
            _ => Err(Error::new(format!("expected one of {} for {name}", variants.join(", ")))),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier
    }
}

struct Entries<'a> {
    reader: Reader<'a>,
    key: &'a [u8],
    value: &'a [u8],
    depth: u16,
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((key, value)) = wire::next_entry(&mut self.reader)? else { return Ok(None) };
        (self.key, self.value) = (key, value);
        seed.deserialize(Key { bytes: key }).map(Some)
    }

    #[inline]
    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let document = Document::from_value(self.value);
        seed.deserialize(Deserializer { document, depth: self.depth })
            .map_err(|error| error.inside(Step::Field(String::from_utf8_lossy(self.key).into())))
    }
}

/// An object's key: field names match on bytes, everything else needs valid UTF-8.
struct Key<'a> {
    bytes: &'a [u8],
}

impl<'de> de::Deserializer<'de> for Key<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(text(self.bytes)?)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_bytes(self.bytes)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map struct enum ignored_any
    }
}

struct Items<'a> {
    reader: Reader<'a>,
    next: usize,
    depth: u16,
}

impl<'de> de::SeqAccess<'de> for Items<'de> {
    type Error = Error;

    #[inline]
    fn next_element_seed<T: de::DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(item) = wire::next_item(&mut self.reader)? else { return Ok(None) };
        let (document, index) = (Document::from_value(item), self.next);
        self.next += 1;
        seed.deserialize(Deserializer { document, depth: self.depth })
            .map(Some)
            .map_err(|error| error.inside(Step::Item(index)))
    }
}

/// Hands a document's bytes to [`Document`]'s own `Deserialize`, with its form as the key.
struct Raw<'a> {
    document: Option<Document<'a>>,
}

impl<'de> de::MapAccess<'de> for Raw<'de> {
    type Error = Error;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(document) = self.document else { return Ok(None) };
        let form = match document.form {
            Form::Struct => "struct",
            Form::Value => "value",
        };
        seed.deserialize(de::value::BorrowedStrDeserializer::new(form)).map(Some)
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let document = self.document.take().ok_or_else(|| Error::new("no value left"))?;
        seed.deserialize(de::value::BorrowedBytesDeserializer::new(document.bytes))
    }
}

/// Captures a sub-document unread; works only inside [`Document::decode`].
impl<'de: 'a, 'a> de::Deserialize<'de> for Document<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Capture;
        impl<'de> Visitor<'de> for Capture {
            type Value = Document<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value inside a document")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                match map.next_entry::<&str, &'de [u8]>()? {
                    Some(("struct", bytes)) => Ok(Document::from_struct(bytes)),
                    Some((_, bytes)) => Ok(Document::from_value(bytes)),
                    None => Err(de::Error::custom("no value to capture")),
                }
            }
        }
        deserializer.deserialize_newtype_struct(RAW, Capture)
    }
}
