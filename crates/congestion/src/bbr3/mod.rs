//! BBR version 3: a model of the path, bounded by losses.
//!
//! Source: draft-ietf-ccwg-bbr (its repository in August 2026); names in parentheses are the
//! draft's.
//! Idea: as in version 1, the greatest delivery rate and the least round-trip time determine the
//! rate and the window. The control probes for bandwidth only every two to three seconds, or after
//! at most 63 rounds, in a cycle of the phases down, cruise, refill and up. If a probe loses more
//! than 2 % in a round trip, its flight bounds the window (`inflight_longterm`) until another probe
//! shows that there is more capacity. Losses at other times bound rate and window until the next
//! probe (`bw_shortterm`, `inflight_shortterm`), by at most 30 % per round.
//! Invariants: cwnd is at least four segments after an acknowledgement; the control reacts to a
//! probe once; application-limited samples only raise the bandwidth.
//!
//! The draft requires that marks be treated as congestion, but does not define how; `marks` follows
//! the authors' implementation. Random waits are derived from the draw of [`Control::on_start`].

mod marks;

use self::marks::Marks;
use crate::control::{Control, ControlParams};
use crate::hystart;
use crate::path::{self, MIN_SEGMENTS, next_draw};
use crate::window::{Ack, Cause, Lost, SuperPacket, Window};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, probability, real, time};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, SECOND, params};

/// The number 1 in the fixed-point format of gains, which are in percent.
const UNIT: u64 = 100;
/// Pacing gain in startup: 4 ln 2 (`StartupPacingGain`).
const STARTUP_GAIN: u64 = 277;
const DRAIN_GAIN: u64 = 50;
const DOWN_GAIN: u64 = 90;
const UP_GAIN: u64 = 125;
/// Gains of cwnd: default (`DefaultCwndGain`), during a probe for bandwidth, and during a probe of
/// the round-trip time (`ProbeRTTCwndGain`).
const CWND_GAIN: u64 = 200;
const UP_CWND_GAIN: u64 = 225;
const PROBE_RTT_CWND_GAIN: u64 = 50;
/// Pacing rate in percent of the bandwidth times the gain: 1 % below it (`PacingMarginPercent`).
const MARGIN: u64 = 99;
/// Growth of the rate to 125 percent, which is required within three rounds; without this growth
/// the pipe counts as full.
const FULL_GROWTH: u64 = 125;
const FULL_ROUNDS: u32 = 3;
/// Minimum number of separate losses in a round that can end startup (`BBRStartupFullLossCnt`).
const FULL_LOSSES: u32 = 6;
/// Maximum number of rounds of drain.
const DRAIN_ROUNDS: u64 = 3;
/// Number of rounds over which the maximum excess of [`Aggregation`] is taken
/// (`ExtraAckedFilterLen`).
const AGGREGATION_ROUNDS: usize = 10;
/// Time between two probes for bandwidth, in nanoseconds, unless the maximum number of rounds ends
/// it; up to a second is added at random.
const PROBE_WAIT: Nanos = 2 * SECOND;
/// Maximum number of rounds between two probes for bandwidth, for coexistence with Reno and CUBIC.
const PROBE_ROUNDS: u64 = 63;
/// Maximum number of doublings of the slope with which a probe raises `inflight_longterm`.
const MAX_SLOPE: u32 = 30;
/// Maximum length of a super-packet in bytes; and s, where a super-packet lasts 2^-s seconds at the
/// pacing rate.
const SUPER_BYTES: u64 = 64 << 10;
const SUPER_SHIFT: u32 = 10;
/// Value of a bound that does not apply.
const UNBOUNDED: u64 = u64::MAX;

params! {
    /// Parameters of BBR version 3.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Params {
        /// Maximum share of a round trip's data that a probe for bandwidth may lose
        /// (`BBR.LossThresh`).
        loss_threshold: f64 = probability("2%"),
        /// Factor by which a round with losses multiplies the short-term bounds, unless more was
        /// delivered (`BBR.Beta`).
        beta: f64 = real(0.1, 0.95, "0.7"),
        /// Share of the long-term bound that the flow leaves unused between probes, for other flows
        /// (`BBR.Headroom`).
        headroom: f64 = probability("15%"),
        /// Maximum share of a round trip's data that may be marked in a probe for bandwidth
        /// (`bbr_ecn_thresh`).
        ecn_threshold: f64 = probability("50%"),
        /// Limit to which the minimum round-trip time must fall before marks have an effect; 0 for
        /// no limit (`bbr_ecn_max_rtt_us`).
        ecn_max_rtt: Nanos = time("5ms"),
        /// Time for which the smallest round-trip time is valid (`BBR.MinRTTFilterLen`).
        min_rtt_window: Nanos = time("10s"),
        /// Time without a new minimum of the round-trip time after which it is probed
        /// (`BBR.ProbeRTTInterval`).
        probe_rtt_interval: Nanos = time("5s"),
        /// Duration of a probe of the round-trip time (`BBR.ProbeRTTDuration`).
        probe_rtt: Nanos = time("200ms"),
    }
}

