//! Kubernetes' protobuf encoding of built-in kinds, read into the value that their JSON gives.
//!
//! Only decoding: clients such as kubectl send protobuf and accept JSON. A body is the four bytes `k8s\0` and a
//! `runtime.Unknown` with the kind and the object's message. What a message means in JSON (names, inlined
//! structs, what is left out if empty) comes from `third_party/kubernetes/messages.json`, made by
//! `xtask vendor`; it has the kinds of [`crate::builtin::kinds`] and the bodies of subresources. Unknown fields are skipped, as Kubernetes does; of a field that occurs twice the last counts.
//!
//! Go writes structs and scalars that are not pointers even when they are zero, and pointers only when they
//! are set. So a zero is left out exactly when Go's JSON leaves it out: `replicas: 0` stays, `hostNetwork:
//! false` does not.

mod special;
mod table;
#[cfg(test)]
mod tests;
mod wire;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Number, Value};

use table::{Field, Message, Scalar, Shape, Type};
use wire::{Reader, Wire};

/// What a body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Messages nest no deeper than this.
const MAX_DEPTH: usize = 64;

/// Values in a body: a message of two bytes can stand for a struct of twenty values.
const MAX_VALUES: usize = 1_000_000;

/// A body that is not an object of a known kind in protobuf.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The first bytes are not `k8s\0`.
    #[error("the body does not begin with the bytes \"k8s\\0\" of Kubernetes' protobuf encoding")]
    Magic,
    /// The body ends within a field.
    #[error("the body ends within a field at byte {0}")]
    Truncated(usize),
    /// Bytes that are not what the field's type says.
    #[error("{message}: field {field:?} is malformed: {reason}")]
    Malformed {
        /// The message.
        message: String,
        /// The field's name, or number if it is not known.
        field: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// No message is known for the kind.
    #[error("kind {kind:?} of {api_version:?} is not known in protobuf")]
    UnknownKind {
        /// The API version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The object is itself encoded.
    #[error("the content encoding {0:?} is not supported")]
    ContentEncoding(String),
    /// Messages within messages beyond the limit.
    #[error("messages are nested deeper than {MAX_DEPTH}")]
    TooDeep,
    /// More values than the limit.
    #[error("the body has more than {MAX_VALUES} values")]
    TooLarge,
}

/// Whether objects of this kind can be decoded.
pub fn knows(api_version: &str, kind: &str) -> bool {
    table::find(api_version, kind).is_some()
}

/// Decodes a body to the object that its JSON would give.
///
/// # Errors
///
/// If the body is no protobuf of Kubernetes, its kind is not known, or it is malformed or beyond the limits.
pub fn decode(body: &[u8]) -> Result<Value, ProtobufError> {
    let envelope = Envelope::read(body)?;
    if !envelope.content_encoding.is_empty() {
        return Err(ProtobufError::ContentEncoding(envelope.content_encoding.to_owned()));
    }
    let (api_version, kind) = (envelope.api_version.to_owned(), envelope.kind.to_owned());
    let Some(message) = table::find(&api_version, &kind) else {
        return Err(ProtobufError::UnknownKind { api_version, kind });
    };
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), Value::String(api_version));
    object.insert("kind".to_owned(), Value::String(kind));
    Decoder { values: 0 }.fields(message, Reader::at(envelope.raw, envelope.start), 0, &mut object)?;
    Ok(Value::Object(object))
}

/// `runtime.Unknown`.
#[derive(Default)]
struct Envelope<'b> {
    api_version: &'b str,
    kind: &'b str,
    raw: &'b [u8],
    /// Where `raw` is in the body.
    start: usize,
    content_encoding: &'b str,
}

