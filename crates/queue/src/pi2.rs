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

use crate::aqm::{Aqm, AqmParams, Common};
use crate::declaration::DisciplineParams;
use crate::device::Device;
use crate::discipline::{Call, Draws, MarkReason, Sink};
use crate::flow_queues::Overflow;
use crate::kinds::{ecn, packets};
use crate::limit::Unit;
use crate::packet::{Ecn, Packet};
use crate::packet_fifo::{PacketFifo, Source};
use crate::pi::{self, MAX_PROB, State, Verdict};
use crate::single::Single;
use sojourn_units::declare::{derived, part};
use sojourn_units::{Nanos, params};

params! {
    "pi2": "PI2: a controller of the queueing delay whose probability is squared for Classic traffic",
    from "De Schepper et al. 2016; not in Linux";

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
    const NOT_IN_KERNEL: Option<&'static str> =
        Some("Linux has only dualpi2, which has two coupled queues");

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }
}

/// Parameters in the units of the decisions.
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    controller: pi::Constants,
    ecn: bool,
    mtu: u32,
}

impl AqmParams for Params {
    type Aqm = State;

    fn constants(&self) -> Constants {
        Constants { controller: self.pi.constants(), ecn: self.ecn, mtu: self.mtu }
    }

    fn next_update(&self, now: Nanos, _is_partial: bool) -> Option<Nanos> {
        Some(now + self.pi.constants().tupdate)
    }

    fn visit(counters: &Counters, overflow: &Overflow, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("early", counters.early);
        visit("overflow", overflow.dropped);
        visit("ecn_mark", counters.ecn_mark);
    }
}

/// Counters of PI2: early drops, marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    early: u64,
    ecn_mark: u64,
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
        let Common { constants: Constants { controller, ecn, mtu }, counters } = common;
        if queue.bytes() < 2 * u64::from(*mtu) {
            return true;
        }
        let verdict = match packet.ecn() {
            Ecn::Ect1 | Ecn::Ce if *ecn => self.scalable(controller, true, call.draws),
            Ecn::Ect0 => self.classic(controller, *ecn, call.draws),
            _ => self.classic(controller, false, call.draws),
        };
        if verdict == Verdict::Mark && packet.set_ce() {
            counters.ecn_mark += 1;
            call.sink.marked(packet, MarkReason::Early);
        }
        counters.early += u64::from(verdict == Verdict::Drop);
        verdict != Verdict::Drop
    }

    fn dequeue<P: Packet>(
        &mut self,
        _common: &mut Common<Self>,
        source: &mut impl Source<P>,
        _call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Option<P> {
        source.take().map(|queued| queued.packet)
    }

    fn update<P: Packet>(&mut self, constants: &Constants, now: Nanos, queue: &PacketFifo<P>) {
        let delay = queue.enqueued_at(0).map_or(0, |at| now - at);
        self.update(&constants.controller, delay, MAX_PROB);
    }

    fn visit(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.visit(visit);
    }
}

/// A PI2 queue.
pub type Pi2<P> = Single<P, Params>;
