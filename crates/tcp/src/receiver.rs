//! The receiving half: reassembly, acknowledgements, the window.
//!
//! Source: RFC 9293 (acceptance, window), RFC 5681 section 4.2 and RFC 1122 (delayed ACKs),
//! RFC 2018 and RFC 2883 (SACK and D-SACK blocks), RFC 3168 and RFC 8257 (echo of marks), RFC 7323
//! (which timestamp to echo); quick ACKs and the growth of the window after Linux.
//! Idea: everything before `nxt` is delivered, what lies beyond is kept as ranges. Data in order
//! may wait for company, anything out of the ordinary is acknowledged at once.
//! Invariants: `nxt` and the window's right edge never go back; no data beyond that edge is taken;
//! at most one segment's ACK is owed at a time.

use crate::params::{Ecn, Params};
use crate::ranges::Ranges;
use crate::segment::{Flags, MAX_BLOCKS, Segment};
use sojourn_units::{MILLISECOND, Nanos};

/// Never.
pub(crate) use sojourn_units::NEVER;
/// Linux's `TCP_MAX_QUICKACKS`.
const MAX_QUICK: u32 = 16;
/// Where an automatic window starts, and the most that can be said without scaling.
const UNSCALED: u64 = 65_535;

/// The receiver's state.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Next number expected.
    pub(crate) nxt: u64,
    /// Right edge of the window announced.
    edge: u64,
    held: Ranges,
    /// Blocks reported last, newest first (RFC 2018, section 4).
    recent: [(u64, u64); MAX_BLOCKS],
    recent_count: u8,
    duplicate: Option<(u64, u64)>,
    /// Number after the peer's FIN, once seen.
    fin_end: Option<u64>,

    /// Bytes the application has not read.
    unread: u64,
    paused: bool,
    /// The window the application's buffer stands for, now and at most.
    space: u64,
    max_space: u64,
    scale: u8,
    autotune: bool,
    /// Autotuning: bytes read in the last round, the round's start and what was read until then.
    tune_space: u64,
    tune_at: Nanos,
    tune_from: u64,
    rtt: Nanos,
    rtt_edge: u64,
    rtt_at: Nanos,

    /// An ACK is due at once.
    pub(crate) ack_now: bool,
    /// When the delayed ACK is due.
    pub(crate) ack_at: Nanos,
    unacked: u64,
    full: u64,
    every: u64,
    delay: Nanos,
    quick_enabled: bool,
    quick: u32,
    last_data: Nanos,
    last_ack_sent: u64,

    ts_recent: u32,
    ecn: Ecn,
    /// Classic: echo until CWR. Accurate: the last segment was marked.
    echo: bool,
    /// Accurate: an ACK of what came before the change, with the echo it needs.
    owed: Option<(u64, bool)>,

    sack: bool,
    dsack: bool,
}

impl Receiver {
    pub(crate) fn new(params: &Params) -> Self {
        let max_space = params.receive_window;
        let space = if params.autotune { max_space.min(UNSCALED) } else { max_space };
        Self {
            nxt: 0,
            edge: 0,
            held: Ranges::default(),
            recent: [(0, 0); MAX_BLOCKS],
            recent_count: 0,
            duplicate: None,
            fin_end: None,
            unread: 0,
            paused: false,
            space,
            max_space,
            scale: 0,
            autotune: params.autotune,
            tune_space: space.min(10 * u64::from(params.mss)),
            tune_at: 0,
            tune_from: 0,
            rtt: 0,
            rtt_edge: 0,
            rtt_at: 0,
            ack_now: false,
            ack_at: NEVER,
            unacked: 0,
            full: 1,
            every: u64::from(params.delayed_ack),
            delay: params.delayed_ack_timeout,
            quick_enabled: params.quick_ack,
            quick: 0,
            last_data: 0,
            last_ack_sent: 0,
            ts_recent: 0,
            ecn: Ecn::Off,
            echo: false,
            owed: None,
            sack: false,
            dsack: false,
        }
    }

    /// What both sides agreed on.
    pub(crate) fn establish(&mut self, sack: bool, dsack: bool, ecn: Ecn, scale: Option<u8>) {
        self.sack = sack;
        self.dsack = dsack && sack;
        self.ecn = ecn;
        if let Some(scale) = scale {
            self.scale = scale;
        } else {
            self.max_space = self.max_space.min(UNSCALED);
            self.space = self.space.min(UNSCALED);
        }
    }

