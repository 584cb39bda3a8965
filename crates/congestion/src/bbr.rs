//! BBR version 1: a model of the path instead of losses.
//!
//! Source: Cardwell et al., "BBR: Congestion-Based Congestion Control" (2016),
//! draft-cardwell-iccrg-bbr-congestion-control-00, and the constants of the kernel's `tcp_bbr.c`.
//! Idea: the bottleneck's bandwidth is the greatest delivery rate in ten rounds, the propagation
//! delay is the least round-trip time in ten seconds. Data are paced at a gain times the bandwidth.
//! The gain cycles to probe for more bandwidth and to drain the resulting queue. cwnd is twice the
//! product of bandwidth and delay.
//! Invariants: cwnd is at least four segments outside loss recovery; application-limited bandwidth
//! samples only raise the estimate.
//!
//! The variant `linux` adds the kernel's extensions of the draft: room for three super-packets
//! instead of three segments, an allowance for aggregated acknowledgements, an estimate of the
//! flight at the next departure, a least round-trip time whose validity an equal sample does not
//! extend, and the detection of policers (`lt_bw`): if two successive intervals lose a fifth of
//! their data at nearly equal rates, the mean rate is used for some time. The first phase of the
//! gain cycle is derived from the draw of [`Control::on_start`].

use crate::control::{Control, ControlParams, Host};
use crate::path::{self, FullPipe, MIN_SEGMENTS, Pacing, Recovery, Rounds, RttProbe, next_draw};
use crate::window::{Ack, Cause, Lost, Start, SuperPacket, Window};
use sojourn_units::declare::{choice, time};
use sojourn_units::{MILLISECOND, Nanos, choices, params};

/// The number 1 in the fixed-point format of gains, which are in 1/256.
const UNIT: u64 = 256;
/// Pacing gain of startup (2/ln 2), and pacing gain of drain (its inverse), in 1/256.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
const CWND_GAIN: u64 = 2 * UNIT;
/// Pacing gains of the bandwidth probe, one per round-trip time.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Indexes of `CYCLE` at which the cycle may begin: all except that of the draining phase.
const FIRST_PHASES: [usize; 7] = [0, 2, 3, 4, 5, 6, 7];
/// Number of rounds over which the maximum bandwidth is taken.
const BW_ROUNDS: usize = 10;
/// Number of rounds in a period of [`Aggregation`]; the greater excess of the present and the
/// previous period counts.
const AGGREGATION_ROUNDS: u32 = 5;
/// Upper limit of the allowance for aggregation: the data that arrive in this number of
/// nanoseconds.
const AGGREGATION_SPAN: Nanos = 100 * MILLISECOND;
/// Number of delivered segments after which a measurement of aggregation restarts.
const AGGREGATION_SEGMENTS: u64 = 1 << 20;
/// Minimum and maximum number of rounds in an interval of the search for a policer.
const POLICER_ROUNDS: (u32, u32) = (4, 16);
/// Minimum ratio of lost to delivered data, in 1/256, at which an interval indicates a policer.
const POLICER_LOSS: u64 = 50;
/// Maximum difference of a policer's rates that count as equal: 1/8 of the rate, or 500 bytes/s.
const POLICER_SHARE: u64 = 8;
const POLICER_BYTES: u64 = 500;
/// Number of rounds for which a policer's rate is used.
const POLICER_KEPT: u32 = 48;
/// Maximum length of a super-packet in bytes, and in segments (`bbr_tso_segs_goal`).
const SUPER_BYTES: u64 = 65_535 - 320;
const SUPER_SEGMENTS: u64 = 127;

choices! {
    /// Definition of BBR that is followed.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Variant {
        /// The draft draft-cardwell-iccrg-bbr-congestion-control-00.
        #[default]
        Draft = "draft",
        /// Linux, whose window has room for super-packets and aggregated acknowledgements.
        Linux = "linux",
    }
}

params! {
    "bbr": "TCP with BBR version 1: paced at the measured bottleneck bandwidth",
    from "draft-cardwell-iccrg-bbr-congestion-control-00";

    /// Parameters of BBR version 1.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Params {
        /// Definition of BBR: the draft, or Linux, whose window has room for super-packets and
        /// aggregated acknowledgements. The profile linux-7.3 uses the definition of Linux, all
        /// other profiles that of the draft.
        #[serde(default)]
        variant: Variant = choice("linux").initially(|()| Variant::Draft),
        /// Time for which the smallest round-trip time is valid.
        min_rtt_window: Nanos = time("10s"),
        /// Duration of a probe of the round-trip time.
        probe_rtt: Nanos = time("200ms"),
    }
}

