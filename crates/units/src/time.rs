//! Time in integer nanoseconds.

/// Time of one monotonic clock, or a duration, in nanoseconds.
pub type Nanos = u64;

/// One microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// One millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// Start time of a simulation's clock. Queue disciplines use 0 for "never", as the kernel does, so
/// a clock must not start at 0.
pub const EPOCH: Nanos = 1_000 * SECOND;

/// A time later than all events.
pub const NEVER: Nanos = Nanos::MAX;

/// Converts nanoseconds to seconds as a real number, for results that people read.
pub fn seconds(span: Nanos) -> f64 {
    span as f64 / SECOND as f64
}
