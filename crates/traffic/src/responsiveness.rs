//! `responsiveness`: the test of responsiveness under working conditions, as in `networkQuality`.
//!
//! Source: draft-ietf-ippm-responsiveness-08 (Paasch, Meyer, Cheshire, Hawkins, 2025). Connections that
//! always have data load one or both directions; one more is added in every interval. Foreign probes open
//! a connection of their own (TCP, TLS, one HTTP request); self probes are requests on connections that
//! carry load. When the averages of goodput, and then of responsiveness, are stable, the test ends.
//!
//! [`Test`] is the arithmetic: it takes the durations of probes and the bytes delivered, and
//! returns the next step. It opens no connection. Where the draft contradicts itself, it follows
//! the draft's own sum of 300 kB a second: `probes` counts probes of both kinds, which take turns.

use crate::application::AppParams;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Param, Parameters, choice, integer, probability, switch, time};
use sojourn_units::words::Table;
use sojourn_units::{Bytes, Nanos, SECOND, choices, params};
use std::collections::VecDeque;
use std::convert::Infallible;

/// Bytes of requests and answers. They add up to about the draft's numbers with all headers: 5000
/// bytes for a foreign probe, at most 1000 for a self probe. The shares are a choice of this
/// project.
pub mod sizes {
    use sojourn_units::Bytes;

    /// Bytes that the client sends for a round trip of the TLS handshake.
    pub const HELLO: Bytes = 517;
    /// Bytes of the server's first answer: its certificate.
    pub const CERTIFICATE: Bytes = 3000;
    /// Bytes of the server's second answer, in TLS 1.2.
    pub const FINISHED: Bytes = 51;
    /// A GET request.
    pub const REQUEST: Bytes = 200;
    /// Its answer: fields, and a body of one byte.
    pub const ANSWER: Bytes = 100;
    /// Mean bytes of a foreign and a self probe, by the draft.
    pub const PROBE: u64 = 3000;
}

choices! {
    /// The loaded directions.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Direction {
        /// Both at once.
        #[default]
        Both = "both",
        /// From the server to the client.
        Download = "download",
        /// From the client to the server.
        Upload = "upload",
    }
}

/// Returns a share above 0.
const fn share(default: &'static str) -> Param<f64> {
    probability(default).check(|share| if *share > 0.0 { Ok(()) } else { Err("must be above 0") })
}

/// Returns a span that divides a run into intervals.
const fn interval(default: &'static str) -> Param<Nanos> {
    time(default).check(|span| match span {
        10_000_000..=60_000_000_000 => Ok(()),
        _ => Err("must be from 10ms to 60s"),
    })
}

params! {
    /// Parameters of a test. Each description ends with the draft's name in brackets.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Directions that are loaded: both at once, `download` (from the server to the client) or `upload`.
        direction: Direction = choice("both"),
        /// Round trips of the TLS handshake: 1 for TLS 1.3, 2 for TLS 1.2, 0 for plain HTTP.
        tls: u32 = integer(0, 2, "1"),
        /// Time between evaluations (ID).
        interval: Nanos = interval("1s"),
        /// Intervals of a moving average (MAD).
        mad: u32 = integer(2, 60, "4"),
        /// Share of the probes, the fastest ones, that the trimmed mean is of (TMP).
        trim: f64 = share("95%"),
        /// Standard deviation of the averages, as a share of the last one, below which they are stable (SDT).
        tolerance: f64 = probability("5%"),
        /// Load-generating connections of each direction at the start (INP).
        initial: u32 = integer(1, 100, "1"),
        /// Load-generating connections that each interval adds to each direction (INC).
        add: u32 = integer(0, 100, "1"),
        /// Most load-generating connections of a direction (MNP).
        most: u32 = integer(1, 100, "16"),
        /// Most probes per second, of both kinds together (MPS).
        probes: u32 = integer(1, 1000, "100"),
        /// Share of the capacity that probes may take (PTC).
        share: f64 = share("5%"),
        /// Whether the load continues after the result, to the flow's `stop` or the end of the run,
        /// so that other metrics are those of a loaded path; `once`: it ends with the test.
        hold: bool = switch("once", "hold"),
    }
}