impl ControlParams for Params {
    type Control = Bbr;

    fn build(&self, _host: Host, window: &Window) -> Bbr {
        Bbr::new(*self, window)
    }
}

/// Phase of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Startup: the sending rate doubles each round.
    Startup,
    /// Drain: the sender sends slowly, until the queue built in startup is empty.
    Drain,
    /// Bandwidth probe: the sending rate cycles around the estimated bandwidth.
    ProbeBw,
    /// Probe of the round-trip time: the propagation delay is measured with at most four segments
    /// in flight.
    ProbeRtt,
}

/// Measurement of aggregation: segments that acknowledgements deliver beyond the expected number.
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    /// Start of the measurement, and number of segments delivered since then.
    epoch: Nanos,
    acked: u64,
    /// Maximum excess in the present period of rounds and in the previous one, in segments.
    excess: [u64; 2],
    slot: usize,
    rounds: u32,
}

/// Search for a policer (the kernel's `lt_bw`).
#[derive(Clone, Copy, Debug, Default)]
struct Policer {
    sampling: bool,
    /// Whether a policer has been detected and its rate is used.
    detected: bool,
    rounds: u32,
    /// Rate of the last interval whose losses indicate a policer, in bytes per second; 0 before
    /// such an interval.
    rate: u64,
    /// Delivered bytes, lost bytes and time at the interval's start.
    delivered: u64,
    lost: u64,
    at: Nanos,
}

/// Linux's filter for the maximum bandwidth (`lib/win_minmax.c`). It stores the greatest sample of
/// the window, the greatest sample after it, and the greatest sample after the second one, each
/// with its round. The window is approximate, since no other samples are stored.
#[derive(Clone, Copy, Debug, Default)]
struct Greatest {
    samples: [(u64, u64); 3],
}

impl Greatest {
    /// Adds the sample `value` of `round`; returns the maximum of the last `window` rounds.
    fn add(&mut self, window: u64, round: u64, value: u64) -> u64 {
        let new = (round, value);
        let [first, second, third] = &mut self.samples;
        if value >= first.1 || round - third.0 > window {
            self.samples = [new; 3];
            return value;
        }
        if value >= second.1 {
            (*second, *third) = (new, new);
        } else if value >= third.1 {
            *third = new;
        }
        let age = round - first.0;
        if age > window {
            (*first, *second, *third) = (*second, *third, new);
            if round - first.0 > window {
                (*first, *second, *third) = (*second, *third, new);
            }
        } else if second.0 == first.0 && age > window / 4 {
            (*second, *third) = (new, new);
        } else if third.0 == second.0 && age > window / 2 {
            *third = new;
        }
        first.1
    }
}

/// Filter for the maximum bandwidth of the last rounds.
#[derive(Clone, Copy, Debug)]
enum Maximum {
    /// Draft: maximum of each round, in bytes per second.
    Rounds([u64; BW_ROUNDS]),
    Linux(Greatest),
}

impl Maximum {
    fn new(variant: Variant) -> Self {
        match variant {
            Variant::Draft => Self::Rounds([0; BW_ROUNDS]),
            Variant::Linux => Self::Linux(Greatest::default()),
        }
    }

    /// Begins `round`; returns the new maximum, given the present `bandwidth`.
    fn start_round(&mut self, round: u64, bandwidth: u64) -> u64 {
        let Self::Rounds(rounds) = self else { return bandwidth };
        rounds[(round % BW_ROUNDS as u64) as usize] = 0;
        rounds.iter().copied().max().unwrap_or(0)
    }

    /// Adds a sample of `round`; returns the new maximum, given the present `bandwidth`.
    fn add(&mut self, round: u64, bandwidth: u64, sample: u64) -> u64 {
        match self {
            Self::Rounds(rounds) => {
                let most = &mut rounds[(round % BW_ROUNDS as u64) as usize];
                *most = (*most).max(sample);
                bandwidth.max(sample)
            }
            Self::Linux(greatest) => greatest.add(BW_ROUNDS as u64, round, sample),
        }
    }
}

/// The gain cycle of the bandwidth probe.
#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    phase: usize,
    /// Phase at which the cycle begins.
    first_phase: usize,
    start: Nanos,
    /// Random number from which the first phase of the next cycle is derived.
    draw: u32,
}

