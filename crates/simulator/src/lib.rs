//! Simulated clusters: an API server each, nodes, pods that become ready, devices, and inference engines that answer over HTTP.
