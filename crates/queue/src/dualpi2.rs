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

use crate::device::Device;
use crate::discipline::{
    Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals, View,
};
use crate::packet::{Ecn, Packet};
use crate::pi::{self, Law, MAX_PROB, State, Verdict};
use crate::store::{Queued, Store};
use crate::tc::{LIMIT, Text, above_zero, micros, packets, set, size, time_text};
use serde::{Deserialize, Serialize};
use sojourn_units::words::{Given, Kind, Table, Word, WordError};
use sojourn_units::{MICROSECOND, Nanos, quantity};
use std::collections::VecDeque;

/// The words of `dualpi2`.
pub const TABLE: Table = Table {
    name: "dualpi2",
    summary: "DualPI2: a short queue for L4S beside one for Classic traffic, coupled by one controller",
    source: "RFC 9332; Linux sch_dualpi2.c (since 6.17)",
    words: &[
        Word {
            default: "10000p",
            doc: "Packets that fit in both queues together; more are dropped on arrival.",
            ..LIMIT
        },
        Word {
            name: "memlimit",
            kind: Kind::Size,
            default: "30280000b",
            doc: "Memory that queued packets may occupy, by their true size; twice `limit` of the device's largest frames if not given.",
        },
        pi::COUPLING_FACTOR,
        Word {
            name: "step_thresh",
            kind: Kind::Name,
            default: "1ms",
            doc: "L4S packets that waited longer are marked; a time, or packets left in the L queue (5p).",
        },
        Word {
            name: "min_qlen_step",
            kind: Kind::Packets,
            default: "0p",
            doc: "step_thresh applies to packets that found as many in the L queue.",
        },
        Word {
            name: "drop_on_overload",
            kind: Kind::Switch { off: "overflow" },
            default: "drop_on_overload",
            doc: "Under overload drops in both queues; else only marks, until the limit is reached.",
        },
        Word {
            name: "drop_enqueue",
            kind: Kind::Switch { off: "drop_dequeue" },
            default: "drop_dequeue",
            doc: "Drops and marks by probability on arrival, not on departure; step_thresh stays on departure.",
        },
        Word {
            name: "any_ect",
            kind: Kind::Switch { off: "l4s_ect" },
            default: "l4s_ect",
            doc: "All ECN-capable packets go to the L queue, not only ECT(1) and CE.",
        },
        Word {
            name: "classic_protection",
            kind: Kind::Probability,
            default: "10%",
            doc: "Share of the link that the C queue gets while both are busy, in whole percent.",
        },
        Word {
            name: "max_rtt",
            kind: Kind::Time,
            default: "",
            doc: "Greatest round-trip time: gives target, tupdate, alpha and beta; six times typical_rtt if only that is given.",
        },
        Word {
            name: "typical_rtt",
            kind: Kind::Time,
            default: "",
            doc: "Typical round-trip time, likewise; a sixth of max_rtt if only that is given.",
        },
        Word { default: "15ms", ..pi::TARGET },
        Word { default: "16ms", ..pi::TUPDATE },
        Word { default: "0.16015625", ..pi::ALPHA },
        Word { default: "3.19921875", ..pi::BETA },
        Word {
            name: "split_gso",
            kind: Kind::Switch { off: "no_split_gso" },
            default: "split_gso",
            doc: "Linux takes aggregates apart; packets here never are aggregates.",
        },
    ],
};

/// When L4S packets are marked for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// They waited longer, in microseconds.
    Micros(u32),
    /// They left more packets in the L queue.
    Packets(u32),
}

impl Step {
    /// Reads a time or a number of packets above 0.
    fn parse(text: &str) -> Option<Self> {
        let packets = ["packets", "packet", "pkts", "pkt", "p"];
        if let Some(number) = packets.iter().find_map(|unit| text.strip_suffix(unit)) {
            return number.parse().ok().filter(|&n| n > 0).map(Self::Packets);
        }
        let micros = quantity::parse_time(text).ok()? / MICROSECOND;
        u32::try_from(micros).ok().filter(|&us| us > 0).map(Self::Micros)
    }

    fn text(self) -> String {
        match self {
            Self::Micros(us) => time_text(us),
            Self::Packets(packets) => format!("{packets}p"),
        }
    }
}

/// What the user sets, in the kernel's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "the kernel's independent switches")]
pub struct Params {
    /// Packets that fit.
    pub limit: u32,
    /// Memory that fits.
    pub memory_limit: u32,
    /// The controller's.
    pub pi: pi::Params,
    /// When L4S packets are marked for certain.
    pub step: Step,
    /// Packets in the L queue from which on `step` applies.
    pub min_qlen_step: u32,
    /// Whether packets are dropped under overload whatever their ECN field.
    pub drop_on_overload: bool,
    /// Whether the probability acts on arrival.
    pub drop_enqueue: bool,
    /// Whether ECT(0) goes to the L queue.
    pub any_ect: bool,
    /// The C queue's share in percent.
    pub classic_protection: u8,
    /// Whether Linux would take aggregates apart.
    pub split_gso: bool,
    /// The largest frame of the device.
    pub mtu: u32,
}

