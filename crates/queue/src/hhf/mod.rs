//! HHF: heavy-hitter filter, a separate queue with a smaller share for flows that send much.
//!
//! Source: tc-hhf(8); Estan, Varghese, SIGCOMM 2002; Linux `sch_hhf.c`, observed in virtual time.
//!
//! A flow that sends more than `admit_bytes` by the counters of all stages of a filter is a heavy
//! hitter, until it has sent no packet for `evict_timeout`. The counters are reset every
//! `reset_timeout`. Heavy hitters share one queue, and all other flows share another. The queue of
//! the other flows gets `non_hh_weight` times the bytes per turn, and is served first when it
//! becomes active. A full queue drops the oldest packet of the heavy hitters, if they have packets.
//!
//! Invariants: the backlog never exceeds the limit; on overflow, packets of other flows are dropped
//! only while heavy hitters have no packets.

mod detector;

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Call, Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals, View};
use crate::flow_queues;
use crate::kinds::{bytes, micros, packets};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::PacketFifo;
use detector::{Constants, Detector};
use sojourn_units::declare::{derived, integer};
use sojourn_units::{Nanos, jiffies, params};
use std::collections::VecDeque;

params! {
    "hhf": "heavy hitters, detected by a filter of counters, in a separate queue with a smaller share",
    from "Linux sch_hhf.c, tc-hhf(8)";

    /// Parameters of HHF.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in the queue.
        limit: u32 = packets("1000p").above_zero(),
        /// Bytes that the heavy hitters may send in their turn.
        quantum: u32 = flow_queues::quantum(),
        /// Maximum number of heavy hitters at a time.
        hh_limit: u32 = integer(1, 4_294_967_295, "2048"),
        /// Time after which all counters are reset.
        reset_timeout: u32 = micros("40ms"),
        /// Number of bytes that a flow's counters must exceed within reset_timeout to make it a
        /// heavy hitter.
        admit_bytes: u32 = bytes("128kb"),
        /// Time without a packet after which a flow is no longer a heavy hitter.
        evict_timeout: u32 = micros("1s"),
        /// Bytes of a turn of the other flows, as a multiple of quantum.
        non_hh_weight: u32 = integer(1, 1000, "2"),
        /// Timer ticks per second.
        hz: u32 = derived(|device: &Device| device.hz),
    }
}

impl Params {
    fn constants(&self) -> Constants {
        let ticks = |span| jiffies::from_micros(span, self.hz);
        Constants {
            reset: ticks(self.reset_timeout),
            evict: ticks(self.evict_timeout),
            admit_bytes: self.admit_bytes,
            hh_limit: self.hh_limit,
        }
    }
}

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }
}

const HEAVY: usize = 0;
const OTHERS: usize = 1;

/// Queue of the heavy hitters, or of all other flows.
#[derive(Clone, Debug)]
struct Class<P> {
    fifo: PacketFifo<P>,
    /// Bytes that the class may still send in its turn.
    deficit: i64,
    is_listed: bool,
}

/// An HHF queue.
#[derive(Clone, Debug)]
pub struct Hhf<P> {
    params: Params,
    constants: Constants,
    detector: Detector,
    /// Key of the hash of flows; drawn at the first packet.
    key: Option<u64>,
    classes: [Class<P>; 2],
    /// Whether the flows that are no heavy hitters have just become active and are served first.
    is_new: bool,
    /// Classes that take turns, in the order of service.
    old: VecDeque<usize>,
    left_at: Option<Nanos>,
    drop_overlimit: u64,
    totals: Totals,
}

impl<P: Packet> Hhf<P> {
    /// Returns the bytes of a class's turn.
    fn turn(&self, class: usize) -> i64 {
        let weight = if class == HEAVY { 1 } else { self.params.non_hh_weight };
        i64::from(weight) * i64::from(self.params.quantum)
    }

    fn class(&mut self, now: Nanos, packet: &P, draws: &mut impl Draws) -> usize {
        let key = *self.key.get_or_insert_with(|| draws.draw_key());
        let hash = draws.keyed_hash(key, packet.flow_hash());
        let tick = jiffies::at(now, self.params.hz);
        let is_heavy = self.detector.is_heavy(hash, packet.len(), tick, &self.constants);
        if is_heavy { HEAVY } else { OTHERS }
    }

    /// Drops the oldest packet of the heavy hitters or, if they have none, of the other flows;
    /// returns the class.
    fn drop_oldest(&mut self, sink: &mut impl Sink<P>) -> usize {
        let class = if self.classes[HEAVY].fifo.is_empty() { OTHERS } else { HEAVY };
        if let Some(oldest) = self.classes[class].fifo.pop() {
            self.totals.drops += 1;
            sink.dropped(oldest.packet, DropReason::Overflow, true);
        }
        class
    }

