//! CUBIC in whole segments and clock ticks, as in Linux.
//!
//! Source: Linux's `tcp_cubic.c` of 7.3.4. Idea: the cubic function gives a target, which determines
//! the number of delivered segments that add one segment to the window (`per`). This number is
//! recomputed at most once per tick, and for an unchanged window after 1/32 s. HyStart uses
//! microseconds; it ends slow start once, and again after a timeout. Invariants: `per` is at least
//! two; the window stays a multiple of the segment size.

use crate::whole::Count;
use crate::window::{Ack, Cause, Window};
use sojourn_units::{MICROSECOND, Nanos, SECOND, jiffies};

/// Ticks per second of hosts without ticks.
const FINE: u32 = 1000;
/// Smallest window in segments at which HyStart acts.
const LOW_WINDOW: u64 = 16;
/// Number of samples of a round after which its smallest round-trip time is used.
const SAMPLES: u8 = 8;
/// Maximum gap between acknowledgements of one train, in microseconds.
const TRAIN_GAP: u64 = 2000;
/// Minimum and maximum of the delay increase that ends slow start, in microseconds.
const THRESHOLD_MIN: u64 = 4000;
const THRESHOLD_MAX: u64 = 16_000;
/// Length of four super-packets of the largest size, in bytes.
const SUPER_PACKETS: u64 = 4 << 16;

/// Constants that are computed from the parameters, in the kernel's units.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Factor by which a reduction multiplies the window, in 1/1024.
    beta: u32,
    /// The parameter `c`, the growth in segments per second cubed, in 1/1024.
    growth: u32,
    /// Delivered data after which Reno's estimated window grows by one segment, in eighths of the
    /// window.
    reno: u32,
    fast_convergence: bool,
    reno_friendly: bool,
    hystart: bool,
    /// Ticks of the kernel's clock per second (`HZ`).
    hz: u32,
}

/// A round of HyStart. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    end: u64,
    start: u64,
    last_ack: u64,
    /// Smallest round-trip time in microseconds; 0 before the first sample.
    least: u64,
    samples: u8,
}

/// State of CUBIC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bictcp {
    scale: Scale,
    /// Number of delivered segments that add one segment to the window.
    per: u64,
    /// Window before the last reduction, in segments (lowered by fast convergence).
    last_max: u64,
    /// Window in segments at the last computation of `per`, and tick of this computation.
    last_window: u64,
    last_tick: u64,
    origin: u64,
    /// Time from the start of the epoch to the plateau, in 1/1024 s.
    k: u64,
    /// Smallest round-trip time in microseconds; 0 before the first sample.
    least: u64,
    /// First tick of the epoch, which begins after a reduction; 0 outside an epoch.
    epoch: u64,
    /// Number of delivered segments that have not yet been used for Reno's estimate.
    delivered: u64,
    reno: u64,
    /// Whether HyStart has ended slow start.
    exited: bool,
    round: Round,
    count: Count,
}

impl Bictcp {
    /// Returns the state of a new connection; RFC 9438 defines `beta` and `c`. The host's clock has
    /// `hz` ticks per second, or none.
    pub(crate) fn new(
        beta: f64,
        c: f64,
        fast_convergence: bool,
        reno_friendly: bool,
        hystart: bool,
        hz: u32,
    ) -> Self {
        let beta = ((beta * 1024.0 + 0.5) as u32).min(1023);
        let scale = Scale {
            beta,
            growth: ((c * 102.4 + 0.5) as u32).max(1) * 10,
            reno: 8 * (1024 + beta) / 3 / (1024 - beta),
            fast_convergence,
            reno_friendly,
            hystart,
            hz: if hz == 0 { FINE } else { hz },
        };
        Self {
            scale,
            per: 0,
            last_max: 0,
            last_window: 0,
            last_tick: 0,
            origin: 0,
            k: 0,
            least: 0,
            epoch: 0,
            delivered: 0,
            reno: 0,
            exited: false,
            round: Round::default(),
            count: Count::default(),
        }
    }

    /// Visits the state for traces.
    pub(crate) fn state(&self, visit: &mut dyn FnMut(&str, i128)) {
        visit("epoch", i128::from(jiffies::start(self.epoch, self.scale.hz)));
        visit("w_max_milli", i128::from(self.last_max * 1000));
        visit("k_ns", i128::from(self.k * (SECOND / 1024)));
        visit("w_est_milli", i128::from(self.reno * 1000));
    }

