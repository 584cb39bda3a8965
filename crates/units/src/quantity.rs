//! Rates and sizes, and the text forms of all quantities in `tc`'s syntax.
//!
//! Values are parsed as exact decimal fractions and rounded to an integer at the end. Therefore
//! `1.1ms` is exactly 1 100 000 ns on every platform.

use crate::data;
use crate::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// A number of bytes.
pub type Bytes = u64;

/// A rate in bits per second, above zero.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "u64", into = "u64")]
pub struct Rate(u64);

impl Rate {
    /// One bit per second.
    pub const ONE: Self = Self(1);

    /// Returns a rate of `bits` per second; `None` if `bits` is 0.
    pub const fn new(bits: u64) -> Option<Self> {
        if bits > 0 { Some(Self(bits)) } else { None }
    }

    /// Returns the rate in bits per second.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns the transmission time of a frame of `bytes` in nanoseconds, rounded up so that no
    /// interval carries more than the rate allows.
    pub fn transmission_time(self, bytes: u32) -> Nanos {
        (u64::from(bytes) * 8 * SECOND).div_ceil(self.0)
    }
}

impl TryFrom<u64> for Rate {
    type Error = &'static str;
    fn try_from(bits: u64) -> Result<Self, Self::Error> {
        Self::new(bits).ok_or("a rate must be above zero")
    }
}

impl From<Rate> for u64 {
    fn from(rate: Rate) -> Self {
        rate.0
    }
}

/// Reason why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// The text does not start with a decimal number.
    NotANumber,
    /// The unit after the number is missing.
    NoUnit,
    /// The text after the number is not a unit of this dimension.
    UnknownUnit,
    /// The quantity is too large for its type, or a probability is above 1.
    TooLarge,
}

/// An exact non-negative decimal fraction: `digits / 10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u128,
    scale: u32,
}

impl Decimal {
    /// Returns `self * factor`, rounded down; `None` if the result does not fit into 64 bits.
    pub fn times(self, factor: u128) -> Option<u64> {
        let product = self.digits.checked_mul(factor)?;
        u64::try_from(product / 10u128.checked_pow(self.scale)?).ok()
    }

    /// Returns the nearest real number.
    pub fn to_f64(self) -> f64 {
        self.digits as f64 / libm::pow(10.0, f64::from(self.scale))
    }

    /// Returns whether the number has no fractional part.
    pub fn is_whole(self) -> bool {
        self.digits.is_multiple_of(10u128.pow(self.scale.min(30)))
    }
}

/// Splits `text` into its leading number and the rest.
///
/// # Errors
/// [`QuantityError::NotANumber`] if the text does not begin with a decimal number,
/// [`QuantityError::TooLarge`] if the number has more than 18 digits before the point or 12 digits
/// after it.
pub fn split_number(text: &str) -> Result<(Decimal, &str), QuantityError> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return Err(QuantityError::NotANumber);
    }
    if whole.len() > 18 || fraction.len() > 12 {
        return Err(QuantityError::TooLarge);
    }
    let digits =
        whole.bytes().chain(fraction.bytes()).fold(0u128, |n, b| n * 10 + u128::from(b - b'0'));
    Ok((Decimal { digits, scale: fraction.len() as u32 }, rest))
}

