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
    /// An object the server needs could not be made.
    #[error("{object} cannot be created: {detail}")]
    Bootstrap {
        /// Which object.
        object: String,
        /// The reason.
        detail: String,
    },
}
