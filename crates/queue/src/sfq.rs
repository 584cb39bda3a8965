//! SFQ: stochastic fairness queueing.
//!
//! Source: McKenney, "Stochastic fairness queueing" (INFOCOM 1990); Linux `sch_sfq.c`, `tc-sfq(8)`,
//! iproute2 `q_sfq.c`.
//!
//! A hash assigns each flow to a bucket. Buckets with packets are served in turn and send a quantum
//! of bytes each. A full queue drops the newest packet of the longest bucket, or the oldest one
//! with `headdrop`. With `redflowlimit` each bucket has its own RED, whose average is updated only
//! on arrivals.
//!
//! Invariants: the queue has at most `limit` packets and, until parameters change, a bucket at most
//! `depth`, and at most `flows` buckets have packets; exactly these buckets are in the round;
//! packets of one flow leave in order.
//!
//! After a change of the hash (`perturb`), the next enqueue or dequeue assigns the queued packets
//! to new buckets, one old bucket after another.

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{
    Call, Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals, View, counted,
    visit_fields,
};
use crate::flow_queues::quantum;
use crate::kinds::bytes;
use crate::limit::Unit;
use crate::packet::Packet;
use crate::packet_fifo::PacketFifo;
use crate::red::{self, kernel_fraction};
use sojourn_units::declare::{Param, Parameters, derived, flag, integer};
use sojourn_units::words::{Given, Kind, Text, Value, WordError};
use sojourn_units::{Nanos, jiffies, params};
use std::collections::VecDeque;

/// Limit in packets if `limit` is not given.
const LIMIT: u32 = 127;

params! {
    "sfq": "SFQ: buckets of flows, selected by a hash, take turns; a full queue drops from the longest bucket",
    from "McKenney 1990; Linux sch_sfq.c, tc-sfq(8), iproute2 q_sfq.c";

    /// Parameters of SFQ, in the units that `tc` passes to the kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Maximum number of packets in the queue, at most depth times flows; 127 if not given.
        limit: Option<u32> = Param::word(
            Kind::Packets,
            "",
            |value| match u32::try_from(value.integer()) {
                Ok(0 | 1) => Err("must be at least 2".to_owned()),
                Ok(limit) => Ok(Some(limit)),
                Err(_) => Err("does not fit in 32 bits".to_owned()),
            },
            |limit| limit.map(|limit| Value::Integer(limit.into())),
        )
        .initially(|_| None),
        /// Maximum number of buckets that have packets at the same time; limited by divisor and
        /// limit.
        flows: u32 = integer(1, 65_408, "128"),
        /// Maximum number of packets in a bucket.
        depth: u32 = integer(1, 127, "127"),
        /// Number of buckets in the hash table, a power of two.
        divisor: u32 = integer(1, 65_536, "1024").check(|divisor: &u32| {
            if divisor.is_power_of_two() { Ok(()) } else { Err("must be a power of two") }
        }),
        /// Bytes that a bucket may send in its turn; the kernel's default is the device's largest
        /// frame.
        quantum: u32 = quantum().initially(|device: &Device| device.psched_mtu.clamp(1, 1 << 20)),
        /// Time in seconds after which a new hash assigns flows to buckets; 0 disables it. tc
        /// accepts no unit here.
        perturb: u32 = integer(0, 2_147_483, "0"),
        /// Drops the oldest packet of the longest bucket instead of the newest.
        headdrop: bool = flag(),
        /// Hard limit of a bucket's RED in bytes, from which RED's other defaults follow; 0
        /// disables RED.
        redflowlimit: u32 = bytes("0b"),
        /// Minimum average backlog of a bucket for early drops by RED; a third of max by default.
        min: u32 = bytes("0b"),
        /// Average backlog of a bucket from which on RED drops all packets; a quarter of
        /// redflowlimit by default.
        max: u32 = bytes("0b"),
        /// Drop probability of RED just below max.
        max_p as "probability": u32 = kernel_fraction("0.02"),
        /// Typical packet length, which converts burst to RED's averaging weight.
        avpkt: u32 = bytes("1000b").above_zero(),
        /// Number of packets that may arrive at an idle bucket in a burst without an early drop; (2
        /// min + max) / (3 avpkt) by default.
        burst: u32 = integer(0, 4_294_967_295, "0"),
        /// RED marks ECN-capable packets instead of dropping them.
        ecn: bool = flag(),
        /// RED drops packets above max, also ECN-capable ones.
        harddrop: bool = flag(),
        /// Timer ticks per second.
        hz: u32 = derived(|device: &Device| device.hz),
    }
}

