//! SFB: stochastic fair BLUE.
//!
//! Source: Feng, Kandlur, Saha, Shin, "Stochastic fair BLUE: a queue management algorithm for
//! enforcing fairness" (INFOCOM 2001); Linux `sch_sfb.c`, `tc`'s `q_sfb.c`.
//!
//! On each of 8 levels a hash assigns each flow to one of 16 bins. Each bin is a BLUE: its
//! probability rises on arrivals at a bin with at least `target` packets and falls on arrivals at
//! an empty one. A flow is dropped or marked with its bins' smallest probability, so a responsive
//! flow suffers only if it shares *all* bins with unresponsive flows. Flows with probability 1 are
//! in the penalty box, and together may enqueue `penalty_rate` packets per second.
//!
//! The hash changes every `rehash`, so that a collision of flows does not last. There are two sets
//! of bins. In the last `db` before a change, arrivals of flows in the penalty box also update the
//! next set, so that it starts with their state.
//!
//! Invariants: a flow is dropped or marked with the smallest probability of its bins; it is in the
//! penalty box only if all its bins have probability 1; each bin counts the queued packets of its
//! flows.
//!
//! Two peculiarities of the kernel are reproduced. A change of the hash immediately gives a new key
//! to the set that was in use; the packet that causes the change still uses that set, with the new
//! key. Bins are not cleared.

mod bins;
mod params;

pub use params::Params;

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{
    Call, Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals, visit_fields,
};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, viewed};
use bins::{BINS, Hash, LEVELS, Slot};
use sojourn_units::declare::Parameters;
use sojourn_units::words::{Given, WordError};
use sojourn_units::{Nanos, jiffies};
use std::collections::VecDeque;

/// State of SFB in addition to its bins. Times are in timer ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Index of the set of bins in use: 0 or 1.
    pub slot: usize,
    /// Whether the other set is being warmed up.
    pub double_buffering: bool,
    /// Number of packets that flows in the penalty box may still enqueue.
    pub tokens_avail: u32,
    /// Time at which tokens were last computed.
    pub token_time: u64,
    /// Time of the last change of the hash.
    pub rehash_time: u64,
}

impl State {
    fn new(params: &Params, now: Nanos) -> Self {
        let tick = jiffies::at(now, params.hz);
        Self {
            slot: 0,
            double_buffering: false,
            tokens_avail: params.penalty_burst,
            token_time: tick,
            rehash_time: tick,
        }
    }
}

/// Counters of SFB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    earlydrop: u64,
    penaltydrop: u64,
    bucketdrop: u64,
    queuedrop: u64,
    marked: u64,
}

/// Hash of a packet for each set of bins that counts it.
type Hashes = [Option<Hash>; 2];

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }

    fn settle(&mut self, given: &Given, _device: &Device) -> Result<(), WordError> {
        let times = |packets: u32, by: u64, over: u64, of: u64| {
            u32::try_from((u64::from(packets) * by + over) / of).unwrap_or(u32::MAX)
        };
        if given.has("target") && !given.has("max") {
            self.max = times(self.bin_size, 5, 1, 4);
        }
        if !given.has("target") {
            self.bin_size = times(self.max, 4, 3, 5);
        }
        Ok(())
    }

    /// Reads a change as `tc`, which states all values anew.
    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        Self::new(device).with(given, device)
    }

    /// Returns warnings about settings that the manual page of `tc-sfb` advises against.
    fn warnings(&self, _given: &Given) -> Vec<String> {
        let Self { rehash_ms, warmup_ms, max, bin_size, .. } = self;
        let mut warnings = Vec::new();
        if max < bin_size {
            warnings.push(format!(
                "`max` {max} is below `target` {bin_size}: a bin of one flow never reaches `target`"
            ));
        }
        if *rehash_ms > 0 && warmup_ms >= rehash_ms {
            warnings.push(format!(
                "`db` {warmup_ms} is not below `rehash` {rehash_ms}: the warm-up never ends, and both sets of bins are always in use"
            ));
        }
        warnings
    }
}

/// An SFB queue.
#[derive(Clone, Debug)]
pub struct Sfb<P> {
    params: Params,
    state: State,
    slots: Box<[Slot; 2]>,
    counters: Counters,
    totals: Totals,
    fifo: PacketFifo<P>,
    /// Hashes of the packets in `fifo`, in the same order.
    hashes: VecDeque<Hashes>,
}

impl<P: Packet> Configured<P, Params> for Sfb<P> {
    fn new(params: Params, now: Nanos) -> Self {
        Self {
            params,
            state: State::new(&params, now),
            slots: Box::default(),
            counters: Counters::default(),
            totals: Totals::default(),
            fifo: PacketFifo::default(),
            hashes: VecDeque::new(),
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. As in the kernel, all queued packets are dropped, and bins, hash
    /// and penalty box start anew.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        self.fifo.cut(0, &mut self.totals, sink);
        self.hashes.clear();
        *self.slots = Default::default();
        self.state = State::new(&params, now);
        self.params = params;
    }
}

impl<P: Packet> Sfb<P> {
    /// Changes the hash if that is due, or starts the warm-up of the next set.
    #[inline]
    fn rehash(&mut self, tick: u64) {
        let (period, warmup) = (self.params.rehash(), self.params.warmup());
        if period == 0 {
            return;
        }
        let due = self.state.rehash_time + period;
        if tick > due {
            self.slots[self.state.slot].rekey();
            self.state.slot ^= 1;
            self.state.double_buffering = false;
            self.state.rehash_time = tick;
        } else if warmup > 0 && tick + warmup > due {
            self.state.double_buffering = true;
        }
    }