/// State of BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    params: Params,
    mode: Mode,
    rounds: Rounds,
    /// Maximum bandwidth of the last rounds in bytes per second, and its filter.
    bandwidth: u64,
    maximum: Maximum,
    /// Smallest round-trip time, and the time of its sample; 0 before the first one.
    min_rtt: Nanos,
    min_rtt_at: Nanos,
    probe_rtt: RttProbe,
    /// Gains of the pacing rate and of cwnd.
    gains: (u64, u64),
    cycle: Cycle,
    full: FullPipe,
    pacing: Pacing,
    initial_cwnd: u64,
    recovery: Recovery,
    /// Whether the first round of recovery sends only as much as is delivered.
    is_conserving: bool,
    aggregation: Aggregation,
    policer: Policer,
    /// Number of bytes considered lost since the connection began, and the time of the last
    /// delivery.
    lost: u64,
    delivered_at: Nanos,
}

impl Bbr {
    /// Returns the control of a new connection.
    pub fn new(params: Params, window: &Window) -> Self {
        Self {
            params,
            mode: Mode::Startup,
            rounds: Rounds::default(),
            bandwidth: 0,
            maximum: Maximum::new(params.variant),
            min_rtt: 0,
            min_rtt_at: 0,
            probe_rtt: RttProbe::default(),
            gains: (HIGH_GAIN, HIGH_GAIN),
            cycle: Cycle::default(),
            full: FullPipe::default(),
            pacing: Pacing::new(window.cwnd, HIGH_GAIN, UNIT),
            initial_cwnd: window.cwnd,
            recovery: Recovery::default(),
            is_conserving: false,
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            lost: 0,
            delivered_at: 0,
        }
    }

    /// Returns the present phase of BBR.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the estimated bandwidth of the bottleneck, in bytes per second.
    pub fn bandwidth(&self) -> u64 {
        self.bandwidth
    }

    fn is_linux(&self) -> bool {
        self.params.variant == Variant::Linux
    }

    /// Returns the bandwidth from which rate and window are computed, in bytes per second: the
    /// policer's rate if a policer was detected, otherwise the estimated bandwidth.
    fn used_bandwidth(&self) -> u64 {
        if self.policer.detected { self.policer.rate } else { self.bandwidth }
    }

    /// Starts a new interval of the search for a policer. If `keeps` is true, the search continues
    /// with the rate of the last interval; otherwise it starts anew.
    fn search_policer(&mut self, keeps: bool) {
        let old = self.policer;
        self.policer = Policer {
            sampling: old.sampling && keeps,
            rate: if keeps { old.rate } else { 0 },
            delivered: self.rounds.delivered,
            lost: self.lost,
            at: self.delivered_at,
            ..Policer::default()
        };
    }

    /// Linux: detects a policer by two successive intervals with losses of at least `POLICER_LOSS`
    /// and nearly equal rates. Its rate is used for `POLICER_KEPT` rounds. `lost`: the
    /// acknowledgement at `now` showed a loss, or the retransmission timer expired.
    fn update_policer(&mut self, now: Nanos, lost: bool, app_limited: bool) {
        if !self.is_linux() {
            return;
        }
        if self.policer.detected {
            if self.mode == Mode::ProbeBw && self.rounds.has_started {
                self.policer.rounds += 1;
                if self.policer.rounds >= POLICER_KEPT {
                    self.search_policer(false);
                    self.enter_probe_bw(now);
                }
            }
            return;
        }
        if !self.policer.sampling {
            if !lost {
                return;
            }
            self.search_policer(true);
            self.policer.sampling = true;
        }
        if app_limited {
            return self.search_policer(false);
        }
        self.policer.rounds += u32::from(self.rounds.has_started);
        if self.policer.rounds < POLICER_ROUNDS.0 {
            return;
        }
        if self.policer.rounds > POLICER_ROUNDS.1 {
            return self.search_policer(false);
        }
        let share = u128::from(self.lost.saturating_sub(self.policer.lost)) * u128::from(UNIT);
        let delivered = self.rounds.delivered.saturating_sub(self.policer.delivered);
        let heavy = share >= u128::from(POLICER_LOSS) * u128::from(delivered);
        let span = self.delivered_at.saturating_sub(self.policer.at);
        if !lost || delivered == 0 || !heavy || span < MILLISECOND {
            return;
        }
        let rate = path::per_second(delivered, span);
        let before = self.policer.rate;
        let gap = rate.abs_diff(before);
        if before > 0 && (gap <= before / POLICER_SHARE || gap <= POLICER_BYTES) {
            self.policer.rate = before / 2 + rate / 2;
            self.policer.detected = true;
            self.policer.rounds = 0;
        } else {
            self.search_policer(true);
            self.policer.sampling = true;
            self.policer.rate = rate;
        }
    }

