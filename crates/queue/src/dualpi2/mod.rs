//! DualPI2: a queue for L4S and a queue for Classic traffic, coupled by one PI controller.
//!
//! Source: RFC 9332; Linux `sch_dualpi2.c`.
//!
//! Packets with L4S's identifier, ECT(1) or CE, enter the L queue, all others the C queue. The
//! [controller](crate::pi) computes a probability p from the longer of the two queues' delays.
//! Classic packets are dropped (or marked) with probability p^2, and L4S packets are marked with
//! `coupling_factor` times p, so that a flow of either kind gets about the same rate. L4S packets
//! whose sojourn time exceeds `step_thresh` are also marked, which keeps the L queue short. The L
//! queue is served first, except for the share of the rate that `classic_protection` reserves for
//! the C queue.
//!
//! A packet without L4S's identifier may name a class itself: class 1 treats it as L4S, class 2
//! puts it into the L queue without drops and marks. Linux's filters, which have the same effect,
//! are not modelled.
//!
//! Invariants: the backlog of both queues together exceeds neither `limit` nor `memlimit`; no
//! ECN-capable L4S packet is dropped early unless `coupling_factor` times the probability exceeds
//! 1.

mod params;

pub use params::{Params, Step};

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{
    Call, Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals, View,
    visit_fields,
};
use crate::limit::Unit;
use crate::packet::{Ecn, Packet};
use crate::packet_fifo::{PacketFifo, Queued};
use crate::pi::{self, Constants, MAX_PROB, State, Verdict};
use sojourn_units::Nanos;
use sojourn_units::words::{Given, WordError};

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// The Classic queue.
    C,
    /// The L4S queue.
    L,
}

/// The treatment of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// A Classic packet, in the C queue.
    Classic,
    /// An L4S packet, in the L queue.
    L4s,
    /// A packet in the L queue without drops and marks.
    LowLatency,
}

impl Class {
    fn lane(self) -> Lane {
        if self == Self::Classic { Lane::C } else { Lane::L }
    }
}

/// Data about a packet of the L queue, recorded on arrival.
#[derive(Clone, Copy, Debug)]
struct Note {
    class: Class,
    /// Whether `step_thresh` applies to the packet.
    is_stepped: bool,
}

/// A packet that was removed from its queue.
struct Taken<P> {
    at: Nanos,
    note: Note,
    packet: P,
}

/// Arrival time of the oldest packet of each queue, as the controller sees it; 0 if the queue is
/// empty. The first arrival sets it and departures update it; packets dropped by a change of
/// parameters do not.
#[derive(Clone, Copy, Debug, Default)]
struct Heads {
    c: Nanos,
    l: Nanos,
}

impl Heads {
    fn of(&mut self, lane: Lane) -> &mut Nanos {
        match lane {
            Lane::C => &mut self.c,
            Lane::L => &mut self.l,
        }
    }

    /// Returns the longer of the two queues' delays.
    fn delay(&self, now: Nanos) -> Nanos {
        let wait = |head: Nanos| if head == 0 { 0 } else { now - head };
        wait(self.c).max(wait(self.l))
    }
}

/// Counters of DualPI2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    packets_in_c: u64,
    packets_in_l: u64,
    maxq: u64,
    ecn_mark: u64,
    step_marks: u64,
}

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }

    fn settle(&mut self, given: &Given, _device: &Device) -> Result<(), WordError> {
        self.depend(given)
    }

    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        let restarts_credit = given.has("classic_protection");
        Ok(Self { restarts_credit, ..self.with(given, device)? })
    }

    fn warnings(&self, given: &Given) -> Vec<String> {
        Self::ignored(given)
    }
}

/// A DualPI2 queue.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    params: Params,
    constants: Constants,
    state: State,
    /// Credit of the C queue, in bytes times percent; above 0 the C queue is served first, else the
    /// L queue.
    credit: i32,
    c: PacketFifo<P>,
    l: PacketFifo<P, Note>,
    heads: Heads,
    /// Time at which the packet that left last had been enqueued; `None` before the first.
    left_at: Option<Nanos>,
    memory: u64,
    counters: Counters,
    totals: Totals,
    timer: Nanos,
}

