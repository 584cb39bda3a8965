//! PIE: proportional integral controller enhanced, a drop probability that follows the queueing
//! delay.
//!
//! Source: RFC 8033; Linux `sch_pie.c`.
//!
//! Every `tupdate` the drop probability is corrected by two terms: `alpha` times the difference
//! between the queueing delay and `target`, and `beta` times the change of the delay since the last
//! update. While the probability is small, the corrections are scaled down. Arrivals are dropped
//! (or marked) with a probability that accumulates between drops, so that the gaps between drops
//! are neither very short nor very long. The delay comes from timestamps or, with
//! `dq_rate_estimator`, from the measured departure rate.
//!
//! Invariants: no early drop within 150 ms of an update without congestion, or below a backlog of
//! two largest frames. Under long overload the probability can exceed 1, as in the kernel.

use crate::aqm::{Aqm, AqmParams, Common};
use crate::declaration::DisciplineParams;
use crate::device::Device;
use crate::discipline::{Call, Draws, DropReason, MarkReason, Sink, visit_fields};
use crate::flow_queues::Overflow;
use crate::kinds::{micros, packets};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, Queued, Source};
use crate::single::Single;
use sojourn_units::declare::{derived, integer, switch};
use sojourn_units::{Nanos, jiffies, params};

params! {
    "pie": "PIE: a drop probability that keeps the queueing delay near a target",
    from "RFC 8033; Linux sch_pie.c";

    /// Parameters of PIE, in the units that `tc` passes to the kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in the queue; packets that arrive at a full queue are dropped.
        limit: u32 = packets("1000p").above_zero(),
        /// Target of the queueing delay, in whole microseconds.
        target_us as "target": u32 = micros("15ms").above_zero(),
        /// Time between updates of the probability, rounded up to the kernel's timer ticks.
        tupdate_us as "tupdate": u32 = micros("15ms").above_zero(),
        /// Gain on the difference between delay and target, in 1/16 Hz.
        alpha: u32 = integer(1, 32, "2"),
        /// Gain on the change of the delay since the last update, in 1/16 Hz.
        beta: u32 = integer(1, 32, "20"),
        /// Marks ECN-capable packets instead of dropping them early, up to a probability of 10 %.
        ecn: bool = switch("noecn", "noecn"),
        /// Scales the drop probability by the packet's length.
        bytemode: bool = switch("nobytemode", "nobytemode"),
        /// Computes the delay from backlog and departure rate instead of timestamps.
        dq_rate_estimator: bool = switch("no_dq_rate_estimator", "no_dq_rate_estimator"),
        /// Largest frame of the device, in bytes.
        mtu: u32 = derived(|device: &Device| device.psched_mtu),
        /// Timer ticks per second.
        hz: u32 = derived(|device: &Device| device.hz),
    }
}

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }

    fn derived(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("target_ticks", self.constants().target);
    }
}

impl Params {
    /// Returns these parameters in ticks of PIE's clock and in units of 1 / [`MAX_PROB`].
    pub fn constants(&self) -> Constants {
        Constants {
            target: clock(u64::from(self.target_us) * 1000),
            alpha: self.alpha,
            beta: self.beta,
            mtu: self.mtu,
            bytemode: self.bytemode,
            dq_rate_estimator: self.dq_rate_estimator,
            ecn: self.ecn,
            ecn_max_prob: MAX_PROB / 10,
        }
    }
}

impl AqmParams for Params {
    type Aqm = State;

    fn constants(&self) -> Constants {
        self.constants()
    }

    /// The update of the buckets left out follows at the next timer tick.
    fn next_update(&self, now: Nanos, is_partial: bool) -> Option<Nanos> {
        let ticks = if is_partial { 0 } else { jiffies::from_micros(self.tupdate_us, self.hz) };
        Some(jiffies::after(now, ticks, self.hz))
    }

