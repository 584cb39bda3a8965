//! Time in integer nanoseconds.

/// Nanoseconds of one monotonic clock, or a span of them.
pub type Nanos = u64;

/// One microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// One millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// What a simulation's clock shows at its start. Queue disciplines use 0 for "never", as the kernel
/// does, so a clock must not start there.
pub const EPOCH: Nanos = 1_000 * SECOND;

/// Later than any event.
pub const NEVER: Nanos = Nanos::MAX;

/// Seconds as a real number, for results that people read.
pub fn seconds(span: Nanos) -> f64 {
    span as f64 / SECOND as f64
}
