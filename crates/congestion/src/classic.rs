//! Detection of a bottleneck whose queue marks according to RFC 3168, for senders of ECT(1).
//!
//! Source: the rules and weights of the reference implementation for Linux (TCP Prague 0.6);
//! design: B. Briscoe and A. S. Ahmed, "TCP Prague Fall-back on Detection of a Classic ECN AQM"
//! (arXiv 1911.00710).
//! Idea: an L4S queue is short and steady, a classic queue is long and varies. Once per round, a
//! score changes by the logarithms of the round-trip time's mean deviation v and of the queueing
//! delay d, each relative to a reference: `lg(v/V0)/2 + max(lg(d/D0), 0)/2`. Below [`STICKY`] the
//! queue counts as L4S; above [`STICKY`] plus [`ONE`] it counts as classic. In between, the
//! reaction to a mark changes gradually. The averages are slower than TCP's, with gains that fall
//! with the window, so that they smooth out a sawtooth.
//! Invariants: the score is between 0 and [`HIGHEST`]; only integers are used, so that all machines
//! agree.

use crate::window::Window;
use sojourn_units::{MILLISECOND, Nanos};

/// The number 1 in the fixed-point format of the score and of logarithms.
const ONE: i64 = 1 << 20;
/// Score up to which the queue counts as L4S.
const STICKY: i64 = 8 * ONE;
/// Maximum score, as far above the end of the transition as 0 is below its start.
const HIGHEST: i64 = STICKY + ONE + STICKY;
/// Mean deviation that leaves the score unchanged, in nanoseconds.
const V0: Nanos = 3 * MILLISECOND / 4;
/// Queueing delay in nanoseconds above which the delay raises the score.
const D0: Nanos = 2 * MILLISECOND;
/// The averages are stored in units of `2^-SCALE` ns; `2^-SCALE` is also the mean's smallest gain.
const SCALE: u32 = 18;
/// Maximum round-trip time in nanoseconds (69 s); longer round-trip times count as this value.
const MAX_RTT: Nanos = 1 << 36;

/// Detector that distinguishes L4S queues from classic ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Detector {
    /// Smoothed round-trip time and its mean deviation, in `2^-SCALE` ns; 0 before the first
    /// sample.
    mean: i64,
    deviation: i64,
    score: i64,
}

impl Detector {
    /// Records a round-trip time in nanoseconds; 0 means no sample.
    #[inline]
    pub(crate) fn on_rtt(&mut self, rtt: Nanos, window: &Window) {
        if rtt == 0 {
            return;
        }
        let rtt = (rtt.min(MAX_RTT) as i64) << SCALE;
        if self.mean == 0 {
            self.mean = rtt;
            return;
        }
        // If ssthresh is w segments, the mean's gain is about 1/(2 w^1.5), and the deviation's gain
        // half as large.
        let segments = (window.ssthresh / window.mss).max(1).ilog2();
        let shift = (segments + segments / 2 + 1).min(SCALE);
        let error = rtt - self.mean;
        self.mean += error >> shift;
        self.deviation += (error.abs() - self.deviation) >> (shift + 1);
    }

    /// Ends a round on a path with `min_rtt` nanoseconds; 0 means unknown.
    pub(crate) fn end_round(&mut self, min_rtt: Nanos) {
        if self.mean == 0 || min_rtt == 0 {
            return;
        }
        let [mean, deviation] = [self.mean, self.deviation].map(|x| (x >> SCALE) as Nanos);
        let varies = lg(deviation) - lg(V0);
        let long = (lg(mean.saturating_sub(min_rtt)) - lg(D0)).max(0);
        self.score = (self.score + varies / 2 + long / 2).clamp(0, HIGHEST);
    }

    /// Returns the minimum of alpha for the reaction to a mark, in 2^-20: from 0 for L4S to 5/8 for
    /// a classic queue.
    pub(crate) fn least_alpha(&self) -> u64 {
        ((self.score - STICKY).clamp(0, ONE) * 5 / 8) as u64
    }

    /// Returns the score in 2^-20, for traces.
    pub(crate) fn score(&self) -> i64 {
        self.score
    }
}

/// Returns the logarithm to base 2, in units of 1/`ONE`; 0 for 0.
fn lg(x: u64) -> i64 {
    let x = x.max(1);
    let whole = x.ilog2();
    // The mantissa is between 2^31 and 2^32. Each squaring gives the next bit of the logarithm.
    let mut mantissa = if whole > 31 { x >> (whole - 31) } else { x << (31 - whole) };
    let mut result = i64::from(whole);
    for _ in 0..ONE.ilog2() {
        mantissa = (mantissa * mantissa) >> 31;
        let bit = mantissa >> 32;
        mantissa >>= bit;
        result = 2 * result + bit as i64;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_exact_to_a_unit() {
        for x in [1u64, 2, 3, 10, 750_000, 2_000_000, 1 << 31, (1 << 40) + 12_345, u64::MAX] {
            let expected = libm::log2(x as f64) * ONE as f64;
            assert!((lg(x) as f64 - expected).abs() < 2.0, "{x}");
        }
        assert_eq!((lg(0), lg(1 << 63)), (0, 63 * ONE));
    }

    /// Rounds of 64 round-trip times that swing by `swing` around 20 ms plus `queue`.
    fn rounds(detector: &mut Detector, count: u32, queue: Nanos, swing: Nanos) {
        let window = Window { cwnd: 64_000, ssthresh: 64_000, mss: 1000 };
        for round in 0..count {
            let base = 20 * MILLISECOND + queue;
            let rtt = if round % 2 == 0 { base - swing } else { base + swing };
            for _ in 0..64 {
                detector.on_rtt(rtt, &window);
            }
            detector.end_round(20 * MILLISECOND);
        }
    }

    #[test]
    fn a_long_queue_that_varies_is_classic_and_a_short_one_is_not() {
        let mut detector = Detector::default();
        rounds(&mut detector, 500, MILLISECOND, MILLISECOND / 2);
        assert_eq!((detector.score(), detector.least_alpha()), (0, 0));
        rounds(&mut detector, 500, 10 * MILLISECOND, 3 * MILLISECOND);
        assert_eq!(detector.score(), HIGHEST);
        assert_eq!(detector.least_alpha(), ONE as u64 * 5 / 8);
        rounds(&mut detector, 1000, MILLISECOND, MILLISECOND / 2);
        assert_eq!(detector.score(), 0, "it finds back");
    }

    /// A standing queue alone, steady, says nothing: the deviation weighs more than its depth.
    #[test]
    fn a_steady_queue_is_not_classic() {
        let mut detector = Detector::default();
        rounds(&mut detector, 500, 5 * MILLISECOND, MILLISECOND / 10);
        assert_eq!(detector.score(), 0);
    }
}
