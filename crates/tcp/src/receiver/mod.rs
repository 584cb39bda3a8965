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

mod acks;
mod beyond;
mod echo;
mod memory;
mod tuning;
mod window;

use self::acks::{Acks, MAX_QUICK};
use self::beyond::Beyond;
use self::echo::Echo;
use self::memory::{Buffer, SMALL, UNSCALED};
use self::tuning::{RoundTrip, Tuning};
use crate::accecn::MarkCounter;
use crate::params::{AckRule, Ecn, Params};
use crate::segment::{Flags, Segment};
use sojourn_units::{Nanos, jiffies};
use std::sync::Arc;

/// A time that is never reached.
pub(crate) use sojourn_units::NEVER;
/// Number of segments that are acknowledged singly, beginning with the first marked segment or with
/// a retransmission without ECT.
const ECN_QUICK: u32 = 2;
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

/// Timestamps of the peer.
#[derive(Clone, Copy, Debug, Default)]
struct Timestamps {
    /// The timestamp to echo (`TS.Recent`).
    recent: u32,
    /// The echoed timestamp of the newest sample of the round-trip time.
    sampled: u32,
    last_ack_sent: u64,
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
    /// The window announced last, in bytes; kept only with `memory truesize` and window scaling.
    offered: u64,
    /// Payload of the largest segment.
    full: u64,
    buffer: Buffer,
    tuning: Tuning,
    rtt: RoundTrip,
    pub(crate) acks: Acks,
    timestamps: Timestamps,
    echo: Echo,
    is_paused: bool,
    scale: u8,
    sack: bool,
    dsack: bool,
}

