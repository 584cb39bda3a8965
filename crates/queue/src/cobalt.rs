//! COBALT: CoDel and BLUE alternating, as in CAKE.
//!
//! Source: Linux `sch_cake.c`; Palmei et al., "Design and evaluation of COBALT queue discipline" (2019).
//!
//! CoDel signals while the delay is above `target`, and its `count` decays outside an episode instead of
//! starting over. BLUE's probability rises when the queue overflows and falls when it is found empty, at
//! most once per `target`, and catches traffic that does not respond. The last packet of a queue may be
//! marked but is never dropped.
//!
//! [`State`] has the three functions of the policy, and the dequeue with them, for any queue.
//! [`Cobalt`] is one such queue with limited memory, whose overflow is dropped from the head: it
//! decides as a CAKE with `unlimited besteffort flowblind`. One consequence of CAKE: an empty
//! discipline is not visited, so its only queue is never found empty and its BLUE's probability
//! never falls.
//!
//! Invariants: the probability moves at most once per `target`; memory never exceeds its limit.

use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals};
use crate::kinds::{bytes, fraction, linux, micros, optional_micros};
use crate::limit::Unit;
use crate::linux::Linux;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, Queued, Source, viewed};
use crate::tc::time_text;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, derived, part, switch};
use sojourn_units::words::{Table, Text};
use sojourn_units::{MILLISECOND, Nanos, params};

/// The words of `cobalt`.
pub const TABLE: Table = Table {
    name: "cobalt",
    summary: "COBALT: CoDel and BLUE alternating; the kernel's form is \
              `cake unlimited besteffort flowblind [rtt T] [memlimit B]`",
    source: "Linux sch_cake.c; Palmei et al. 2019",
    words: Params::WORDS,
};

/// CAKE's steps of BLUE: 1/256 and 1/4096.
const P_INC: u32 = 1 << 24;
const P_DEC: u32 = 1 << 20;

params! {
    /// Parameters of the policy, in the kernel's units.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Control on Device {
        /// Time that the delay may stay above target; at least twice target.
        interval_us as "interval": u32 = micros("100ms").above_zero(),
        /// Acceptable standing queue delay; also the least time between changes of BLUE.
        target_us as "target": u32 = micros("5ms").above_zero(),
        /// Increase of BLUE's probability at an overflow.
        p_inc as "increment": u32 = fraction("0.00390625"),
        /// Decrease of BLUE's probability at an empty queue.
        p_dec as "decrement": u32 = fraction("0.000244140625"),
        /// Raises BLUE's probability also while packets stay longer than this, as ns-3 does (400ms there);
        /// none by default.
        blue_threshold_us as "blue_threshold": Option<u32> =
            optional_micros().check(|threshold| match threshold {
                Some(0) => Err("must be above 0"),
                _ => Ok(()),
            }),
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = switch("noecn", "ecn"),
        /// Decisions of this version of Linux. Before 7.3 BLUE draws also for a packet that CoDel's part drops;
        /// before 6.12 the root is less exact for counts 2, 3 and 6, at 2 by one part in 1800.
        linux: Linux = linux(),
    }
}

impl Control {
    /// Returns the same in nanoseconds, without a shaper, as decisions are made with them.
    pub fn constants(&self) -> Constants {
        let target = u64::from(self.target_us) * 1000;
        Constants {
            interval: (u64::from(self.interval_us) * 1000).max(2 * target),
            target,
            mtu_time: 0,
            p_inc: self.p_inc,
            p_dec: self.p_dec,
            blue_threshold: self.blue_threshold_us.map_or(Nanos::MAX, |us| u64::from(us) * 1000),
            ecn: self.ecn,
            linux: self.linux,
        }
    }
}

params! {
    /// Parameters of COBALT, in the kernel's units.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// The policy.
        #[serde(flatten)]
        control: Control = part::<Control>(),
        /// Memory that queued packets may occupy, by their true size; 0 is 10240 full frames.
        memlimit: u32 = bytes("0b"),
        /// The largest frame of the device.
        mtu: u32 = derived(|device: &Device| device.psched_mtu),
    }
}

