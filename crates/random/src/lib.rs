//! Counter-based random streams keyed by seed, component and purpose, and our own samplers.
