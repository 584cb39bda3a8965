//! Between the words of `tc` and the kernel's numbers: values of 32 bits as `tc` reads them, and how
//! they are written back.

use sojourn_units::MICROSECOND;
use sojourn_units::words::{Given, WordError};
use std::fmt;

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

/// Refuses 0, which `tc` takes for "not given".
pub(crate) fn above_zero(
    given: &Given,
    word: &str,
    value: Option<u32>,
) -> Result<Option<u32>, WordError> {
    if value == Some(0) {
        return Err(given.error(word, format!("`{word}` must be above 0")));
    }
    Ok(value)
}

/// Microseconds as `tc` reads them exactly.
pub(crate) fn time_text(micros: u32) -> String {
    if micros.is_multiple_of(1000) { format!("{}ms", micros / 1000) } else { format!("{micros}us") }
}

/// A probability as a fraction of 2^32, rounded down; one is all but one part.
pub(crate) fn probability_q32(p: f64) -> u32 {
    (p * 4_294_967_296.0) as u32
}