    /// The peer's SYN.
    pub(crate) fn on_syn(&mut self, seq: u64) {
        self.nxt = seq + 1;
        self.edge = self.edge.max(self.nxt);
        self.last_ack_sent = self.nxt;
    }

    /// Bytes of payload delivered in order.
    #[inline]
    pub(crate) fn delivered(&self) -> u64 {
        self.nxt.saturating_sub(1 + u64::from(self.fin_received()))
    }

    /// Whether everything up to the peer's FIN has arrived.
    #[inline]
    pub(crate) fn fin_received(&self) -> bool {
        self.fin_end.is_some_and(|end| self.nxt >= end)
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
    pub(crate) fn on_segment(&mut self, now: Nanos, segment: &Segment, ce: bool, rto: Nanos) {
        let (start, end) = (segment.seq, segment.end());
        if segment.span() == 0 {
            // A probe of the window repeats the last number.
            self.ack_now |= start + 1 == self.nxt;
            return;
        }
        if end <= self.nxt {
            if self.dsack {
                self.duplicate = Some((start, end));
            }
            self.enter_quick();
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
            self.fin_end = Some(end);
        }
        if self.quick_enabled && (self.last_data == 0 || now.saturating_sub(self.last_data) > rto) {
            self.enter_quick();
        }
        self.last_data = now;
        if start > self.nxt {
            self.hold(start, end);
            return;
        }
        if start < self.nxt && self.dsack {
            self.duplicate = Some((start, self.nxt));
            self.ack_now = true;
        }
        let before = self.nxt;
        self.nxt = end;
        if !self.held.is_empty() {
            self.release();
        }
        self.on_progress(now, self.nxt - before, u64::from(segment.len));
    }

    fn hold(&mut self, start: u64, end: u64) {
        self.ack_now = true;
        self.enter_quick();
        let mut new = false;
        let block = self.held.insert(start, end, |_, _| new = true);
        if !new && self.dsack {
            self.duplicate = Some((start, end));
        }
        // The block that holds this segment comes first; those it swallowed go.
        let count = usize::from(self.recent_count);
        let mut kept = [(0, 0); MAX_BLOCKS];
        kept[0] = block;
        let mut at = 1;
        for &old in &self.recent[..count] {
            if at < MAX_BLOCKS && (old.1 < block.0 || old.0 > block.1) {
                kept[at] = old;
                at += 1;
            }
        }
        self.recent = kept;
        self.recent_count = at as u8;
    }

    /// A hole was filled, or part of one.
    fn release(&mut self) {
        self.ack_now = true;
        while let Some((start, end)) = self.held.first() {
            if start > self.nxt {
                break;
            }
            self.nxt = self.nxt.max(end);
            self.held.pop_first();
        }
        let mut at = 0;
        for i in 0..usize::from(self.recent_count) {
            if self.recent[i].0 > self.nxt {
                self.recent[at] = self.recent[i];
                at += 1;
            }
        }
        self.recent_count = at as u8;
    }

    #[inline]
    fn on_progress(&mut self, now: Nanos, bytes: u64, payload: u64) {
        if self.paused {
            self.unread += bytes;
        }
        self.unacked += bytes;
        self.full = self.full.max(payload);
        if self.autotune {
            self.tune(now);
        }
        if self.delay == 0
            || self.quick > 0
            || self.unacked >= self.every * self.full
            || self.fin_received()
        {
            self.ack_now = true;
        } else if self.ack_at == NEVER {
            self.ack_at = now + self.delay;
        }
    }

    fn enter_quick(&mut self) {
        if self.quick_enabled {
            let segments = self.space / (2 * self.full.max(536));
            self.quick = (segments.max(2) as u32).min(MAX_QUICK);
        }
    }

    #[inline]
    fn note_marks(&mut self, segment: &Segment, ce: bool) {
        match self.ecn {
            Ecn::Off => {}
            Ecn::Classic => {
                if segment.flags.has(Flags::CWR) {
                    self.echo = false;
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
                    self.echo = ce;
                }
            }
        }
    }

    /// A round-trip time as the receiver sees it, from echoed timestamps.
    #[inline]
    pub(crate) fn note_rtt(&mut self, rtt: Nanos) {
        self.rtt = if self.rtt == 0 { rtt } else { self.rtt - self.rtt / 8 + rtt / 8 };
    }

    /// The window follows twice what the application read in a round trip.
    fn tune(&mut self, now: Nanos) {
        // Without timestamps, a round trip is the time in which one window arrives.
        if self.rtt_at == 0 || self.nxt >= self.rtt_edge {
            if self.rtt_at != 0 {
                let round = (now - self.rtt_at).max(MILLISECOND);
                if self.rtt == 0 || round < self.rtt {
                    self.rtt = round;
                }
            }
            self.rtt_at = now;
            self.rtt_edge = self.edge.max(self.nxt + self.full);
        }
        if self.tune_at == 0 {
            self.tune_at = now;
            self.tune_from = self.nxt;
            return;
        }
        if self.rtt == 0 || now - self.tune_at < self.rtt {
            return;
        }
        let read = (self.nxt - self.tune_from).saturating_sub(self.unread);
        if read > self.tune_space {
            // Room for a sender that doubles, and more if it grew since the last round.
            let mut window = 2 * read + 16 * self.full;
            let growth = u128::from(window) * u128::from(read - self.tune_space)
                / u128::from(self.tune_space.max(1));
            window = window.saturating_add(u64::try_from(2 * growth).unwrap_or(u64::MAX));
            self.space = self.space.max(window.min(self.max_space));
            self.tune_space = read;
        }
        self.tune_at = now;
        self.tune_from = self.nxt;
    }

    /// The delayed ACK's time has come.
    pub(crate) fn on_timer(&mut self, now: Nanos) {
        if now >= self.ack_at {
            self.ack_at = NEVER;
            self.ack_now = true;
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

    /// The application reads `bytes`; tells the peer if that opens the window well.
    pub(crate) fn read(&mut self, bytes: u64) {
        self.unread = self.unread.saturating_sub(bytes);
        let announced = self.edge.saturating_sub(self.nxt);
        let free = self.space.saturating_sub(self.unread);
        // RFC 1122, 4.2.3.3: half the buffer or a full segment, whichever is less.
        if free >= announced + (self.space / 2).min(2 * self.full) && announced < 2 * self.full {
            self.ack_now = true;
        }
    }

    /// The acknowledgement and window of a segment that is about to leave.
    #[inline]
    pub(crate) fn stamp(&mut self, segment: &mut Segment) {
        segment.flags |= Flags::ACK;
        segment.ack = self.nxt;
        let free = self.space.saturating_sub(self.unread);
        let announced = self.edge.saturating_sub(self.nxt);
        if free > announced {
            // No silly windows: grow by a segment at least, unless nothing is being held back.
            if self.unread == 0 || free >= announced + self.full.min(self.space / 2) {
                let granule = 1u64 << self.scale;
                let window = if free >= granule { free & !(granule - 1) } else { free };
                self.edge = self.edge.max(self.nxt + window);
            }
        }
        segment.window = self.edge.saturating_sub(self.nxt).min(u64::from(u32::MAX)) as u32;
        if self.echo {
            segment.flags |= Flags::ECE;
        }
        self.ack_now = false;
        self.ack_at = NEVER;
        self.unacked = 0;
        self.last_ack_sent = self.nxt;
        if self.quick > 0 {
            self.quick -= 1;
        }
    }

    /// The window of a SYN, which is never scaled.
    pub(crate) fn stamp_syn(&mut self, segment: &mut Segment) {
        let window = self.space.min(UNSCALED);
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
        self.sack && (self.duplicate.is_some() || self.recent_count > 0)
    }

    /// Adds SACK blocks: a duplicate first, then the newest.
    pub(crate) fn add_sack(&mut self, segment: &mut Segment) {
        if let Some((start, end)) = self.duplicate.take() {
            segment.push_sack(start, end);
            // RFC 2883: a duplicate within a block is followed by that block.
            if let Some((s, e)) = self.held.holding(start) {
                segment.push_sack(s, e);
                for &block in &self.recent[..usize::from(self.recent_count)] {
                    if block != (s, e) {
                        segment.push_sack(block.0, block.1);
                    }
                }
                return;
            }
        }
        for &(start, end) in &self.recent[..usize::from(self.recent_count)] {
            segment.push_sack(start, end);
        }
    }
}
