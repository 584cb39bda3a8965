//! The receiving half: reassembly, acknowledgements, the window.
//!
//! Source: RFC 9293 (acceptance, window), RFC 5681 section 4.2 and RFC 1122 (delayed ACKs),
//! RFC 2018 and RFC 2883 (SACK and D-SACK blocks), RFC 3168 and RFC 8257 (echo of marks), RFC 7323
//! (which timestamp to echo); quick ACKs, the compression of SACKs (`__tcp_ack_snd_check`) and the
//! growth of the window after Linux.
//! Idea: everything before `nxt` is delivered, what lies beyond is kept as ranges. Data in order
//! may wait for company, anything out of the ordinary is acknowledged at once.
//! Invariants: `nxt` and the window's right edge never go back; no data beyond that edge is taken;
//! at most one segment's ACK is owed at a time.

mod beyond;
mod memory;
mod window;

use self::beyond::Beyond;
use self::memory::{ReceiveMemory, SMALL};
use crate::accecn::MarkCounter;
use crate::params::{AckRule, Ecn, Memory, Params};
use crate::segment::{Flags, Segment};
use sojourn_units::{MICROSECOND, MILLISECOND, Nanos, jiffies};
use std::sync::Arc;

/// Never.
pub(crate) use sojourn_units::NEVER;
/// The longest that an ACK waits (`TCP_DELACK_MAX`).
const MAX_DELAY: Nanos = 200 * MILLISECOND;
/// Linux's `TCP_MAX_QUICKACKS`.
const MAX_QUICK: u32 = 16;
/// Segments that are acknowledged singly after the first mark, and after a retransmission without ECT.
const ECN_QUICK: u32 = 2;
/// Segments beyond a hole that are acknowledged at once (`TCP_FASTRETRANS_THRESH`).
const DUPLICATES: u8 = 3;
/// Most segments that one acknowledgement covers (`net.ipv4.tcp_comp_sack_nr`).
const COMPRESSED: u8 = 44;
/// How long they wait for each other: this share of a round-trip time
/// (`net.ipv4.tcp_comp_sack_rtt_percent`), and this time at most (`net.ipv4.tcp_comp_sack_delay_ns`).
const COMPRESS_PERCENT: Nanos = 33;
const COMPRESS_DELAY: Nanos = MILLISECOND;
/// Lateness of the timer (`net.ipv4.tcp_comp_sack_slack_ns`).
const COMPRESS_SLACK: Nanos = 10 * MICROSECOND;
/// Initial automatic window, and the largest one without scaling.
const UNSCALED: u64 = 65_535;

/// The sender's knowledge of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The retransmission timeout.
    pub(crate) rto: Nanos,
    /// The smoothed round-trip time, 0 without a sample.
    pub(crate) srtt: Nanos,
    /// This end has sent data, too.
    pub(crate) answers: bool,
}

/// The receiver's state.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Next number expected.
    pub(crate) nxt: u64,
    /// Right edge of the window announced.
    edge: u64,
    params: Arc<Params>,
    /// From the first hole or duplicate on.
    beyond: Option<Box<Beyond>>,
    /// Number after the peer's FIN, or [`NEVER`] until it is seen.
    fin_end: u64,

    /// Bytes the application has not read.
    unread: u64,
    /// Bytes that it reads after the ACK that is due.
    queued: u64,
    /// The window that was announced last, with memory.
    offered: u64,
    paused: bool,
    /// The window of the application's buffer, now and at most.
    space: u64,
    max_space: u64,
    scale: u8,
    /// Autotuning: bytes read in the last round, the round's start and what was read until then.
    tune_space: u64,
    tune_at: Nanos,
    tune_from: u64,
    memory: Option<ReceiveMemory>,
    /// Bytes beyond a hole.
    held_bytes: u64,
    rtt: Nanos,
    /// The echo of the last sample.
    rtt_echo: u32,
    rtt_edge: u64,
    rtt_at: Nanos,

    /// An ACK is due at once.
    pub(crate) ack_now: bool,
    /// It ends the handshake.
    ends_handshake: bool,
    /// When the delayed ACK is due.
    pub(crate) ack_at: Nanos,
    unacked: u64,
    full: u64,
    /// Linux: how long an ACK waits at present (`ato`), and the retransmission timeout, which it may
    /// not exceed.
    patience: Nanos,
    rto: Nanos,
    /// Segments beyond the hole at `duplicates_at` that were acknowledged at once.
    duplicates: u8,
    duplicates_at: u64,
    /// Those that wait for one acknowledgement.
    compressed: u8,
    /// The next acknowledgement is not for the newest segment, which waits until then.
    waits_until: Nanos,
    quick: u32,
    last_data: Nanos,
    last_ack_sent: u64,

    ts_recent: u32,
    ecn: Ecn,
    /// Of AccECN, where it is in use.
    marks: Option<Box<MarkCounter>>,
    /// An ECN-capable segment has arrived.
    seen_ect: bool,
    /// Classic: echo until CWR. Accurate: the last segment was marked.
    echo: bool,
    /// Accurate: an ACK of what came before the change, with the echo it needs.
    owed: Option<(u64, bool)>,

    sack: bool,
    dsack: bool,
}

