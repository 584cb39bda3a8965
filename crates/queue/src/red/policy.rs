//! RED without its queue: average, decision and counters, for `red` and `choke`.

use super::average::Filter;
use super::params::{Adaptation, Averaging, Options, Params, Ramp};
use crate::discipline::{Draws, DropReason, MarkReason, Sink, Totals, visit_fields};
use crate::packet::Packet;
use sojourn_units::Nanos;
use std::cmp::Ordering;

/// Position of the last average relative to `min` and `max`, for `feng`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Below,
    Between,
    Above,
}

/// State of RED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Average backlog in the unit of the limit, as a fixed-point number.
    pub qavg: u64,
    /// Number of arrivals since the last early drop or mark; -1 while the average is off the ramp.
    pub qcount: i32,
    /// Random threshold that determines the gap to the next early drop or mark.
    pub q_r: u32,
    /// Time at which the queue became idle; 0 while it is not idle.
    pub qidlestart: Nanos,
    /// Present maximum probability, in units of 2^-32.
    pub max_p: u32,
    /// Divisor of random draws of 32 bits; the quotient is the threshold `q_r`.
    divisor: u32,
    side: Side,
}

/// Counters of RED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    prob_drop: u64,
    forced_drop: u64,
    pdrop: u64,
    prob_mark: u64,
    forced_mark: u64,
}

/// RED's decision about an arrival: accept; drop or mark early; drop or mark because the average is
/// above the ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Early,
    Hard,
}

/// Average, decision and counters of RED.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    params: Params,
    filter: Filter,
    state: State,
    counters: Counters,
}

const ONE_PERCENT: u32 = 42_949_673;

impl Policy {
    /// Returns the policy of a queue that has been idle since `qidlestart`; 0 for a queue that is
    /// not idle.
    ///
    /// # Panics
    /// If [`crate::Params::parse`] would reject `params`.
    pub(crate) fn new(params: Params, qidlestart: Nanos) -> Self {
        match params.averaging {
            Averaging::Burst(_) => {
                let options = params.options().expect("`parse` has checked the parameters");
                Self::with_options(params, &options, qidlestart)
            }
            Averaging::Weight(weight) => {
                let packet_time = params.bandwidth.transmission_time(params.avpkt);
                let filter = Filter::weighted(weight, packet_time);
                Self::with_filter(params, filter, params.max_p, qidlestart)
            }
        }
    }

    /// Returns the policy with the numbers that `tc` would send; they replace those in `params`.
    pub(crate) fn with_options(params: Params, options: &Options, qidlestart: Nanos) -> Self {
        let params = Params {
            limit: options.limit,
            min: options.min,
            max: options.max,
            max_p: options.max_p,
            ..params
        };
        Self::with_filter(params, Filter::shifted(options), options.max_p_in_force(), qidlestart)
    }

    fn with_filter(params: Params, filter: Filter, max_p: u32, qidlestart: Nanos) -> Self {
        let state =
            State { qavg: 0, qcount: -1, q_r: 0, qidlestart, max_p, divisor: 1, side: Side::Below };
        let mut policy = Self { params, filter, state, counters: Counters::default() };
        policy.state.divisor = (max_p / policy.width()).max(1);
        policy
    }

    /// Returns the parameters.
    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters; the average starts anew.
    pub(crate) fn change(&mut self, params: Params, qidlestart: Nanos) {
        let fresh = Self::new(params, qidlestart);
        let state = State { q_r: self.state.q_r, ..fresh.state };
        *self = Self { state, counters: self.counters, ..fresh };
    }

    fn width(&self) -> u32 {
        self.params.max.saturating_sub(self.params.min).max(1)
    }

    /// Returns the average at which the ramp ends.
    #[inline]
    fn end(&self) -> u64 {
        match self.params.ramp {
            Ramp::Steep => u64::from(self.params.max),
            Ramp::Gentle => 2 * u64::from(self.params.max),
            Ramp::GentleLimit => u64::from(self.params.limit),
        }
    }

