//! CoDel: controlled delay.
//!
//! Source: RFC 8289; Linux `codel_impl.h`, `sch_codel.c`.
//!
//! A packet's sojourn time is compared with `target` when the packet leaves. Once it has stayed above
//! `target` for a whole `interval`, a packet is dropped from the head (or marked), and another one after
//! each `interval / sqrt(count)` for as long as the sojourn time stays above. A queue of at most one MTU
//! is exempt. The steps have the names of RFC 8289, section 5: `ok_to_drop`, `control_law`, `dropping`.
//!
//! Invariants: packets are dropped on arrival only if the queue is full; none is dropped in the first
//! `interval` above `target`; the last packet is never dropped. The square root is one Newton step on
//! 16 bits each time `count` changes, so early spacings differ from the ideal as they do in the kernel.

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals};
use crate::kinds::{ecn, linux, micros, optional_micros, packets};
use crate::limit::Unit;
use crate::linux::Linux;
use crate::packet::{Ecn, Packet};
use crate::packet_fifo::{PacketFifo, Queued, Source, viewed};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, derived};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, params};

/// The words of `codel`.
pub const TABLE: Table = Table {
    name: "codel",
    summary: "CoDel: drops by the time that packets spent in the queue",
    source: "RFC 8289; Linux sch_codel.c",
    words: Params::WORDS,
};

params! {
    /// Parameters of CoDel, in the kernel's units.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Packets that fit; more are dropped on arrival.
        limit: u32 = packets("1000p").above_zero(),
        /// Acceptable standing queue delay, in whole microseconds.
        target_us as "target": u32 = micros("5ms").above_zero(),
        /// Time that the delay may stay above target; about the largest round-trip time.
        interval_us as "interval": u32 = micros("100ms").above_zero(),
        /// Marks every ECN-capable packet that stayed longer; none by default.
        ce_threshold_us as "ce_threshold": Option<u32> = optional_micros(),
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = ecn(),
        /// Decisions of this version of Linux. Before 7.3 a departure may drop any number of packets, and the
        /// next drop may be due at once; since then it is at most 256, and the next is due a tick later at
        /// least. It shows with intervals of microseconds, or after a stall with a deep queue.
        linux: Linux = linux(),
        /// The largest frame of the device.
        mtu: u32 = derived(|device: &Device| device.psched_mtu.min(1 << 20)),
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];

    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }

    fn derived(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.constants().visit(visit);
    }
}

impl Params {
    /// Returns the same in ticks of CoDel's clock.
    pub fn constants(&self) -> Constants {
        Constants {
            target: ticks(self.target_us),
            interval: ticks(self.interval_us),
            ce_threshold: self.ce_threshold_us.map_or(DISABLED, ticks),
            ce_selector: 0,
            ce_mask: 0,
            mtu: self.mtu,
            ecn: self.ecn,
            linux: self.linux,
        }
    }
}

/// Packets dropped or marked at most in one departure in dropping state, since Linux 7.3.
const MAX_DROPS: u32 = 256;

/// A threshold that no delay exceeds.
pub const DISABLED: u32 = i32::MAX as u32;

/// CoDel's clock: 32 bits, 1024 ns a tick.
#[inline]
pub fn clock(now: Nanos) -> u32 {
    (now >> 10) as u32
}

/// Microseconds in ticks of CoDel's clock.
pub fn ticks(micros: u32) -> u32 {
    ((u64::from(micros) * 1000) >> 10) as u32
}

/// The parameters that decisions are made with, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Acceptable delay.
    pub target: u32,
    /// Time scale of the control.
    pub interval: u32,
    /// Delay above which every ECN-capable packet is marked.
    pub ce_threshold: u32,
    /// The DS byte to which `ce_threshold` applies, after masking.
    pub ce_selector: u8,
    /// The bits of the DS byte that `ce_selector` looks at; 0: applies to all.
    pub ce_mask: u8,
    /// A backlog up to this is never judged.
    pub mtu: u32,
    /// Whether to mark instead of drop.
    pub ecn: bool,
    /// The version of Linux that decides so.
    pub linux: Linux,
}

impl Constants {
    /// Returns the least time between drops, in ticks.
    #[inline]
    fn least_spacing(&self) -> u32 {
        u32::from(self.linux >= Linux::V7_3)
    }

    /// Packets dropped at most in one departure.
    #[inline]
    fn most_drops(&self) -> u32 {
        if self.linux >= Linux::V7_3 { MAX_DROPS } else { u32::MAX }
    }

    /// Visits the numbers in ticks, as recordings have them.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("target", self.target.into());
        visit("interval", self.interval.into());
        visit("ce_threshold", self.ce_threshold.into());
    }
}