impl DisciplineParams for Params {
    const TABLES: &'static [&'static Table] = &[&TABLE];

    fn limit(&self) -> Option<(Unit, u32)> {
        None
    }

    fn in_kernel(&self) -> Result<(), &'static str> {
        let Control { interval_us, target_us, p_inc, p_dec, blue_threshold_us, ecn, linux: _ } =
            self.control;
        if target_us != (interval_us / 20).max(1) {
            return Err("CAKE's target is always 1/20 of its interval");
        }
        if (p_inc, p_dec) != (P_INC, P_DEC) {
            return Err("CAKE's BLUE steps are fixed at 1/256 and 1/4096");
        }
        if blue_threshold_us.is_some() {
            return Err("CAKE's BLUE knows no delay");
        }
        if !ecn {
            return Err("CAKE always marks what is ECN-capable");
        }
        Ok(())
    }

    fn to_tc(&self) -> String {
        let memlimit = (self.memlimit != 0).then_some(self.memlimit);
        Text::new("cake unlimited besteffort flowblind")
            .value("rtt", time_text(self.control.interval_us))
            .optional("memlimit", memlimit)
            .done()
    }
}

impl Params {
    /// Returns the memory limit.
    pub fn buffer_limit(&self) -> u32 {
        let frames = self.mtu.saturating_mul(10_240);
        if self.memlimit == 0 { frames } else { self.memlimit }
    }
}

/// The parameters that decisions are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Time scale of the control.
    pub interval: Nanos,
    /// Acceptable delay.
    pub target: Nanos,
    /// Transmission time of a full frame; 0 without a shaper.
    pub mtu_time: Nanos,
    /// Increase of BLUE's probability at an overflow; one is 2^32.
    pub p_inc: u32,
    /// Decrease of it at an empty queue.
    pub p_dec: u32,
    /// Delay above which BLUE's probability rises too (ns-3 only).
    pub blue_threshold: Nanos,
    /// Whether CoDel's part marks instead of dropping.
    pub ecn: bool,
    /// The version of Linux that decides so.
    pub linux: Linux,
}

impl Default for Constants {
    /// Returns CAKE's parameters without a shaper.
    fn default() -> Self {
        Self {
            interval: 100 * MILLISECOND,
            target: 5 * MILLISECOND,
            mtu_time: 0,
            p_inc: P_INC,
            p_dec: P_DEC,
            blue_threshold: Nanos::MAX,
            ecn: true,
            linux: Linux::V7_3,
        }
    }
}

/// COBALT's state of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Signals given, less those decayed.
    pub count: u32,
    /// 1 / sqrt(count), as a fraction of 2^32.
    pub rec_inv_sqrt: u32,
    /// When the next signal is due.
    pub drop_next: i64,
    /// When BLUE moved last.
    pub blue_timer: i64,
    /// BLUE's probability; one is 2^32.
    pub p_drop: u32,
    /// Whether the delay is above target.
    pub dropping: bool,
    /// Whether the last packet judged was marked.
    pub ecn_marked: bool,
}

/// Exact enough roots for small counts, where single steps are far off: four steps each from the
/// entry before.
const ROOTS: [u32; 16] = {
    let mut roots = [u32::MAX; 16];
    let mut count = 1;
    while count < 16 {
        let mut root = roots[count - 1];
        let mut step = 0;
        while step < 4 {
            root = newton(root, count as u32);
            step += 1;
        }
        roots[count] = root;
        count += 1;
    }
    roots
};

/// The same since Linux 6.12, which has better ones of three counts.
const NEWER_ROOTS: [u32; 16] = {
    let mut roots = ROOTS;
    roots[2] = 3_037_000_500;
    roots[3] = 2_479_700_525;
    roots[6] = 1_753_413_056;
    roots
};

/// Returns one Newton step from `root` towards 1 / sqrt(count).
const fn newton(root: u32, count: u32) -> u32 {
    let root = root as u64;
    let square = (root * root) >> 32;
    let value = (3u64 << 32).wrapping_sub((count as u64).wrapping_mul(square)) >> 2;
    (value.wrapping_mul(root) >> 31) as u32
}

impl State {
    #[inline]
    fn root(&mut self, constants: &Constants) {
        let roots = if constants.linux >= Linux::V6_12 { &NEWER_ROOTS } else { &ROOTS };
        self.rec_inv_sqrt = match roots.get(self.count as usize) {
            Some(&root) => root,
            None => newton(self.rec_inv_sqrt, self.count),
        };
    }

