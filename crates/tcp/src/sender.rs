//! The sending half: what leaves when, what an acknowledgement means, the timers of data.
//!
//! Source: RFC 5681, RFC 6298, RFC 6582, RFC 6675, RFC 6937, RFC 8985, RFC 3042, RFC 5682, RFC 7661;
//! phases after Linux's `tcp_input.c`.
//! Idea: loss detection marks segments on the scoreboard, the scoreboard gives the bytes in flight
//! (`pipe`), and whatever is due leaves while `pipe` is below cwnd: lost segments first, then new
//! ones. Without SACK each duplicate ACK stands for one delivered segment, so the same rule
//! reproduces the inflated window of RFC 6582.
//! Invariants: `una <= nxt`; nothing leaves beyond the peer's window; a timer runs whenever
//! something is outstanding, or data waits for a closed window.

use crate::params::{IdleRestart, Pacing, Params, Recovery};
use crate::rack::{Rack, probe_timeout};
use crate::receiver::NEVER;
use crate::recovery::{Phase, Prr, Undo};
use crate::rtt::Rtt;
use crate::scoreboard::{DUP_THRESH, Scoreboard, Snapshot, Tally};
use crate::segment::{Flags, Segment};
use sojourn_control::congestion::{self, Ack, Cause, Congestion, Control, RateSample, Window};
use sojourn_units::{MILLISECOND, Nanos, SECOND};

/// What has happened, since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, retransmissions too.
    pub segments: u64,
    /// Payload sent, retransmissions too.
    pub bytes: u64,
    /// Data segments sent again.
    pub retransmits: u64,
    /// Payload sent again.
    pub retransmitted_bytes: u64,
    /// Expiries of the retransmission timer (those of SYNs too).
    pub rtos: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Loss recoveries that acknowledgements began.
    pub recoveries: u64,
    /// Reductions on an ECN echo.
    pub ecn_reductions: u64,
    /// Acknowledgements that carried an ECN echo.
    pub ece_acks: u64,
    /// Reductions that were taken back.
    pub spurious: u64,
    /// Duplicate acknowledgements.
    pub dup_acks: u64,
    /// D-SACK blocks received.
    pub dsacks: u64,
    /// Grows with every change that a trace of the connection would show: retransmissions,
    /// timeouts, recoveries and their ends, reductions, undos, changes of state.
    pub events: u64,
}

/// What [`Sender::poll`] wants sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) fin: bool,
    pub(crate) cwr: bool,
    pub(crate) repeat: bool,
}

/// No more than this may ever be written: far from overflow, out of reach.
const UNLIMITED: u64 = 1 << 62;

/// F-RTO's steps (RFC 5682).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frto {
    Off,
    /// The first segment was retransmitted.
    Repeated,
    /// New data is being sent instead of more retransmissions.
    Fresh,
}

/// The sender's state.
#[derive(Clone, Debug)]
pub struct Sender {
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    /// What was outstanding when the present acknowledgement or timer came.
    flight: u64,
    /// Right edge of the peer's window, and the window it last announced.
    edge: u64,
    last_window: u32,
    max_window: u64,
    /// The number after the last byte written.
    end: u64,
    pub(crate) fin: bool,
    pub(crate) fin_sent: bool,
    mss: u64,
    buffer: u64,

    pub(crate) board: Scoreboard,
    pub(crate) window: Window,
    pub(crate) control: Congestion,
    pub(crate) rtt: Rtt,
    pub(crate) counters: Counters,

    pub(crate) phase: Phase,
    recovery_point: u64,
    recovery: Recovery,
    prr: Prr,
    undo: Undo,
    undo_enabled: bool,
    /// Timestamp of the first of the retransmissions in flight.
    repair_stamp: Option<u32>,
    frto: Frto,
    frto_enabled: bool,
    /// The retransmission that a recovery begins with leaves whatever cwnd says.
    force: bool,
    rescue: u64,
    sack: bool,
    careful: bool,
    limited_transmit: bool,
    nagle: bool,
    idle_restart: IdleRestart,
    initial_window: u64,
    /// NewReno: bytes that duplicate ACKs stand for, and how many came in a row.
    dup_bytes: u64,
    dup_acks: u64,
    recover: u64,

    rack_enabled: bool,
    rack: Rack,
    probe_end: u64,
    probe_repeat: bool,
    probe_due: bool,

    ecn: bool,
    owns_window: bool,
    wants_rate: bool,
    cwr_due: bool,

    pace: Pacing,
    paced: bool,
    pace_next: Nanos,
    pace_wait: bool,

