//! The sending half: departures, acknowledgements, and the timers of data.
//!
//! Source: RFC 5681, RFC 6298, RFC 6582, RFC 6675, RFC 6937, RFC 8985, RFC 3042, RFC 5682, RFC
//! 7661; phases after Linux's `tcp_input.c`. Structure: each mechanism is a type in a file of its
//! own, independent of the other mechanisms. The methods of [`Sender`] are the steps that involve
//! several mechanisms.
//! Idea: loss detection marks segments on the scoreboard, the scoreboard gives the bytes in flight
//! (`pipe`), and segments leave while `pipe` is below cwnd: lost segments first, then new ones.
//! Without SACK each duplicate ACK counts as one delivered segment, so the same rule reproduces the
//! inflated window of RFC 6582.
//! Invariants: `una <= nxt`; nothing leaves beyond the peer's window; a timer runs whenever
//! something is outstanding, or data waits for a closed window.

mod ack;
pub(crate) mod agreed;
mod burst;
mod ecn;
mod frto;
pub(crate) mod half;
pub(crate) mod host_queue;
pub(crate) mod limits;
mod newreno;
mod output;
mod pacer;
mod persist;
mod phase;
mod probe;
mod prr;
mod rack;
mod rate;
pub(crate) mod recovery;
mod restart;
mod rto;
mod space;
mod stream;
mod timer;
mod undo;

use self::agreed::Agreed;
use self::burst::Burst;
use self::ecn::EcnSender;
use self::frto::Frto;
use self::host_queue::HostQueue;
use self::limits::{Limited, Limits};
use self::newreno::DuplicateAcks;
use self::pacer::Pacer;
use self::persist::Persist;
use self::probe::TailProbe;
use self::rack::Rack;
use self::rate::DeliveryRate;
use self::recovery::Recovery;
use self::restart::Restart;
use self::rto::RetransmissionTimer;
use self::space::SendSpace;
use self::stream::Stream;
use self::undo::Undo;
use crate::params::{Memory, Pacing, Params, Recovery as Method};
use crate::rare::{Initial, Rare};
use crate::rtt::Rtt;
use crate::scoreboard::Scoreboard;
use sojourn_congestion::hystart::Count;
use sojourn_congestion::{Congestion, Host, Start, Window};
use sojourn_units::{MILLISECOND, Nanos};

/// The counters since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, retransmissions included.
    pub segments: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes: u64,
    /// Data segments sent again.
    pub retransmits: u64,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Expiries of the retransmission timer, also for SYNs.
    pub rtos: u64,
    /// Tail loss probes sent.
    pub probes: u64,
    /// Probes of a closed window sent.
    pub window_probes: u64,
    /// Loss recoveries begun by acknowledgements, not by a timeout.
    pub recoveries: u64,
    /// Reductions in response to an ECN echo.
    pub ecn_reductions: u64,
    /// Acknowledgements that carried an ECN echo.
    pub ece_acks: u64,
    /// Reductions that were taken back.
    pub spurious: u64,
    /// Duplicate acknowledgements received.
    pub dup_acks: u64,
    /// D-SACK blocks received.
    pub dsacks: u64,
    /// Grows with every change that a trace of the connection would show: retransmissions,
    /// timeouts, recoveries and their ends, reductions, undos, changes of state.
    pub events: u64,
}

/// The [`Counters`] that every connection changes, so they are apart from the others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frequent {
    segments: u64,
    pub(crate) bytes: u64,
    pub(crate) events: u64,
}

impl Frequent {
    /// Counts a data segment of `len` bytes.
    #[inline]
    fn on_sent(&mut self, len: u64) {
        self.segments += 1;
        self.bytes += len;
    }
}

impl Initial for Counters {
    const INITIAL: &'static Self = &Self {
        segments: 0,
        bytes: 0,
        retransmits: 0,
        retransmitted_bytes: 0,
        rtos: 0,
        probes: 0,
        window_probes: 0,
        recoveries: 0,
        ecn_reductions: 0,
        ece_acks: 0,
        spurious: 0,
        dup_acks: 0,
        dsacks: 0,
        events: 0,
    };
}

