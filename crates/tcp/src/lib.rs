//! TCP as a state machine driven by time.