    /// Records a round-trip time, also of an acknowledgement that does not grow the window
    /// (`pkts_acked`).
    pub(crate) fn on_sample(&mut self, window: &mut Window, ack: &Ack) {
        // Samples in the first second of an epoch may still include the queue that led to the
        // reduction.
        let recent = self.epoch > 0
            && self.tick(ack.now) < self.epoch.saturating_add(u64::from(self.scale.hz));
        if ack.rtt == 0 || recent {
            return;
        }
        let rtt = (ack.rtt / MICROSECOND).max(1);
        if self.least == 0 || rtt < self.least {
            self.least = rtt;
        }
        if self.scale.hystart && !self.exited && window.in_slow_start() {
            self.check_hystart(window, ack, rtt);
        }
    }

    /// Performs HyStart: checks whether the length of a train of acknowledgements, or the delay,
    /// indicates that the path is full.
    fn check_hystart(&mut self, window: &mut Window, ack: &Ack, rtt: u64) {
        let now = ack.now / MICROSECOND;
        let round = &mut self.round;
        if ack.una > round.end || round.start == 0 {
            *round = Round { end: ack.nxt, start: now, last_ack: now, ..Round::default() };
        }
        if window.segments() < LOW_WINDOW {
            return;
        }
        if now.saturating_sub(round.last_ack) <= TRAIN_GAP {
            round.last_ack = now;
            let mut full = self.least + cushion(window, ack);
            if !ack.paced {
                full /= 2;
            }
            self.exited |= now.saturating_sub(round.start) > full;
        }
        if round.least == 0 || rtt < round.least {
            round.least = rtt;
        }
        if round.samples < SAMPLES {
            round.samples += 1;
        } else {
            let threshold = (self.least / 8).clamp(THRESHOLD_MIN, THRESHOLD_MAX);
            self.exited |= round.least > self.least + threshold;
        }
        if self.exited {
            window.ssthresh = window.cwnd;
        }
    }

    fn tick(&self, now: Nanos) -> u64 {
        jiffies::at(now, self.scale.hz)
    }

    /// Grows the window after `acked` delivered segments in congestion avoidance.
    pub(crate) fn on_ack(&mut self, window: &mut Window, now: Nanos, acked: u64) {
        self.update(window.segments(), now, acked);
        self.count.avoid(window, self.per, acked);
    }

    fn update(&mut self, cwnd: u64, now: Nanos, acked: u64) {
        let tick = self.tick(now);
        self.delivered = self.delivered.saturating_add(acked);
        let pause = u64::from(self.scale.hz / 32);
        if self.last_window == cwnd && tick.saturating_sub(self.last_tick) <= pause {
            return;
        }
        if self.epoch == 0 || tick != self.last_tick {
            self.last_window = cwnd;
            self.last_tick = tick;
            if self.epoch == 0 {
                self.begin(cwnd, tick, acked);
            }
            self.aim(cwnd, tick);
        }
        if self.scale.reno_friendly {
            let each = ((cwnd * u64::from(self.scale.reno)) >> 3).max(1);
            if self.delivered > each {
                // Linux's loop is `while (ack_cnt > delta)`: at least one delivered segment
                // remains.
                let gained = (self.delivered - 1) / each;
                self.delivered -= gained * each;
                self.reno = self.reno.saturating_add(gained);
            }
            if self.reno > cwnd {
                self.per = self.per.min(cwnd / (self.reno - cwnd));
            }
        }
        self.per = self.per.max(2);
    }

    fn begin(&mut self, cwnd: u64, tick: u64, acked: u64) {
        self.epoch = tick.max(1);
        self.delivered = acked;
        self.reno = cwnd;
        if self.last_max > cwnd {
            let distance = u128::from(self.last_max - cwnd) << 40;
            self.k = root(distance / u128::from(self.scale.growth));
            self.origin = self.last_max;
        } else {
            self.k = 0;
            self.origin = cwnd;
        }
    }

