//! Traffic sources as state machines driven by time.
