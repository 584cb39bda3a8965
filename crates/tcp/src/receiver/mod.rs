//! The receiving half: reassembly, acknowledgements, the window.
//!
//! Source: RFC 9293 (acceptance, window), RFC 5681 section 4.2 and RFC 1122 (delayed ACKs),
//! RFC 2018 and RFC 2883 (SACK and D-SACK blocks), RFC 3168 and RFC 8257 (echo of marks), RFC 7323
//! (which timestamp to echo); Linux: quick ACKs, the compression of SACKs (`__tcp_ack_snd_check`),
//! the growth of the window.
//! Idea: all data before `nxt` is delivered; data beyond it is kept as ranges. The acknowledgement
//! of data in order may wait for further segments. Data out of order is acknowledged at once,
//! except that Linux's rule compresses these acknowledgements.
//! Invariants: `nxt` and the window's right edge never go back; no data beyond that edge is
//! accepted; at most one ACK for a change of marks is owed at a time.

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

/// A time that is never reached.
pub(crate) use sojourn_units::NEVER;
/// Longest delay of an ACK by Linux's rule (`TCP_DELACK_MAX`).
const MAX_DELAY: Nanos = 200 * MILLISECOND;
/// Maximum number of segments that quick ACKs acknowledge singly (`TCP_MAX_QUICKACKS`).
const MAX_QUICK: u32 = 16;
/// Number of segments that are acknowledged singly, beginning with the first marked segment or with
/// a retransmission without ECT.
const ECN_QUICK: u32 = 2;
/// Number of segments beyond a hole whose ACK does not wait (`TCP_FASTRETRANS_THRESH`).
const DUPLICATES: u8 = 3;
/// Maximum number of segments beyond a hole that wait for an ACK (`net.ipv4.tcp_comp_sack_nr`).
const COMPRESSED: u8 = 44;
/// Longest wait of segments beyond a hole for their acknowledgement, in percent of the round-trip
/// time (`net.ipv4.tcp_comp_sack_rtt_percent`).
const COMPRESS_PERCENT: Nanos = 33;
/// Limit of the wait of segments beyond a hole, at any RTT (`net.ipv4.tcp_comp_sack_delay_ns`).
const COMPRESS_DELAY: Nanos = MILLISECOND;
/// Lateness of the timer of [`COMPRESS_DELAY`] (`net.ipv4.tcp_comp_sack_slack_ns`).
const COMPRESS_SLACK: Nanos = 10 * MICROSECOND;
/// Initial window with autotuning, and largest window without window scaling, in bytes.
const UNSCALED: u64 = 65_535;

/// The sender's state that the receiver uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The retransmission timeout.
    pub(crate) rto: Nanos,
    /// The smoothed round-trip time, 0 without a sample.
    pub(crate) srtt: Nanos,
    /// Whether this end has sent data too.
    pub(crate) answers: bool,
}

