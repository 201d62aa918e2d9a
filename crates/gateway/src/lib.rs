//! The OpenAI-compatible data plane: listener, ordered policies, endpoint choice, forwarding.
