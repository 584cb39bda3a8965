//! Times at a rate in whole nanoseconds, the sum of which is exact.
//!
//! A frame rarely takes a whole number of nanoseconds at a high rate: 64 bytes take 5.12 ns at
//! 100 Gbit/s. The fraction by which a time was rounded is carried to the next time, so the sum of
//! consecutive times differs from the exact sum by less than 1 ns, however many they are.

use crate::quantity::{Rate, format_rate};
use crate::time::{Nanos, SECOND};

/// A duration at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Whole nanoseconds.
    pub whole: Nanos,
    /// The rest, in units of 1/rate nanoseconds (with the rate in bit/s).
    pub part: u64,
}

impl Rate {
    /// Returns the exact transmission time of a frame of `bytes`.
    #[inline]
    pub fn span(self, bytes: u32) -> Span {
        let bits = u64::from(bytes) * 8 * SECOND;
        Span { whole: bits / self.bits(), part: bits % self.bits() }
    }
}

/// Rounds consecutive durations at a rate so that their sum is rounded, instead of each of them.
#[derive(Clone, Copy, Debug)]
pub struct Clocking {
    rate: u64,
    /// Time in units of 1/rate nanoseconds that the next durations may take without a further
    /// nanosecond; below `rate`.
    spare: u64,
}

impl Clocking {
    /// Returns a clock that rounds sums up.
    pub fn up(rate: Rate) -> Self {
        Self { rate: rate.bits(), spare: 0 }
    }

    /// Returns a clock that rounds sums down.
    pub fn down(rate: Rate) -> Self {
        Self { rate: rate.bits(), spare: rate.bits() - 1 }
    }

    /// Returns the next duration in nanoseconds; `span` must be at this clock's rate.
    #[inline]
    pub fn step(&mut self, span: Span) -> Nanos {
        if span.part <= self.spare {
            self.spare -= span.part;
            return span.whole;
        }
        self.spare = self.rate - (span.part - self.spare);
        span.whole + 1
    }

    /// Returns the time from the exact end of the last duration to its end rounded up, in units of
    /// 1/rate nanoseconds.
    pub fn spare(&self) -> u64 {
        self.spare
    }

    /// Begins a new sum, rounded up. Returns the spare time before.
    pub fn restart(&mut self) -> u64 {
        std::mem::take(&mut self.spare)
    }

    /// Continues at another rate, from the same exact time. Rounds by less than 1/rate
    /// nanoseconds, down.
    pub fn turn(&mut self, rate: Rate) {
        let spare = u128::from(self.spare) * u128::from(rate.bits()) / u128::from(self.rate);
        *self = Self { rate: rate.bits(), spare: spare as u64 };
    }
}

/// Lengths in bytes of the packets for which [`rounded`] states the rate.
const LENGTHS: [u32; 2] = [64, 1514];
/// Least share of the rate by which the rate of packets must differ from it to be stated.
const DIFFERS: f64 = 0.0025;

/// Returns a notice if a shaper sends packets at another rate than the `bits` per second of its
/// `word`. `time` returns the nanoseconds that it takes for a packet's bytes, as Linux does.
pub fn rounded(word: &str, bits: u64, time: impl Fn(u32) -> Nanos) -> Option<String> {
    let asked = format_rate(Rate::new(bits)?);
    let differs = LENGTHS.into_iter().filter_map(|length| {
        let nanos = time(length) as f64;
        let rate = f64::from(length) * 8.0 * SECOND as f64 / nanos;
        let is_far = (rate / bits as f64 - 1.0).abs() > DIFFERS;
        is_far.then(|| match nanos {
            0.0 => format!("those of {length} bytes without a limit"),
            _ => format!("those of {length} bytes at {}", rate_text(rate)),
        })
    });
    let differs: Vec<_> = differs.collect();
    (!differs.is_empty()).then(|| {
        let rates = differs.join(", ");
        format!(
            "`{word} {asked}`: the shaper counts whole nanoseconds for a packet, as in Linux, and sends {rates}"
        )
    })
}

/// Returns a rate with six digits and a unit that suits it.
fn rate_text(rate: f64) -> String {
    let units = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)];
    let (unit, size) = units.into_iter().find(|(_, size)| rate >= *size).unwrap_or(units[3]);
    let value = rate / size;
    let digits = 5 - [10.0, 100.0, 1000.0].into_iter().filter(|&least| value >= least).count();
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a rate of any order of magnitude.
    fn rates() -> impl Strategy<Value = Rate> {
        (10u32..64, any::<u64>())
            .prop_map(|(size, bits)| Rate::new(bits >> (64 - size) | 1).unwrap())
    }

    #[test]
    fn a_notice_names_the_rate_of_packets_that_differs() {
        let rounds = |bits: u64| move |length: u32| u64::from(length) * 8 * SECOND / bits;
        let of = |bits| rounded("rate", bits, rounds(bits));
        assert_eq!(of(1_000_000_000), None);
        assert_eq!(of(100_000_000), None);
        let found = of(40_000_000_000).unwrap();
        assert!(found.starts_with("`rate 40gbit`: "), "{found}");
        assert!(
            found.ends_with(
                "those of 64 bytes at 42.6667 Gbit/s, those of 1514 bytes at 40.1060 Gbit/s"
            ),
            "{found}"
        );
        assert!(of(1_000_000_000_000).unwrap().contains("64 bytes without a limit"));
        let slow = rounded("rate", 100, |_| 4 * SECOND).unwrap();
        assert!(slow.ends_with("64 bytes at 128.000 bit/s, those of 1514 bytes at 3.02800 kbit/s"));
    }

    proptest! {
        #[test]
        fn sums_are_exact_at_any_rate(rate in rates(), frames in prop::collection::vec(1u32..10_000, 1..500)) {
            let (mut up, mut down) = (Clocking::up(rate), Clocking::down(rate));
            let (mut later, mut earlier, mut bits) = (0u128, 0u128, 0u128);
            for bytes in frames {
                later += u128::from(up.step(rate.span(bytes)));
                earlier += u128::from(down.step(rate.span(bytes)));
                bits += u128::from(bytes) * 8 * u128::from(SECOND);
                prop_assert_eq!(later, bits.div_ceil(rate.bits().into()));
                prop_assert_eq!(earlier, bits / u128::from(rate.bits()));
                prop_assert_eq!(u128::from(up.spare()), later * u128::from(rate.bits()) - bits);
            }
        }

        #[test]
        fn a_change_of_rate_keeps_the_exact_time(a in rates(), b in rates(), bytes in 1u32..10_000) {
            let mut clock = Clocking::up(a);
            clock.step(a.span(bytes));
            let before = clock.spare() as f64 / a.bits() as f64;
            clock.turn(b);
            let after = clock.spare() as f64 / b.bits() as f64;
            prop_assert!(after < 1.0 && (before - after).abs() <= 1.0 / b.bits() as f64 + 1e-15);
        }
    }
}
