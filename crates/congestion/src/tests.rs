//! Tests that every control passes, and a few of each.

use super::*;
use hystart::{Count, HyStart, Kind};
use proptest::prelude::*;
use sojourn_units::{MILLISECOND, Nanos, SECOND};

fn all() -> Vec<Params> {
    let mut all: Vec<_> = tables().iter().filter_map(|table| Params::named(table.name)).collect();
    all.extend([
        Params::Cubic(cubic::Params { variant: cubic::Variant::Linux, ..cubic::Params::default() }),
        Params::Cubic(cubic::Params {
            variant: cubic::Variant::Rfc9438,
            beta: 0.5,
            c: 100.0,
            fast_convergence: false,
            reno_friendly: false,
        }),
        Params::Bbr(bbr::Params { variant: bbr::Variant::Linux, ..bbr::Params::default() }),
        Params::Dctcp(dctcp::Params { shift: 0, initial_alpha: 0 }),
        Params::Prague(prague::Params {
            rtt_target: SECOND,
            rtt_transition: 0,
            classic_fallback: true,
        }),
    ]);
    all
}

fn slow_start(kind: Kind) -> hystart::Params {
    hystart::Params { kind, limit: 1_000_000, ..hystart::Params::default() }
}

/// Ways to end slow start, and to count.
fn ways() -> impl Iterator<Item = (Kind, Count)> {
    let kinds = [Kind::None, Kind::Classic, Kind::PlusPlus].into_iter();
    kinds.flat_map(|kind| [(kind, Count::Bytes), (kind, Count::Segments)])
}

/// Possible events of a control.
#[derive(Clone, Debug)]
enum Step {
    Ack(Ack),
    Reduce(Cause, u64),
    Timeout(u64),
    Undo,
    Exit,
    Restart(Nanos),
    Lost(Lost),
    Start(u32),
}

/// Any number, small and huge ones alike.
fn size() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1u64..100_000, 1u64..(1 << 40), any::<u64>()]
}

fn ack() -> impl Strategy<Value = Ack> {
    let counts = (size(), size(), size(), size(), size(), size());
    let times = (size(), size(), size(), any::<u64>());
    let rate = (size(), size(), size(), size(), any::<bool>(), (size(), size()));
    (counts, times, rate, prop::array::uniform4(any::<bool>())).prop_map(
        |(
            (acked, delivered, lost, marked, prior_in_flight, in_flight),
            (rtt, srtt, min_rtt, una),
            (rate_delivered, interval, prior_delivered, total, app, (tx_in_flight, tx_lost)),
            [may_grow, cwnd_limited, in_recovery, app_limited],
        )| Ack {
            now: 0,
            acked,
            delivered,
            lost,
            marked,
            una,
            nxt: una.saturating_add(in_flight),
            prior_in_flight,
            in_flight,
            rtt,
            srtt,
            min_rtt,
            may_grow,
            cwnd_limited,
            in_recovery,
            app_limited,
            departure: interval,
            paced: app,
            rate: RateSample {
                delivered: rate_delivered,
                interval,
                prior_delivered,
                total,
                app_limited: app,
                in_flight: tx_in_flight,
                lost: tx_lost,
            },
        },
    )
}

