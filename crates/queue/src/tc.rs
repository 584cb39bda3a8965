//! How `tc` reads and prints the kernel's numbers.

use std::fmt;

/// Why a queue cannot be had from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoKernelEquivalent {
    /// The discipline.
    pub discipline: String,
    /// What the kernel lacks.
    pub reason: &'static str,
}

impl fmt::Display for NoKernelEquivalent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no kernel equivalent of this `{}`: {}", self.discipline, self.reason)
    }
}

impl std::error::Error for NoKernelEquivalent {}

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
