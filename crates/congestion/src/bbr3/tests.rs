//! The draft's constants and transitions, one by one.

use super::cycle::PROBE_WAIT;
use super::*;
use crate::window::{MAX_WINDOW, RateSample};
use sojourn_units::{MILLISECOND, SECOND};

const MSS: u64 = 1000;
const RTT: Nanos = 50 * MILLISECOND;
/// 100 segments in a round trip.
const RATE: u64 = 2_000_000;
const BDP: u64 = 100 * MSS;

/// A control on a path of `RATE` and `RTT`.
struct Path {
    bbr: Bbr3,
    window: Window,
    now: Nanos,
    total: u64,
    /// Deliveries of the path.
    rate: u64,
}

/// One acknowledgement of a segment, as far as tests change it.
#[derive(Clone, Copy)]
struct One {
    in_flight: u64,
    lost: u64,
    limited: bool,
    marked: bool,
    new_round: bool,
    cwnd_limited: bool,
    in_recovery: bool,
}

const PLAIN: One = One {
    in_flight: BDP,
    lost: 0,
    limited: false,
    marked: false,
    new_round: false,
    cwnd_limited: false,
    in_recovery: false,
};

impl Path {
    fn new() -> Self {
        let mut window = Window::new(MSS, 10);
        let mut bbr = Bbr3::new(Params::default(), &window);
        bbr.on_start(&mut window, &Start { now: 1000 * SECOND, srtt: 0, draw: 7 });
        Self { bbr, window, now: 1000 * SECOND, total: 0, rate: RATE }
    }

    /// A path whose pipe was filled, in `mode`.
    fn known(mode: Mode) -> Self {
        let mut path = Self::new();
        path.bbr.min_rtt.long.rtt = RTT;
        path.bbr.min_rtt.long.at = path.now;
        path.bbr.min_rtt.short.rtt = RTT;
        path.bbr.max.cycles = [RATE, RATE];
        path.bbr.max.value = RATE;
        path.bbr.bandwidth = RATE;
        path.bbr.is_full = true;
        path.bbr.pacing.rate = RATE;
        path.bbr.mode = mode;
        path.bbr.cycle.start = path.now;
        path.bbr.cycle.wait = PROBE_WAIT;
        path.window.set_cwnd(2 * BDP);
        path.total = 1000 * MSS;
        path.bbr.rounds.delivered = path.total;
        path.bbr.rounds.next = path.total;
        path.bbr.signals.loss_round_delivered = path.total;
        path
    }

    fn ack(&mut self, one: One) -> Mode {
        self.total += MSS;
        let prior = if one.new_round { self.total - MSS } else { 0 };
        let rate = RateSample {
            delivered: path::bytes(self.rate, RTT),
            interval: RTT,
            prior_delivered: prior,
            total: self.total,
            app_limited: one.limited,
            in_flight: one.in_flight,
            lost: one.lost,
        };
        let ack = Ack {
            now: self.now,
            acked: MSS,
            delivered: MSS,
            marked: if one.marked { MSS } else { 0 },
            in_flight: one.in_flight,
            rtt: RTT,
            srtt: RTT,
            cwnd_limited: one.cwnd_limited,
            in_recovery: one.in_recovery,
            rate,
            ..Ack::default()
        };
        self.bbr.on_ack(&mut self.window, &ack);
        self.bbr.mode
    }

    /// The first acknowledgement of a round, a round trip later.
    fn round(&mut self, one: One) -> Mode {
        self.now += RTT;
        self.ack(One { new_round: true, ..one })
    }

    fn aggregate(&mut self, ack: &Ack) {
        let round = self.bbr.rounds.count;
        self.bbr.aggregation.update(&self.window, ack, round, self.bbr.bandwidth);
    }

    fn extra(&self) -> u64 {
        self.bbr.aggregation.extra(self.bbr.rounds.count, self.bbr.is_full)
    }

