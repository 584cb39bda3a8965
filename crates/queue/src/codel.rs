//! CoDel: controlled delay, drops by sojourn time.
//!
//! Source: RFC 8289; Linux `codel_impl.h`, `sch_codel.c`.
//!
//! CoDel compares the sojourn time of each leaving packet with `target`. After the sojourn time has
//! been above `target` for a whole `interval`, CoDel drops (or marks) the packet at the head, and
//! one more packet after each `interval / sqrt(count)` until the sojourn time is below `target`. It
//! does not act on a backlog of at most one MTU. Functions are named after the steps of RFC 8289,
//! section 5: `ok_to_drop`, `control_law`, `dropping`.
//!
//! Invariants: a packet is dropped on arrival only if the queue is full; no packet is dropped in
//! the first `interval` above `target`; the last packet is never dropped. The square root is
//! computed by one Newton step in 16 bits after each change of `count`, so that the first intervals
//! deviate from the exact ones as in the kernel.

use crate::aqm::{Aqm, AqmParams, Common};
use crate::declaration::DisciplineParams;
use crate::device::Device;
use crate::discipline::{Call, Draws, DropReason, MarkReason, Sink, visit_fields};
use crate::flow_queues::Overflow;
use crate::kinds::{ecn, linux, micros, optional_micros, packets};
use crate::limit::Unit;
use crate::linux::Linux;
use crate::packet::{Ecn, Packet};
use crate::packet_fifo::{Queued, Source};
use crate::single::Single;
use sojourn_units::declare::derived;
use sojourn_units::{Nanos, params};

params! {
    "codel": "CoDel: drops packets if sojourn times stay above a target",
    from "RFC 8289; Linux sch_codel.c";

    /// Parameters of CoDel, in the units that `tc` passes to the kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in the queue; packets that arrive at a full queue are dropped.
        limit: u32 = packets("1000p").above_zero(),
        /// Acceptable delay of a standing queue, in whole microseconds.
        target_us as "target": u32 = micros("5ms").above_zero(),
        /// Time for which the sojourn time may stay above target; about the longest round-trip
        /// time.
        interval_us as "interval": u32 = micros("100ms").above_zero(),
        /// Sojourn time above which every ECN-capable packet is marked; off by default.
        ce_threshold_us as "ce_threshold": Option<u32> = optional_micros(),
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = ecn(),
        /// Version of Linux whose decisions are made. Before 7.3 one departure may drop any number
        /// of packets, and the next drop may be due at the same time. Since 7.3 it drops at most
        /// 256 packets, and the next drop is due at least one tick (1.024 us) later. The difference
        /// shows with intervals of microseconds, or after a stall with a deep queue.
        linux: Linux = linux(Linux::RELEASES),
        /// Largest frame of the device, in bytes.
        mtu: u32 = derived(|device: &Device| device.psched_mtu.min(1 << 20)),
    }
}

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.limit))
    }

    fn derived(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.constants().visit(visit);
    }
}

impl Params {
    /// Returns these parameters in ticks of CoDel's clock.
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

impl AqmParams for Params {
    type Aqm = State;

    fn constants(&self) -> Constants {
        self.constants()
    }

    fn visit(counters: &Counters, overflow: &Overflow, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("drop_overlimit", overflow.dropped);
        visit_fields!(visit, counters, [ecn_mark, ce_mark]);
    }
}

/// Since Linux 7.3: maximum number of packets dropped or marked in one departure.
const MAX_DROPS: u32 = 256;

/// Value of `ce_threshold` that no sojourn time exceeds: no threshold.
pub const DISABLED: u32 = i32::MAX as u32;

/// Returns the time on CoDel's clock, which has 32 bits and ticks of 1024 ns.
pub fn clock(now: Nanos) -> u32 {
    (now >> 10) as u32
}

/// Converts microseconds to ticks of CoDel's clock, rounded down.
pub fn ticks(micros: u32) -> u32 {
    ((u64::from(micros) * 1000) >> 10) as u32
}

/// Parameters in the units of CoDel's decisions; times are in ticks of 1024 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Acceptable sojourn time, in ticks.
    pub target: u32,
    /// Time for which the sojourn time may stay above target, in ticks.
    pub interval: u32,
    /// Sojourn time above which every ECN-capable packet is marked, in ticks; [`DISABLED`] for
    /// never.
    pub ce_threshold: u32,
    /// Value that the masked DS byte must have for `ce_threshold` to apply.
    pub ce_selector: u8,
    /// Mask of the DS byte for `ce_selector`; with 0 `ce_threshold` applies to all packets.
    pub ce_mask: u8,
    /// Backlog in bytes up to which no packet is dropped or marked: one MTU.
    pub mtu: u32,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Version of Linux whose decisions are made.
    pub linux: Linux,
}