impl Receiver {
    pub(crate) fn new(params: &Arc<Params>) -> Self {
        let max_space = params.receive_window;
        let mut space = if params.autotune { max_space.min(UNSCALED) } else { max_space };
        let memory = (params.memory == Memory::Truesize).then(|| ReceiveMemory::new(params));
        if let Some(memory) = &memory {
            space = memory.opened;
        }
        Self {
            nxt: 0,
            edge: 0,
            beyond: None,
            fin_end: NEVER,
            unread: 0,
            queued: 0,
            offered: 0,
            paused: false,
            space,
            max_space,
            scale: 0,
            tune_space: space.min(10 * u64::from(params.mss)),
            tune_at: 0,
            tune_from: 0,
            memory,
            held_bytes: 0,
            rtt: 0,
            rtt_echo: 0,
            rtt_edge: 0,
            rtt_at: 0,
            ack_now: false,
            ends_handshake: false,
            ack_at: NEVER,
            unacked: 0,
            full: 1,
            patience: 0,
            rto: params.initial_rto,
            duplicates: 0,
            duplicates_at: 0,
            compressed: 0,
            waits_until: NEVER,
            quick: 0,
            last_data: 0,
            last_ack_sent: 0,
            ts_recent: 0,
            ecn: Ecn::Off,
            marks: None,
            seen_ect: false,
            echo: false,
            owed: None,
            sack: false,
            dsack: false,
            params: Arc::clone(params),
        }
    }

    /// The agreement of both sides; `mss` is the payload of a full segment.
    pub(crate) fn establish(
        &mut self,
        now: Nanos,
        mss: u64,
        sack: bool,
        dsack: bool,
        ecn: Ecn,
        scale: Option<u8>,
    ) {
        self.sack = sack;
        self.dsack = dsack && sack;
        self.ecn = ecn;
        if let Some(scale) = scale {
            self.scale = scale;
        } else {
            self.max_space = self.max_space.min(UNSCALED);
            self.space = self.space.min(UNSCALED);
            if let Some(memory) = &mut self.memory {
                memory.opened = memory.opened.min(UNSCALED);
            }
        }
        if let Some(memory) = &mut self.memory {
            // One segment stays in reserve (`tcp_init_buffer_space`).
            memory.opened = memory.opened.min(self.space.saturating_sub(mss).max(2 * mss));
            self.tune_space = memory.opened.min(10 * mss);
            self.tune_at = now;
            self.tune_from = self.nxt;
        }
    }

    /// The peer's SYN.
    pub(crate) fn on_syn(&mut self, seq: u64) {
        self.nxt = seq + 1;
        self.edge = self.edge.max(self.nxt);
        self.last_ack_sent = self.nxt;
    }

    /// The answer to our SYN.
    pub(crate) fn on_syn_ack(&mut self) {
        self.ack_now = true;
        self.ends_handshake = true;
    }

    /// AccECN's counters.
    #[inline]
    pub(crate) fn marks(&mut self) -> &mut MarkCounter {
        self.marks.get_or_insert_default()
    }

    /// Whether the ACK that is due does not wait for data. Linux ends the handshake before the
    /// program may write.
    #[inline]
    pub(crate) fn acks_alone(&self) -> bool {
        self.has_sack() || (self.ends_handshake && self.params.ack_rule == AckRule::Linux)
    }

