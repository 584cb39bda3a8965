//! BBR version 1: a model of the path instead of losses.
//!
//! Source: Cardwell et al., "BBR: Congestion-Based Congestion Control" (2016),
//! draft-cardwell-iccrg-bbr-congestion-control-00, and the constants of the kernel's `tcp_bbr.c`.
//! Idea: the bottleneck's bandwidth is the greatest delivery rate of ten rounds, the propagation
//! delay the least round-trip time of ten seconds. Data is paced at a gain times the bandwidth, and
//! the gain cycles to look for more and to drain what that queued; cwnd is twice their product.
//! Invariants: cwnd is at least four segments outside loss recovery; the pacing rate does not fall
//! in startup; bandwidth samples limited by the application only raise the estimate.
//!
//! Left out: the kernel's detection of policers (`lt_bw`) and its allowance for aggregated ACKs.
//! The first phase of the gain cycle follows from the draw of [`Control::on_start`].

use crate::control::{Control, ControlParams};
use crate::hystart;
use crate::window::{Ack, Cause, SuperPacket, Window};
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Parameters, time};
use sojourn_units::words::Table;
use sojourn_units::{Nanos, SECOND, params};

/// Gains are in 1/256.
const UNIT: u64 = 256;
/// 2/ln 2, and its inverse.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const CWND_GAIN: u64 = 2 * UNIT;
/// Pacing gains of the bandwidth probe, one a round-trip time.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Segments in flight while the round-trip time is probed.
const MIN_SEGMENTS: u64 = 4;
/// Rounds that the bandwidth filter remembers.
const BW_ROUNDS: usize = 10;
/// Bandwidth must grow by a quarter in three rounds, or the pipe is full.
const FULL_ROUNDS: u32 = 3;

params! {
    /// What the user sets.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Params {
        /// How long the least round-trip time is believed.
        min_rtt_window: Nanos = time("10s"),
        /// How long the round-trip time is probed.
        probe_rtt: Nanos = time("200ms"),
    }
}

impl ControlParams for Params {
    const TABLE: Table = Table {
        name: "bbr",
        summary: "TCP with BBR version 1: paced at the measured bottleneck bandwidth",
        source: "draft-cardwell-iccrg-bbr-congestion-control-00",
        words: Self::WORDS,
    };

    type Control = Bbr;

    fn build(&self, _slow_start: hystart::Params, window: &Window) -> Bbr {
        Bbr::new(*self, window)
    }
}

/// What BBR is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Doubling the rate each round.
    Startup,
    /// Draining the queue that startup made.
    Drain,
    /// Cycling around the estimated bandwidth.
    ProbeBw,
    /// Measuring the propagation delay with next to nothing in flight.
    ProbeRtt,
}

/// What it remembers.
#[derive(Clone, Debug)]
pub struct Bbr {
    params: Params,
    mode: Mode,
    /// Greatest bandwidth of each of the last rounds, bytes per second.
    rounds: [u64; BW_ROUNDS],
    /// Greatest of `rounds`.
    bandwidth: u64,
    round: u64,
    round_start: bool,
    next_round: u64,
    min_rtt: Nanos,
    min_rtt_at: Nanos,
    probe_rtt_done: Nanos,
    probe_rtt_round_done: bool,
    /// Samples of segments sent before this delivery count say nothing about the path.
    ignore_before: u64,
    pacing_gain: u64,
    cwnd_gain: u64,
    phase: usize,
    first_phase: usize,
    phase_start: Nanos,
    full_bandwidth: u64,
    full_rounds: u32,
    full: bool,
    pacing: u64,
    pacing_from_rtt: bool,
    prior_cwnd: u64,
    recovering: bool,
    timed_out: bool,
    conserving: bool,
    restarted: bool,
    initial_cwnd: u64,
}

impl Bbr {
    /// A new control.
    pub fn new(params: Params, window: &Window) -> Self {
        // Before there is a round-trip time, the initial window is spread over a millisecond.
        let pacing = gained(window.cwnd.saturating_mul(1000), HIGH_GAIN);
        Self {
            params,
            mode: Mode::Startup,
            rounds: [0; BW_ROUNDS],
            bandwidth: 0,
            round: 0,
            round_start: false,
            next_round: 0,
            min_rtt: 0,
            min_rtt_at: 0,
            probe_rtt_done: 0,
            probe_rtt_round_done: false,
            ignore_before: 0,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            phase: 0,
            first_phase: 0,
            phase_start: 0,
            full_bandwidth: 0,
            full_rounds: 0,
            full: false,
            pacing,
            pacing_from_rtt: false,
            prior_cwnd: 0,
            recovering: false,
            timed_out: false,
            conserving: false,
            restarted: false,
            initial_cwnd: window.cwnd,
        }
    }