    fn visit(counters: &Counters, overflow: &Overflow, visit: &mut dyn FnMut(&'static str, u64)) {
        visit_fields!(visit, counters, [packets_in, dropped]);
        visit("overlimit", overflow.dropped);
        visit_fields!(visit, counters, [ecn_mark, maxq]);
    }
}

/// Parameters in the units of PIE's decisions; times are in ticks of 64 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Target of the queueing delay, in ticks.
    pub target: u64,
    /// Gain on the difference between delay and target, in 1/16 Hz.
    pub alpha: u32,
    /// Gain on the change of the delay, in 1/16 Hz.
    pub beta: u32,
    /// Largest frame in bytes; a backlog below two such frames causes no early drop.
    pub mtu: u32,
    /// Whether the drop probability is scaled by the packet's length.
    pub bytemode: bool,
    /// Whether the delay is computed from the departure rate.
    pub dq_rate_estimator: bool,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Probability up to which packets are marked, in units of 1 / [`MAX_PROB`]; above it they are
    /// dropped.
    pub ecn_max_prob: u64,
}

/// Returns the time on PIE's clock, in ticks of 64 ns.
pub fn clock(now: Nanos) -> u64 {
    now >> 6
}

/// Probability 1 in PIE's units.
pub const MAX_PROB: u64 = u64::MAX >> 8;
const INVALID: u64 = u64::MAX;
const TICKS_PER_SECOND: u64 = 15_625_000;
const MAX_BURST: u64 = 2_343_750;
/// Number of bytes over which a departure rate is measured.
const MEASURE: u64 = 16_384;
/// Delay of 250 ms in ticks, above which the probability rises faster.
const LONG_DELAY: u64 = 3_906_250;

/// PIE's state of one queue. Times are ticks of 64 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Queueing delay at the last measurement, in ticks.
    pub qdelay: u64,
    /// Queueing delay at the last update, in ticks.
    pub qdelay_old: u64,
    /// Remaining time in which no packet is dropped early, in ticks.
    pub burst_time: u64,
    /// Start of the rate measurement or, with timestamps, time of the last departure; 2^64 - 1 if
    /// there was none since the last reset.
    pub dq_tstamp: u64,
    /// Drop probability in units of 1 / [`MAX_PROB`], which is 2^56 - 1.
    pub prob: u64,
    /// Sum of the drop probabilities since the last drop of an arriving packet (for any reason),
    /// the last mark by a random draw, or a probability of 0, in the same units as `prob`.
    pub accu_prob: u64,
    /// Bytes that have departed in this rate measurement; 2^64 - 1 without a measurement.
    pub dq_count: u64,
    /// Average departure rate in bytes per tick, times 256; 0 before the first measurement.
    pub avg_dq_rate: u32,
    /// Backlog at the last update, in bytes.
    pub backlog_old: u32,
}

impl Default for State {
    fn default() -> Self {
        Self {
            qdelay: 0,
            qdelay_old: 0,
            burst_time: MAX_BURST,
            dq_tstamp: INVALID,
            prob: 0,
            accu_prob: 0,
            dq_count: INVALID,
            avg_dq_rate: 0,
            backlog_old: 0,
        }
    }
}

impl State {
    fn reset(&mut self) {
        *self = Self {
            qdelay: self.qdelay,
            qdelay_old: self.qdelay_old,
            prob: self.prob,
            backlog_old: self.backlog_old,
            ..Self::default()
        };
    }

    /// Returns whether a packet of `len` bytes that arrives at a backlog of `backlog` bytes is to
    /// be dropped or marked.
    #[inline]
    pub fn early(
        &mut self,
        constants: &Constants,
        backlog: u64,
        len: u32,
        draws: &mut impl Draws,
    ) -> bool {
        if self.burst_time > 0 {
            return false;
        }
        if self.qdelay < constants.target / 2 && self.prob < MAX_PROB / 5 {
            return false;
        }
        if backlog < 2 * u64::from(constants.mtu) {
            return false;
        }
        let p = if constants.bytemode && len <= constants.mtu {
            u64::from(len) * (self.prob / u64::from(constants.mtu))
        } else {
            self.prob
        };
        if p == 0 {
            self.accu_prob = 0;
        } else {
            self.accu_prob = self.accu_prob.wrapping_add(p);
        }
        if self.accu_prob < (MAX_PROB / 100) * 85 {
            return false;
        }
        if self.accu_prob >= (MAX_PROB / 2) * 17 {
            return true;
        }
        if draws.draw_u64() >> 8 < p {
            self.accu_prob = 0;
            return true;
        }
        false
    }