impl<'b> Envelope<'b> {
    fn read(body: &'b [u8]) -> Result<Self, ProtobufError> {
        let text = |field: &str, bytes| {
            std::str::from_utf8(bytes).map_err(|_| malformed("runtime.Unknown", field, "it is not UTF-8"))
        };
        let mut envelope = Envelope::default();
        let unknown = body.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?;
        let mut reader = Reader::at(unknown, MAGIC.len());
        while let Some((number, value)) = reader.next("runtime.Unknown")? {
            let Wire::Bytes(bytes, start) = value else { continue };
            match number {
                1 => {
                    let mut reader = Reader::at(bytes, start);
                    while let Some((number, value)) = reader.next("runtime.TypeMeta")? {
                        match (number, value) {
                            (1, Wire::Bytes(bytes, _)) => envelope.api_version = text("apiVersion", bytes)?,
                            (2, Wire::Bytes(bytes, _)) => envelope.kind = text("kind", bytes)?,
                            _ => {}
                        }
                    }
                }
                2 => (envelope.raw, envelope.start) = (bytes, start),
                3 => envelope.content_encoding = text("contentEncoding", bytes)?,
                _ => {}
            }
        }
        Ok(envelope)
    }
}

fn malformed(message: &str, field: &str, reason: &'static str) -> ProtobufError {
    ProtobufError::Malformed { message: message.to_owned(), field: field.to_owned(), reason }
}

/// Decodes messages, counting values.
struct Decoder {
    values: usize,
}

impl Decoder {
    fn count(&mut self) -> Result<(), ProtobufError> {
        self.values += 1;
        if self.values > MAX_VALUES { Err(ProtobufError::TooLarge) } else { Ok(()) }
    }

    /// A message as a value of its own.
    fn message(
        &mut self,
        message: &'static Message,
        reader: Reader<'_>,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let mut object = Map::new();
        self.fields(message, reader, depth, &mut object)?;
        if let Some(special) = message.special {
            return special::value(special, object)
                .map_err(|reason| malformed(message.name, special.name(), reason));
        }
        match message.fields.first() {
            Some(field) if field.is_list_itself() => {
                Ok(object.shift_remove(field.name).unwrap_or_else(|| Value::Array(Vec::new())))
            }
            _ => Ok(Value::Object(object)),
        }
    }

    /// Puts the fields of a message into `object`, with the zero values of those that Go's JSON always has.
    fn fields(
        &mut self,
        message: &'static Message,
        mut reader: Reader<'_>,
        depth: usize,
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        if depth >= MAX_DEPTH {
            return Err(ProtobufError::TooDeep);
        }
        // Inlined structs that are there: the others are zero.
        let mut inlined = Vec::new();
        while let Some((number, wire)) = reader.next(message.name)? {
            let Some(field) = message.field(number) else { continue };
            self.count()?;
            match field.shape {
                Shape::Single => match (field.type_, wire) {
                    (Type::Message(inner), Wire::Bytes(bytes, start)) if field.inline => {
                        inlined.push(number);
                        self.fields(inner.get(), Reader::at(bytes, start), depth + 1, object)?;
                    }
                    (_, wire) => {
                        let value = self.value(message, field, wire, depth)?;
                        if field.omits(&value) {
                            object.shift_remove(field.name);
                        } else {
                            object.insert(field.name.to_owned(), value);
                        }
                    }
                },
                Shape::List => {
                    let mut items = self.items(message, field, wire, depth)?;
                    let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
                    if let Value::Array(list) = list {
                        list.append(&mut items);
                    }
                }
                Shape::Map => {
                    let (key, value) = self.entry(message, field, wire, depth)?;
                    let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
                    if let Value::Object(map) = map {
                        map.insert(key, value);
                    }
                }
            }
        }
        if message.special.is_some() {
            return Ok(());
        }
        for field in &message.fields {
            self.zero(field, &inlined, depth, object)?;
        }
        Ok(())
    }

    /// What an absent field is in Go's JSON, if it is there at all.
    fn zero(
        &mut self,
        field: &'static Field,
        inlined: &[u32],
        depth: usize,
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        if field.pointer || field.is_list_itself() || object.contains_key(field.name) {
            return Ok(());
        }
        let nothing = Reader::at(&[], 0);
        let value = match (field.shape, field.type_) {
            (Shape::Single, Type::Message(inner)) if field.inline => {
                if inlined.contains(&field.number) {
                    return Ok(());
                }
                return self.fields(inner.get(), nothing, depth + 1, object);
            }
            (Shape::Single, Type::Message(inner)) => self.message(inner.get(), nothing, depth + 1)?,
            (Shape::Single, Type::Scalar(scalar)) => scalar.zero(),
            (Shape::List | Shape::Map, _) => Value::Null,
        };
        if !field.omits(&value) {
            self.count()?;
            object.insert(field.name.to_owned(), value);
        }
        Ok(())
    }