    /// What it is doing.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The bottleneck's estimated bandwidth, bytes per second.
    pub fn bandwidth(&self) -> u64 {
        self.bandwidth
    }

    /// Bytes in flight that `gain` times the bandwidth-delay product asks for.
    fn inflight(&self, window: &Window, gain: u64) -> u64 {
        if self.min_rtt == 0 {
            return self.initial_cwnd;
        }
        let bdp = u128::from(self.bandwidth) * u128::from(self.min_rtt) / u128::from(SECOND);
        let bytes = u64::try_from(bdp * u128::from(gain) / u128::from(UNIT)).unwrap_or(u64::MAX);
        // Room for segments under way in both hosts, an even number for delayed ACKs, and two more
        // for the phase that looks for bandwidth.
        let mut segments = bytes.div_ceil(window.mss).saturating_add(3);
        segments = (segments.saturating_add(1)) & !1;
        if self.mode == Mode::ProbeBw && self.phase == 0 {
            segments = segments.saturating_add(2);
        }
        segments.saturating_mul(window.mss)
    }

    fn update_bandwidth(&mut self, ack: &Ack) {
        self.round_start = false;
        let rate = &ack.rate;
        if rate.interval == 0 || rate.delivered == 0 {
            return;
        }
        if rate.prior_delivered >= self.next_round {
            self.next_round = rate.total;
            self.round = self.round.wrapping_add(1);
            self.round_start = true;
            self.conserving = false;
            self.rounds[(self.round % BW_ROUNDS as u64) as usize] = 0;
            self.bandwidth = self.rounds.iter().copied().max().unwrap_or(0);
        }
        let sample = u128::from(rate.delivered) * u128::from(SECOND) / u128::from(rate.interval);
        let sample = u64::try_from(sample).unwrap_or(u64::MAX);
        let limited = rate.app_limited || rate.prior_delivered < self.ignore_before;
        if !limited || sample >= self.bandwidth {
            let slot = &mut self.rounds[(self.round % BW_ROUNDS as u64) as usize];
            *slot = (*slot).max(sample);
            self.bandwidth = self.bandwidth.max(sample);
        }
        if self.round_start && !self.full && !limited {
            let grown = u128::from(self.full_bandwidth) * 5 / 4;
            if u128::from(self.bandwidth) >= grown {
                self.full_bandwidth = self.bandwidth;
                self.full_rounds = 0;
            } else {
                self.full_rounds += 1;
                self.full = self.full_rounds >= FULL_ROUNDS;
            }
        }
    }

