//! The program in the Function's image: one static ELF file, whose header says for which processor it is.

use std::path::{Path, PathBuf};

use crate::outcome::CommandError;

/// Segments that name a dynamic linker; a static program has none.
const PT_INTERP: u32 = 3;

/// Processors by their number in ELF headers, with their names in OCI images.
const ARCHITECTURES: [(u16, &str); 2] = [(62, "amd64"), (183, "arm64")];

/// A program that runs in an otherwise empty image.
#[derive(Debug)]
pub(super) struct Binary {
    pub(super) architecture: &'static str,
    pub(super) bytes: Vec<u8>,
}

/// Why a file cannot be the program.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum NotUsable {
    #[error("it is not a 64-bit little-endian ELF program")]
    NotElf,
    #[error("it is for a processor of number {0} that images are not built for")]
    Processor(u16),
    #[error("it needs a dynamic linker, which the image does not have")]
    Dynamic,
}

impl Binary {
    /// Reads a program and its architecture.
    pub(super) fn read(path: &Path) -> Result<Self, CommandError> {
        let bytes = std::fs::read(path)
            .map_err(|error| CommandError::new(format!("cannot read {}: {error}", path.display())))?;
        let architecture = inspect(&bytes).map_err(|error| {
            CommandError::new(format!("{}: {error}", path.display())).with_hint(
                "build one with: cargo build --profile dist --target x86_64-unknown-linux-musl --package modelplane-cli, \
                 and name it with --binary",
            )
        })?;
        Ok(Self { architecture, bytes })
    }

    /// Where this program is.
    pub(super) fn this_program() -> Result<PathBuf, CommandError> {
        std::env::current_exe().map_err(|error| {
            CommandError::new(format!("cannot find this program: {error}")).with_hint("name it with --binary")
        })
    }
}

/// The architecture of a static program (ELF-64 object file format).
fn inspect(bytes: &[u8]) -> Result<&'static str, NotUsable> {
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return Err(NotUsable::NotElf);
    }
    let machine = u16::from_le_bytes(array(bytes, 18)?);
    let known = ARCHITECTURES.iter().find(|(number, _)| *number == machine);
    let (_, architecture) = known.ok_or(NotUsable::Processor(machine))?;
    let offset = usize::try_from(u64::from_le_bytes(array(bytes, 32)?)).map_err(|_| NotUsable::NotElf)?;
    let size = usize::from(u16::from_le_bytes(array(bytes, 54)?));
    let count = usize::from(u16::from_le_bytes(array(bytes, 56)?));
    for segment in 0..count {
        let at = offset.checked_add(segment * size).ok_or(NotUsable::NotElf)?;
        if u32::from_le_bytes(array(bytes, at)?) == PT_INTERP {
            return Err(NotUsable::Dynamic);
        }
    }
    Ok(architecture)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], NotUsable> {
    let end = at.checked_add(N).ok_or(NotUsable::NotElf)?;
    bytes.get(at..end).and_then(|slice| slice.try_into().ok()).ok_or(NotUsable::NotElf)
}

/// A file that looks like a static program.
#[cfg(test)]
pub(super) fn specimen(machine: u16, segment: u32) -> Vec<u8> {
    let mut bytes = vec![0; 64 + 56];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes[32] = 64;
    bytes[54] = 56;
    bytes[56] = 1;
    bytes[64..68].copy_from_slice(&segment.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_static_programs_of_known_processors_are_taken() {
        let cases = [
            ("static amd64", specimen(62, 1), Ok("amd64")),
            ("static arm64", specimen(183, 1), Ok("arm64")),
            ("dynamic", specimen(62, PT_INTERP), Err(NotUsable::Dynamic)),
            ("RISC-V", specimen(243, 1), Err(NotUsable::Processor(243))),
            ("a script", b"#!/bin/sh".to_vec(), Err(NotUsable::NotElf)),
            ("cut off", specimen(62, 1)[..66].to_vec(), Err(NotUsable::NotElf)),
            ("empty", Vec::new(), Err(NotUsable::NotElf)),
        ];
        for (name, bytes, expected) in cases {
            assert_eq!(inspect(&bytes), expected, "{name}");
        }
    }
}