    /// Returns the interval is cut to 32 bits here, as in the kernel.
    #[inline]
    fn after_interval(&self, from: i64, constants: &Constants) -> i64 {
        let span = (u64::from(constants.interval as u32) * u64::from(self.rec_inv_sqrt)) >> 32;
        from.wrapping_add(span as i64)
    }

    fn blue_may_move(&self, constants: &Constants, now: i64) -> bool {
        now.wrapping_sub(self.blue_timer) > constants.target as i64
    }

    /// Raises BLUE's probability; returns whether BLUE starts.
    fn raise_blue(&mut self, constants: &Constants, now: i64) -> bool {
        if !self.blue_may_move(constants, now) {
            return false;
        }
        let started = self.p_drop == 0;
        self.p_drop = self.p_drop.saturating_add(constants.p_inc);
        self.blue_timer = now;
        started
    }

    /// Returns the queue overflowed. True if BLUE starts.
    pub fn queue_full(&mut self, constants: &Constants, now: Nanos) -> bool {
        let now = now as i64;
        let started = self.raise_blue(constants, now);
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
        started
    }

    /// Returns the queue was found empty. True if BLUE ends.
    pub fn queue_empty(&mut self, constants: &Constants, now: Nanos) -> bool {
        let now = now as i64;
        let mut ended = false;
        if self.p_drop > 0 && self.blue_may_move(constants, now) {
            self.p_drop = self.p_drop.saturating_sub(constants.p_dec);
            self.blue_timer = now;
            ended = self.p_drop == 0;
        }
        self.dropping = false;
        if self.count > 0 && now.wrapping_sub(self.drop_next) >= 0 {
            self.count -= 1;
            self.root(constants);
            self.drop_next = self.after_interval(self.drop_next, constants);
        }
        ended
    }