/// Parameters of each bucket's RED, in the units that `tc` passes to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedConstants {
    /// Average backlog in bytes from which on packets are dropped or marked early.
    pub min: u32,
    /// Average backlog in bytes from which on all packets are dropped or marked.
    pub max: u32,
    /// Exponent of the averaging weight, which is 2^-`wlog`.
    pub wlog: u8,
    /// Binary logarithm of (max - min) / probability, as `tc` passes it to the kernel.
    pub plog: u8,
    /// Drop probability just below `max`, in units of 2^-32.
    pub max_p: u32,
}

impl Params {
    /// Returns the maximum number of buckets that have packets at the same time.
    pub fn max_flows(&self) -> u32 {
        self.flows.min(self.divisor).min(self.limit.unwrap_or(u32::MAX))
    }

    /// Returns the maximum number of packets in the queue.
    pub fn max_packets(&self) -> u32 {
        let most = self.depth.saturating_mul(self.max_flows());
        self.limit.map_or(LIMIT, |limit| limit.min(most))
    }

    /// Returns the numbers that `tc` computes from the words of RED; `None` without RED. An error
    /// names the word.
    fn options(&self) -> Result<Option<red::Options>, (&'static str, String)> {
        if self.redflowlimit == 0 {
            return Ok(None);
        }
        let device = Device { psched_mtu: self.quantum, hz: self.hz, rate: None };
        let max = if self.max == 0 { self.redflowlimit / 4 } else { self.max };
        let min = if self.min == 0 { max / 3 } else { self.min };
        if max < min {
            let (max, min) = (Unit::Bytes.text(max), Unit::Bytes.text(min));
            return Err(("max", format!("`max` ({max}) must not be below `min` ({min})")));
        }
        let usual = (2 * u64::from(min) + u64::from(max)) / (3 * u64::from(self.avpkt));
        let burst = if self.burst == 0 { usual as u32 } else { self.burst };
        let red = red::Params {
            limit: self.redflowlimit,
            min,
            max,
            max_p: self.max_p,
            avpkt: self.avpkt,
            averaging: red::Averaging::Burst(burst),
            ..red::Params::new(&device)
        };
        red.options().map(Some)
    }

    /// Returns the parameters of RED in the kernel's units; `None` without RED.
    pub fn red(&self) -> Option<RedConstants> {
        let options = self.options().ok().flatten()?;
        Some(RedConstants {
            min: options.min,
            max: options.max,
            wlog: options.wlog,
            plog: options.plog,
            max_p: options.max_p_in_force(),
        })
    }
}

impl DisciplineParams for Params {
    fn limit(&self) -> Option<(Unit, u32)> {
        Some((Unit::Packets, self.max_packets()))
    }

    fn settle(&mut self, given: &Given, _device: &Device) -> Result<(), WordError> {
        self.options().map(|_| ()).map_err(|(word, why)| given.error(word, why))
    }

    /// Reads a change: `flows` and `divisor` cannot change, and flags that are not named are off,
    /// as in `tc`.
    fn changed(&self, given: &Given, device: &Device) -> Result<Self, WordError> {
        for word in ["flows", "divisor"] {
            if given.has(word) {
                return Err(given.error(word, format!("`{word}` cannot be changed")));
            }
        }
        Self { headdrop: false, ecn: false, harddrop: false, ..*self }.with(given, device)
    }

    /// Omits RED's words if `redflowlimit` is 0: `tc` accepts them only with `redflowlimit`.
    fn to_tc(&self) -> String {
        let text = self.write(Text::new(Self::TABLE.name)).done();
        match text.split_once(" redflowlimit 0 ") {
            Some((bare, _)) => bare.to_owned(),
            None => text,
        }
    }

