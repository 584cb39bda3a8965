//! `responsiveness`: the test of responsiveness under working conditions, as performed by
//! `networkQuality`.
//!
//! Source: draft-ietf-ippm-responsiveness-08 (Paasch, Meyer, Cheshire, Hawkins, 2025). Connections
//! that always have data load one or both directions; each interval adds connections. A foreign
//! probe opens its own connection (TCP, TLS, one HTTP request). A self probe is a request on a
//! connection that carries load. The test ends when the averages of goodput, and then of
//! responsiveness, are stable.
//!
//! [`Test`] computes the result: it records the durations of probes and the delivered bytes, and
//! returns whether the result is stable. It opens no connection. The draft contradicts itself on
//! the number of probes; the test follows the draft's total of 300 kB per second: `probes` limits
//! foreign and self probes together, which alternate.

use crate::application::AppParams;
use sojourn_units::declare::{Param, choice, integer, probability, switch, time};
use sojourn_units::{Bytes, Nanos, SECOND, choices, params};
use std::collections::VecDeque;
use std::convert::Infallible;

/// Lengths of requests and answers in bytes. With all headers a foreign probe has about 5000 bytes
/// and a self probe at most 1000, as in the draft. The lengths of the single messages are a choice
/// of this project.
pub mod sizes {
    use sojourn_units::Bytes;

    /// Bytes that the client sends in each round trip of the TLS handshake.
    pub const HELLO: Bytes = 517;
    /// Bytes of the server's first answer in the TLS handshake, with its certificate.
    pub const CERTIFICATE: Bytes = 3000;
    /// Bytes of the server's second answer in the TLS handshake (TLS 1.2).
    pub const FINISHED: Bytes = 51;
    /// Bytes of a GET request.
    pub const REQUEST: Bytes = 200;
    /// Bytes of the answer to a GET request: header fields, and a body of one byte.
    pub const ANSWER: Bytes = 100;
    /// Mean bytes of a foreign and a self probe, as in the draft.
    pub const PROBE: u64 = 3000;
}

choices! {
    /// The directions that are loaded.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum Direction {
        /// Both directions at the same time.
        #[default]
        Both = "both",
        /// Only from the server to the client.
        Download = "download",
        /// Only from the client to the server.
        Upload = "upload",
    }
}

/// Returns a parameter that is a share; values that are not above 0 are rejected.
const fn share(default: &'static str) -> Param<f64> {
    probability(default).check(|share| if *share > 0.0 { Ok(()) } else { Err("must be above 0") })
}

/// Returns the parameter for the length of an interval, in nanoseconds; values outside 10 ms to 60
/// s are rejected.
const fn interval(default: &'static str) -> Param<Nanos> {
    time(default).check(|span| match span {
        10_000_000..=60_000_000_000 => Ok(()),
        _ => Err("must be from 10ms to 60s"),
    })
}

params! {
    "responsiveness": "the test of responsiveness under working conditions, as performed by `networkQuality`",
    from "draft-ietf-ippm-responsiveness-08";

    /// Parameters of the test. At the end of a description, the draft's name of the parameter is in
    /// parentheses.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Directions that are loaded: both at the same time, `download` (from the server to the
        /// client) or `upload`.
        direction: Direction = choice("both"),
        /// Round trips of the TLS handshake: 1 for TLS 1.3, 2 for TLS 1.2, 0 for plain HTTP.
        tls: u32 = integer(0, 2, "1"),
        /// Duration of an interval, after which the test is evaluated (ID).
        interval: Nanos = interval("1s"),
        /// Number of intervals in a moving average (MAD).
        mad: u32 = integer(2, 60, "4"),
        /// Share of the probes, the fastest ones, that enter the trimmed mean (TMP).
        trim: f64 = share("95%"),
        /// Maximum standard deviation of stable averages, as a share of the last average (SDT).
        tolerance: f64 = probability("5%"),
        /// Number of load-generating connections per direction at the start (INP).
        initial: u32 = integer(1, 100, "1"),
        /// Number of load-generating connections that each interval adds per direction (INC).
        add: u32 = integer(0, 100, "1"),
        /// Maximum number of load-generating connections per direction (MNP).
        most: u32 = integer(1, 100, "16"),
        /// Maximum number of probes per second, of both kinds together (MPS).
        probes: u32 = integer(1, 1000, "100"),
        /// Maximum share of the capacity that probes may use (PTC).
        share: f64 = share("5%"),
        /// Whether the load continues after the result, until the flow's `stop` or the end of the
        /// run, so that other metrics describe a loaded path; with `once` the load ends with the
        /// test.
        hold: bool = switch("once", "hold"),
    }
}

impl AppParams for Params {
    const OPENS_SESSIONS: bool = true;
    const IS_BALANCED: bool = false;

    type Source = Infallible;
}

/// The duration that a probe measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// TCP handshake of a foreign probe (`tcp_f`).
    Tcp,
    /// Round trip of the TLS handshake of a foreign probe (`tls_f`).
    Tls,
    /// Request and answer of a foreign probe (`http_f`).
    Http,
    /// Request and answer of a self probe, on a connection that carries load (`http_l`).
    Loaded,
}

/// Trimmed means of the four durations of [`Timing`] in seconds; NaN without a probe.
pub type Means = [f64; 4];

type Samples = [Vec<Nanos>; 4];

/// Confidence in the result of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The averages of goodput were not stable, or there were too few averages of responsiveness.
    #[default]
    Low = 1,
    /// The averages of goodput were stable, but those of responsiveness were not.
    Medium = 2,
    /// The averages of goodput and responsiveness were stable.
    High = 3,
}

