//! crossplane