impl ControlParams for Params {
    const TABLE: Table = Table {
        name: "bbr3",
        summary: "TCP with BBR version 3: paced at the measured bandwidth, bounded by losses",
        source: "draft-ietf-ccwg-bbr",
        words: Self::WORDS,
    };

    type Control = Bbr3;

    fn build(&self, _slow_start: hystart::Params, window: &Window) -> Bbr3 {
        Bbr3::new(*self, window)
    }
}

/// Phase of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Startup: the sending rate doubles each round.
    Startup,
    /// Drain: the sender sends slowly, until the queue built in startup is empty.
    Drain,
    /// Down: the sender sends slowly, until the queue of a probe is empty and other flows have
    /// headroom.
    Down,
    /// Cruise: the flow sends at the estimated bandwidth.
    Cruise,
    /// Refill: the flow fills the pipe for one round before a probe.
    Refill,
    /// Up: the flow probes for bandwidth.
    Up,
    /// Probe of the round-trip time: the propagation delay is measured with half of the
    /// bandwidth-delay product in flight.
    ProbeRtt,
}

impl Mode {
    /// Returns whether the mode is one of the four phases of the cycle of probes.
    fn is_cycle(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Returns whether the control probes for bandwidth, so that losses are attributed to the probe
    /// and not to other flows.
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    fn gains(self) -> (u64, u64) {
        match self {
            Self::Startup => (STARTUP_GAIN, CWND_GAIN),
            Self::Drain => (DRAIN_GAIN, CWND_GAIN),
            Self::Down => (DOWN_GAIN, CWND_GAIN),
            Self::Cruise | Self::Refill => (UNIT, CWND_GAIN),
            Self::Up => (UP_GAIN, UP_CWND_GAIN),
            Self::ProbeRtt => (UNIT, PROBE_RTT_CWND_GAIN),
        }
    }
}

/// Part of a probe for bandwidth to which the present acknowledgements belong (`ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feedback {
    None,
    Refilling,
    Starting,
    Arriving,
    Stopping,
}

/// Delivery-rate sample of an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Rate in bytes per second; 0 if unknown.
    rate: u64,
    delivered: u64,
    limited: bool,
    in_flight: u64,
    lost: u64,
}

/// Detection of a full pipe.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    /// Rate in bytes per second; a rate of at least 5/4 of it restarts the detection (`full_bw`).
    rate: u64,
    rounds: u32,
    /// Whether the pipe counts as full since the last reset of the detection (`full_bw_now`).
    now: bool,
}

/// Measurement of aggregation: data that acknowledgements deliver beyond the expected amount.
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    start: Nanos,
    delivered: u64,
    /// Maximum excess in each of the last rounds, in bytes.
    excess: [u64; AGGREGATION_ROUNDS],
}

/// Bounds and phase before the first loss of a recovery, which are restored if the recovery proves
/// spurious.
#[derive(Clone, Copy, Debug)]
struct Undo {
    mode: Option<Mode>,
    bandwidth: u64,
    short: u64,
    long: u64,
}

