//! Protobuf's wire format: tags, varints, lengths, without knowledge of messages.

use super::{ProtobufError, malformed};

/// The value of one field as it is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire<'b> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    /// Bytes, and where in the body they begin.
    Bytes(&'b [u8], usize),
}

/// Reads the fields of one message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
    /// Where in the body `bytes` begins.
    position: usize,
}

impl<'b> Reader<'b> {
    /// Reads `bytes`, which are at `position` in the body.
    pub(super) fn at(bytes: &'b [u8], position: usize) -> Self {
        Reader { bytes, position }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next field's number and value; `None` at the end.
    pub(super) fn next(&mut self, message: &str) -> Result<Option<(u32, Wire<'b>)>, ProtobufError> {
        if self.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0);
        let number =
            number.ok_or_else(|| malformed(message, &(tag >> 3).to_string(), "no such number can be"))?;
        let value = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
                let start = self.position;
                Wire::Bytes(self.take(length)?, start)
            }
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            // Groups (3, 4) are no part of Kubernetes' messages.
            _ => return Err(malformed(message, &number.to_string(), "its wire type is not known")),
        };
        Ok(Some((number, value)))
    }

    /// A number in base 128, least significant digits first.
    pub(super) fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(malformed("body", &self.position.to_string(), "a number is longer than ten bytes"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtobufError> {
        let position = self.position;
        self.take(N)?.try_into().map_err(|_| ProtobufError::Truncated(position))
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], ProtobufError> {
        let (taken, rest) =
            self.bytes.split_at_checked(length).ok_or(ProtobufError::Truncated(self.position))?;
        self.bytes = rest;
        self.position += length;
        Ok(taken)
    }
}