    /// Bytes of payload delivered in order.
    #[inline]
    pub(crate) fn delivered(&self) -> u64 {
        self.nxt.saturating_sub(1 + u64::from(self.fin_received()))
    }

    /// Whether everything up to the peer's FIN has arrived.
    #[inline]
    pub(crate) fn fin_received(&self) -> bool {
        self.nxt >= self.fin_end
    }

    #[inline]
    pub(crate) fn ts_recent(&self) -> u32 {
        self.ts_recent
    }

    /// The timestamp to echo is that of the earliest segment not yet acknowledged.
    #[inline]
    pub(crate) fn note_timestamp(&mut self, seq: u64, value: u32) {
        if seq <= self.last_ack_sent && value.wrapping_sub(self.ts_recent) as i32 >= 0 {
            self.ts_recent = value;
        }
    }

    /// Whether the segment lies within the window, even if only at its edge.
    #[inline]
    pub(crate) fn accepts(&self, segment: &Segment) -> bool {
        segment.seq <= self.edge.max(self.nxt)
    }

    /// Data, a FIN, or a segment without either that is not where it should be.
    #[inline]
    pub(crate) fn on_segment(&mut self, now: Nanos, segment: &Segment, ce: bool, times: Times) {
        let (start, end) = (segment.seq, segment.end());
        if self.ecn == Ecn::Accecn {
            self.ack_now |= self.marks().on_segment(segment.flags, segment.len, ce);
        }
        if segment.span() == 0 {
            // A probe of the window repeats the last number.
            self.ack_now |= start + 1 == self.nxt;
            return;
        }
        if end <= self.nxt {
            if self.dsack {
                self.beyond().duplicate = Some((start, end));
            }
            self.enter_quick(MAX_QUICK);
            self.ack_now = true;
            return;
        }
        let limit = self.edge + u64::from(segment.flags.has(Flags::FIN));
        if start > self.edge || end > limit {
            self.ack_now = true;
            return;
        }
        self.note_marks(segment, ce);
        if segment.flags.has(Flags::FIN) {
            self.fin_end = end;
        }
        let in_order = start <= self.nxt;
        if in_order || self.params.ack_rule != AckRule::Linux {
            self.note_gap(now, times.rto);
        }
        if !in_order {
            let flush = self.compressed > 0 && self.beyond().forgets(start, end);
            if self.sack {
                self.open(u64::from(segment.len));
            }
            self.hold(start, end);
            if self.params.autotune {
                self.grow_memory(self.tune_space);
            }
            match self.params.ack_rule {
                AckRule::Quick => {
                    self.ack_now = true;
                    self.enter_quick(MAX_QUICK);
                }
                AckRule::Rfc5681 => self.ack_now = true,
                AckRule::Linux => {
                    if flush {
                        self.compressed = 0;
                        self.ack_at = NEVER;
                    }
                    self.acknowledge(now, times.srtt);
                    if flush && !self.ack_now {
                        self.waits_until = self.ack_at;
                        self.ack_now = true;
                    }
                }
            }
            return;
        }
        if start < self.nxt && self.dsack {
            let nxt = self.nxt;
            self.beyond().duplicate = Some((start, nxt));
            self.ack_now |= self.params.ack_rule != AckRule::Linux;
        }
        let before = self.nxt;
        let is_pushed =
            segment.flags.has(Flags::PSH) || u64::from(segment.len) < self.full.max(SMALL);
        self.open(u64::from(segment.len));
        self.nxt = end;
        if self.is_holding() {
            self.release();
        }
        self.on_progress(
            now,
            self.nxt - before,
            self.nxt - end,
            u64::from(segment.len),
            times.srtt,
        );
        // Linux: who does not answer acknowledges what was pushed as soon as the application has read
        // it (`tcp_cleanup_rbuf`).
        let is_read = self.memory.is_some() && !self.paused && !self.is_holding();
        if is_pushed
            && is_read
            && !times.answers
            && self.params.ack_rule == AckRule::Linux
            && !self.ack_now
        {
            self.ack_now = true;
            self.queued = 0;
        }
    }

