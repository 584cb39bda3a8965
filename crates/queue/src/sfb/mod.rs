//! SFB: stochastic fair BLUE.
//!
//! Source: Feng, Kandlur, Saha, Shin, "Stochastic fair BLUE: a queue management algorithm for enforcing
//! fairness" (INFOCOM 2001); Linux `sch_sfb.c`, `tc`'s `q_sfb.c`.
//!
//! A hash sorts each flow into one of 16 bins on each of 8 levels, and each bin is a BLUE: its probability
//! rises on arrivals that find `target` packets in it and falls on those that find none. A flow is judged by
//! the mildest of its bins, so one that responds is hit only if *all* its bins are shared with flows that
//! do not; those that reach probability one may queue `penalty_rate` packets a second together.
//!
//! The hash changes every `rehash`, so that no flow is unlucky for long. There are two sets of bins: in the
//! last `db` before a change the flows in the penalty box are entered into the next set too, which
//! then starts with them known.
//!
//! Invariants: a flow is hit with the least probability of its bins; it is put into the penalty box only if
//! all are at one; each bin counts the packets queued of its flows.
//!
//! The kernel's oddities are kept: a change of hash gives the *retiring* set its new key at once, and the
//! packet that triggers it is still judged by that set, under the new key; bins are not cleared.

mod bins;
mod params;

pub use params::{Params, TABLE};

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals};
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, viewed};
use bins::{BINS, Hash, LEVELS, Slot};
use sojourn_units::declare::Parameters;
use sojourn_units::words::{Given, Table, WordError};
use sojourn_units::{Nanos, jiffies};
use std::collections::VecDeque;

/// SFB's state in addition to its bins. Times are ticks of the coarse clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The set of bins in force: 0 or 1.
    pub slot: usize,
    /// Whether the other set is being warmed up.
    pub double_buffering: bool,
    /// Packets that flows in the penalty box may still queue.
    pub tokens_avail: u32,
    /// When tokens were last given out.
    pub token_time: u64,
    /// When the hash changed last.
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

/// SFB's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    earlydrop: u64,
    penaltydrop: u64,
    bucketdrop: u64,
    queuedrop: u64,
    marked: u64,
}

/// A packet's hash for each set of bins that it is entered into.
type Hashes = [Option<Hash>; 2];

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];

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

    /// As `tc` does, which states everything anew.
    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        Self::new(device).with(given, device)
    }

    /// Returns settings that the manual of `tc` advises against.
    fn warnings(&self, _given: &Given) -> Vec<String> {
        let Self { rehash_ms, warmup_ms, max, bin_size, .. } = self;
        let mut warnings = Vec::new();
        if max < bin_size {
            warnings.push(format!(
                "`max` {max} is below `target` {bin_size}: a bin of one flow never gets so far"
            ));
        }
        if *rehash_ms > 0 && warmup_ms >= rehash_ms {
            warnings.push(format!(
                "`db` {warmup_ms} is not below `rehash` {rehash_ms}: both sets of bins are always in use"
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
    /// Those of the packets in `fifo`, in the same order.
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

    /// Replaces the parameters. As in the kernel, all that is queued is thrown away, and the bins, the
    /// hash and the penalty box start over.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        self.fifo.cut(0, &mut self.totals, sink);
        self.hashes.clear();
        *self.slots = Default::default();
        self.state = State::new(&params, now);
        self.params = params;
    }
}

impl<P: Packet> Sfb<P> {
    /// Changes the hash if it is time, or begins to warm up the next.
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

    /// Returns whether a packet from the penalty box may be queued.
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
            // An attempt in vain starts the wait anew.
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
        // The kernel does not call an early drop one over the limit.
        self.totals.overlimits += u64::from(reason != DropReason::Early);
        sink.dropped(packet, reason, false);
        Return::Congestion
    }
}

viewed!(Sfb in fifo);

impl<P: Packet> Discipline<P> for Sfb<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        mut packet: P,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        if self.fifo.len() >= self.params.limit as usize {
            self.counters.queuedrop += 1;
            return self.refuse(packet, DropReason::Overflow, sink);
        }
        let slot = self.state.slot;
        let tick = jiffies::at(now, self.params.hz);
        self.rehash(tick);
        let mut hashes = Hashes::default();
        let hash = self.slots[slot].hash(&packet, draws);
        hashes[slot] = Some(hash);
        let (qlen, p) = self.slots[slot].arrive(hash, &self.params);
        if qlen >= self.params.max {
            self.counters.bucketdrop += 1;
            return self.refuse(packet, DropReason::Forced, sink);
        }
        if p == u16::MAX {
            if self.state.double_buffering {
                let other = slot ^ 1;
                let hash = self.slots[other].hash(&packet, draws);
                hashes[other] = Some(hash);
                self.slots[other].arrive(hash, &self.params);
            }
            if !self.has_token(tick) {
                self.counters.penaltydrop += 1;
                return self.refuse(packet, DropReason::Forced, sink);
            }
        } else {
            let draw = draws.draw_u16();
            if draw < p {
                // Above one half drops replace marks: a flow that is marked so often does not
                // respond.
                let must_drop = u32::from(draw) < 2 * u32::from(p.saturating_sub(HALF));
                if must_drop || !packet.set_ce() {
                    self.counters.earlydrop += 1;
                    return self.refuse(packet, DropReason::Early, sink);
                }
                self.counters.marked += 1;
                sink.marked(&packet, MarkReason::Early);
            }
        }
        for (slot, hash) in self.slots.iter_mut().zip(hashes) {
            if let Some(hash) = hash {
                slot.enter(hash);
            }
        }
        self.hashes.push_back(hashes);
        self.fifo.push(now, packet);
        Return::Success
    }

    #[inline]
    fn dequeue(
        &mut self,
        _now: Nanos,
        _draws: &mut impl Draws,
        _sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
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
        visit("double_buffering", self.state.double_buffering.into());
        visit("tokens_avail", self.state.tokens_avail.into());
        visit("token_time", self.state.token_time.into());
        visit("rehash_time", self.state.rehash_time.into());
    }

    /// Bins are numbered slot by slot, level by level.
    fn flow_state(&self, flow: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        if let Some(slot) = self.slots.get(flow / (LEVELS * BINS)) {
            let bin = slot.bin(flow % (LEVELS * BINS));
            visit("qlen", bin.qlen.into());
            visit("p_mark", bin.p_mark.into());
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit("earlydrop", self.counters.earlydrop);
        visit("penaltydrop", self.counters.penaltydrop);
        visit("bucketdrop", self.counters.bucketdrop);
        visit("queuedrop", self.counters.queuedrop);
        // The kernel's child queue has the same limit and so never drops.
        visit("childdrop", 0);
        visit("marked", self.counters.marked);
    }
}

/// Half of probability one, as the kernel halves it.
const HALF: u16 = u16::MAX / 2;
