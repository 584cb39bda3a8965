//! FQ: fair queueing of the flows of a sending host, with pacing.
//!
//! Source: Linux 7.3 `sch_fq.c`, `tc-fq(8)`.
//!
//! Each connected socket is a flow; other packets form flows by their hash. A packet's priority
//! selects the band of its flow; the three bands share the rate by weights. Within a band new flows
//! are served before old ones, and each flow sends a quantum in its turn. A flow that is paced (by
//! its socket's rate, by `maxrate` or by the departure times of its packets) is throttled until its
//! next departure time. While no flow has packets that may leave, packets can bypass the flows in a
//! separate queue, the fast path.
//!
//! Invariants: a band has at most `limit` packets, a flow `flow_limit`, and the fast path 8. A
//! listed flow is in one list of its band, a throttled flow in none. Packets of a flow leave in the
//! order of their departure times, and of their arrival if they have none.
//!
//! Socket, rate and departure time come from the sink ([`Sink::sender`]). Without this information
//! flows are distinguished by their hash and paced only by `maxrate`.

mod flow;
mod params;

pub use params::{BANDS, Beyond, Constants, Params};

use crate::declaration::{Configured, DisciplineParams};
use crate::discipline::{
    Call, Dequeue, Discipline, Draws, DropReason, MarkReason, Return, Sink, Totals, View, counted,
    visit_fields,
};
use crate::limit::Unit;
use crate::packet::{Packet, Sender, Socket, SocketKind};
use crate::packet_fifo::Queued;
use flow::{Flow, Key, Line, Note, State, is_connected};
use sojourn_units::words::Given;
use sojourn_units::{Nanos, SECOND, jiffies};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Maximum number of packets in the fast path.
const FAST: usize = 8;

impl DisciplineParams for Params {
    /// Returns the sum of the limits of the three bands and of the fast path, in packets.
    fn limit(&self) -> Option<(Unit, u32)> {
        let bands = self.limit.saturating_mul(BANDS as u32);
        Some((Unit::Packets, bands.saturating_add(FAST as u32)))
    }

    fn paces(&self) -> bool {
        self.pacing
    }

    fn warnings(&self, given: &Given) -> Vec<String> {
        let idle = ["buckets", "timer_slack"].into_iter().filter(|word| given.has(word));
        idle.map(|word| format!("`{word}` has no effect in a simulation")).collect()
    }

    fn in_kernel(&self) -> Result<(), &'static str> {
        match self.offload_horizon {
            0 => Ok(()),
            _ => {
                Err("Linux accepts `offload_horizon` only for devices that pace packets themselves")
            }
        }
    }
}

/// Flows of one priority band; `credit` is in bytes.
#[derive(Clone, Debug, Default)]
struct Band {
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    credit: i32,
    packets: u32,
    drops: u64,
}

/// Counters of FQ in addition to the totals and the drops per band.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    ce_mark: u64,
    horizon_drops: u64,
    horizon_caps: u64,
    flows_plimit: u64,
    pkts_too_long: u64,
    gc_flows: u64,
    throttled: u64,
    fastpath: u64,
}

/// An FQ queue.
#[derive(Clone, Debug)]
pub struct Fq<P> {
    params: Params,
    constants: Constants,
    flows: Vec<Flow<P>>,
    free: Vec<u32>,
    index: BTreeMap<Key, u32>,
    /// Number of flows without packets.
    inactive: usize,
    bands: [Band; BANDS],
    /// Index of the band that is being served.
    band: usize,
    /// Packets in the fast path.
    fast: Line<P>,
    /// Heap of throttled flows: departure time, number of the entry, slot. An entry whose number is
    /// not the flow's `turn` is void.
    delayed: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    turns: u64,
    throttled: usize,
    /// Time at which the first throttled flow may send, or an earlier time; `None` without
    /// throttled flows.
    next_delayed: Option<Nanos>,
    packets: usize,
    bytes: u64,
    left_at: Option<Nanos>,
    /// Time of the next `dequeue` that the last call requested; `None` without a request.
    wake: Option<Nanos>,
    counters: Counters,
    totals: Totals,
}

