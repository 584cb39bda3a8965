//! Between the words of `tc` and the kernel's numbers: values of 32 bits as `tc` reads them, and how
//! they are written back.

use sojourn_units::MICROSECOND;
use sojourn_units::words::{Given, Kind, Word, WordError};
use std::fmt;

pub(crate) use sojourn_units::words::Text;

/// Why a queue cannot be had from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoKernelEquivalent {
    /// The discipline.
    pub discipline: &'static str,
    /// What the kernel lacks.
    pub reason: String,
}

impl fmt::Display for NoKernelEquivalent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no kernel equivalent of this `{}`: {}", self.discipline, self.reason)
    }
}

impl std::error::Error for NoKernelEquivalent {}

/// `limit` of a discipline that drops on arrival what does not fit.
pub(crate) const LIMIT: Word = Word {
    name: "limit",
    kind: Kind::Packets,
    default: "1000p",
    doc: "Packets that fit; more are dropped on arrival.",
};

/// `ecn`, off by default.
pub(crate) const ECN: Word = Word {
    name: "ecn",
    kind: Kind::Switch { off: "noecn" },
    default: "noecn",
    doc: "Marks ECN-capable packets instead of dropping them.",
};

/// The value of `word`, if it fits the kernel's 32 bits.
fn narrow(given: &Given, word: &str, value: Option<u64>) -> Result<Option<u32>, WordError> {
    value
        .map(u32::try_from)
        .transpose()
        .map_err(|_| given.error(word, format!("`{word}` is too large: it has 32 bits")))
}

/// A number of packets.
pub(crate) fn packets(given: &Given, word: &str) -> Result<Option<u32>, WordError> {
    narrow(given, word, given.integer(word))
}

/// A number of bytes.
pub(crate) fn size(given: &Given, word: &str) -> Result<Option<u32>, WordError> {
    narrow(given, word, given.integer(word))
}

/// A time in whole microseconds, rounded down as `tc` does.
pub(crate) fn micros(given: &Given, word: &str) -> Result<Option<u32>, WordError> {
    narrow(given, word, given.time(word).map(|t| t / MICROSECOND))
}

/// A probability, in the kernel's fractions.
pub(crate) fn probability(given: &Given, word: &str) -> Option<u32> {
    given.real(word).map(probability_q32)
}

/// The value of `word` by `read`; refuses 0, which `tc` takes for "not given".
pub(crate) fn above_zero(
    given: &Given,
    word: &str,
    read: fn(&Given, &str) -> Result<Option<u32>, WordError>,
) -> Result<Option<u32>, WordError> {
    let value = read(given, word)?;
    if value == Some(0) {
        return Err(given.error(word, format!("`{word}` must be above 0")));
    }
    Ok(value)
}

/// Takes over a value that is given; otherwise `field` keeps its own.
pub(crate) fn set<T>(field: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *field = value;
    }
}

/// Microseconds as `tc` reads them exactly.
pub(crate) fn time_text(micros: u32) -> String {
    if micros.is_multiple_of(1000) { format!("{}ms", micros / 1000) } else { format!("{micros}us") }
}

/// A probability as a fraction of 2^32, rounded down; one is all but one part.
pub(crate) fn probability_q32(p: f64) -> u32 {
    (p * 4_294_967_296.0) as u32
}

/// The shortest decimal fraction near `p` that `reads` back, below one.
pub(crate) fn fraction_text(p: f64, reads: impl Fn(f64) -> bool) -> String {
    for digits in 1..=12 {
        let scale = 10u64.pow(digits);
        let below = (p * scale as f64) as u64;
        // A reader that rounds takes the nearer of the two, one that cuts the upper.
        for numerator in [below, below + 1] {
            let text = format!("0.{numerator:0width$}", width = digits as usize);
            if numerator < scale && text.parse().is_ok_and(&reads) {
                return text;
            }
        }
    }
    format!("{p:.12}")
}
