//! The kernel's coarse clock, by which periodic tasks are due.

use sojourn_units::{Nanos, SECOND};

/// Ticks of the coarse clock at `now`: rounded down.
pub fn at(now: Nanos, hz: u32) -> u64 {
    (u128::from(now) * u128::from(hz) / u128::from(SECOND)) as u64
}

/// When tick `jiffy` begins: the first nanosecond at which [`at`] gives it.
pub fn start(jiffy: u64, hz: u32) -> Nanos {
    (u128::from(jiffy) * u128::from(SECOND)).div_ceil(u128::from(hz)) as Nanos
}

/// When `span` ticks have passed since the tick of `now`: a timer set then is due.
pub fn after(now: Nanos, span: u64, hz: u32) -> Nanos {
    start(at(now, hz) + span, hz)
}

/// A span in microseconds, in ticks: rounded up.
pub fn from_micros(micros: u32, hz: u32) -> u64 {
    (u64::from(micros) * u64::from(hz)).div_ceil(1_000_000)
}

/// A span in milliseconds, in ticks: rounded up.
pub fn from_millis(millis: u32, hz: u32) -> u64 {
    (u64::from(millis) * u64::from(hz)).div_ceil(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_as_the_kernel_does() {
        assert_eq!([1000, 250, 100].map(|hz| from_millis(15, hz)), [15, 4, 2]);
        assert_eq!(from_millis(u32::MAX, 1000), u64::from(u32::MAX));
        assert_eq!([1000, 250, 100].map(|hz| from_micros(15_000, hz)), [15, 4, 2]);
        assert_eq!(at(999_999, 1000), 0);
        assert_eq!(at(1_000_000, 1000), 1);
        for hz in [100, 250, 300, 1000] {
            for jiffy in [0, 1, 7, 1_000_003] {
                assert_eq!(at(start(jiffy, hz), hz), jiffy);
                assert!(jiffy == 0 || at(start(jiffy, hz) - 1, hz) == jiffy - 1);
                assert_eq!(after(start(jiffy + 1, hz) - 1, 3, hz), start(jiffy + 3, hz));
            }
        }
    }
}
