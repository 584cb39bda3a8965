//! DualPI2: a queue for L4S and one for Classic traffic, coupled by one PI controller.
//!
//! Source: RFC 9332; Linux `sch_dualpi2.c`.
//!
//! Packets that carry L4S's identifier, ECT(1) or CE, go to the L queue, all others to the C queue. The
//! [controller](crate::pi) looks at the longer of the two delays; Classic packets meet the square of its
//! probability, L4S packets `coupling_factor` times it, so that one flow of either kind gets about the
//! same rate. L4S packets that waited longer than `step_thresh` are marked too, so the L queue
//! stays short. The L queue goes first, but for the share that `classic_protection` keeps for the C queue.
//!
//! Invariants: the backlog of both queues together exceeds neither `limit` nor `memlimit`; no L4S packet
//! is dropped early unless `coupling_factor` times the probability exceeds one.
//!
//! Linux's filters, by which packets without ECN can get into the L queue, are left out.

mod params;

pub use params::{Params, Step, TABLE};

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{
    Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals, View,
};
use crate::limit::Unit;
use crate::packet::{Ecn, Packet};
use crate::pi::{self, Law, MAX_PROB, State, Verdict};
use crate::store::{Queued, Store};
use sojourn_units::Nanos;
use sojourn_units::words::{Given, Table, WordError};
use std::collections::VecDeque;

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// The Classic queue.
    C,
    /// The L4S queue.
    L,
}

/// What DualPI2 counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    packets_in_c: u64,
    packets_in_l: u64,
    maxq: u64,
    ecn_mark: u64,
    step_marks: u64,
    max_memory_used: u64,
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }

    fn settle(&mut self, given: &Given, _device: &Device) -> Result<(), WordError> {
        self.depend(given)
    }

    fn warnings(&self, given: &Given) -> Vec<String> {
        Self::ignored(given)
    }
}

/// A DualPI2 queue.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    params: Params,
    law: Law,
    state: State,
    /// The C queue is served while this is above 0: bytes, in hundredths.
    credit: i64,
    c: Store<P>,
    l: Store<P>,
    /// Whether `step_thresh` applies, for each packet of the L queue.
    stepped: VecDeque<bool>,
    memory: u64,
    counters: Counters,
    totals: Totals,
    timer: Nanos,
}

