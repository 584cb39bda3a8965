//! COBALT: CoDel and BLUE combined, as in CAKE.
//!
//! Source: Linux `sch_cake.c`; Palmei et al., "Design and evaluation of COBALT queue discipline"
//! (2019).
//!
//! CoDel drops or marks while the sojourn time is above `target`; afterwards its `count` decays
//! step by step instead of starting anew. BLUE's drop probability acts on traffic that does not
//! respond. It rises when the queue overflows and falls when the queue is found empty, at most once
//! per `target`. The last packet of a queue may be marked but is never dropped.
//!
//! [`State`] has the policy's three functions and a dequeue that uses them, for any queue.
//! [`Cobalt`] is one queue with a limit of memory, which drops from the head on overflow. It
//! decides as CAKE with `unlimited besteffort flowblind`. CAKE does not visit its queues while all
//! are empty; therefore BLUE's probability never falls in this discipline, which has one queue.
//!
//! Invariants: BLUE's probability changes at most once per `target`; after an arrival, memory is
//! within its limit.

use crate::aqm::{Aqm, Common};
use crate::declaration::{Configured, DisciplineParams};
use crate::device::Device;
use crate::discipline::{
    Call, Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals, visit_fields,
};
use crate::kinds::{bytes, fraction, linux, micros, optional_micros};
use crate::limit::Unit;
use crate::linux::Linux;
use crate::packet::Packet;
use crate::packet_fifo::{PacketFifo, Queued, Source, viewed};
use crate::tc::time_text;
use sojourn_units::declare::{derived, part, switch};
use sojourn_units::words::Text;
use sojourn_units::{MILLISECOND, Nanos, params};

/// Changes of BLUE's probability in CAKE, 1/256 and 1/4096, in units of 2^-32.
const P_INC: u32 = 1 << 24;
const P_DEC: u32 = 1 << 20;

params! {
    /// Parameters of COBALT's control, in the units that `tc` passes to the kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Control on Device {
        /// Time for which the sojourn time may stay above target; at least twice target.
        interval_us as "interval": u32 = micros("100ms").above_zero(),
        /// Acceptable delay of a standing queue; also the minimum time between changes of BLUE's
        /// probability.
        target_us as "target": u32 = micros("5ms").above_zero(),
        /// Increase of BLUE's probability when the queue overflows.
        p_inc as "increment": u32 = fraction("0.00390625"),
        /// Decrease of BLUE's probability when the queue is found empty.
        p_dec as "decrement": u32 = fraction("0.000244140625"),
        /// Sojourn time above which BLUE's probability also rises, as in ns-3 (where it is 400ms);
        /// off by default.
        blue_threshold_us as "blue_threshold": Option<u32> =
            optional_micros().check(|threshold| match threshold {
                Some(0) => Err("must be above 0"),
                _ => Ok(()),
            }),
        /// Marks ECN-capable packets instead of dropping them.
        ecn: bool = switch("noecn", "ecn"),
        /// Version of Linux whose decisions are made. Before 7.3 BLUE draws a random number also
        /// for a packet that CoDel drops. Before 6.12 the inverse square root is less exact for
        /// counts 2, 3 and 6; at 2 the error is 1/1800.
        linux: Linux = linux(Linux::RELEASES),
    }
}

impl Control {
    /// Returns these parameters in nanoseconds, without a shaper (`mtu_time` 0).
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
    "cobalt": "COBALT: CoDel and BLUE combined; the kernel's form is \
     `cake unlimited besteffort flowblind [rtt T] [memlimit B]`",
    from "Linux sch_cake.c; Palmei et al. 2019";

    /// Parameters of COBALT, in the units that `tc` passes to the kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params on Device {
        /// Parameters of the control.
        #[serde(flatten)]
        control: Control = part::<Control>(),
        /// Maximum memory of queued packets in bytes, by their truesize; 0 means 10240 of the
        /// device's largest frames.
        memlimit: u32 = bytes("0b"),
        /// Largest frame of the device, in bytes.
        mtu: u32 = derived(|device: &Device| device.psched_mtu),
    }
}