    /// cwnd stopped the sender while data below this was sent.
    limited_end: u64,
    last_sent: Nanos,
    delivered: u64,
    delivered_at: Nanos,
    first_sent: Nanos,
    /// The application-limited phase lasts until this much is delivered; 0 outside.
    app_limited: u64,
    total_lost: u64,

    backoff: u32,
    retries: u32,
    pub(crate) rto_at: Nanos,
    pub(crate) probe_at: Nanos,
    pub(crate) reorder_at: Nanos,
    pub(crate) persist_at: Nanos,
    persist_backoff: u32,
    window_probe_due: bool,
    pub(crate) gave_up: bool,
}

impl Sender {
    pub(crate) fn new(params: &Params) -> Self {
        let mss = u64::from(params.mss);
        let window = Window::new(mss, u64::from(params.initial_window));
        let control = Congestion::new(&params.congestion, params.slow_start, &window);
        Self {
            una: 0,
            nxt: 0,
            flight: 0,
            edge: 0,
            last_window: 0,
            max_window: 0,
            end: 1,
            fin: false,
            fin_sent: false,
            mss,
            buffer: params.send_buffer,
            board: Scoreboard::new(mss, false),
            window,
            owns_window: control.owns_window(),
            wants_rate: control.wants_rate(),
            control,
            rtt: Rtt::new(params),
            counters: Counters::default(),
            phase: Phase::Open,
            recovery_point: 0,
            recovery: params.recovery,
            prr: Prr::default(),
            undo: Undo::default(),
            undo_enabled: params.undo,
            repair_stamp: None,
            frto: Frto::Off,
            frto_enabled: params.frto,
            force: false,
            rescue: 0,
            sack: false,
            careful: params.slow_start.limit <= 2,
            limited_transmit: params.limited_transmit,
            nagle: params.nagle,
            idle_restart: params.idle_restart,
            initial_window: u64::from(params.initial_window),
            dup_bytes: 0,
            dup_acks: 0,
            recover: 0,
            rack_enabled: false,
            rack: Rack::new(),
            probe_end: 0,
            probe_repeat: false,
            probe_due: false,
            ecn: false,
            cwr_due: false,
            pace: params.pacing,
            paced: false,
            pace_next: 0,
            pace_wait: false,
            limited_end: 0,
            last_sent: 0,
            delivered: 0,
            delivered_at: 0,
            first_sent: 0,
            app_limited: 0,
            total_lost: 0,
            backoff: 0,
            retries: params.retries,
            rto_at: NEVER,
            probe_at: NEVER,
            reorder_at: NEVER,
            persist_at: NEVER,
            persist_backoff: 0,
            window_probe_due: false,
            gave_up: false,
        }
    }

    /// The handshake is done: `una` and `nxt` stand after the SYN. `lost_syns` is how often it had
    /// to be sent again.
    pub(crate) fn establish(
        &mut self,
        params: &Params,
        mss: u64,
        sack: bool,
        ecn: bool,
        lost_syns: u32,
    ) {
        self.mss = mss.max(1);
        // RFC 6928, section 2: more than one lost SYN leaves one segment.
        let initial = if lost_syns > 1 { 1 } else { self.initial_window };
        self.window = Window::new(self.mss, initial);
        self.control = Congestion::new(&params.congestion, params.slow_start, &self.window);
        self.sack = sack && params.recovery != Recovery::NewReno;
        if !self.sack {
            self.recovery = Recovery::NewReno;
        }
        self.rack_enabled = params.rack && self.sack;
        self.ecn = ecn;
        self.board = Scoreboard::new(self.mss, self.wants_rate);
        self.paced = match self.pace {
            Pacing::Auto => self.control.pacing_rate().is_some(),
            Pacing::Off => false,
            Pacing::On => true,
        };
        self.una = 1;
        self.nxt = 1;
        self.recover = 0;
        if lost_syns > 0 && self.rtt.srtt() == 0 {
            // RFC 6298, (5.7).
            self.rtt.set_initial(params.initial_rto.max(3 * SECOND));
        }
    }

    pub(crate) fn set_control_phase(&mut self, draw: u32) {
        self.control.set_phase(draw);
    }

    pub(crate) fn set_edge(&mut self, ack: u64, window: u32) {
        self.edge = self.edge.max(ack + u64::from(window));
        self.last_window = window;
        self.max_window = self.max_window.max(u64::from(window));
    }

    pub(crate) fn write(&mut self, bytes: u64) {
        if !self.fin {
            self.end = self.end.saturating_add(bytes).min(UNLIMITED);
        }
    }

    pub(crate) fn write_unlimited(&mut self) {
        if !self.fin {
            self.end = UNLIMITED;
        }
    }

    pub(crate) fn finish(&mut self) {
        if self.end == UNLIMITED {
            self.end = self.nxt.max(1);
        }
        self.fin = true;
    }

