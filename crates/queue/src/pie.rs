//! PIE: proportional integral controller enhanced.
//!
//! Source: RFC 8033; Linux `sch_pie.c`.
//!
//! A drop probability is set every `tupdate` from the queueing delay: in proportion to how far it is from
//! `target` (`alpha`) and to how it moved (`beta`), more gently while the probability is small. Arrivals are
//! dropped (or marked) by an accumulated probability, so that gaps between drops are neither tiny nor
//! huge. The delay comes from timestamps or, with `dq_rate_estimator`, from the measured departure rate.
//!
//! Invariants: no early drop in the first 150 ms of congestion nor below two full frames of backlog; the
//! probability is not clamped to one under long overload, as in the kernel.

use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals};
use crate::jiffies;
use crate::packet::Packet;
use crate::store::{Store, Stored};
use crate::tc::{LIMIT, Text, above_zero, micros, packets, set, time_text};
use serde::{Deserialize, Serialize};
use sojourn_units::Nanos;
use sojourn_units::words::{Given, Kind, Table, Word, WordError};

/// The words of `pie`.
pub const TABLE: Table = Table {
    name: "pie",
    summary: "PIE: a drop probability that holds the queueing delay at a target",
    source: "RFC 8033; Linux sch_pie.c",
    words: &[
        LIMIT,
        Word {
            name: "target",
            kind: Kind::Time,
            default: "15ms",
            doc: "Queueing delay to hold, in whole microseconds.",
        },
        Word {
            name: "tupdate",
            kind: Kind::Time,
            default: "15ms",
            doc: "Time between updates of the probability, rounded up to the kernel's ticks.",
        },
        Word {
            name: "alpha",
            kind: Kind::Integer { min: 1, max: 32 },
            default: "2",
            doc: "Weight of the delay's distance from target, in 1/16 Hz.",
        },
        Word {
            name: "beta",
            kind: Kind::Integer { min: 1, max: 32 },
            default: "20",
            doc: "Weight of the delay's movement, in 1/16 Hz.",
        },
        Word {
            name: "ecn",
            kind: Kind::Switch { off: "noecn" },
            default: "noecn",
            doc: "Marks ECN-capable packets instead of dropping them, up to a probability of 10 %.",
        },
        Word {
            name: "bytemode",
            kind: Kind::Switch { off: "nobytemode" },
            default: "nobytemode",
            doc: "Scales the probability by the packet's size.",
        },
        Word {
            name: "dq_rate_estimator",
            kind: Kind::Switch { off: "no_dq_rate_estimator" },
            default: "no_dq_rate_estimator",
            doc: "Takes the delay from the backlog and the departure rate instead of timestamps.",
        },
    ],
};

/// What the user sets, in the kernel's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// Packets that fit.
    pub limit: u32,
    /// Delay to hold, in microseconds.
    pub target_us: u32,
    /// Time between updates, in microseconds.
    pub tupdate_us: u32,
    /// Weight of the distance from target, in 1/16 Hz.
    pub alpha: u32,
    /// Weight of the movement, in 1/16 Hz.
    pub beta: u32,
    /// Whether to mark instead of drop.
    pub ecn: bool,
    /// Whether the probability is scaled by the packet's size.
    pub bytemode: bool,
    /// Whether the delay comes from the departure rate.
    pub dq_rate_estimator: bool,
    /// The largest frame of the device.
    pub mtu: u32,
    /// Ticks a second of the coarse clock.
    pub hz: u32,
}

impl Params {
    /// The defaults on `device`.
    pub fn new(device: &Device) -> Self {
        Self {
            limit: 1000,
            target_us: 15_000,
            tupdate_us: 15_000,
            alpha: 2,
            beta: 20,
            ecn: false,
            bytemode: false,
            dq_rate_estimator: false,
            mtu: device.psched_mtu,
            hz: device.hz,
        }
    }

    pub(crate) fn set(&mut self, given: &Given) -> Result<(), WordError> {
        set(&mut self.limit, above_zero(given, "limit", packets)?);
        set(&mut self.target_us, above_zero(given, "target", micros)?);
        set(&mut self.tupdate_us, above_zero(given, "tupdate", micros)?);
        set(&mut self.alpha, given.integer("alpha").map(|alpha| alpha as u32));
        set(&mut self.beta, given.integer("beta").map(|beta| beta as u32));
        set(&mut self.ecn, given.flag("ecn"));
        set(&mut self.bytemode, given.flag("bytemode"));
        set(&mut self.dq_rate_estimator, given.flag("dq_rate_estimator"));
        Ok(())
    }

