//! CAKE: a shaper, tins by service class, flows in separate queues with fairness between hosts,
//! each queue controlled by COBALT.
//!
//! Source: Linux `sch_cake.c`; Høiland-Jørgensen, Täht, Morton, "Piece of CAKE" (2018).
//!
//! A packet's code point selects its tin, and its flow selects the queue in the tin. The shaper
//! determines when the next packet may leave, the tins' rates from which tin, deficit round robin
//! from which queue, and COBALT which packet of the queue. With fairness between hosts, a queue's
//! quantum is divided by the number of bulk queues of its host. If the limit of memory is exceeded,
//! the longest queue loses packets from its head.
//!
//! Each part has a module: [`shaper`], [`framing`], [`tins`], [`flows`] with [`lists`],
//! [`overflow`], [`ack_filter`], [`serve`] for departures, and [`words`] for the parameters.
//!
//! Invariants: after an arrival, memory is within its limit. With a shaper, the bytes sent in any
//! period are at most its rate times the period plus one packet. COBALT never drops the last packet
//! of a queue.

pub mod ack_filter;
pub mod flows;
pub mod framing;
mod lists;
mod overflow;
mod serve;
pub mod shaper;
pub mod tins;
mod words;

pub use words::Params;

use crate::aqm::Aqm;
use crate::declaration::{Configured, DisciplineParams};
use crate::discipline::{
    Call, Dequeue, Discipline, Draws, DropReason, Return, Sink, Totals, View, counted, visit_fields,
};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::Queued;
use ack_filter::AckFilter;
use flows::{Set, Tin, Ways};
use lists::{DECAYING, NEW, OLD};
use overflow::Heap;
use shaper::{Pace, Shaper};
use sojourn_units::clocking::rounded;
use sojourn_units::words::Given;
use sojourn_units::{Nanos, Rate};
use tins::{QUEUES, TINS};

/// Counters of CAKE over all tins, in addition to the totals.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    dropped: u64,
    ecn_mark: u64,
    ack_drops: u64,
    drop_overlimit: u64,
    ways: Ways,
}

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        None
    }

    fn rate(&self) -> Option<Rate> {
        self.bandwidth
    }

    fn warnings(&self, given: &Given) -> Vec<String> {
        let pace = |bits: u64| Pace::new(bits / 8);
        let rate = self.bandwidth.map(Rate::bits);
        let rate =
            rate.and_then(|bits| rounded("bandwidth", bits, |length| pace(bits).time(length)));
        words::without_effect(given).into_iter().chain(rate).collect()
    }
}

/// A CAKE queue.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    params: Params,
    /// Limit of memory, in bytes.
    limit: u64,
    tins: Vec<Tin<P>>,
    /// Index of the tin whose turn it is, without a shaper.
    turn: usize,
    shaper: Shaper,
    overflow: Heap,
    packets: usize,
    bytes: u64,
    memory: u64,
    /// Time at which the packet that left last had been enqueued; `None` before the first.
    left_at: Option<Nanos>,
    /// Time of the next `dequeue` that the last call requested; `None` without a request.
    wake: Option<Nanos>,
    counters: Counters,
    totals: Totals,
}

