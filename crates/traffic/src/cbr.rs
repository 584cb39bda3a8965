//! `cbr`: packets of one length at a constant rate, optionally in spurts with silences between
//! them.
//!
//! Rounding errors of the times do not accumulate. With jitter each interval is multiplied by a
//! uniform random number from 1 - jitter to 1 + jitter; ns-2's `random_` does the same with a
//! jitter of one half.

use crate::Emission;
use crate::application::{AppParams, Source, check_length};
use crate::kinds::within;
use crate::length::{Counts, Length, MAX_PAYLOAD, UDP_HEADERS};
use crate::spurts::{Activity, Begin, Phase, Spurts};
use sojourn_random::{Distribution, Key, Stream};
use sojourn_units::clocking::{Clocking, Span};
use sojourn_units::declare::{Choices, Param, group, probability, rate};
use sojourn_units::words::{Given, Kind, Word, WordError};
use sojourn_units::{Nanos, Rate, params, words};

/// Maximum number of spurts over which the transmission of one packet may be spread (`phase
/// resume`).
const LONGEST_FILL: f64 = 1e6;

params! {
    "cbr": "packets of one length at a constant rate";

    /// Parameters of `cbr`.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    pub struct Params {
        /// Rate during a spurt, counted in Ethernet frames with `size`, and in UDP payload with
        /// `payload`.
        rate: Rate = rate("").initially(|()| Rate::new(1).expect("above 0")),
        /// Length of a packet: of its Ethernet frame or of its UDP payload.
        #[serde(flatten)]
        size: Length<u32> = length(),
        /// Maximum deviation of an interval, as a share of the interval; deviations are uniform.
        jitter: f64 = probability("0%"),
        /// Spurts and silences; without them packets are sent continuously.
        spurts: Option<Spurts> = spurts(),
    }
}

const fn length() -> Param<Length<u32>> {
    const WORDS: &[Word] = words! {
        "size", Kind::Size, "1514",
            "Length of the Ethernet frame without frame check sequence: UDP payload and 42 bytes of headers.";
        "payload", Kind::Size, "", "Length of the UDP payload; replaces `size`.";
    };
    let set = |size: &mut Length<u32>, given: &Given| {
        let Some(counts) = Counts::given(given)? else { return Ok(()) };
        let bytes = given.integer(counts.word()).unwrap_or(0);
        let length = match counts {
            Counts::Frame => within::<{ UDP_HEADERS + 1 }, { MAX_PAYLOAD + UDP_HEADERS }>(bytes),
            Counts::Payload => within::<1, MAX_PAYLOAD>(bytes),
        };
        let wrong = |why| given.error(counts.word(), format!("`{}` {why}", counts.word()));
        *size = Length { length: length.map_err(wrong)?, counts };
        Ok(())
    };
    group(
        WORDS,
        |()| Length { length: 1514, counts: Counts::Frame },
        set,
        |size, text| text.value(size.counts.word(), size.length),
    )
}

const fn spurts() -> Param<Option<Spurts>> {
    const WORDS: &[Word] = words! {
        "on", Kind::Name, "",
            "Duration of a spurt, such as exp(1s); needs `off`. Without spurts packets are sent continuously.";
        "off", Kind::Name, "",
            "Duration of a silence between spurts, such as pareto(2s,1.5); needs `on`.";
        "begin", Kind::Choice { of: Begin::NAMES }, "on",
            "Whether the source begins with a spurt or with a silence.";
        "phase", Kind::Choice { of: Phase::NAMES }, "restart",
            "`restart`: each spurt begins with a packet. `resume`: a spurt continues the interval at which the last one stopped, so that the mean rate is exactly `rate` times the share of time in spurts.";
    };
    group(
        WORDS,
        |()| None,
        |spurts, given| Spurts::set(spurts, given, "on", "off"),
        |spurts, text| Spurts::write(*spurts, text, "on", "off"),
    )
}

impl Params {
    /// Returns the time between two packets.
    fn interval(&self) -> Span {
        self.rate.span(self.size.length)
    }
}

