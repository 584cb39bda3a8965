//! RED: random early detection.
//!
//! Source: Floyd, Jacobson (1993); Linux `sch_red.c` and `red.h`, `tc`'s `tc_red.c`. `adaptive`: Floyd, Gummadi,
//! Shenker (2001) as Linux has it. `feng`: Feng et al., "A self-configuring RED gateway" (1999). `gentle`: Floyd
//! (2000), as in ns-2. `gentle-limit`: the same ramp drawn out to the buffer's end. `wait`: as in ns-2.
//!
//! An exponentially weighted average of the backlog is kept at every arrival. Between `min` and `max` arrivals are
//! dropped (or marked) with a probability that grows to `probability`, spaced evenly by counting since the last
//! drop; above `max` all are. While the queue is empty the average decays.
//!
//! Invariants: no early drop below `min`; without `gentle`, every arrival is dropped or marked at `max` and above;
//! the gap between early drops at a constant average is uniform.
//!
//! The defaults for `min`, `max` and `burst`, the averaging constant and the idle table are those that
//! iproute2 6.1 computes. Three of its habits are kept: the idle table takes 64-ns ticks for
//! microseconds and natural logarithms for powers of two, so idle decay is some 22 times too slow; and
//! its `adaptive` travels where Linux 6.1 does not look when it arms the timer. Here `adaptive` works.

mod average;
mod params;
mod words;

pub use params::{Adaptation, Averaging, Options, Params, Ramp};
pub use words::TABLE;

use crate::discipline::{Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals};
use crate::jiffies;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::store::{Store, Stored};
use average::Filter;
use sojourn_units::Nanos;

/// On which side of the thresholds the average was last, for `feng`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Below,
    Between,
    Above,
}

/// What RED remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The average backlog, with fraction bits.
    pub qavg: u64,
    /// Arrivals since the last early drop; -1 outside the ramp.
    pub qcount: i32,
    /// The random threshold that spaces drops.
    pub q_r: u32,
    /// When the queue became idle; 0 if it is not.
    pub qidlestart: Nanos,
    /// The probability in force; one is 2^32.
    pub max_p: u32,
    /// Draws are divided by this.
    divisor: u32,
    side: Side,
}

/// What RED counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    prob_drop: u64,
    forced_drop: u64,
    pdrop: u64,
    prob_mark: u64,
    forced_mark: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Early,
    Hard,
}

/// A RED queue.
#[derive(Clone, Debug)]
pub struct Red<P> {
    params: Params,
    filter: Filter,
    state: State,
    counters: Counters,
    totals: Totals,
    store: Store<P>,
    timer: Option<Nanos>,
}

const ONE_PERCENT: u32 = 42_949_673;

impl<P: Packet> Red<P> {
    /// An empty queue, created at `now`.
    ///
    /// # Panics
    /// If `params` are such as [`crate::Params::parse`] refuses.
    pub fn new(params: Params, now: Nanos) -> Self {
        match params.averaging {
            Averaging::Burst(_) => {
                let options = params.options().expect("parameters are checked when they are read");
                Self::with_options(params, &options, now)
            }
            Averaging::Weight(weight) => {
                let packet_time = params.bandwidth.transmission_time(params.avpkt);
                let filter = Filter::weighted(weight, packet_time);
                Self::with_filter(params, filter, params.max_p, now)
            }
        }
    }

    /// A queue from the numbers that `tc` would send; those in `params` give way.
    pub fn with_options(params: Params, options: &Options, now: Nanos) -> Self {
        let params = Params {
            limit: options.limit,
            min: options.min,
            max: options.max,
            max_p: options.max_p,
            ..params
        };
        Self::with_filter(params, Filter::shifted(options), options.max_p_in_force(), now)
    }

    fn with_filter(params: Params, filter: Filter, max_p: u32, now: Nanos) -> Self {
        let mut red = Self {
            params,
            filter,
            state: State {
                qavg: 0,
                qcount: -1,
                q_r: 0,
                qidlestart: now,
                max_p,
                divisor: 1,
                side: Side::Below,
            },
            counters: Counters::default(),
            totals: Totals::default(),
            store: Store::default(),
            timer: None,
        };
        red.state.divisor = (max_p / red.width()).max(1);
        red.arm(now);
        red
    }

    fn arm(&mut self, now: Nanos) {
        let hz = self.params.hz;
        self.timer = (self.params.adaptation == Adaptation::Floyd)
            .then(|| jiffies::after(now, u64::from(hz / 2), hz));
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. As in the kernel, all that is queued is thrown away and the average
    /// starts over.
    pub fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        self.store.cut(0, &mut self.totals, sink);
        let fresh = Self::new(params, now);
        self.params = fresh.params;
        self.filter = fresh.filter;
        self.state = State { q_r: self.state.q_r, ..fresh.state };
        self.timer = fresh.timer;
    }

    #[inline]
    fn width(&self) -> u32 {
        self.params.max.saturating_sub(self.params.min).max(1)
    }