impl<P: Packet> Configured<P, Params> for Cake<P> {
    fn new(params: Params, _now: Nanos) -> Self {
        let numbers = params.tins();
        let shaper = Shaper { pace: numbers[0].pace, ..Shaper::default() };
        let tin = |numbers| Tin::new(numbers, params.isolation);
        Self {
            params,
            limit: params.buffer_limit().into(),
            tins: numbers.into_iter().map(tin).collect(),
            turn: 0,
            shaper,
            overflow: Heap::new(),
            packets: 0,
            bytes: 0,
            memory: 0,
            left_at: None,
            wake: None,
            counters: Counters::default(),
            totals: Totals::default(),
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. Packets in tins that no longer exist are dropped. If the new limit
    /// of memory is exceeded, packets are dropped at the next arrival.
    fn change(&mut self, params: Params, _now: Nanos, sink: &mut impl Sink<P>) {
        self.wake = None;
        let numbers = params.tins();
        for tin in numbers.len()..self.tins.len() {
            for queue in 0..QUEUES {
                while let Some(queued) = self.take(tin, queue) {
                    sink.dropped(queued.packet, DropReason::Overflow, true);
                }
            }
        }
        self.tins.truncate(numbers.len());
        self.turn = self.turn.min(self.tins.len() - 1);
        self.shaper.pace = numbers[0].pace;
        for (index, numbers) in numbers.into_iter().enumerate() {
            match self.tins.get_mut(index) {
                Some(tin) => tin.change(numbers, params.isolation),
                None => self.tins.push(Tin::new(numbers, params.isolation)),
            }
        }
        self.limit = params.buffer_limit().into();
        self.params = params;
    }
}

impl<P: Packet> Cake<P> {
    /// Returns the backlog of a queue in bytes; 0 if the tin does not exist.
    fn backlog(tins: &[Tin<P>], tin: usize, queue: usize) -> u64 {
        tins.get(tin).map_or(0, |tin| tin.flows[queue].fifo.bytes())
    }

    /// Adds a packet to a queue.
    #[inline]
    fn append(&mut self, now: Nanos, (tin, queue): (usize, usize), packet: P) {
        let bytes = u64::from(packet.len());
        self.packets += 1;
        self.bytes += bytes;
        self.memory += u64::from(packet.truesize());
        let length = self.params.framing.length(packet.len());
        let chosen = &mut self.tins[tin];
        chosen.backlog += bytes;
        chosen.flows[queue].fifo.push_noted(now, packet, length);
    }

    /// Removes and returns the oldest packet of a queue.
    #[inline]
    fn take(&mut self, tin: usize, queue: usize) -> Option<Queued<P, u32>> {
        let queued = self.tins[tin].flows[queue].fifo.pop()?;
        let bytes = u64::from(queued.packet.len());
        self.tins[tin].backlog -= bytes;
        self.bytes -= bytes;
        self.packets -= 1;
        self.memory -= u64::from(queued.packet.truesize());
        self.overflow.shrunk(tin, queue, |t, q| Self::backlog(&self.tins, t, q));
        Some(queued)
    }

    /// Charges a packet of `length` bytes on the line to the shaper and to the tin.
    #[inline]
    fn charge(&mut self, now: Nanos, tin: usize, length: u32, dropped: bool) {
        if !self.shaper.pace.is_unlimited() {
            self.tins[tin].charge(now, length);
            self.shaper.charge(length, dropped);
        }
    }

    /// Charges a dropped packet in `ingress` mode, in which the packet has already crossed the
    /// line.
    #[inline]
    fn charge_dropped(&mut self, now: Nanos, tin: usize, length: u32) {
        if self.params.ingress {
            self.charge(now, tin, length, true);
        }
    }

    /// Sets the clocks of the empty tin, and of the shaper if the queue is empty, to at least
    /// `now`: unused capacity is lost.
    fn restart(&mut self, now: Nanos, tin: usize) {
        let tin = &mut self.tins[tin];
        tin.time_next = tin.time_next.max(now);
        if self.packets > 0 {
            return;
        }
        self.shaper.restart(now);
        self.wake = self.shaper.wait(now);
        self.totals.overlimits += u64::from(self.wake.is_some());
    }

    /// Drops an acknowledgement that the newly arrived packet of the queue makes redundant.
    fn filter_acks(&mut self, now: Nanos, at: (usize, usize), sink: &mut impl Sink<P>) {
        let (tin, queue) = at;
        let fifo = &mut self.tins[tin].flows[queue].fifo;
        let mut views = fifo.packets().map(|packet| sink.tcp(packet));
        let Some(Some(arrived)) = views.next_back() else { return };
        let Some(place) = self.params.ack_filter.redundant(&arrived, views) else { return };
        let Some(ack) = fifo.remove(place) else { return };
        let bytes = u64::from(ack.packet.len());
        self.tins[tin].backlog -= bytes;
        self.bytes -= bytes;
        self.packets -= 1;
        self.memory -= u64::from(ack.packet.truesize());
        self.counters.ack_drops += 1;
        self.totals.drops += 1;
        self.charge_dropped(now, tin, ack.note);
        sink.dropped(ack.packet, DropReason::AckFilter, true);
    }

    /// Drops the oldest packet of the longest queue, and returns the queue. Returns `None` if the
    /// top of the heap has no packet.
    fn drop_longest(&mut self, now: Nanos, sink: &mut impl Sink<P>) -> Option<(usize, usize)> {
        self.overflow.wake(|t, q| Self::backlog(&self.tins, t, q));
        let (tin, queue) = self.overflow.top();
        if tin >= self.tins.len() {
            self.overflow.give_up();
            return None;
        }
        let Some(queued) = self.take(tin, queue) else {
            self.overflow.give_up();
            return None;
        };
        let Tin { flows, numbers, unresponsive, .. } = &mut self.tins[tin];
        if flows[queue].cobalt.queue_full(&numbers.constants, now) {
            *unresponsive = unresponsive.wrapping_add(1);
        }
        self.counters.dropped += 1;
        self.counters.drop_overlimit += 1;
        self.totals.drops += 1;
        self.charge_dropped(now, tin, queued.note);
        sink.dropped(queued.packet, DropReason::Overflow, true);
        Some((tin, queue))
    }
}

impl<P: Packet> View for Cake<P> {
    counted!();

    /// Returns the time of the `n`-th packet in the order of arrival. For `n > 0` this collects the
    /// times of all packets.
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        if n >= self.packets {
            return None;
        }
        let queues = self.tins.iter().flat_map(|tin| {
            [NEW, OLD]
                .into_iter()
                .flat_map(|list| tin.lists.iter(list))
                .map(|queue| &tin.flows[queue])
        });
        if n == 0 {
            return queues.filter_map(|flow| flow.fifo.enqueued_at(0)).min();
        }
        let mut times: Vec<Nanos> = queues.flat_map(|flow| flow.fifo.times()).collect();
        Some(*times.select_nth_unstable(n).1)
    }
}

impl<P: Packet> Discipline<P> for Cake<P> {
    #[inline]
    fn enqueue(&mut self, mut packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        self.wake = None;
        let tin = self.params.diffserv.tin(packet.dscp());
        if self.params.wash {
            packet.set_dscp(0);
        }
        let queue = self.tins[tin].choose(&packet, &mut self.counters.ways);
        if self.tins[tin].backlog == 0 {
            self.restart(call.now, tin);
        }
        if packet.is_super() {
            for frame in call.sink.split(packet) {
                self.append(call.now, (tin, queue), frame);
            }
        } else {
            self.append(call.now, (tin, queue), packet);
            if self.params.ack_filter != AckFilter::Off {
                self.filter_acks(call.now, (tin, queue), call.sink);
            }
        }
        self.overflow.grown(tin, queue, |t, q| Self::backlog(&self.tins, t, q));
        let chosen = &mut self.tins[tin];
        match chosen.flows[queue].set {
            Set::None | Set::Decaying => {
                chosen.lists.push(NEW, queue);
                chosen.enter(queue, Set::Sparse);
                chosen.flows[queue].deficit = chosen.quantum(queue, call.draws);
            }
            Set::SparseWait => chosen.enter(queue, Set::Bulk),
            Set::Sparse | Set::Bulk => {}
        }
        let mut given = Return::Success;
        while self.memory > self.limit {
            let was_live = self.overflow.is_live();
            match self.drop_longest(call.now, call.sink) {
                Some(victim) if victim == (tin, queue) => given = Return::Congestion,
                Some(_) => {}
                None if was_live => {}
                // The heap was just put in order, and its top is empty: all queues are empty.
                None => break,
            }
        }
        given
    }