impl AppParams for Params {
    const TABLE: Table = Table {
        name: "responsiveness",
        summary: "the test of responsiveness under working conditions, as `networkQuality` makes it",
        source: "draft-ietf-ippm-responsiveness-08",
        words: Params::WORDS,
    };

    type Source = Infallible;
}

/// The quantity that a probe measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// TCP's handshake on a connection of its own (`tcp_f`).
    Tcp,
    /// A round trip of the TLS handshake there (`tls_f`).
    Tls,
    /// A request and its answer there (`http_f`).
    Http,
    /// A request and its answer on a connection that carries load (`http_l`).
    Loaded,
}

/// Trimmed means of the four timings in seconds; not a number without a probe.
pub type Means = [f64; 4];

type Samples = [Vec<Nanos>; 4];

/// Confidence in a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// There were fewer evaluations than an average covers.
    #[default]
    Low = 1,
    /// The averages were not stable.
    Medium = 2,
    /// The averages were stable.
    High = 3,
}

/// Responsiveness in round trips per minute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Responsiveness {
    /// The mean of the other two.
    pub total: f64,
    /// Of probes on connections of their own.
    pub foreign: f64,
    /// Of probes on connections that carry load.
    pub loaded: f64,
}

impl Responsiveness {
    /// Returns the responsiveness from trimmed means (section 4.3.1 of the draft; without TLS as in
    /// its TCP-only case).
    pub fn new(means: &Means, tls: bool) -> Self {
        let [tcp, tls_trip, http, own] = *means;
        let trip = if tls { (tcp + tls_trip + http) / 3.0 } else { f64::midpoint(tcp, http) };
        let (foreign, loaded) = (60.0 / trip, 60.0 / own);
        Self { total: f64::midpoint(foreign, loaded), foreign, loaded }
    }
}

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// The result.
    pub responsiveness: Responsiveness,
    /// The trimmed means that it is computed from.
    pub means: Means,
    /// Confidence in it.
    pub confidence: Confidence,
}

/// Returns the bytes of a foreign probe's round trip on its connection: request and answer.
pub fn exchange(stage: u32, tls: u32) -> (Bytes, Bytes) {
    match stage {
        _ if stage >= tls => (sizes::REQUEST, sizes::ANSWER),
        0 => (sizes::HELLO, sizes::CERTIFICATE),
        _ => (sizes::HELLO, sizes::FINISHED),
    }
}

/// One test.
#[derive(Clone, Debug)]
pub struct Test {
    params: Params,
    /// Probes completed on the idle path, before the load.
    idle: Samples,
    /// Probes completed in this interval, and in the earlier ones that the average covers.
    current: Samples,
    past: VecDeque<Samples>,
    /// For each direction, bytes delivered in the last intervals.
    delivered: [VecDeque<u64>; 2],
    /// The last averages of goodput of each direction, and of responsiveness.
    goodputs: [VecDeque<f64>; 2],
    values: VecDeque<f64>,
    /// Greatest goodput of an interval in each direction, in bit/s.
    capacity: [f64; 2],
    saturated: bool,
    outcome: Option<Outcome>,
}

impl Test {
    /// Returns a test that has not begun.
    pub fn new(params: &Params) -> Self {
        Self {
            params: *params,
            idle: Samples::default(),
            current: Samples::default(),
            past: VecDeque::new(),
            delivered: Default::default(),
            goodputs: Default::default(),
            values: VecDeque::new(),
            capacity: [0.0; 2],
            saturated: false,
            outcome: None,
        }
    }

    /// Discards the measurements under load.
    pub fn restart(&mut self) {
        let idle = std::mem::take(&mut self.idle);
        let capacity = self.capacity;
        *self = Self { idle, capacity, ..Self::new(&self.params) };
    }

    /// Records a completed probe: its quantity and duration, and whether the path was idle.
    pub fn record(&mut self, timing: Timing, took: Nanos, idle: bool) {
        let samples = if idle { &mut self.idle } else { &mut self.current };
        samples[timing as usize].push(took);
    }

    /// Discards the probes and the bytes of the current interval, which is incomplete.
    pub fn skip(&mut self) {
        self.current = Samples::default();
    }

    /// Returns whether a direction is loaded: download first.
    pub fn loads(&self, way: usize) -> bool {
        self.params.direction == Direction::Both
            || (way == 0) == (self.params.direction == Direction::Download)
    }