    /// The items that one occurrence of a list's field has; numbers may be packed.
    fn items(
        &mut self,
        message: &'static Message,
        field: &'static Field,
        wire: Wire<'_>,
        depth: usize,
    ) -> Result<Vec<Value>, ProtobufError> {
        match (field.type_, wire) {
            (Type::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Bool), Wire::Bytes(bytes, start)) => {
                let (mut reader, mut items) = (Reader::at(bytes, start), Vec::new());
                while !reader.is_empty() {
                    self.count()?;
                    let number = reader.varint()?;
                    items.push(self.value(message, field, Wire::Varint(number), depth)?);
                }
                Ok(items)
            }
            (_, wire) => Ok(vec![self.value(message, field, wire, depth)?]),
        }
    }

    /// An entry of a map: a message with the key in field 1 and the value in field 2.
    fn entry(
        &mut self,
        message: &'static Message,
        field: &'static Field,
        wire: Wire<'_>,
        depth: usize,
    ) -> Result<(String, Value), ProtobufError> {
        let Wire::Bytes(bytes, start) = wire else {
            return Err(malformed(message.name, field.name, "it is not a map's entry"));
        };
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader::at(bytes, start);
        while let Some((number, wire)) = reader.next(message.name)? {
            match (number, wire) {
                (1, Wire::Bytes(bytes, _)) => {
                    let text = std::str::from_utf8(bytes);
                    key = text
                        .map_err(|_| malformed(message.name, field.name, "a key is not UTF-8"))?
                        .to_owned();
                }
                (2, wire) => value = Some(self.value(message, field, wire, depth)?),
                _ => {}
            }
        }
        let value = match (value, field.type_) {
            (Some(value), _) => value,
            (None, Type::Scalar(scalar)) => scalar.zero(),
            (None, Type::Message(inner)) => self.message(inner.get(), Reader::at(&[], 0), depth + 1)?,
        };
        Ok((key, value))
    }

    fn value(
        &mut self,
        message: &'static Message,
        field: &'static Field,
        wire: Wire<'_>,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let wrong = |reason| malformed(message.name, field.name, reason);
        match (field.type_, wire) {
            (Type::Message(inner), Wire::Bytes(bytes, start)) => {
                self.message(inner.get(), Reader::at(bytes, start), depth + 1)
            }
            (Type::Scalar(scalar), wire) => scalar_value(scalar, wire).map_err(wrong),
            _ => Err(wrong("it is not a message")),
        }
    }
}

fn scalar_value(scalar: Scalar, wire: Wire<'_>) -> Result<Value, &'static str> {
    match (scalar, wire) {
        (Scalar::Text, Wire::Bytes(bytes, _)) => {
            let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
            Ok(Value::String(text.to_owned()))
        }
        (Scalar::Bytes, Wire::Bytes(bytes, _)) => Ok(Value::String(BASE64.encode(bytes))),
        (Scalar::Json, Wire::Bytes(bytes, _)) => serde_json::from_slice(bytes).map_err(|_| "it is not JSON"),
        (Scalar::Bool, Wire::Varint(number)) => Ok(Value::Bool(number != 0)),
        // Negative numbers are sent as 64 bits in two's complement.
        (Scalar::Int32, Wire::Varint(number)) => Ok(Value::from(number as i32)),
        (Scalar::Int64, Wire::Varint(number)) => Ok(Value::from(number as i64)),
        (Scalar::Double, Wire::Fixed64(bits)) => {
            let number = f64::from_bits(bits);
            // Go writes whole numbers without a fraction; 2^53 is the last that is exact.
            if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
                return Ok(Value::from(number as i64));
            }
            Number::from_f64(number).map(Value::Number).ok_or("it is not a finite number")
        }
        _ => Err("its bytes are of another type"),
    }
}