    #[inline]
    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        self.wake = None;
        self.next_packet(call)
    }

    fn wake_up(&self) -> Option<Nanos> {
        self.wake
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("buffer_used", self.memory.into());
        visit("time_next_packet", self.shaper.time_next.into());
        visit("failsafe_next_packet", self.shaper.failsafe.into());
        for (tin, names) in self.tins.iter().zip(&NAMES) {
            let values = [
                tin.backlog.into(),
                tin.deficit.into(),
                tin.sparse.into(),
                tin.bulk.into(),
                tin.decaying.into(),
                tin.unresponsive.into(),
                tin.time_next.into(),
            ];
            names.iter().zip(values).for_each(|(name, value)| visit(name, value));
        }
    }

    /// Visits the state of a queue, whose number is 1024 times its tin plus its index in the tin.
    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if let Some(tin) = self.tins.get(flow / QUEUES) {
            let flow = &tin.flows[flow % QUEUES];
            visit("backlog", flow.fifo.bytes().into());
            visit("deficit", flow.deficit.into());
            visit("set", (flow.set as u8).into());
            flow.cobalt.visit(visit);
        }
    }

    /// Visits three lists for each tin: new, old and decaying queues. A list's number is 3 times
    /// the tin's number plus 0, 1 or 2.
    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        for (index, tin) in self.tins.iter().enumerate() {
            for list in [NEW, OLD, DECAYING] {
                tin.lists
                    .iter(list)
                    .for_each(|queue| visit(3 * index + list, index * QUEUES + queue));
            }
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit("tin_dropped", self.counters.dropped);
        visit("tin_ecn_mark", self.counters.ecn_mark);
        visit_fields!(visit, self.counters, [ack_drops, drop_overlimit]);
        visit("way_directs", self.counters.ways.directs);
        visit("way_hits", self.counters.ways.hits);
        visit("way_misses", self.counters.ways.misses);
        visit("way_collisions", self.counters.ways.collisions);
    }
}

macro_rules! names {
    ($($tin:literal)*) => {
        [$([
            concat!("t", $tin, ".backlog"),
            concat!("t", $tin, ".deficit"),
            concat!("t", $tin, ".sparse"),
            concat!("t", $tin, ".bulk"),
            concat!("t", $tin, ".decaying"),
            concat!("t", $tin, ".unresponsive"),
            concat!("t", $tin, ".time_next"),
        ]),*]
    };
}

/// The kernel's names of a tin's state, for each tin.
const NAMES: [[&str; 7]; TINS] = names!(0 1 2 3 4 5 6 7);
