//! The kernel's coarse clock (jiffies), which determines the times of periodic tasks.

use crate::{Nanos, SECOND};

/// Returns the length of a tick in nanoseconds; `None` if it is not a whole number. Calculations
/// with a whole number of nanoseconds need only 64 bits.
#[inline]
fn tick(hz: u32) -> Option<Nanos> {
    const SECOND_32: u32 = SECOND as u32;
    SECOND_32.is_multiple_of(hz).then(|| (SECOND_32 / hz).into())
}

/// Returns the number of complete ticks at `now`, which is in nanoseconds.
#[inline]
pub fn at(now: Nanos, hz: u32) -> u64 {
    match tick(hz) {
        Some(tick) => now / tick,
        None => (u128::from(now) * u128::from(hz) / u128::from(SECOND)) as u64,
    }
}

/// Returns the start of tick `jiffy` in nanoseconds: the first time at which [`at`] returns it.
#[inline]
pub fn start(jiffy: u64, hz: u32) -> Nanos {
    match tick(hz) {
        Some(tick) => jiffy.wrapping_mul(tick),
        None => (u128::from(jiffy) * u128::from(SECOND)).div_ceil(u128::from(hz)) as Nanos,
    }
}

/// Returns the smallest number of ticks that last at least `delay` nanoseconds.
#[inline]
fn ticks(delay: Nanos, hz: u32) -> u64 {
    match tick(hz) {
        Some(tick) => delay.div_ceil(tick),
        None => (u128::from(delay) * u128::from(hz)).div_ceil(u128::from(SECOND)) as u64,
    }
}

/// Returns the expiry time of a timer that is set at `now` to expire after `span` ticks.
pub fn after(now: Nanos, span: u64, hz: u32) -> Nanos {
    start(fires(at(now, hz) + span, span), hz)
}

/// Number of steps that a level of the timer wheel covers: 64 slots, one of which is the current
/// one.
const REACH: u64 = 63;
/// Binary logarithm of the ratio between the step lengths of successive levels, which is 8.
const SHIFT: u32 = 3;

/// Returns the tick at which the timer wheel fires a timer that was set `span` ticks before its
/// expiry `expires`. The wheel never fires early, so the timer fires up to one step of its level
/// late (Linux, `calc_index` in `kernel/time/timer.c`).
#[inline]
pub fn fires(expires: u64, span: u64) -> u64 {
    let mut shift = 0;
    while span >= REACH << shift {
        shift += SHIFT;
    }
    ((expires >> shift) + 1) << shift
}

/// Returns the expiry time of a timer that is set at `now` to expire after `delay` nanoseconds,
/// with a clock of `hz` ticks per second. If `hz` is 0, the clock has no ticks and the time is
/// exact.
#[inline]
pub fn later(now: Nanos, delay: Nanos, hz: u32) -> Nanos {
    if hz == 0 {
        return now + delay;
    }
    after(now, ticks(delay, hz), hz)
}

/// Returns the time from `from` to `to` in nanoseconds, as measured by a clock of `hz` ticks per
/// second. If `hz` is 0, the clock has no ticks and the time is exact.
#[inline]
pub fn between(from: Nanos, to: Nanos, hz: u32) -> Nanos {
    if hz == 0 {
        return to.saturating_sub(from);
    }
    start(at(to, hz).saturating_sub(at(from, hz)), hz)
}

/// Converts a duration in microseconds to ticks, rounded up.
pub fn from_micros(micros: u32, hz: u32) -> u64 {
    (u64::from(micros) * u64::from(hz)).div_ceil(1_000_000)
}

/// Converts a duration in milliseconds to ticks, rounded up.
pub fn from_millis(millis: u32, hz: u32) -> u64 {
    (u64::from(millis) * u64::from(hz)).div_ceil(1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Clocks with a whole number of nanoseconds per tick and other clocks follow the same
        /// definition.
        #[test]
        fn ticks_are_exact(now in any::<u64>(), hz in prop_oneof![Just(100u32), Just(250), Just(1000), 1u32..2000]) {
            let (wide, second) = (u128::from(now), u128::from(SECOND));
            let scaled = wide * u128::from(hz);
            prop_assert_eq!(at(now, hz), (scaled / second) as u64);
            prop_assert_eq!(ticks(now, hz), scaled.div_ceil(second) as u64);
            prop_assert_eq!(start(now, hz), (wide * second).div_ceil(u128::from(hz)) as u64);
        }
    }

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
                assert_eq!(after(start(jiffy + 1, hz) - 1, 3, hz), start(jiffy + 4, hz));
                let delay = start(2, hz) + 1;
                assert_eq!(later(start(jiffy, hz), delay, hz), start(jiffy + 4, hz));
                assert_eq!(later(jiffy, delay, 0), jiffy + delay);
            }
        }
    }

    #[test]
    fn timers_fire_as_the_wheel_has_them() {
        assert_eq!([0, 1, 62].map(|span| fires(100 + span, span)), [101, 102, 163]);
        // A timer of 63 ticks or more is rounded to steps of 8 ticks, one of 504 or more to steps
        // of 64.
        assert_eq!([63, 500, 503].map(|span| fires(span, span)), [64, 504, 504]);
        assert_eq!([504, 1000].map(|span| fires(span, span)), [512, 1024]);
    }
}
