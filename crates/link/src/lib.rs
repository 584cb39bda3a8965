//! One direction of a link as a state machine driven by time.