    /// Removes and returns the packet that leaves next.
    fn serve(&mut self) -> Option<P> {
        loop {
            let is_new = self.is_new;
            let class = if is_new { OTHERS } else { *self.old.front()? };
            let turn = self.turn(class);
            let served = &mut self.classes[class];
            let packet = if served.deficit > 0 { served.fifo.pop() } else { None };
            if let Some(queued) = packet {
                served.deficit -= i64::from(queued.packet.len());
                self.left_at = Some(queued.at);
                return Some(queued.packet);
            }
            let is_spent = served.deficit <= 0;
            if is_spent {
                served.deficit += turn;
            }
            // An empty new class becomes old for a round, if the other class is old. Without this,
            // its next packet would make it new again.
            let stays = is_spent || is_new && !self.old.is_empty();
            if is_new {
                self.is_new = false;
            } else {
                self.old.pop_front();
            }
            if stays {
                self.old.push_back(class);
            } else {
                self.classes[class].is_listed = false;
            }
        }
    }
}

impl<P: Packet> Configured<P, Params> for Hhf<P> {
    fn new(params: Params, now: Nanos) -> Self {
        let class = || Class { fifo: PacketFifo::default(), deficit: 0, is_listed: false };
        Self {
            params,
            constants: params.constants(),
            detector: Detector::new(jiffies::at(now, params.hz)),
            key: None,
            classes: [class(), class()],
            is_new: false,
            old: VecDeque::with_capacity(2),
            left_at: None,
            drop_overlimit: 0,
            totals: Totals::default(),
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. If the new limit is exceeded, packets are removed in the order of
    /// departure, dropped, and counted as sent.
    fn change(&mut self, params: Params, _now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params;
        self.constants = params.constants();
        while self.packets() > params.limit as usize {
            let Some(packet) = self.serve() else { break };
            self.totals.sent(packet.len());
            sink.dropped(packet, DropReason::Overflow, true);
        }
    }
}

impl<P: Packet> View for Hhf<P> {
    fn packets(&self) -> usize {
        self.classes.iter().map(|class| class.fifo.len()).sum()
    }

    fn bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.fifo.bytes()).sum()
    }

    /// Returns the time of the `n`-th packet; merges the two FIFOs, each of which is in the order
    /// of arrival.
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        let [heavy, others] = [HEAVY, OTHERS].map(|class| &self.classes[class].fifo);
        let (mut a, mut b) = (0, 0);
        loop {
            let (first, second) = (heavy.enqueued_at(a), others.enqueued_at(b));
            let is_first = second.is_none_or(|second| first.is_some_and(|first| first <= second));
            if a + b == n {
                return if is_first { first } else { second };
            }
            if is_first {
                first?;
                a += 1;
            } else {
                b += 1;
            }
        }
    }

    fn left_at(&self) -> Option<Nanos> {
        self.left_at
    }
}

impl<P: Packet> Discipline<P> for Hhf<P> {
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        let own = self.class(call.now, &packet, call.draws);
        let turn = self.turn(own);
        let class = &mut self.classes[own];
        class.fifo.push(call.now, packet);
        if !class.is_listed {
            class.is_listed = true;
            class.deficit = turn;
            match own {
                HEAVY => self.old.push_back(HEAVY),
                _ => self.is_new = true,
            }
        }
        if self.packets() <= self.params.limit as usize {
            return Return::Success;
        }
        self.drop_overlimit += 1;
        if self.drop_oldest(call.sink) == own { Return::Congestion } else { Return::Success }
    }

    fn dequeue(&mut self, _call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        let packet = self.serve();
        self.totals.leave(packet)
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("hh_flows_current_cnt", self.detector.current.into());
    }

    /// Visits the state of the heavy hitters (0) or of the other flows (1).
    fn flow_state(&self, class: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if let Some(class) = self.classes.get(class) {
            visit("qlen", class.fifo.len() as i128);
            visit("backlog", class.fifo.bytes().into());
            visit("deficit", class.deficit.into());
        }
    }

    /// Visits the classes in the list of new classes (0), then those in the list of old ones (1).
    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        if self.is_new {
            visit(0, OTHERS);
        }
        self.old.iter().for_each(|class| visit(1, *class));
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit("drop_overlimit", self.drop_overlimit);
        visit("hh_overlimit", self.detector.refused);
        visit("tot_hh", self.detector.total);
    }
}