/// CoDel's state of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Packets dropped or marked in this dropping state.
    pub count: u32,
    /// `count` when the last dropping state began.
    pub lastcount: u32,
    /// Whether CoDel is in dropping state.
    pub dropping: bool,
    /// 1 / sqrt(count), as a fraction of 2^16.
    pub rec_inv_sqrt: u16,
    /// When the delay will have been above target for an interval; 0 if it is not above.
    pub first_above_time: u32,
    /// When the next drop is due.
    pub drop_next: u32,
    /// Delay of the last packet judged.
    pub ldelay: u32,
}

/// CoDel's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The largest packet judged.
    pub maxpacket: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u64,
    /// Packets marked for exceeding `ce_threshold`.
    pub ce_mark: u64,
    /// Packets dropped by the control law.
    pub drops: u64,
}

/// Returns whether `a` is after `b` on the 32-bit clock. As in the kernel, neither of two times
/// half the clock's range apart is after the other, nor has it been reached.
#[inline]
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Returns whether `time` has been reached at `now`.
#[inline]
fn reached(now: u32, time: u32) -> bool {
    (now.wrapping_sub(time) as i32) >= 0
}

impl State {
    /// Returns the time of the next drop: `interval / sqrt(count)` after `from` (RFC 8289, `control_law`).
    #[inline]
    fn control_law(&self, from: u32, constants: &Constants) -> u32 {
        let root = u64::from(self.rec_inv_sqrt) << 16;
        let spacing = ((u64::from(constants.interval) * root) >> 32) as u32;
        from.wrapping_add(spacing.max(constants.least_spacing()))
    }

