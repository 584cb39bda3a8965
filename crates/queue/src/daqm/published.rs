//! Quirks: differences of the published code from the paper, each of which can be enabled.

use super::feature::Feature;
use sojourn_units::words::Meaning;
use sojourn_units::{MILLISECOND, Nanos, data, meanings};

/// A quirk of the published code.
#[data]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Quirk {
    /// Each evaluation discards the packets that it measures.
    Discards,
    /// A constant replaces the queue length.
    Literal,
    /// A constant replaces the measured or given interval.
    Interval,
    /// Sojourn times are truncated to milliseconds.
    WholeMs,
    /// Measurements begin with the packet after the one to send.
    Behind,
    /// Derivatives of lengths are computed once per five samples.
    Tumbling,
    /// Samples of lengths are taken at twice the time of a departure, plus `sampling`.
    Doubled,
    /// The host's clock limits the samples of lengths.
    WallClock,
    /// All features have one drop probability and one duration.
    Shared,
    /// Features that are off have default thresholds.
    Defaults,
    /// The packet after a hit is never evaluated.
    Flag,
    /// The age of the queue is counted from the start of the run.
    Absolute,
}

impl Quirk {
    /// All quirks, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Discards,
        Self::Literal,
        Self::Interval,
        Self::WholeMs,
        Self::Behind,
        Self::Tumbling,
        Self::Doubled,
        Self::WallClock,
        Self::Shared,
        Self::Defaults,
        Self::Flag,
        Self::Absolute,
    ];
}

/// Names and descriptions of the quirks, in the order of their numbers.
pub(crate) const QUIRKS: &[Meaning] = meanings! {
    "discards", "Each evaluation drops the five packets after the one to send.";
    "literal", "The number 40 replaces the queue length Q.";
    "interval", "The interval between arrivals is always 2 ms.";
    "whole-ms", "Sojourn times are truncated to milliseconds before S1 to S3 are computed.";
    "behind",
        "S and its derivatives are measured on the packets after the one to send, and Q counts only these.";
    "tumbling",
        "Q1 to Q3 are computed once per five new samples, not at each sample from the last five.";
    "doubled",
        "Samples of the queue length are not periodic: a packet sent at time t causes one at 2 t + sampling.";
    "wall-clock",
        "A sample less than wall-period after the last one is omitted; the published code used 10 ms of the host's clock.";
    "shared", "All features have the drop probability and duration of S1.";
    "defaults",
        "A feature that is off has the code's default threshold: S 2500ms, Q 200p, derivatives 50.";
    "flag", "The packet after a hit is not evaluated, even if the dropping phase has ended.";
    "absolute",
        "target is compared with the time since the start of the run, not since the creation of the queue.";
};

/// A set of quirks.
#[data]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(from = "Vec<Quirk>", into = "Vec<Quirk>")]
pub struct Quirks(u16);

impl Quirks {
    /// Returns whether the set contains `quirk`.
    pub fn has(self, quirk: Quirk) -> bool {
        self.0 >> quirk as u16 & 1 == 1
    }
}

impl FromIterator<Quirk> for Quirks {
    fn from_iter<I: IntoIterator<Item = Quirk>>(quirks: I) -> Self {
        Self(quirks.into_iter().fold(0, |set, quirk| set | 1 << quirk as u16))
    }
}

impl From<Vec<Quirk>> for Quirks {
    fn from(quirks: Vec<Quirk>) -> Self {
        quirks.into_iter().collect()
    }
}

impl From<Quirks> for Vec<Quirk> {
    fn from(quirks: Quirks) -> Self {
        Quirk::ALL.into_iter().filter(|quirk| quirks.has(*quirk)).collect()
    }
}

/// Number that replaces the queue length ([`Quirk::Literal`]).
pub(crate) const LITERAL_LENGTH: f64 = 40.0;
/// Interval between arrivals that the published code always uses ([`Quirk::Interval`]).
pub(crate) const INTERVAL: Nanos = 2 * MILLISECOND;

/// Returns the default threshold of a feature that is off ([`Quirk::Defaults`]), in the feature's
/// unit.
pub(crate) fn threshold(feature: Feature) -> f64 {
    match feature {
        Feature::S => 2500.0,
        Feature::Q => 200.0,
        _ => 50.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_have_one_name_everywhere() {
        assert_eq!(QUIRKS.len(), Quirk::ALL.len());
        for (number, quirk) in Quirk::ALL.into_iter().enumerate() {
            assert_eq!(quirk as usize, number);
            let json = serde_json::to_string(&quirk).unwrap();
            assert_eq!(json, format!("{:?}", QUIRKS[number].name));
            let alone: Quirks = [quirk].into_iter().collect();
            assert!(Quirk::ALL.into_iter().all(|other| alone.has(other) == (other == quirk)));
            assert_eq!(serde_json::to_string(&alone).unwrap(), format!("[{json}]"));
        }
        assert_eq!(Quirks::default(), Quirks::from(Vec::new()));
    }
}
