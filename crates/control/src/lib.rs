//! Congestion control and the other policies.