fn scaled(text: &str, units: &[(&str, u128)], divisor: u128) -> Result<u64, QuantityError> {
    let (number, unit) = split_number(text)?;
    let unit = unit.to_ascii_lowercase();
    let Some(&(_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(if unit.is_empty() {
            QuantityError::NoUnit
        } else {
            QuantityError::UnknownUnit
        });
    };
    if divisor == 1 {
        return number.times(factor).ok_or(QuantityError::TooLarge);
    }
    let product = number.digits.checked_mul(factor).ok_or(QuantityError::TooLarge)?;
    u64::try_from(product / (10u128.pow(number.scale) * divisor))
        .map_err(|_| QuantityError::TooLarge)
}

/// Units of time in `tc`'s spellings, with their lengths in nanoseconds.
pub const TIME_UNITS: &[(&str, u128)] = &[
    ("s", SECOND as u128),
    ("sec", SECOND as u128),
    ("secs", SECOND as u128),
    ("ms", MILLISECOND as u128),
    ("msec", MILLISECOND as u128),
    ("msecs", MILLISECOND as u128),
    ("us", MICROSECOND as u128),
    ("usec", MICROSECOND as u128),
    ("usecs", MICROSECOND as u128),
    ("ns", 1),
    ("nsec", 1),
    ("nsecs", 1),
];

/// Units of rate in bits per second. `bit` counts bits, `bps` counts bytes; `ki`, `mi`, `gi` and
/// `ti` are powers of 1024.
pub const RATE_UNITS: &[(&str, u128)] = &[
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
    ("kibit", 1 << 10),
    ("mibit", 1 << 20),
    ("gibit", 1 << 30),
    ("tibit", 1 << 40),
    ("bps", 8),
    ("kbps", 8_000),
    ("mbps", 8_000_000),
    ("gbps", 8_000_000_000),
    ("tbps", 8_000_000_000_000),
    ("kibps", 8 << 10),
    ("mibps", 8 << 20),
    ("gibps", 8 << 30),
    ("tibps", 8 << 40),
];

/// Units of size, with their lengths in bits. `k` and `kb` are 1024 bytes, as in `tc`.
pub const SIZE_UNITS: &[(&str, u128)] = &[
    ("", 8),
    ("b", 8),
    ("k", 8 << 10),
    ("kb", 8 << 10),
    ("m", 8 << 20),
    ("mb", 8 << 20),
    ("g", 8 << 30),
    ("gb", 8 << 30),
    ("kbit", 1 << 10),
    ("mbit", 1 << 20),
    ("gbit", 1 << 30),
];

/// Parses a duration and returns it in nanoseconds. `0` is allowed without a unit; all other
/// numbers need one.
///
/// # Errors
/// See [`QuantityError`].
pub fn parse_time(text: &str) -> Result<Nanos, QuantityError> {
    if text == "0" {
        return Ok(0);
    }
    scaled(text, TIME_UNITS, 1)
}

/// Parses a rate with its unit; zero gives [`QuantityError::NotANumber`].
///
/// # Errors
/// See [`QuantityError`].
pub fn parse_rate(text: &str) -> Result<Rate, QuantityError> {
    Rate::new(scaled(text, RATE_UNITS, 1)?).ok_or(QuantityError::NotANumber)
}

/// Parses a size and returns it in bytes. A number without a unit counts bytes.
///
/// # Errors
/// See [`QuantityError`].
pub fn parse_size(text: &str) -> Result<Bytes, QuantityError> {
    scaled(text, SIZE_UNITS, 8)
}

/// Parses a probability: a fraction (`0.02`) or a percentage (`2%`).
///
/// # Errors
/// See [`QuantityError`]; a value above 1 gives [`QuantityError::TooLarge`].
pub fn parse_probability(text: &str) -> Result<f64, QuantityError> {
    let (number, unit) = split_number(text)?;
    let value = match unit {
        "" => number.to_f64(),
        "%" => number.to_f64() / 100.0,
        _ => return Err(QuantityError::UnknownUnit),
    };
    if value <= 1.0 { Ok(value) } else { Err(QuantityError::TooLarge) }
}

/// Parses a number of packets, such as `300p`.
///
/// # Errors
/// See [`QuantityError`].
pub fn parse_packets(text: &str) -> Result<u64, QuantityError> {
    let digits = text.strip_suffix('p').ok_or(if text.bytes().all(|b| b.is_ascii_digit()) {
        QuantityError::NoUnit
    } else {
        QuantityError::UnknownUnit
    })?;
    digits.parse().map_err(|_| QuantityError::NotANumber)
}

fn shortest(value: u64, units: &[(&str, u64)]) -> String {
    let (name, factor) = units.iter().find(|(_, f)| value >= *f).unwrap_or(&units[units.len() - 1]);
    if value.is_multiple_of(*factor) {
        return format!("{}{name}", value / factor);
    }
    // Choose the largest unit with at most three decimals. The smallest unit is always exact.
    let (name, factor) = units
        .iter()
        .filter(|(_, f)| value >= *f)
        .find(|(_, f)| (u128::from(value) * 1000).is_multiple_of(u128::from(*f)))
        .unwrap_or(&units[units.len() - 1]);
    let text = format!(
        "{}.{:03}",
        value / factor,
        u128::from(value % factor) * 1000 / u128::from(*factor)
    );
    format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns whether a word is a unit of a quantity.
pub fn is_unit(word: &str) -> bool {
    let quantity = format!("1{word}");
    let parses = [
        parse_time(&quantity).is_ok(),
        parse_rate(&quantity).is_ok(),
        parse_size(&quantity).is_ok(),
        parse_packets(&quantity).is_ok(),
    ];
    !word.is_empty() && !word.starts_with(|c: char| !c.is_alphabetic()) && parses.contains(&true)
}

/// Returns a short text that [`parse_time`] parses to `span`, which is in nanoseconds.
pub fn format_time(span: Nanos) -> String {
    shortest(span, &[("s", SECOND), ("ms", MILLISECOND), ("us", MICROSECOND), ("ns", 1)])
}

/// Returns a short text that [`parse_rate`] parses to `rate`.
pub fn format_rate(rate: Rate) -> String {
    shortest(
        rate.bits(),
        &[("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)],
    )
}

/// Returns a short text that [`parse_size`] parses to `size`, which is in bytes.
pub fn format_size(size: Bytes) -> String {
    match size {
        s if s >= 1 << 20 && s.is_multiple_of(1 << 20) => format!("{}mb", s >> 20),
        s if s >= 1 << 10 && s.is_multiple_of(1 << 10) => format!("{}kb", s >> 10),
        s => format!("{s}b"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_tc_reads() {
        assert_eq!(parse_time("5ms"), Ok(5_000_000));
        assert_eq!(parse_time("1.1ms"), Ok(1_100_000));
        assert_eq!(parse_time("500us"), Ok(500_000));
        assert_eq!(parse_rate("10mbit").map(Rate::bits), Ok(10_000_000));
        assert_eq!(parse_rate("1mbps").map(Rate::bits), Ok(8_000_000));
        assert_eq!(parse_size("30kb"), Ok(30_720));
        assert_eq!(parse_size("1500"), Ok(1500));
        assert_eq!(parse_probability("2%"), Ok(0.02));
    }

    #[test]
    fn refuses_what_has_no_meaning() {
        assert_eq!(parse_time("5"), Err(QuantityError::NoUnit));
        assert_eq!(parse_rate("10"), Err(QuantityError::NoUnit));
        assert_eq!(parse_rate("0mbit"), Err(QuantityError::NotANumber));
        assert_eq!(parse_time("ms"), Err(QuantityError::NotANumber));
        assert_eq!(parse_time("1.2.3ms"), Err(QuantityError::NotANumber));
        assert_eq!(parse_time("5parsec"), Err(QuantityError::UnknownUnit));
        assert_eq!(parse_probability("101%"), Err(QuantityError::TooLarge));
    }

    #[test]
    fn a_frame_takes_its_time_rounded_up() {
        let rate = Rate::new(10_000_000).unwrap();
        assert_eq!(rate.transmission_time(1514), 1_211_200);
        assert_eq!(Rate::new(3).unwrap().transmission_time(1), 2_666_666_667);
    }

    proptest! {
        #[test]
        fn texts_read_back(value in 1u64..1_000_000_000_000_000) {
            prop_assert_eq!(parse_time(&format_time(value)), Ok(value));
            prop_assert_eq!(parse_rate(&format_rate(Rate::new(value).unwrap())).map(Rate::bits), Ok(value));
            prop_assert_eq!(parse_size(&format_size(value)), Ok(value));
        }

        #[test]
        fn never_panics(text in "\\PC{0,24}") {
            let _ = (parse_time(&text), parse_rate(&text), parse_size(&text), parse_probability(&text));
        }
    }
}