/// State of BBR version 3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    params: Params,
    mode: Mode,
    /// Number of bytes delivered since the connection began, and value of this number at which the
    /// present round ends.
    delivered: u64,
    next_round: u64,
    round: u64,
    round_start: bool,
    /// Maximum delivery rates of the previous and the present cycle of probes, and the greater of
    /// the two, in bytes per second.
    cycles: [u64; 2],
    max_bandwidth: u64,
    /// Bandwidth in use in bytes per second: the maximum rate, limited by the short-term bound.
    bandwidth: u64,
    /// Short-term bound on the bandwidth in bytes per second, and short-term and long-term bounds
    /// on the data in flight in bytes (`bw_shortterm`, `inflight_shortterm`, `inflight_longterm`).
    short_bandwidth: u64,
    short: u64,
    long: u64,
    /// State of the round in which losses are counted: number of delivered bytes at which it ends,
    /// whether it has just begun, whether it has losses, and its maximum delivery rate and
    /// delivered bytes.
    loss_round: u64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    latest_bandwidth: u64,
    latest_delivered: u64,
    /// Number of separate losses in the round, and the end of the last one.
    losses: u32,
    loss_end: u64,
    /// Whether losses have occurred since the last probe.
    is_loss_in_cycle: bool,
    marks: Marks,
    selective: bool,
    full: FullPipe,
    /// Whether the pipe has been full at least once (`full_bw_reached`).
    is_full: bool,
    drain_round: u64,
    /// State of the cycle of probes for bandwidth.
    feedback: Feedback,
    cycle_start: Nanos,
    wait: Nanos,
    rounds_since_up: u64,
    is_probe_sample: bool,
    was_too_high: bool,
    was_precautionary: bool,
    up_rounds: u32,
    up_acked: u64,
    up_step: u64,
    min_rtt: Nanos,
    min_rtt_at: Nanos,
    /// Smallest round-trip time in the last `probe_rtt_interval`, in nanoseconds.
    probe_rtt_min: Nanos,
    probe_rtt_at: Nanos,
    is_probe_due: bool,
    probe_rtt_done: Nanos,
    probe_rtt_round_done: bool,
    /// Bandwidth samples of segments that were sent before this number of bytes was delivered count
    /// as limited by the application. A probe of the round-trip time sets the number, since few
    /// segments are in flight then.
    ignore_before: u64,
    restarted: bool,
    aggregation: Aggregation,
    pacing: u64,
    pacing_from_rtt: bool,
    initial_cwnd: u64,
    prior_cwnd: u64,
    recovering: bool,
    timed_out: bool,
    undo: Undo,
    is_saved: bool,
    draw: u32,
}

impl Bbr3 {
    /// Returns the control of a new connection.
    pub fn new(params: Params, window: &Window) -> Self {
        Self {
            params,
            mode: Mode::Startup,
            delivered: 0,
            next_round: 0,
            round: 0,
            round_start: false,
            cycles: [0; 2],
            max_bandwidth: 0,
            bandwidth: 0,
            short_bandwidth: UNBOUNDED,
            short: UNBOUNDED,
            long: UNBOUNDED,
            loss_round: 0,
            loss_round_start: false,
            is_loss_in_round: false,
            latest_bandwidth: 0,
            latest_delivered: 0,
            losses: 0,
            loss_end: UNBOUNDED,
            is_loss_in_cycle: false,
            marks: Marks::new(),
            selective: true,
            full: FullPipe::default(),
            is_full: false,
            drain_round: 0,
            feedback: Feedback::None,
            cycle_start: 0,
            wait: 0,
            rounds_since_up: 0,
            is_probe_sample: false,
            was_too_high: false,
            was_precautionary: false,
            up_rounds: 0,
            up_acked: 0,
            up_step: UNBOUNDED,
            min_rtt: Nanos::MAX,
            min_rtt_at: 0,
            probe_rtt_min: Nanos::MAX,
            probe_rtt_at: 0,
            is_probe_due: false,
            probe_rtt_done: 0,
            probe_rtt_round_done: false,
            ignore_before: 0,
            restarted: false,
            aggregation: Aggregation::default(),
            // Before the first sample, the round-trip time counts as a millisecond.
            pacing: path::gained(window.cwnd.saturating_mul(1000), STARTUP_GAIN, UNIT),
            pacing_from_rtt: false,
            initial_cwnd: window.cwnd,
            prior_cwnd: 0,
            recovering: false,
            timed_out: false,
            undo: Undo { mode: None, bandwidth: 0, short: 0, long: 0 },
            is_saved: false,
            draw: 0,
        }
    }

    /// Returns the present phase of BBR.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the bandwidth in use, in bytes per second.
    pub fn bandwidth(&self) -> u64 {
        self.bandwidth
    }

    /// Returns `gain` times the bandwidth-delay product, or the initial cwnd without an RTT sample.
    fn product(&self, bandwidth: u64, gain: u64) -> u64 {
        if self.min_rtt == Nanos::MAX {
            return self.initial_cwnd;
        }
        path::gained(path::bytes(bandwidth, self.min_rtt), gain, UNIT)
    }

    /// Returns `bytes`, but at least three super-packets and the minimum for pipelining; a probe
    /// for bandwidth adds two segments (`QuantizationBudget`).
    fn with_room(&self, window: &Window, bytes: u64) -> u64 {
        let quantum = (self.pacing >> SUPER_SHIFT).min(SUPER_BYTES).max(2 * window.mss);
        let bytes = bytes.max(3 * quantum).max(MIN_SEGMENTS * window.mss);
        if self.mode == Mode::Up { bytes.saturating_add(2 * window.mss) } else { bytes }
    }