    /// Takes a token for a packet of a flow in the penalty box; returns whether there was one.
    fn has_token(&mut self, tick: u64) -> bool {
        let Params { penalty_rate, penalty_burst, hz, .. } = self.params;
        if penalty_rate == 0 || penalty_burst == 0 {
            return false;
        }
        if self.state.tokens_avail == 0 {
            let hz = u64::from(hz);
            let age = (tick - self.state.token_time).min(10 * hz);
            let tokens = age * u64::from(penalty_rate) / hz;
            self.state.tokens_avail = tokens.min(u64::from(penalty_burst)) as u32;
            // The wait restarts even if it was too short for a token.
            self.state.token_time = tick;
            if self.state.tokens_avail == 0 {
                return false;
            }
        }
        self.state.tokens_avail -= 1;
        true
    }

    fn refuse(&mut self, packet: P, reason: DropReason, sink: &mut impl Sink<P>) -> Return {
        self.totals.drops += 1;
        // The kernel does not count early drops as overlimits.
        self.totals.overlimits += u64::from(reason != DropReason::Early);
        sink.dropped(packet, reason, false);
        Return::Congestion
    }
}

viewed!(Sfb in fifo);

impl<P: Packet> Discipline<P> for Sfb<P> {
    #[inline]
    fn enqueue(&mut self, mut packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        if self.fifo.len() >= self.params.limit as usize {
            self.counters.queuedrop += 1;
            return self.refuse(packet, DropReason::Overflow, call.sink);
        }
        let slot = self.state.slot;
        let tick = jiffies::at(call.now, self.params.hz);
        self.rehash(tick);
        let mut hashes = Hashes::default();
        let hash = self.slots[slot].hash(&packet, call.draws);
        hashes[slot] = Some(hash);
        let (qlen, p) = self.slots[slot].arrive(hash, &self.params);
        if qlen >= self.params.max {
            self.counters.bucketdrop += 1;
            return self.refuse(packet, DropReason::Forced, call.sink);
        }
        if p == u16::MAX {
            if self.state.double_buffering {
                let other = slot ^ 1;
                let hash = self.slots[other].hash(&packet, call.draws);
                hashes[other] = Some(hash);
                self.slots[other].arrive(hash, &self.params);
            }
            if !self.has_token(tick) {
                self.counters.penaltydrop += 1;
                return self.refuse(packet, DropReason::Forced, call.sink);
            }
        } else {
            let draw = call.draws.draw_u16();
            if draw < p {
                // Above a probability of 1/2 some marks are replaced by drops: the flow does not
                // respond, or the congestion is severe.
                let must_drop = u32::from(draw) < 2 * u32::from(p.saturating_sub(HALF));
                if must_drop || !packet.set_ce() {
                    self.counters.earlydrop += 1;
                    return self.refuse(packet, DropReason::Early, call.sink);
                }
                self.counters.marked += 1;
                call.sink.marked(&packet, MarkReason::Early);
            }
        }
        for (slot, hash) in self.slots.iter_mut().zip(hashes) {
            if let Some(hash) = hash {
                slot.enter(hash);
            }
        }
        self.hashes.push_back(hashes);
        self.fifo.push(call.now, packet);
        Return::Success
    }

    #[inline]
    fn dequeue(&mut self, _call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        let (Some(queued), Some(hashes)) = (self.fifo.pop(), self.hashes.pop_front()) else {
            return Dequeue::Empty;
        };
        for (slot, hash) in self.slots.iter_mut().zip(hashes) {
            if let Some(hash) = hash {
                slot.leave(hash);
            }
        }
        self.totals.sent(queued.packet.len());
        Dequeue::Packet(queued.packet)
    }

    fn head(&self) -> Option<Dequeue<&P>> {
        Some(self.fifo.head())
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("slot", self.state.slot as i128);
        visit_fields!(visit, self.state, [double_buffering, tokens_avail, token_time, rehash_time]);
    }

    /// Visits the state of a bin; bins are numbered set by set, level by level.
    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if let Some(slot) = self.slots.get(flow / (LEVELS * BINS)) {
            let bin = slot.bin(flow % (LEVELS * BINS));
            visit_fields!(visit, bin, [qlen, p_mark]);
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit_fields!(visit, self.counters, [earlydrop, penaltydrop, bucketdrop, queuedrop]);
        // The kernel's inner queue has the same limit and therefore never drops.
        visit("childdrop", 0);
        visit("marked", self.counters.marked);
    }
}

/// Half of probability 1, rounded down as in the kernel.
const HALF: u16 = u16::MAX / 2;