impl AppParams for Params {
    const REQUIRED: Option<(&'static str, &'static str)> = Some(("rate", "cbr rate 250kbit"));

    type Source = Cbr;

    fn settle(&mut self, given: &Given) -> Result<(), WordError> {
        if let Some(Spurts { on, phase: Phase::Resume, .. }) = self.spurts
            && on.mean() * LONGEST_FILL < self.interval().whole as f64
        {
            return Err(
                given.error("on", "`on` is too short: one packet takes more than a million spurts")
            );
        }
        Ok(())
    }

    fn distributions(&self) -> Vec<Distribution> {
        Spurts::distributions(self.spurts)
    }

    fn check(&self) -> Result<(), String> {
        check_length(self.size.length)
    }

    fn longest_payload(&self) -> u32 {
        self.size.counts.payload(self.size.length)
    }

    fn source(&self, key: Key, start: Nanos) -> Option<Cbr> {
        Some(Cbr::new(self, key, start))
    }
}

/// A `cbr` source.
#[derive(Clone, Debug)]
pub struct Cbr {
    rate: Rate,
    payload: u32,
    /// Time between two packets.
    interval: Span,
    clocking: Clocking,
    jitter: f64,
    draws: Stream,
    activity: Option<Box<Activity>>,
    next: Nanos,
}

impl Cbr {
    /// Returns a source that starts at `start`, with a packet or with a silence.
    pub fn new(params: &Params, key: Key, start: Nanos) -> Self {
        let interval = params.interval();
        let (activity, next) = Activity::begin(params.spurts, key, start, interval.whole.max(1));
        Self {
            rate: params.rate,
            payload: params.longest_payload(),
            interval,
            clocking: Clocking::down(params.rate),
            jitter: params.jitter,
            draws: key.stream("jitter"),
            activity,
            next,
        }
    }
}

