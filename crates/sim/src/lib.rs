//! The simulator: virtual time, hosts, traffic, probes.