    fn warnings(&self, given: &Given) -> Vec<String> {
        let needs = ["min", "max", "probability", "avpkt", "burst", "ecn", "harddrop"];
        let idle = |word: &&&str| given.has(word) && self.redflowlimit == 0;
        let word = needs.iter().find(idle);
        word.map(|word| format!("`{word}` has no effect without `redflowlimit`"))
            .into_iter()
            .collect()
    }
}

impl RedConstants {
    /// Returns the number by which random draws are divided (`max_P_reciprocal` is its inverse).
    fn divisor(&self) -> u32 {
        (self.max_p / self.max.saturating_sub(self.min).max(1)).max(1)
    }
}

/// RED's decision: accept the arrival, drop or mark it early, or drop or mark it above max.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Early,
    Hard,
}

/// RED's state of a bucket: average backlog times 2^`wlog`, packets since the last drop, current
/// random number.
#[derive(Clone, Copy, Debug)]
struct Red {
    qavg: u64,
    qcount: i32,
    q_r: u32,
}

impl Red {
    const FRESH: Self = Self { qavg: 0, qcount: -1, q_r: 0 };

    /// Updates the average with the backlog before an arrival, and decides about the arrival.
    fn judge(&mut self, constants: &RedConstants, backlog: u64, draws: &mut impl Draws) -> Verdict {
        self.qavg = self.qavg.wrapping_add(backlog).wrapping_sub(self.qavg >> constants.wlog);
        let low = u64::from(constants.min) << constants.wlog;
        if self.qavg < low {
            self.qcount = -1;
            return Verdict::Pass;
        }
        if self.qavg >= u64::from(constants.max) << constants.wlog {
            self.qcount = -1;
            return Verdict::Hard;
        }
        self.qcount = self.qcount.wrapping_add(1);
        if self.qcount == 0 {
            self.q_r = draws.draw_u32() / constants.divisor();
            return Verdict::Pass;
        }
        let pace = ((self.qavg - low) >> constants.wlog).wrapping_mul(self.qcount as u64);
        if pace < u64::from(self.q_r) {
            return Verdict::Pass;
        }
        self.qcount = 0;
        self.q_r = draws.draw_u32() / constants.divisor();
        Verdict::Early
    }
}

const NONE: u32 = u32::MAX;

/// A bucket with packets, also called a flow.
#[derive(Clone, Debug)]
struct Flow<P> {
    bucket: u32,
    fifo: PacketFifo<P>,
    allot: i32,
    red: Red,
    /// Previous and next slot in the list of flows with the same number of packets; `NONE` at the
    /// ends.
    before: u32,
    behind: u32,
}

/// Counters of RED: drops, marks, and marks of the packet at the head.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    prob_drop: u64,
    forced_drop: u64,
    prob_mark: u64,
    forced_mark: u64,
    prob_mark_head: u64,
    forced_mark_head: u64,
}

/// An SFQ queue.
#[derive(Clone, Debug)]
pub struct Sfq<P> {
    params: Params,
    constants: Option<RedConstants>,
    /// Slot of each bucket's flow; `NONE` for an empty bucket.
    table: Vec<u32>,
    slots: Vec<Flow<P>>,
    free: Vec<u32>,
    /// Slots in the order of service.
    round: VecDeque<u32>,
    /// First slot in the list of flows with n packets, for each n up to 127.
    depths: Vec<u32>,
    cur_depth: usize,
    packets: usize,
    bytes: u64,
    left_at: Option<Nanos>,
    key: Option<u64>,
    /// Whether the next call must draw a new hash.
    rekey: bool,
    timer: Option<Nanos>,
    counters: Counters,
    totals: Totals,
}

