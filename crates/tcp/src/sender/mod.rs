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

mod ack;
mod burst;
mod frto;
mod output;
mod pacer;
mod phase;
mod rate;
mod timer;

use self::burst::Burst;
use self::frto::Frto;
use self::pacer::Pacer;
use self::rate::DeliveryRate;
use crate::params::{Ecn, IdleRestart, Pacing, Params, Recovery};
use crate::rack::Rack;
use crate::receiver::NEVER;
use crate::recovery::{Phase, Prr, Undo};
use crate::rtt::Rtt;
use crate::scoreboard::Scoreboard;
use sojourn_congestion::{Congestion, Control, Window};
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
    answers_marks: bool,
    cwr_due: bool,

    pacer: Pacer,
    burst: Burst,

    /// cwnd stopped the sender while data below this was sent.
    limited_end: u64,
    last_sent: Nanos,
    rate: DeliveryRate,

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
            answers_marks: control.answers_marks(),
            rate: DeliveryRate::new(control.wants_rate()),
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
            frto: Frto::new(params.frto),
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
            pacer: Pacer::new(false),
            burst: Burst::new(params.tso),
            limited_end: 0,
            last_sent: 0,
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
        ecn: Ecn,
        lost_syns: u32,
    ) {
        self.mss = mss.max(1);
        // RFC 6928, section 2: more than one lost SYN leaves one segment.
        let initial = if lost_syns > 1 { 1 } else { self.initial_window };
        self.window = Window::new(self.mss, initial);
        let congestion = params.congestion.agreed(ecn.is_exact());
        self.control = Congestion::new(&congestion, params.slow_start, &self.window);
        self.answers_marks = self.control.answers_marks();
        self.sack = sack && params.recovery != Recovery::NewReno;
        if !self.sack {
            self.recovery = Recovery::NewReno;
        }
        self.rack_enabled = params.rack && self.sack;
        self.ecn = ecn != Ecn::Off;
        self.board = Scoreboard::new(self.mss, self.rate.is_enabled());
        self.pacer = Pacer::new(match params.pacing {
            Pacing::Auto => self.control.pacing_rate().is_some(),
            Pacing::Off => false,
            Pacing::On => true,
        });
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

    /// Bytes written and not yet acknowledged.
    #[inline]
    pub(crate) fn buffered(&self) -> u64 {
        self.end.saturating_sub(self.una.max(1))
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
}

/// The timestamp clock: milliseconds.
#[inline]
pub(crate) fn timestamp(now: Nanos) -> u32 {
    (now / MILLISECOND) as u32
}