impl<P: Packet> Configured<P, Params> for DualPi2<P> {
    fn new(params: Params, now: Nanos) -> Self {
        let constants = params.pi.constants();
        Self {
            params,
            constants,
            state: State::default(),
            credit: params.initial_credit(),
            c: PacketFifo::default(),
            l: PacketFifo::default(),
            heads: Heads::default(),
            left_at: None,
            memory: 0,
            counters: Counters::default(),
            totals: Totals::default(),
            timer: now + constants.tupdate,
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. A new `tupdate` applies from the next update on, and a named
    /// `classic_protection` resets the credit. If a new limit is exceeded, the oldest packets are
    /// dropped, first from the C queue.
    fn change(&mut self, params: Params, _now: Nanos, sink: &mut impl Sink<P>) {
        if params.restarts_credit || params.classic_protection != self.params.classic_protection {
            self.credit = params.initial_credit();
        }
        self.params = params;
        self.constants = params.pi.constants();
        while self.packets() > params.limit as usize || self.memory > params.memory_limit.into() {
            let lane = if self.c.is_empty() { Lane::L } else { Lane::C };
            let Some(taken) = self.take(lane) else { break };
            self.totals.drops += 1;
            sink.dropped(taken.packet, DropReason::Overflow, true);
        }
    }
}

impl<P: Packet> DualPi2<P> {
    #[inline]
    fn class(&self, packet: &P) -> Class {
        match packet.ecn() {
            Ecn::Ect1 | Ecn::Ce => Class::L4s,
            Ecn::Ect0 if self.params.any_ect => Class::L4s,
            Ecn::Ect0 | Ecn::NotEct => match packet.class() {
                Some(1) => Class::L4s,
                Some(2) => Class::LowLatency,
                _ => Class::Classic,
            },
        }
    }

    /// Removes and returns the oldest packet of a queue.
    #[inline]
    fn take(&mut self, lane: Lane) -> Option<Taken<P>> {
        let taken = match lane {
            Lane::C => {
                let Queued { at, packet, .. } = self.c.pop()?;
                Taken { at, note: Note { class: Class::Classic, is_stepped: false }, packet }
            }
            Lane::L => {
                let Queued { at, note, packet } = self.l.pop()?;
                Taken { at, note, packet }
            }
        };
        self.memory -= u64::from(taken.packet.truesize());
        Some(taken)
    }

    /// Returns the queue to serve, and the change of the credit per byte sent; `None` if both are
    /// empty.
    #[inline]
    fn schedule(&self) -> Option<(Lane, i32)> {
        let share = i32::from(self.params.classic_protection);
        match (self.c.is_empty(), self.l.is_empty()) {
            (true, true) => None,
            (true, false) => Some((Lane::L, 0)),
            (false, true) => Some((Lane::C, 0)),
            (false, false) if self.credit <= 0 => Some((Lane::L, share)),
            (false, false) => Some((Lane::C, share - 100)),
        }
    }

    /// Returns the controller's decision about an arriving or leaving packet.
    #[inline]
    fn judge(&self, class: Class, packet: &P, draws: &mut impl Draws) -> Verdict {
        if self.bytes() < 2 * u64::from(self.params.mtu) {
            return Verdict::Pass;
        }
        let is_capable = packet.ecn() != Ecn::NotEct;
        match class {
            Class::Classic => self.state.classic(&self.constants, is_capable, draws),
            Class::L4s => {
                match self.state.scalable(&self.constants, self.params.drop_on_overload, draws) {
                    // A packet that is L4S only by its class cannot be marked. It is dropped; under
                    // overload it passes unmarked.
                    Verdict::Mark if !is_capable && !self.state.is_overloaded(&self.constants) => {
                        Verdict::Drop
                    }
                    verdict => verdict,
                }
            }
            Class::LowLatency => Verdict::Pass,
        }
    }

    #[inline]
    fn mark(&mut self, packet: &mut P, reason: MarkReason, sink: &mut impl Sink<P>) {
        if packet.set_ce() {
            self.counters.ecn_mark += 1;
            sink.marked(packet, reason);
        }
    }

    /// Drops or marks the packet with the controller's probability; returns the packet unless it
    /// was dropped.
    #[inline]
    fn pass(
        &mut self,
        class: Class,
        mut packet: P,
        queued: bool,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Option<P> {
        match self.judge(class, &packet, call.draws) {
            Verdict::Pass => {}
            Verdict::Mark => self.mark(&mut packet, MarkReason::Early, call.sink),
            Verdict::Drop => {
                self.totals.drops += 1;
                call.sink.dropped(packet, DropReason::Early, queued);
                return None;
            }
        }
        Some(packet)
    }

    /// Returns whether `step_thresh` is exceeded for a packet that leaves the L queue now.
    #[inline]
    fn is_beyond_step(&self, now: Nanos, at: Nanos) -> bool {
        match self.params.step {
            Step::Micros(us) => now - at > pi::nanos(us),
            Step::Packets(packets) => self.l.len() > packets as usize,
        }
    }

    /// Adds a packet that is not split.
    #[inline]
    fn append(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        let memory = self.memory + u64::from(packet.truesize());
        if self.packets() >= self.params.limit as usize || memory > self.params.memory_limit.into()
        {
            self.totals.overlimits += 1;
            self.totals.refuse(packet, DropReason::Overflow, call.sink);
            return Return::Drop;
        }
        let class = self.class(&packet);
        let packet = if self.params.drop_enqueue {
            match self.pass(class, packet, false, call) {
                Some(packet) => packet,
                // Linux hides this drop from the sending host.
                None => return Return::Success,
            }
        } else {
            packet
        };
        self.memory = memory;
        // As in the kernel, the maximum does not include the arriving packet.
        self.counters.maxq = self.counters.maxq.max(self.packets() as u64);
        let lane = class.lane();
        let head = self.heads.of(lane);
        if *head == 0 {
            *head = call.now;
        }
        match lane {
            Lane::C => {
                self.counters.packets_in_c += 1;
                self.c.push(call.now, packet);
            }
            Lane::L => {
                self.counters.packets_in_l += 1;
                let is_long = self.l.len() >= self.params.min_qlen_step as usize;
                let note = Note { class, is_stepped: class == Class::L4s && is_long };
                self.l.push_noted(call.now, packet, note);
            }
        }
        Return::Success
    }
}

impl<P: Packet> View for DualPi2<P> {
    fn packets(&self) -> usize {
        self.c.len() + self.l.len()
    }

    fn bytes(&self) -> u64 {
        self.c.bytes() + self.l.bytes()
    }

    fn left_at(&self) -> Option<Nanos> {
        self.left_at
    }

    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        // Merge the two queues in the order of arrival.
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
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        if self.params.split_gso && packet.is_super() {
            let frames = call.sink.split(packet);
            let given = frames.into_iter().map(|frame| self.append(frame, call));
            return given.last().unwrap_or(Return::Success);
        }
        self.append(packet, call)
    }

    #[inline]
    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        while let Some((lane, weight)) = self.schedule() {
            let Some(Taken { at, note, mut packet }) = self.take(lane) else { break };
            let next = match lane {
                Lane::C => self.c.enqueued_at(0),
                Lane::L => self.l.enqueued_at(0),
            };
            *self.heads.of(lane) = next.unwrap_or(0);
            if !self.params.drop_enqueue {
                match self.pass(note.class, packet, true, call) {
                    Some(kept) => packet = kept,
                    None => continue,
                }
            }
            if note.is_stepped && self.is_beyond_step(call.now, at) {
                if packet.ecn() == Ecn::NotEct {
                    self.totals.drops += 1;
                    call.sink.dropped(packet, DropReason::Forced, true);
                    continue;
                }
                self.counters.step_marks += 1;
                self.mark(&mut packet, MarkReason::CeThreshold, call.sink);
            }
            // The kernel's credit has 32 bits.
            self.credit = self.credit.wrapping_add(weight.wrapping_mul(packet.len() as i32));
            self.left_at = Some(at);
            self.totals.sent(packet.len());
            return Dequeue::Packet(packet);
        }
        self.credit = self.params.initial_credit();
        Dequeue::Empty
    }

    fn next_timer(&self) -> Option<Nanos> {
        Some(self.timer)
    }

    fn on_timer(&mut self, now: Nanos) {
        let most = if self.params.drop_on_overload {
            MAX_PROB
        } else {
            // This limit keeps the mark probability of L4S packets at most 1, and the two kinds of
            // traffic balanced.
            MAX_PROB / u32::from(self.params.pi.coupling_factor)
        };
        self.state.update(&self.constants, self.heads.delay(now), most);
        self.timer = now + self.constants.tupdate;
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.state.visit(visit);
        visit("credit", self.credit.into());
        visit("memory_used", self.memory.into());
        visit("c_head_ts", self.heads.c.into());
        visit("l_head_ts", self.heads.l.into());
        visit("l_qlen", self.l.len() as i128);
        visit("l_backlog", self.l.bytes().into());
    }

    /// Visits the backlog of the C queue (0) or the L queue (1).
    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        let (packets, bytes) = match flow {
            0 => (self.c.len(), self.c.bytes()),
            1 => (self.l.len(), self.l.bytes()),
            _ => return,
        };
        visit("qlen", packets as i128);
        visit("backlog", bytes.into());
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit_fields!(
            visit,
            self.counters,
            [packets_in_c, packets_in_l, maxq, ecn_mark, step_marks]
        );
    }
}
