//! Parts shared by controls that model the path.

use crate::window::{Ack, RateSample};
use sojourn_units::{Nanos, SECOND};

/// Minimum number of segments in flight, which a receiver with delayed acknowledgements needs
/// (`MinPipeCwnd`).
pub(crate) const MIN_SEGMENTS: u64 = 4;
/// Number of rounds without a bandwidth growth of 1/4 after which the pipe counts as full.
const FULL_ROUNDS: u32 = 3;

/// Returns the delivery rate of a sample in bytes per second; 0 if its interval is 0.
pub(crate) fn rate(sample: &RateSample) -> u64 {
    per_second(sample.delivered, sample.interval)
}

/// Returns the rate of `bytes` in `span` nanoseconds, in bytes per second; 0 if `span` is 0.
#[inline]
pub(crate) fn per_second(bytes: u64, span: Nanos) -> u64 {
    if span == 0 {
        return 0;
    }
    let rate = u128::from(bytes) * u128::from(SECOND) / u128::from(span);
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

/// Returns the fraction `part` of `bytes`.
pub(crate) fn share(bytes: u64, part: f64) -> u64 {
    (bytes as f64 * part) as u64
}

/// Advances `draw` to the next pseudo-random number, and returns its upper 16 bits (0 to 65535).
#[inline]
pub(crate) fn next_draw(draw: &mut u32) -> u32 {
    *draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *draw >> 16
}

/// Count of round trips. A round ends with the acknowledgement of a segment that was sent in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// Number of bytes delivered since the connection began, and value of this number at which the
    /// present round ends.
    pub(crate) delivered: u64,
    pub(crate) next: u64,
    pub(crate) count: u64,
    /// Whether the present acknowledgement begins a round (`round_start`).
    pub(crate) has_started: bool,
}

impl Rounds {
    /// Starts the next round if the acknowledgement with `rate` ends the present one. A sample
    /// without an interval ends none, as in the kernel (`bbr_update_round_start`).
    pub(crate) fn update(&mut self, rate: &RateSample) {
        self.has_started = rate.interval > 0 && rate.prior_delivered >= self.next;
        if self.has_started {
            self.restart();
            self.count = self.count.wrapping_add(1);
        }
    }

    /// Extends the present round until the data sent from now on are acknowledged.
    pub(crate) fn restart(&mut self) {
        self.next = self.delivered;
    }
}

/// Detection of a full pipe: the bandwidth no longer grows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FullPipe {
    /// Bandwidth in bytes per second; at least 5/4 of it restarts the detection (`full_bw`).
    pub(crate) bandwidth: u64,
    pub(crate) rounds: u32,
    /// Whether the pipe counts as full since the last reset of the detection (`full_bw_now`).
    pub(crate) now: bool,
}

impl FullPipe {
    /// Restarts the detection at `bandwidth`.
    pub(crate) fn reset(&mut self, bandwidth: u64) {
        *self = Self { bandwidth, ..Self::default() };
    }

    /// Takes the bandwidth of a round whose rate the application did not limit.
    pub(crate) fn update(&mut self, bandwidth: u64) {
        if bandwidth >= gained(self.bandwidth, 5, 4) {
            return self.reset(bandwidth);
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
    }
}

/// The pacing rate.
#[derive(Clone, Debug)]
pub(crate) struct Pacing {
    /// Bytes per second.
    pub(crate) rate: u64,
    /// Whether a measured round-trip time determined the initial rate.
    is_measured: bool,
}

impl Pacing {
    /// Returns the rate of a new connection: `cwnd` bytes in a millisecond, which counts as the
    /// round-trip time before the first sample, times `gain` / `unit`.
    pub(crate) fn new(cwnd: u64, gain: u64, unit: u64) -> Self {
        Self { rate: gained(cwnd.saturating_mul(1000), gain, unit), is_measured: false }
    }

    /// At the first sample of the round-trip time `srtt`, sets the rate to `cwnd` bytes in this
    /// time, times `gain` / `unit`.
    pub(crate) fn measure(&mut self, cwnd: u64, srtt: Nanos, gain: u64, unit: u64) {
        if !self.is_measured && srtt > 0 {
            self.is_measured = true;
            self.rate = gained(per_second(cwnd, srtt), gain, unit);
        }
    }

    /// Sets the rate; before the pipe `is_full`, only to a greater one.
    pub(crate) fn set(&mut self, rate: u64, is_full: bool) {
        if rate > 0 && (is_full || rate > self.rate) {
            self.rate = rate;
        }
    }
}

/// A probe of the round-trip time with little data in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct RttProbe {
    /// Time at which the probe may end; 0 before the data in flight have fallen to its limit.
    pub(crate) done: Nanos,
    round_done: bool,
    /// Bandwidth samples of segments that were sent before this number of bytes was delivered count
    /// as limited by the application, since few segments are in flight in a probe.
    ignore_before: u64,
    /// Whether sending has just restarted after an idle period, which is as good as a probe
    /// (`idle_restart`).
    pub(crate) idle_restart: bool,
}

impl RttProbe {
    /// Advances a probe of `duration` nanoseconds that begins when at most `limit` bytes are in
    /// flight. Returns whether it has lasted a round.
    pub(crate) fn advance(
        &mut self,
        rounds: &mut Rounds,
        ack: &Ack,
        limit: u64,
        duration: Nanos,
    ) -> bool {
        self.ignore_before = rounds.delivered.saturating_add(ack.in_flight);
        if self.done > 0 {
            self.round_done |= rounds.has_started;
            return self.round_done;
        }
        if ack.in_flight <= limit {
            self.done = ack.now.saturating_add(duration);
            self.round_done = false;
            rounds.restart();
        }
        false
    }

    /// Returns whether the application or a probe limited the rate of a sample.
    pub(crate) fn is_limited(&self, rate: &RateSample) -> bool {
        rate.app_limited || rate.prior_delivered < self.ignore_before
    }
}

/// Recovery from losses, and the window to which it returns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    /// cwnd before the recovery or the probe of the round-trip time (`prior_cwnd`).
    pub(crate) prior_cwnd: u64,
    pub(crate) is_active: bool,
    pub(crate) timed_out: bool,
}

impl Recovery {
    /// Saves cwnd. During a recovery or a probe of the round-trip time, a greater saved value
    /// remains.
    pub(crate) fn save_cwnd(&mut self, cwnd: u64, in_probe: bool) {
        let keeps = self.is_active || in_probe;
        self.prior_cwnd = if keeps { self.prior_cwnd.max(cwnd) } else { cwnd };
    }
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