    fn inflight(&self, window: &Window, bandwidth: u64) -> u64 {
        self.with_room(window, self.product(bandwidth, UNIT))
    }

    /// Returns the target of the data in flight, in bytes (`TargetInflight`).
    fn target(&self, window: &Window) -> u64 {
        self.product(self.bandwidth, UNIT).min(window.cwnd)
    }

    /// Returns the long-term bound minus the headroom for other flows, in bytes.
    fn with_headroom(&self, window: &Window) -> u64 {
        if self.long == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = share(self.long, self.params.headroom).max(window.mss);
        self.long.saturating_sub(headroom).max(MIN_SEGMENTS * window.mss)
    }

    fn start_round(&mut self) {
        self.next_round = self.delivered;
    }

    fn update_latest(&mut self, ack: &Ack, sample: &Sample) {
        self.loss_round_start = false;
        self.latest_bandwidth = self.latest_bandwidth.max(sample.rate);
        self.latest_delivered = self.latest_delivered.max(sample.delivered);
        if sample.delivered > 0 && ack.rate.prior_delivered >= self.loss_round {
            self.loss_round = self.delivered;
            self.loss_round_start = true;
        }
    }

    fn update_round(&mut self, ack: &Ack, sample: &Sample) {
        self.round_start = sample.delivered > 0 && ack.rate.prior_delivered >= self.next_round;
        if self.round_start {
            self.start_round();
            self.round = self.round.wrapping_add(1);
            self.rounds_since_up = self.rounds_since_up.saturating_add(1);
            let Params { ecn_max_rtt, ecn_threshold, .. } = self.params;
            self.marks.end_round(self.min_rtt, ecn_max_rtt, ecn_threshold);
            self.aggregation.excess[self.aggregation_slot()] = 0;
        }
    }

    fn update_bandwidth(&mut self, sample: &Sample) {
        if sample.rate > 0 && (sample.rate >= self.max_bandwidth || !sample.limited) {
            self.cycles[1] = self.cycles[1].max(sample.rate);
            self.max_bandwidth = self.cycles[0].max(self.cycles[1]);
        }
    }

    /// If the present cycle has a rate, ends it and discards the rate of the previous cycle.
    fn advance_cycle(&mut self) {
        if self.cycles[1] > 0 {
            self.cycles = [self.cycles[1], 0];
            self.max_bandwidth = self.cycles[0];
        }
    }

    /// Lowers the short-term bounds, once per round with losses or marks, outside probes
    /// (`AdaptLowerBoundsFromCongestion`).
    fn adapt_short_term(&mut self, window: &Window) {
        let cut = self.marks.cut();
        if self.mode.is_probing() || !(self.is_loss_in_round || cut.is_some()) {
            return;
        }
        if self.short == UNBOUNDED {
            self.short = window.cwnd;
        }
        let by_marks = cut.map_or(UNBOUNDED, |factor| share(self.short, factor));
        if self.is_loss_in_round {
            if self.short_bandwidth == UNBOUNDED {
                self.short_bandwidth = self.max_bandwidth;
            }
            let beta = self.params.beta;
            self.short_bandwidth = self.latest_bandwidth.max(share(self.short_bandwidth, beta));
            self.short = self.latest_delivered.max(share(self.short, beta));
        }
        self.short = self.short.min(by_marks);
    }

    fn reset_short_term(&mut self) {
        self.short_bandwidth = UNBOUNDED;
        self.short = UNBOUNDED;
    }

    fn reset_signals(&mut self) {
        self.is_loss_in_round = false;
        self.is_loss_in_cycle = false;
        self.marks.forget_cycle();
        self.latest_bandwidth = 0;
        self.latest_delivered = 0;
    }

    fn aggregation_slot(&self) -> usize {
        (self.round % AGGREGATION_ROUNDS as u64) as usize
    }

    fn update_aggregation(&mut self, window: &Window, ack: &Ack) {
        let span = ack.now.saturating_sub(self.aggregation.start);
        let mut expected = path::bytes(self.bandwidth, span);
        let slot = self.aggregation_slot();
        let state = &mut self.aggregation;
        if state.delivered <= expected {
            state.delivered = 0;
            state.start = ack.now;
            expected = 0;
        }
        state.delivered = state.delivered.saturating_add(ack.delivered);
        let extra = (state.delivered - expected.min(state.delivered)).min(window.cwnd);
        state.excess[slot] = state.excess[slot].max(extra);
    }

