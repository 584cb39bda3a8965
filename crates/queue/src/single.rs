//! Disciplines with one FIFO that an AQM controls.

use crate::aqm::{Aqm, AqmParams, Common};
use crate::declaration::Configured;
use crate::discipline::{Call, Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals};
use crate::flow_queues::Overflow;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, viewed};
use sojourn_units::Nanos;

/// A FIFO with a limit, controlled by an AQM. Packets that arrive at a full queue are dropped.
#[derive(Clone, Debug)]
pub struct Single<P, D: AqmParams> {
    params: D,
    common: Common<D::Aqm>,
    state: D::Aqm,
    overflow: Overflow,
    totals: Totals,
    fifo: PacketFifo<P>,
    timer: Option<Nanos>,
}

impl<P: Packet, D: AqmParams> Configured<P, D> for Single<P, D> {
    fn new(params: D, now: Nanos) -> Self {
        Self {
            params,
            common: Common::new(params.constants()),
            state: D::Aqm::default(),
            overflow: Overflow::default(),
            totals: Totals::default(),
            fifo: PacketFifo::default(),
            timer: params.next_update(now, false),
        }
    }

    fn params(&self) -> &D {
        &self.params
    }

    /// Replaces the parameters. A new time between updates applies from the next update on. If the
    /// new limit is exceeded, the oldest packets are dropped without the AQM's decision.
    fn change(&mut self, params: D, _now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params;
        self.common.constants = params.constants();
        if let Some((_, limit)) = params.limit() {
            self.fifo.cut(limit as usize, &mut self.totals, sink);
        }
    }
}

viewed!(Single<D: AqmParams> in fifo);

impl<P: Packet, D: AqmParams> Discipline<P> for Single<P, D> {
    #[inline]
    fn enqueue(&mut self, mut packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        let Self { common, state, fifo, .. } = self;
        let fits = self.params.limit().is_none_or(|(unit, limit)| unit.fits(limit, fifo, &packet));
        let (reason, verdict) = if !fits {
            self.overflow.dropped += 1;
            (DropReason::Overflow, Return::Drop)
        } else if state.admit(common, fifo, &mut packet, call) {
            fifo.push(call.now, packet);
            return Return::Success;
        } else {
            (DropReason::Early, D::Aqm::EARLY)
        };
        state.refused(common, call.now, reason);
        self.totals.refuse(packet, reason, call.sink);
        verdict
    }

    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        self.totals.leave(self.state.dequeue(&mut self.common, &mut self.fifo, call))
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn on_timer(&mut self, now: Nanos) {
        self.state.update(&self.common.constants, now, &self.fifo);
        self.timer = self.params.next_update(now, false);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.state.visit(visit);
        D::Aqm::visit_common(&self.common.counters, visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let drops = self.totals.drops + D::Aqm::drops(&self.common.counters);
        Totals { drops, ..self.totals }.visit(self, visit);
        D::visit(&self.common.counters, &self.overflow, visit);
    }
}