/// A segment that [`Sender::poll`] sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) fin: bool,
    pub(crate) cwr: bool,
    pub(crate) push: bool,
    pub(crate) repeat: bool,
}

/// The sender's state.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) space: SendSpace,
    pub(crate) stream: Stream,
    pub(crate) board: Scoreboard,
    pub(crate) rtt: Rtt,
    pub(crate) frequent: Frequent,
    pub(crate) others: Rare<Counters>,

    pub(crate) window: Window,
    pub(crate) control: Congestion,
    /// A random number for the control.
    pub(crate) draw: u32,
    /// Whether the control responds to marks itself.
    answers_marks: bool,
    /// SND.NXT when cwnd last stopped the sender (RFC 7661).
    limited_end: u64,
    limits: Rare<Limits>,
    restart: Restart,
    pub(crate) ecn: EcnSender,

    pub(crate) recovery: Recovery,
    duplicates: Rare<DuplicateAcks>,
    rack: Rack,
    undo: Rare<Undo>,
    /// Whether reductions that prove unnecessary are taken back.
    takes_back: bool,
    frto: Frto,

    pacer: Pacer,
    /// The host's queue, if segments leave through one.
    pub(crate) host_queue: Option<Box<HostQueue>>,
    burst: Burst,
    rate: DeliveryRate,
    last_sent: Nanos,

    rto: RetransmissionTimer,
    probe: TailProbe,
    persist: Persist,
    /// Whether the peer did not answer [`Params::retries`] retransmissions.
    pub(crate) gave_up: bool,
    /// RFC 3042: whether new segments leave on the first duplicate ACKs.
    limited_transmit: bool,
    /// RFC 3465, section 2.3: whether an ACK after a timeout counts for at most one segment.
    slow_after_timeout: bool,
}

fn host(params: &Params) -> Host {
    Host { slow_start: params.slow_start, hz: params.hz }
}

impl Sender {
    pub(crate) fn new(params: &Params) -> Self {
        let initial = u64::from(params.initial_window);
        let window = Window::new(u64::from(params.mss), initial);
        let control = Congestion::new(&params.congestion, host(params), &window);
        Self {
            space: SendSpace::default(),
            stream: Stream::new(params.send_buffer, params.nagle)
                .counting(params.memory == Memory::Truesize),
            board: Scoreboard::new(window.mss, false),
            rtt: Rtt::new(params),
            frequent: Frequent::default(),
            others: Rare::new(),
            answers_marks: control.answers_marks(),
            limited_end: 0,
            limits: Rare::new(),
            restart: Restart { rule: params.idle_restart, initial, whole: false },
            ecn: EcnSender::default(),
            recovery: Recovery::new(params.recovery, control.owns_window()),
            duplicates: Rare::new(),
            rack: Rack::new(false),
            undo: Rare::new(),
            takes_back: params.undo,
            frto: Frto::new(params.frto),
            pacer: Pacer::new(false),
            host_queue: None,
            burst: Burst::new(params.tso),
            rate: DeliveryRate::new(control.wants_rate()),
            last_sent: 0,
            rto: RetransmissionTimer::new(params.retries),
            probe: TailProbe::new(false),
            persist: Persist::new(),
            gave_up: false,
            limited_transmit: params.limited_transmit,
            slow_after_timeout: params.slow_start.limit <= 2,
            window,
            control,
            draw: 0,
        }
    }

    /// Makes segments leave through a queue of the host; `paces` is whether this queue paces, and
    /// `supers` whether it holds super-packets as wholes.
    pub(crate) fn leave_by_host_queue(&mut self, paces: bool, supers: bool) {
        self.host_queue = Some(Box::new(HostQueue::new(paces, supers)));
    }

