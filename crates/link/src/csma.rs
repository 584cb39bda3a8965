//! A medium that several links share: carrier sense and random backoff, after ns-3's CSMA model.
//!
//! The medium carries one frame at a time. It is busy during the transmission and the propagation
//! of the frame, up to and including the instant of its arrival. All stations sense this at once,
//! so frames never collide. A station that finds the medium busy tries again after a random number
//! of slots; the bound of that number doubles with every attempt up to a limit. After the last
//! attempt the frame is given up.
//!
//! If the propagation delay is far above the transmission time, the delay and not the rate limits
//! the throughput: with a delay of 1 ms the medium carries fewer than 1000 frames per second.
//!
//! # Source
//! ns-3's `CsmaChannel` (states idle, transmitting, propagating), `CsmaNetDevice` and `Backoff`.

use sojourn_random::{Key, Stream};
use sojourn_units::declare::{Param, Parameters, integer, time};
use sojourn_units::words::{self, Kind, Text, Value, WordError};
use sojourn_units::{Nanos, SECOND, params, quantity};

params! {
    "csma": "a shared medium: carrier sense, random backoff, no collisions",
    from "ns-3, CSMA model: CsmaChannel, CsmaNetDevice, Backoff";

    /// How stations share a medium.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields)]
    pub struct Params {
        /// Length of a backoff slot.
        slot: Nanos = time("1us").check(|slot| match slot {
            1..=SECOND => Ok(()),
            _ => Err("must be above 0, up to 1s"),
        }),
        /// A backoff is at least one slot, and shorter than this number of slots if that is above 1.
        max_slots as "maxslots": u32 = integer(1, 1 << 20, "1000"),
        /// Number of attempts after which the bound of the backoff, 2^attempts - 1 slots, stays the same.
        ceiling: u32 = integer(1, 20, "10"),
        /// Number of backoffs after which a frame is given up.
        retries: u32 = integer(0, u32::MAX as u64, "1000"),
        /// Gap after a station's own frame: the transmission time of this number of bytes.
        gap: u32 = Param::word(Kind::Size, "12", gap, |bytes| Some(Value::Integer((*bytes).into()))),
    }
}

fn gap(value: &Value) -> Result<u32, String> {
    const MOST: u64 = 1 << 20;
    let bytes = value.integer();
    if bytes > MOST {
        return Err(format!("must be at most {}", quantity::format_size(MOST)));
    }
    Ok(bytes as u32)
}

impl Params {
    /// Reads a description such as `csma slot 1us retries 1000`.
    ///
    /// # Errors
    /// Where and why the text cannot be read.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let (_, given) = words::describe("way to share a medium", &[&Self::TABLE], text)?;
        let mut params = Self::default();
        params.set(&given)?;
        Ok(params)
    }

    /// Checks parameters that do not come from a text.
    ///
    /// # Errors
    /// A slot or a bound that [`Params::parse`] would refuse.
    pub fn check(&self) -> Result<(), String> {
        let read = Self::parse(&self.to_string()).map_err(|error| error.to_string())?;
        debug_assert_eq!(read, *self);
        Ok(())
    }

    /// Returns the number of slots to wait before attempt number `attempt`, which is at least 1:
    /// uniform over 1 to M - 1, or 1 if M is 1; M = min(2^min(attempt, ceiling) - 1, `max_slots`).
    fn slots(&self, attempt: u32, draws: &mut Stream) -> u64 {
        let bound = ((1u64 << attempt.min(self.ceiling)) - 1).min(u64::from(self.max_slots));
        1 + draws.below((bound - 1).max(1))
    }
}

impl std::fmt::Display for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.write(Text::new(Self::TABLE.name)).done())
    }
}

/// The events on a medium since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of times that a station sensed the medium to transmit a frame.
    pub attempts: u64,
    /// Attempts that found the medium busy.
    pub deferrals: u64,
    /// Frames given up after the last attempt.
    pub abandoned: u64,
}

/// A shared medium. The links on it must be called in the order of time.
#[derive(Clone, Debug)]
pub struct Medium {
    params: Params,
    /// The last instant at which the medium is busy; `None` before the first transmission.
    busy_until: Option<Nanos>,
    /// Time for which all transmissions so far occupy the medium; one in progress counts to its
    /// end.
    occupied: Nanos,
    counters: Counters,
}

impl Medium {
    /// Returns an idle medium.
    pub fn new(params: Params) -> Self {
        Self { params, busy_until: None, occupied: 0, counters: Counters::default() }
    }

    /// Returns whether a transmission may begin at `at`.
    pub fn is_free(&self, at: Nanos) -> bool {
        self.busy_until.is_none_or(|until| at > until)
    }

    /// Returns how long the medium has been occupied until `now`, which is not before the last
    /// call's time.
    pub fn occupied(&self, now: Nanos) -> Nanos {
        self.occupied - self.busy_until.map_or(0, |until| until.saturating_sub(now))
    }

    /// Returns the events so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the medium's parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Notes that a station begins to transmit at `at`; its frame arrives at `until`.
    pub(crate) fn occupy(&mut self, at: Nanos, until: Nanos) {
        assert!(self.is_free(at), "two transmissions at once");
        self.counters.attempts += 1;
        self.occupied += until - at;
        self.busy_until = Some(until);
    }
}

/// A station's attempts to send its next frame.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    /// Backoffs of this frame so far.
    retries: u32,
    draws: Stream,
}

impl Backoff {
    pub(crate) fn new(key: Key) -> Self {
        Self { retries: 0, draws: key.stream("backoff") }
    }

