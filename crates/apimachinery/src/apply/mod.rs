//! Server-side apply (KEP-555).
