//! Why a server does not start.

use modelplane_store::OpenError;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The store did not open.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Making or reading certificates failed.
    #[error("the server's certificates cannot be made or read: {detail}")]
    Certificates {
        /// The reason.
        detail: String,
    },
    /// The audit log cannot be opened.
    #[error("the audit log {} cannot be opened: {source}", path.display())]
    AuditLog {
        /// The file.
        path: std::path::PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A token could not be issued or taken back.
    #[error("the access tokens cannot be changed: {detail}")]
    Token {
        /// The reason.
        detail: String,
    },
    /// An object the server needs could not be made.
    #[error("{object} cannot be created: {detail}")]
    Bootstrap {
        /// Which object.
        object: String,
        /// The reason.
        detail: String,
    },
}