impl<P: Packet> Configured<P, Params> for Fq<P> {
    fn new(params: Params, _now: Nanos) -> Self {
        Self {
            constants: params.constants(),
            params,
            flows: Vec::new(),
            free: Vec::new(),
            index: BTreeMap::new(),
            inactive: 0,
            bands: Default::default(),
            band: 0,
            fast: Line::default(),
            delayed: BinaryHeap::new(),
            turns: 0,
            throttled: 0,
            next_delayed: None,
            packets: 0,
            bytes: 0,
            left_at: None,
            wake: None,
            counters: Counters::default(),
            totals: Totals::default(),
        }
    }

    fn params(&self) -> &Params {
        &self.params
    }

    /// Replaces the parameters. While the queue has more packets than `limit`, packets that may
    /// leave are removed and dropped; the kernel counts them as sent.
    fn change(&mut self, params: Params, now: Nanos, sink: &mut impl Sink<P>) {
        self.constants = params.constants();
        self.params = params;
        while self.packets > self.params.limit as usize {
            let Some(packet) = self.serve(now, sink) else { break };
            sink.dropped(packet, DropReason::Overflow, true);
        }
    }
}

impl<P: Packet> Fq<P> {
    fn flow(&mut self, slot: u32) -> &mut Flow<P> {
        &mut self.flows[slot as usize]
    }

    fn tick(&self, now: Nanos) -> u64 {
        jiffies::at(now, self.params.hz)
    }

    /// Returns the departure time up to which packets may leave at `now`.
    fn until(&self, now: Nanos) -> Nanos {
        now.saturating_add(self.constants.offload_horizon)
    }

    /// Returns whether a packet with the departure time `time` may use the fast path.
    fn passes(&self, now: Nanos, time: Nanos, sender: &Sender) -> bool {
        let until = self.until(now);
        if time > until || self.constants.maxrate != u64::MAX {
            return false;
        }
        let is_limited =
            |socket: &Socket| socket.kind == SocketKind::Datagram && socket.rate.is_some();
        if sender.socket.as_ref().is_some_and(is_limited) {
            return false;
        }
        self.packets == 0
            || self.index.len() == self.inactive + self.throttled
                && self.fast.len() < FAST
                && self.next_delayed.is_none_or(|next| next > until)
    }

    /// Discards a flow that has been detached for more than three seconds.
    fn forget(&mut self, number: u64, now: Nanos) {
        let Some(key) = Key::numbered(number) else { return };
        let Some(&slot) = self.index.get(&key) else { return };
        let expires = self.flows[slot as usize].age + 3 * u64::from(self.params.hz);
        if self.flows[slot as usize].state == State::Detached && self.tick(now) > expires {
            self.index.remove(&key);
            self.free.push(slot);
            self.inactive -= 1;
            self.counters.gc_flows += 1;
        }
    }

    /// Returns the slot of a flow, which is created if it does not exist.
    fn find(&mut self, now: Nanos, key: Key, sender: &Sender) -> u32 {
        let connected = sender.socket.filter(is_connected);
        let initial = self.params.initial_quantum as i32;
        if let Some(&slot) = self.index.get(&key) {
            if let Some(socket) = connected
                && self.flow(slot).hash != socket.hash
            {
                // The socket number now belongs to another connection.
                if self.flow(slot).state == State::Throttled {
                    self.release(slot);
                }
                let flow = self.flow(slot);
                flow.credit = initial;
                flow.time_next = 0;
                flow.hash = socket.hash;
            }
            return slot;
        }
        let hash = connected.map_or(0, |socket| socket.hash);
        let flow = Flow::new(key, initial, self.tick(now) | 1, hash);
        let slot = if let Some(slot) = self.free.pop() {
            self.flows[slot as usize] = flow;
            slot
        } else {
            self.flows.push(flow);
            (self.flows.len() - 1) as u32
        };
        self.index.insert(key, slot);
        self.inactive += 1;
        slot
    }

    /// Appends a flow to the new or old flows of its band.
    fn list(&mut self, slot: u32, is_new: bool) {
        let flow = &mut self.flows[slot as usize];
        flow.state = State::Listed;
        let band = &mut self.bands[usize::from(flow.band)];
        (if is_new { &mut band.new } else { &mut band.old }).push_back(slot);
    }

    /// Removes the first flow from a list.
    fn unlist(&mut self, band: usize, is_new: bool) {
        let band = &mut self.bands[band];
        (if is_new { &mut band.new } else { &mut band.old }).pop_front();
    }