    /// Updates the state after the departure of a packet of `len` bytes, enqueued at `at`, which
    /// leaves a backlog of `backlog` bytes.
    #[inline]
    pub fn departed(
        &mut self,
        constants: &Constants,
        now: Nanos,
        at: Nanos,
        len: u32,
        backlog: u64,
    ) {
        let now = clock(now);
        let elapsed = if constants.dq_rate_estimator {
            match self.measure(now, len, backlog) {
                Some(elapsed) => elapsed,
                None => return,
            }
        } else {
            self.qdelay = if backlog == 0 { 0 } else { now.wrapping_sub(clock(at)) };
            let elapsed =
                if self.dq_tstamp == INVALID { 0 } else { now.wrapping_sub(self.dq_tstamp) as u32 };
            self.dq_tstamp = now;
            elapsed
        };
        self.burst_time = self.burst_time.saturating_sub(elapsed.into());
    }

    /// Measures the departure rate. Returns the duration of a measurement that ends with this
    /// departure, in ticks; `None` otherwise.
    fn measure(&mut self, now: u64, len: u32, backlog: u64) -> Option<u32> {
        if backlog >= MEASURE && self.dq_count == INVALID {
            self.dq_tstamp = now;
            self.dq_count = 0;
        }
        if self.dq_count == INVALID {
            return None;
        }
        self.dq_count += u64::from(len);
        if self.dq_count < MEASURE {
            return None;
        }
        let elapsed = now.wrapping_sub(self.dq_tstamp) as u32;
        if elapsed == 0 {
            return None;
        }
        let rate = ((self.dq_count << 8) as u32) / elapsed;
        self.avg_dq_rate = if self.avg_dq_rate == 0 {
            rate
        } else {
            (self.avg_dq_rate - (self.avg_dq_rate >> 3)).wrapping_add(rate >> 3)
        };
        if backlog < MEASURE {
            self.dq_count = INVALID;
        } else {
            self.dq_count = 0;
            self.dq_tstamp = now;
        }
        Some(elapsed)
    }

    /// Updates the drop probability at a backlog of `backlog` bytes; called once per `tupdate`.
    #[inline]
    pub fn update(&mut self, constants: &Constants, backlog: u64) {
        // An empty queue in its initial state does not change. Most of the queues of `fq_pie` are
        // in that state.
        if backlog > 0 || *self != Self::default() {
            self.correct(constants, backlog);
        }
    }

