//! Addresses, networks and URLs as the Kubernetes CEL libraries read them. Nothing here opens a connection.

mod cidr;
mod ip;
mod url;

pub use cidr::Cidr;
pub use ip::Ip;
pub use url::Url;

/// Why a text is not an address, a network or a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// Not an IPv4 or IPv6 address.
    #[error("\"{0}\" is not an IP address")]
    Address(String),
    /// An address with a zone (`fe80::1%eth0`).
    #[error("IP address \"{0}\" with zone value is not allowed")]
    Zone(String),
    /// An IPv4 address in IPv6 notation.
    #[error("IPv4-mapped IPv6 address \"{0}\" is not allowed")]
    Mapped(String),
    /// Not an address followed by a slash and a prefix length that fits the address.
    #[error("\"{0}\" is not a network in CIDR notation")]
    Network(String),
    /// Not an absolute URL or absolute path.
    #[error("\"{text}\" is not a URL: {cause}")]
    Url {
        /// The refused text.
        text: String,
        /// What is wrong with it.
        cause: &'static str,
    },
}