    #[inline]
    fn beyond(&mut self) -> &mut Beyond {
        self.beyond.get_or_insert_default()
    }

    /// Whether anything waits beyond a hole.
    #[inline]
    fn is_holding(&self) -> bool {
        self.beyond.as_ref().is_some_and(|beyond| !beyond.held.is_empty())
    }

    /// The end of what waits beyond a hole.
    fn held_end(&self) -> Option<u64> {
        Some(self.beyond.as_ref()?.held.last()?.1)
    }

    fn hold(&mut self, start: u64, end: u64) {
        let joins = self.params.ack_rule == AckRule::Linux;
        let new = self.beyond().hold(start, end, joins);
        if new == 0 && self.dsack {
            self.beyond().duplicate = Some((start, end));
        }
        self.held_bytes += new;
    }

    /// A hole was filled, or part of one.
    fn release(&mut self) {
        let Some(beyond) = &mut self.beyond else { return };
        while let Some((start, end)) = beyond.held.first() {
            if start > self.nxt {
                break;
            }
            self.nxt = self.nxt.max(end);
            self.held_bytes -= end - start;
            beyond.held.pop_first();
        }
        beyond.forget(self.nxt);
        // RFC 5681, section 4.2. Linux: if no hole is left; see `acknowledge` for the others.
        self.ack_now |= self.params.ack_rule != AckRule::Linux || !self.is_holding();
    }

    /// `bytes` are in order now, `beyond` of them behind those of the segment that arrived.
    #[inline]
    fn on_progress(&mut self, now: Nanos, bytes: u64, beyond: u64, payload: u64, srtt: Nanos) {
        self.full = self.full.max(payload);
        if self.paused {
            self.unread += bytes;
        } else {
            // An ACK that is due already leaves before the application reads; that of a second segment
            // only if this does not lessen the window.
            self.queued = bytes;
            let at_once = self.ack_now || self.quick > 0;
            if !at_once && self.offer() < self.offered {
                self.queued = 0;
            }
        }
        self.unacked += bytes;
        if self.params.autotune {
            self.tune(now, beyond);
        }
        if self.params.ack_rule == AckRule::Linux {
            self.acknowledge(now, srtt);
            if !self.ack_now {
                // The application reads before a later ACK leaves.
                self.queued = 0;
            }
        } else if self.params.delayed_ack_timeout == 0
            || self.quick > 0
            || self.unacked >= u64::from(self.params.delayed_ack) * self.full
            || self.fin_received()
        {
            self.ack_now = true;
        } else if self.ack_at == NEVER {
            self.ack_at = jiffies::later(now, self.params.delayed_ack_timeout, self.params.hz);
        }
    }

    /// The time since the last data decides how long the next ACK may wait, and after a long silence
    /// ACKs are quick (`tcp_event_data_recv`).
    fn note_gap(&mut self, now: Nanos, rto: Nanos) {
        let gap = jiffies::between(self.last_data, now, self.params.hz);
        if self.last_data == 0 {
            self.patience = self.params.delayed_ack_timeout;
        } else if gap <= self.params.delayed_ack_timeout / 2 {
            self.patience = self.patience / 2 + self.params.delayed_ack_timeout / 2;
        } else if gap < self.patience {
            self.patience = (self.patience / 2 + gap).min(rto).min(MAX_DELAY);
        }
        if self.params.quick_ack && (self.last_data == 0 || gap > rto) {
            self.enter_quick(MAX_QUICK);
        }
        self.last_data = now;
        self.rto = rto;
    }

    /// Linux: the ACK waits, at most for a round trip, or leaves if it would soon do so anyway
    /// (`tcp_send_delayed_ack`).
    fn wait(&mut self, now: Nanos, srtt: Nanos) {
        let mut patience = self.patience;
        if patience > self.params.delayed_ack_timeout && srtt > 0 {
            patience = patience.min(srtt.max(self.params.delayed_ack_timeout));
        }
        patience = patience.min(MAX_DELAY);
        if self.ack_at != NEVER && self.ack_at <= now + patience / 4 {
            self.ack_now = true;
            return;
        }
        self.ack_at = self.ack_at.min(jiffies::later(now, patience, self.params.hz));
    }