    /// Returns the maximum aggregation of the last ten rounds in bytes; in startup, of the present
    /// round.
    fn extra(&self) -> u64 {
        let excess = &self.aggregation.excess;
        let most = excess.iter().copied().max().unwrap_or(0);
        if self.is_full { most } else { excess[self.aggregation_slot()] }
    }

    fn is_too_high(&self, lost: u64, in_flight: u64) -> bool {
        lost > share(in_flight, self.params.loss_threshold) || (lost > 0 && !self.selective)
    }

    fn note_loss(&mut self, window: &Window) {
        if !self.is_loss_in_round {
            self.loss_round = self.delivered;
            self.save(window);
        }
        self.is_loss_in_round = true;
        self.is_loss_in_cycle = true;
    }

    /// Saves the state before the first loss of a recovery, for undo: later losses, also in other
    /// rounds, must not replace it (`SaveStateUponLoss`).
    fn save(&mut self, window: &Window) {
        self.save_cwnd(window);
        if self.is_saved {
            return;
        }
        self.is_saved = true;
        let (bandwidth, short, long) = (self.short_bandwidth, self.short, self.long);
        self.undo = Undo { mode: None, bandwidth, short, long };
    }

    fn save_cwnd(&mut self, window: &Window) {
        self.prior_cwnd = if self.recovering || self.mode == Mode::ProbeRtt {
            self.prior_cwnd.max(window.cwnd)
        } else {
            window.cwnd
        };
    }

    /// Reacts to a probe with too many losses or marks (`HandleInflightTooHigh`).
    fn on_too_high(&mut self, window: &Window, now: Nanos, in_flight: u64, limited: bool) {
        self.was_too_high = true;
        self.is_probe_sample = false;
        if !limited {
            self.long = in_flight.max(share(self.target(window), self.params.beta));
        }
        if self.mode == Mode::Up {
            self.undo.mode = Some(Mode::Up);
            self.start_down(now);
        }
    }

    fn check_startup_loss(&mut self, ack: &Ack, sample: &Sample) {
        if self.mode == Mode::Startup && !self.is_full {
            let in_recovery = ack.in_recovery && !self.timed_out;
            let many = in_recovery && self.losses >= FULL_LOSSES;
            let over = many && self.is_too_high(sample.lost, sample.in_flight);
            let single = !self.selective && in_recovery && self.losses > 0;
            let is_lossy = (self.loss_round_start && over) || single;
            if is_lossy {
                self.undo.mode = Some(Mode::Startup);
            }
            if is_lossy || self.marks.end_startup() {
                self.is_full = true;
                self.full.now = true;
                let bdp = self.product(self.bandwidth, UNIT);
                self.long = bdp.max(self.latest_delivered);
            }
        }
        if self.loss_round_start {
            self.losses = 0;
        }
    }

    fn reset_full(&mut self, rate: u64) {
        self.full = FullPipe { rate, ..FullPipe::default() };
    }

    fn check_full(&mut self, sample: &Sample) {
        if self.full.now || !self.round_start || sample.limited {
            return;
        }
        if sample.rate >= path::gained(self.full.rate, FULL_GROWTH, UNIT) {
            return self.reset_full(sample.rate);
        }
        self.full.rounds += 1;
        self.full.now = self.full.rounds >= FULL_ROUNDS;
        self.is_full |= self.full.now;
    }