/// Responsiveness, in round trips per minute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Responsiveness {
    /// Mean of `foreign` and `loaded`.
    pub total: f64,
    /// Responsiveness measured by foreign probes.
    pub foreign: f64,
    /// Responsiveness measured by self probes.
    pub loaded: f64,
}

impl Responsiveness {
    /// Returns the responsiveness computed from trimmed means (section 4.3.1 of the draft; without
    /// TLS as in the draft's TCP-only case).
    pub fn new(means: &Means, tls: bool) -> Self {
        let [tcp, tls_trip, http, own] = *means;
        let trip = if tls { (tcp + tls_trip + http) / 3.0 } else { f64::midpoint(tcp, http) };
        let (foreign, loaded) = (60.0 / trip, 60.0 / own);
        Self { total: f64::midpoint(foreign, loaded), foreign, loaded }
    }
}

/// Result of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Responsiveness.
    pub responsiveness: Responsiveness,
    /// Trimmed means from which the responsiveness is computed.
    pub means: Means,
    /// Confidence in the result.
    pub confidence: Confidence,
}

/// Returns the bytes of request and answer in round trip `stage` of a foreign probe, counted from 0
/// after the TCP handshake; `tls` is the number of TLS round trips.
pub fn exchange(stage: u32, tls: u32) -> (Bytes, Bytes) {
    match stage {
        _ if stage >= tls => (sizes::REQUEST, sizes::ANSWER),
        0 => (sizes::HELLO, sizes::CERTIFICATE),
        _ => (sizes::HELLO, sizes::FINISHED),
    }
}

/// A test of responsiveness.
#[derive(Clone, Debug)]
pub struct Test {
    params: Params,
    /// Durations of probes on the idle path, before the load.
    idle: Samples,
    /// Durations of probes in this interval, and in the earlier intervals that the average covers.
    current: Samples,
    past: VecDeque<Samples>,
    /// Delivered bytes of the last intervals, for each direction.
    delivered: [VecDeque<u64>; 2],
    /// Last averages of the goodput of each direction, and of the responsiveness.
    goodputs: [VecDeque<f64>; 2],
    values: VecDeque<f64>,
    /// Maximum goodput of an interval in each direction, in bit/s.
    capacity: [f64; 2],
    saturated: bool,
    outcome: Option<Outcome>,
}

impl Test {
    /// Returns a test without measurements.
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

    /// Discards all measurements under load except the maximum goodput.
    pub fn restart(&mut self) {
        let idle = std::mem::take(&mut self.idle);
        let capacity = self.capacity;
        *self = Self { idle, capacity, ..Self::new(&self.params) };
    }

    /// Records the duration of a completed probe; `idle` is whether the path was idle.
    pub fn record(&mut self, timing: Timing, took: Nanos, idle: bool) {
        let samples = if idle { &mut self.idle } else { &mut self.current };
        samples[timing as usize].push(took);
    }

    /// Discards the probes of the current interval, which is incomplete.
    pub fn skip(&mut self) {
        self.current = Samples::default();
    }

    /// Returns whether the test loads a direction; `way` is 0 for download and 1 for upload.
    pub fn loads(&self, way: usize) -> bool {
        self.params.direction == Direction::Both
            || (way == 0) == (self.params.direction == Direction::Download)
    }

    /// Ends an interval under load, in which `bytes` were delivered (download, upload). Returns
    /// whether the result is stable.
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
            // As in the draft, intervals before the first one count as empty in the average.
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

    /// Returns the time between two probes in nanoseconds, by `probes` and the permitted share of
    /// the capacity; `None` if the capacity is not yet measured or too small.
    pub fn gap(&self) -> Option<Nanos> {
        let loaded = (0..2).filter(|&way| self.loads(way));
        let capacity = loaded.map(|way| self.capacity[way]).fold(f64::INFINITY, f64::min);
        let affordable = self.params.share * capacity / (8 * sizes::PROBE) as f64;
        let rate = affordable.min(f64::from(self.params.probes));
        // A rate below one probe per hour means that no probe is sent.
        (rate * 3600.0 > 1.0).then(|| (SECOND as f64 / rate) as Nanos)
    }

    /// Returns the result of the last evaluation; `None` without a result.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Returns the mean round-trip time of foreign probes on the idle path in seconds; NaN without
    /// a probe.
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

/// Returns whether there are `mad` averages whose standard deviation is below `tolerance` times the
/// last average.
fn stable(averages: &VecDeque<f64>, mad: usize, tolerance: f64) -> bool {
    let Some(&last) = averages.back().filter(|&&last| last > 0.0 && averages.len() >= mad) else {
        return false;
    };
    let n = averages.len() as f64;
    let mean = averages.iter().sum::<f64>() / n;
    let variance = averages.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    variance.sqrt() < tolerance * last
}

/// Returns the mean in seconds of the smallest values, up to the percentile `share` (nearest rank);
/// NaN without values.
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

    /// Checks the draft's formulas with numbers computed by hand.
    #[test]
    fn responsiveness_is_the_mean_of_both_kinds() {
        let means = [0.030, 0.040, 0.050, 0.100];
        let result = Responsiveness::new(&means, true);
        close(result.foreign, 1500.0);
        close(result.loaded, 600.0);
        close(result.total, 1050.0);
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
    fn oscillating_results_have_medium_confidence() {
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
