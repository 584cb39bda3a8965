//! PI2: a PI controller whose drop probability is squared for Classic traffic.
//!
//! Source: De Schepper, Bondarenko, Tsang, Briscoe, "PI2: A Linearized AQM for both Classic and
//! Scalable TCP" (CoNEXT 2016). Not in Linux; `sch_dualpi2.c` has the same controller with two
//! queues.
//!
//! One queue with the [controller](crate::pi). The decision about a packet is made on arrival.
//! Classic packets are dropped (or marked) with the square of the base probability. With `ecn`,
//! packets with L4S's identifier (ECT(1), or CE) are marked with `coupling_factor` times the base
//! probability. Of PIE's heuristics PI2 has only the exemption of short queues.
//!
//! Invariants: no early drop below a backlog of two largest frames; with `ecn`, ECN-capable packets
//! are dropped early only under overload.

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals};
use crate::kinds::{ecn, packets};
use crate::limit::Unit;
use crate::packet::{Ecn, Packet};
use crate::packet_fifo::{PacketFifo, viewed};
use crate::pi::{self, Constants, MAX_PROB, State, Verdict};
use sojourn_units::declare::{Parameters, derived, part};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};

/// Name, summary, source and words of the discipline `pi2`.
pub const TABLE: Table = Table {
    name: "pi2",
    summary: "PI2: a controller of the queueing delay whose probability is squared for Classic traffic",
    source: "De Schepper et al. 2016; not in Linux",
    words: Params::WORDS,
};

params! {
    /// Parameters of PI2.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in the queue; packets that arrive at a full queue are dropped.
        limit: u32 = packets("1000p").above_zero(),
        /// Parameters of the controller.
        pi: pi::Params = part::<pi::Params>().defaults(&[
            ("target", "20ms"),
            ("tupdate", "32ms"),
            ("alpha", "0.3125"),
            ("beta", "3.125"),
        ]),
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = ecn(),
        /// Largest frame of the device, in bytes.
        mtu: u32 = derived(|device: &Device| device.psched_mtu),
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];
    const NOT_IN_KERNEL: Option<&'static str> =
        Some("Linux has only dualpi2, which has two coupled queues");

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }
}

/// Counters of PI2: early drops, overflow drops, marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    early: u64,
    overflow: u64,
    ecn_mark: u64,
}

/// A PI2 queue.
#[derive(Clone, Debug)]
pub struct Pi2<P> {
    params: Params,
    constants: Constants,
    state: State,
    counters: Counters,
    totals: Totals,
    fifo: PacketFifo<P>,
    timer: Nanos,
}

impl<P: Packet> Configured<P, Params> for Pi2<P> {
    fn new(params: Params, now: Nanos) -> Self {
        let constants = params.pi.constants();
        Self {
            params,
            constants,
            state: State::default(),
            counters: Counters::default(),
            totals: Totals::default(),
            fifo: PacketFifo::default(),
            timer: now + constants.tupdate,
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters; a new `tupdate` applies from the next update on. If the new limit
    /// is exceeded, the oldest packets are dropped.
    fn change(&mut self, params: Params, _now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params;
        self.constants = params.pi.constants();
        self.fifo.cut(params.limit as usize, &mut self.totals, sink);
    }
}

impl<P: Packet> Pi2<P> {
    #[inline]
    fn judge(&self, packet: &P, draws: &mut impl Draws) -> Verdict {
        if self.fifo.bytes() < 2 * u64::from(self.params.mtu) {
            return Verdict::Pass;
        }
        match packet.ecn() {
            Ecn::Ect1 | Ecn::Ce if self.params.ecn => {
                self.state.scalable(&self.constants, true, draws)
            }
            Ecn::Ect0 => self.state.classic(&self.constants, self.params.ecn, draws),
            _ => self.state.classic(&self.constants, false, draws),
        }
    }
}

viewed!(Pi2 in fifo);

impl<P: Packet> Discipline<P> for Pi2<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        mut packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        let reason = if self.fifo.len() >= self.params.limit as usize {
            self.counters.overflow += 1;
            DropReason::Overflow
        } else {
            match self.judge(&packet, draws) {
                Verdict::Drop => {
                    self.counters.early += 1;
                    DropReason::Early
                }
                verdict => {
                    if verdict == Verdict::Mark && packet.set_ce() {
                        self.counters.ecn_mark += 1;
                        sink.marked(&packet, MarkReason::Early);
                    }
                    self.fifo.push(now, packet);
                    return Return::Success;
                }
            }
        };
        self.totals.refuse(packet, reason, sink);
        Return::Drop
    }

    #[inline]
    fn dequeue(
        &mut self,
        _now: Nanos,
        _draws: &mut impl Draws,
        _sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        self.totals.leave(self.fifo.pop().map(|queued| queued.packet))
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        Some(self.timer)
    }

    fn on_timer(&mut self, now: Nanos) {
        let delay = self.fifo.enqueued_at(0).map_or(0, |at| now - at);
        self.state.update(&self.constants, delay, MAX_PROB);
        self.timer = now + self.constants.tupdate;
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.state.visit(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit("early", self.counters.early);
        visit("overflow", self.counters.overflow);
        visit("ecn_mark", self.counters.ecn_mark);
    }
}