    /// Computes `per`, the number of delivered segments that add one segment, so that the window
    /// reaches its target one round trip from now.
    fn aim(&mut self, cwnd: u64, tick: u64) {
        let hz = self.scale.hz;
        let ahead = jiffies::from_micros(u32::try_from(self.least).unwrap_or(u32::MAX), hz);
        let passed = tick.saturating_sub(self.epoch).saturating_add(ahead);
        let time = passed.saturating_mul(1024) / u64::from(hz);
        let offset = u128::from(time.abs_diff(self.k)).min(1 << 36);
        let cube = (offset * offset * offset * u128::from(self.scale.growth)) >> 40;
        let delta = u64::try_from(cube).unwrap_or(u64::MAX);
        let target = if time < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        };
        self.per = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 {
            // Before the first loss, grow by at least 1/20 of the window per round trip.
            self.per = self.per.min(20);
        }
    }

    /// Returns the new ssthresh in bytes.
    pub(crate) fn reduce(&mut self, window: &Window, cause: Cause) -> u64 {
        let (cwnd, beta) = (window.segments(), u64::from(self.scale.beta));
        self.count.reset();
        self.epoch = 0;
        self.last_max = if cwnd < self.last_max && self.scale.fast_convergence {
            cwnd * (1024 + beta) / 2048
        } else {
            cwnd
        };
        if cause == Cause::Timeout {
            *self = Self::fresh(self.scale);
        }
        (cwnd * beta / 1024).max(2) * window.mss
    }

    fn fresh(scale: Scale) -> Self {
        Self { scale, ..Self::new(0.0, 0.0, false, false, false, FINE) }
    }

    /// Excludes an idle period of `idle` nanoseconds from the epoch.
    pub(crate) fn on_restart(&mut self, now: Nanos, idle: Nanos) {
        if self.epoch > 0 {
            self.epoch = (self.epoch + self.tick(idle)).min(self.tick(now));
        }
    }
}

/// Returns the largest delay that super-packets add to a round trip (`hystart_ack_delay`), in
/// microseconds.
fn cushion(window: &Window, ack: &Ack) -> u64 {
    let delay = u128::from(SUPER_PACKETS) * u128::from(ack.srtt)
        / (2 * u128::from(window.cwnd) * u128::from(MICROSECOND));
    delay.min(1000) as u64
}