    /// Returns whether probabilities are computed more exactly than in Linux.
    fn fine(&self) -> bool {
        self.params.ramp != Ramp::Steep || self.filter.is_fine()
    }

    /// Returns the drop probability at the present average, in units of 2^-32, regardless of the
    /// number of arrivals since the last drop.
    fn probability(&self) -> u64 {
        let bits = self.filter.bits();
        let (low, high) = (u64::from(self.params.min) << bits, u64::from(self.params.max) << bits);
        let max_p = u64::from(self.state.max_p);
        let avg = self.state.qavg;
        let part = |of: u64, from: u64, to: u64| {
            (u128::from(of) * u128::from(avg - from) / u128::from(to - from)) as u64
        };
        if avg < high {
            part(max_p, low, high)
        } else {
            max_p + part((1 << 32) - max_p, high, self.end() << bits)
        }
    }

    fn threshold(&self, draws: &mut impl Draws) -> u32 {
        if self.fine() { draws.draw_u32() } else { draws.draw_u32() / self.state.divisor }
    }

    /// Updates the average with the backlog before an arrival; must be called first on each
    /// arrival.
    #[inline]
    pub(crate) fn average(&mut self, now: Nanos, backlog: u64) {
        if self.state.qidlestart == 0 {
            self.state.qavg = self.filter.sample(self.state.qavg, backlog);
        } else {
            let idle = now.saturating_sub(self.state.qidlestart);
            self.state.qavg = self.filter.decay(self.state.qavg, idle);
            self.state.qidlestart = 0;
        }
        if self.params.adaptation == Adaptation::Feng {
            self.feng();
        }
    }

    /// Records that a dequeue found the queue empty.
    #[inline]
    pub(crate) fn idle(&mut self, now: Nanos) {
        if self.state.qidlestart == 0 {
            self.state.qidlestart = now;
        }
    }

    /// Compares the average with `min`.
    pub(crate) fn against_min(&self) -> Ordering {
        self.state.qavg.cmp(&(u64::from(self.params.min) << self.filter.bits()))
    }

    /// Compares the average with the end of the ramp.
    pub(crate) fn against_end(&self) -> Ordering {
        self.state.qavg.cmp(&(self.end() << self.filter.bits()))
    }

    /// Returns the decision for an average below the ramp.
    #[inline]
    pub(crate) fn below(&mut self) -> Verdict {
        self.state.qcount = -1;
        Verdict::Pass
    }

    /// Returns the decision for an average above the ramp.
    #[inline]
    pub(crate) fn above(&mut self) -> Verdict {
        self.state.qcount = -1;
        Verdict::Hard
    }

    /// Returns the decision for an average on the ramp.
    #[inline]
    pub(crate) fn between(&mut self, draws: &mut impl Draws) -> Verdict {
        self.state.qcount = self.state.qcount.wrapping_add(1);
        if self.state.qcount == 0 {
            self.state.q_r = self.threshold(draws);
            return Verdict::Pass;
        }
        let pace = if self.fine() {
            self.probability()
        } else {
            let bits = self.filter.bits();
            (self.state.qavg - (u64::from(self.params.min) << bits)) >> bits
        };
        // With `wait`, `least` is the upper limit of the random threshold `q_r`: 2^32, or 2^32
        // divided by `divisor`.
        let least = match (self.params.wait, self.fine()) {
            (false, _) => 0,
            (true, true) => 1 << 32,
            (true, false) => (1 << 32) / u64::from(self.state.divisor),
        };
        if pace.wrapping_mul(self.state.qcount as u64) < least + u64::from(self.state.q_r) {
            return Verdict::Pass;
        }
        self.state.qcount = 0;
        self.state.q_r = self.threshold(draws);
        Verdict::Early
    }

