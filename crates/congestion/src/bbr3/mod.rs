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

mod aggregation;
mod bounds;
mod cycle;
mod marks;
mod min_rtt;
mod signals;

use self::aggregation::Aggregation;
use self::bounds::{Bounds, MaxBandwidth, UNBOUNDED};
use self::cycle::{Cycle, Slope};
use self::marks::Marks;
use self::min_rtt::MinRtt;
use self::signals::Signals;
use crate::control::{Control, ControlParams, Host};
use crate::path::{self, FullPipe, MIN_SEGMENTS, Pacing, Recovery, Rounds, RttProbe, share};
use crate::window::{Ack, Cause, Lost, Start, SuperPacket, Window};
use sojourn_units::declare::{probability, real, time};
use sojourn_units::{Nanos, params};

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
/// Minimum number of separate losses in a round that can end startup (`BBRStartupFullLossCnt`).
const FULL_LOSSES: u32 = 6;
/// Maximum number of rounds of drain.
const DRAIN_ROUNDS: u64 = 3;
/// Maximum length of a super-packet in bytes; and s, where a super-packet lasts 2^-s seconds at the
/// pacing rate.
const SUPER_BYTES: u64 = 64 << 10;
const SUPER_SHIFT: u32 = 10;
params! {
    "bbr3": "TCP with BBR version 3: paced at the measured bandwidth, bounded by losses",
    from "draft-ietf-ccwg-bbr";

    /// Parameters of BBR version 3.
    #[derive(Clone, Copy, Debug, PartialEq)]
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
    type Control = Bbr3;

    fn build(&self, _host: Host, window: &Window) -> Bbr3 {
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

/// Delivery rate of an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Bytes per second; 0 if unknown.
    rate: u64,
    /// Whether the application or a probe of the round-trip time limited the rate.
    is_limited: bool,
}

/// Phase and bounds before the first loss of a recovery, which are restored if the recovery proves
/// spurious.
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    is_saved: bool,
    mode: Option<Mode>,
    bounds: Bounds,
}

/// State of BBR version 3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    params: Params,
    mode: Mode,
    rounds: Rounds,
    /// Maximum delivery rate, and the bandwidth in use in bytes per second: the maximum rate,
    /// limited by the short-term bound (`bw`).
    max: MaxBandwidth,
    bandwidth: u64,
    bounds: Bounds,
    signals: Signals,
    marks: Marks,
    full: FullPipe,
    /// Whether the pipe has been full at least once (`full_bw_reached`).
    is_full: bool,
    /// Round in which drain began.
    drain_round: u64,
    cycle: Cycle,
    min_rtt: MinRtt,
    probe_rtt: RttProbe,
    aggregation: Aggregation,
    pacing: Pacing,
    initial_cwnd: u64,
    recovery: Recovery,
    undo: Undo,
    /// Whether the last delivery-rate sample was limited by the application or by a probe, for
    /// traces.
    was_limited: bool,
}