impl Params {
    /// The defaults on `device`.
    pub fn new(device: &Device) -> Self {
        let pi = pi::Params {
            target_us: 15_000,
            tupdate_us: 16_000,
            alpha: 41,
            beta: 819,
            coupling_factor: 2,
        };
        let mut params = Self {
            limit: 10_000,
            memory_limit: 0,
            pi,
            step: Step::Micros(1000),
            min_qlen_step: 0,
            drop_on_overload: true,
            drop_enqueue: false,
            any_ect: false,
            classic_protection: 10,
            split_gso: true,
            mtu: device.psched_mtu,
        };
        params.memory_limit = params.memory_for_limit();
        params
    }

    /// The kernel's rule of thumb: twice `limit` of the largest frames.
    fn memory_for_limit(&self) -> u32 {
        let bytes = 2 * u64::from(self.limit) * u64::from(self.mtu);
        bytes.min(u32::MAX.into()) as u32
    }

    pub(crate) fn set(&mut self, given: &Given) -> Result<(), WordError> {
        if let Some(limit) = above_zero(given, "limit", packets)? {
            self.limit = limit;
            self.memory_limit = self.memory_for_limit();
        }
        set(&mut self.memory_limit, above_zero(given, "memlimit", size)?);
        if let Some(text) = given.text("step_thresh") {
            self.step = Step::parse(text).ok_or_else(|| {
                let needs = "`step_thresh` needs a time or packets above 0, such as 1ms or 5p";
                given.error("step_thresh", format!("{needs}; found `{text}`"))
            })?;
        }
        set(&mut self.min_qlen_step, packets(given, "min_qlen_step")?);
        set(&mut self.drop_on_overload, given.flag("drop_on_overload"));
        set(&mut self.drop_enqueue, given.flag("drop_enqueue"));
        set(&mut self.any_ect, given.flag("any_ect"));
        let percent = |share: f64| (share * 100.0).round_ties_even() as u8;
        set(&mut self.classic_protection, given.real("classic_protection").map(percent));
        set(&mut self.split_gso, given.flag("split_gso"));
        self.pi.set(given)?;
        let max = above_zero(given, "max_rtt", micros)?;
        let typical = above_zero(given, "typical_rtt", micros)?;
        let (max, typical) = match (max, typical) {
            (None, None) => return Ok(()),
            (Some(max), Some(typical)) => (max, typical),
            (Some(max), None) => (max, (max / TYPICAL_TO_MAX).max(1)),
            (None, Some(typical)) => (typical.saturating_mul(TYPICAL_TO_MAX), typical),
        };
        let word = if given.has("max_rtt") { "max_rtt" } else { "typical_rtt" };
        self.pi.fit(max, typical).map_err(|message| given.error(word, message))
    }

    /// What is worth saying of a description that reads well.
    pub(crate) fn warnings(given: &Given) -> Vec<String> {
        let fitted = ["target", "tupdate", "alpha", "beta"];
        let is_fitted = given.has("max_rtt") || given.has("typical_rtt");
        let ignored = fitted.iter().filter(|word| is_fitted && given.has(word));
        ignored
            .map(|word| format!("`{word}` is ignored: `max_rtt` and `typical_rtt` give it"))
            .collect()
    }

    pub(crate) fn to_tc(self) -> String {
        let text = Text::new("dualpi2")
            .value("limit", self.limit)
            .value("memlimit", self.memory_limit)
            .value("step_thresh", self.step.text())
            .value("min_qlen_step", self.min_qlen_step)
            .switch(self.drop_on_overload, "drop_on_overload", "overflow")
            .switch(self.drop_enqueue, "drop_enqueue", "drop_dequeue")
            .switch(self.any_ect, "any_ect", "l4s_ect")
            .value("classic_protection", format!("{}%", self.classic_protection));
        self.pi.write(text).switch(self.split_gso, "split_gso", "no_split_gso").done()
    }

    /// Where the credit begins: with the L queue, unless the C queue has the greater share.
    fn initial_credit(&self) -> i64 {
        let share = i64::from(self.classic_protection);
        i64::from(self.mtu) * (share - (100 - share))
    }
}

/// `tc`: the greatest round-trip time, in typical ones.
const TYPICAL_TO_MAX: u32 = 6;

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

impl<P: Packet> DualPi2<P> {
    /// An empty queue, created at `now`.
    pub fn new(params: Params, now: Nanos) -> Self {
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

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters; a new `tupdate` counts from the next update. What no longer fits is
    /// dropped from the head, of the C queue first.
    pub fn change(&mut self, params: Params, sink: &mut impl Sink<P>) {
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
            self.totals.drops += 1;
            sink.dropped(packet, DropReason::Overflow, false);
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