    /// Judges a packet that was enqueued at `at` and is leaving: true to drop it. It may be marked
    /// either way.
    #[inline]
    pub fn should_drop<P: Packet>(
        &mut self,
        constants: &Constants,
        now: Nanos,
        at: Nanos,
        packet: &mut P,
        bulk_flows: u32,
        draws: &mut impl Draws,
    ) -> bool {
        let sojourn = now.saturating_sub(at);
        let now = now as i64;
        let mut late = now.wrapping_sub(self.drop_next);
        let over = sojourn > constants.target
            && sojourn > constants.mtu_time.saturating_mul(u64::from(bulk_flows) * 2)
            && sojourn > constants.mtu_time.saturating_mul(4);
        let mut due = self.count > 0 && late >= 0;
        let mut drop = false;
        self.ecn_marked = false;
        if over {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.after_interval(now, constants);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if due && self.dropping {
            self.ecn_marked = constants.ecn && packet.set_ce();
            drop = !self.ecn_marked;
            self.count = self.count.saturating_add(1);
            self.root(constants);
            self.drop_next = self.after_interval(self.drop_next, constants);
            late = now.wrapping_sub(self.drop_next);
        } else {
            while due {
                self.count -= 1;
                self.root(constants);
                self.drop_next = self.after_interval(self.drop_next, constants);
                late = now.wrapping_sub(self.drop_next);
                due = self.count > 0 && late >= 0;
            }
        }
        if sojourn > constants.blue_threshold {
            self.raise_blue(constants, now);
        }
        if self.p_drop > 0 && !(drop && constants.linux >= Linux::V7_3) {
            drop |= draws.draw_u32() < self.p_drop;
        }
        if self.count == 0 {
            self.drop_next = now.wrapping_add(constants.interval as i64);
        } else if late > 0 && !drop {
            self.drop_next = now;
        }
        drop
    }

    /// Records an overflow of the queue; counts whether BLUE starts.
    pub fn overflowed(&mut self, constants: &Constants, counters: &mut Counters, now: Nanos) {
        if self.queue_full(constants, now) {
            counters.unresponsive = counters.unresponsive.wrapping_add(1);
        }
    }

    /// Takes the packet to send, dropping and marking before it. The last packet is never dropped;
    /// returns `None` only if the queue is found empty.
    #[inline]
    pub fn dequeue<P: Packet>(
        &mut self,
        constants: &Constants,
        counters: &mut Counters,
        now: Nanos,
        source: &mut impl Source<P>,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Option<P> {
        while let Some(mut queued) = source.take() {
            let was_calm = self.p_drop == 0;
            let drop = self.should_drop(constants, now, queued.at, &mut queued.packet, 0, draws);
            if was_calm && self.p_drop > 0 {
                counters.unresponsive = counters.unresponsive.wrapping_add(1);
            }
            if self.ecn_marked {
                sink.marked(&queued.packet, MarkReason::Early);
            }
            if drop && !source.is_empty() {
                counters.drops += 1;
                sink.dropped(queued.packet, DropReason::Early, true);
                continue;
            }
            if self.ecn_marked {
                counters.ecn_mark += 1;
            }
            return Some(queued.packet);
        }
        if self.queue_empty(constants, now) {
            counters.unresponsive = counters.unresponsive.wrapping_sub(1);
        }
        None
    }

    /// Visits its fields.
    pub fn visit(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("count", self.count.into());
        visit("rec_inv_sqrt", self.rec_inv_sqrt.into());
        visit("dropping", self.dropping.into());
        visit("ecn_marked", self.ecn_marked.into());
        visit("drop_next", self.drop_next.into());
        visit("p_drop", self.p_drop.into());
        visit("blue_timer", self.blue_timer.into());
    }
}

/// COBALT's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Queues in which BLUE's probability is above 0.
    pub unresponsive: u16,
    /// Packets dropped by the law.
    pub drops: u64,
    /// Packets marked and sent.
    pub ecn_mark: u64,
}

/// A queue and the memory that its packets occupy.
#[derive(Clone, Debug)]
struct Charged<P> {
    fifo: PacketFifo<P>,
    memory: u64,
}

impl<P: Packet> Source<P> for Charged<P> {
    #[inline]
    fn take(&mut self) -> Option<Queued<P>> {
        let queued = self.fifo.pop()?;
        self.memory -= u64::from(queued.packet.truesize());
        Some(queued)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    #[inline]
    fn backlog(&self) -> u64 {
        self.fifo.bytes()
    }
}

/// One COBALT queue.
#[derive(Clone, Debug)]
pub struct Cobalt<P> {
    params: Params,
    constants: Constants,
    state: State,
    counters: Counters,
    drop_overlimit: u64,
    totals: Totals,
    queue: Charged<P>,
}

impl<P: Packet> Configured<P, Params> for Cobalt<P> {
    fn new(params: Params, _now: Nanos) -> Self {
        Self {
            params,
            constants: params.control.constants(),
            state: State::default(),
            counters: Counters::default(),
            drop_overlimit: 0,
            totals: Totals::default(),
            queue: Charged { fifo: PacketFifo::default(), memory: 0 },
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. Packets that no longer fit are dropped at the next arrival.
    fn change(&mut self, params: Params, _now: Nanos, _sink: &mut impl Sink<P>) {
        self.params = params;
        self.constants = params.control.constants();
    }
}

viewed!(Cobalt in queue.fifo);

impl<P: Packet> Discipline<P> for Cobalt<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Nanos,
        packet: P,
        _draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Return {
        self.queue.memory += u64::from(packet.truesize());
        self.queue.fifo.push(now, packet);
        let limit = u64::from(self.params.buffer_limit());
        if self.queue.memory <= limit {
            return Return::Success;
        }
        while self.queue.memory > limit {
            let Some(queued) = self.queue.take() else { break };
            self.state.overflowed(&self.constants, &mut self.counters, now);
            self.drop_overlimit += 1;
            self.totals.drops += 1;
            sink.dropped(queued.packet, DropReason::Overflow, true);
        }
        Return::Congestion
    }

    #[inline]
    fn dequeue(
        &mut self,
        now: Nanos,
        draws: &mut impl Draws,
        sink: &mut impl Sink<P>,
    ) -> Dequeue<P> {
        // As CAKE, which looks at no queue while nothing is queued.
        if self.queue.is_empty() {
            return Dequeue::Empty;
        }
        let Self { state, constants, counters, queue, .. } = self;
        self.totals.leave(state.dequeue(constants, counters, now, queue, draws, sink))
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("unresponsive", self.counters.unresponsive.into());
        self.state.visit(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let drops = self.totals.drops + self.counters.drops;
        Totals { drops, ..self.totals }.visit(self, visit);
        visit("drop_overlimit", self.drop_overlimit);
        visit("ecn_mark", self.counters.ecn_mark);
    }
}