impl Source for Cbr {
    fn next_packet(&mut self) -> Emission {
        let at = self.next;
        let mut interval = self.clocking.step(self.interval);
        if self.jitter > 0.0 {
            let by = self.jitter * (2.0 * self.draws.uniform() - 1.0) * interval as f64;
            interval = interval.saturating_add_signed(libm::round(by) as i64);
        }
        self.next = at + interval;
        if let Some(activity) = &mut self.activity {
            let placed = activity.place(self.next);
            if placed != self.next && activity.restarts() {
                self.clocking = Clocking::down(self.rate);
            }
            self.next = placed;
        }
        Emission { at, payload: self.payload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;
    use sojourn_units::{EPOCH, MILLISECOND, SECOND};

    fn source(text: &str, seed: u64) -> Cbr {
        let App::Cbr(params) = App::parse(text).unwrap() else { panic!("{text}") };
        Cbr::new(&params, Key::new(seed, "cbr"), EPOCH)
    }

    #[test]
    fn times_are_exact_for_ever() {
        let mut source = source("cbr rate 250kbit size 573", 1);
        let interval = |n: u128| (n * 573 * 8 * u128::from(SECOND) / 250_000) as Nanos;
        for n in 0..100_000 {
            assert_eq!(source.next_packet(), Emission { at: EPOCH + interval(n), payload: 531 });
        }
    }

    #[test]
    fn a_rate_that_divides_nothing_does_not_drift() {
        let mut source = source("cbr rate 333333bit payload 1000", 1);
        let last = (0..=33_333).map(|_| source.next_packet()).last().unwrap();
        assert_eq!(last.payload, 1000);
        assert_eq!(last.at - EPOCH, (33_333u128 * 8000 * u128::from(SECOND) / 333_333) as Nanos);
    }

    #[test]
    fn jitter_varies_intervals_within_its_bounds() {
        let mut source = source("cbr rate 1mbit size 1250 jitter 50%", 2);
        let times: Vec<Nanos> = (0..20_000).map(|_| source.next_packet().at).collect();
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
        assert!(gaps.iter().all(|gap| (5.0..=15.0).contains(gap)));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // The deviation is 10 / sqrt(12) ms.
        assert!((mean - 10.0).abs() < 3.3 * 2.89 / 141.4, "{mean}");
    }

    #[test]
    fn spurts_and_silences() {
        let mut source = source("cbr rate 1mbit size 1250 on 25ms off 1s", 1);
        let times: Vec<Nanos> =
            (0..7).map(|_| (source.next_packet().at - EPOCH) / MILLISECOND).collect();
        // 25 ms hold three packets 10 ms apart; each spurt opens with one.
        assert_eq!(times, [0, 10, 20, 1025, 1035, 1045, 2050]);
    }

    #[test]
    fn a_clock_that_resumes_counts_only_time_on() {
        let times = |text: &str| -> Vec<Nanos> {
            let mut source = source(text, 1);
            (0..7).map(|_| (source.next_packet().at - EPOCH) / MILLISECOND).collect()
        };
        // A packet each 10 ms of time on; what a spurt leaves over counts in the next.
        let words = "cbr rate 1mbit size 1250 on 25ms off 1s phase resume";
        assert_eq!(times(words), [10, 20, 1030, 1040, 2050, 2060, 2070]);
        let later = [words, " begin off"].concat();
        assert_eq!(times(&later), [1010, 1020, 2030, 2040, 3050, 3060, 3070]);
        // Spurts shorter than a packet.
        let short = "cbr rate 1mbit size 1250 on 4ms off 6ms phase resume";
        assert_eq!(times(short), [22, 50, 72, 100, 122, 150, 172]);
    }

    /// However short the spurts: rate times share. A clock that restarts sends more.
    #[test]
    fn the_mean_rate_of_a_resuming_clock_is_exact() {
        let rate = |phase: &str| {
            let words = "cbr rate 10mbit payload 1250 on exp(1ms) off exp(1ms) begin off phase ";
            let mut source = source(&[words, phase].concat(), 3);
            let n = 100_000u32;
            let last = (0..n).map(|_| source.next_packet().at).last().unwrap();
            f64::from(n) * 10_000.0 / ((last - EPOCH) as f64 / 1e9)
        };
        // A cycle has a deviation of 1.4 ms and a mean of 2 ms; there are about 100 000.
        assert!((rate("resume") / 5e6 - 1.0).abs() < 0.01, "{}", rate("resume"));
        // 1 / (1 - 1/e) packets a spurt.
        assert!((rate("restart") / 7.91e6 - 1.0).abs() < 0.01, "{}", rate("restart"));
    }

    #[test]
    fn on_and_off_have_their_shares() {
        let mut source = source("cbr rate 1mbit size 125 on exp(500ms) off pareto(1.5s,3)", 4);
        let n = 400_000u32;
        let last = (0..n).map(|_| source.next_packet().at).last().unwrap();
        let rate = f64::from(n) * 1000.0 / ((last - EPOCH) as f64 / 1e9);
        // A quarter of the time, plus half a packet per spurt of 500.
        assert!((rate / 250_000.0 - 1.0).abs() < 0.1, "{rate}");
    }

    #[test]
    fn is_refused_without_sense() {
        for (text, why) in [
            ("cbr", "`cbr` needs `rate`, such as `cbr rate 250kbit`"),
            (
                "cbr rate 1mbit size 100 payload 50",
                "`size` (of the Ethernet frame) and `payload` (of UDP) exclude each other",
            ),
            ("cbr rate 1mbit size 42", "`size` must be from 43 to 9014 bytes"),
            ("cbr rate 1mbit on 1s", "`on` needs `off`"),
            ("cbr rate 1mbit phase resume", "`phase` needs `on` and `off`"),
            ("cbr rate 1mbit begin off", "`begin` needs `on` and `off`"),
            (
                "cbr rate 1kbit on 1us off 1s phase resume",
                "`on` is too short: one packet takes more than a million spurts",
            ),
            (
                "cbr rate 1mbit on exp(1) off 1s",
                "`on`: `mean` needs a time with its unit, such as 15s; found `1`",
            ),
        ] {
            assert_eq!(App::parse(text).unwrap_err().to_string(), why);
        }
    }
}