    fn check_startup(&mut self, window: &mut Window, ack: &Ack, sample: &Sample) {
        self.check_startup_loss(ack, sample);
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            self.drain_round = self.round;
            // With this ssthresh, `Window::in_slow_start` is false after Startup, except between a
            // timeout and the next ACK, and after an undo that restores Startup's ssthresh.
            window.ssthresh = window.floor();
        }
    }

    fn check_drain(&mut self, window: &Window, ack: &Ack) {
        if self.mode == Mode::Drain
            && (ack.in_flight <= self.inflight(window, self.bandwidth)
                || self.round.wrapping_sub(self.drain_round) > DRAIN_ROUNDS)
        {
            self.start_down(ack.now);
        }
    }

    fn start_down(&mut self, now: Nanos) {
        self.reset_signals();
        self.up_step = UNBOUNDED;
        let draw = u64::from(next_draw(&mut self.draw));
        self.rounds_since_up = draw & 1;
        self.wait = PROBE_WAIT + u64::from(next_draw(&mut self.draw)) * SECOND / (1 << 16);
        self.cycle_start = now;
        self.feedback = Feedback::Stopping;
        self.start_round();
        self.mode = Mode::Down;
    }

    /// Starts a refill. In the first round of the probe that follows, the long-term bound rises by
    /// up to 2^`up_rounds` segments.
    fn start_refill(&mut self, up_rounds: u32) {
        self.reset_short_term();
        self.up_rounds = up_rounds;
        self.up_acked = 0;
        self.was_precautionary = false;
        self.feedback = Feedback::Refilling;
        self.start_round();
        self.mode = Mode::Refill;
    }

    fn start_up(&mut self, window: &Window, sample: &Sample) {
        self.is_probe_sample = true;
        self.feedback = Feedback::Starting;
        self.start_round();
        self.reset_full(sample.rate);
        self.mode = Mode::Up;
        self.raise_slope(window);
    }

    fn raise_slope(&mut self, window: &Window) {
        let growth = 1 << self.up_rounds;
        self.up_rounds = (self.up_rounds + 1).min(MAX_SLOPE);
        self.up_step = (window.cwnd / growth).max(window.mss);
    }

    /// Raises the long-term bound while the window uses all of it (`ProbeInflightLongtermUpward`).
    fn raise_bound(&mut self, window: &Window, ack: &Ack) {
        if !ack.cwnd_limited || window.cwnd < self.long {
            return;
        }
        self.up_acked = self.up_acked.saturating_add(ack.delivered);
        let steps = self.up_acked / self.up_step.max(1);
        self.up_acked -= steps * self.up_step;
        self.long = self.long.saturating_add(steps.saturating_mul(window.mss)).min(UNBOUNDED - 1);
        if self.round_start {
            self.raise_slope(window);
        }
    }

    /// Adapts the long-term bound (`AdaptLongTermModel`); returns whether this has changed the
    /// phase.
    fn adapt_long_term(&mut self, window: &Window, ack: &Ack, sample: &Sample) -> bool {
        if self.feedback == Feedback::Starting && self.round_start {
            self.feedback = Feedback::Arriving;
        }
        if self.feedback == Feedback::Stopping && self.round_start {
            self.is_probe_sample = false;
            self.feedback = Feedback::None;
            if self.mode.is_cycle() {
                if !sample.limited {
                    self.advance_cycle();
                }
                if self.was_precautionary && !self.was_too_high {
                    self.start_refill(0);
                    return true;
                }
            }
        }
        let over_marked = self.marks.is_too_high(self.params.ecn_threshold);
        if over_marked && self.is_probe_sample {
            self.on_too_high(window, ack.now, sample.in_flight, sample.limited);
        }
        let too_high = over_marked || self.is_too_high(sample.lost, sample.in_flight);
        if too_high || self.long == UNBOUNDED {
            return false;
        }
        self.long = self.long.max(sample.in_flight.min(UNBOUNDED - 1));
        if self.mode == Mode::Up {
            self.raise_bound(window, ack);
        }
        false
    }

    fn update_cycle(&mut self, window: &Window, ack: &Ack, sample: &Sample) {
        if !self.is_full || self.adapt_long_term(window, ack, sample) {
            return;
        }
        if self.mode == Mode::Up && self.is_time_to_go_down(window, ack, sample) {
            self.was_too_high = false;
            return self.start_down(ack.now);
        }
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_path_clear(ack) => {
                let segments = (self.long / window.mss / 2).max(1);
                self.start_refill(segments.ilog2().min(MAX_SLOPE));
            }
            Mode::Down | Mode::Cruise if self.is_time_to_probe(window, ack.now) => {
                self.start_refill(0);
            }
            Mode::Down if self.is_time_to_cruise(window, ack) => self.mode = Mode::Cruise,
            Mode::Refill if self.round_start => self.start_up(window, sample),
            _ => {}
        }
    }

    /// Returns whether marks without losses have ceased, perhaps because other traffic has ended;
    /// then a probe starts immediately.
    fn is_path_clear(&self, ack: &Ack) -> bool {
        self.marks.ceased() && !self.is_loss_in_cycle && !ack.in_recovery
    }

    fn is_time_to_probe(&self, window: &Window, now: Nanos) -> bool {
        let rounds = (self.target(window) / window.mss).min(PROBE_ROUNDS);
        now > self.cycle_start.saturating_add(self.wait) || self.rounds_since_up >= rounds
    }

    fn is_time_to_cruise(&self, window: &Window, ack: &Ack) -> bool {
        ack.in_flight <= self.with_headroom(window)
            && ack.in_flight <= self.inflight(window, self.max_bandwidth)
    }

    fn is_time_to_go_down(&mut self, window: &Window, ack: &Ack, sample: &Sample) -> bool {
        if self.was_too_high && ack.in_flight >= self.long {
            self.was_precautionary = true;
            return true;
        }
        if ack.cwnd_limited && window.cwnd >= self.long {
            // The long-term bound, not the path, has limited the growth of the rate.
            self.reset_full(sample.rate);
            return false;
        }
        self.full.now
    }

    fn update_min_rtt(&mut self, ack: &Ack) {
        let known = self.probe_rtt_min != Nanos::MAX;
        let due = self.probe_rtt_at.saturating_add(self.params.probe_rtt_interval);
        self.is_probe_due = known && ack.now > due;
        if ack.rtt > 0 && (ack.rtt < self.probe_rtt_min || self.is_probe_due) {
            self.probe_rtt_min = ack.rtt;
            self.probe_rtt_at = ack.now;
        }
        let expired = ack.now > self.min_rtt_at.saturating_add(self.params.min_rtt_window);
        if self.probe_rtt_min < self.min_rtt || expired {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_at = self.probe_rtt_at;
        }
    }

    fn check_probe_rtt(&mut self, window: &mut Window, ack: &Ack) {
        if self.mode != Mode::ProbeRtt && self.is_probe_due && !self.restarted {
            self.save_cwnd(window);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_done = 0;
            self.feedback = Feedback::Stopping;
            self.start_round();
        }
        if self.mode == Mode::ProbeRtt {
            self.ignore_before = self.delivered.saturating_add(ack.in_flight);
            if self.probe_rtt_done == 0 {
                if ack.in_flight <= self.probe_rtt_cwnd(window) {
                    self.probe_rtt_done = ack.now.saturating_add(self.params.probe_rtt);
                    self.probe_rtt_round_done = false;
                    self.start_round();
                }
            } else {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(window, ack.now);
                }
            }
        }
        if ack.rate.delivered > 0 {
            self.restarted = false;
        }
    }

    fn check_probe_rtt_done(&mut self, window: &mut Window, now: Nanos) {
        if self.probe_rtt_done == 0 || now <= self.probe_rtt_done {
            return;
        }
        self.probe_rtt_at = now;
        window.set_cwnd(window.cwnd.max(self.prior_cwnd));
        self.reset_short_term();
        if self.is_full {
            self.start_down(now);
            self.mode = Mode::Cruise;
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn probe_rtt_cwnd(&self, window: &Window) -> u64 {
        self.product(self.bandwidth, PROBE_RTT_CWND_GAIN).max(MIN_SEGMENTS * window.mss)
    }

    fn pace(&mut self, gain: u64) {
        let rate = path::gained(path::gained(self.bandwidth, gain, UNIT), MARGIN, UNIT);
        if rate > 0 && (self.is_full || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    fn update_pacing(&mut self, ack: &Ack) {
        if !self.pacing_from_rtt && ack.srtt > 0 {
            self.pacing_from_rtt = true;
            let rate = u128::from(self.initial_cwnd) * u128::from(SECOND) / u128::from(ack.srtt);
            let rate = u64::try_from(rate).unwrap_or(u64::MAX);
            self.pacing = path::gained(rate, STARTUP_GAIN, UNIT);
        }
        self.pace(self.mode.gains().0);
    }

    fn update_cwnd(&mut self, window: &mut Window, ack: &Ack) {
        let wanted = self.product(self.bandwidth, self.mode.gains().1);
        let most = self.with_room(window, wanted.saturating_add(self.extra()));
        let grown = window.cwnd.saturating_add(ack.delivered);
        let mut cwnd = window.cwnd;
        if self.is_full {
            cwnd = grown.min(most);
        } else if cwnd < most || self.delivered < self.initial_cwnd {
            cwnd = grown;
        }
        let least = MIN_SEGMENTS * window.mss;
        cwnd = cwnd.max(least);
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd(window));
        }
        let cap = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.long,
            Mode::Cruise | Mode::ProbeRtt => self.with_headroom(window),
            Mode::Startup | Mode::Drain => UNBOUNDED,
        };
        window.set_cwnd(cwnd.min(cap.min(self.short).max(least)));
    }
}