    /// Returns the number of segments in a super-packet at the present rate.
    fn super_segments(&self, window: &Window) -> u64 {
        let bytes = (self.pacing.rate >> 10).min(SUPER_BYTES);
        (bytes / window.mss).max(self.super_packet().least).min(SUPER_SEGMENTS)
    }

    /// Returns the number of segments that arrive in `span` nanoseconds at the used bandwidth.
    fn arrivals(&self, window: &Window, span: Nanos) -> u64 {
        path::bytes(self.used_bandwidth(), span) / window.mss
    }

    /// Returns Linux's estimate of the segments in the network when the next segment departs, given
    /// `flight` bytes at present.
    fn at_departure(&self, window: &Window, ack: &Ack, flight: u64) -> u64 {
        let mut segments = flight.div_ceil(window.mss);
        if self.gains.0 > UNIT {
            segments = segments.saturating_add(self.super_segments(window));
        }
        let wait = ack.departure.saturating_sub(ack.now);
        segments.saturating_sub(self.arrivals(window, wait))
    }

    /// Returns the bytes in flight for a comparison with a target: in Linux's variant, the estimate
    /// at the next departure; otherwise `flight`.
    fn reckoned(&self, window: &Window, ack: &Ack, flight: u64) -> u64 {
        if self.is_linux() {
            self.at_departure(window, ack, flight).saturating_mul(window.mss)
        } else {
            flight
        }
    }

    /// Linux: updates the measurement of aggregation, that is, of segments delivered in excess of
    /// the used bandwidth.
    fn update_aggregation(&mut self, window: &Window, ack: &Ack) {
        if !self.is_linux() || ack.delivered == 0 || ack.rate.interval == 0 {
            return;
        }
        let span = ack.now.saturating_sub(self.aggregation.epoch);
        let expected = self.arrivals(window, span);
        let delivered = ack.delivered.div_ceil(window.mss);
        let state = &mut self.aggregation;
        if self.rounds.has_started {
            state.rounds += 1;
            if state.rounds >= AGGREGATION_ROUNDS {
                state.rounds = 0;
                state.slot = 1 - state.slot;
                state.excess[state.slot] = 0;
            }
        }
        let mut excess = state.acked.saturating_add(delivered);
        if state.acked <= expected || excess >= AGGREGATION_SEGMENTS {
            state.epoch = ack.now;
            state.acked = delivered.min(AGGREGATION_SEGMENTS);
            excess = state.acked;
        } else {
            state.acked = excess;
            excess -= expected;
        }
        let most = &mut state.excess[state.slot];
        *most = (*most).max(excess.min(window.segments()));
    }

    /// Linux: returns the number of segments added to the window for aggregated acknowledgements.
    fn allowance(&self, window: &Window) -> u64 {
        if !self.is_linux() || !self.full.now {
            return 0;
        }
        let [a, b] = self.aggregation.excess;
        a.max(b).min(self.arrivals(window, AGGREGATION_SPAN))
    }

    /// Returns the target of the bytes in flight for `gain` times the bandwidth-delay product.
    fn inflight(&self, window: &Window, gain: u64) -> u64 {
        self.inflight_at(window, self.bandwidth, gain, 0)
    }

    /// Returns the target of the bytes in flight: `gain` times the product of `bandwidth` and
    /// delay, plus `more` segments and room for segments that the hosts are processing.
    fn inflight_at(&self, window: &Window, bandwidth: u64, gain: u64, more: u64) -> u64 {
        if self.min_rtt == 0 && !self.is_linux() {
            return self.initial_cwnd;
        }
        let mut bytes = path::gained(path::bytes(bandwidth, self.min_rtt), gain, UNIT);
        if self.min_rtt == 0 {
            bytes = self.initial_cwnd;
        }
        // Add segments that both hosts are processing, round up to an even number for delayed ACKs,
        // and add two more for the phase that probes for bandwidth.
        let room = if self.is_linux() { 3 * self.super_segments(window) } else { 3 };
        let mut segments = bytes.div_ceil(window.mss).saturating_add(more).saturating_add(room);
        segments = (segments.saturating_add(1)) & !1;
        if self.mode == Mode::ProbeBw && self.cycle.phase == 0 {
            segments = segments.saturating_add(2);
        }
        segments.saturating_mul(window.mss)
    }