impl Bbr3 {
    /// Returns the control of a new connection.
    pub fn new(params: Params, window: &Window) -> Self {
        Self {
            params,
            mode: Mode::Startup,
            rounds: Rounds::default(),
            max: MaxBandwidth::default(),
            bandwidth: 0,
            bounds: Bounds::NONE,
            signals: Signals::default(),
            marks: Marks::new(),
            full: FullPipe::default(),
            is_full: false,
            drain_round: 0,
            cycle: Cycle::default(),
            min_rtt: MinRtt::new(0),
            probe_rtt: RttProbe::default(),
            aggregation: Aggregation::default(),
            pacing: Pacing::new(window.cwnd, STARTUP_GAIN, UNIT),
            initial_cwnd: window.cwnd,
            recovery: Recovery::default(),
            undo: Undo::default(),
            was_limited: false,
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
        if self.min_rtt.long.rtt == Nanos::MAX {
            return self.initial_cwnd;
        }
        path::gained(path::bytes(bandwidth, self.min_rtt.long.rtt), gain, UNIT)
    }

    /// Returns `bytes`, but at least three super-packets and the minimum for pipelining; a probe
    /// for bandwidth adds two segments (`QuantizationBudget`).
    fn with_room(&self, window: &Window, bytes: u64) -> u64 {
        let quantum = (self.pacing.rate >> SUPER_SHIFT).min(SUPER_BYTES).max(2 * window.mss);
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

    fn with_headroom(&self, window: &Window) -> u64 {
        self.bounds.with_headroom(window, self.params.headroom)
    }

    fn update_round(&mut self, ack: &Ack) {
        self.rounds.update(&ack.rate);
        if self.rounds.has_started {
            self.cycle.rounds = self.cycle.rounds.saturating_add(1);
            let Params { ecn_max_rtt, ecn_threshold, .. } = self.params;
            self.marks.end_round(self.min_rtt.long.rtt, ecn_max_rtt, ecn_threshold);
            self.aggregation.start_round(self.rounds.count);
        }
    }

    /// Adapts the short-term bounds at the end of a round of losses, except in probes.
    fn adapt_short_term(&mut self, window: &Window) {
        if !self.signals.loss_round_start {
            return;
        }
        let cut = self.marks.cut();
        if !self.mode.is_probing() && (self.signals.loss_in_round || cut.is_some()) {
            let (max, beta) = (self.max.value, self.params.beta);
            self.bounds.adapt_short_term(window, max, &self.signals, cut, beta);
        }
        self.signals.loss_in_round = false;
        self.marks.forget_round();
    }

    fn is_too_high(&self, lost: u64, in_flight: u64) -> bool {
        lost > share(in_flight, self.params.loss_threshold) || (lost > 0 && self.signals.lacks_sack)
    }

    /// Saves the state before the first loss of a recovery, for undo: later losses, also in other
    /// rounds, must not replace it (`SaveStateUponLoss`).
    fn save(&mut self, window: &Window) {
        self.recovery.save_cwnd(window.cwnd, self.mode == Mode::ProbeRtt);
        if !self.undo.is_saved {
            self.undo = Undo { is_saved: true, mode: None, bounds: self.bounds };
        }
    }

    /// Reacts to a probe with too many losses or marks (`HandleInflightTooHigh`).
    fn on_too_high(&mut self, window: &Window, now: Nanos, in_flight: u64, is_limited: bool) {
        self.cycle.was_too_high = true;
        self.cycle.is_probe_sample = false;
        if !is_limited {
            let least = share(self.target(window), self.params.beta);
            self.bounds.inflight_longterm = in_flight.max(least);
        }
        if self.mode == Mode::Up {
            self.undo.mode = Some(Mode::Up);
            self.start_down(now);
        }
    }

    fn check_startup_loss(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && !self.is_full {
            let in_recovery = ack.in_recovery && !self.recovery.timed_out;
            let many = in_recovery && self.signals.loss_events >= FULL_LOSSES;
            let over = many && self.is_too_high(ack.rate.lost, ack.rate.in_flight);
            let single = self.signals.lacks_sack && in_recovery && self.signals.loss_events > 0;
            let is_lossy = (self.signals.loss_round_start && over) || single;
            if is_lossy {
                self.undo.mode = Some(Mode::Startup);
            }
            if is_lossy || self.marks.end_startup() {
                self.is_full = true;
                self.full.now = true;
                let bdp = self.product(self.bandwidth, UNIT);
                self.bounds.inflight_longterm = bdp.max(self.signals.inflight_latest);
            }
        }
        if self.signals.loss_round_start {
            self.signals.loss_events = 0;
        }
    }

    fn check_full(&mut self, sample: &Sample) {
        if self.full.now || !self.rounds.has_started || sample.is_limited {
            return;
        }
        self.full.update(sample.rate);
        self.is_full |= self.full.now;
    }

    fn check_startup(&mut self, window: &mut Window, ack: &Ack) {
        self.check_startup_loss(ack);
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            self.drain_round = self.rounds.count;
            // With this ssthresh, `Window::in_slow_start` is false after Startup, except between a
            // timeout and the next ACK, and after an undo that restores Startup's ssthresh.
            window.ssthresh = window.floor();
        }
    }

    fn check_drain(&mut self, window: &Window, ack: &Ack) {
        if self.mode == Mode::Drain
            && (ack.in_flight <= self.inflight(window, self.bandwidth)
                || self.rounds.count.wrapping_sub(self.drain_round) > DRAIN_ROUNDS)
        {
            self.start_down(ack.now);
        }
    }

    fn start_down(&mut self, now: Nanos) {
        self.signals.reset();
        self.marks.forget_cycle();
        self.cycle.start_down(now);
        self.rounds.restart();
        self.mode = Mode::Down;
    }

    fn start_refill(&mut self, slope: Slope) {
        self.bounds.reset_short_term();
        self.cycle.start_refill(slope);
        self.rounds.restart();
        self.mode = Mode::Refill;
    }

    fn start_up(&mut self, window: &Window, sample: &Sample) {
        self.cycle.start_up(window);
        self.rounds.restart();
        self.full.reset(sample.rate);
        self.mode = Mode::Up;
    }

    /// Raises the long-term bound while the window uses all of it (`ProbeInflightLongtermUpward`).
    fn raise_bound(&mut self, window: &Window, ack: &Ack) {
        let bound = &mut self.bounds.inflight_longterm;
        if !ack.cwnd_limited || window.cwnd < *bound {
            return;
        }
        let growth = self.cycle.slope.climb(window, ack.delivered);
        *bound = bound.saturating_add(growth).min(UNBOUNDED - 1);
        if self.rounds.has_started {
            self.cycle.slope.double(window);
        }
    }

    /// Adapts the long-term bound (`AdaptLongTermModel`); returns whether this has changed the
    /// phase.
    fn adapt_long_term(&mut self, window: &Window, ack: &Ack, sample: &Sample) -> bool {
        if self.cycle.is_stopping && self.rounds.has_started {
            self.cycle.is_probe_sample = false;
            self.cycle.is_stopping = false;
            if self.mode.is_cycle() {
                if !sample.is_limited {
                    self.max.advance();
                }
                if self.cycle.was_precautionary && !self.cycle.was_too_high {
                    self.start_refill(Slope::new(0));
                    return true;
                }
            }
        }
        let over_marked = self.marks.is_too_high(self.params.ecn_threshold);
        if over_marked && self.cycle.is_probe_sample {
            self.on_too_high(window, ack.now, ack.rate.in_flight, sample.is_limited);
        }
        let too_high = over_marked || self.is_too_high(ack.rate.lost, ack.rate.in_flight);
        if too_high || self.bounds.inflight_longterm == UNBOUNDED {
            return false;
        }
        let bound = &mut self.bounds.inflight_longterm;
        *bound = (*bound).max(ack.rate.in_flight.min(UNBOUNDED - 1));
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
            self.cycle.was_too_high = false;
            return self.start_down(ack.now);
        }
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_path_clear(ack) => {
                let segments = (self.bounds.inflight_longterm / window.mss / 2).max(1);
                self.start_refill(Slope::new(segments.ilog2()));
            }
            Mode::Down | Mode::Cruise if self.is_time_to_probe(window, ack.now) => {
                self.start_refill(Slope::new(0));
            }
            Mode::Down if self.is_time_to_cruise(window, ack) => self.mode = Mode::Cruise,
            Mode::Refill if self.rounds.has_started => self.start_up(window, sample),
            _ => {}
        }
    }

    /// Returns whether marks without losses have ceased, perhaps because other traffic has ended;
    /// then a probe starts immediately.
    fn is_path_clear(&self, ack: &Ack) -> bool {
        self.marks.ceased() && !self.signals.loss_in_cycle && !ack.in_recovery
    }

    fn is_time_to_probe(&self, window: &Window, now: Nanos) -> bool {
        self.cycle.is_wait_over(window, now, self.target(window))
    }

    fn is_time_to_cruise(&self, window: &Window, ack: &Ack) -> bool {
        ack.in_flight <= self.with_headroom(window)
            && ack.in_flight <= self.inflight(window, self.max.value)
    }

    fn is_time_to_go_down(&mut self, window: &Window, ack: &Ack, sample: &Sample) -> bool {
        if self.cycle.was_too_high && ack.in_flight >= self.bounds.inflight_longterm {
            self.cycle.was_precautionary = true;
            return true;
        }
        if ack.cwnd_limited && window.cwnd >= self.bounds.inflight_longterm {
            // The long-term bound, not the path, has limited the growth of the rate.
            self.full.reset(sample.rate);
            return false;
        }
        self.full.now
    }

    fn check_probe_rtt(&mut self, window: &mut Window, ack: &Ack) {
        if self.mode != Mode::ProbeRtt && self.min_rtt.is_probe_due && !self.probe_rtt.idle_restart
        {
            self.recovery.save_cwnd(window.cwnd, self.mode == Mode::ProbeRtt);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt.done = 0;
            self.cycle.is_stopping = true;
            self.rounds.restart();
        }
        if self.mode == Mode::ProbeRtt {
            let limit = self.probe_rtt_cwnd(window);
            if self.probe_rtt.advance(&mut self.rounds, ack, limit, self.params.probe_rtt) {
                self.check_probe_rtt_done(window, ack.now);
            }
        }
        if ack.rate.delivered > 0 {
            self.probe_rtt.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, window: &mut Window, now: Nanos) {
        if self.probe_rtt.done == 0 || now <= self.probe_rtt.done {
            return;
        }
        self.min_rtt.short.at = now;
        window.set_cwnd(window.cwnd.max(self.recovery.prior_cwnd));
        self.bounds.reset_short_term();
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
        self.pacing.set(rate, self.is_full);
    }

    fn update_cwnd(&mut self, window: &mut Window, ack: &Ack) {
        let wanted = self.product(self.bandwidth, self.mode.gains().1);
        let extra = self.aggregation.extra(self.rounds.count, self.is_full);
        let most = self.with_room(window, wanted.saturating_add(extra));
        let grown = window.cwnd.saturating_add(ack.delivered);
        let mut cwnd = window.cwnd;
        if self.is_full {
            cwnd = grown.min(most);
        } else if cwnd < most || self.rounds.delivered < self.initial_cwnd {
            cwnd = grown;
        }
        let least = MIN_SEGMENTS * window.mss;
        cwnd = cwnd.max(least);
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd(window));
        }
        let cap = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.bounds.inflight_longterm,
            Mode::Cruise | Mode::ProbeRtt => self.with_headroom(window),
            Mode::Startup | Mode::Drain => UNBOUNDED,
        };
        window.set_cwnd(cwnd.min(cap.min(self.bounds.inflight_shortterm).max(least)));
    }
}