    /// Throttles a flow that is on no list, or a throttled flow anew. The flow may send at `time`.
    fn delay(&mut self, slot: u32, time: Nanos) {
        self.turns += 1;
        let turn = self.turns;
        let flow = self.flow(slot);
        flow.time_next = time;
        flow.turn = turn;
        if flow.state != State::Throttled {
            flow.state = State::Throttled;
            self.throttled += 1;
            self.counters.throttled += 1;
        }
        self.delayed.push(Reverse((time, turn, slot)));
        self.next_delayed = Some(self.next_delayed.map_or(time, |next| next.min(time)));
    }

    /// Ends the throttling of a flow and appends it to the old flows.
    fn release(&mut self, slot: u32) {
        self.throttled -= 1;
        self.list(slot, false);
    }

    /// Returns the throttled flow with the earliest time.
    fn first_delayed(&mut self) -> Option<(Nanos, u32)> {
        while let Some(&Reverse((time, turn, slot))) = self.delayed.peek() {
            let flow = &self.flows[slot as usize];
            if flow.state == State::Throttled && flow.turn == turn {
                return Some((time, slot));
            }
            self.delayed.pop();
        }
        None
    }

    /// Releases the throttled flows whose time is at most `until`.
    fn release_due(&mut self, until: Nanos) {
        if self.next_delayed.is_none_or(|next| next > until) {
            return;
        }
        self.next_delayed = loop {
            match self.first_delayed() {
                Some((time, slot)) if time <= until => self.release(slot),
                first => break first.map(|(time, _)| time),
            }
        };
    }

    /// Selects the band to serve, which has flows and credit; returns false if no flow is listed.
    fn choose_band(&mut self) -> bool {
        let mut tries = 0;
        loop {
            let band = &self.bands[self.band];
            if band.credit > 0 && !(band.new.is_empty() && band.old.is_empty()) {
                return true;
            }
            tries += 1;
            if tries > BANDS {
                return false;
            }
            loop {
                self.band = (self.band + 1) % BANDS;
                let weight = self.params.weights[self.band] as i32;
                let band = &mut self.bands[self.band];
                band.credit = band.credit.saturating_add(weight).min(weight);
                if band.credit > 0 {
                    break;
                }
                tries = 1;
            }
        }
    }

    /// Removes and returns the packet that leaves now; `None` if none may leave.
    fn serve(&mut self, now: Nanos, sink: &mut impl Sink<P>) -> Option<P> {
        if self.packets == 0 {
            return None;
        }
        if let Some(queued) = self.fast.pop() {
            return Some(self.leave(queued.at, queued.packet));
        }
        let until = self.until(now);
        self.release_due(until);
        while self.choose_band() {
            let band = self.band;
            let new = self.bands[band].new.front().copied();
            let is_new = new.is_some();
            let Some(slot) = new.or_else(|| self.bands[band].old.front().copied()) else { break };
            let quantum = self.params.quantum as i32;
            let flow = self.flow(slot);
            if flow.credit <= 0 {
                flow.credit = flow.credit.wrapping_add(quantum);
                self.unlist(band, is_new);
                self.list(slot, false);
                continue;
            }
            let Some(first) = flow.line.first() else {
                self.unlist(band, is_new);
                if is_new {
                    self.list(slot, false);
                } else {
                    let age = self.tick(now) | 1;
                    let flow = self.flow(slot);
                    flow.state = State::Detached;
                    flow.age = age;
                }
                continue;
            };
            let time = first.note.time.max(flow.time_next);
            if time > until {
                self.unlist(band, is_new);
                self.delay(slot, time);
                continue;
            }
            let Some(queued) = flow.line.pop() else { break };
            return Some(self.send(now, time, slot, queued, sink));
        }
        self.wake = self.next_delayed;
        None
    }