    /// `count` separate segments are lost, of `in_flight` bytes.
    fn lose(&mut self, count: u64, in_flight: u64, selective: bool) {
        for i in 0..count {
            let lost = Lost {
                now: self.now,
                seq: 2 * i * MSS,
                len: MSS,
                in_flight,
                lost: (i + 1) * MSS,
                delivered: self.total,
                app_limited: false,
                selective,
            };
            self.bbr.on_lost(&self.window, &lost);
        }
    }
}

#[test]
fn gains_and_constants_are_the_drafts() {
    for (mode, pacing, cwnd) in [
        (Mode::Startup, 277, 200),
        (Mode::Drain, 50, 200),
        (Mode::Down, 90, 200),
        (Mode::Cruise, 100, 200),
        (Mode::Refill, 100, 200),
        (Mode::Up, 125, 225),
        (Mode::ProbeRtt, 100, 50),
    ] {
        assert_eq!(mode.gains(), (pacing, cwnd), "{mode:?}");
    }
    let params = Params::default();
    assert_eq!((params.loss_threshold, params.beta, params.headroom), (0.02, 0.7, 0.15));
    assert_eq!((params.min_rtt_window, params.probe_rtt_interval), (10 * SECOND, 5 * SECOND));
    assert_eq!(params.probe_rtt, 200 * MILLISECOND);
    let quantum = Path::new().bbr.super_packet();
    assert_eq!((quantum.shift, quantum.least), (10, 2));
}

