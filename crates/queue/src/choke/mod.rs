//! CHOKe: choose and keep for responsive flows, choose and kill for unresponsive flows.
//!
//! Source: Pan, Prabhakar, Psounis, "CHOKe, a stateless active queue management scheme for
//! approximating fair bandwidth allocation" (INFOCOM 2000); Linux `sch_choke.c`, `tc`'s
//! `q_choke.c`.
//!
//! CHOKe is RED, counted in packets, with an additional step. While the average queue length is
//! above `min`, an arriving packet is compared with a random packet of the queue. If both are of
//! one flow, both are dropped. The drop rate of a flow is therefore proportional to its share of
//! the arrivals times its share of the queue, and no state per flow is needed.
//!
//! Invariants: while the average is at most `min`, packets are dropped only on overflow; a match
//! drops two packets of one flow; packets leave in the order of arrival.
//!
//! In Linux's ring of 2^k slots, a dropped packet leaves a hole. If holes use up the ring, Linux's
//! tail reaches its head: the full ring counts as empty, and its packets are overwritten. This
//! model differs: it removes the holes and loses no packets.

mod params;
mod ring;

pub use params::{MAX_LIMIT, Params};

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Call, Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals, View};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::viewed;
use crate::red::{Options, Policy};
use ring::Ring;
use sojourn_units::Nanos;
use sojourn_units::declare::Parameters;
use sojourn_units::words::{Given, WordError};
use std::cmp::Ordering;

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }

    fn settle(&mut self, given: &Given, _device: &Device) -> Result<(), WordError> {
        self.depend(given)
    }

    /// Reads a change as `tc`: a change with `limit` states all values and flags anew, and a change
    /// without `limit` keeps values that it does not name.
    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        let from = if given.has("limit") { Self::new(device) } else { *self };
        from.with(given, device)
    }

    fn warnings(&self, given: &Given) -> Vec<String> {
        self.red().warnings(given)
    }

    fn in_kernel(&self) -> Result<(), &'static str> {
        if self.harddrop { Err("`tc` has no word for `harddrop`") } else { Ok(()) }
    }
}

/// A CHOKe queue.
#[derive(Clone, Debug)]
pub struct Choke<P> {
    params: Params,
    policy: Policy,
    matched: u64,
    totals: Totals,
    ring: Ring<P>,
}

impl<P: Packet> Configured<P, Params> for Choke<P> {
    /// # Panics
    /// If [`crate::Params::parse`] would reject `params`.
    fn new(params: Params, _now: Nanos) -> Self {
        Self::with_policy(params, Policy::new(params.red(), BUSY))
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters; the average starts anew. As in the kernel, a lower limit drops only
    /// the newest packets for which the smaller ring has no slot.
    fn change(&mut self, params: Params, _now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params;
        self.policy.change(params.red(), BUSY);
        self.ring.resize(params.limit, |queued| {
            self.totals.drops += 1;
            sink.dropped(queued.packet, DropReason::Overflow, true);
        });
    }
}

impl<P: Packet> Choke<P> {
    /// Returns a queue with the numbers that `tc` would send; they replace those in `params`.
    pub fn with_options(params: Params, options: &Options) -> Self {
        let Options { limit, min, max, max_p, .. } = *options;
        let params = Params { limit, min, max, max_p, ..params };
        Self::with_policy(params, Policy::with_options(params.red(), options, BUSY))
    }

    fn with_policy(params: Params, policy: Policy) -> Self {
        let (totals, ring) = (Totals::default(), Ring::new(params.limit));
        Self { params, policy, matched: 0, totals, ring }
    }

    /// Returns the slot of a random packet if that packet is of the same flow as `packet`.
    #[inline]
    fn match_at_random(&self, packet: &P, draws: &mut impl Draws) -> Option<usize> {
        let (slot, drawn) = self.ring.pick(draws)?;
        (drawn.flow_hash() == packet.flow_hash()).then_some(slot)
    }
}

/// Start of the idle time of a new queue; 0 means that the queue is not idle, unlike a new RED
/// queue.
const BUSY: Nanos = 0;

viewed!(Choke in ring);

impl<P: Packet> Discipline<P> for Choke<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        self.policy.average(call.now, self.ring.packets() as u64);
        let verdict = if self.policy.against_min() != Ordering::Greater {
            self.policy.below()
        } else if let Some(slot) = self.match_at_random(&packet, call.draws) {
            self.matched += 1;
            self.totals.drops += 2;
            if let Some(queued) = self.ring.take(slot) {
                call.sink.dropped(queued.packet, DropReason::Early, true);
            }
            call.sink.dropped(packet, DropReason::Early, false);
            return Return::Congestion;
        } else if self.policy.against_end() == Ordering::Greater {
            self.policy.above()
        } else {
            self.policy.between(call.draws)
        };
        let Some(packet) = self.policy.carry_out(verdict, packet, &mut self.totals, call.sink)
        else {
            return Return::Congestion;
        };
        if self.ring.packets() < self.params.limit as usize {
            self.ring.push(call.now, packet);
            return Return::Success;
        }
        self.policy.overflow(packet, &mut self.totals, call.sink);
        Return::Drop
    }

    #[inline]
    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        let head = self.ring.pop();
        if head.is_none() {
            self.policy.idle(call.now);
        }
        self.totals.leave(head.map(|queued| queued.packet))
    }

    fn head(&self) -> Option<Dequeue<&P>> {
        Some(self.ring.oldest())
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.policy.visit_state(visit);
        visit("head", self.ring.head().into());
        visit("tail", self.ring.tail().into());
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        self.policy.visit_counters(visit);
        visit("matched", self.matched);
    }
}