    /// Sends a packet that was allowed to leave from `time` on, and computes the next departure
    /// time of its flow.
    fn send(
        &mut self,
        now: Nanos,
        time: Nanos,
        slot: u32,
        queued: Queued<P, Note>,
        sink: &mut impl Sink<P>,
    ) -> P {
        let Queued { at, note, mut packet } = queued;
        self.bands[usize::from(note.band)].packets -= 1;
        let late = now.wrapping_sub(time) as i64;
        if late > self.constants.ce_threshold as i64 {
            // The kernel also counts packets that are not ECN-capable.
            self.counters.ce_mark += 1;
            if packet.set_ce() {
                sink.marked(&packet, MarkReason::CeThreshold);
            }
        }
        let length = packet.len();
        let served = &mut self.bands[self.band];
        served.credit = served.credit.wrapping_sub(length as i32);
        let flow = &mut self.flows[slot as usize];
        flow.credit = flow.credit.wrapping_sub(length as i32);
        if flow.line.len() == 0 {
            self.inactive += 1;
        }
        if self.params.pacing {
            self.pace(now, slot, length, note.is_timed, &packet, sink);
        }
        self.leave(at, packet)
    }

    /// Computes the time at which a flow may send again after `packet`.
    fn pace(
        &mut self,
        now: Nanos,
        slot: u32,
        length: u32,
        is_timed: bool,
        packet: &P,
        sink: &impl Sink<P>,
    ) {
        let flow = &mut self.flows[slot as usize];
        let mut rate = self.constants.maxrate;
        let mut length = u64::from(length);
        if !is_timed {
            let socket = sink.sender(packet).socket;
            let socket = socket.filter(|socket| socket.kind != SocketKind::Passive);
            rate = rate.min(socket.and_then(|socket| socket.rate).unwrap_or(u64::MAX));
            if rate <= self.constants.low_rate_threshold {
                flow.credit = 0;
            } else {
                length = length.max(self.params.quantum.into());
                if flow.credit > 0 {
                    return;
                }
            }
        }
        if rate == u64::MAX {
            return;
        }
        let mut span = length * SECOND;
        span = span.checked_div(rate).unwrap_or(span);
        if span > SECOND {
            span = SECOND;
            self.counters.pkts_too_long += 1;
        }
        // If the packet leaves late, the delay shortens the next packet's wait, by at most half.
        if flow.time_next != 0 && now > flow.time_next {
            span -= (span / 2).min(now - flow.time_next);
        }
        flow.time_next = now + span;
    }

    /// Updates the counts for a packet that leaves.
    fn leave(&mut self, at: Nanos, packet: P) -> P {
        self.packets -= 1;
        self.bytes -= u64::from(packet.len());
        self.left_at = Some(at);
        self.totals.sent(packet.len());
        packet
    }
}

impl<P: Packet> View for Fq<P> {
    counted!();

    /// Returns the time of the `n`-th packet in the order of arrival. This collects the times of
    /// all packets.
    fn enqueued_at(&self, n: usize) -> Option<Nanos> {
        if n >= self.packets {
            return None;
        }
        let lines = std::iter::once(&self.fast).chain(self.flows.iter().map(|flow| &flow.line));
        let mut times: Vec<Nanos> = lines.flat_map(Line::times).collect();
        Some(*times.select_nth_unstable(n).1)
    }
}

