//! Functions shared by controls that model the path.

use crate::window::RateSample;
use sojourn_units::{Nanos, SECOND};

/// Minimum number of segments in flight, which a receiver with delayed acknowledgements needs
/// (`MinPipeCwnd`).
pub(crate) const MIN_SEGMENTS: u64 = 4;

/// Returns the delivery rate of a sample in bytes per second; 0 if its interval is 0.
#[inline]
pub(crate) fn rate(sample: &RateSample) -> u64 {
    if sample.interval == 0 {
        return 0;
    }
    let rate = u128::from(sample.delivered) * u128::from(SECOND) / u128::from(sample.interval);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Returns the bytes that arrive in `span` nanoseconds at `rate` bytes per second.
#[inline]
pub(crate) fn bytes(rate: u64, span: Nanos) -> u64 {
    let bytes = u128::from(rate) * u128::from(span) / u128::from(SECOND);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Returns `rate` times `gain`; the gain is in units of 1/`unit`.
#[inline]
pub(crate) fn gained(rate: u64, gain: u64, unit: u64) -> u64 {
    let rate = u128::from(rate) * u128::from(gain) / u128::from(unit);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Advances `draw` to the next pseudo-random number, and returns its upper 16 bits (0 to 65535).
#[inline]
pub(crate) fn next_draw(draw: &mut u32) -> u32 {
    *draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *draw >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_saturate_and_need_an_interval() {
        let sample = RateSample { delivered: 1000, interval: SECOND / 2, ..RateSample::default() };
        assert_eq!(rate(&sample), 2000);
        assert_eq!(rate(&RateSample { interval: 0, ..sample }), 0);
        assert_eq!(rate(&RateSample { delivered: u64::MAX, interval: 1, ..sample }), u64::MAX);
        assert_eq!(bytes(2000, SECOND / 4), 500);
        assert_eq!((gained(1000, 5, 4), gained(u64::MAX, 5, 4)), (1250, u64::MAX));
    }
}