impl<P: Packet> Configured<P, Params> for DualPi2<P> {
    fn new(params: Params, now: Nanos) -> Self {
        let law = params.pi.law();
        Self {
            params,
            law,
            state: State::default(),
            credit: params.initial_credit(),
            c: Store::default(),
            l: Store::default(),
            stepped: VecDeque::new(),
            memory: 0,
            counters: Counters::default(),
            totals: Totals::default(),
            timer: now + law.tupdate(),
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters; a new `tupdate` counts from the next update. What no longer fits is
    /// dropped from the head, of the C queue first.
    fn change(&mut self, params: Params, _now: Nanos, sink: &mut impl Sink<P>) {
        if params.classic_protection != self.params.classic_protection {
            self.credit = params.initial_credit();
        }
        self.params = params;
        self.law = params.pi.law();
        while self.packets() > params.limit as usize || self.memory > params.memory_limit.into() {
            let lane = if self.c.is_empty() { Lane::L } else { Lane::C };
            let Some((queued, _)) = self.take(lane) else { break };
            self.totals.drops += 1;
            sink.dropped(queued.packet, DropReason::Overflow, true);
        }
    }
}

impl<P: Packet> DualPi2<P> {
    #[inline]
    fn lane(&self, packet: &P) -> Lane {
        match packet.ecn() {
            Ecn::Ect1 | Ecn::Ce => Lane::L,
            Ecn::Ect0 if self.params.any_ect => Lane::L,
            Ecn::Ect0 | Ecn::NotEct => Lane::C,
        }
    }

    /// Takes the head of `lane`, and whether `step_thresh` applies to it.
    #[inline]
    fn take(&mut self, lane: Lane) -> Option<(Queued<P>, bool)> {
        let (queued, is_stepped) = match lane {
            Lane::C => (self.c.pop()?, false),
            Lane::L => (self.l.pop()?, self.stepped.pop_front() == Some(true)),
        };
        self.memory -= u64::from(queued.packet.truesize());
        Some((queued, is_stepped))
    }

    /// Which queue is served, and what a byte of it adds to the credit.
    #[inline]
    fn schedule(&self) -> Option<(Lane, i64)> {
        let share = i64::from(self.params.classic_protection);
        match (self.c.is_empty(), self.l.is_empty()) {
            (true, true) => None,
            (true, false) => Some((Lane::L, 0)),
            (false, true) => Some((Lane::C, 0)),
            (false, false) if self.credit <= 0 => Some((Lane::L, share)),
            (false, false) => Some((Lane::C, share - 100)),
        }
    }

    /// What the probability means for a packet, which is not, or no longer, in a queue.
    #[inline]
    fn judge(&self, lane: Lane, packet: &P, draws: &mut impl Draws) -> Verdict {
        if self.bytes() < 2 * u64::from(self.params.mtu) {
            return Verdict::Pass;
        }
        match lane {
            Lane::C => self.state.classic(&self.law, packet.ecn() != Ecn::NotEct, draws),
            Lane::L => self.state.scalable(&self.law, self.params.drop_on_overload, draws),
        }
    }

    #[inline]
    fn mark(&mut self, packet: &mut P, reason: MarkReason, sink: &mut impl Sink<P>) {
        if packet.set_ce() {
            self.counters.ecn_mark += 1;
            sink.marked(packet, reason);
        }
    }

    /// Drops or marks by probability; gives the packet back if it stays.
    #[inline]
    fn pass(
        &mut self,
        lane: Lane,
        mut packet: P,
        queued: bool,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Option<P> {
        match self.judge(lane, &packet, draws) {
            Verdict::Pass => {}
            Verdict::Mark => self.mark(&mut packet, MarkReason::Early, sink),
            Verdict::Drop => {
                self.totals.drops += 1;
                sink.dropped(packet, DropReason::Early, queued);
                return None;
            }
        }
        Some(packet)
    }

    /// Whether a packet that leaves the L queue now is beyond the step.
    #[inline]
    fn is_beyond_step(&self, now: Nanos, at: Nanos) -> bool {
        match self.params.step {
            Step::Micros(us) => now - at > pi::nanos(us),
            Step::Packets(packets) => self.l.len() > packets as usize,
        }
    }
}

impl<P: Packet> View for DualPi2<P> {
    #[inline]
    fn packets(&self) -> usize {
        self.c.len() + self.l.len()
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.c.bytes() + self.l.bytes()
    }

    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        // Of the first n + 1 by time, as many are from the C queue as come before the L queue's.
        let (mut c, mut l) = (0, 0);
        loop {
            let next = match (self.c.enqueued_at(c), self.l.enqueued_at(l)) {
                (Some(first), Some(second)) => first.min(second),
                (first, second) => first.or(second)?,
            };
            if c + l == n {
                return Some(next);
            }
            if self.c.enqueued_at(c) == Some(next) {
                c += 1;
            } else {
                l += 1;
            }
        }
    }
}

impl<P: Packet> Discipline<P> for DualPi2<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        let memory = self.memory + u64::from(packet.truesize());
        if self.packets() >= self.params.limit as usize || memory > self.params.memory_limit.into()
        {
            self.totals.overlimits += 1;
            self.totals.refuse(packet, DropReason::Overflow, sink);
            return Return::Drop;
        }
        let lane = self.lane(&packet);
        let packet = if self.params.drop_enqueue {
            match self.pass(lane, packet, false, draws, sink) {
                Some(packet) => packet,
                // The kernel does not tell the host.
                None => return Return::Success,
            }
        } else {
            packet
        };
        self.memory = memory;
        self.counters.max_memory_used = self.counters.max_memory_used.max(memory);
        // The kernel notes the length before this packet.
        self.counters.maxq = self.counters.maxq.max(self.packets() as u64);
        match lane {
            Lane::C => {
                self.counters.packets_in_c += 1;
                self.c.push(now, packet);
            }
            Lane::L => {
                self.counters.packets_in_l += 1;
                self.stepped.push_back(self.l.len() >= self.params.min_qlen_step as usize);
                self.l.push(now, packet);
            }
        }
        Return::Success
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Nanos,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        while let Some((lane, weight)) = self.schedule() {
            let Some((queued, is_stepped)) = self.take(lane) else { break };
            let mut packet = queued.packet;
            if !self.params.drop_enqueue {
                match self.pass(lane, packet, true, draws, sink) {
                    Some(kept) => packet = kept,
                    None => continue,
                }
            }
            if is_stepped && self.is_beyond_step(now, queued.at) {
                self.counters.step_marks += 1;
                self.mark(&mut packet, MarkReason::CeThreshold, sink);
            }
            self.credit += weight * i64::from(packet.len());
            self.totals.sent(packet.len());
            return Dequeue::Packet(packet);
        }
        self.credit = self.params.initial_credit();
        Dequeue::Empty
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        Some(self.timer)
    }

    fn on_timer(&mut self, now: Nanos) {
        let delay = self.enqueued_at(0).map_or(0, |at| now - at);
        let most = if self.params.drop_on_overload {
            MAX_PROB
        } else {
            // Then the L queue's marks never exceed one, and the two kinds stay in balance.
            MAX_PROB / u32::from(self.params.pi.coupling_factor)
        };
        self.state.update(&self.law, delay, most);
        self.timer = now + self.law.tupdate();
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.state.visit(visit);
        visit("credit", self.credit.into());
        visit("memory_used", self.memory.into());
    }

    /// The C queue is 0, the L queue 1.
    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        let store = match flow {
            0 => &self.c,
            1 => &self.l,
            _ => return,
        };
        visit("qlen", store.len() as i128);
        visit("backlog", store.bytes().into());
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit("packets_in_c", self.counters.packets_in_c);
        visit("packets_in_l", self.counters.packets_in_l);
        visit("maxq", self.counters.maxq);
        visit("ecn_mark", self.counters.ecn_mark);
        visit("step_marks", self.counters.step_marks);
        visit("max_memory_used", self.counters.max_memory_used);
    }
}
