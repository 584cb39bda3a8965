//! Time in integer nanoseconds.

/// Time of one monotonic clock, or a duration, in nanoseconds.
pub type Nanos = u64;

/// One microsecond in nanoseconds.
pub const MICROSECOND: Nanos = 1_000;
/// One millisecond in nanoseconds.
pub const MILLISECOND: Nanos = 1_000_000;
/// One second in nanoseconds.
pub const SECOND: Nanos = 1_000_000_000;

/// Start time of a simulation's clock in nanoseconds. Queue disciplines use 0 for "never", as in
/// the kernel, so a clock must not start at 0.
pub const EPOCH: Nanos = 1_000 * SECOND;

/// A time later than any event.
pub const NEVER: Nanos = Nanos::MAX;

/// Converts nanoseconds to seconds, for results.
pub fn seconds(span: Nanos) -> f64 {
    span as f64 / SECOND as f64
}