    /// Returns whether the station waits for its next attempt.
    pub(crate) fn is_waiting(&self) -> bool {
        self.retries > 0
    }

    /// Ends the attempts: the frame is sent, or the station has no frame.
    pub(crate) fn reset(&mut self) {
        self.retries = 0;
    }

    /// Handles an attempt at `at` that found `medium` busy. Returns when the station tries again;
    /// `None` if it gives the frame up.
    ///
    /// Attempts before the end of the transmission in progress must fail, so they are made here at
    /// once: they take draws and are counted, but need no event.
    pub(crate) fn defer(&mut self, medium: &mut Medium, mut at: Nanos) -> Option<Nanos> {
        debug_assert!(!medium.is_free(at));
        let params = medium.params;
        loop {
            medium.counters.attempts += 1;
            medium.counters.deferrals += 1;
            if self.retries >= params.retries {
                self.retries = 0;
                medium.counters.abandoned += 1;
                return None;
            }
            self.retries += 1;
            at += params.slots(self.retries, &mut self.draws) * params.slot;
            if medium.is_free(at) || self.retries == params.retries {
                return Some(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_units::{EPOCH, MILLISECOND};

    #[test]
    fn the_defaults_are_those_of_the_table() {
        assert_eq!(Params::parse("csma").unwrap(), Params::default());
        let text = "csma slot 1us maxslots 1000 ceiling 10 retries 1000 gap 12";
        assert_eq!(Params::default().to_string(), text);
        for word in Params::TABLE.words {
            let given = format!("csma {} {}", word.name, word.default);
            assert_eq!(Params::parse(&given).unwrap(), Params::default(), "{given}");
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        for text in ["csma slot 0s", "csma slot 2s", "csma gap 2mb", "csma retry 3", "tdma"] {
            assert!(Params::parse(text).is_err(), "{text}");
        }
        for params in [
            Params { slot: 0, ..Params::default() },
            Params { max_slots: 0, ..Params::default() },
            Params { ceiling: 0, ..Params::default() },
            Params { ceiling: 63, ..Params::default() },
            Params { gap: u32::MAX, ..Params::default() },
        ] {
            assert!(params.check().is_err(), "{params:?}");
        }
        let odd = Params { slot: 51_200, max_slots: 1, ceiling: 1, retries: 0, gap: 0 };
        assert_eq!(odd.check(), Ok(()));
    }

    /// ns-3 draws a real number from 1 to below M and cuts off its fraction.
    #[test]
    fn backoffs_are_uniform_below_a_bound_that_doubles() {
        let params = Params::default();
        let mut draws = Key::new(1, "station").stream("backoff");
        for (attempt, greatest) in
            [(1, 1), (2, 2), (3, 6), (4, 14), (9, 510), (10, 999), (11, 999), (900, 999)]
        {
            let n = 200 * greatest;
            let (mut sum, mut least, mut most) = (0, u64::MAX, 0);
            for _ in 0..n {
                let slots = params.slots(attempt, &mut draws);
                (sum, least, most) = (sum + slots, least.min(slots), most.max(slots));
            }
            assert_eq!((least, most), (1, greatest), "attempt {attempt}");
            // Mean (1 + greatest) / 2, deviation greatest / sqrt(12).
            let (mean, expected) = (sum as f64 / n as f64, (1 + greatest) as f64 / 2.0);
            let error = greatest as f64 / (12.0 * n as f64).sqrt();
            assert!((mean - expected).abs() <= 4.5 * error, "attempt {attempt}: {mean}");
        }
    }

    #[test]
    fn a_medium_is_busy_up_to_and_at_the_arrival() {
        let mut medium = Medium::new(Params::default());
        assert!(medium.is_free(EPOCH));
        medium.occupy(EPOCH, EPOCH + MILLISECOND);
        assert!(!medium.is_free(EPOCH) && !medium.is_free(EPOCH + MILLISECOND));
        assert!(medium.is_free(EPOCH + MILLISECOND + 1));
        assert_eq!(medium.occupied(EPOCH), 0);
        assert_eq!(medium.occupied(EPOCH + MILLISECOND / 4), MILLISECOND / 4);
        assert_eq!(medium.occupied(EPOCH + 9 * MILLISECOND), MILLISECOND);
    }

    #[test]
    fn attempts_bound_to_fail_count_and_the_last_one_gives_up() {
        let params = Params { retries: 30, ..Params::default() };
        let mut medium = Medium::new(params);
        medium.occupy(EPOCH, EPOCH + MILLISECOND);
        let mut backoff = Backoff::new(Key::new(1, "station"));
        let at = backoff.defer(&mut medium, EPOCH).unwrap();
        assert!(backoff.is_waiting());
        assert!(at > EPOCH + MILLISECOND && at < EPOCH + 2 * MILLISECOND);
        assert_eq!(medium.counters.attempts, medium.counters.deferrals + 1);
        assert!(medium.counters.deferrals > 7, "2^7 slots are less than a millisecond");
        // A frame that lasts for ever: the attempts are used up, and the next frame starts anew.
        medium.occupy(at, at + 1_000 * MILLISECOND);
        let last = backoff.defer(&mut medium, at).unwrap();
        assert!(last > at && last < at + 30 * MILLISECOND);
        assert_eq!(backoff.defer(&mut medium, last), None);
        assert!(!backoff.is_waiting());
        assert_eq!(medium.counters.deferrals, 31);
        assert_eq!(medium.counters.abandoned, 1);
    }
}