    /// Ends an interval under load; `bytes` were delivered in it, download first. Returns whether
    /// the result is stable.
    pub fn evaluate(&mut self, bytes: [u64; 2]) -> bool {
        let mad = self.params.mad as usize;
        let seconds = self.params.interval as f64 / SECOND as f64;
        push(&mut self.past, std::mem::take(&mut self.current), mad);
        let mut saturated = true;
        for (way, &bytes) in bytes.iter().enumerate() {
            if !self.loads(way) {
                continue;
            }
            push(&mut self.delivered[way], bytes, mad);
            // Intervals before the first one count as empty: the draft divides by MAD times ID.
            let sum: u64 = self.delivered[way].iter().sum();
            let average = 8.0 * sum as f64 / (mad as f64 * seconds);
            push(&mut self.goodputs[way], average, mad);
            saturated &= stable(&self.goodputs[way], mad, self.params.tolerance);
            let goodput = 8.0 * bytes as f64 / seconds;
            self.capacity[way] = self.capacity[way].max(goodput);
        }
        let means = self.means();
        let responsiveness = Responsiveness::new(&means, self.params.tls > 0);
        let mut confidence = Confidence::Low;
        if self.saturated && responsiveness.total.is_finite() {
            push(&mut self.values, responsiveness.total, mad);
            if stable(&self.values, mad, self.params.tolerance) {
                confidence = Confidence::High;
            } else if self.values.len() >= mad {
                confidence = Confidence::Medium;
            }
        }
        self.saturated |= saturated;
        self.outcome = responsiveness.total.is_finite().then_some(Outcome {
            responsiveness,
            means,
            confidence,
        });
        confidence == Confidence::High
    }

    /// Returns the time from probe to probe that the capacity measured so far allows; `None` before
    /// a measurement.
    pub fn gap(&self) -> Option<Nanos> {
        let loaded = (0..2).filter(|&way| self.loads(way));
        let capacity = loaded.map(|way| self.capacity[way]).fold(f64::INFINITY, f64::min);
        let affordable = self.params.share * capacity / (8 * sizes::PROBE) as f64;
        let rate = affordable.min(f64::from(self.params.probes));
        // Less than one probe an hour counts as none.
        (rate * 3600.0 > 1.0).then(|| (SECOND as f64 / rate) as Nanos)
    }

    /// Returns the result of the last evaluation, if any.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Returns the round trip of foreign probes on the idle path in seconds; not a number without a
    /// probe.
    pub fn idle(&self) -> f64 {
        let means = self.idle.each_ref().map(|all| trimmed_mean(all.clone(), self.params.trim));
        60.0 / Responsiveness::new(&means, self.params.tls > 0).foreign
    }

    fn means(&self) -> Means {
        [0, 1, 2, 3].map(|timing| {
            let all = self.past.iter().flat_map(|samples: &Samples| &samples[timing]).copied();
            trimmed_mean(all.collect(), self.params.trim)
        })
    }
}

fn push<T>(last: &mut VecDeque<T>, new: T, most: usize) {
    if last.len() == most {
        last.pop_front();
    }
    last.push_back(new);
}

/// Returns whether there are enough averages, and their standard deviation is within the tolerance
/// of the last one.
fn stable(averages: &VecDeque<f64>, mad: usize, tolerance: f64) -> bool {
    let Some(&last) = averages.back().filter(|&&last| last > 0.0 && averages.len() >= mad) else {
        return false;
    };
    let n = averages.len() as f64;
    let mean = averages.iter().sum::<f64>() / n;
    let variance = averages.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    variance.sqrt() < tolerance * last
}