impl Constants {
    /// Returns the minimum time between drops, in ticks.
    fn least_spacing(&self) -> u32 {
        u32::from(self.linux >= Linux::V7_3)
    }

    /// Returns the maximum number of packets dropped in one departure.
    fn most_drops(&self) -> u32 {
        if self.linux >= Linux::V7_3 { MAX_DROPS } else { u32::MAX }
    }

    /// Visits the times in ticks, under the names in recordings.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit_fields!(visit, self, [target, interval, ce_threshold]);
    }
}

/// CoDel's state of one queue. Times are ticks of CoDel's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Number that determines the time to the next drop: the drops and marks in this dropping
    /// state, plus a number taken over from a recent dropping state.
    pub count: u32,
    /// Value of `count` at the start of the last dropping state.
    pub lastcount: u32,
    /// Whether CoDel is in dropping state.
    pub dropping: bool,
    /// 1 / sqrt(`count`), in units of 2^-16.
    pub rec_inv_sqrt: u16,
    /// Time at which the sojourn time will have been above target for an interval; 0 while it is
    /// below.
    pub first_above_time: u32,
    /// Time of the next drop in dropping state.
    pub drop_next: u32,
    /// Sojourn time of the last packet that was compared with target, in ticks.
    pub ldelay: u32,
}

/// Counters of CoDel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Length of the longest packet that was compared with target, in bytes.
    pub maxpacket: u32,
    /// Number of packets marked instead of dropped.
    pub ecn_mark: u64,
    /// Number of packets marked because their sojourn time exceeded `ce_threshold`.
    pub ce_mark: u64,
    /// Number of packets dropped by the control law.
    pub drops: u64,
}

/// Returns whether `a` is after `b` on the 32-bit clock. For two times exactly half the clock's
/// range apart, `after` and `reached` are false in both directions, as in the kernel.
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Returns whether `now` is at or after `time` on the 32-bit clock.
fn reached(now: u32, time: u32) -> bool {
    (now.wrapping_sub(time) as i32) >= 0
}

impl State {
    /// Returns the time of the next drop, `interval / sqrt(count)` after `from` (RFC 8289,
    /// `control_law`).
    #[inline]
    fn control_law(&self, from: u32, constants: &Constants) -> u32 {
        let root = u64::from(self.rec_inv_sqrt) << 16;
        let spacing = ((u64::from(constants.interval) * root) >> 32) as u32;
        from.wrapping_add(spacing.max(constants.least_spacing()))
    }

    /// Applies one Newton step that approaches 1 / sqrt(`count`).
    #[inline]
    fn newton_step(&mut self) {
        let root = u64::from(self.rec_inv_sqrt) << 16;
        let square = (root * root) >> 32;
        let value = (3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.rec_inv_sqrt = (value.wrapping_mul(root) >> 31 >> 16) as u16;
    }

    /// Returns whether the packet at the head may be dropped (`ok_to_drop` of RFC 8289's
    /// `dodequeue`).
    #[inline]
    fn ok_to_drop<P: Packet>(
        &mut self,
        common: &mut Common<Self>,
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
        common.counters.maxpacket = common.counters.maxpacket.max(head.packet.len());
        // The sojourn time is below target, or the backlog is at most one MTU: no standing queue.
        if after(common.constants.target, self.ldelay) || backlog <= u64::from(common.constants.mtu)
        {
            self.first_above_time = 0;
            return false;
        }
        // The first packet above target starts the interval; a packet after its end may be dropped.
        if self.first_above_time == 0 {
            self.first_above_time = now.wrapping_add(common.constants.interval);
            return false;
        }
        after(now, self.first_above_time)
    }

    /// Drops one packet for each drop time that has passed, until a packet is marked instead or no
    /// standing queue is left. Since Linux 7.3 the schedule restarts after 256 drops.
    fn continue_dropping<P: Packet>(
        &mut self,
        common: &mut Common<Self>,
        now: u32,
        mut head: Option<Queued<P>>,
        source: &mut impl Source<P>,
        sink: &mut impl Sink<P>,
    ) -> Option<Queued<P>> {
        let mut left = common.constants.most_drops();
        while self.dropping && reached(now, self.drop_next) {
            if left == 0 {
                self.drop_next = self.control_law(now, &common.constants);
                break;
            }
            left -= 1;
            self.count = self.count.wrapping_add(1);
            self.newton_step();
            let Some(queued) = head else { break };
            match drop_or_mark(common, queued, sink) {
                // A marked packet leaves; the control law sets the time of the next drop.
                Some(marked) => {
                    self.drop_next = self.control_law(self.drop_next, &common.constants);
                    return Some(marked);
                }
                None => head = source.take(),
            }
            if self.ok_to_drop(common, now, head.as_ref(), source.backlog()) {
                self.drop_next = self.control_law(self.drop_next, &common.constants);
            } else {
                // There is no standing queue: leave dropping state.
                self.dropping = false;
            }
        }
        head
    }

    /// Enters dropping state: drops or marks one packet, and sets the time of the next drop.
    fn enter_dropping<P: Packet>(
        &mut self,
        common: &mut Common<Self>,
        now: u32,
        head: Option<Queued<P>>,
        source: &mut impl Source<P>,
        sink: &mut impl Sink<P>,
    ) -> Option<Queued<P>> {
        let mut head = head.and_then(|queued| drop_or_mark(common, queued, sink));
        if head.is_none() {
            head = source.take();
            self.ok_to_drop(common, now, head.as_ref(), source.backlog());
        }
        self.dropping = true;
        // If the next drop of the last dropping state was due less than 16 intervals ago, and the
        // count grew by more than 1 in that state, the count begins at this growth. Otherwise it
        // begins at 1: one drop per interval.
        let delta = self.count.wrapping_sub(self.lastcount);
        let since = now.wrapping_sub(self.drop_next);
        if delta > 1 && after(common.constants.interval.wrapping_mul(16), since) {
            self.count = delta;
            self.newton_step();
        } else {
            self.count = 1;
            self.rec_inv_sqrt = u16::MAX;
        }
        self.lastcount = self.count;
        self.drop_next = self.control_law(now, &common.constants);
        head
    }
}

impl Aqm for State {
    type Constants = Constants;
    type Counters = Counters;