    pub(crate) fn to_tc(self) -> String {
        Text::new("pie")
            .value("limit", self.limit)
            .value("target", time_text(self.target_us))
            .value("tupdate", time_text(self.tupdate_us))
            .value("alpha", self.alpha)
            .value("beta", self.beta)
            .switch(self.ecn, "ecn", "noecn")
            .switch(self.bytemode, "bytemode", "nobytemode")
            .switch(self.dq_rate_estimator, "dq_rate_estimator", "no_dq_rate_estimator")
            .done()
    }

    /// `target` in ticks of PIE's clock.
    pub fn target_ticks(&self) -> u64 {
        clock(u64::from(self.target_us) * 1000)
    }
}

/// PIE's clock: 64 ns a tick.
#[inline]
pub fn clock(now: Nanos) -> u64 {
    now >> 6
}

/// Probability one.
const MAX_PROB: u64 = u64::MAX >> 8;
const INVALID: u64 = u64::MAX;
const TICKS_PER_SECOND: u64 = 15_625_000;
const MAX_BURST: u64 = 2_343_750;
/// Bytes after which the departure rate is measured.
const MEASURE: u64 = 16_384;
/// 250 ms.
const LONG_DELAY: u64 = 3_906_250;

/// What PIE remembers of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Delay at the last measurement, in ticks.
    pub qdelay: u64,
    /// Delay before that.
    pub qdelay_old: u64,
    /// Ticks left in which nothing is dropped.
    pub burst_time: u64,
    /// When the measurement began, or the last departure; invalid: 2^64 - 1.
    pub dq_tstamp: u64,
    /// Drop probability; one is 2^56 - 1.
    pub prob: u64,
    /// Probability accumulated since the last drop.
    pub accu_prob: u64,
    /// Bytes departed in this measurement; invalid: 2^64 - 1.
    pub dq_count: u64,
    /// Departure rate in bytes per tick, times 256; 0: not known.
    pub avg_dq_rate: u32,
    /// Backlog at the last update.
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

    /// Whether an arrival of `len` bytes at a backlog of `backlog` is to be dropped or marked.
    #[inline]
    pub fn early(
        &mut self,
        params: &Params,
        backlog: u64,
        len: u32,
        draws: &mut impl Draws,
    ) -> bool {
        if self.burst_time > 0 {
            return false;
        }
        if self.qdelay < params.target_ticks() / 2 && self.prob < MAX_PROB / 5 {
            return false;
        }
        if backlog < 2 * u64::from(params.mtu) {
            return false;
        }
        let p = if params.bytemode && len <= params.mtu {
            u64::from(len) * (self.prob / u64::from(params.mtu))
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

    /// Takes note of a departure of `len` bytes, enqueued at `at`, that left `backlog` bytes.
    #[inline]
    pub fn departed(&mut self, params: &Params, now: Nanos, at: Nanos, len: u32, backlog: u64) {
        let now = clock(now);
        let elapsed = if params.dq_rate_estimator {
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

    /// The departure rate's estimator; the ticks that a finished measurement took.
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

    /// The periodic update of the probability.
    pub fn update(&mut self, params: &Params, backlog: u64) {
        let target = params.target_ticks();
        let (delay, old) = if params.dq_rate_estimator {
            self.qdelay_old = self.qdelay;
            let scaled = (backlog << 8) as u32;
            (u64::from(scaled.checked_div(self.avg_dq_rate).unwrap_or(0)), self.qdelay_old)
        } else {
            (self.qdelay, self.qdelay_old)
        };
        let mut decay = !(delay == 0 && backlog > 0);
        let unit = MAX_PROB / TICKS_PER_SECOND;
        let mut alpha = u64::from(params.alpha).wrapping_mul(unit) >> 4;
        let mut beta = u64::from(params.beta).wrapping_mul(unit) >> 4;
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
        let mut delta = (alpha.wrapping_mul(delay.wrapping_sub(target)) as i64)
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
        let calm = self.qdelay < target / 2 && self.qdelay_old < target / 2 && self.prob == 0;
        if calm && (!params.dq_rate_estimator || self.avg_dq_rate > 0) {
            self.reset();
        }
        if !params.dq_rate_estimator {
            self.qdelay_old = delay;
        }
    }

    /// Visits its fields; invalid values are -1.
    pub fn visit(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        let valid = |value: u64| if value == INVALID { -1 } else { i128::from(value) };
        visit("prob", self.prob.into());
        visit("accu_prob", self.accu_prob.into());
        visit("qdelay", self.qdelay.into());
        visit("qdelay_old", self.qdelay_old.into());
        visit("burst_time", self.burst_time.into());
        visit("dq_tstamp", valid(self.dq_tstamp));
        visit("dq_count", valid(self.dq_count));
        visit("avg_dq_rate", self.avg_dq_rate.into());
        visit("backlog_old", self.backlog_old.into());
    }
}

/// What PIE counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    packets_in: u64,
    dropped: u64,
    overlimit: u64,
    ecn_mark: u64,
    maxq: u64,
}

/// A PIE queue.
#[derive(Clone, Debug)]
pub struct Pie<P> {
    params: Params,
    state: State,
    counters: Counters,
    totals: Totals,
    store: Store<P>,
    timer: Nanos,
}

impl<P: Packet> Pie<P> {
    /// An empty queue, created at `now`.
    pub fn new(params: Params, now: Nanos) -> Self {
        let first = jiffies::at(now, params.hz) + u64::from(params.hz / 2);
        Self {
            params,
            state: State::default(),
            counters: Counters::default(),
            totals: Totals::default(),
            store: Store::default(),
            timer: jiffies::start(first, params.hz),
        }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters; a new `tupdate` counts from the next update. What no longer fits is
    /// dropped from the head.
    pub fn change(&mut self, params: Params, sink: &mut impl Sink<P>) {
        self.params = params;
        self.store.cut(params.limit as usize, &mut self.totals, sink);
    }
}

impl<P: Packet> Stored for Pie<P> {
    type Store = Store<P>;

    #[inline]
    fn store(&self) -> &Store<P> {
        &self.store
    }
}

impl<P: Packet> Discipline<P> for Pie<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        mut packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        let reason = if self.store.len() >= self.params.limit as usize {
            self.counters.overlimit += 1;
            DropReason::Overflow
        } else if !self.state.early(&self.params, self.store.bytes(), packet.len(), draws) {
            return self.accept(now, packet);
        } else if self.params.ecn && self.state.prob <= MAX_PROB / 10 && packet.set_ce() {
            self.counters.ecn_mark += 1;
            sink.marked(&packet, MarkReason::Early);
            return self.accept(now, packet);
        } else {
            DropReason::Early
        };
        self.counters.dropped += 1;
        self.totals.drops += 1;
        self.state.accu_prob = 0;
        sink.dropped(packet, reason, false);
        Return::Drop
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Nanos,
        _draws: &mut impl Draws,
        _sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        let Some(queued) = self.store.pop() else { return Dequeue::Empty };
        let len = queued.packet.len();
        self.state.departed(&self.params, now, queued.at, len, self.store.bytes());
        self.totals.sent(len);
        Dequeue::Packet(queued.packet)
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        Some(self.timer)
    }

    fn on_timer(&mut self, now: Nanos) {
        self.state.update(&self.params, self.store.bytes());
        let hz = self.params.hz;
        let next = jiffies::at(now, hz) + jiffies::from_micros(self.params.tupdate_us, hz);
        self.timer = jiffies::start(next, hz);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.state.visit(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit("packets_in", self.counters.packets_in);
        visit("dropped", self.counters.dropped);
        visit("overlimit", self.counters.overlimit);
        visit("ecn_mark", self.counters.ecn_mark);
        visit("maxq", self.counters.maxq);
    }
}

impl<P: Packet> Pie<P> {
    #[inline]
    fn accept(&mut self, now: Nanos, packet: P) -> Return {
        self.counters.packets_in += 1;
        // The kernel notes the length before this packet.
        self.counters.maxq = self.counters.maxq.max(self.store.len() as u64);
        self.store.push(now, packet);
        Return::Success
    }
}