    fn update_bandwidth(&mut self, ack: &Ack) {
        self.rounds.has_started = false;
        let rate = &ack.rate;
        if rate.interval == 0 || rate.delivered == 0 {
            return;
        }
        self.rounds.update(rate);
        let round = self.rounds.count;
        if self.rounds.has_started {
            self.is_conserving = false;
            self.bandwidth = self.maximum.start_round(round, self.bandwidth);
        }
        self.update_policer(ack.now, ack.lost > 0, rate.app_limited);
        let sample = path::rate(rate);
        let is_limited = self.probe_rtt.is_limited(rate);
        if !is_limited || sample >= self.bandwidth {
            self.bandwidth = self.maximum.add(round, self.bandwidth, sample);
        }
        if self.rounds.has_started && !self.full.now && !is_limited {
            self.full.update(self.bandwidth);
        }
    }

    fn update_cycle(&mut self, window: &Window, ack: &Ack) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let lasted = ack.now.saturating_sub(self.cycle.start) > self.min_rtt;
        let next = match self.gains.0 {
            UNIT => lasted,
            gain if gain > UNIT => {
                lasted
                    && (ack.lost > 0
                        || self.reckoned(window, ack, ack.prior_in_flight)
                            >= self.inflight(window, gain))
            }
            _ => {
                lasted
                    || self.reckoned(window, ack, ack.prior_in_flight)
                        <= self.inflight(window, UNIT)
            }
        };
        if next {
            self.cycle.phase = (self.cycle.phase + 1) % CYCLE.len();
            self.cycle.start = ack.now;
        }
    }

    fn update_drain(&mut self, window: &mut Window, ack: &Ack) {
        if self.mode == Mode::Startup && self.full.now {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(window, UNIT).max(window.floor());
        }
        if self.mode == Mode::Drain
            && self.reckoned(window, ack, ack.in_flight) <= self.inflight(window, UNIT)
        {
            self.enter_probe_bw(ack.now);
        }
    }

    fn enter_probe_bw(&mut self, now: Nanos) {
        self.mode = Mode::ProbeBw;
        if self.is_linux() {
            // Linux draws a new first phase of the gain cycle whenever ProbeBW begins.
            let draw = next_draw(&mut self.cycle.draw) as usize;
            self.cycle.first_phase = FIRST_PHASES[draw % FIRST_PHASES.len()];
        }
        self.cycle.phase = self.cycle.first_phase;
        self.cycle.start = now;
    }

    /// Returns the number of bytes delivered so far. Linux counts the SYN as a segment.
    fn delivered(&self, window: &Window) -> u64 {
        self.rounds.delivered + if self.is_linux() { window.mss } else { 0 }
    }

    fn save_cwnd(&mut self, window: &Window) {
        self.recovery.save_cwnd(window.cwnd, self.mode == Mode::ProbeRtt);
    }

    fn update_min_rtt(&mut self, window: &mut Window, ack: &Ack) {
        if self.min_rtt == 0 && self.is_linux() {
            // Linux also uses the round-trip time of the handshake (`bbr_init`).
            self.min_rtt = ack.min_rtt;
            self.min_rtt_at = ack.now.saturating_sub(ack.rtt);
        }
        let expired = self.min_rtt != 0
            && ack.now > self.min_rtt_at.saturating_add(self.params.min_rtt_window);
        // Linux: a round-trip time equal to the smallest one does not extend its validity.
        let shorter = ack.rtt < self.min_rtt || (!self.is_linux() && ack.rtt == self.min_rtt);
        if ack.rtt > 0 && (self.min_rtt == 0 || shorter || expired) {
            self.min_rtt = ack.rtt;
            self.min_rtt_at = ack.now;
        }
        if expired && !self.probe_rtt.idle_restart && self.mode != Mode::ProbeRtt {
            if self.is_linux() {
                self.recovery.prior_cwnd = self.recovery.prior_cwnd.max(window.cwnd);
            } else {
                self.save_cwnd(window);
            }
            self.mode = Mode::ProbeRtt;
            self.probe_rtt.done = 0;
        }
        if self.mode == Mode::ProbeRtt {
            let (limit, duration) = (MIN_SEGMENTS * window.mss, self.params.probe_rtt);
            if self.probe_rtt.advance(&mut self.rounds, ack, limit, duration)
                && ack.now >= self.probe_rtt.done
            {
                self.min_rtt_at = ack.now;
                window.set_cwnd(window.cwnd.max(self.recovery.prior_cwnd));
                if self.full.now {
                    self.enter_probe_bw(ack.now);
                } else {
                    self.mode = Mode::Startup;
                }
            }
        }
        if ack.rate.delivered > 0 {
            self.probe_rtt.idle_restart = false;
        }
    }

    fn update_gains(&mut self) {
        self.gains = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.detected => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle.phase], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// Returns the pacing rate for `gain`: one percent below the bandwidth times the gain, so that
    /// the queue drains on average.
    fn paced(&self, gain: u64) -> u64 {
        path::gained(self.used_bandwidth(), gain, UNIT) / 100 * 99
    }

    /// Sets the initial rate, which Linux also lowers by one percent.
    fn measure_pacing(&mut self, window: &Window, srtt: Nanos) {
        let percent = if self.is_linux() { 99 } else { 100 };
        self.pacing.measure(window.cwnd, srtt, percent * HIGH_GAIN, 100 * UNIT);
    }

    fn update_pacing(&mut self, window: &Window, ack: &Ack) {
        self.measure_pacing(window, ack.srtt);
        self.pacing.set(self.paced(self.gains.0), self.full.now);
    }

    fn update_cwnd(&mut self, window: &mut Window, ack: &Ack) {
        let mut cwnd = window.cwnd;
        if ack.delivered > 0 {
            let entered = ack.in_recovery && !self.recovery.is_active;
            let left = !ack.in_recovery && self.recovery.is_active;
            if ack.lost > 0 {
                cwnd = cwnd.saturating_sub(ack.lost).max(window.mss);
            }
            if entered && !self.recovery.timed_out {
                // The first round of recovery sends only as much as was delivered.
                self.is_conserving = true;
                self.rounds.restart();
                cwnd = ack.in_flight.saturating_add(ack.delivered);
            } else if left {
                cwnd = cwnd.max(self.recovery.prior_cwnd);
                self.is_conserving = false;
                self.recovery.timed_out = false;
            }
            self.recovery.is_active = ack.in_recovery;
            if self.is_conserving {
                cwnd = cwnd.max(ack.in_flight.saturating_add(ack.delivered));
            } else {
                let more = self.allowance(window);
                let target = self.inflight_at(window, self.used_bandwidth(), self.gains.1, more);
                let grown = cwnd.saturating_add(ack.delivered);
                if self.full.now {
                    cwnd = grown.min(target);
                } else if cwnd < target || self.delivered(window) < self.initial_cwnd {
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

impl Control for Bbr {
    fn mode(&self) -> Option<&dyn std::fmt::Debug> {
        Some(&self.mode)
    }

    fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("mode", self.mode as i128);
        visit("bandwidth", i128::from(self.bandwidth));
        visit("min_rtt", i128::from(self.min_rtt));
        visit("pacing_gain", i128::from(self.gains.0));
        visit("phase", self.cycle.phase as i128);
        visit("round", i128::from(self.rounds.count));
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.rounds.delivered = ack.rate.total;
        if ack.delivered > 0 {
            self.delivered_at = ack.now;
        }
        self.update_bandwidth(ack);
        self.update_aggregation(window, ack);
        self.update_cycle(window, ack);
        self.update_drain(window, ack);
        self.update_min_rtt(window, ack);
        self.update_gains();
        self.update_pacing(window, ack);
        self.update_cwnd(window, ack);
    }

    fn on_lost(&mut self, _window: &Window, lost: &Lost) {
        self.lost = self.lost.saturating_add(lost.len);
    }

    fn reduce(&mut self, window: &Window, _flight: u64, cause: Cause, now: Nanos) -> u64 {
        if cause != Cause::Ecn {
            self.save_cwnd(window);
        }
        if cause == Cause::Loss && self.recovery.timed_out {
            // A retransmission after the timeout was lost, too: a recovery of its own.
            self.recovery.timed_out = false;
            self.recovery.is_active = false;
        }
        if cause == Cause::Timeout {
            self.recovery.timed_out = true;
            self.recovery.is_active = true;
            self.is_conserving = false;
            self.full.bandwidth = 0;
            self.rounds.has_started = true;
            self.update_policer(now, true, false);
        }
        window.ssthresh.max(window.floor())
    }

    fn on_undo(&mut self) {
        self.full.bandwidth = 0;
        self.full.rounds = 0;
        self.policer = Policer::default();
    }

    fn on_restart(&mut self, _window: &mut Window, now: Nanos, _idle: Nanos) {
        self.probe_rtt.idle_restart = true;
        if self.is_linux() {
            self.aggregation.epoch = now;
            self.aggregation.acked = 0;
            if self.mode == Mode::ProbeBw {
                self.pacing.set(self.paced(UNIT), true);
            }
        }
    }

    fn on_start(&mut self, window: &mut Window, start: &Start) {
        self.cycle.draw = start.draw;
        self.cycle.first_phase = FIRST_PHASES[start.draw as usize % FIRST_PHASES.len()];
        self.aggregation.epoch = start.now;
        self.measure_pacing(window, start.srtt);
    }

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.pacing.rate.max(1))
    }

    fn super_packet(&self) -> SuperPacket {
        // Below 1.2 Mbit/s a super-packet may be a single segment (`bbr_min_tso_segs`).
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::RateSample;
    use sojourn_units::SECOND;

    const MSS: u64 = 1000;

    fn linux() -> (Bbr, Window) {
        let window = Window::new(MSS, 10);
        let mut bbr = Bbr::new(Params { variant: Variant::Linux, ..Params::default() }, &window);
        bbr.min_rtt = 10 * MILLISECOND;
        bbr.bandwidth = 10_000_000;
        bbr.pacing.rate = 10_240_000;
        (bbr, window)
    }

    #[test]
    fn the_handshake_determines_the_first_rate() {
        for (variant, percent) in [(Variant::Linux, 99), (Variant::Draft, 100)] {
            let mut window = Window::new(MSS, 10);
            let mut bbr = Bbr::new(Params { variant, ..Params::default() }, &window);
            let start = Start { now: SECOND, srtt: SECOND / 10, draw: 0 };
            bbr.on_start(&mut window, &start);
            let exact = 10 * MSS * 10 * HIGH_GAIN / UNIT * percent / 100;
            assert!(bbr.pacing.rate.abs_diff(exact) < 10, "{}", bbr.pacing.rate);
            // Later samples do not set the initial rate again.
            let ack = Ack { now: 2 * SECOND, srtt: SECOND, ..Ack::default() };
            bbr.update_pacing(&window, &ack);
            assert!(bbr.pacing.rate.abs_diff(exact) < 10);
        }
    }

    #[test]
    fn the_greatest_is_forgotten_after_the_window() {
        let mut greatest = Greatest::default();
        let seen = [(0, 100), (1, 50), (3, 60), (6, 40), (10, 30), (11, 20), (14, 10), (25, 5)]
            .map(|(round, value)| greatest.add(10, round, value));
        assert_eq!(seen, [100, 100, 100, 100, 100, 60, 40, 5]);
    }

    #[test]
    fn linux_has_room_for_three_super_packets() {
        let (mut bbr, window) = linux();
        // 10 segments a millisecond, 100 in a round trip.
        assert_eq!(bbr.inflight(&window, UNIT), 130 * MSS);
        bbr.pacing.rate = 100_000;
        assert_eq!(bbr.inflight(&window, UNIT), 104 * MSS, "one by one below 1.2 Mbit/s");
        bbr.params.variant = Variant::Draft;
        assert_eq!(bbr.inflight(&window, UNIT), 104 * MSS);
    }

    #[test]
    fn linux_counts_the_round_trip_of_the_handshake() {
        let (mut bbr, mut window) = linux();
        let (rtt, min_rtt) = (44 * MILLISECOND, 41 * MILLISECOND);
        let ack = Ack { now: SECOND, rtt, min_rtt, ..Ack::default() };
        bbr.min_rtt = 0;
        bbr.update_min_rtt(&mut window, &ack);
        assert_eq!((bbr.min_rtt, bbr.min_rtt_at), (min_rtt, SECOND - rtt));
        bbr.params.variant = Variant::Draft;
        bbr.min_rtt = 0;
        bbr.update_min_rtt(&mut window, &ack);
        assert_eq!(bbr.min_rtt, rtt);
    }

    #[test]
    fn the_flight_is_reckoned_at_the_next_departure() {
        let (mut bbr, window) = linux();
        let ack = Ack { now: SECOND, departure: SECOND + 2 * MILLISECOND, ..Ack::default() };
        bbr.gains.0 = UNIT;
        assert_eq!(bbr.at_departure(&window, &ack, 50 * MSS), 30);
        bbr.gains.0 = UNIT * 5 / 4;
        assert_eq!(bbr.at_departure(&window, &ack, 50 * MSS), 40);
        assert_eq!(bbr.at_departure(&window, &ack, 5 * MSS), 0);
    }

    #[test]
    fn the_window_grows_by_what_came_at_once() {
        let (mut bbr, mut window) = linux();
        window.set_cwnd(200 * MSS);
        bbr.full.now = true;
        bbr.aggregation.epoch = SECOND;
        let rate = RateSample { interval: 1, ..RateSample::default() };
        let came =
            |now, segments: u64| Ack { now, delivered: segments * MSS, rate, ..Ack::default() };
        bbr.update_aggregation(&window, &came(SECOND, 30));
        assert_eq!(bbr.allowance(&window), 30);
        // In the 2 ms since, 20 are expected: 60 are 40 more.
        bbr.update_aggregation(&window, &came(SECOND + 2 * MILLISECOND, 30));
        assert_eq!(bbr.allowance(&window), 40);
        // Fewer than expected: measured anew.
        bbr.update_aggregation(&window, &came(SECOND + 50 * MILLISECOND, 2));
        assert_eq!(bbr.allowance(&window), 40);
        bbr.rounds.has_started = true;
        for _ in 0..10 {
            bbr.update_aggregation(&window, &came(2 * SECOND, 0));
            bbr.update_aggregation(&window, &came(2 * SECOND, 1));
            bbr.aggregation.epoch = SECOND;
        }
        assert!(bbr.allowance(&window) < 5, "forgotten after five to ten rounds");
    }

    /// Two intervals of five rounds in which a quarter is lost, at the same rate.
    #[test]
    fn a_rate_at_which_a_fifth_is_lost_twice_is_a_policers() {
        for (share, expected) in [(4, true), (6, false)] {
            let (mut bbr, _) = linux();
            let mut total = 0;
            for round in 0..30 {
                let delivered = 100 * MSS;
                total += delivered;
                let lost = if round % 5 == 0 { 5 * delivered / share } else { 0 };
                bbr.rounds.has_started = true;
                bbr.lost += lost;
                bbr.rounds.delivered = total;
                bbr.delivered_at = SECOND + round * 10 * MILLISECOND;
                bbr.update_policer(bbr.delivered_at, lost > 0, false);
            }
            assert_eq!(bbr.policer.detected, expected, "one in {share}");
            if expected {
                assert_eq!(bbr.used_bandwidth(), 10_000_000);
                bbr.mode = Mode::ProbeBw;
                bbr.update_gains();
                assert_eq!(bbr.gains.0, UNIT);
            }
        }
    }

    /// A timeout counts as the end of a round, and of an interval; a quarter is lost between them.
    #[test]
    fn timeouts_also_show_a_policer() {
        let (mut bbr, window) = linux();
        bbr.rounds.delivered = 1000 * MSS;
        for timeout in 0..12 {
            let now = SECOND + timeout * 10 * MILLISECOND;
            bbr.reduce(&window, 0, Cause::Timeout, now);
            bbr.rounds.delivered += 100 * MSS;
            bbr.delivered_at = now;
            bbr.on_lost(&window, &Lost { len: 25 * MSS, ..Lost::default() });
        }
        assert!(bbr.policer.detected);
        assert_eq!(bbr.used_bandwidth(), 10_000_000);
    }

    #[test]
    fn an_equal_round_trip_does_not_renew_the_least() {
        for (variant, expected) in [(Variant::Linux, SECOND), (Variant::Draft, 2 * SECOND)] {
            let (mut bbr, mut window) = linux();
            bbr.params.variant = variant;
            bbr.min_rtt_at = SECOND;
            let ack = Ack { now: 2 * SECOND, rtt: bbr.min_rtt, ..Ack::default() };
            bbr.update_min_rtt(&mut window, &ack);
            assert_eq!(bbr.min_rtt_at, expected);
        }
    }
}
