//! Why a text is not a quantity.

/// Longest piece of a refused text that an error quotes, in bytes.
const QUOTED: usize = 64;

/// Why a text is not a quantity; the message quotes at most 64 bytes of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// There is no text.
    #[error("a quantity cannot be empty")]
    Empty,
    /// The part in front of the suffix has no digit and the suffix is not one that makes this mean 0.
    #[error("quantity \"{text}\" has no digits")]
    NoDigits {
        /// The refused text.
        text: Box<str>,
    },
    /// What follows the digits is no known suffix or exponent.
    #[error("quantity \"{text}\" has the unknown suffix \"{suffix}\"")]
    UnknownSuffix {
        /// The refused text.
        text: Box<str>,
        /// What follows the digits.
        suffix: Box<str>,
    },
    /// The exponent is beyond ±10,000, a limit of this crate: Kubernetes itself may not return from such texts.
    #[error("quantity \"{text}\" has an exponent beyond ±{limit}", limit = super::parse::EXPONENT_LIMIT)]
    ExponentOutOfRange {
        /// The refused text.
        text: Box<str>,
    },
}

impl QuantityError {
    pub(super) fn no_digits(text: &str) -> Self {
        Self::NoDigits { text: quoted(text) }
    }

    pub(super) fn unknown_suffix(text: &str, suffix: &str) -> Self {
        Self::UnknownSuffix { text: quoted(text), suffix: quoted(suffix) }
    }

    pub(super) fn exponent_out_of_range(text: &str) -> Self {
        Self::ExponentOutOfRange { text: quoted(text) }
    }

    /// What to write instead, where the mistake is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        let Self::UnknownSuffix { suffix, .. } = self else { return None };
        match suffix.trim() {
            "K" | "KB" | "kB" | "kb" | "Kb" => Some("write `k` for 1000 or `Ki` for 1024"),
            "ki" | "KiB" | "kib" => Some("write `Ki` for 1024"),
            "MB" | "mb" | "Mb" | "mi" | "MiB" => Some("write `M` for 10^6 or `Mi` for 2^20"),
            "g" | "GB" | "gb" | "Gb" | "gi" | "GiB" => Some("write `G` for 10^9 or `Gi` for 2^30"),
            "t" | "TB" | "tb" | "Tb" | "ti" | "TiB" => Some("write `T` for 10^12 or `Ti` for 2^40"),
            "PB" | "PiB" => Some("write `P` for 10^15 or `Pi` for 2^50"),
            "EB" | "EiB" => Some("write `E` for 10^18 or `Ei` for 2^60"),
            _ => None,
        }
    }
}

/// The start of a text, cut at a character border.
fn quoted(text: &str) -> Box<str> {
    let mut end = text.len().min(QUOTED);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}