    /// Takes the results of the handshake.
    pub(crate) fn establish(&mut self, params: &Params, agreed: &Agreed) {
        let Agreed { at: now, mss, sack, ecn, lost_syns, .. } = *agreed;
        self.window = Window::new(mss, initial_window(params, lost_syns));
        let congestion = params.congestion.agreed(ecn.is_exact());
        self.control = Congestion::new(congestion, host(params), &self.window);
        self.rtt.establish(params, now, agreed.rtt, lost_syns);
        let start = Start { now, srtt: self.rtt.srtt(), draw: self.draw };
        self.control.on_start(&mut self.window, &start);
        self.answers_marks = self.control.answers_marks();
        let method = if sack { params.recovery } else { Method::NewReno };
        let whole = params.slow_start.count == Count::Segments;
        self.recovery = Recovery::new(method, self.control.owns_window()).counting(whole);
        self.restart.whole = whole;
        let rack = params.rack && self.recovery.uses_sack();
        self.rack = Rack::new(rack);
        self.probe = TailProbe::new(rack);
        self.ecn = EcnSender::new(ecn);
        self.rate = DeliveryRate::new(self.control.wants_rate());
        // Before the first write there was nothing to send (`tcp_rate_check_app_limited`).
        self.rate.on_app_limited(0);
        self.board = Scoreboard::new(self.window.mss, self.rate.is_enabled());
        let host_paces = self.host_queue.as_ref().is_some_and(|queue| queue.paces());
        self.pacer = Pacer::new(match params.pacing {
            Pacing::Auto => host_paces || self.control.pacing_rate().is_some(),
            Pacing::Off => false,
            Pacing::On => true,
        })
        .with_credit(params.pacing_credit)
        .delegating(host_paces);
        self.space.establish();
    }

    /// Returns the bytes written and not yet sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.stream.unsent(&self.space)
    }

    /// Returns whether the FIN is acknowledged.
    pub(crate) fn fin_acked(&self) -> bool {
        self.stream.fin_acked(&self.space)
    }

    /// Returns whether all written data and, after a close, the FIN are acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        self.space.una > 0
            && !self.stream.is_unlimited()
            && self.unsent() == 0
            && self.space.outstanding() == 0
            && (!self.stream.is_finished() || self.fin_acked())
    }

    /// Returns the bytes in flight: sent, and not known to be delivered or lost (RFC 6675,
    /// `SetPipe`).
    #[inline]
    pub(crate) fn pipe(&self) -> u64 {
        let gone = self.board.sacked_bytes() + self.board.lost_bytes() + self.duplicates.bytes();
        (self.space.outstanding() + self.board.repair_bytes()).saturating_sub(gone)
    }

    /// Returns all counters.
    pub(crate) fn counters(&self) -> Counters {
        let Frequent { segments, bytes, events } = self.frequent;
        Counters { segments, bytes, events, ..*self.others }
    }

    /// Returns the times until `now` in which window or buffer kept the sender from sending.
    pub(crate) fn limited(&self, now: Nanos) -> Limited {
        self.limits.until(now)
    }

    fn event(&mut self) {
        self.frequent.events += 1;
    }
}

/// Returns the initial window in segments: 1 if more than one SYN was lost (RFC 6928, section 2).
fn initial_window(params: &Params, lost_syns: u32) -> u64 {
    if lost_syns > 1 { 1 } else { u64::from(params.initial_window) }
}

/// Returns the timestamp clock at `now`, in milliseconds.
pub(crate) fn timestamp(now: Nanos) -> u32 {
    (now / MILLISECOND) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Ecn;
    use sojourn_units::SECOND;

    #[test]
    fn the_handshake_keeps_the_draw_and_begins_without_data() {
        let params = Params::parse("bbr").unwrap();
        let mut sender = Sender::new(&params);
        sender.draw = 4;
        let (mss, ecn) = (1448, Ecn::Off);
        let agreed = Agreed { at: SECOND, mss, sack: true, ecn, lost_syns: 0, rtt: None };
        sender.establish(&params, &agreed);
        assert!(format!("{:?}", sender.control).contains("first_phase: 5"));
        assert!(sender.rate.is_app_limited(), "before the first write");
    }
}
