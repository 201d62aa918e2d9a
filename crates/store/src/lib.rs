//! A durable, revisioned, watchable key-value store in one file.
