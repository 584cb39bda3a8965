//! BLUE: a drop probability that rises on overflow and falls while the link is idle.
//!
//! Source: Feng, Shin, Kandlur, Saha, "The BLUE active queue management algorithms" (IEEE/ACM ToN,
//! 2002).
//!
//! Each arrival is dropped (or marked) with one probability. The probability rises by `increment`
//! when the queue overflows. It falls by `decrement` when a dequeue finds the queue empty, and
//! again after each `freeze` for as long as the link is idle. Two changes are at least `freeze`
//! apart. BLUE measures no queue length.
//!
//! Invariants: the probability is between 0 and 1; it changes at most once per `freeze`.

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals};
use crate::kinds::{ecn, fraction, packets};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, viewed};
use sojourn_units::declare::{Parameters, time};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};

/// Name, summary, source and words of the discipline `blue`.
pub const TABLE: Table = Table {
    name: "blue",
    summary: "BLUE: a drop probability that rises on overflow and falls while the link is idle",
    source: "Feng et al. 2002; not in Linux",
    words: Params::WORDS,
};

params! {
    /// Parameters of BLUE. Probabilities are in units of 2^-32.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in the queue; packets that arrive at a full queue are dropped.
        limit: u32 = packets("1000p"),
        /// Increase of the probability when the queue overflows.
        increment: u32 = fraction("0.0025"),
        /// Decrease of the probability for each `freeze` during which the link is idle.
        decrement: u32 = fraction("0.00025"),
        /// Minimum time between changes of the probability.
        freeze: Nanos = time("100ms").above_zero(),
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = ecn(),
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];
    const NOT_IN_KERNEL: Option<&'static str> =
        Some("Linux has only its stochastic fair variant, sfb");

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }
}

/// State of BLUE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Drop probability in units of 2^-32; the largest value is 1 - 2^-32.
    pub p: u32,
    /// Time of the last change of the probability; 0 before the first.
    pub last_update: Nanos,
    /// Time at which a dequeue first found the queue empty; 0 after an arrival.
    pub idle_since: Nanos,
}

/// Counters of BLUE: early drops, overflow drops, marks, changes of the probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    early: u64,
    overflow: u64,
    ecn_mark: u64,
    updates: u64,
}

/// A BLUE queue.
#[derive(Clone, Debug)]
pub struct Blue<P> {
    params: Params,
    state: State,
    counters: Counters,
    totals: Totals,
    fifo: PacketFifo<P>,
}

impl<P: Packet> Configured<P, Params> for Blue<P> {
    fn new(params: Params, _now: Nanos) -> Self {
        Self {
            params,
            state: State::default(),
            counters: Counters::default(),
            totals: Totals::default(),
            fifo: PacketFifo::default(),
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. If the new limit is exceeded, the oldest packets are dropped.
    fn change(&mut self, params: Params, _now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params;
        self.fifo.cut(params.limit as usize, &mut self.totals, sink);
    }
}

impl<P: Packet> Blue<P> {
    fn frozen(&self, now: Nanos) -> bool {
        self.state.last_update != 0 && now - self.state.last_update < self.params.freeze
    }

    fn overflowed(&mut self, now: Nanos) {
        if !self.frozen(now) {
            self.state.p = self.state.p.saturating_add(self.params.increment);
            self.state.last_update = now;
            self.counters.updates += 1;
        }
    }

    /// Applies the decreases that were due while the link was idle until `now`.
    fn idle_until(&mut self, now: Nanos) {
        let State { last_update, idle_since, .. } = self.state;
        let first = if last_update == 0 {
            idle_since
        } else {
            idle_since.max(last_update.saturating_add(self.params.freeze))
        };
        if now < first {
            return;
        }
        let steps = (now - first) / self.params.freeze + 1;
        let fall = u64::from(self.params.decrement).saturating_mul(steps);
        self.state.p = u64::from(self.state.p).saturating_sub(fall) as u32;
        self.state.last_update = first + (steps - 1) * self.params.freeze;
        self.counters.updates += steps;
    }
}

viewed!(Blue in fifo);

impl<P: Packet> Discipline<P> for Blue<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        mut packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        if self.state.idle_since != 0 {
            self.idle_until(now);
            self.state.idle_since = 0;
        }
        if self.fifo.len() >= self.params.limit as usize {
            self.overflowed(now);
            self.counters.overflow += 1;
            self.totals.refuse(packet, DropReason::Overflow, sink);
            return Return::Drop;
        }
        if self.state.p > 0 && draws.draw_u32() < self.state.p {
            if self.params.ecn && packet.set_ce() {
                self.counters.ecn_mark += 1;
                sink.marked(&packet, MarkReason::Early);
            } else {
                self.counters.early += 1;
                self.totals.refuse(packet, DropReason::Early, sink);
                return Return::Congestion;
            }
        }
        self.fifo.push(now, packet);
        Return::Success
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Nanos,
        _draws: &mut impl Draws,
        _sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        let head = self.fifo.pop();
        if head.is_none() && self.state.idle_since == 0 {
            self.state.idle_since = now;
        }
        self.totals.leave(head.map(|queued| queued.packet))
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("p", self.state.p.into());
        visit("last_update", self.state.last_update.into());
        visit("idle_since", self.state.idle_since.into());
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit("early", self.counters.early);
        visit("overflow", self.counters.overflow);
        visit("ecn_mark", self.counters.ecn_mark);
        visit("updates", self.counters.updates);
    }
}