impl DisciplineParams for Params {
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
            return Err("CAKE's BLUE has no threshold of delay");
        }
        if !ecn {
            return Err("CAKE always marks ECN-capable packets");
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
    /// Returns the limit of memory, in bytes.
    pub fn buffer_limit(&self) -> u32 {
        let frames = self.mtu.saturating_mul(10_240);
        if self.memlimit == 0 { frames } else { self.memlimit }
    }
}

/// Parameters in the units of COBALT's decisions; times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Time for which the sojourn time may stay above target.
    pub interval: Nanos,
    /// Acceptable sojourn time.
    pub target: Nanos,
    /// Transmission time of the largest frame; 0 without a shaper.
    pub mtu_time: Nanos,
    /// Increase of BLUE's probability at an overflow, in units of 2^-32.
    pub p_inc: u32,
    /// Decrease of BLUE's probability at an empty queue, in units of 2^-32.
    pub p_dec: u32,
    /// Sojourn time above which BLUE's probability also rises, as in ns-3; the largest value for
    /// never.
    pub blue_threshold: Nanos,
    /// Whether CoDel marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Version of Linux whose decisions are made.
    pub linux: Linux,
}

impl Default for Constants {
    /// Returns the constants of CAKE without a shaper.
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
    /// CoDel's number of drops and marks, less the number by which it has decayed.
    pub count: u32,
    /// 1 / sqrt(`count`), in units of 2^-32.
    pub rec_inv_sqrt: u32,
    /// Time of CoDel's next drop or mark, in nanoseconds.
    pub drop_next: i64,
    /// Time of the last change of BLUE's probability, in nanoseconds.
    pub blue_timer: i64,
    /// BLUE's drop probability, in units of 2^-32.
    pub p_drop: u32,
    /// Whether the sojourn time is above target.
    pub dropping: bool,
    /// Whether the last packet was marked.
    pub ecn_marked: bool,
}

/// 1 / sqrt(count) for counts below 16, in units of 2^-32. A single Newton step is inexact for
/// these counts: each value results from four steps that start at the value before it.
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

/// The values of `ROOTS` since Linux 6.12, which has more exact values for the counts 2, 3 and 6.
const NEWER_ROOTS: [u32; 16] = {
    let mut roots = ROOTS;
    roots[2] = 3_037_000_500;
    roots[3] = 2_479_700_525;
    roots[6] = 1_753_413_056;
    roots
};

/// Returns the result of one Newton step from `root` to 1 / sqrt(`count`), in units of 2^-32.
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

    /// Returns the time `interval / sqrt(count)` after `from`. The interval is truncated to 32
    /// bits, as in the kernel.
    #[inline]
    fn after_interval(&self, from: i64, constants: &Constants) -> i64 {
        let span = (u64::from(constants.interval as u32) * u64::from(self.rec_inv_sqrt)) >> 32;
        from.wrapping_add(span as i64)
    }

    fn blue_may_move(&self, constants: &Constants, now: i64) -> bool {
        now.wrapping_sub(self.blue_timer) > constants.target as i64
    }

    /// Raises BLUE's probability, unless the last change is too recent. Returns whether it rises
    /// from 0.
    fn raise_blue(&mut self, constants: &Constants, now: i64) -> bool {
        if !self.blue_may_move(constants, now) {
            return false;
        }
        let started = self.p_drop == 0;
        self.p_drop = self.p_drop.saturating_add(constants.p_inc);
        self.blue_timer = now;
        started
    }

    /// Updates the state after an overflow. Returns whether BLUE's probability rises from 0.
    pub fn queue_full(&mut self, constants: &Constants, now: Nanos) -> bool {
        let now = now as i64;
        let started = self.raise_blue(constants, now);
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
        started
    }

    /// Updates the state after the queue was found empty. Returns whether BLUE's probability falls
    /// to 0.
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

    /// Decides about a leaving packet that was enqueued at `at`, and returns whether to drop it.
    /// The packet may be marked in either case. `bulk_flows` is the number of bulk flows in the tin
    /// (`cake` in `ingress` mode), else 0.
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
}

impl Aqm for State {
    type Constants = Constants;
    type Counters = Counters;

    fn overflowed(&mut self, common: &mut Common<Self>, now: Nanos, _packets: u32) {
        if self.queue_full(&common.constants, now) {
            common.counters.unresponsive = common.counters.unresponsive.wrapping_add(1);
        }
    }