impl<P: Packet> Discipline<P> for Fq<P> {
    fn enqueue(&mut self, packet: P, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Return {
        self.wake = None;
        let sender = call.sink.sender(&packet);
        let band = self.params.priomap[(packet.priority() & 15) as usize];
        let into = &mut self.bands[usize::from(band)];
        if into.packets >= self.params.limit {
            into.drops += 1;
            self.totals.refuse(packet, DropReason::Overflow, call.sink);
            return Return::Drop;
        }
        let horizon = call.now.saturating_add(self.constants.horizon);
        let mut time = sender.departure.unwrap_or(call.now);
        if time > horizon {
            if self.params.beyond == Beyond::Drop {
                self.counters.horizon_drops += 1;
                self.totals.refuse(packet, DropReason::Forced, call.sink);
                return Return::Drop;
            }
            self.counters.horizon_caps += 1;
            time = horizon;
        }
        let (is_timed, continues) = (sender.departure.is_some(), sender.continues);
        let note = Note { time, band, is_timed, continues };
        if self.passes(call.now, time, &sender) {
            self.counters.fastpath += 1;
            self.packets += 1;
            self.bytes += u64::from(packet.len());
            self.fast.push(Queued { at: call.now, note, packet });
            return Return::Success;
        }
        while let Some(number) = call.draws.stale_flow() {
            self.forget(number, call.now);
        }
        let key = Key::of(&packet, &sender, self.params.orphan_mask);
        let slot = self.find(call.now, key, &sender);
        let length = self.flow(slot).line.len();
        if !continues && self.flow(slot).line.supers() >= self.params.flow_limit as usize {
            self.counters.flows_plimit += 1;
            self.totals.refuse(packet, DropReason::Overflow, call.sink);
            return Return::Drop;
        }
        if self.flow(slot).state == State::Detached {
            self.list(slot, true);
            let quantum = self.params.quantum as i32;
            let returns = self.tick(call.now) > self.flow(slot).age + self.constants.refill_delay;
            let flow = self.flow(slot);
            if returns && (0..quantum).contains(&flow.credit) {
                flow.credit = quantum;
            }
        }
        if length == 0 {
            self.inactive -= 1;
        }
        self.packets += 1;
        self.bytes += u64::from(packet.len());
        self.bands[usize::from(band)].packets += 1;
        let flow = self.flow(slot);
        flow.band = band;
        flow.line.push(Queued { at: call.now, note, packet });
        let (state, time_next) = (flow.state, flow.time_next);
        // A requested departure time before that of the flow's other packets ends the throttling
        // earlier.
        if note.is_timed
            && self.constants.maxrate == u64::MAX
            && state == State::Throttled
            && time < time_next
        {
            if time <= call.now {
                self.release(slot);
                if self.next_delayed == Some(time_next) {
                    self.next_delayed = self.first_delayed().map(|(time, _)| time);
                }
                self.flow(slot).time_next = time;
            } else {
                self.delay(slot, time);
            }
        }
        Return::Success
    }

    fn dequeue(&mut self, call: &mut Call<'_, impl Draws, impl Sink<P>>) -> Dequeue<P> {
        self.wake = None;
        match (self.serve(call.now, call.sink), self.wake) {
            (Some(packet), _) => Dequeue::Packet(packet),
            (None, Some(time)) => Dequeue::NotBefore(time),
            (None, None) => Dequeue::Empty,
        }
    }

    fn wake_up(&self) -> Option<Nanos> {
        self.wake
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, i128)) {
        visit("flows", self.index.len() as i128);
        visit("inactive", self.inactive as i128);
        visit("throttled", self.throttled as i128);
        visit("time_next_delayed", self.next_delayed.map_or(-1, i128::from));
        visit("band", self.band as i128);
        visit("fast_qlen", self.fast.len() as i128);
        let names = [("credit0", "pkts0"), ("credit1", "pkts1"), ("credit2", "pkts2")];
        for ((credit, packets), band) in names.into_iter().zip(&self.bands) {
            visit(credit, band.credit.into());
            visit(packets, band.packets.into());
        }
    }

    fn flow_state(&self, number: usize, visit: &mut dyn FnMut(&'static str, i128)) {
        let slot = Key::numbered(number as u64).and_then(|key| self.index.get(&key));
        let flow = slot.map(|slot| &self.flows[*slot as usize]);
        let value = |read: fn(&Flow<P>) -> i128| flow.map_or(0, read);
        visit("state", value(|flow| flow.state as i128));
        visit("qlen", value(|flow| flow.line.len() as i128));
        visit("credit", value(|flow| flow.credit.into()));
        visit("band", value(|flow| flow.band.into()));
        visit("time_next", value(|flow| flow.time_next.into()));
        let age = |flow: &Flow<P>| if flow.state == State::Detached { flow.age.into() } else { 0 };
        visit("age", value(age));
    }

    fn lists(&self, visit: &mut dyn FnMut(usize, usize)) {
        for (list, slots) in self.bands.iter().flat_map(|band| [&band.new, &band.old]).enumerate() {
            for slot in slots {
                visit(list, self.flows[*slot as usize].key.number() as usize);
            }
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.totals.visit(self, visit);
        for (name, band) in
            ["band_drops0", "band_drops1", "band_drops2"].into_iter().zip(&self.bands)
        {
            visit(name, band.drops);
        }
        visit_fields!(
            visit,
            self.counters,
            [
                ce_mark,
                horizon_drops,
                horizon_caps,
                flows_plimit,
                pkts_too_long,
                gc_flows,
                throttled,
                fastpath
            ]
        );
    }
}