    fn correct(&mut self, constants: &Constants, backlog: u64) {
        let (delay, old) = if constants.dq_rate_estimator {
            self.qdelay_old = self.qdelay;
            let scaled = (backlog << 8) as u32;
            (u64::from(scaled.checked_div(self.avg_dq_rate).unwrap_or(0)), self.qdelay_old)
        } else {
            (self.qdelay, self.qdelay_old)
        };
        let mut decay = !(delay == 0 && backlog > 0);
        let unit = MAX_PROB / TICKS_PER_SECOND;
        let mut alpha = u64::from(constants.alpha).wrapping_mul(unit) >> 4;
        let mut beta = u64::from(constants.beta).wrapping_mul(unit) >> 4;
        if self.prob < MAX_PROB / 10 {
            alpha >>= 1;
            beta >>= 1;
            let mut power = 100;
            while power <= 1_000_000 && self.prob < MAX_PROB / power {
                alpha >>= 2;
                beta >>= 2;
                power *= 10;
            }
        }
        let mut delta = (alpha.wrapping_mul(delay.wrapping_sub(constants.target)) as i64)
            .wrapping_add(beta.wrapping_mul(delay.wrapping_sub(old)) as i64);
        if delta > (MAX_PROB / 50) as i64 && self.prob >= MAX_PROB / 10 {
            delta = (MAX_PROB / 100) as i64 * 2;
        }
        if delay > LONG_DELAY {
            delta = delta.wrapping_add((MAX_PROB / 50) as i64);
        }
        let before = self.prob;
        self.prob = before.wrapping_add(delta as u64);
        if delta > 0 {
            if self.prob < before {
                self.prob = MAX_PROB;
                decay = false;
            }
        } else if self.prob > before {
            self.prob = 0;
        }
        if delay == 0 && old == 0 && decay {
            self.prob -= self.prob / 64;
        }
        self.qdelay = delay;
        self.backlog_old = backlog as u32;
        let calm = self.qdelay < constants.target / 2
            && self.qdelay_old < constants.target / 2
            && self.prob == 0;
        if calm && (!constants.dq_rate_estimator || self.avg_dq_rate > 0) {
            self.reset();
        }
        if !constants.dq_rate_estimator {
            self.qdelay_old = delay;
        }
    }
}

impl Aqm for State {
    type Constants = Constants;
    type Counters = Counters;

    #[inline]
    fn admit<P: Packet>(
        &mut self,
        common: &mut Common<Self>,
        queue: &PacketFifo<P>,
        packet: &mut P,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> bool {
        if self.early(&common.constants, queue.bytes(), packet.len(), call.draws) {
            if !(common.constants.ecn
                && self.prob <= common.constants.ecn_max_prob
                && packet.set_ce())
            {
                return false;
            }
            common.counters.ecn_mark += 1;
            call.sink.marked(packet, MarkReason::Early);
        }
        common.counters.packets_in += 1;
        // As in the kernel, the maximum does not include the arriving packet.
        common.counters.maxq = common.counters.maxq.max(queue.len() as u64);
        true
    }

    #[inline]
    fn refused(&mut self, common: &mut Common<Self>, _now: Nanos, _reason: DropReason) {
        common.counters.dropped += 1;
        self.accu_prob = 0;
    }

    #[inline]
    fn dequeue<P: Packet>(
        &mut self,
        common: &mut Common<Self>,
        source: &mut impl Source<P>,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Option<P> {
        let Queued { at, packet, .. } = source.take()?;
        self.departed(&common.constants, call.now, at, packet.len(), source.bytes());
        Some(packet)
    }

    fn update<P: Packet>(&mut self, constants: &Constants, _now: Nanos, queue: &PacketFifo<P>) {
        self.update(constants, queue.bytes());
    }

    fn visit(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        let valid = |value: u64| if value == INVALID { -1 } else { i128::from(value) };
        visit_fields!(visit, self, [prob, accu_prob, qdelay, qdelay_old, burst_time]);
        visit("dq_tstamp", valid(self.dq_tstamp));
        visit("dq_count", valid(self.dq_count));
        visit_fields!(visit, self, [avg_dq_rate, backlog_old]);
    }
}

/// Counters of PIE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of packets enqueued.
    pub packets_in: u64,
    /// Number of packets dropped on arrival, for any reason.
    pub dropped: u64,
    /// Number of packets marked instead of dropped.
    pub ecn_mark: u64,
    /// Largest number of packets of one queue.
    pub maxq: u64,
}

/// A PIE queue.
pub type Pie<P> = Single<P, Params>;

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::declare::Parameters;

    /// Checks that the updates that [`State::update`] skips change nothing.
    #[test]
    fn a_queue_at_rest_stays_at_rest() {
        for dq_rate_estimator in [false, true] {
            for (alpha, beta) in [(1, 1), (2, 20), (32, 32)] {
                let params =
                    Params { alpha, beta, dq_rate_estimator, ..Params::new(&Device::default()) };
                let mut state = State::default();
                state.correct(&params.constants(), 0);
                assert_eq!(state, State::default());
            }
        }
    }
}