impl<P: Packet> Configured<P, Params> for Sfq<P> {
    fn new(params: Params, now: Nanos) -> Self {
        let mut sfq = Self {
            constants: params.red(),
            table: vec![NONE; params.divisor as usize],
            slots: Vec::new(),
            free: Vec::new(),
            round: VecDeque::new(),
            depths: vec![NONE; 128],
            cur_depth: 0,
            packets: 0,
            bytes: 0,
            left_at: None,
            key: None,
            rekey: false,
            timer: None,
            counters: Counters::default(),
            totals: Totals::default(),
            params,
        };
        sfq.arm(now);
        sfq
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. If the new limit is exceeded, packets of the longest buckets are
    /// dropped. A lower `depth` or fewer `flows` affect only arrivals.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        let period = self.params.perturb;
        self.constants = params.red();
        self.params = params;
        while self.packets > self.params.max_packets() as usize {
            self.overflow(sink);
        }
        if period != self.params.perturb {
            self.arm(now);
        }
    }
}

impl<P: Packet> Sfq<P> {
    fn arm(&mut self, now: Nanos) {
        let Params { perturb, hz, .. } = self.params;
        let span = u64::from(perturb) * u64::from(hz);
        self.timer = (perturb > 0).then(|| jiffies::after(now, span, hz));
    }

    /// Returns the bucket of a packet: the bucket that the packet names as its class, or the bucket
    /// of its hash.
    fn bucket(&self, packet: &P, draws: &mut impl Draws) -> usize {
        let divisor = self.params.divisor;
        match packet.class().map(u32::from) {
            Some(class) if (1..=divisor).contains(&class) => class as usize - 1,
            _ => {
                let hash = match self.key {
                    Some(key) => draws.keyed_hash(key, packet.flow_hash()),
                    None => packet.flow_hash(),
                };
                (hash & (divisor - 1)) as usize
            }
        }
    }

    /// Assigns the queued packets to buckets by a new hash. A packet is dropped if its new bucket
    /// is full, or if `flows` other buckets have packets.
    fn rehash(&mut self, draws: &mut impl Draws, sink: &mut impl Sink<P>) {
        self.rekey = false;
        self.key = Some(draws.draw_key());
        let mut queued = Vec::with_capacity(self.packets);
        for slot in std::mem::take(&mut self.round) {
            let flow = &mut self.slots[slot as usize];
            while let Some(one) = flow.fifo.pop() {
                queued.push(one);
            }
            self.table[flow.bucket as usize] = NONE;
            self.free.push(slot);
        }
        self.depths.fill(NONE);
        (self.cur_depth, self.packets, self.bytes) = (0, 0, 0);
        for one in queued {
            let bucket = self.bucket(&one.packet, draws);
            let slot = match self.table[bucket] {
                NONE => self.open(bucket),
                slot => Some(slot),
            };
            let depth = self.params.depth as usize;
            let slot = slot.filter(|slot| self.slots[*slot as usize].fifo.len() < depth);
            if let Some(slot) = slot {
                self.append(slot, one.at, one.packet);
            } else {
                self.totals.drops += 1;
                sink.dropped(one.packet, DropReason::Overflow, true);
            }
        }
    }