    #[inline]
    fn dequeue<P: Packet>(
        &mut self,
        common: &mut Common<Self>,
        source: &mut impl Source<P>,
        call: &mut Call<'_, impl Draws, impl Sink<P>>,
    ) -> Option<P> {
        while let Some(mut queued) = source.take() {
            let was_calm = self.p_drop == 0;
            let drop = self.should_drop(
                &common.constants,
                call.now,
                queued.at,
                &mut queued.packet,
                0,
                call.draws,
            );
            if was_calm && self.p_drop > 0 {
                common.counters.unresponsive = common.counters.unresponsive.wrapping_add(1);
            }
            if self.ecn_marked {
                call.sink.marked(&queued.packet, MarkReason::Early);
            }
            if drop && !source.is_empty() {
                common.counters.drops += 1;
                call.sink.dropped(queued.packet, DropReason::Early, true);
                continue;
            }
            if self.ecn_marked {
                common.counters.ecn_mark += 1;
            }
            return Some(queued.packet);
        }
        if self.queue_empty(&common.constants, call.now) {
            common.counters.unresponsive = common.counters.unresponsive.wrapping_sub(1);
        }
        None
    }

    fn visit(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit_fields!(
            visit,
            self,
            [count, rec_inv_sqrt, dropping, ecn_marked, drop_next, p_drop, blue_timer]
        );
    }

    fn drops(counters: &Counters) -> u64 {
        counters.drops
    }

    fn visit_common(counters: &Counters, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("unresponsive", counters.unresponsive.into());
    }
}

/// Counters of COBALT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of queues whose BLUE probability is above 0.
    pub unresponsive: u16,
    /// Number of packets dropped by CoDel or BLUE on departure.
    pub drops: u64,
    /// Number of packets marked and sent.
    pub ecn_mark: u64,
}

/// A FIFO, and the memory of its packets in bytes.
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

    fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn backlog(&self) -> u64 {
        self.fifo.bytes()
    }
}

/// A COBALT queue.
#[derive(Clone, Debug)]
pub struct Cobalt<P> {
    params: Params,
    common: Common<State>,
    state: State,
    drop_overlimit: u64,
    totals: Totals,
    queue: Charged<P>,
}

impl<P: Packet> Configured<P, Params> for Cobalt<P> {
    fn new(params: Params, _now: Nanos) -> Self {
        Self {
            params,
            common: Common::new(params.control.constants()),
            state: State::default(),
            drop_overlimit: 0,
            totals: Totals::default(),
            queue: Charged { fifo: PacketFifo::default(), memory: 0 },
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. If the new limit is exceeded, packets are dropped at the next
    /// arrival.
    fn change(&mut self, params: Params, _now: Nanos, _sink: &mut impl Sink<P>) {
        self.params = params;
        self.common.constants = params.control.constants();
    }
}

viewed!(Cobalt in queue.fifo);

impl<P: Packet> Discipline<P> for Cobalt<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        self.queue.memory += u64::from(packet.truesize());
        self.queue.fifo.push(call.now, packet);
        let limit = u64::from(self.params.buffer_limit());
        if self.queue.memory <= limit {
            return Return::Success;
        }
        while self.queue.memory > limit {
            let Some(queued) = self.queue.take() else { break };
            self.state.overflowed(&mut self.common, call.now, 1);
            self.drop_overlimit += 1;
            self.totals.drops += 1;
            call.sink.dropped(queued.packet, DropReason::Overflow, true);
        }
        Return::Congestion
    }

    #[inline]
    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        // CAKE does not visit its queues while all are empty, so BLUE does not see an empty queue.
        if self.queue.is_empty() {
            return Dequeue::Empty;
        }
        let Self { state, common, queue, .. } = self;
        self.totals.leave(state.dequeue(common, queue, call))
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("unresponsive", self.common.counters.unresponsive.into());
        self.state.visit(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let drops = self.totals.drops + self.common.counters.drops;
        Totals { drops, ..self.totals }.visit(self, visit);
        visit("drop_overlimit", self.drop_overlimit);
        visit("ecn_mark", self.common.counters.ecn_mark);
    }
}
