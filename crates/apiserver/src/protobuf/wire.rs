//! The protobuf wire format: numbered fields, integers and byte strings.

use super::{ProtobufError, Result};

const TRUNCATED: ProtobufError = ProtobufError::Malformed("it ends in the middle of a field");

/// A field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload<'b> {
    Integer(i64),
    Bytes(&'b [u8]),
    /// A fixed-size number, which no message of the table has.
    Fixed,
}

impl<'b> Payload<'b> {
    /// As bytes: texts and messages.
    pub(super) fn bytes(self) -> Result<&'b [u8]> {
        match self {
            Payload::Bytes(bytes) => Ok(bytes),
            _ => Err(ProtobufError::Malformed("a field has the wrong type")),
        }
    }

    /// As text.
    pub(super) fn text(self) -> Result<String> {
        let bytes = self.bytes()?.to_vec();
        String::from_utf8(bytes).map_err(|_| ProtobufError::Malformed("a text is not UTF-8"))
    }

    /// As an integer.
    pub(super) fn integer(self) -> Result<i64> {
        match self {
            Payload::Integer(integer) => Ok(integer),
            _ => Err(ProtobufError::Malformed("a field has the wrong type")),
        }
    }
}

/// Reads one message field by field.
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { rest: bytes }
    }

    /// The next field's number and value.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Payload<'b>)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let payload = match key & 7 {
            0 => Payload::Integer(self.varint()?.cast_signed()),
            1 => self.take(8).map(|_| Payload::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| TRUNCATED)?;
                Payload::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Payload::Fixed)?,
            _ => return Err(ProtobufError::Malformed("a field has no wire type")),
        };
        Ok(Some((key >> 3, payload)))
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(TRUNCATED)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Malformed("an integer is too long"))
    }
}