    /// Linux: at once, later, or together with others (`__tcp_ack_snd_check`).
    fn acknowledge(&mut self, now: Nanos, srtt: Nanos) {
        if self.unacked > (u64::from(self.params.delayed_ack) - 1) * self.full
            || self.quick > 0
            || self.params.delayed_ack_timeout == 0
            || self.fin_received()
        {
            self.ack_now = true;
        }
        if self.ack_now {
            return;
        }
        if !self.is_holding() {
            self.wait(now, srtt);
            return;
        }
        if self.duplicates_at != self.nxt {
            self.duplicates_at = self.nxt;
            self.duplicates = 0;
        }
        if !self.sack || self.compressed >= COMPRESSED || self.duplicates < DUPLICATES {
            self.duplicates = (self.duplicates + 1).min(DUPLICATES);
            self.ack_now = true;
            return;
        }
        self.compressed += 1;
        if self.compressed == 1 {
            let least = if srtt > 0 { self.rtt.min(srtt) } else { self.rtt };
            let delay = (least.saturating_mul(COMPRESS_PERCENT) / 100).min(COMPRESS_DELAY);
            self.ack_at = self.ack_at.min(now + delay + COMPRESS_SLACK);
        }
    }

    fn enter_quick(&mut self, most: u32) {
        if self.params.quick_ack {
            let segments = self.space / (2 * self.full.max(536));
            let quick = (segments.max(2) as u32).min(most);
            self.quick =
                if self.params.ack_rule == AckRule::Linux { self.quick.max(quick) } else { quick };
        }
    }

    #[inline]
    fn note_marks(&mut self, segment: &Segment, ce: bool) {
        match self.ecn {
            Ecn::Off | Ecn::Accecn => {}
            Ecn::Classic => {
                if segment.flags.has(Flags::CWR) {
                    self.echo = false;
                }
                if self.params.ack_rule == AckRule::Linux {
                    self.hasten(segment, ce);
                }
                self.echo |= ce;
            }
            Ecn::Accurate | Ecn::L4s => {
                if ce != self.echo {
                    if self.unacked > 0 {
                        self.owed = Some((self.nxt, self.echo));
                        self.unacked = 0;
                        self.ack_at = NEVER;
                    }
                    // Linux reports the change at once, too (`dctcp_ece_ack_update`).
                    self.ack_now |= self.params.ack_rule == AckRule::Linux;
                    self.echo = ce;
                }
            }
        }
    }

    /// Linux: the sender's window may be very small after a mark, its answer, or a retransmission.
    fn hasten(&mut self, segment: &Segment, ce: bool) {
        self.ack_now |= segment.flags.has(Flags::CWR);
        let capable = ce || segment.flags.any(Flags::ECT0 | Flags::ECT1);
        if (ce && !self.echo) || (!capable && self.seen_ect) {
            self.enter_quick(ECN_QUICK);
        }
        self.seen_ect |= capable;
    }

    /// A round-trip time as the receiver sees it, from the timestamp `echo` in a segment of `payload`
    /// bytes. With memory, each echo and only full segments count (`tcp_rcv_rtt_measure_ts`).
    #[inline]
    pub(crate) fn note_rtt(&mut self, rtt: Nanos, echo: u32, payload: u64) {
        let known = std::mem::replace(&mut self.rtt_echo, echo) == echo;
        if self.memory.is_some() && (known || payload < self.full) {
            return;
        }
        let shorter = self.memory.is_some() && rtt < self.rtt;
        self.rtt = if self.rtt == 0 || shorter { rtt } else { self.rtt - self.rtt / 8 + rtt / 8 };
    }

    /// The delayed ACK's time has come.
    pub(crate) fn on_timer(&mut self, now: Nanos) {
        if now >= self.ack_at {
            self.ack_at = NEVER;
            self.ack_now = true;
            if self.compressed == 0 {
                // A delayed ACK that no data carried doubles the delay
                // (`tcp_delack_timer_handler`).
                self.patience = (2 * self.patience).min(self.rto).min(MAX_DELAY);
            }
        }
    }

    pub(crate) fn pause(&mut self) {
        self.paused = true;
    }

    /// The application reads all there is, and goes on reading.
    pub(crate) fn resume(&mut self) {
        self.paused = false;
        self.read(u64::MAX);
    }