    fn overflowed(&mut self, _common: &mut Common<Self>, _now: Nanos, packets: u32) {
        self.count = self.count.wrapping_add(packets);
    }

    #[inline]
    fn dequeue<P: Packet>(
        &mut self,
        common: &mut Common<Self>,
        source: &mut impl Source<P>,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Option<P> {
        let now = clock(call.now);
        let mut head = source.take();
        if head.is_none() {
            if common.constants.linux > Linux::V2025 {
                self.first_above_time = 0;
            }
            self.dropping = false;
            return None;
        }
        let ok_to_drop = self.ok_to_drop(common, now, head.as_ref(), source.backlog());
        if self.dropping {
            // Leave dropping state as soon as the sojourn time is below target or the backlog is at
            // most one MTU.
            if ok_to_drop {
                head = self.continue_dropping(common, now, head, source, call.sink);
            } else {
                self.dropping = false;
            }
        } else if ok_to_drop {
            // Drop one packet and enter dropping state.
            head = self.enter_dropping(common, now, head, source, call.sink);
        }
        let mut packet = head?.packet;
        if after(self.ldelay, common.constants.ce_threshold) {
            let ds = packet.dscp() << 2 | ds_bits(packet.ecn());
            if (common.constants.ce_mask == 0
                || ds & common.constants.ce_mask == common.constants.ce_selector)
                && packet.set_ce()
            {
                common.counters.ce_mark += 1;
                call.sink.marked(&packet, MarkReason::CeThreshold);
            }
        }
        Some(packet)
    }

    fn drops(counters: &Counters) -> u64 {
        counters.drops
    }

    fn visit(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit_fields!(
            visit,
            self,
            [count, lastcount, dropping, rec_inv_sqrt, first_above_time, drop_next, ldelay]
        );
    }

    fn visit_common(counters: &Counters, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("maxpacket", counters.maxpacket.into());
    }
}

/// Returns the ECN field as the two low bits of the DS byte.
fn ds_bits(ecn: Ecn) -> u8 {
    ecn as u8
}

/// Marks `queued` and returns it; drops it and returns `None` if it cannot be marked.
#[inline]
fn drop_or_mark<P: Packet>(
    common: &mut Common<State>,
    mut queued: Queued<P>,
    sink: &mut impl Sink<P>,
) -> Option<Queued<P>> {
    if common.constants.ecn && queued.packet.set_ce() {
        common.counters.ecn_mark += 1;
        sink.marked(&queued.packet, MarkReason::Early);
        return Some(queued);
    }
    common.counters.drops += 1;
    sink.dropped(queued.packet, DropReason::Early, true);
    None
}

/// A CoDel queue.
pub type Codel<P> = Single<P, Params>;