    /// Bytes written and not yet sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.end.saturating_sub(self.nxt.max(1))
    }

    pub(crate) fn is_unlimited(&self) -> bool {
        self.end == UNLIMITED
    }

    #[inline]
    pub(crate) fn fin_acked(&self) -> bool {
        self.fin_sent && self.una > self.end
    }

    #[inline]
    pub(crate) fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// Bytes in flight: sent, not known to be delivered or lost.
    #[inline]
    pub(crate) fn pipe(&self) -> u64 {
        let gone = self.board.sacked_bytes() + self.board.lost_bytes() + self.dup_bytes;
        (self.outstanding() + self.board.repair_bytes()).saturating_sub(gone)
    }

    #[inline]
    fn event(&mut self) {
        self.counters.events += 1;
    }

    // ---------------------------------------------------------------- acknowledgements

    /// An acceptable acknowledgement: `ack <= nxt`.
    pub(crate) fn on_ack(&mut self, now: Nanos, segment: &Segment, echo: Option<u32>) {
        let ack = segment.ack;
        if ack < self.una {
            return;
        }
        let prior_una = self.una;
        let prior_pipe = self.pipe();
        let prior_phase = self.phase;
        let acked = ack - prior_una;
        self.flight = self.outstanding();
        let mut tally = Tally {
            orig_bound: self.recovery_point,
            highest: self.board.highest(),
            believable: now - self.rtt.min(),
            ..Tally::default()
        };
        let mut dsack = false;
        if self.sack && segment.has_sack() {
            dsack = self.on_blocks(segment, &mut tally);
        }
        if acked > 0 {
            self.una = ack;
            self.board.on_ack(ack, &mut tally);
        }
        let dup = acked == 0
            && segment.is_pure_ack()
            && self.outstanding() > 0
            && (tally.sacked > 0 || (segment.window == self.last_window && !segment.has_sack()));
        self.set_edge(ack, segment.window);
        if dup {
            self.counters.dup_acks += 1;
        }
        if !self.sack {
            self.count_duplicates(acked, dup, &mut tally);
        }
        let rtt = self.on_round_trip(now, acked, &tally, echo);
        self.delivered += tally.delivered;
        if tally.delivered > 0 {
            self.delivered_at = now;
        }
        let rate = if self.wants_rate { self.rate_sample(&tally) } else { RateSample::default() };
        if self.rack_enabled {
            self.rack.update(now, tally.newest, tally.reordered);
        }
        self.on_probe_answer(now, ack, acked, dup, dsack);

        // What the acknowledgement means for the phase.
        let marked = self.on_echo(now, segment, acked);
        let fresh_echo = if acked > 0 { echo } else { None };
        if self.undo_enabled
            && (acked > 0 || dsack)
            && self.undo.is_mistake(self.repair_stamp, fresh_echo)
        {
            self.take_back();
        }
        if self.board.repair_bytes() == 0 {
            self.repair_stamp = None;
        }
        if self.phase == Phase::Loss && self.frto != Frto::Off {
            self.on_frto(acked, &tally);
        }
        if self.phase != Phase::Open && self.una >= self.recovery_point {
            self.leave_phase();
        }
        let lost = self.find_losses(now, acked);
        if self.board.lost_bytes() > 0 && matches!(self.phase, Phase::Open | Phase::Reduced) {
            self.enter_recovery(now);
        }

        // What it means for the window.
        let in_recovery = matches!(self.phase, Phase::Recovery | Phase::Reduced);
        let pipe = self.pipe();
        let slow = self.window.in_slow_start();
        // What had been acknowledged selectively has been counted, or came during a recovery. RFC
        // 3465, section 2.3: one segment an ACK after a timeout.
        let mut counted = acked.min(tally.delivered);
        if prior_phase == Phase::Loss && self.careful {
            counted = counted.min(self.mss);
        }
        let repairing = matches!(prior_phase, Phase::Recovery | Phase::Reduced);
        let report = Ack {
            now,
            acked: counted,
            delivered: tally.delivered,
            lost,
            marked: marked.min(counted),
            una: self.una,
            nxt: self.nxt,
            prior_in_flight: prior_pipe,
            in_flight: pipe,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
            may_grow: !in_recovery && !repairing && acked > 0,
            cwnd_limited: prior_una <= self.limited_end
                || (slow && self.window.cwnd < 2 * prior_pipe),
            in_recovery: self.phase != Phase::Open && self.phase != Phase::Reduced,
            app_limited: self.app_limited > 0,
            rate,
        };
        self.control.on_ack(&mut self.window, &report);
        if in_recovery && !self.owns_window && self.recovery == Recovery::Prr {
            let safe = acked > 0 && lost == 0;
            self.prr.on_ack(&mut self.window, tally.delivered, pipe, safe);
        }
        self.rearm(now, acked);
    }

    /// SACK blocks; whether the first reports a duplicate.
    fn on_blocks(&mut self, segment: &Segment, tally: &mut Tally) -> bool {
        let ack = segment.ack;
        let mut blocks = segment.sack();
        let Some(first) = blocks.next() else {
            return false;
        };
        let second = blocks.clone().next();
        let duplicate = first.1 <= ack || second.is_some_and(|s| s.0 <= first.0 && first.1 <= s.1);
        if duplicate {
            self.counters.dsacks += 1;
            if self.undo.marker > 0 && first.1 > self.undo.marker {
                self.undo.pending = self.undo.pending.saturating_sub(1);
            }
            if self.rack_enabled {
                self.rack.on_duplicate(self.una, self.nxt);
            }
        } else if first.0 < first.1 && first.1 <= self.nxt {
            self.board.on_sack(first.0.max(ack), first.1, tally);
        }
        for (start, end) in blocks {
            if start < end && end > ack && end <= self.nxt {
                self.board.on_sack(start.max(ack), end, tally);
            }
        }
        duplicate
    }

    /// Without SACK, a duplicate ACK stands for a segment delivered beyond the hole.
    fn count_duplicates(&mut self, acked: u64, dup: bool, tally: &mut Tally) {
        if acked > 0 {
            // The first segment acknowledged filled the hole; the others had been counted.
            let counted = self.dup_bytes.min(acked.saturating_sub(self.mss));
            self.dup_bytes -= counted;
            tally.delivered = tally.delivered.saturating_sub(counted).max(acked.min(self.mss));
            if tally.repeated {
                tally.original = false;
            }
            if self.phase == Phase::Open || self.una >= self.recovery_point {
                self.dup_bytes = 0;
            }
            self.dup_acks = 0;
        } else if dup {
            self.dup_acks += 1;
            let room = self.outstanding().saturating_sub(self.dup_bytes + self.board.lost_bytes());
            let bytes = self.mss.min(room);
            self.dup_bytes += bytes;
            tally.delivered += bytes;
        }
    }

    /// Round-trip times; returns the newest, 0 for none.
    fn on_round_trip(&mut self, now: Nanos, acked: u64, tally: &Tally, echo: Option<u32>) -> Nanos {
        let (sample, newest) = if tally.first_sent > 0 && !tally.repeated {
            (now - tally.first_sent, now - tally.last_sent)
        } else if tally.sack_sent > 0 && !tally.repeated {
            (now - tally.sack_sent, now - tally.sack_sent)
        } else if let (Some(echo), true) = (echo, acked > 0) {
            let elapsed = timestamp(now).wrapping_sub(echo);
            if elapsed >= 1 << 31 {
                return 0;
            }
            (u64::from(elapsed.max(1)) * MILLISECOND, 0)
        } else {
            (0, 0)
        };
        self.rtt.note_min(now, newest);
        if sample > 0 {
            self.rtt.sample(sample, self.una, self.nxt);
            self.backoff = 0;
        } else if acked > 0 && self.rtt.is_linux() {
            self.backoff = 0;
        }
        newest
    }

    fn rate_sample(&mut self, tally: &Tally) -> RateSample {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let mut rate = RateSample { total: self.delivered, ..RateSample::default() };
        let Some((snapshot, sent_at)) = tally.snapshot else {
            return rate;
        };
        self.first_sent = sent_at;
        let sending = sent_at.saturating_sub(snapshot.first_sent);
        let arriving = self.delivered_at.saturating_sub(snapshot.delivered_at);
        rate.prior_delivered = snapshot.delivered;
        rate.app_limited = snapshot.app_limited;
        rate.delivered = self.delivered - snapshot.delivered;
        rate.interval = sending.max(arriving);
        if rate.interval < self.rtt.min() {
            rate.interval = 0;
        }
        rate
    }

    fn on_probe_answer(&mut self, now: Nanos, ack: u64, acked: u64, dup: bool, dsack: bool) {
        if self.probe_end == 0 || ack < self.probe_end {
            return;
        }
        if !self.probe_repeat || dsack || (ack == self.probe_end && acked == 0 && dup) {
            self.probe_end = 0;
        } else if ack > self.probe_end {
            // The probe repaired a loss that nothing else would have shown.
            self.probe_end = 0;
            if self.phase == Phase::Open {
                self.reduce(now, Cause::Loss);
            }
        }
    }

    /// An ECN echo; returns the bytes acknowledged under it.
    fn on_echo(&mut self, now: Nanos, segment: &Segment, acked: u64) -> u64 {
        if !self.ecn || !segment.flags.has(Flags::ECE) || segment.flags.has(Flags::SYN) {
            return 0;
        }
        self.counters.ece_acks += 1;
        if self.phase == Phase::Open && !self.owns_window {
            self.reduce(now, Cause::Ecn);
            self.counters.ecn_reductions += 1;
            self.cwr_due = true;
        }
        acked
    }

    /// Losses by the rules in force; the bytes newly lost.
    fn find_losses(&mut self, now: Nanos, acked: u64) -> u64 {
        let lost = if self.rack_enabled {
            self.find_late(now)
        } else if self.sack {
            self.board.mark_by_count()
        } else if self.phase == Phase::Recovery {
            // RFC 6582: a partial acknowledgement shows the next hole.
            if acked > 0 { self.board.mark_first() } else { 0 }
        } else if self.phase != Phase::Loss
            && self.dup_acks >= DUP_THRESH
            && self.una > self.recover
        {
            self.board.mark_first()
        } else {
            0
        };
        self.total_lost += lost;
        lost
    }

    fn find_late(&mut self, now: Nanos) -> u64 {
        if self.rack.newest.0 == 0 {
            return 0;
        }
        let in_recovery = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let sacked = self.board.sacked_count();
        let delay = self.rack.delay(in_recovery, sacked, self.rtt.min(), self.rtt.srtt());
        let (lost, waiting) = self.board.mark_by_time(now, self.rack.newest, delay);
        self.reorder_at = if waiting { (self.rack.newest.0 + delay).max(now + 1) } else { NEVER };
        lost
    }

    fn enter_recovery(&mut self, now: Nanos) {
        self.counters.recoveries += 1;
        self.event();
        self.probe_at = NEVER;
        self.force = true;
        self.rescue = 0;
        if self.phase == Phase::Reduced {
            self.phase = Phase::Recovery;
            self.recovery_point = self.nxt;
            self.recover = self.nxt;
            return;
        }
        self.undo =
            Undo::save(self.una, &self.window, self.board.repair_bytes().div_ceil(self.mss));
        let flight = self.flight;
        self.window.ssthresh = self.control.reduce(&self.window, flight, Cause::Loss, now);
        self.prr = Prr::start(flight);
        self.phase = Phase::Recovery;
        self.recovery_point = self.nxt;
        self.recover = self.nxt;
        if self.recovery != Recovery::Prr && !self.owns_window {
            self.window.set_cwnd(self.window.cwnd.min(self.window.ssthresh));
        }
    }

    /// A reduction without a loss to repair.
    fn reduce(&mut self, now: Nanos, cause: Cause) {
        self.event();
        self.undo = Undo::default();
        let flight = self.flight;
        self.window.ssthresh = self.control.reduce(&self.window, flight, cause, now);
        self.prr = Prr::start(flight);
        self.phase = Phase::Reduced;
        self.recovery_point = self.nxt;
        if self.recovery != Recovery::Prr && !self.owns_window {
            self.window.set_cwnd(self.window.cwnd.min(self.window.ssthresh));
        }
    }

    fn leave_phase(&mut self) {
        self.event();
        let left = self.phase;
        self.phase = Phase::Open;
        self.frto = Frto::Off;
        self.force = false;
        self.dup_bytes = 0;
        self.dup_acks = 0;
        if self.owns_window {
            self.control.on_recovery_exit(&mut self.window);
        } else if left != Phase::Loss {
            let mut cwnd = self.window.ssthresh;
            if self.recovery == Recovery::NewReno && left == Phase::Recovery {
                // RFC 6582, section 3.2, step 3, option 1: no burst.
                cwnd = cwnd.min(self.pipe().max(self.mss) + self.mss);
            }
            self.window.set_cwnd(cwnd.min(self.window.cwnd.max(self.window.ssthresh)));
            self.control.on_recovery_exit(&mut self.window);
        }
        if left == Phase::Recovery {
            self.rack.on_recovery_exit();
        }
    }

    /// The last reduction was a mistake: cwnd and ssthresh as before, nothing lost.
    fn take_back(&mut self) {
        self.counters.spurious += 1;
        self.event();
        self.window.set_cwnd(self.window.cwnd.max(self.undo.cwnd));
        self.window.ssthresh = self.window.ssthresh.max(self.undo.ssthresh);
        self.undo = Undo::default();
        self.control.on_undo();
        if self.owns_window {
            self.control.on_recovery_exit(&mut self.window);
        }
        self.board.unmark();
        self.phase = Phase::Open;
        self.frto = Frto::Off;
        self.force = false;
        self.dup_bytes = 0;
    }

    fn on_frto(&mut self, acked: u64, tally: &Tally) {
        if tally.original {
            // Something sent only once arrived although the timer had given up on it.
            if self.undo.marker > 0 {
                self.take_back();
            }
            return;
        }
        match self.frto {
            Frto::Repeated if acked > 0 && self.una < self.recovery_point => {
                self.frto = Frto::Fresh;
                self.recovery_point = self.nxt;
            }
            _ => self.frto = Frto::Off,
        }
    }

    fn rearm(&mut self, now: Nanos, acked: u64) {
        if self.board.is_empty() {
            self.rto_at = NEVER;
            self.probe_at = NEVER;
            self.reorder_at = NEVER;
            self.probe_due = false;
        } else if acked > 0 {
            self.rto_at = now + self.rtt.backed_off(self.backoff);
            self.schedule_probe(now);
        }
        if self.edge > self.nxt {
            self.persist_at = NEVER;
            self.persist_backoff = 0;
        }
    }

    fn schedule_probe(&mut self, now: Nanos) {
        self.probe_at = NEVER;
        if self.rack_enabled
            && self.phase == Phase::Open
            && self.probe_end == 0
            && self.board.sacked_count() == 0
        {
            let timeout = probe_timeout(self.rtt.srtt(), self.board.len() == 1, None);
            self.probe_at = (now + timeout).min(self.rto_at);
        }
    }

    // ---------------------------------------------------------------- timers

    /// The earliest of its timers.
    #[inline]
    pub(crate) fn deadline(&self) -> Nanos {
        let pace = if self.pace_wait { self.pace_next } else { NEVER };
        self.rto_at.min(self.probe_at).min(self.reorder_at).min(self.persist_at).min(pace)
    }

    pub(crate) fn on_timer(&mut self, now: Nanos) {
        self.flight = self.outstanding();
        if now >= self.reorder_at {
            self.reorder_at = NEVER;
            let lost = self.find_late(now);
            self.total_lost += lost;
            if self.board.lost_bytes() > 0 && matches!(self.phase, Phase::Open | Phase::Reduced) {
                self.enter_recovery(now);
                if self.recovery == Recovery::Prr && !self.owns_window {
                    let pipe = self.pipe();
                    self.prr.on_ack(&mut self.window, 0, pipe, false);
                }
            }
        }
        if now >= self.probe_at {
            self.probe_at = NEVER;
            self.probe_due = true;
            self.rto_at = self.rto_at.max(now + self.rtt.backed_off(self.backoff));
        }
        if now >= self.rto_at {
            self.on_timeout(now);
        }
        if now >= self.persist_at {
            self.persist_at = NEVER;
            self.window_probe_due = true;
        }
    }

    fn on_timeout(&mut self, now: Nanos) {
        self.counters.rtos += 1;
        self.event();
        self.rto_at = NEVER;
        self.probe_at = NEVER;
        self.reorder_at = NEVER;
        self.probe_due = false;
        self.probe_end = 0;
        if self.board.is_empty() {
            return;
        }
        if self.backoff >= self.retries {
            self.gave_up = true;
            return;
        }
        let first = self.phase != Phase::Loss;
        if first || self.backoff == 0 {
            // Not again if the retransmission itself was lost (RFC 5681, section 3.1).
            let saved = if self.phase == Phase::Recovery { self.undo } else { Undo::default() };
            self.undo =
                Undo::save(self.una, &self.window, self.board.repair_bytes().div_ceil(self.mss));
            if saved.marker > 0 {
                self.undo.cwnd = saved.cwnd;
                self.undo.ssthresh = saved.ssthresh;
            }
            let flight = self.outstanding();
            self.window.ssthresh = self.control.reduce(&self.window, flight, Cause::Timeout, now);
        }
        self.window.set_cwnd(self.mss);
        let recovering = self.phase == Phase::Recovery;
        self.phase = Phase::Loss;
        self.recovery_point = self.nxt;
        self.recover = self.nxt;
        self.dup_bytes = 0;
        self.dup_acks = 0;
        self.total_lost += self.board.mark_all();
        self.frto = if self.frto_enabled && !recovering { Frto::Repeated } else { Frto::Off };
        self.backoff += 1;
        self.force = true;
        self.rto_at = now + self.rtt.backed_off(self.backoff);
    }

    // ---------------------------------------------------------------- sending

    /// What leaves now, if anything does.
    #[inline]
    pub(crate) fn poll(&mut self, now: Nanos) -> Option<Output> {
        self.pace_wait = false;
        if self.board.is_empty() && self.nxt >= self.end && (!self.fin || self.fin_sent) {
            return None;
        }
        if self.window_probe_due {
            self.window_probe_due = false;
            return Some(self.probe_window(now));
        }
        if self.probe_due {
            self.probe_due = false;
            if let Some(output) = self.probe_tail(now) {
                return Some(output);
            }
        }
        let pipe = self.pipe();
        if self.board.lost_bytes() > 0
            && self.frto != Frto::Fresh
            && let Some(index) = self.board.next_repair()
        {
            let len = u64::from(self.board.entry(index).len);
            if !self.force && pipe + len > self.window.cwnd {
                self.limited_end = self.nxt;
                return None;
            }
            if !self.force && self.must_wait(now) {
                return None;
            }
            return Some(self.repeat(now, index));
        }
        if let Some(output) = self.poll_new(now, pipe) {
            return Some(output);
        }
        if self.frto == Frto::Fresh && self.board.lost_bytes() > 0 && self.fresh(false).is_none() {
            // Nothing new to send: F-RTO cannot decide.
            self.frto = Frto::Off;
            return self.poll(now);
        }
        if self.phase == Phase::Recovery && self.recovery == Recovery::Rfc6675 {
            return self.poll_unsure(now, pipe);
        }
        None
    }

    /// The next new segment's payload and FIN, whatever cwnd says.
    #[inline]
    fn fresh(&self, probe: bool) -> Option<(u64, bool)> {
        let waiting = self.end.saturating_sub(self.nxt);
        if waiting == 0 {
            return (self.fin && !self.fin_sent).then_some((0, true));
        }
        let buffer = (self.una + self.buffer).saturating_sub(self.nxt);
        let room = self.edge.saturating_sub(self.nxt).min(buffer);
        let len = self.mss.min(waiting).min(room);
        if len == 0 {
            return None;
        }
        if len < self.mss && !self.board.is_empty() && !probe {
            // RFC 1122, 4.2.3.4: wait for more room, or (Nagle) for an acknowledgement.
            if len < waiting && len < self.max_window / 2 {
                return None;
            }
            if len == waiting && self.nagle && !self.fin {
                return None;
            }
        }
        Some((len, len == waiting && self.fin))
    }

    #[inline]
    fn poll_new(&mut self, now: Nanos, pipe: u64) -> Option<Output> {
        let Some((len, fin)) = self.fresh(false) else {
            self.on_nothing(now, pipe);
            return None;
        };
        if self.board.is_empty() {
            self.on_restart(now);
        }
        let early = !self.limited_transmit && self.phase == Phase::Open;
        let flight = if early { self.outstanding() } else { pipe };
        if flight + len > self.window.cwnd {
            self.limited_end = self.nxt;
            return None;
        }
        if self.must_wait(now) {
            return None;
        }
        Some(self.send(now, len, fin))
    }

    /// There is nothing that may be sent.
    fn on_nothing(&mut self, now: Nanos, pipe: u64) {
        let waiting = self.end.saturating_sub(self.nxt);
        if waiting == 0 || self.edge <= self.nxt {
            if self.wants_rate && pipe < self.window.cwnd && self.board.lost_bytes() == 0 {
                self.app_limited = (self.delivered + pipe).max(1);
            }
            if waiting > 0 && self.board.is_empty() && self.persist_at == NEVER {
                self.persist_at = now + self.rtt.backed_off(self.persist_backoff);
            }
        }
    }

    /// Sending begins again after silence.
    fn on_restart(&mut self, now: Nanos) {
        if self.last_sent == 0 || now <= self.last_sent {
            return;
        }
        let idle = now - self.last_sent;
        self.control.on_restart(&self.window, now, idle);
        let rto = self.rtt.rto();
        if self.owns_window || idle <= rto {
            return;
        }
        let restart = self.window.cwnd.min(self.initial_window * self.mss);
        match self.idle_restart {
            IdleRestart::Off => {}
            IdleRestart::Rfc5681 => self.window.set_cwnd(restart),
            IdleRestart::Decay => {
                let kept = self.window.cwnd - self.window.cwnd / 4;
                if self.window.ssthresh < congestion::MAX_WINDOW {
                    self.window.ssthresh = self.window.ssthresh.max(kept);
                }
                let halvings = (idle / rto).min(40) as u32;
                self.window.set_cwnd((self.window.cwnd >> halvings).max(restart));
            }
        }
    }

    /// RFC 6675's rules 3 and 4 of `NextSeg`.
    fn poll_unsure(&mut self, now: Nanos, pipe: u64) -> Option<Output> {
        if pipe + self.mss > self.window.cwnd {
            return None;
        }
        if let Some(index) = self.board.next_unsure() {
            if self.must_wait(now) {
                return None;
            }
            return Some(self.repeat(now, index));
        }
        if self.rescue == 0
            && self.board.sacked_count() > 0
            && let Some(index) = self.board.last_unacked()
            && !self.board.entry(index).is_repeated()
        {
            if self.must_wait(now) {
                return None;
            }
            self.rescue = self.recovery_point;
            return Some(self.repeat(now, index));
        }
        None
    }

    #[inline]
    fn snapshot(&mut self, now: Nanos, idle: bool) -> Snapshot {
        if !self.wants_rate {
            return Snapshot::default();
        }
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited > 0,
        }
    }

    fn send(&mut self, now: Nanos, len: u64, fin: bool) -> Output {
        let idle = self.board.is_empty();
        let snapshot = self.snapshot(now, idle);
        let seq = self.nxt;
        self.board.push(seq, (len + u64::from(fin)) as u32, fin, now, snapshot);
        self.nxt += len + u64::from(fin);
        self.fin_sent |= fin;
        self.last_sent = now;
        self.counters.segments += 1;
        self.counters.bytes += len;
        if self.phase != Phase::Open {
            self.prr.on_sent(len);
        }
        if self.paced {
            self.pace(now, len);
        }
        if self.rto_at == NEVER {
            self.rto_at = now + self.rtt.backed_off(self.backoff);
        }
        if self.rack_enabled {
            self.schedule_probe(now);
        }
        self.persist_at = NEVER;
        let cwr = self.cwr_due && len > 0;
        self.cwr_due &= !cwr;
        Output { seq, len: len as u32, fin, cwr, repeat: false }
    }

    fn repeat(&mut self, now: Nanos, index: u64) -> Output {
        let snapshot = self.snapshot(now, false);
        let entry = *self.board.entry(index);
        self.board.on_repair(index, now, snapshot, self.rack_enabled);
        self.force = false;
        self.last_sent = now;
        let len = entry.len - u32::from(entry.fin);
        self.counters.segments += 1;
        self.counters.bytes += u64::from(len);
        self.counters.retransmits += 1;
        self.counters.retransmitted_bytes += u64::from(len);
        self.event();
        if self.phase != Phase::Open {
            self.prr.on_sent(u64::from(entry.len));
        }
        if self.undo.marker > 0 {
            self.undo.pending += 1;
            self.undo.any = true;
        }
        self.repair_stamp.get_or_insert(timestamp(now));
        if self.paced {
            self.pace(now, u64::from(len));
        }
        if self.rto_at == NEVER || entry.seq == self.una {
            self.rto_at = now + self.rtt.backed_off(self.backoff);
        }
        Output { seq: entry.seq, len, fin: entry.fin, cwr: false, repeat: true }
    }

    fn probe_tail(&mut self, now: Nanos) -> Option<Output> {
        if self.board.is_empty() || self.phase != Phase::Open || self.probe_end != 0 {
            return None;
        }
        self.counters.probes += 1;
        self.event();
        let output = if let Some((len, fin)) = self.fresh(true) {
            self.probe_repeat = false;
            self.send(now, len, fin)
        } else {
            let index = self.board.last_unacked()?;
            self.probe_repeat = true;
            self.repeat(now, index)
        };
        self.probe_end = self.nxt;
        self.probe_at = NEVER;
        self.rto_at = now + self.rtt.backed_off(self.backoff);
        Some(output)
    }

    /// Repeats the last number without data; the answer tells the window.
    fn probe_window(&mut self, now: Nanos) -> Output {
        self.counters.window_probes += 1;
        self.persist_backoff = (self.persist_backoff + 1).min(32);
        self.persist_at = now + self.rtt.backed_off(self.persist_backoff);
        Output { seq: self.nxt - 1, len: 0, fin: false, cwr: false, repeat: false }
    }

    // ---------------------------------------------------------------- pacing

    #[inline]
    fn must_wait(&mut self, now: Nanos) -> bool {
        self.pace_wait = self.paced && now < self.pace_next;
        self.pace_wait
    }

    fn pace(&mut self, now: Nanos, bytes: u64) {
        // Linux lets the first ten segments go at once.
        if self.counters.segments <= 10 {
            return;
        }
        let span = if let Some(rate) = self.control.pacing_rate() {
            bytes * SECOND / rate.max(1)
        } else {
            let percent = if self.window.cwnd < self.window.ssthresh / 2 { 200 } else { 120 };
            bytes * self.rtt.srtt().min(100 * SECOND) * 100 / (self.window.cwnd * percent)
        };
        self.pace_next = self.pace_next.max(now) + span.min(10 * SECOND);
    }
}

/// The timestamp clock: milliseconds.
#[inline]
pub(crate) fn timestamp(now: Nanos) -> u32 {
    (now / MILLISECOND) as u32
}