    /// Allocates a flow for an empty bucket; returns `None` if `max_flows` buckets have packets.
    fn open(&mut self, bucket: usize) -> Option<u32> {
        if self.slots.len() - self.free.len() >= self.params.max_flows() as usize {
            return None;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            let fifo = PacketFifo::default();
            let flow =
                Flow { bucket: 0, fifo, allot: 0, red: Red::FRESH, before: NONE, behind: NONE };
            self.slots.push(flow);
            (self.slots.len() - 1) as u32
        });
        let flow = &mut self.slots[slot as usize];
        flow.bucket = bucket as u32;
        flow.red = Red::FRESH;
        self.table[bucket] = slot;
        Some(slot)
    }

    /// Removes a flow from the list of flows with the same number of packets.
    fn unlink(&mut self, slot: u32) {
        let flow = &self.slots[slot as usize];
        let (before, behind, count) = (flow.before, flow.behind, flow.fifo.len());
        if behind != NONE {
            self.slots[behind as usize].before = before;
        }
        match before {
            NONE => self.depths[count] = behind,
            before => self.slots[before as usize].behind = behind,
        }
    }

    /// Inserts a flow at the front of the list of flows with the same number of packets.
    fn link(&mut self, slot: u32) {
        let count = self.slots[slot as usize].fifo.len();
        if count == 0 {
            return;
        }
        let first = std::mem::replace(&mut self.depths[count], slot);
        if first != NONE {
            self.slots[first as usize].before = slot;
        }
        let flow = &mut self.slots[slot as usize];
        (flow.before, flow.behind) = (NONE, first);
    }

    /// Appends a packet to a flow. A flow without packets joins the end of the round.
    fn append(&mut self, slot: u32, now: Nanos, packet: P) {
        self.packets += 1;
        self.bytes += u64::from(packet.len());
        if self.slots[slot as usize].fifo.is_empty() {
            self.round.push_back(slot);
            self.slots[slot as usize].allot = self.params.quantum as i32;
        } else {
            self.unlink(slot);
        }
        let fifo = &mut self.slots[slot as usize].fifo;
        fifo.push(now, packet);
        self.cur_depth = self.cur_depth.max(fifo.len());
        self.link(slot);
    }

    /// Removes the newest or the oldest packet of a flow.
    fn take(&mut self, slot: u32, newest: bool) -> Option<(Nanos, P)> {
        let count = self.slots[slot as usize].fifo.len();
        self.unlink(slot);
        let fifo = &mut self.slots[slot as usize].fifo;
        let removed = if newest { fifo.remove(count.saturating_sub(1)) } else { fifo.pop() };
        self.link(slot);
        if count == self.cur_depth && self.depths[count] == NONE {
            self.cur_depth -= 1;
        }
        let queued = removed?;
        self.packets -= 1;
        self.bytes -= u64::from(queued.packet.len());
        Some((queued.at, queued.packet))
    }

    /// Removes the first flow of the round, which has no packets, and frees its bucket.
    fn close(&mut self) {
        if let Some(slot) = self.round.pop_front() {
            self.table[self.slots[slot as usize].bucket as usize] = NONE;
            self.free.push(slot);
        }
    }

    /// Drops a packet of the longest bucket; returns the flow's slot, or `None` without packets.
    fn overflow(&mut self, sink: &mut impl Sink<P>) -> Option<u32> {
        let slot = match self.cur_depth {
            0 => return None,
            1 => *self.round.front()?,
            depth => self.depths[depth],
        };
        let is_last = self.cur_depth == 1;
        let (_, packet) = self.take(slot, !self.params.headdrop)?;
        if is_last {
            self.close();
        }
        self.totals.drops += 1;
        sink.dropped(packet, DropReason::Overflow, true);
        Some(slot)
    }

    /// Marks the packet at the head (only with `headdrop`) or, if that is impossible, the arriving
    /// one. Returns false if neither can be marked.
    fn mark(&mut self, slot: u32, packet: &mut P, is_hard: bool, sink: &mut impl Sink<P>) -> bool {
        let reason = if is_hard { MarkReason::Forced } else { MarkReason::Early };
        let counters = &mut self.counters;
        if self.params.headdrop
            && let Some(head) = self.slots[slot as usize].fifo.head_mut()
            && head.set_ce()
        {
            let count =
                if is_hard { &mut counters.forced_mark_head } else { &mut counters.prob_mark_head };
            *count += 1;
            sink.marked(head, reason);
            return true;
        }
        if !packet.set_ce() {
            return false;
        }
        *(if is_hard { &mut counters.forced_mark } else { &mut counters.prob_mark }) += 1;
        sink.marked(packet, reason);
        true
    }

    /// Drops the arriving packet. With `headdrop`, drops the oldest packet of the flow instead and
    /// appends the arriving one.
    fn full(
        &mut self,
        slot: u32,
        packet: P,
        reason: DropReason,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Return {
        if !self.params.headdrop {
            self.totals.refuse(packet, reason, call.sink);
            return Return::Drop;
        }
        let fifo = &mut self.slots[slot as usize].fifo;
        self.bytes += u64::from(packet.len());
        if let Some(head) = fifo.pop() {
            self.bytes -= u64::from(head.packet.len());
            self.totals.drops += 1;
            call.sink.dropped(head.packet, reason, true);
        }
        fifo.push(call.now, packet);
        Return::Congestion
    }

    /// Applies RED to an arrival: may mark it or the packet at the head, or returns the reason of a
    /// drop.
    fn judge(
        &mut self,
        slot: u32,
        packet: &mut P,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Option<DropReason> {
        let constants = self.constants?;
        let flow = &mut self.slots[slot as usize];
        let verdict = flow.red.judge(&constants, flow.fifo.bytes(), call.draws);
        if verdict == Verdict::Pass {
            return None;
        }
        self.totals.overlimits += 1;
        let is_hard = verdict == Verdict::Hard;
        let may_mark = self.params.ecn && !(is_hard && self.params.harddrop);
        if may_mark && self.mark(slot, packet, is_hard, call.sink) {
            return None;
        }
        if is_hard {
            self.counters.forced_drop += 1;
            return Some(DropReason::Forced);
        }
        self.counters.prob_drop += 1;
        Some(DropReason::Early)
    }
}

impl<P: Packet> View for Sfq<P> {
    counted!();

    /// Returns the time of the `n`-th packet in the order of arrival. This collects the times of
    /// all packets.
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        if n >= self.packets {
            return None;
        }
        let flows = self.round.iter().map(|slot| &self.slots[*slot as usize]);
        let mut times: Vec<Nanos> = flows.flat_map(|flow| flow.fifo.times()).collect();
        Some(*times.select_nth_unstable(n).1)
    }
}

