//! Kubernetes object semantics without a server: structural schemas, server-side apply, patches, selectors.