/// Returns the mean in seconds of the smallest values, up to the percentile `share` (nearest rank).
pub fn trimmed_mean(mut values: Vec<Nanos>, share: f64) -> f64 {
    let kept = (values.len() as f64 * share).ceil() as usize;
    if kept == 0 {
        return f64::NAN;
    }
    values.sort_unstable();
    let sum: u128 = values[..kept].iter().map(|&value| u128::from(value)).sum();
    sum as f64 / kept as f64 / SECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;

    const MS: Nanos = 1_000_000;

    fn test(words: &str) -> Test {
        let App::Responsiveness(params) = App::parse(&format!("responsiveness {words}")).unwrap()
        else {
            panic!("{words}")
        };
        Test::new(&params)
    }

    fn close(a: f64, b: f64) {
        assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
    }

    /// The draft's formulas, on numbers reckoned by hand.
    #[test]
    fn responsiveness_is_the_mean_of_both_kinds() {
        let means = [0.030, 0.040, 0.050, 0.100];
        let found = Responsiveness::new(&means, true);
        close(found.foreign, 1500.0);
        close(found.loaded, 600.0);
        close(found.total, 1050.0);
        let plain = Responsiveness::new(&[0.030, f64::NAN, 0.050, 0.100], false);
        close(plain.foreign, 1500.0);
        close(plain.total, 1050.0);
    }

    #[test]
    fn the_slowest_twentieth_is_left_out() {
        let values = |n: u64| (1..=n).map(|i| i * SECOND).rev().collect::<Vec<_>>();
        close(trimmed_mean(values(100), 0.95), 48.0);
        close(trimmed_mean(values(10), 0.95), 5.5);
        close(trimmed_mean(values(1), 0.95), 1.0);
        assert!(trimmed_mean(Vec::new(), 0.95).is_nan());
    }

    /// Goodput must be stable over four averages of four intervals, then responsiveness over four.
    #[test]
    fn a_steady_path_is_judged_after_the_shortest_time() {
        let mut test = test("");
        let mut intervals = 0;
        loop {
            intervals += 1;
            for timing in [Timing::Tcp, Timing::Tls, Timing::Http, Timing::Loaded] {
                test.record(timing, 20 * MS, false);
            }
            if test.evaluate([1_000_000, 1_000_000]) {
                break;
            }
            let confidence = test.outcome().unwrap().confidence;
            assert_eq!(confidence, Confidence::Low, "{intervals}");
        }
        // The fourth average is the first whole one, and three more are like it.
        assert_eq!(intervals, 7 + 4);
        let outcome = test.outcome().unwrap();
        close(outcome.responsiveness.total, 3000.0);
        assert_eq!(outcome.confidence, Confidence::High);
    }

    #[test]
    fn what_swings_has_medium_confidence() {
        let mut test = test("interval 100ms mad 2");
        for i in 0..40 {
            for timing in [Timing::Tcp, Timing::Tls, Timing::Http, Timing::Loaded] {
                test.record(timing, if i % 4 < 2 { 20 * MS } else { 200 * MS }, false);
            }
            assert!(!test.evaluate([1000, 1000]));
        }
        assert_eq!(test.outcome().unwrap().confidence, Confidence::Medium);
    }

    #[test]
    fn only_the_last_intervals_count() {
        let mut test = test("mad 2 tls 0");
        for ms in [500, 20, 20] {
            for timing in [Timing::Tcp, Timing::Http, Timing::Loaded] {
                test.record(timing, ms * MS, false);
            }
            test.evaluate([1000, 1000]);
        }
        close(test.outcome().unwrap().responsiveness.total, 3000.0);
        test.restart();
        assert_eq!(test.outcome(), None);
    }

    /// Probes take at most a twentieth of what the slower direction carries.
    #[test]
    fn probes_spare_a_slow_path() {
        let mut test = test("");
        assert_eq!(test.gap(), None);
        test.evaluate([10_000_000, 60_000]);
        // 480 kbit/s: a twentieth is 3000 bytes a second, one probe.
        assert_eq!(test.gap(), Some(SECOND));
        test.evaluate([10_000_000, 10_000_000]);
        assert_eq!(test.gap(), Some(10 * MS));
    }

    #[test]
    fn the_idle_path_is_known_by_its_foreign_probes() {
        let mut test = test("");
        assert!(test.idle().is_nan());
        for (timing, ms) in [(Timing::Tcp, 20), (Timing::Tls, 22), (Timing::Http, 21)] {
            test.record(timing, ms * MS, true);
        }
        test.restart();
        close(test.idle(), 0.021);
    }

    #[test]
    fn one_direction_alone() {
        let mut test = test("direction upload mad 2");
        assert!(!test.loads(0) && test.loads(1));
        test.evaluate([0, 60_000]);
        assert_eq!(test.gap(), Some(SECOND));
    }
}
