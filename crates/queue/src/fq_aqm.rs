//! Disciplines with flow queues whose buckets are each controlled by an AQM.
//!
//! Source: Linux `sch_fq_codel.c` and `sch_fq_pie.c`.
//!
//! `flow_queues.rs` has the buckets and their scheduler. If an arrival exceeds a limit, either the
//! bucket with the largest backlog loses a batch of packets, or the arriving packet is dropped.

use crate::aqm::{Aqm, AqmParams, Common};
use crate::classes::Constant;
use crate::declaration::Configured;
use crate::discipline::{Call, Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals, View};
use crate::flow_queues::{FlowQueues, Overflow, Settings};
use crate::packet::Packet;
use crate::packet_fifo::viewed;
use sojourn_units::Nanos;

/// Effect of an exceeded limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// An arriving packet is dropped if the queue has the maximum number of packets.
    Refuse,
    /// The bucket with the largest backlog loses a batch of packets. After a change, packets leave
    /// in turn, with the AQM's decisions, and are dropped.
    Batch,
    /// Like `Batch`; after a change, batches are dropped too.
    OnlyBatches,
}

/// Parameters of a discipline with flow queues.
pub trait FqParams: AqmParams {
    /// Effect of an exceeded limit.
    const FULL: Full;

    /// Returns the settings of the flow queues.
    fn settings(&self) -> Settings;

    /// Returns these parameters with another number of buckets.
    #[must_use]
    fn with_flows(self, flows: u32) -> Self;
}

/// Maximum number of buckets updated in one call of the timer; the next call continues with the
/// rest.
const UPDATES: usize = 2048;

/// A queue with flow queues, each controlled by an AQM.
#[derive(Clone, Debug)]
pub struct FqAqm<P, D: FqParams> {
    params: D,
    common: Common<D::Aqm>,
    queues: FlowQueues<P, D::Aqm>,
    overflow: Overflow,
    totals: Totals,
    timer: Option<Nanos>,
    /// Bucket with which the next call of the timer begins.
    cursor: usize,
}

impl<P: Packet, D: FqParams> Configured<P, D> for FqAqm<P, D> {
    fn new(params: D, now: Nanos) -> Self {
        let Settings { flows, quantum, .. } = params.settings();
        Self {
            params,
            common: Common::new(params.constants()),
            queues: FlowQueues::new(flows, quantum),
            overflow: Overflow::default(),
            totals: Totals::default(),
            timer: params.next_update(now, false),
            cursor: 0,
        }
    }

    fn params(&self) -> &D {
        &self.params
    }

    /// Replaces the parameters, except the number of buckets. A new time between updates applies
    /// from the next update on. If a new limit is exceeded, packets are dropped as [`Full`] states.
    fn change(&mut self, params: D, now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params.with_flows(self.params.settings().flows);
        self.common.constants = params.constants();
        let settings = params.settings();
        self.queues.quantum = settings.quantum;
        if D::FULL == Full::OnlyBatches {
            while self.make_room(&settings, now, sink).is_some() {}
            return;
        }
        let memory = if D::FULL == Full::Refuse { u64::MAX } else { settings.memory_limit.into() };
        while !self.queues.fits(settings.limit, memory) {
            let mut call = Call { now, draws: &mut Constant, sink };
            let Dequeue::Packet(packet) = self.dequeue(&mut call) else { break };
            sink.dropped(packet, DropReason::Overflow, true);
        }
    }
}

impl<P: Packet, D: FqParams> FqAqm<P, D> {
    /// Drops a batch of packets from a bucket if a limit is exceeded; returns the bucket.
    #[inline]
    fn make_room(
        &mut self,
        settings: &Settings,
        now: Nanos,
        sink: &mut impl Sink<P>,
    ) -> Option<usize> {
        let batch = self.queues.make_room(settings, &mut self.overflow, sink)?;
        self.totals.drops += u64::from(batch.packets);
        self.queues.aqm(batch.bucket).0.overflowed(&mut self.common, now, batch.packets);
        Some(batch.bucket)
    }

    /// Returns whether an arriving packet exceeds the limit, and counts the arrival if it exceeds
    /// the limit or the memory.
    #[inline]
    fn is_full(&mut self, settings: &Settings, packet: &P) -> bool {
        let is_full = self.queues.packets() >= settings.limit as usize;
        // The kernel computes the sum in 32 bits.
        let memory_limit = settings.memory_limit.wrapping_add(packet.truesize());
        if is_full {
            self.overflow.dropped += 1;
        } else if self.queues.memory() > u64::from(memory_limit) {
            self.overflow.for_memory += 1;
        }
        is_full
    }
}

viewed!(FqAqm<D: FqParams> in queues);

impl<P: Packet, D: FqParams> Discipline<P> for FqAqm<P, D> {
    #[inline]
    fn enqueue(&mut self, mut packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        let settings = self.params.settings();
        let is_full = D::FULL == Full::Refuse && self.is_full(&settings, &packet);
        let index = self.queues.index(&packet);
        let (aqm, fifo) = self.queues.aqm(index);
        if is_full || !aqm.admit(&mut self.common, fifo, &mut packet, call) {
            let reason = if is_full { DropReason::Overflow } else { DropReason::Early };
            aqm.refused(&mut self.common, call.now, reason);
            self.totals.refuse(packet, reason, call.sink);
            return Return::Congestion;
        }
        self.queues.push(index, call.now, packet);
        if D::FULL == Full::Refuse {
            return Return::Success;
        }
        match self.make_room(&settings, call.now, call.sink) {
            Some(bucket) if bucket == index => Return::Congestion,
            _ => Return::Success,
        }
    }

    #[inline]
    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        let Self { common, queues, totals, .. } = self;
        totals.leave(queues.serve(|aqm, bucket| aqm.dequeue(common, bucket, call)))
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn on_timer(&mut self, now: Nanos) {
        let end = self.queues.len().min(self.cursor + UPDATES);
        for index in self.cursor..end {
            let (aqm, fifo) = self.queues.aqm(index);
            aqm.update(&self.common.constants, now, fifo);
        }
        self.cursor = if end < self.queues.len() { end } else { 0 };
        self.timer = self.params.next_update(now, self.cursor > 0);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.queues.visit(visit);
        D::Aqm::visit_common(&self.common.counters, visit);
    }

    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if let Some(aqm) = self.queues.visit_flow(flow, visit) {
            aqm.visit(visit);
        }
    }

    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.queues.visit_lists(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let drops = self.totals.drops + D::Aqm::drops(&self.common.counters);
        Totals { drops, ..self.totals }.visit(self, visit);
        D::visit(&self.common.counters, &self.overflow, visit);
    }
}