/// Returns the fraction `part` of `bytes`.
fn share(bytes: u64, part: f64) -> u64 {
    (bytes as f64 * part) as u64
}

impl Control for Bbr3 {
    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("mode", self.mode as i128);
        visit("bandwidth", i128::from(self.bandwidth));
        visit("min_rtt", i128::from(self.min_rtt));
        visit("pacing_gain", i128::from(self.mode.gains().0));
        visit("inflight_longterm", i128::from(self.long));
        visit("inflight_shortterm", i128::from(self.short));
        visit("round", i128::from(self.round));
    }

    fn on_start(&mut self, _window: &mut Window, now: Nanos, draw: u32) {
        self.draw = draw;
        self.min_rtt_at = now;
        self.probe_rtt_at = now;
        self.aggregation.start = now;
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.delivered = ack.rate.total;
        let sample = Sample {
            rate: path::rate(&ack.rate),
            delivered: ack.rate.delivered,
            limited: ack.rate.app_limited || ack.rate.prior_delivered < self.ignore_before,
            in_flight: ack.rate.in_flight,
            lost: ack.rate.lost,
        };
        self.marks.count(ack.delivered, ack.marked);
        self.update_latest(ack, &sample);
        self.update_round(ack, &sample);
        self.update_bandwidth(&sample);
        if self.loss_round_start {
            self.adapt_short_term(window);
            self.is_loss_in_round = false;
            self.marks.forget_round();
        }
        self.update_aggregation(window, ack);
        self.check_full(&sample);
        self.check_startup(window, ack, &sample);
        self.check_drain(window, ack);
        if sample.delivered > 0 {
            self.update_cycle(window, ack, &sample);
        }
        self.update_min_rtt(ack);
        self.check_probe_rtt(window, ack);
        if self.loss_round_start {
            self.latest_bandwidth = sample.rate;
            self.latest_delivered = sample.delivered;
        }
        self.bandwidth = self.max_bandwidth.min(self.short_bandwidth);
        self.update_pacing(ack);
        self.update_cwnd(window, ack);
        self.recovering = ack.in_recovery;
        self.is_saved &= ack.in_recovery;
    }

    fn on_lost(&mut self, window: &Window, lost: &Lost) {
        self.delivered = lost.delivered;
        self.selective = lost.selective;
        self.note_loss(window);
        if lost.seq != self.loss_end {
            self.losses = self.losses.saturating_add(1);
        }
        self.loss_end = lost.seq.saturating_add(lost.len);
        if !self.is_probe_sample || !self.is_too_high(lost.lost, lost.in_flight) {
            return;
        }
        // Compute the data in flight at which the losses reached the threshold (`InflightAtLoss`).
        let threshold = self.params.loss_threshold;
        let before = lost.in_flight.saturating_sub(lost.len);
        let lost_before = lost.lost.saturating_sub(lost.len);
        let allowed = share(before, threshold).saturating_sub(lost_before);
        let in_flight = before.saturating_add(share(allowed, 1.0 / (1.0 - threshold)));
        self.on_too_high(window, lost.now, in_flight, lost.app_limited);
    }

    fn reduce(&mut self, window: &Window, _flight: u64, cause: Cause, _now: Nanos) -> u64 {
        if cause != Cause::Ecn {
            self.save(window);
            self.recovering = true;
            self.timed_out = cause == Cause::Timeout;
        }
        window.ssthresh.max(window.floor())
    }

    fn on_recovery_exit(&mut self, window: &mut Window) {
        if self.recovering {
            window.set_cwnd(window.cwnd.max(self.prior_cwnd));
        }
        self.recovering = false;
        self.timed_out = false;
    }

    fn on_undo(&mut self) {
        let undo = self.undo;
        self.is_loss_in_round = false;
        self.reset_full(0);
        self.short_bandwidth = self.short_bandwidth.max(undo.bandwidth);
        self.short = self.short.max(undo.short);
        self.long = self.long.max(undo.long);
        match undo.mode {
            Some(Mode::Startup) if self.mode != Mode::Startup => {
                self.is_full = false;
                if self.mode != Mode::ProbeRtt {
                    self.mode = Mode::Startup;
                }
            }
            Some(Mode::Up) if !matches!(self.mode, Mode::Up | Mode::ProbeRtt) => {
                self.start_refill(0);
            }
            _ => {}
        }
        self.undo.mode = None;
        self.is_saved = false;
    }

    fn on_restart(&mut self, window: &mut Window, now: Nanos, _idle: Nanos) {
        self.restarted = true;
        self.aggregation.start = now;
        if self.mode.is_cycle() {
            self.pace(UNIT);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(window, now);
        }
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing.max(1))
    }

    fn super_packet(&self) -> SuperPacket {
        SuperPacket { shift: SUPER_SHIFT, least: 2, larger_nearby: false }
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn answers_marks(&self) -> bool {
        true
    }

    fn wants_rate(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