/// The receiver's state.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Next sequence number expected.
    pub(crate) nxt: u64,
    /// Right edge of the announced window, a sequence number.
    edge: u64,
    params: Arc<Params>,
    /// Data beyond holes, and duplicates; allocated at the first hole or duplicate.
    beyond: Option<Box<Beyond>>,
    /// Sequence number after the peer's FIN; [`NEVER`] until the FIN arrives.
    fin_end: u64,

    /// Bytes in order that the application has not read.
    unread: u64,
    /// Bytes that the application reads only after the ACK that is due has left.
    queued: u64,
    /// The window announced last, in bytes; kept only with `memory truesize` and window scaling.
    offered: u64,
    paused: bool,
    /// The window in bytes that the empty receive buffer allows at present.
    space: u64,
    /// The greatest value of `space`.
    max_space: u64,
    scale: u8,
    /// Autotuning: maximum number of bytes that the application has read in a round.
    tune_space: u64,
    /// Start of the present round.
    tune_at: Nanos,
    /// Sequence number at the start of the present round.
    tune_from: u64,
    memory: Option<ReceiveMemory>,
    /// Bytes received beyond a hole.
    held_bytes: u64,
    /// Round-trip time by the receiver's estimate; 0 without a sample.
    rtt: Nanos,
    /// The echoed timestamp of the newest sample of `rtt`.
    rtt_echo: u32,
    rtt_edge: u64,
    rtt_at: Nanos,

    /// An ACK is due at once.
    pub(crate) ack_now: bool,
    /// The ACK that is due ends the handshake.
    ends_handshake: bool,
    /// When the delayed ACK is due; [`NEVER`] without one.
    pub(crate) ack_at: Nanos,
    unacked: u64,
    full: u64,
    /// Linux: present delay of an ACK (`ato`).
    patience: Nanos,
    /// The retransmission timeout, which `patience` does not exceed.
    rto: Nanos,
    /// Number of segments beyond the hole at `duplicates_at` that were acknowledged at once, 3 at
    /// most.
    duplicates: u8,
    duplicates_at: u64,
    /// Number of segments beyond a hole that wait for one acknowledgement.
    compressed: u8,
    /// When the newest segment is to be acknowledged, if the next acknowledgement is for earlier
    /// segments only; else [`NEVER`].
    waits_until: Nanos,
    quick: u32,
    last_data: Nanos,
    last_ack_sent: u64,

    ts_recent: u32,
    ecn: Ecn,
    /// AccECN's counters, if AccECN is in use.
    marks: Option<Box<MarkCounter>>,
    /// An ECN-capable segment has arrived.
    seen_ect: bool,
    /// Classic ECN: whether segments carry ECE, from a mark until CWR. Exact echo: whether the
    /// newest segment was marked.
    echo: bool,
    /// Exact echo: an ACK due for the segments before a change of marks: its number, and whether it
    /// carries ECE.
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

    /// Takes the results of the handshake. `mss` is the payload of a full segment in bytes; `scale`
    /// is the shift of the window, `None` without window scaling.
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

    /// Takes the peer's SYN, which has the sequence number `seq`.
    pub(crate) fn on_syn(&mut self, seq: u64) {
        self.nxt = seq + 1;
        self.edge = self.edge.max(self.nxt);
        self.last_ack_sent = self.nxt;
    }

    /// Takes the peer's SYN-ACK.
    pub(crate) fn on_syn_ack(&mut self) {
        self.ack_now = true;
        self.ends_handshake = true;
    }

    /// Returns AccECN's counters.
    #[inline]
    pub(crate) fn marks(&mut self) -> &mut MarkCounter {
        self.marks.get_or_insert_default()
    }

    /// Returns whether the ACK that is due leaves alone, before any data: with SACK blocks, or as
    /// the last ACK of a handshake, which Linux sends before the application can write.
    #[inline]
    pub(crate) fn acks_alone(&self) -> bool {
        self.has_sack() || (self.ends_handshake && self.params.ack_rule == AckRule::Linux)
    }

    /// Returns the bytes of payload delivered in order.
    #[inline]
    pub(crate) fn delivered(&self) -> u64 {
        self.nxt.saturating_sub(1 + u64::from(self.fin_received()))
    }

    /// Returns whether all data and the peer's FIN have arrived.
    #[inline]
    pub(crate) fn fin_received(&self) -> bool {
        self.nxt >= self.fin_end
    }

    #[inline]
    pub(crate) fn ts_recent(&self) -> u32 {
        self.ts_recent
    }

    /// Notes the timestamp `value` of a segment. The echoed timestamp is that of the earliest
    /// segment not yet acknowledged.
    #[inline]
    pub(crate) fn note_timestamp(&mut self, seq: u64, value: u32) {
        if seq <= self.last_ack_sent && value.wrapping_sub(self.ts_recent) as i32 >= 0 {
            self.ts_recent = value;
        }
    }

    /// Returns whether the segment begins at or before the window's right edge.
    #[inline]
    pub(crate) fn accepts(&self, segment: &Segment) -> bool {
        segment.seq <= self.edge.max(self.nxt)
    }

    /// Takes a segment, marked if `ce`. A segment without data and FIN is acknowledged only if it
    /// probes the window.
    #[inline]
    pub(crate) fn on_segment(&mut self, now: Nanos, segment: &Segment, ce: bool, times: Times) {
        let (start, end) = (segment.seq, segment.end());
        if self.ecn == Ecn::Accecn {
            self.ack_now |= self.marks().on_segment(segment.flags, segment.len, ce);
        }
        if segment.span() == 0 {
            // A window probe has the sequence number before the next expected one.
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
        // Linux: an end that has sent no data acknowledges a pushed or short segment as soon as the
        // application has read it (`tcp_cleanup_rbuf`).
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

    /// Returns whether data beyond a hole is stored.
    #[inline]
    fn is_holding(&self) -> bool {
        self.beyond.as_ref().is_some_and(|beyond| !beyond.held.is_empty())
    }

    /// Returns the end of the data stored beyond holes; `None` without such data.
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

    /// Delivers the stored data that `nxt` has reached.
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
        // RFC 5681, section 4.2: an ACK is due at once when a hole is filled. In Linux this holds
        // only for the last hole; otherwise `acknowledge` decides.
        self.ack_now |= self.params.ack_rule != AckRule::Linux || !self.is_holding();
    }

    /// Takes `bytes` bytes newly in order. The last `beyond` of them follow the segment that
    /// arrived, which has `payload` bytes.
    #[inline]
    fn on_progress(&mut self, now: Nanos, bytes: u64, beyond: u64, payload: u64, srtt: Nanos) {
        self.full = self.full.max(payload);
        if self.paused {
            self.unread += bytes;
        } else {
            // With `memory truesize`, an ACK that is due at once leaves before the application
            // reads. So does the delayed ACK of every second segment, unless the announced window
            // would shrink.
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

    /// Sets the delay of the next ACK by the time since the last data. With `quick_ack`, ACKs are
    /// quick after a silence longer than the retransmission timeout (`tcp_event_data_recv`).
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

    /// Linux: delays the ACK, or makes it due at once if an earlier delay ends within a quarter of
    /// the new one (`tcp_send_delayed_ack`).
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

    /// Linux: decides whether the ACK leaves at once, after a delay, or for several segments
    /// together (`__tcp_ack_snd_check`).
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
                    // Linux also reports the new state at once (`dctcp_ece_ack_update`).
                    self.ack_now |= self.params.ack_rule == AckRule::Linux;
                    self.echo = ce;
                }
            }
        }
    }

    /// Linux: acknowledges CWR at once, and two segments singly, beginning with a first mark or a
    /// retransmission, since the sender's window may be very small.
    fn hasten(&mut self, segment: &Segment, ce: bool) {
        self.ack_now |= segment.flags.has(Flags::CWR);
        let capable = ce || segment.flags.any(Flags::ECT0 | Flags::ECT1);
        if (ce && !self.echo) || (!capable && self.seen_ect) {
            self.enter_quick(ECN_QUICK);
        }
        self.seen_ect |= capable;
    }

    /// Takes a round-trip time from the timestamp `echo` in a segment of `payload` bytes. With
    /// `memory truesize`, a segment counts only if it is full and the first one with its echo
    /// (`tcp_rcv_rtt_measure_ts`).
    #[inline]
    pub(crate) fn note_rtt(&mut self, rtt: Nanos, echo: u32, payload: u64) {
        let known = std::mem::replace(&mut self.rtt_echo, echo) == echo;
        if self.memory.is_some() && (known || payload < self.full) {
            return;
        }
        let shorter = self.memory.is_some() && rtt < self.rtt;
        self.rtt = if self.rtt == 0 || shorter { rtt } else { self.rtt - self.rtt / 8 + rtt / 8 };
    }

    /// Runs the timer of the delayed ACK.
    pub(crate) fn on_timer(&mut self, now: Nanos) {
        if now >= self.ack_at {
            self.ack_at = NEVER;
            self.ack_now = true;
            if self.compressed == 0 {
                // A delayed ACK that leaves without data doubles the delay
                // (`tcp_delack_timer_handler`).
                self.patience = (2 * self.patience).min(self.rto).min(MAX_DELAY);
            }
        }
    }

    pub(crate) fn pause(&mut self) {
        self.paused = true;
    }

    /// The application reads all stored data, and later data as it arrives.
    pub(crate) fn resume(&mut self) {
        self.paused = false;
        self.read(u64::MAX);
    }

    /// The application reads `bytes` bytes. If this opens a small window enough, an ACK is due.
    pub(crate) fn read(&mut self, bytes: u64) {
        self.unread = self.unread.saturating_sub(bytes);
        let announced = self.edge.saturating_sub(self.nxt);
        let free = self.free();
        // RFC 1122, 4.2.3.3: if the announced window is below two full segments, announce it again
        // when it has opened by two full segments, or by half the buffer if this is less.
        if free >= announced + (self.space / 2).min(2 * self.full) && announced < 2 * self.full {
            self.ack_now = true;
        }
    }

    /// Sets the acknowledgement, window and ECN flags of a segment that is about to leave.
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

    /// Moves the window's right edge, `announced` bytes after `nxt`, to the end of the free buffer.
    /// To avoid silly windows, it moves by at least a full segment or half the buffer, unless all
    /// data has been read.
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

    /// Sets the window of a SYN, which is never scaled. With `memory truesize`, a window above
    /// `mss` bytes is first rounded down to a multiple of `mss` (`tcp_select_initial_window`).
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

    /// Returns the number of bytes from `ack` to the window's right edge.
    pub(crate) fn window_from(&self, ack: u64) -> u32 {
        self.edge.saturating_sub(ack).min(u64::from(u32::MAX)) as u32
    }

    /// Returns the ACK that is due for the segments before a change of marks: its number, and
    /// whether it carries ECE.
    #[inline]
    pub(crate) fn take_owed(&mut self) -> Option<(u64, bool)> {
        self.owed.take()
    }

    /// Returns whether there are SACK blocks to send.
    #[inline]
    pub(crate) fn has_sack(&self) -> bool {
        let has_block = |beyond: &Beyond| beyond.duplicate.is_some() || beyond.recent_count > 0;
        self.sack && self.beyond.as_deref().is_some_and(has_block)
    }

    /// Adds SACK blocks to `segment`: that of a duplicate, the block that contains the duplicate,
    /// and the others from the newest on.
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