    /// The application reads `bytes`; notifies the peer if that opens the window enough.
    pub(crate) fn read(&mut self, bytes: u64) {
        self.unread = self.unread.saturating_sub(bytes);
        let announced = self.edge.saturating_sub(self.nxt);
        let free = self.free();
        // RFC 1122, 4.2.3.3: half the buffer or a full segment, the smaller one.
        if free >= announced + (self.space / 2).min(2 * self.full) && announced < 2 * self.full {
            self.ack_now = true;
        }
    }

    /// The acknowledgement and window of a segment that is about to leave.
    #[inline]
    pub(crate) fn stamp(&mut self, segment: &mut Segment) {
        segment.flags |= Flags::ACK;
        segment.ack = self.nxt;
        let announced = self.edge.saturating_sub(self.nxt);
        if self.memory.is_some() && self.scale > 0 {
            let window = self.offer().max(announced.next_multiple_of(1 << self.scale));
            self.edge = self.nxt + window;
            self.offered = window;
        } else {
            self.widen(announced);
        }
        segment.window = self.edge.saturating_sub(self.nxt).min(u64::from(u32::MAX)) as u32;
        if self.ecn == Ecn::Accecn {
            segment.flags |= self.marks().stamp(segment.len == 0);
        } else if self.echo {
            segment.flags |= Flags::ECE;
        }
        self.ack_now = false;
        self.queued = 0;
        self.ends_handshake = false;
        self.ack_at = NEVER;
        self.unacked = 0;
        self.compressed = 0;
        if self.waits_until != NEVER {
            self.compressed = 1;
            self.ack_at = std::mem::replace(&mut self.waits_until, NEVER);
        }
        self.last_ack_sent = self.nxt;
        if self.quick > 0 {
            self.quick -= 1;
        }
    }

    /// Moves the window's right edge, which is `announced` bytes away, to what is free. No silly windows: it moves by a
    /// segment at least, unless nothing is being held back.
    fn widen(&mut self, announced: u64) {
        let free = self.free();
        if free > announced
            && (self.unread == 0 || free >= announced + self.full.min(self.space / 2))
        {
            let granule = 1u64 << self.scale;
            let window = if free >= granule { free & !(granule - 1) } else { free };
            self.edge = self.edge.max(self.nxt + window);
        }
    }

    /// The window of a SYN, which is never scaled. With memory it is whole segments of `mss` bytes
    /// (`tcp_select_initial_window`).
    pub(crate) fn stamp_syn(&mut self, segment: &mut Segment, mss: u64) {
        let mut window = self.space;
        if self.memory.is_some() && window > mss {
            window -= window % mss;
        }
        window = window.min(UNSCALED);
        segment.window = window as u32;
        self.edge = self.edge.max(self.nxt + window);
        self.ack_now = false;
    }

    /// The window as seen from an earlier acknowledgement.
    pub(crate) fn window_from(&self, ack: u64) -> u32 {
        self.edge.saturating_sub(ack).min(u64::from(u32::MAX)) as u32
    }

    /// The ACK that a change of marks owes for what came before.
    #[inline]
    pub(crate) fn take_owed(&mut self) -> Option<(u64, bool)> {
        self.owed.take()
    }

    /// Whether there is anything to say in SACK blocks.
    #[inline]
    pub(crate) fn has_sack(&self) -> bool {
        let told = |beyond: &Beyond| beyond.duplicate.is_some() || beyond.recent_count > 0;
        self.sack && self.beyond.as_deref().is_some_and(told)
    }

    /// Adds SACK blocks: a duplicate first, then the newest.
    pub(crate) fn add_sack(&mut self, segment: &mut Segment) {
        let Some(beyond) = &mut self.beyond else { return };
        if let Some((start, end)) = beyond.duplicate.take() {
            segment.push_sack(start, end);
            // RFC 2883: a duplicate within a block is followed by that block.
            if let Some((s, e)) = beyond.held.holding(start) {
                segment.push_sack(s, e);
                for &block in beyond.blocks() {
                    if block != (s, e) {
                        segment.push_sack(block.0, block.1);
                    }
                }
                return;
            }
        }
        for &(start, end) in beyond.blocks() {
            segment.push_sack(start, end);
        }
    }
}