    #[inline]
    fn backlog(&self) -> u64 {
        match self.params.unit {
            Unit::Bytes => self.store.bytes(),
            Unit::Packets => self.store.len() as u64,
        }
    }

    /// Where the ramp ends.
    #[inline]
    fn end(&self) -> u64 {
        match self.params.ramp {
            Ramp::Steep => u64::from(self.params.max),
            Ramp::Gentle => 2 * u64::from(self.params.max),
            Ramp::GentleLimit => u64::from(self.params.limit),
        }
    }

    /// Whether probabilities are computed finely, which Linux does not.
    #[inline]
    fn fine(&self) -> bool {
        self.params.ramp != Ramp::Steep || self.filter.is_fine()
    }

    /// The drop probability at this average before spacing, as a fraction of 2^32.
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

    #[inline]
    fn threshold(&self, draws: &mut impl Draws) -> u32 {
        if self.fine() { draws.draw_u32() } else { draws.draw_u32() / self.state.divisor }
    }

    #[inline]
    fn judge(&mut self, draws: &mut impl Draws) -> Verdict {
        let bits = self.filter.bits();
        let low = u64::from(self.params.min) << bits;
        if self.state.qavg < low {
            self.state.qcount = -1;
            return Verdict::Pass;
        }
        if self.state.qavg >= self.end() << bits {
            self.state.qcount = -1;
            return Verdict::Hard;
        }
        self.state.qcount = self.state.qcount.wrapping_add(1);
        if self.state.qcount == 0 {
            self.state.q_r = self.threshold(draws);
            return Verdict::Pass;
        }
        let pace = if self.fine() { self.probability() } else { (self.state.qavg - low) >> bits };
        // A probability of one is a threshold of 2^32, in draws or in what they are divided to.
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

    #[inline]
    fn average(&mut self, now: Nanos) {
        if self.state.qidlestart == 0 {
            self.state.qavg = self.filter.sample(self.state.qavg, self.backlog());
        } else {
            let idle = now.saturating_sub(self.state.qidlestart);
            self.state.qavg = self.filter.decay(self.state.qavg, idle);
            self.state.qidlestart = 0;
        }
        if self.params.adaptation == Adaptation::Feng {
            self.feng();
        }
    }

    /// Feng 1999: once per crossing.
    fn feng(&mut self) {
        let bits = self.filter.bits();
        let side = if self.state.qavg < u64::from(self.params.min) << bits {
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
}

/// The factor and shifts by which Linux divides by `divisor`.
pub fn reciprocal(divisor: u32) -> (u32, u8, u8) {
    let log = 32 - (divisor - 1).leading_zeros();
    let factor = (((1u64 << log) - u64::from(divisor)) << 32) / u64::from(divisor) + 1;
    (factor as u32, log.min(1) as u8, log.saturating_sub(1) as u8)
}

impl<P: Packet> Stored for Red<P> {
    type Store = Store<P>;

    #[inline]
    fn store(&self) -> &Store<P> {
        &self.store
    }
}

impl<P: Packet> Discipline<P> for Red<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        mut packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        self.average(now);
        let verdict = self.judge(draws);
        if verdict != Verdict::Pass {
            self.totals.overlimits += 1;
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
            } else if !(may_mark && self.params.nodrop) {
                self.totals.drops += 1;
                if hard {
                    self.counters.forced_drop += 1;
                    sink.dropped(packet, DropReason::Forced, false);
                } else {
                    self.counters.prob_drop += 1;
                    sink.dropped(packet, DropReason::Early, false);
                }
                return Return::Congestion;
            }
        }
        if self.params.unit.fits(self.params.limit, &self.store, &packet) {
            self.store.push(now, packet);
            return Return::Success;
        }
        self.counters.pdrop += 1;
        self.totals.drops += 1;
        sink.dropped(packet, DropReason::Overflow, false);
        Return::Drop
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Nanos,
        _draws: &mut impl Draws,
        _sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        if let Some(queued) = self.store.pop() {
            self.totals.sent(queued.packet.len());
            return Dequeue::Packet(queued.packet);
        }
        if self.state.qidlestart == 0 {
            self.state.qidlestart = now;
        }
        Dequeue::Empty
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    /// Floyd 2001, as Linux does it.
    fn on_timer(&mut self, now: Nanos) {
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
        self.arm(now);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        let (factor, first, second) = reciprocal(self.state.divisor);
        visit("qavg", self.state.qavg.into());
        visit("qcount", self.state.qcount.into());
        visit("qR", self.state.q_r.into());
        visit("qidlestart", self.state.qidlestart.into());
        visit("max_P", self.state.max_p.into());
        visit("recip_m", factor.into());
        visit("recip_sh1", first.into());
        visit("recip_sh2", second.into());
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit("prob_drop", self.counters.prob_drop);
        visit("forced_drop", self.counters.forced_drop);
        visit("pdrop", self.counters.pdrop);
        visit("prob_mark", self.counters.prob_mark);
        visit("forced_mark", self.counters.forced_mark);
    }
}