impl Control for Bbr3 {
    fn mode(&self) -> Option<&dyn std::fmt::Debug> {
        Some(&self.mode)
    }

    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        let mut add = |name, value: u64| visit(name, i128::from(value));
        let (pacing, cwnd) = self.mode.gains();
        add("mode", self.mode as u64);
        add("bandwidth", self.bandwidth);
        add("max_bw", self.max.value);
        add("bw_shortterm", self.bounds.bw_shortterm);
        add("min_rtt", self.min_rtt.long.rtt);
        add("pacing_gain", pacing);
        add("cwnd_gain", cwnd);
        add("inflight_longterm", self.bounds.inflight_longterm);
        add("inflight_shortterm", self.bounds.inflight_shortterm);
        add("extra_acked", self.aggregation.extra(self.rounds.count, self.is_full));
        add("full_bw_count", u64::from(self.full.rounds));
        add("full_bw_now", u64::from(self.full.now));
        add("full_bw_reached", u64::from(self.is_full));
        add("is_app_limited", u64::from(self.was_limited));
        add("idle_restart", u64::from(self.probe_rtt.idle_restart));
        add("bw_probe_wait", self.cycle.wait);
        add("round", self.rounds.count);
    }

    fn on_start(&mut self, _window: &mut Window, start: &Start) {
        self.cycle.draw = start.draw;
        self.min_rtt = MinRtt::new(start.now);
        self.aggregation.start = start.now;
        self.pacing.measure(self.initial_cwnd, start.srtt, STARTUP_GAIN, UNIT);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.rounds.delivered = ack.rate.total;
        let is_limited = self.probe_rtt.is_limited(&ack.rate);
        let sample = Sample { rate: path::rate(&ack.rate), is_limited };
        self.was_limited = is_limited;
        self.marks.count(ack.delivered, ack.marked);
        self.signals.update(&self.rounds, ack, sample.rate);
        self.update_round(ack);
        self.max.update(sample.rate, is_limited);
        self.adapt_short_term(window);
        self.aggregation.update(window, ack, self.rounds.count, self.bandwidth);
        self.check_full(&sample);
        self.check_startup(window, ack);
        self.check_drain(window, ack);
        if ack.rate.delivered > 0 {
            self.update_cycle(window, ack, &sample);
        }
        let Params { probe_rtt_interval, min_rtt_window, .. } = self.params;
        self.min_rtt.update(ack, probe_rtt_interval, min_rtt_window);
        self.check_probe_rtt(window, ack);
        self.signals.advance(ack, sample.rate);
        self.bandwidth = self.max.value.min(self.bounds.bw_shortterm);
        self.pacing.measure(self.initial_cwnd, ack.srtt, STARTUP_GAIN, UNIT);
        self.pace(self.mode.gains().0);
        self.update_cwnd(window, ack);
        self.recovery.is_active = ack.in_recovery;
        self.undo.is_saved &= ack.in_recovery;
    }

    fn on_lost(&mut self, window: &Window, lost: &Lost) {
        self.rounds.delivered = lost.delivered;
        if self.signals.note_loss(lost) {
            self.save(window);
        }
        if !self.cycle.is_probe_sample || !self.is_too_high(lost.lost, lost.in_flight) {
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
            self.recovery.is_active = true;
            self.recovery.timed_out = cause == Cause::Timeout;
        }
        window.ssthresh.max(window.floor())
    }

    fn on_recovery_exit(&mut self, window: &mut Window) {
        if self.recovery.is_active {
            window.set_cwnd(window.cwnd.max(self.recovery.prior_cwnd));
        }
        self.recovery.is_active = false;
        self.recovery.timed_out = false;
    }

    fn on_undo(&mut self) {
        let undo = self.undo;
        self.signals.loss_in_round = false;
        self.full.reset(0);
        self.bounds.raise(&undo.bounds);
        match undo.mode {
            Some(Mode::Startup) if self.mode != Mode::Startup => {
                self.is_full = false;
                if self.mode != Mode::ProbeRtt {
                    self.mode = Mode::Startup;
                }
            }
            Some(Mode::Up) if !matches!(self.mode, Mode::Up | Mode::ProbeRtt) => {
                self.start_refill(Slope::new(0));
            }
            _ => {}
        }
        self.undo = Undo { is_saved: false, mode: None, ..undo };
    }

    fn on_restart(&mut self, window: &mut Window, now: Nanos, _idle: Nanos) {
        self.probe_rtt.idle_restart = true;
        self.aggregation.start = now;
        if self.mode.is_cycle() {
            self.pace(UNIT);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(window, now);
        }
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing.rate.max(1))
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