    /// One Newton step towards 1 / sqrt(count).
    #[inline]
    fn newton_step(&mut self) {
        let root = u64::from(self.rec_inv_sqrt) << 16;
        let square = (root * root) >> 32;
        let value = (3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.rec_inv_sqrt = (value.wrapping_mul(root) >> 31 >> 16) as u16;
    }

    /// Returns whether the packet at the head may be dropped (RFC 8289, `dodequeue` and its `ok_to_drop`).
    #[inline]
    fn ok_to_drop<P: Packet>(
        &mut self,
        constants: &Constants,
        counters: &mut Counters,
        now: u32,
        head: Option<&Queued<P>>,
        backlog: u64,
    ) -> bool {
        // The queue is empty: the time above target restarts.
        let Some(head) = head else {
            self.first_above_time = 0;
            return false;
        };
        self.ldelay = now.wrapping_sub(clock(head.at));
        counters.maxpacket = counters.maxpacket.max(head.packet.len());
        // The delay is below target, or at most one MTU is queued: no standing queue.
        if after(constants.target, self.ldelay) || backlog <= u64::from(constants.mtu) {
            self.first_above_time = 0;
            return false;
        }
        // The first packet above target starts the interval; later ones are dropped once it is over.
        if self.first_above_time == 0 {
            self.first_above_time = now.wrapping_add(constants.interval);
            return false;
        }
        after(now, self.first_above_time)
    }

    /// Takes the packet to send, dropping and marking before it.
    #[inline]
    pub fn dequeue<P: Packet>(
        &mut self,
        constants: &Constants,
        counters: &mut Counters,
        now: Nanos,
        source: &mut impl Source<P>,
        sink: &mut impl Sink<P>,
    ) -> Option<P> {
        let now = clock(now);
        let mut head = source.take();
        if head.is_none() {
            self.first_above_time = 0;
            self.dropping = false;
            return None;
        }
        let ok_to_drop = self.ok_to_drop(constants, counters, now, head.as_ref(), source.backlog());
        if self.dropping {
            // Dropping state: leave it as soon as the delay is below target.
            if ok_to_drop {
                head = self.continue_dropping(constants, counters, now, head, source, sink);
            } else {
                self.dropping = false;
            }
        } else if ok_to_drop {
            // Not in dropping state: drop one packet and enter it.
            head = self.enter_dropping(constants, counters, now, head, source, sink);
        }
        let mut packet = head?.packet;
        if after(self.ldelay, constants.ce_threshold) {
            let ds = packet.dscp() << 2 | ds_bits(packet.ecn());
            if (constants.ce_mask == 0 || ds & constants.ce_mask == constants.ce_selector)
                && packet.set_ce()
            {
                counters.ce_mark += 1;
                sink.marked(&packet, MarkReason::CeThreshold);
            }
        }
        Some(packet)
    }

    /// Drops or marks one packet for each time that is due in dropping state. If the schedule is far behind, it
    /// restarts instead of dropping the whole queue in one departure.
    fn continue_dropping<P: Packet>(
        &mut self,
        constants: &Constants,
        counters: &mut Counters,
        now: u32,
        mut head: Option<Queued<P>>,
        source: &mut impl Source<P>,
        sink: &mut impl Sink<P>,
    ) -> Option<Queued<P>> {
        let mut left = constants.most_drops();
        while self.dropping && reached(now, self.drop_next) {
            // Linux since 7.3: after the most drops of one departure the schedule restarts.
            if left == 0 {
                self.drop_next = self.control_law(now, constants);
                break;
            }
            left -= 1;
            self.count = self.count.wrapping_add(1);
            self.newton_step();
            let Some(queued) = head else { break };
            match drop_or_mark(constants, counters, queued, sink) {
                // A marked packet leaves; the next drop follows the control law.
                Some(marked) => {
                    self.drop_next = self.control_law(self.drop_next, constants);
                    return Some(marked);
                }
                None => head = source.take(),
            }
            if self.ok_to_drop(constants, counters, now, head.as_ref(), source.backlog()) {
                self.drop_next = self.control_law(self.drop_next, constants);
            } else {
                // The delay is below target: leave dropping state.
                self.dropping = false;
            }
        }
        head
    }

    /// Enters dropping state: drops or marks one packet and sets the time of the next drop.
    fn enter_dropping<P: Packet>(
        &mut self,
        constants: &Constants,
        counters: &mut Counters,
        now: u32,
        head: Option<Queued<P>>,
        source: &mut impl Source<P>,
        sink: &mut impl Sink<P>,
    ) -> Option<Queued<P>> {
        let mut head = head.and_then(|queued| drop_or_mark(constants, counters, queued, sink));
        if head.is_none() {
            head = source.take();
            self.ok_to_drop(constants, counters, now, head.as_ref(), source.backlog());
        }
        self.dropping = true;
        // If the last dropping state is less than 16 intervals past, resume at its drop rate; otherwise start
        // at one drop per interval.
        let delta = self.count.wrapping_sub(self.lastcount);
        let since = now.wrapping_sub(self.drop_next);
        if delta > 1 && after(constants.interval.wrapping_mul(16), since) {
            self.count = delta;
            self.newton_step();
        } else {
            self.count = 1;
            self.rec_inv_sqrt = u16::MAX;
        }
        self.lastcount = self.count;
        self.drop_next = self.control_law(now, constants);
        head
    }

    /// Visits its fields.
    pub fn visit(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("count", self.count.into());
        visit("lastcount", self.lastcount.into());
        visit("dropping", self.dropping.into());
        visit("rec_inv_sqrt", self.rec_inv_sqrt.into());
        visit("first_above_time", self.first_above_time.into());
        visit("drop_next", self.drop_next.into());
        visit("ldelay", self.ldelay.into());
    }
}

/// Returns the ECN field as the two low bits of the DS byte.
fn ds_bits(ecn: Ecn) -> u8 {
    ecn as u8
}

/// Marks `queued` and returns it, or drops it.
#[inline]
fn drop_or_mark<P: Packet>(
    constants: &Constants,
    counters: &mut Counters,
    mut queued: Queued<P>,
    sink: &mut impl Sink<P>,
) -> Option<Queued<P>> {
    if constants.ecn && queued.packet.set_ce() {
        counters.ecn_mark += 1;
        sink.marked(&queued.packet, MarkReason::Early);
        return Some(queued);
    }
    counters.drops += 1;
    sink.dropped(queued.packet, DropReason::Early, true);
    None
}

/// A CoDel queue.
#[derive(Clone, Debug)]
pub struct Codel<P> {
    params: Params,
    constants: Constants,
    state: State,
    counters: Counters,
    drop_overlimit: u64,
    totals: Totals,
    fifo: PacketFifo<P>,
}

impl<P: Packet> Configured<P, Params> for Codel<P> {
    fn new(params: Params, _now: Nanos) -> Self {
        Self {
            params,
            constants: params.constants(),
            state: State::default(),
            counters: Counters::default(),
            drop_overlimit: 0,
            totals: Totals::default(),
            fifo: PacketFifo::default(),
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. Packets that no longer fit are dropped from the head, unjudged.
    fn change(&mut self, params: Params, _now: Nanos, sink: &mut impl Sink<P>) {
        self.params = params;
        self.constants = params.constants();
        self.fifo.cut(params.limit as usize, &mut self.totals, sink);
    }
}

viewed!(Codel in fifo);

impl<P: Packet> Discipline<P> for Codel<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        _draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        if self.fifo.len() < self.params.limit as usize {
            self.fifo.push(now, packet);
            return Return::Success;
        }
        self.drop_overlimit += 1;
        self.totals.refuse(packet, DropReason::Overflow, sink);
        Return::Drop
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Nanos,
        _draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        let packet =
            self.state.dequeue(&self.constants, &mut self.counters, now, &mut self.fifo, sink);
        self.totals.leave(packet)
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        self.state.visit(visit);
        visit("maxpacket", self.counters.maxpacket.into());
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let totals = Totals { drops: self.totals.drops + self.counters.drops, ..self.totals };
        totals.visit(self, visit);
        visit("drop_overlimit", self.drop_overlimit);
        visit("ecn_mark", self.counters.ecn_mark);
        visit("ce_mark", self.counters.ce_mark);
    }
}