impl Receiver {
    pub(crate) fn new(params: &Arc<Params>) -> Self {
        let buffer = Buffer::new(params);
        Self {
            nxt: 0,
            edge: 0,
            params: Arc::clone(params),
            beyond: None,
            fin_end: NEVER,
            offered: 0,
            full: 1,
            tuning: Tuning { read: buffer.space.min(10 * u64::from(params.mss)), at: 0, from: 0 },
            buffer,
            rtt: RoundTrip::default(),
            acks: Acks::new(params),
            timestamps: Timestamps::default(),
            echo: Echo::new(),
            is_paused: false,
            scale: 0,
            sack: false,
            dsack: false,
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
        self.echo.ecn = ecn;
        self.scale = scale.unwrap_or(0);
        self.buffer.establish(mss, scale.is_some());
        if let Some(memory) = &self.buffer.memory {
            self.tuning = Tuning { read: memory.opened.min(10 * mss), at: now, from: self.nxt };
        }
    }

    /// Takes the peer's SYN, which has the sequence number `seq`.
    pub(crate) fn on_syn(&mut self, seq: u64) {
        self.nxt = seq + 1;
        self.edge = self.edge.max(self.nxt);
        self.timestamps.last_ack_sent = self.nxt;
    }

    /// Takes the peer's SYN-ACK.
    pub(crate) fn on_syn_ack(&mut self) {
        self.acks.now = true;
        self.acks.ends_handshake = true;
    }

    /// Returns AccECN's counters.
    pub(crate) fn marks(&mut self) -> &mut MarkCounter {
        self.echo.marks()
    }

    /// Returns whether the ACK that is due leaves alone, before any data: with SACK blocks, or as
    /// the last ACK of a handshake, which Linux sends before the application can write.
    pub(crate) fn acks_alone(&self) -> bool {
        self.has_sack() || (self.acks.ends_handshake && self.params.ack_rule == AckRule::Linux)
    }

    /// Returns the bytes of payload delivered in order.
    pub(crate) fn delivered(&self) -> u64 {
        self.nxt.saturating_sub(1 + u64::from(self.fin_received()))
    }

    /// Returns the bytes of payload that arrived, in order or not, each once.
    pub(crate) fn arrived(&self) -> u64 {
        // Held data may end with the FIN, which is not payload.
        let fin = self.fin_end != NEVER;
        (self.nxt + self.buffer.held).saturating_sub(1 + u64::from(fin))
    }

    /// Returns whether all data and the peer's FIN have arrived.
    pub(crate) fn fin_received(&self) -> bool {
        self.nxt >= self.fin_end
    }

    pub(crate) fn ts_recent(&self) -> u32 {
        self.timestamps.recent
    }

    /// Notes the timestamp `value` of a segment. The echoed timestamp is that of the earliest
    /// segment not yet acknowledged.
    #[inline]
    pub(crate) fn note_timestamp(&mut self, seq: u64, value: u32) {
        if seq <= self.timestamps.last_ack_sent
            && value.wrapping_sub(self.timestamps.recent) as i32 >= 0
        {
            self.timestamps.recent = value;
        }
    }

    /// Returns whether the segment begins at or before the window's right edge.
    pub(crate) fn accepts(&self, segment: &Segment) -> bool {
        segment.seq <= self.edge.max(self.nxt)
    }

    /// Takes a segment, marked if `ce`. A segment without data and FIN is acknowledged only if it
    /// probes the window.
    #[inline]
    pub(crate) fn on_segment(&mut self, now: Nanos, segment: &Segment, ce: bool, times: Times) {
        let (start, end) = (segment.seq, segment.end());
        if self.echo.ecn == Ecn::Accecn {
            self.acks.now |= self.marks().on_segment(segment.flags, segment.len, ce);
        }
        if segment.span() == 0 {
            // A window probe has the sequence number before the next expected one.
            self.acks.now |= start + 1 == self.nxt;
            return;
        }
        if end <= self.nxt {
            if self.dsack {
                self.beyond().duplicate = Some((start, end));
            }
            self.enter_quick(MAX_QUICK);
            self.acks.now = true;
            return;
        }
        let limit = self.edge + u64::from(segment.flags.has(Flags::FIN));
        if start > self.edge || end > limit {
            self.acks.now = true;
            return;
        }
        let is_linux = self.params.ack_rule == AckRule::Linux;
        if self.echo.on_segment(&mut self.acks, self.nxt, segment, ce, is_linux) {
            self.enter_quick(ECN_QUICK);
        }
        if segment.flags.has(Flags::FIN) {
            self.fin_end = end;
        }
        let in_order = start <= self.nxt;
        if (in_order || !is_linux) && self.acks.note_gap(&self.params, now, times.rto) {
            self.enter_quick(MAX_QUICK);
        }
        if !in_order {
            return self.hold(now, segment, times.srtt);
        }
        if start < self.nxt && self.dsack {
            let nxt = self.nxt;
            self.beyond().duplicate = Some((start, nxt));
            self.acks.now |= !is_linux;
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
        let is_read = self.buffer.memory.is_some() && !self.is_paused && !self.is_holding();
        if is_pushed && is_read && !times.answers && is_linux && !self.acks.now {
            self.acks.now = true;
            self.buffer.queued = 0;
        }
    }

    fn beyond(&mut self) -> &mut Beyond {
        self.beyond.get_or_insert_default()
    }

    /// Returns whether data beyond a hole is stored.
    fn is_holding(&self) -> bool {
        self.beyond.as_ref().is_some_and(|beyond| !beyond.held.is_empty())
    }

    /// Returns the end of the data stored beyond holes; `None` without such data.
    fn held_end(&self) -> Option<u64> {
        Some(self.beyond.as_ref()?.held.last()?.1)
    }

    /// Stores and acknowledges a segment beyond a hole.
    fn hold(&mut self, now: Nanos, segment: &Segment, srtt: Nanos) {
        let (start, end) = (segment.seq, segment.end());
        let flush = self.acks.compressed > 0 && self.beyond().forgets(start, end);
        if self.sack {
            self.open(u64::from(segment.len));
        }
        let is_linux = self.params.ack_rule == AckRule::Linux;
        let capacity = self.capacity();
        self.beyond().choose_frame(start, end, capacity);
        let new = self.beyond().hold(start, end, is_linux);
        if new == 0 && self.dsack {
            self.beyond().duplicate = Some((start, end));
        }
        self.buffer.held += new;
        if self.params.autotune {
            self.grow_memory(self.tuning.read);
        }
        match self.params.ack_rule {
            AckRule::Quick => {
                self.acks.now = true;
                self.enter_quick(MAX_QUICK);
            }
            AckRule::Rfc5681 => self.acks.now = true,
            AckRule::Linux => {
                if flush {
                    self.acks.compressed = 0;
                    self.acks.at = NEVER;
                }
                self.acknowledge(now, srtt);
                if flush {
                    self.acks.split();
                }
            }
        }
    }

    /// Delivers the stored data that `nxt` has reached.
    fn release(&mut self) {
        let Some(beyond) = &mut self.beyond else { return };
        while let Some((start, end)) = beyond.held.first() {
            if start > self.nxt {
                break;
            }
            self.nxt = self.nxt.max(end);
            self.buffer.held -= end - start;
            beyond.held.pop_first();
        }
        beyond.forget(self.nxt);
        // RFC 5681, section 4.2: an ACK is due at once when a hole is filled. In Linux this holds
        // only for the last hole; otherwise `acknowledge` decides.
        self.acks.now |= self.params.ack_rule != AckRule::Linux || !self.is_holding();
    }

    /// Takes `bytes` bytes newly in order. The last `beyond` of them follow the segment that
    /// arrived, which has `payload` bytes.
    #[inline]
    fn on_progress(&mut self, now: Nanos, bytes: u64, beyond: u64, payload: u64, srtt: Nanos) {
        self.full = self.full.max(payload);
        if self.is_paused {
            self.buffer.unread += bytes;
        } else {
            // With `memory truesize`, an ACK that is due at once leaves before the application
            // reads. So does the delayed ACK of every second segment, unless the announced window
            // would shrink.
            self.buffer.queued = bytes;
            let at_once = self.acks.now || self.acks.quick > 0 || self.is_holding();
            if !at_once && self.offer() < self.offered {
                self.buffer.queued = 0;
            }
        }
        self.acks.unacked += bytes;
        if self.params.autotune {
            self.tune(now, beyond);
        }
        if self.params.ack_rule == AckRule::Linux {
            self.acknowledge(now, srtt);
            if !self.acks.now {
                // The application reads before a later ACK leaves.
                self.buffer.queued = 0;
            }
        } else if self.params.delayed_ack_timeout == 0
            || self.acks.quick > 0
            || self.acks.unacked >= u64::from(self.params.delayed_ack) * self.full
            || self.fin_received()
        {
            self.acks.now = true;
        } else if self.acks.at == NEVER {
            self.acks.at = jiffies::later(now, self.params.delayed_ack_timeout, self.params.hz);
        }
    }

    /// Linux: decides whether the ACK leaves at once, after a delay, or for several segments
    /// together (`__tcp_ack_snd_check`).
    fn acknowledge(&mut self, now: Nanos, srtt: Nanos) {
        if self.acks.unacked > (u64::from(self.params.delayed_ack) - 1) * self.full
            || self.acks.quick > 0
            || self.params.delayed_ack_timeout == 0
            || self.fin_received()
        {
            self.acks.now = true;
        }
        if self.acks.now {
            return;
        }
        if self.is_holding() {
            let rtt = if srtt > 0 { self.rtt.time.min(srtt) } else { self.rtt.time };
            self.acks.compress(now, self.nxt, self.sack, rtt);
        } else {
            self.acks.wait(&self.params, now, srtt);
        }
    }

    fn enter_quick(&mut self, most: u32) {
        let segments = self.buffer.space / (2 * self.full.max(536));
        self.acks.enter_quick(&self.params, segments, most);
    }

    /// Takes a round-trip time from the timestamp `echo` in a segment of `payload` bytes. With
    /// `memory truesize`, a segment counts only if it is full and the first one with its echo
    /// (`tcp_rcv_rtt_measure_ts`).
    #[inline]
    pub(crate) fn note_rtt(&mut self, rtt: Nanos, echo: u32, payload: u64) {
        let is_known = std::mem::replace(&mut self.timestamps.sampled, echo) == echo;
        let by_memory = self.buffer.memory.is_some();
        if !by_memory || !(is_known || payload < self.full) {
            self.rtt.add(rtt, by_memory);
        }
    }

    /// Runs the timer of the delayed ACK.
    pub(crate) fn on_timer(&mut self, now: Nanos) {
        self.acks.on_timer(now);
    }

    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
    }

    /// The application reads all stored data, and later data as it arrives.
    pub(crate) fn resume(&mut self) {
        self.is_paused = false;
        self.read(u64::MAX);
    }

    /// The application reads `bytes` bytes. If this opens a small window enough, an ACK is due.
    pub(crate) fn read(&mut self, bytes: u64) {
        self.buffer.unread = self.buffer.unread.saturating_sub(bytes);
        let announced = self.edge.saturating_sub(self.nxt);
        let free = self.free();
        // RFC 1122, 4.2.3.3: if the announced window is below two full segments, announce it again
        // when it has opened by two full segments, or by half the buffer if this is less.
        if free >= announced + (self.buffer.space / 2).min(2 * self.full)
            && announced < 2 * self.full
        {
            self.acks.now = true;
        }
    }

    /// Sets the acknowledgement, window and ECN flags of a segment that is about to leave.
    #[inline]
    pub(crate) fn stamp(&mut self, segment: &mut Segment) {
        segment.flags |= Flags::ACK;
        segment.ack = self.nxt;
        let announced = self.edge.saturating_sub(self.nxt);
        if self.buffer.memory.is_some() && self.scale > 0 {
            let window = self.offer().max(announced.next_multiple_of(1 << self.scale));
            self.edge = self.nxt + window;
            self.offered = window;
        } else {
            self.widen(announced);
        }
        segment.window = self.edge.saturating_sub(self.nxt).min(u64::from(u32::MAX)) as u32;
        segment.flags |= self.echo.flags(segment.len == 0);
        self.buffer.queued = 0;
        self.timestamps.last_ack_sent = self.nxt;
        self.acks.on_sent();
    }

    /// Moves the window's right edge, `announced` bytes after `nxt`, to the end of the free buffer.
    /// To avoid silly windows, it moves by at least a full segment or half the buffer, unless all
    /// data has been read.
    fn widen(&mut self, announced: u64) {
        let free = self.free();
        if free > announced
            && (self.buffer.unread == 0 || free >= announced + self.full.min(self.buffer.space / 2))
        {
            let granule = 1u64 << self.scale;
            let window = if free >= granule { free & !(granule - 1) } else { free };
            self.edge = self.edge.max(self.nxt + window);
        }
    }

    /// Sets the window of a SYN, which is never scaled. With `memory truesize`, a window above
    /// `mss` bytes is first rounded down to a multiple of `mss` (`tcp_select_initial_window`).
    pub(crate) fn stamp_syn(&mut self, segment: &mut Segment, mss: u64) {
        let mut window = self.buffer.space;
        if self.buffer.memory.is_some() && window > mss {
            window -= window % mss;
        }
        window = window.min(UNSCALED);
        segment.window = window as u32;
        self.edge = self.edge.max(self.nxt + window);
        self.acks.now = false;
    }

    /// Returns the number of bytes from `ack` to the window's right edge.
    pub(crate) fn window_from(&self, ack: u64) -> u32 {
        self.edge.saturating_sub(ack).min(u64::from(u32::MAX)) as u32
    }

    /// Returns the ACK that is due for the segments before a change of marks: its number, and
    /// whether it carries ECE.
    pub(crate) fn take_owed(&mut self) -> Option<(u64, bool)> {
        self.echo.owed.take()
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
