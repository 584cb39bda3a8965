//! Contract of an AQM, which controls a single queue or each bucket of flow queues.

use crate::declaration::DisciplineParams;
use crate::discipline::{Call, Draws, DropReason, Return, Sink};
use crate::flow_queues::Overflow;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, Source};
use sojourn_units::Nanos;
use std::fmt::Debug;

/// An AQM's state of one queue, and its decisions about the packets of this queue.
pub trait Aqm: Clone + Debug + Default {
    /// Parameters in the units of the decisions.
    type Constants: Copy + Debug;
    /// Counters of all queues of a discipline.
    type Counters: Clone + Debug + Default;
    /// Result of `enqueue` after an early drop.
    const EARLY: Return = Return::Drop;

    /// Returns whether to add an arriving packet to `queue`, and marks it if required.
    fn admit<P: Packet>(
        &mut self,
        _common: &mut Common<Self>,
        _queue: &PacketFifo<P>,
        _packet: &mut P,
        _call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> bool {
        true
    }

    /// Updates the state after an arriving packet was dropped.
    fn refused(&mut self, _common: &mut Common<Self>, _now: Nanos, _reason: DropReason) {}

    /// Updates the state after this queue has lost packets because a limit was exceeded.
    fn overflowed(&mut self, _common: &mut Common<Self>, _now: Nanos, _packets: u32) {}

    /// Returns the packet to send, after the drops and marks that are due; `None` if the queue is
    /// empty.
    fn dequeue<P: Packet>(
        &mut self,
        common: &mut Common<Self>,
        source: &mut impl Source<P>,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Option<P>;

    /// Runs the periodic task for `queue`.
    fn update<P: Packet>(
        &mut self,
        _constants: &Self::Constants,
        _now: Nanos,
        _queue: &PacketFifo<P>,
    ) {
    }

    /// Returns the number of packets dropped on departure.
    fn drops(_counters: &Self::Counters) -> u64 {
        0
    }

    /// Visits the fields, under the kernel's names.
    fn visit(&self, visit: &mut dyn FnMut(&'static str, i128));

    /// Visits the numbers that describe all queues together, under the kernel's names.
    fn visit_common(_counters: &Self::Counters, _visit: &mut dyn FnMut(&'static str, i128)) {}
}

/// Constants and counters of all queues of a discipline.
#[derive(Clone, Debug)]
pub struct Common<A: Aqm> {
    /// Parameters of the AQM.
    pub constants: A::Constants,
    /// Counters of the AQM.
    pub counters: A::Counters,
}

impl<A: Aqm> Common<A> {
    /// Returns `constants`, and counters that are 0.
    pub fn new(constants: A::Constants) -> Self {
        Self { constants, counters: A::Counters::default() }
    }
}

/// Parameters of a discipline whose queue or buckets an AQM controls.
pub trait AqmParams: DisciplineParams + Copy {
    /// The AQM.
    type Aqm: Aqm;

    /// Returns the constants of the AQM.
    fn constants(&self) -> <Self::Aqm as Aqm>::Constants;

    /// Returns the time of the next update after an update at `now`, or after the start of a run at
    /// `now`, since a queue is installed before a run; `None` for an AQM without a periodic task.
    /// `is_partial` if the update at `now` has left out buckets.
    fn next_update(&self, _now: Nanos, _is_partial: bool) -> Option<Nanos> {
        None
    }

    /// Visits the discipline's own counters, under the kernel's names.
    fn visit(
        counters: &<Self::Aqm as Aqm>::Counters,
        overflow: &Overflow,
        visit: &mut dyn FnMut(&'static str, u64),
    );
}