/// Returns the integer cube root, rounded down.
fn root(value: u128) -> u64 {
    let mut root = 0u64;
    for bit in (0..42).rev() {
        let next = root | 1 << bit;
        let wide = u128::from(next);
        if wide * wide * wide <= value {
            root = next;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sojourn_units::{MILLISECOND, SECOND};

    const MSS: u64 = 1000;

    fn cubic() -> Bictcp {
        Bictcp::new(0.7, 0.4, true, true, true, FINE)
    }

    fn window(segments: u64) -> Window {
        Window { cwnd: segments * MSS, ssthresh: segments * MSS, mss: MSS }
    }

    #[test]
    fn the_kernels_fixed_numbers() {
        let scale = cubic().scale;
        assert_eq!((scale.beta, scale.growth, scale.reno), (717, 410, 15));
    }

    #[test]
    fn a_reduction_is_rounded_down_to_whole_segments() {
        for (cwnd, ssthresh) in [(2, 2), (3, 2), (4, 2), (5, 3), (6, 4), (7, 4), (8, 5), (10, 7)] {
            assert_eq!(cubic().reduce(&window(cwnd), Cause::Loss), ssthresh * MSS, "{cwnd}");
        }
    }

    /// A round trip below a tick counts as one, so slow clocks aim further ahead.
    #[test]
    fn the_target_follows_the_clock() {
        let per = |hz| {
            let mut cubic = Bictcp::new(0.7, 0.4, true, false, true, hz);
            (cubic.last_max, cubic.least) = (1, 4100);
            cubic.update(10_000_000, SECOND, 1);
            cubic.update(10_000_000, 21 * SECOND, 1);
            cubic.per
        };
        assert!(
            per(100) < per(250) && per(250) < per(1000),
            "{} {} {}",
            per(100),
            per(250),
            per(1000)
        );
        assert_eq!(per(0), per(1000));
    }

    #[test]
    fn fast_convergence_lowers_the_plateau_of_a_flow_that_loses_ground() {
        let mut cubic = cubic();
        cubic.reduce(&window(100), Cause::Loss);
        assert_eq!(cubic.last_max, 100);
        cubic.reduce(&window(70), Cause::Loss);
        assert_eq!(cubic.last_max, 70 * 1741 / 2048);
    }

    #[test]
    fn a_timeout_forgets_the_window_and_the_least_round_trip() {
        let mut cubic = cubic();
        cubic.least = 5;
        assert_eq!(cubic.reduce(&window(100), Cause::Timeout), 70 * MSS);
        assert_eq!((cubic.last_max, cubic.least, cubic.scale.beta), (0, 0, 717));
    }

    #[test]
    fn before_the_first_loss_each_twenty_delivered_add_one() {
        let (mut cubic, mut window) = (cubic(), window(100));
        cubic.on_ack(&mut window, SECOND, 19);
        assert_eq!(window.cwnd, 100 * MSS);
        cubic.on_ack(&mut window, SECOND, 1);
        assert_eq!(window.cwnd, 101 * MSS);
    }

    /// W(t) = 0.4 (t - K)^3 + `W_max` at a round trip of 100 ms, to two segments.
    #[test]
    fn the_window_follows_the_function() {
        let (mut cubic, mut window) = (cubic(), window(1000));
        window.ssthresh = cubic.reduce(&window, Cause::Loss);
        window.cwnd = window.ssthresh;
        cubic.least = 100_000;
        let (start, k) = (10 * SECOND, libm::cbrt(300.0 / 0.4));
        for round in 0..120u64 {
            let (mut left, mut step) = (window.segments(), 0);
            while left > 0 {
                let now = start + (round * 100 + step / 8) * MILLISECOND;
                cubic.on_ack(&mut window, now, 1);
                (left, step) = (left - 1, step + 1);
            }
            let t = (round + 1) as f64 / 10.0;
            let expected = 1000.0 + 0.4 * (t - k) * (t - k) * (t - k);
            let off = (window.segments() as f64 - expected).abs();
            assert!(off <= 4.0, "{} and not {expected} at {t}", window.segments());
        }
    }

    #[test]
    fn the_function_is_computed_once_a_tick_and_again_after_31_if_the_window_stays() {
        let (mut cubic, mut window) = (cubic(), window(100));
        cubic.reduce(&window, Cause::Loss);
        window.cwnd = 70 * MSS;
        cubic.on_ack(&mut window, SECOND, 1);
        let per = cubic.per;
        for ms in 1..=31 {
            cubic.update(70, SECOND + ms * MILLISECOND, 1);
            assert_eq!((cubic.per, cubic.last_tick), (per, 1000));
        }
        cubic.update(70, SECOND + 32 * MILLISECOND, 1);
        assert_eq!(cubic.last_tick, 1032);
    }

    #[test]
    fn samples_right_after_a_reduction_do_not_count() {
        let (mut cubic, mut window) = (cubic(), window(10));
        let sample = |now, rtt| Ack { now, rtt, ..Ack::default() };
        cubic.on_sample(&mut window, &sample(SECOND, 20 * MILLISECOND));
        cubic.reduce(&window, Cause::Loss);
        cubic.on_ack(&mut window, SECOND, 1);
        cubic.on_sample(&mut window, &sample(2 * SECOND - 1, 10 * MILLISECOND));
        assert_eq!(cubic.least, 20_000);
        cubic.on_sample(&mut window, &sample(2 * SECOND, 10 * MILLISECOND));
        assert_eq!(cubic.least, 10_000);
    }

    #[test]
    fn a_train_of_half_the_least_round_trip_ends_slow_start_unless_segments_are_paced() {
        for (paced, ends) in [(false, true), (true, false)] {
            let (mut cubic, mut window) = (cubic(), window(100));
            window.ssthresh = u64::MAX;
            for ms in 0..=15 {
                let ack = Ack {
                    now: SECOND + ms * MILLISECOND,
                    rtt: 20 * MILLISECOND,
                    srtt: 20 * MILLISECOND,
                    una: 10 + ms,
                    nxt: 1000,
                    paced,
                    ..Ack::default()
                };
                cubic.on_sample(&mut window, &ack);
            }
            assert_eq!(cubic.exited, ends);
            assert_eq!(window.in_slow_start(), !ends);
        }
    }

    proptest! {
        #[test]
        fn the_cube_root_is_exact(value in 0u64..1 << 40) {
            let cube = u128::from(value).pow(3);
            prop_assert_eq!(root(cube), value);
            prop_assert_eq!(root(cube + 3 * u128::from(value)), value);
        }
    }
}