    fn update_cycle(&mut self, window: &Window, ack: &Ack) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let lasted = ack.now.saturating_sub(self.phase_start) > self.min_rtt;
        let next = match self.pacing_gain {
            UNIT => lasted,
            gain if gain > UNIT => {
                lasted && (ack.lost > 0 || ack.prior_in_flight >= self.inflight(window, gain))
            }
            _ => lasted || ack.prior_in_flight <= self.inflight(window, UNIT),
        };
        if next {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_start = ack.now;
        }
    }

    fn update_drain(&mut self, window: &mut Window, ack: &Ack) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(window, UNIT).max(window.floor());
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.inflight(window, UNIT) {
            self.enter_probe_bw(ack.now);
        }
    }

    fn enter_probe_bw(&mut self, now: Nanos) {
        self.mode = Mode::ProbeBw;
        self.phase = self.first_phase;
        self.phase_start = now;
    }

    fn save_cwnd(&mut self, window: &Window) {
        self.prior_cwnd = if self.recovering || self.mode == Mode::ProbeRtt {
            self.prior_cwnd.max(window.cwnd)
        } else {
            window.cwnd
        };
    }

    fn update_min_rtt(&mut self, window: &mut Window, ack: &Ack) {
        let expired = self.min_rtt != 0
            && ack.now > self.min_rtt_at.saturating_add(self.params.min_rtt_window);
        if ack.rtt > 0 && (self.min_rtt == 0 || ack.rtt <= self.min_rtt || expired) {
            self.min_rtt = ack.rtt;
            self.min_rtt_at = ack.now;
        }
        if expired && !self.restarted && self.mode != Mode::ProbeRtt {
            self.save_cwnd(window);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_done = 0;
        }
        if self.mode == Mode::ProbeRtt {
            self.ignore_before = ack.rate.total.saturating_add(ack.in_flight);
            if self.probe_rtt_done == 0 {
                if ack.in_flight <= MIN_SEGMENTS * window.mss {
                    self.probe_rtt_done = ack.now.saturating_add(self.params.probe_rtt);
                    self.probe_rtt_round_done = false;
                    self.next_round = ack.rate.total;
                }
            } else {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done && ack.now >= self.probe_rtt_done {
                    self.min_rtt_at = ack.now;
                    window.set_cwnd(window.cwnd.max(self.prior_cwnd));
                    if self.full {
                        self.enter_probe_bw(ack.now);
                    } else {
                        self.mode = Mode::Startup;
                    }
                }
            }
        }
        if ack.rate.delivered > 0 {
            self.restarted = false;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    fn update_pacing(&mut self, window: &Window, ack: &Ack) {
        if !self.pacing_from_rtt && ack.srtt > 0 {
            self.pacing_from_rtt = true;
            let rate = u128::from(window.cwnd) * u128::from(SECOND) / u128::from(ack.srtt);
            self.pacing = gained(u64::try_from(rate).unwrap_or(u64::MAX), HIGH_GAIN);
        }
        // One percent below, so that the queue drains in the mean.
        let rate = gained(self.bandwidth, self.pacing_gain) / 100 * 99;
        if rate > 0 && (self.full || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    fn update_cwnd(&mut self, window: &mut Window, ack: &Ack) {
        let mut cwnd = window.cwnd;
        if ack.delivered > 0 {
            let entered = ack.in_recovery && !self.recovering;
            let left = !ack.in_recovery && self.recovering;
            if ack.lost > 0 {
                cwnd = cwnd.saturating_sub(ack.lost).max(window.mss);
            }
            if entered && !self.timed_out {
                // The first round of recovery sends what is delivered and no more.
                self.conserving = true;
                self.next_round = ack.rate.total;
                cwnd = ack.in_flight.saturating_add(ack.delivered);
            } else if left {
                cwnd = cwnd.max(self.prior_cwnd);
                self.conserving = false;
                self.timed_out = false;
            }
            self.recovering = ack.in_recovery;
            if self.conserving {
                cwnd = cwnd.max(ack.in_flight.saturating_add(ack.delivered));
            } else {
                let target = self.inflight(window, self.cwnd_gain);
                let grown = cwnd.saturating_add(ack.delivered);
                if self.full {
                    cwnd = grown.min(target);
                } else if cwnd < target || ack.rate.total < self.initial_cwnd {
                    cwnd = grown;
                }
                cwnd = cwnd.max(MIN_SEGMENTS * window.mss);
            }
        }
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(MIN_SEGMENTS * window.mss);
        }
        window.set_cwnd(cwnd);
    }
}

fn gained(rate: u64, gain: u64) -> u64 {
    u64::try_from(u128::from(rate) * u128::from(gain) / u128::from(UNIT)).unwrap_or(u64::MAX)
}

impl Control for Bbr {
    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("mode", self.mode as i128);
        visit("bandwidth", i128::from(self.bandwidth));
        visit("min_rtt", i128::from(self.min_rtt));
        visit("pacing_gain", i128::from(self.pacing_gain));
        visit("phase", self.phase as i128);
        visit("round", i128::from(self.round));
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.update_bandwidth(ack);
        self.update_cycle(window, ack);
        self.update_drain(window, ack);
        self.update_min_rtt(window, ack);
        self.update_gains();
        self.update_pacing(window, ack);
        self.update_cwnd(window, ack);
    }

    fn reduce(&mut self, window: &Window, _flight: u64, cause: Cause, _now: Nanos) -> u64 {
        if cause != Cause::Ecn {
            self.save_cwnd(window);
        }
        if cause == Cause::Timeout {
            self.timed_out = true;
            self.recovering = true;
            self.conserving = false;
            self.full_bandwidth = 0;
            self.round_start = true;
        }
        window.ssthresh.max(window.floor())
    }

    fn on_undo(&mut self) {
        self.full_bandwidth = 0;
        self.full_rounds = 0;
    }

    fn on_restart(&mut self, _window: &Window, _now: Nanos, _idle: Nanos) {
        self.restarted = true;
    }

    fn on_start(&mut self, _window: &mut Window, _now: Nanos, draw: u32) {
        // Any phase but the draining one.
        self.first_phase = [0, 2, 3, 4, 5, 6, 7][(draw % 7) as usize];
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing.max(1))
    }

    fn super_packet(&self) -> SuperPacket {
        // Below 1.2 Mbit/s one by one (`bbr_min_tso_segs`).
        let slow = self.pacing_rate().is_some_and(|rate| rate < 150_000);
        SuperPacket { least: if slow { 1 } else { 2 }, ..SuperPacket::default() }
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn wants_rate(&self) -> bool {
        true
    }
}