impl<P: Packet> Discipline<P> for Sfq<P> {
    fn enqueue(&mut self, mut packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        if self.rekey {
            self.rehash(call.draws, call.sink);
        }
        let bucket = self.bucket(&packet, call.draws);
        let slot = match self.table[bucket] {
            NONE => {
                let Some(slot) = self.open(bucket) else {
                    self.totals.refuse(packet, DropReason::Overflow, call.sink);
                    return Return::Drop;
                };
                slot
            }
            slot => {
                if let Some(reason) = self.judge(slot, &mut packet, call) {
                    return self.full(slot, packet, reason, call);
                }
                if self.slots[slot as usize].fifo.len() >= self.params.depth as usize {
                    return self.full(slot, packet, DropReason::Overflow, call);
                }
                slot
            }
        };
        self.append(slot, call.now, packet);
        if self.packets > self.params.max_packets() as usize
            && self.overflow(call.sink) == Some(slot)
        {
            return Return::Congestion;
        }
        Return::Success
    }

    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        if self.rekey {
            self.rehash(call.draws, call.sink);
        }
        while let Some(&slot) = self.round.front() {
            let flow = &mut self.slots[slot as usize];
            if flow.allot <= 0 {
                flow.allot = flow.allot.wrapping_add(self.params.quantum as i32);
                self.round.rotate_left(1);
                continue;
            }
            let Some((at, packet)) = self.take(slot, false) else { break };
            self.left_at = Some(at);
            let flow = &mut self.slots[slot as usize];
            if flow.fifo.is_empty() {
                self.close();
            } else {
                flow.allot = flow.allot.wrapping_sub(packet.len() as i32);
            }
            self.totals.sent(packet.len());
            return Dequeue::Packet(packet);
        }
        Dequeue::Empty
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    /// Makes the next `enqueue` or `dequeue` assign packets to buckets by a new hash.
    fn on_timer(&mut self, now: Nanos) {
        self.rekey = true;
        self.arm(now);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("cur_depth", self.cur_depth as i128);
    }

    fn flow_state(&self, bucket: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        let slot = self.table.get(bucket).copied().unwrap_or(NONE);
        let flow = self.slots.get(slot as usize);
        let red = flow.map_or(Red::FRESH, |flow| flow.red);
        visit("qlen", flow.map_or(0, |flow| flow.fifo.len() as i128));
        visit("backlog", flow.map_or(0, |flow| flow.fifo.bytes().into()));
        visit("allot", flow.map_or(0, |flow| flow.allot.into()));
        visit_fields!(visit, red, [qavg, qcount]);
        visit("qR", if red.qcount < 0 { 0 } else { red.q_r.into() });
    }

    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        for slot in &self.round {
            visit(0, self.slots[*slot as usize].bucket as usize);
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        visit_fields!(
            visit,
            self.counters,
            [prob_drop, forced_drop, prob_mark, forced_mark, prob_mark_head, forced_mark_head]
        );
    }
}