    /// Marks or drops `packet` as decided; returns the packet unless it was dropped.
    #[inline]
    pub(crate) fn carry_out<P: Packet>(
        &mut self,
        verdict: Verdict,
        mut packet: P,
        totals: &mut Totals,
        sink: &mut impl Sink<P>,
    ) -> Option<P> {
        if verdict == Verdict::Pass {
            return Some(packet);
        }
        totals.overlimits += 1;
        let hard = verdict == Verdict::Hard;
        let may_mark = self.params.ecn && !(hard && self.params.harddrop);
        if may_mark && packet.set_ce() {
            if hard {
                self.counters.forced_mark += 1;
                sink.marked(&packet, MarkReason::Forced);
            } else {
                self.counters.prob_mark += 1;
                sink.marked(&packet, MarkReason::Early);
            }
            return Some(packet);
        }
        if may_mark && self.params.nodrop {
            return Some(packet);
        }
        if hard {
            self.counters.forced_drop += 1;
            totals.refuse(packet, DropReason::Forced, sink);
        } else {
            self.counters.prob_drop += 1;
            totals.refuse(packet, DropReason::Early, sink);
        }
        None
    }

    /// Drops an arriving packet that exceeds the limit.
    #[inline]
    pub(crate) fn overflow<P: Packet>(
        &mut self,
        packet: P,
        totals: &mut Totals,
        sink: &mut impl Sink<P>,
    ) {
        self.counters.pdrop += 1;
        totals.refuse(packet, DropReason::Overflow, sink);
    }

    /// Adapts the probability when the average falls below `min` or rises above `max` (Feng 1999).
    fn feng(&mut self) {
        let bits = self.filter.bits();
        let side = if self.against_min() == Ordering::Less {
            Side::Below
        } else if self.state.qavg > u64::from(self.params.max) << bits {
            Side::Above
        } else {
            Side::Between
        };
        if side == self.state.side {
            return;
        }
        self.state.side = side;
        match side {
            Side::Below => self.state.max_p = (self.state.max_p / 3).max(1),
            Side::Above => self.state.max_p = self.state.max_p.saturating_mul(2),
            Side::Between => {}
        }
        self.state.divisor = (self.state.max_p / self.width()).max(1);
    }

    /// Adapts the probability by Floyd 2001's rule as in Linux; called every half second.
    pub(crate) fn adapt(&mut self, now: Nanos) {
        let mut avg = self.state.qavg;
        if self.state.qidlestart != 0 {
            avg = self.filter.decay(avg, now.saturating_sub(self.state.qidlestart));
        }
        let avg = avg >> self.filter.bits();
        let width = self.width();
        let step = u64::from(width / 5);
        let low = u64::from(self.params.min) + 2 * step;
        let high = u64::from(self.params.min) + 3 * step;
        let max_p = &mut self.state.max_p;
        if avg > high && *max_p <= 50 * ONE_PERCENT {
            *max_p += (*max_p / 4).min(ONE_PERCENT);
        } else if avg < low && *max_p >= ONE_PERCENT {
            *max_p = *max_p / 10 * 9;
        }
        let rounded = (u64::from(*max_p) + u64::from(width / 2)) / u64::from(width);
        self.state.divisor = (rounded as u32).max(1);
    }

    /// Visits the state, under the kernel's names.
    pub(crate) fn visit_state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        let (factor, first, second) = reciprocal(self.state.divisor);
        visit_fields!(visit, self.state, [qavg, qcount]);
        visit("qR", self.state.q_r.into());
        visit("qidlestart", self.state.qidlestart.into());
        visit("max_P", self.state.max_p.into());
        visit("recip_m", factor.into());
        visit("recip_sh1", first.into());
        visit("recip_sh2", second.into());
    }

    /// Visits the counters, under the kernel's names.
    pub(crate) fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit_fields!(
            visit,
            self.counters,
            [prob_drop, forced_drop, pdrop, prob_mark, forced_mark]
        );
    }
}

/// Returns the factor and the two shifts with which Linux computes a division by `divisor`.
pub fn reciprocal(divisor: u32) -> (u32, u8, u8) {
    let log = 32 - (divisor - 1).leading_zeros();
    let factor = (((1u64 << log) - u64::from(divisor)) << 32) / u64::from(divisor) + 1;
    (factor as u32, log.min(1) as u8, log.saturating_sub(1) as u8)
}
