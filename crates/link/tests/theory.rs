//! A link with tail drop is a single-server queue: textbook results, within confidence intervals
//! over independent runs with fixed seeds.
//!
//! At 8 Gbit/s a byte takes a nanosecond, so a packet's length is its service time.

use crate::common::{Frame, params};
use sojourn_link::{Event, Link, Observer};
use sojourn_queue::{Headers, Sender, TcpView};
use sojourn_random::{Distribution, Key};
use sojourn_units::{EPOCH, Nanos};

const MEAN_SERVICE: f64 = 1e5;
const RUNS: u64 = 24;
const PACKETS: u32 = 40_000;
/// Student's t for 23 degrees of freedom, 99.9 %.
const T: f64 = 3.768;

/// Times of arrival of the packets, and statistics of the system.
#[derive(Default)]
struct Station {
    arrivals: Vec<Nanos>,
    /// Sum of the times from arrival to the end of service.
    stay: f64,
    /// Sum of the times from arrival to the start of service.
    wait: f64,
    served: u64,
    refused: u64,
    /// Integral of the number in the system over time, and when it last changed.
    area: u128,
    number: u64,
    since: Nanos,
    /// Packets that found the system empty.
    found_idle: u64,
    stays_beyond: u64,
    beyond: f64,
}

impl Station {
    fn step(&mut self, at: Nanos, by: i64) {
        self.area += u128::from(self.number) * u128::from(at - self.since);
        self.since = at;
        self.number = self.number.checked_add_signed(by).expect("a number of packets");
    }
}

impl Observer<Frame> for Station {
    fn on_event(&mut self, at: Nanos, packet: &Frame, event: Event) {
        match event {
            Event::Offered => {
                self.found_idle += u64::from(self.number == 0);
                self.step(at, 1);
                self.arrivals.push(at);
            }
            Event::Dropped { .. } => {
                self.refused += 1;
                self.step(at, -1);
            }
            Event::Departed => {
                self.wait += (at - self.arrivals[packet.number as usize]) as f64;
            }
            Event::Delivered => {
                self.step(at, -1);
                let stay = (at - self.arrivals[packet.number as usize]) as f64;
                self.stay += stay;
                self.stays_beyond += u64::from(stay > self.beyond);
                self.served += 1;
            }
            _ => {}
        }
    }
    fn tcp(&self, _: &Frame) -> Option<TcpView> {
        None
    }
    fn headers(&self, _: &Frame) -> Headers {
        Headers::default()
    }

    fn sender(&self, _: &Frame) -> Sender {
        Sender::default()
    }
}

/// Runs Poisson arrivals at `load` with lengths from `service`.
fn run(seed: u64, load: f64, service: Distribution, limit: u32, beyond: f64) -> Station {
    let key = Key::new(seed, "theory");
    let (mut gaps, mut lengths) = (key.stream("gap"), key.stream("length"));
    let between = Distribution::Exponential { mean: MEAN_SERVICE / load };
    let mut link: Link<Frame> =
        Link::new(&params(8_000_000_000, "", &format!("pfifo limit {limit}")), key, EPOCH);
    let mut station = Station { since: EPOCH, beyond, ..Station::default() };
    let mut now = EPOCH;
    for number in 0..PACKETS {
        now += between.sample_nanos(&mut gaps);
        let bytes = service.sample_nanos(&mut lengths).max(1) as u32;
        link.send(now, Frame::new(number, bytes), &mut station);
    }
    while let Some(at) = link.next_wakeup() {
        link.poll(at, &mut station);
    }
    link.assert_conserved();
    station
}

/// Asserts that `expected` lies in the interval around the mean of `value` over the runs.
fn check(what: &str, expected: f64, value: impl FnMut(u64) -> f64) {
    let all: Vec<f64> = (0..RUNS).map(value).collect();
    let n = RUNS as f64;
    let mean = all.iter().sum::<f64>() / n;
    let var = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    let half = T * (var / n).sqrt();
    assert!((mean - expected).abs() < half, "{what}: {mean} +- {half}, expected {expected}");
    assert!(half < 0.12 * expected, "{what}: the interval {half} says nothing");
}

const EXPONENTIAL: Distribution = Distribution::Exponential { mean: MEAN_SERVICE };
const CONSTANT: Distribution = Distribution::Const { value: MEAN_SERVICE };

#[test]
fn m_m_1() {
    for load in [0.5, 0.8] {
        let stay = MEAN_SERVICE / (1.0 - load);
        check("stay", stay, |seed| {
            let s = run(seed, load, EXPONENTIAL, 1_000_000, 0.0);
            s.stay / s.served as f64
        });
        // P(W > t) = exp(-(mu - lambda) t), here at the mean.
        check("tail", libm::exp(-1.0), |seed| {
            let s = run(seed, load, EXPONENTIAL, 1_000_000, stay);
            s.stays_beyond as f64 / s.served as f64
        });
        // Poisson arrivals see time averages: a share of 1 - rho finds the system idle.
        check("idle", 1.0 - load, |seed| {
            let s = run(seed, load, EXPONENTIAL, 1_000_000, 0.0);
            s.found_idle as f64 / f64::from(PACKETS)
        });
        check("number", load / (1.0 - load), |seed| {
            let s = run(seed, load, EXPONENTIAL, 1_000_000, 0.0);
            s.area as f64 / (s.since - EPOCH) as f64
        });
    }
}

#[test]
fn m_d_1() {
    for load in [0.5, 0.9] {
        check("wait", load * MEAN_SERVICE / (2.0 * (1.0 - load)), |seed| {
            let s = run(seed, load, CONSTANT, 1_000_000, 0.0);
            s.wait / s.served as f64
        });
    }
}

#[test]
fn m_g_1() {
    // Pollaczek and Khinchine, for a Weibull service of shape 2: E[S^2] = scale^2.
    let scale = MEAN_SERVICE / libm::tgamma(1.5);
    let service = Distribution::Weibull { scale, shape: 2.0 };
    let load = 0.7;
    let expected = load / MEAN_SERVICE * scale * scale / (2.0 * (1.0 - load));
    check("wait", expected, |seed| {
        let s = run(seed, load, service, 1_000_000, 0.0);
        s.wait / s.served as f64
    });
}

#[test]
fn m_m_1_k() {
    for (load, k) in [(0.8f64, 5i32), (1.0, 9), (1.3, 4)] {
        let expected = if (load - 1.0).abs() < 1e-9 {
            1.0 / f64::from(k + 1)
        } else {
            let power = |n: i32| libm::pow(load, f64::from(n));
            (1.0 - load) * power(k) / (1.0 - power(k + 1))
        };
        // One of the K packets is in service.
        check("loss", expected, |seed| {
            let s = run(seed, load, EXPONENTIAL, k as u32 - 1, 0.0);
            s.refused as f64 / f64::from(PACKETS)
        });
    }
}

/// L = lambda W, exactly, from empty to empty.
#[test]
fn littles_law() {
    for (load, limit) in [(0.9, 1_000_000), (1.5, 20)] {
        let s = run(1, load, EXPONENTIAL, limit, 0.0);
        assert_eq!(s.number, 0);
        assert_eq!(s.area, s.stay as u128);
    }
}