#[test]
fn the_first_rate_is_the_initial_window_in_a_millisecond_then_in_a_round_trip() {
    let mut path = Path::new();
    assert_eq!(path.bbr.pacing_rate(), Some(27_700_000));
    path.rate = 1;
    path.ack(PLAIN);
    assert_eq!(path.bbr.pacing_rate(), Some(200_000 * 277 / 100));
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more() {
    let mut path = Path::new();
    for (i, rate) in [400_000, 800_000, 1_600_000, 2_000_000].into_iter().enumerate() {
        path.rate = rate;
        assert_eq!(path.round(One { in_flight: 2 * BDP, ..PLAIN }), Mode::Startup, "round {i}");
    }
    for left in [2, 1, 0] {
        path.rate = 2_400_000;
        let mode = path.round(One { in_flight: 4 * BDP, ..PLAIN });
        assert_eq!(mode == Mode::Startup, left > 0);
    }
    assert_eq!(path.bbr.mode, Mode::Drain);
    assert!(path.bbr.is_full && path.bbr.full.now);
    // At half the bandwidth, one percent less.
    assert_eq!(path.bbr.pacing_rate(), Some(2_400_000 / 2 * 99 / 100));
}

#[test]
fn rounds_limited_by_the_application_do_not_end_startup_or_a_probe() {
    let mut path = Path::new();
    for _ in 0..20 {
        assert_eq!(path.round(One { limited: true, ..PLAIN }), Mode::Startup);
    }
    let mut path = Path::known(Mode::Up);
    for _ in 0..20 {
        assert_eq!(path.round(One { limited: true, ..PLAIN }), Mode::Up);
    }
}

/// Six separate losses in a round of recovery, and more than 2 % of what was in flight.
#[test]
fn startup_ends_on_high_loss_also_when_the_application_limits() {
    for (losses, lost, in_recovery, expected) in [
        (6, 3000, true, true),
        (5, 3000, true, false),
        (6, 2000, true, false),
        (6, 3000, false, false),
    ] {
        let mut path = Path::new();
        path.round(PLAIN);
        path.lose(losses, BDP, true);
        let mode = path.round(One { lost, limited: true, in_recovery, ..PLAIN });
        assert_eq!(mode != Mode::Startup, expected, "{losses} {lost} {in_recovery}");
        assert_eq!(path.bbr.is_full, expected);
        // The delivered data of the round are safe.
        assert_eq!(path.bbr.bounds.inflight_longterm < UNBOUNDED, expected);
        if expected {
            assert_eq!(path.bbr.bounds.inflight_longterm, BDP);
        }
        assert_eq!(path.bbr.signals.loss_events, 0, "counted anew in the next round");
    }
}

#[test]
fn adjacent_losses_count_once() {
    let mut path = Path::new();
    for seq in [0, 1000, 2000, 5000] {
        let lost = Lost { seq, len: 1000, in_flight: BDP, selective: true, ..Lost::default() };
        path.bbr.on_lost(&path.window, &lost);
    }
    assert_eq!(path.bbr.signals.loss_events, 2);
}

#[test]
fn without_selective_acknowledgements_one_loss_ends_startup() {
    let mut path = Path::new();
    path.round(PLAIN);
    path.lose(1, BDP, false);
    assert_ne!(path.ack(One { in_recovery: true, ..PLAIN }), Mode::Startup);
}

#[test]
fn drain_ends_when_the_queue_is_gone_or_after_three_rounds() {
    let mut path = Path::known(Mode::Drain);
    path.bbr.drain_round = path.bbr.rounds.count;
    assert_eq!(path.ack(One { in_flight: BDP + 1, ..PLAIN }), Mode::Drain);
    // Nothing keeps it from cruising at once.
    assert_eq!(path.ack(One { in_flight: BDP, ..PLAIN }), Mode::Cruise);
    let mut path = Path::known(Mode::Drain);
    path.bbr.drain_round = path.bbr.rounds.count;
    for _ in 0..3 {
        assert_eq!(path.round(One { in_flight: 3 * BDP, ..PLAIN }), Mode::Drain);
    }
    assert_eq!(path.round(One { in_flight: 3 * BDP, ..PLAIN }), Mode::Down);
}

#[test]
fn cruise_begins_below_the_product_and_with_headroom() {
    let mut path = Path::known(Mode::Down);
    assert_eq!(path.ack(One { in_flight: BDP + 1, ..PLAIN }), Mode::Down);
    assert_eq!(path.ack(One { in_flight: BDP, ..PLAIN }), Mode::Cruise);
    let mut path = Path::known(Mode::Down);
    path.bbr.bounds.inflight_longterm = BDP;
    assert_eq!(path.ack(One { in_flight: BDP, ..PLAIN }), Mode::Down);
    assert_eq!(path.ack(One { in_flight: 85 * MSS, ..PLAIN }), Mode::Cruise);
    assert_eq!(path.window.cwnd, 85 * MSS, "0.85 of the bound in cruise");
}

#[test]
fn a_probe_begins_after_two_to_three_seconds_or_63_rounds() {
    let mut waits = Vec::new();
    for draw in 0..200 {
        let mut path = Path::known(Mode::Up);
        path.bbr.cycle.draw = draw << 20;
        path.bbr.start_down(path.now);
        waits.push(path.bbr.cycle.wait);
        assert!((2 * SECOND..3 * SECOND).contains(&path.bbr.cycle.wait));
        assert!(path.bbr.cycle.rounds <= 1);
    }
    let mean = waits.iter().sum::<u64>() / waits.len() as u64;
    assert!((2300..2700).contains(&(mean / MILLISECOND)), "{mean}");

    let mut path = Path::known(Mode::Cruise);
    path.now += PROBE_WAIT;
    assert_eq!(path.ack(PLAIN), Mode::Cruise);
    path.now += 1;
    assert_eq!(path.ack(PLAIN), Mode::Refill);

    let mut path = Path::known(Mode::Cruise);
    path.bbr.cycle.wait = 100 * SECOND;
    for _ in 0..62 {
        path.bbr.min_rtt.short.at = path.now;
        assert_eq!(path.round(PLAIN), Mode::Cruise);
    }
    assert_eq!(path.round(PLAIN), Mode::Refill);
    // A small window is probed in as many rounds as it has segments.
    let mut path = Path::known(Mode::Cruise);
    path.window.set_cwnd(8 * MSS);
    path.bbr.cycle.rounds = 7;
    assert_eq!(path.round(PLAIN), Mode::Refill);
}

#[test]
fn down_skips_cruise_when_its_time_is_over() {
    let mut path = Path::known(Mode::Down);
    path.now += PROBE_WAIT + 1;
    assert_eq!(path.ack(One { in_flight: 3 * BDP, ..PLAIN }), Mode::Refill);
}

#[test]
fn refill_forgets_the_short_term_and_lasts_a_round() {
    let mut path = Path::known(Mode::Cruise);
    path.bbr.bounds.inflight_shortterm = BDP / 2;
    path.bbr.bounds.bw_shortterm = RATE / 2;
    path.now += PROBE_WAIT + 1;
    assert_eq!(path.ack(PLAIN), Mode::Refill);
    assert_eq!(
        (path.bbr.bounds.inflight_shortterm, path.bbr.bounds.bw_shortterm),
        (UNBOUNDED, UNBOUNDED)
    );
    assert_eq!(path.bbr.bandwidth, RATE);
    assert_eq!(path.ack(PLAIN), Mode::Refill);
    assert_eq!(path.round(PLAIN), Mode::Up);
    assert!(path.bbr.cycle.is_probe_sample);
}

#[test]
fn samples_limited_by_the_application_do_not_lower_the_bandwidth() {
    let mut path = Path::known(Mode::Refill);
    path.rate = RATE / 10;
    path.round(One { limited: true, ..PLAIN });
    assert_eq!((path.bbr.mode, path.bbr.max.value), (Mode::Up, RATE));
}

#[test]
fn a_probe_ends_when_the_rate_does_not_grow() {
    let mut path = Path::known(Mode::Refill);
    path.round(PLAIN);
    assert_eq!(path.bbr.mode, Mode::Up);
    assert_eq!(path.round(PLAIN), Mode::Up);
    assert_eq!(path.round(PLAIN), Mode::Up);
    assert_eq!(path.round(PLAIN), Mode::Down);
    assert!(!path.bbr.cycle.was_too_high);
}

#[test]
fn a_probe_that_its_own_bound_stops_goes_on() {
    let mut path = Path::known(Mode::Up);
    path.bbr.full = FullPipe { bandwidth: RATE, rounds: 3, now: true };
    path.bbr.bounds.inflight_longterm = path.window.cwnd;
    assert_eq!(path.ack(One { cwnd_limited: true, ..PLAIN }), Mode::Up);
    assert!(!path.bbr.full.now);
}

/// By 1, 2, 4, 8 segments in successive rounds.
#[test]
fn the_bound_grows_twice_as_fast_each_round() {
    let mut path = Path::known(Mode::Refill);
    path.bbr.bounds.inflight_longterm = 100 * MSS;
    path.window.set_cwnd(100 * MSS);
    path.round(PLAIN);
    let mut grown = Vec::new();
    for _ in 0..5 {
        let before = path.bbr.bounds.inflight_longterm;
        for i in 0..path.window.segments() {
            let one = One { cwnd_limited: true, in_flight: 90 * MSS, ..PLAIN };
            if i == 0 && !grown.is_empty() {
                path.round(one)
            } else {
                path.ack(one)
            };
        }
        grown.push((path.bbr.bounds.inflight_longterm - before) / MSS);
    }
    for (i, grown) in grown.iter().enumerate() {
        assert!(grown.abs_diff(1 << i) <= 1 + (1 << i) / 8, "{i}: {grown}");
    }
}

#[test]
fn more_than_two_percent_loss_ends_a_probe_and_sets_the_bound() {
    let mut path = Path::known(Mode::Up);
    path.bbr.cycle.is_probe_sample = true;
    let in_flight = 150 * MSS;
    path.lose(3, in_flight, true);
    assert_eq!(path.bbr.mode, Mode::Up, "2 % are three of 150");
    assert_eq!(path.bbr.bounds.inflight_longterm, UNBOUNDED);
    path.lose(4, in_flight, true);
    assert_eq!(path.bbr.mode, Mode::Down);
    // Two percent of the 149 before it are 2980 bytes, less than the 3000 that had been lost.
    assert_eq!(path.bbr.bounds.inflight_longterm, 149 * MSS);
    assert!(path.bbr.cycle.was_too_high && !path.bbr.cycle.is_probe_sample);
    path.lose(20, 50 * MSS, true);
    assert_eq!(path.bbr.bounds.inflight_longterm, 149 * MSS, "a probe is answered once");
}

#[test]
fn the_bound_falls_by_beta_at_most() {
    let mut path = Path::known(Mode::Up);
    path.bbr.cycle.is_probe_sample = true;
    path.lose(3, 10 * MSS, true);
    assert_eq!(path.bbr.bounds.inflight_longterm, 70 * MSS);
}

/// The loss crossed the threshold within a burst.
#[test]
fn the_part_of_a_burst_that_fitted_counts() {
    let mut path = Path::known(Mode::Up);
    path.bbr.cycle.is_probe_sample = true;
    let lost = Lost {
        len: 50 * MSS,
        in_flight: 150 * MSS,
        lost: 50 * MSS,
        selective: true,
        delivered: path.total,
        ..Lost::default()
    };
    path.bbr.on_lost(&path.window, &lost);
    // 100 before it; (2 % of 100) / (1 - 2 %) of it fitted.
    assert_eq!(path.bbr.bounds.inflight_longterm, 100 * MSS + 2040);
}

#[test]
fn after_a_probe_that_lost_the_next_stops_at_the_bound_and_the_one_after_goes_on() {
    let mut path = Path::known(Mode::Up);
    path.bbr.cycle.was_too_high = true;
    path.bbr.bounds.inflight_longterm = 120 * MSS;
    assert_eq!(path.ack(One { in_flight: 119 * MSS, ..PLAIN }), Mode::Up);
    assert_eq!(path.ack(One { in_flight: 120 * MSS, ..PLAIN }), Mode::Down);
    assert!(path.bbr.cycle.was_precautionary && !path.bbr.cycle.was_too_high);
    // A round later nothing was lost: at once again.
    assert_eq!(path.round(One { in_flight: 119 * MSS, ..PLAIN }), Mode::Refill);
    assert!(!path.bbr.cycle.was_precautionary);
}

#[test]
fn losses_between_probes_bound_the_short_term_by_beta_once_a_round() {
    let mut path = Path::known(Mode::Cruise);
    path.rate = RATE / 4;
    path.round(PLAIN);
    path.lose(3, BDP, true);
    path.ack(One { in_recovery: true, ..PLAIN });
    assert_eq!(path.bbr.bounds.inflight_shortterm, UNBOUNDED, "at the round's end");
    let cwnd = path.window.cwnd;
    path.round(One { in_recovery: true, ..PLAIN });
    assert_eq!(path.bbr.bounds.inflight_shortterm, cwnd * 7 / 10);
    assert_eq!(path.bbr.bounds.bw_shortterm, RATE * 7 / 10);
    assert_eq!(path.bbr.bandwidth, RATE * 7 / 10);
    assert_eq!(path.window.cwnd, cwnd * 7 / 10);
    path.round(PLAIN);
    assert_eq!(
        path.bbr.bounds.inflight_shortterm,
        cwnd * 7 / 10,
        "a round without losses changes nothing"
    );
    // Not below what is delivered.
    path.rate = RATE * 6 / 10;
    path.round(PLAIN);
    path.lose(1, BDP, true);
    path.round(PLAIN);
    assert_eq!(path.bbr.bandwidth, RATE * 6 / 10);
}

#[test]
fn losses_of_a_probe_leave_the_short_term_alone() {
    let mut path = Path::known(Mode::Refill);
    path.lose(1, BDP, true);
    path.round(PLAIN);
    assert_eq!(path.bbr.bounds.inflight_shortterm, UNBOUNDED);
}

#[test]
fn the_bandwidth_of_two_cycles_is_remembered() {
    let mut path = Path::known(Mode::Down);
    path.bbr.max.cycles = [RATE, RATE / 2];
    path.rate = RATE / 2;
    path.bbr.cycle.is_stopping = true;
    path.bbr.cycle.rounds = 0;
    path.round(PLAIN);
    assert_eq!(path.bbr.max.value, RATE / 2);
}

#[test]
fn the_round_trip_time_is_probed_every_five_seconds() {
    let mut path = Path::known(Mode::Cruise);
    path.bbr.cycle.wait = 100 * SECOND;
    path.bbr.min_rtt.short.at = path.now;
    path.now += 5 * SECOND;
    assert_eq!(path.ack(PLAIN), Mode::Cruise);
    path.now += 1;
    assert_eq!(path.ack(PLAIN), Mode::ProbeRtt);
    assert_eq!(path.window.cwnd, BDP / 2);
    path.ack(One { in_flight: BDP / 2 + 1, ..PLAIN });
    assert_eq!(path.bbr.probe_rtt.done, 0, "not yet drained");
    path.ack(One { in_flight: BDP / 2, ..PLAIN });
    path.now += 200 * MILLISECOND;
    path.round(One { in_flight: BDP / 2, ..PLAIN });
    assert_eq!(path.bbr.mode, Mode::Cruise);
    assert_eq!(path.bbr.bounds.inflight_shortterm, UNBOUNDED);
    assert!(path.window.cwnd > BDP, "the window of before");
}

#[test]
fn probing_the_round_trip_time_lasts_200_ms_and_a_round() {
    let mut path = Path::known(Mode::ProbeRtt);
    path.ack(One { in_flight: BDP / 2, ..PLAIN });
    path.now += 300 * MILLISECOND;
    assert_eq!(path.ack(PLAIN), Mode::ProbeRtt, "no round yet");
    assert_ne!(path.round(PLAIN), Mode::ProbeRtt);
    let mut path = Path::known(Mode::ProbeRtt);
    path.ack(One { in_flight: BDP / 2, ..PLAIN });
    assert_eq!(path.round(PLAIN), Mode::ProbeRtt, "50 ms");
    let mut path = Path::known(Mode::ProbeRtt);
    path.bbr.is_full = false;
    path.ack(One { in_flight: BDP / 2, ..PLAIN });
    path.now += SECOND;
    assert_eq!(path.round(PLAIN), Mode::Startup, "the pipe was never full");
}

#[test]
fn silence_counts_as_a_probe_of_the_round_trip_time() {
    let mut path = Path::known(Mode::Cruise);
    path.bbr.cycle.wait = 100 * SECOND;
    path.bbr.min_rtt.short.at = path.now;
    path.now += 6 * SECOND;
    path.bbr.on_restart(&mut path.window, path.now, 6 * SECOND);
    assert_eq!(path.ack(PLAIN), Mode::Cruise);
    assert_eq!(path.bbr.pacing_rate(), Some(RATE * 99 / 100));
}

#[test]
fn the_least_round_trip_time_is_believed_for_ten_seconds() {
    let mut path = Path::known(Mode::Cruise);
    path.bbr.min_rtt.long.rtt = RTT / 2;
    let ack = |now| Ack { now, rtt: RTT, ..Ack::default() };
    path.bbr.min_rtt.short.at = path.now + 9 * SECOND;
    path.bbr.min_rtt.update(&ack(path.now + 10 * SECOND), 5 * SECOND, 10 * SECOND);
    assert_eq!(path.bbr.min_rtt.long.rtt, RTT / 2);
    path.bbr.min_rtt.update(&ack(path.now + 10 * SECOND + 1), 5 * SECOND, 10 * SECOND);
    assert_eq!(path.bbr.min_rtt.long.rtt, RTT);
}

#[test]
fn the_window_grows_by_what_came_at_once() {
    let mut path = Path::known(Mode::Cruise);
    path.bbr.aggregation.start = path.now;
    let ack = |now, delivered| Ack { now, delivered, ..Ack::default() };
    path.aggregate(&ack(path.now, 30 * MSS));
    assert_eq!(path.extra(), 30 * MSS);
    // In 5 ms ten segments are expected: 60 are 50 more.
    path.aggregate(&ack(path.now + 5 * MILLISECOND, 30 * MSS));
    assert_eq!(path.extra(), 50 * MSS);
    for _ in 0..9 {
        path.bbr.cycle.rounds = 0;
        path.round(PLAIN);
    }
    assert_eq!(path.extra(), 50 * MSS);
    path.round(PLAIN);
    assert!(path.extra() <= MSS, "forgotten after ten rounds");
}

#[test]
fn small_products_leave_room_for_four_segments_and_three_super_packets() {
    let mut path = Path::known(Mode::Cruise);
    path.bbr.pacing.rate = 1000;
    assert_eq!(path.bbr.with_room(&path.window, 0), 6 * MSS, "three of two segments");
    path.bbr.pacing.rate = 10_240_000;
    assert_eq!(path.bbr.with_room(&path.window, 0), 30 * MSS);
    path.bbr.mode = Mode::Up;
    assert_eq!(path.bbr.with_room(&path.window, 0), 32 * MSS);
    path.bbr.pacing.rate = u64::MAX;
    assert_eq!(path.bbr.with_room(&path.window, 0), 3 * (64 << 10) + 2 * MSS);
}

#[test]
fn a_recovery_by_mistake_gives_back_bounds_and_phase() {
    let mut path = Path::known(Mode::Up);
    path.bbr.cycle.is_probe_sample = true;
    path.lose(9, 150 * MSS, true);
    assert_eq!(path.bbr.mode, Mode::Down);
    let _ = path.bbr.reduce(&path.window, BDP, Cause::Loss, path.now);
    path.bbr.on_undo();
    assert_eq!((path.bbr.mode, path.bbr.bounds.inflight_longterm), (Mode::Refill, UNBOUNDED));

    let mut path = Path::new();
    path.round(PLAIN);
    path.lose(6, BDP, true);
    let _ = path.bbr.reduce(&path.window, BDP, Cause::Loss, path.now);
    path.round(One { lost: 6 * MSS, in_recovery: true, ..PLAIN });
    assert!(path.bbr.is_full);
    path.bbr.on_undo();
    assert_eq!((path.bbr.mode, path.bbr.is_full), (Mode::Startup, false));
}

#[test]
fn after_a_timeout_the_window_of_before_returns() {
    let mut path = Path::known(Mode::Cruise);
    let before = path.window.cwnd;
    let _ = path.bbr.reduce(&path.window, BDP, Cause::Timeout, path.now);
    path.window.set_cwnd(MSS);
    path.ack(One { in_recovery: true, ..PLAIN });
    assert_eq!(path.window.cwnd, 4 * MSS);
    path.bbr.on_recovery_exit(&mut path.window);
    assert_eq!(path.window.cwnd, before);
}

impl Path {
    /// Marks count at any round-trip time, and the last round ended with `alpha` zero.
    fn marking(mode: Mode) -> Self {
        let mut path = Self::known(mode);
        path.bbr.params.ecn_max_rtt = 0;
        for _ in 0..200 {
            path.bbr.marks.count(MSS, 0);
            path.bbr.marks.end_round(RTT, 0, 0.5);
        }
        path
    }
}

#[test]
fn a_round_with_marks_cuts_the_window_by_a_third_of_their_average() {
    let mut path = Path::marking(Mode::Cruise);
    path.bbr.cycle.wait = 100 * SECOND;
    path.round(PLAIN);
    for _ in 0..9 {
        path.ack(One { marked: true, ..PLAIN });
    }
    path.ack(PLAIN);
    let before = path.window.cwnd;
    path.round(One { marked: true, ..PLAIN });
    // Ten of eleven segments are marked; a round weighs a sixteenth.
    let expected = before as f64 * (1.0 - 10.0 / 11.0 / 16.0 / 3.0);
    assert!(
        (path.bbr.bounds.inflight_shortterm as f64 - expected).abs() < 2.0,
        "{} {expected}",
        path.bbr.bounds.inflight_shortterm
    );
    assert_eq!(path.bbr.bandwidth, RATE, "marks do not bound the rate");
}

#[test]
fn a_probe_ends_when_more_than_half_is_marked() {
    let mut path = Path::marking(Mode::Up);
    path.bbr.cycle.is_probe_sample = true;
    path.round(PLAIN);
    for _ in 0..50 {
        path.ack(PLAIN);
    }
    for _ in 0..51 {
        assert_eq!(path.bbr.mode, Mode::Up);
        path.ack(One { marked: true, ..PLAIN });
    }
    path.ack(One { marked: true, ..PLAIN });
    assert_eq!(path.bbr.mode, Mode::Down);
    assert_eq!(path.bbr.bounds.inflight_longterm, BDP);
}

#[test]
fn startup_ends_after_two_rounds_with_half_of_their_segments_marked() {
    let mut path = Path::new();
    path.bbr.params.ecn_max_rtt = 0;
    path.round(PLAIN);
    for _ in 0..2 {
        assert_eq!(path.bbr.mode, Mode::Startup);
        path.ack(One { marked: true, ..PLAIN });
        path.round(One { new_round: true, ..PLAIN });
    }
    assert_ne!(path.bbr.mode, Mode::Startup);
}

#[test]
fn marks_that_cease_begin_a_probe_unless_there_were_losses() {
    for lossy in [false, true] {
        let mut path = Path::marking(Mode::Cruise);
        path.bbr.bounds.inflight_longterm = 3 * BDP;
        path.round(PLAIN);
        path.ack(One { marked: true, ..PLAIN });
        if lossy {
            path.lose(1, BDP, true);
        }
        assert_eq!(path.round(PLAIN), Mode::Cruise, "the round before had marks");
        let mode = path.round(PLAIN);
        assert_eq!(mode, if lossy { Mode::Cruise } else { Mode::Refill });
        if !lossy {
            assert_eq!(path.bbr.cycle.slope.rounds, 150_u32.ilog2());
        }
    }
}

#[test]
fn marks_of_a_long_path_are_ignored() {
    let mut path = Path::known(Mode::Cruise);
    assert!(RTT > path.bbr.params.ecn_max_rtt);
    for _ in 0..20 {
        path.round(One { marked: true, ..PLAIN });
    }
    assert_eq!(path.bbr.bounds.inflight_shortterm, UNBOUNDED);
    assert_eq!(path.bbr.bandwidth, RATE);
}

/// An ideal path: the bandwidth is found, and all phases follow each other.
#[test]
fn the_phases_follow_each_other() {
    use Mode::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};
    let mut path = Path::new();
    let mut seen = vec![Startup];
    for _ in 0..400 {
        let cwnd = path.window.cwnd;
        let queued = cwnd.saturating_sub(BDP);
        let rtt = RTT + path::gained(queued, SECOND, RATE);
        let prior = path.total;
        for _ in 0..cwnd / MSS {
            path.now += rtt / (cwnd / MSS);
            path.total += MSS;
            let rate = RateSample {
                delivered: cwnd.min(path::bytes(RATE, rtt)),
                interval: rtt,
                prior_delivered: prior,
                total: path.total,
                in_flight: cwnd,
                ..RateSample::default()
            };
            let paced = path::bytes(path.bbr.pacing.rate, RTT);
            let ack = Ack {
                now: path.now,
                acked: MSS,
                delivered: MSS,
                in_flight: cwnd.min(paced),
                rtt,
                srtt: rtt,
                rate,
                ..Ack::default()
            };
            path.bbr.on_ack(&mut path.window, &ack);
            if seen.last() != Some(&path.bbr.mode()) {
                seen.push(path.bbr.mode());
            }
        }
    }
    // Drain's queue is gone, so down lasts no acknowledgement the first time.
    assert_eq!(seen[..7], [Startup, Drain, Cruise, Refill, Up, Down, Cruise], "{seen:?}");
    assert!(seen.windows(2).any(|w| *w == [ProbeRtt, Cruise]), "{seen:?}");
    assert!(path.bbr.bandwidth().abs_diff(RATE) < RATE / 20, "{}", path.bbr.bandwidth());
    assert!(path.window.ssthresh < MAX_WINDOW);
}