fn lost() -> impl Strategy<Value = Lost> {
    (size(), size(), size(), size(), size(), any::<[bool; 2]>()).prop_map(
        |(seq, len, in_flight, lost, delivered, [app_limited, selective])| Lost {
            now: 0,
            seq,
            len,
            in_flight,
            lost,
            delivered,
            app_limited,
            selective,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let cause = prop::sample::select(vec![Cause::Loss, Cause::Ecn]);
    prop_oneof![
        12 => ack().prop_map(Step::Ack),
        2 => (cause, size()).prop_map(|(c, f)| Step::Reduce(c, f)),
        1 => size().prop_map(Step::Timeout),
        1 => Just(Step::Undo),
        1 => Just(Step::Exit),
        1 => size().prop_map(Step::Restart),
        2 => lost().prop_map(Step::Lost),
        1 => any::<u32>().prop_map(Step::Start),
    ]
}

/// Runs the steps as a transport would; checks the contract at each.
fn run(
    params: &Params,
    host: Host,
    mss: u64,
    initial: u64,
    steps: &[(Step, u64)],
) -> Result<Vec<u64>, TestCaseError> {
    let mut window = Window::new(mss, initial);
    let mut control = Congestion::new(params, host, &window);
    let mut now: Nanos = 1000 * SECOND;
    let mut trace = Vec::new();
    for (step, wait) in steps {
        now = now.saturating_add(*wait);
        let before = window;
        match step {
            Step::Ack(ack) => {
                let ack = Ack { now, ..*ack };
                control.on_ack(&mut window, &ack);
                if !control.owns_window() {
                    let answered = control.answers_marks() && ack.marked > 0;
                    prop_assert!(
                        answered || window.cwnd >= before.cwnd,
                        "an ACK shrinks the window"
                    );
                    let grown = window.cwnd.saturating_sub(before.cwnd);
                    // Bytes of earlier ACKs that did not yet make a segment count with this one.
                    let counted = match host.slow_start.count {
                        Count::Bytes => ack.acked.saturating_add(mss),
                        Count::Segments => ack.delivered.saturating_add(2 * mss),
                    };
                    prop_assert!(grown <= counted, "grows beyond what was delivered");
                    if !ack.may_grow || !ack.cwnd_limited {
                        prop_assert_eq!(grown, 0, "grows while not limited by cwnd");
                    }
                }
            }
            Step::Reduce(cause, flight) => {
                window.ssthresh = control.reduce(&window, *flight, *cause, now);
                if !control.owns_window() {
                    prop_assert!(window.ssthresh <= before.cwnd.max(before.floor()));
                    window.set_cwnd(window.cwnd.min(window.ssthresh));
                }
            }
            Step::Timeout(flight) => {
                window.ssthresh = control.reduce(&window, *flight, Cause::Timeout, now);
                prop_assert!(
                    control.owns_window() || window.ssthresh <= before.cwnd.max(before.floor())
                );
                window.set_cwnd(mss);
            }
            Step::Undo => control.on_undo(),
            Step::Exit => control.on_recovery_exit(&mut window),
            Step::Restart(idle) => control.on_restart(&mut window, now, *idle),
            Step::Lost(lost) => control.on_lost(&window, &Lost { now, ..*lost }),
            Step::Start(draw) => {
                control.on_start(&mut window, &Start { now, srtt: 0, draw: *draw });
            }
        }
        prop_assert!(window.cwnd >= window.mss && window.cwnd <= MAX_WINDOW.max(window.mss));
        prop_assert!(window.ssthresh >= window.floor());
        prop_assert_ne!(control.pacing_rate(), Some(0));
        trace.push(window.cwnd);
    }
    Ok(trace)
}

proptest! {
    #[test]
    fn keeps_the_contract(
        mss in 1u64..70_000,
        initial in 1u64..70_000,
        hz in 0u32..=1000,
        steps in prop::collection::vec((step(), size()), 0..120),
    ) {
        for params in all() {
            for (kind, count) in ways() {
                let host = Host { slow_start: hystart::Params { count, ..slow_start(kind) }, hz };
                let once = run(&params, host, mss, initial, &steps)?;
                let again = run(&params, host, mss, initial, &steps)?;
                prop_assert_eq!(once, again, "{} is not deterministic", params.name());
            }
        }
    }
}

/// A path without loss: `acks` of one segment each, `rtt` the delay they report.
struct Path {
    window: Window,
    control: Congestion,
    now: Nanos,
    una: u64,
}

impl Path {
    fn new(params: &Params, kind: Kind) -> Self {
        let window = Window::new(1000, 10);
        let control =
            Congestion::new(params, Host { slow_start: slow_start(kind), hz: 0 }, &window);
        Self { window, control, now: 1000 * SECOND, una: 1 }
    }

    /// One round trip: a window's worth of ACKs, spread over `spread`.
    fn round(&mut self, rtt: Nanos, min_rtt: Nanos, spread: Nanos, marked: bool) {
        let segments = self.window.cwnd / 1000;
        let end = self.now + rtt;
        for i in 0..segments {
            self.now = end - spread + spread * (i + 1) / segments;
            self.una += 1000;
            let ack = Ack {
                now: self.now,
                acked: 1000,
                delivered: 1000,
                marked: if marked { 1000 } else { 0 },
                una: self.una,
                nxt: self.una + self.window.cwnd,
                prior_in_flight: self.window.cwnd,
                in_flight: self.window.cwnd - 1000,
                rtt,
                srtt: rtt,
                min_rtt,
                may_grow: true,
                cwnd_limited: true,
                ..Ack::default()
            };
            self.control.on_ack(&mut self.window, &ack);
        }
    }
}

#[test]
fn slow_start_doubles() {
    for params in [Params::Reno(reno::Params {}), Params::Cubic(cubic::Params::default())] {
        let mut path = Path::new(&params, Kind::None);
        path.round(100 * MILLISECOND, 100 * MILLISECOND, 10 * MILLISECOND, false);
        assert_eq!(path.window.cwnd, 20_000);
        path.round(100 * MILLISECOND, 100 * MILLISECOND, 10 * MILLISECOND, false);
        assert_eq!(path.window.cwnd, 40_000);
    }
}

/// RFC 9438, figure 1: after a reduction at 100 segments `W(t) = C (t - K)^3 + W_max`, `K` = 4.217 s.
#[test]
fn cubic_climbs_along_its_function() {
    let params = cubic::Params { reno_friendly: false, ..cubic::Params::default() };
    let mut path = Path::new(&Params::Cubic(params), Kind::None);
    path.window.set_cwnd(100_000);
    let ssthresh = path.control.reduce(&path.window, 100_000, Cause::Loss, path.now);
    assert_eq!(ssthresh, 70_000);
    path.window.ssthresh = ssthresh;
    path.window.set_cwnd(ssthresh);
    let start = path.now;
    let k = libm::cbrt(100.0 * 0.3 / 0.4);
    let mut worst: f64 = 0.0;
    while path.now < start + 8 * SECOND {
        path.round(100 * MILLISECOND, 100 * MILLISECOND, 100 * MILLISECOND, false);
        let t = (path.now - start) as f64 / SECOND as f64 - 0.05;
        let w = 0.4 * (t - k) * (t - k) * (t - k) + 100.0;
        worst = worst.max((path.window.cwnd as f64 / 1000.0 - w).abs());
    }
    assert!(worst < 2.5, "off by {worst} segments");
}

/// Section 4.7: a second loss below the first plateau lowers the next one.
#[test]
fn cubic_converges_fast() {
    let mut cubic =
        cubic::Cubic::new(cubic::Params::default(), HyStart::new(slow_start(Kind::None)), 0);
    let mut window = Window::new(1000, 100);
    let _ = cubic.reduce(&window, 100_000, Cause::Loss, SECOND);
    window.set_cwnd(80_000);
    let _ = cubic.reduce(&window, 80_000, Cause::Loss, 2 * SECOND);
    let mut w_max = 0;
    cubic.state(&mut |name, value| {
        if name == "w_max_milli" {
            w_max = value;
        }
    });
    assert_eq!(w_max, 68_000);
}

#[test]
fn classic_hystart_leaves_on_delay() {
    let mut path = Path::new(&Params::Cubic(cubic::Params::default()), Kind::Classic);
    let base = 100 * MILLISECOND;
    path.round(base, base, MILLISECOND, false);
    assert!(path.window.in_slow_start() && path.window.ssthresh == MAX_WINDOW);
    // An eighth of 100 ms is 12.5 ms: 12 are not enough, 14 are.
    path.round(base + 12 * MILLISECOND, base, MILLISECOND, false);
    assert!(path.window.ssthresh == MAX_WINDOW);
    path.round(base + 14 * MILLISECOND, base, MILLISECOND, false);
    assert!(path.window.ssthresh < 80_000, "{:?}", path.window);
}

#[test]
fn classic_hystart_leaves_on_a_long_train() {
    let mut path = Path::new(&Params::Cubic(cubic::Params::default()), Kind::Classic);
    let base = 40 * MILLISECOND;
    path.round(base, base, 2 * MILLISECOND, false);
    // ACKs less than 2 ms apart over more than half the round trip: the pipe is full.
    path.round(base, base, 30 * MILLISECOND, false);
    path.round(base, base, 30 * MILLISECOND, false);
    assert!(path.window.ssthresh < MAX_WINDOW);
}

/// RFC 9406: delay slows the growth to a quarter; if it was none, slow start resumes; if it stays,
/// slow start ends after five rounds.
#[test]
fn hystart_plus_plus_is_conservative_first() {
    let mut path = Path::new(&Params::Reno(reno::Params {}), Kind::PlusPlus);
    let base = 100 * MILLISECOND;
    path.round(base, base, MILLISECOND, false);
    path.round(base + 20 * MILLISECOND, base, MILLISECOND, false);
    let before = path.window.cwnd;
    path.round(base + 20 * MILLISECOND, base, MILLISECOND, false);
    let ratio = path.window.cwnd as f64 / before as f64;
    assert!((1.2..1.35).contains(&ratio), "{ratio}");
    assert_eq!(path.window.ssthresh, MAX_WINDOW);
    let mut back = Path { window: path.window, control: path.control.clone(), ..path };
    for _ in 0..5 {
        path.round(base + 20 * MILLISECOND, base, MILLISECOND, false);
    }
    assert!(path.window.ssthresh < MAX_WINDOW);
    back.round(base, base, MILLISECOND, false);
    let before = back.window.cwnd;
    back.round(base, base, MILLISECOND, false);
    assert!(back.window.cwnd as f64 / before as f64 > 1.9);
}

/// RFC 8257: alpha follows the fraction of marks with gain 1/16, and half of it is taken away.
#[test]
fn dctcp_reduces_in_proportion() {
    let params = dctcp::Params { shift: 4, initial_alpha: 0 };
    let mut path = Path::new(&Params::Dctcp(params), Kind::None);
    path.window.set_cwnd(100_000);
    path.window.ssthresh = 50_000;
    let alpha = |path: &Path| match &path.control {
        Congestion::Dctcp(d) => d.alpha(),
        _ => unreachable!(),
    };
    path.round(MILLISECOND, MILLISECOND, 0, true);
    path.round(MILLISECOND, MILLISECOND, 0, true);
    let first = alpha(&path);
    assert!((60..=125).contains(&first), "{first}");
    for _ in 0..200 {
        path.round(MILLISECOND, MILLISECOND, 0, true);
    }
    assert!(alpha(&path) > 1000);
    path.window.set_cwnd(100_000);
    let ssthresh = path.control.reduce(&path.window, 100_000, Cause::Ecn, path.now);
    assert!((50_000..51_500).contains(&ssthresh), "{ssthresh}");
    for _ in 0..200 {
        path.round(MILLISECOND, MILLISECOND, 0, false);
    }
    assert_eq!(alpha(&path), 0);
}

/// BBR on an ideal path: startup finds the bandwidth, the queue drains, the gain cycles, and after
/// ten seconds the round-trip time is probed.
#[test]
fn bbr_goes_through_its_modes() {
    use bbr::Mode::{Drain, ProbeBw, ProbeRtt, Startup};
    let mut window = Window::new(1000, 10);
    let mut bbr = bbr::Bbr::new(bbr::Params::default(), &window);
    let rate = 1_000_000;
    let base = 50 * MILLISECOND;
    let mut now = 1000 * SECOND;
    let mut total = 0;
    let mut seen = Vec::new();
    let mut gains = Vec::new();
    for _ in 0..300 {
        // A round: a window delivered at the link's rate or in one round trip.
        let queued = window.cwnd.saturating_sub(50_000) * 1000;
        let rtt = base + queued;
        let prior = total;
        let steps = window.cwnd / 1000;
        for _ in 0..steps {
            now += rtt / steps;
            total += 1000;
            let ack = Ack {
                now,
                acked: 1000,
                delivered: 1000,
                prior_in_flight: window.cwnd,
                in_flight: window.cwnd - 1000,
                rtt,
                srtt: rtt,
                min_rtt: base,
                may_grow: true,
                rate: RateSample {
                    delivered: (window.cwnd).min(rate * rtt / SECOND),
                    interval: rtt,
                    prior_delivered: prior,
                    total,
                    ..RateSample::default()
                },
                ..Ack::default()
            };
            bbr.on_ack(&mut window, &ack);
            if seen.last() != Some(&bbr.mode()) {
                seen.push(bbr.mode());
            }
        }
        if bbr.mode() == ProbeBw {
            bbr.state(&mut |name, value| {
                if name == "pacing_gain" {
                    gains.push(value);
                }
            });
        }
    }
    assert_eq!(seen[..2], [Startup, Drain]);
    assert!(seen.windows(3).any(|w| *w == [ProbeBw, ProbeRtt, ProbeBw]), "{seen:?}");
    assert!(bbr.bandwidth().abs_diff(rate) < rate / 20, "{}", bbr.bandwidth());
    for gain in [320, 192, 256] {
        assert!(gains.contains(&gain));
    }
}

fn prague(params: prague::Params, cwnd: u64) -> Path {
    let mut path = Path::new(&Params::Prague(params), Kind::None);
    path.window.set_cwnd(cwnd);
    path.window.ssthresh = cwnd;
    path
}

fn alpha(path: &Path) -> f64 {
    match &path.control {
        Congestion::Prague(p) => p.alpha(),
        _ => unreachable!(),
    }
}

const PATIENT: prague::Params =
    prague::Params { rtt_target: 0, rtt_transition: 0, classic_fallback: false };

/// Alpha remains one until a mark is seen, so the first answer is Reno's; then it follows the
/// fraction with gain 1/16, and small fractions are not lost to rounding.
#[test]
fn prague_averages_from_the_first_mark() {
    let mut path = prague(PATIENT, 100_000);
    for _ in 0..50 {
        path.round(50 * MILLISECOND, 50 * MILLISECOND, 0, false);
    }
    assert!((alpha(&path) - 1.0).abs() < 1e-9);
    let before = path.window.cwnd;
    path.round(50 * MILLISECOND, 50 * MILLISECOND, 0, true);
    assert_eq!(path.window.cwnd, before.div_ceil(2), "one reduction, no growth under marks");
    assert_eq!(path.window.ssthresh, path.window.cwnd);
    for _ in 0..200 {
        path.round(50 * MILLISECOND, 50 * MILLISECOND, 0, false);
    }
    // 15/16 to the power of 200, but for what integers cut off: alpha keeps falling.
    assert!(alpha(&path) < 1e-5, "{}", alpha(&path));
}

/// A window also grows in a round that reduced it, by what is acknowledged without a mark.
#[test]
fn prague_grows_by_what_is_not_marked() {
    let mut path = prague(PATIENT, 100_000);
    let ack = |path: &mut Path, marked| {
        path.una += 1000;
        let ack = Ack {
            acked: 1000,
            marked,
            una: path.una,
            nxt: path.una + 100_000,
            srtt: 50 * MILLISECOND,
            may_grow: true,
            cwnd_limited: true,
            ..Ack::default()
        };
        path.control.on_ack(&mut path.window, &ack);
        path.window.cwnd
    };
    assert_eq!(ack(&mut path, 1000), 50_000);
    assert_eq!(ack(&mut path, 1000), 50_000, "a second mark of the round changes nothing");
    assert_eq!(ack(&mut path, 0), 50_020, "a fiftieth of a segment");
    assert_eq!(ack(&mut path, 500), 50_029, "not quite half of that");
}

/// A flow with a fifth of the target's round-trip time gains the 25th part of a segment a round trip,
/// which is as much rate a second as one at the target gains; but only after the transition.
#[test]
fn prague_is_patient_on_short_paths() {
    let rtt = 5 * MILLISECOND;
    let params = prague::Params { rtt_target: 25 * MILLISECOND, rtt_transition: 10, ..PATIENT };
    let mut path = prague(params, 100_000);
    let gain = |path: &mut Path, rounds: u64| {
        let before = path.window.cwnd;
        (0..rounds).for_each(|_| path.round(rtt, rtt, 0, false));
        (path.window.cwnd - before) as f64 / rounds as f64
    };
    let young = gain(&mut path, 5);
    assert!((young - 1000.0).abs() < 30.0, "{young}");
    gain(&mut path, 10);
    let old = gain(&mut path, 1000);
    assert!((old - 40.0).abs() < 1.0, "{old}");
    // At and beyond the target nothing is scaled.
    for rtt in [25, 200] {
        let before = path.window.cwnd;
        path.round(rtt * MILLISECOND, rtt * MILLISECOND, 0, false);
        assert!((path.window.cwnd - before).abs_diff(1000) < 30);
    }
}

/// Reductions and updates of alpha are at least a target's time apart.
#[test]
fn prague_reduces_once_a_round() {
    for (rtt_target, expected) in [(0, 20), (25 * MILLISECOND, 4)] {
        let mut path =
            prague(prague::Params { rtt_target, rtt_transition: 0, ..PATIENT }, 1_000_000);
        let mut reductions = 0;
        for _ in 0..20 {
            let before = path.window.cwnd;
            path.round(5 * MILLISECOND, 5 * MILLISECOND, MILLISECOND, true);
            reductions += u32::from(path.window.cwnd < before);
            path.window.set_cwnd(path.window.cwnd.max(100_000));
        }
        assert!(reductions.abs_diff(expected) <= 1, "{rtt_target}: {reductions}");
    }
}

/// In slow start, as after a timeout, it is as quick as its path.
#[test]
fn prague_has_no_patience_in_slow_start() {
    let params = prague::Params { rtt_target: 25 * MILLISECOND, rtt_transition: 0, ..PATIENT };
    for in_slow_start in [false, true] {
        let mut path = prague(params, 1_000_000);
        path.round(30 * MILLISECOND, 5 * MILLISECOND, MILLISECOND, true);
        let before = path.window.cwnd;
        path.window.ssthresh = if in_slow_start { 2 * before } else { before };
        path.round(5 * MILLISECOND, 5 * MILLISECOND, MILLISECOND, true);
        assert_eq!(path.window.cwnd < before, in_slow_start);
    }
}

/// Behind a queue that is long and varies, a mark costs 5/16 of the window, however rare marks are; with the
/// detection off it costs alpha/2.
#[test]
fn prague_answers_a_classic_queue_as_a_classic_control() {
    let cut = |classic_fallback| {
        let mut path = prague(prague::Params { classic_fallback, ..PATIENT }, 100_000);
        for round in 0..300 {
            let rtt = (24 + 12 * (round % 2)) * MILLISECOND;
            path.round(rtt, 20 * MILLISECOND, MILLISECOND, round == 0);
            path.window.set_cwnd(100_000);
            path.window.ssthresh = 100_000;
        }
        path.round(20 * MILLISECOND, 20 * MILLISECOND, MILLISECOND, true);
        1.0 - path.window.cwnd as f64 / 100_000.0
    };
    assert!((cut(true) - 0.3125).abs() < 1e-3, "{}", cut(true));
    assert!(cut(false) < 0.01, "{}", cut(false));
}

#[test]
fn prague_paces_over_the_round_trip() {
    let mut path = Path::new(&Params::Prague(PATIENT), Kind::None);
    assert_eq!(path.control.pacing_rate(), Some(10_000_000), "a millisecond, before there is any");
    let rtt = 100 * MILLISECOND;
    path.round(rtt, rtt, MILLISECOND, false);
    assert_eq!(path.control.pacing_rate(), Some(2 * 10 * path.window.cwnd), "slow start");
    path.window.ssthresh = path.window.cwnd;
    path.round(rtt, rtt, MILLISECOND, false);
    assert_eq!(path.control.pacing_rate(), Some(10 * path.window.cwnd));
}

/// A loss is answered as Reno does, and what was agreed on decides who runs.
#[test]
fn prague_falls_back() {
    let mut path = prague(PATIENT, 100_000);
    for cause in [Cause::Loss, Cause::Timeout] {
        assert_eq!(path.control.reduce(&path.window, 100_000, cause, path.now), 50_000);
    }
    let params = Params::Prague(PATIENT);
    assert_eq!(
        (params.agreed(true), params.agreed(false)),
        (&params, &Params::Reno(reno::Params {}))
    );
    let cubic = Params::Cubic(cubic::Params::default());
    assert_eq!(cubic.agreed(false), &cubic);
}
