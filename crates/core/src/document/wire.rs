//! The protobuf wire format, as far as `google.protobuf.Struct` and the function protocol need it.

/// The bytes are not a protobuf message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed protobuf: {0}")]
pub struct Malformed(pub &'static str);

/// Reads the fields of one message, in order.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

/// One field's payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64([u8; 8]),
    /// Wire type 2: bytes, a string or a message.
    Bytes(&'a [u8]),
    /// Wire type 5.
    Fixed32([u8; 4]),
}

impl<'a> Reader<'a> {
    /// A reader over the bytes of one message.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field's number and payload, `None` at the end.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<(u32, Field<'a>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| Malformed("field number out of range"))?;
        if number == 0 {
            return Err(Malformed("field number zero"));
        }
        let field = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(self.array()?),
            2 => Field::Bytes(self.delimited()?),
            5 => Field::Fixed32(self.array()?),
            _ => return Err(Malformed("unsupported wire type")),
        };
        Ok(Some((number, field)))
    }

    /// The payload of the next field if its tag is this one byte, of wire type 2: what messages of one known
    /// layout nearly always start with.
    #[inline]
    fn take(&mut self, tag: u8) -> Result<Option<&'a [u8]>, Malformed> {
        match self.rest {
            [first, rest @ ..] if *first == tag => {
                self.rest = rest;
                self.delimited().map(Some)
            }
            _ => Ok(None),
        }
    }

    #[inline]
    fn delimited(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.varint()?).map_err(|_| Malformed("length out of range"))?;
        let (bytes, rest) =
            self.rest.split_at_checked(length).ok_or(Malformed("a length runs past the end"))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Nearly all tags and lengths take one or two bytes, so those are read without a loop.
    #[inline]
    fn varint(&mut self) -> Result<u64, Malformed> {
        match *self.rest {
            [low @ 0..0x80, ref rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(low))
            }
            [low, high @ 0..0x80, ref rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().copied().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(Malformed("unterminated varint"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed("truncated number"))?;
        self.rest = rest;
        Ok(*head)
    }
}

/// The content of a `google.protobuf.Value`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(f64),
    /// An integer a double cannot hold; in-process only (see the module docs of `document`).
    Integer(i64),
    String(&'a [u8]),
    Struct(&'a [u8]),
    List(&'a [u8]),
}

/// Tag byte of field 1 of wire type 2.
const FIRST: u8 = 1 << 3 | 2;
/// Tag byte of field 2 of wire type 2.
const SECOND: u8 = 2 << 3 | 2;

/// Tag bytes of the members of a `google.protobuf.Value` that have a length.
const STRING: u8 = 3 << 3 | 2;
const STRUCT: u8 = 5 << 3 | 2;
const LIST: u8 = 6 << 3 | 2;

/// Field number of [`Scalar::Integer`], outside what `google.protobuf.Value` defines.
pub(crate) const PRIVATE_INTEGER_FIELD: u32 = 15;

/// Reads a `google.protobuf.Value`; of several set members the last counts, as protobuf has it.
#[inline]
pub(crate) fn value_of(bytes: &[u8]) -> Result<Scalar<'_>, Malformed> {
    let mut reader = Reader::new(bytes);
    // Nearly every value is one field, and most of those have a length.
    if let [tag @ (STRING | STRUCT | LIST), ..] = *bytes
        && let Some(content) = reader.take(tag)?
        && reader.rest.is_empty()
    {
        return Ok(match tag {
            STRING => Scalar::String(content),
            STRUCT => Scalar::Struct(content),
            _ => Scalar::List(content),
        });
    }
    let mut reader = Reader::new(bytes);
    let mut scalar = Scalar::Null;
    while let Some((number, field)) = reader.next_field()? {
        scalar = match (number, field) {
            (1, Field::Varint(_)) => Scalar::Null,
            (2, Field::Fixed64(bits)) => Scalar::Number(f64::from_le_bytes(bits)),
            (3, Field::Bytes(bytes)) => Scalar::String(bytes),
            (4, Field::Varint(bit)) => Scalar::Bool(bit != 0),
            (5, Field::Bytes(bytes)) => Scalar::Struct(bytes),
            (6, Field::Bytes(bytes)) => Scalar::List(bytes),
            (PRIVATE_INTEGER_FIELD, Field::Varint(bits)) => Scalar::Integer(bits.cast_signed()),
            _ => scalar,
        };
    }
    Ok(scalar)
}

/// An entry of a protobuf map: key and value bytes.
pub type Entry<'a> = (&'a [u8], &'a [u8]);

/// The next entry of a `google.protobuf.Struct`: its key and its value's bytes.
#[inline]
pub(crate) fn next_entry<'a>(reader: &mut Reader<'a>) -> Result<Option<Entry<'a>>, Malformed> {
    if let Some(entry) = reader.take(FIRST)? {
        return map_entry(entry).map(Some);
    }
    while let Some((number, field)) = reader.next_field()? {
        if let (1, Field::Bytes(entry)) = (number, field) {
            return map_entry(entry).map(Some);
        }
    }
    Ok(None)
}

/// Splits a protobuf map entry into key and value bytes; a missing part is empty.
#[inline]
pub fn map_entry(entry: &[u8]) -> Result<Entry<'_>, Malformed> {
    let mut reader = Reader::new(entry);
    let mut key = reader.take(FIRST)?.unwrap_or_default();
    let mut value = reader.take(SECOND)?.unwrap_or_default();
    while let Some((number, field)) = reader.next_field()? {
        match (number, field) {
            (1, Field::Bytes(bytes)) => key = bytes,
            (2, Field::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    Ok((key, value))
}

/// The next item of a `google.protobuf.ListValue`: its value's bytes.
#[inline]
pub(crate) fn next_item<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Malformed> {
    if let Some(item) = reader.take(FIRST)? {
        return Ok(Some(item));
    }
    while let Some((number, field)) = reader.next_field()? {
        if let (1, Field::Bytes(item)) = (number, field) {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

/// The bytes of the value under `key` in a `google.protobuf.Struct`; of equal keys the last counts.
pub(crate) fn field_of<'a>(bytes: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut reader = Reader::new(bytes);
    let mut found = None;
    while let Ok(Some((name, value))) = next_entry(&mut reader) {
        if name == key {
            found = Some(value);
        }
    }
    found
}

/// Appends a varint.
#[inline]
pub fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field's tag; `wire_type` is 0 (varint), 1 (fixed64) or 2 (bytes).
#[inline]
pub fn write_tag(out: &mut Vec<u8>, number: u32, wire_type: u8) {
    write_varint(out, u64::from(number) << 3 | u64::from(wire_type));
}

/// Appends a whole field of wire type 2.
#[inline]
pub fn write_bytes_field(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    write_tag(out, number, 2);
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
