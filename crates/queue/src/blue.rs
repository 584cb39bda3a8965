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

use crate::aqm::{Aqm, AqmParams, Common};
use crate::declaration::DisciplineParams;
use crate::device::Device;
use crate::discipline::{Call, Draws, DropReason, MarkReason, Return, Sink, visit_fields};
use crate::flow_queues::Overflow;
use crate::kinds::{ecn, fraction, packets};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, Source};
use crate::single::Single;
use sojourn_units::declare::time;
use sojourn_units::{Nanos, params};

params! {
    "blue": "BLUE: a drop probability that rises on overflow and falls while the link is idle",
    from "Feng et al. 2002; not in Linux";

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

/// Counters of BLUE: early drops, marks, changes of the probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    early: u64,
    ecn_mark: u64,
    updates: u64,
}

impl AqmParams for Params {
    type Aqm = State;

    fn constants(&self) -> Self {
        *self
    }

    fn visit(counters: &Counters, overflow: &Overflow, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("early", counters.early);
        visit("overflow", overflow.dropped);
        visit_fields!(visit, counters, [ecn_mark, updates]);
    }
}

impl State {
    /// Applies the decreases that were due while the link was idle until `now`.
    #[inline]
    fn end_idle(&mut self, common: &mut Common<Self>, now: Nanos) {
        if self.idle_since != 0 {
            self.idle_until(common, now);
            self.idle_since = 0;
        }
    }

    fn idle_until(&mut self, Common { constants, counters }: &mut Common<Self>, now: Nanos) {
        let Self { last_update, idle_since, .. } = *self;
        let first = if last_update == 0 {
            idle_since
        } else {
            idle_since.max(last_update.saturating_add(constants.freeze))
        };
        if now < first {
            return;
        }
        let steps = (now - first) / constants.freeze + 1;
        let fall = u64::from(constants.decrement).saturating_mul(steps);
        self.p = u64::from(self.p).saturating_sub(fall) as u32;
        self.last_update = first + (steps - 1) * constants.freeze;
        counters.updates += steps;
    }
}

impl Aqm for State {
    type Constants = Params;
    type Counters = Counters;
    const EARLY: Return = Return::Congestion;

    #[inline]
    fn admit<P: Packet>(
        &mut self,
        common: &mut Common<Self>,
        _queue: &PacketFifo<P>,
        packet: &mut P,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> bool {
        self.end_idle(common, call.now);
        if self.p > 0 && call.draws.draw_u32() < self.p {
            if !(common.constants.ecn && packet.set_ce()) {
                common.counters.early += 1;
                return false;
            }
            common.counters.ecn_mark += 1;
            call.sink.marked(packet, MarkReason::Early);
        }
        true
    }

    fn refused(&mut self, common: &mut Common<Self>, now: Nanos, reason: DropReason) {
        if reason == DropReason::Overflow {
            self.end_idle(common, now);
            let Params { freeze, increment, .. } = common.constants;
            if self.last_update == 0 || now - self.last_update >= freeze {
                self.p = self.p.saturating_add(increment);
                self.last_update = now;
                common.counters.updates += 1;
            }
        }
    }

    #[inline]
    fn dequeue<P: Packet>(
        &mut self,
        _common: &mut Common<Self>,
        source: &mut impl Source<P>,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Option<P> {
        let head = source.take();
        if head.is_none() && self.idle_since == 0 {
            self.idle_since = call.now;
        }
        head.map(|queued| queued.packet)
    }

    fn visit(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit_fields!(visit, self, [p, last_update, idle_since]);
    }
}

/// A BLUE queue.
pub type Blue<P> = Single<P, Params>;
