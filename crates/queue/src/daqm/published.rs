//! Differences of the published code from its paper, each of which can be selected.

use super::feature::Feature;
use serde::{Deserialize, Serialize};
use sojourn_units::words::Meaning;
use sojourn_units::{MILLISECOND, Nanos};

/// One quirk of the published code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quirk {
    /// Packets are taken out to be measured.
    Discards,
    /// The queue length is a number in the text.
    Literal,
    /// The interval is a number in the text.
    Interval,
    /// Fractions of milliseconds are lost.
    WholeMs,
    /// Measuring begins behind the packet to send.
    Behind,
    /// Lengths are evaluated by fives.
    Tumbling,
    /// Lengths are taken far too late.
    Doubled,
    /// Lengths are taken by the host's clock.
    WallClock,
    /// All features have one rate and one duration.
    Shared,
    /// Features that are off are on.
    Defaults,
    /// A flag outlives its use.
    Flag,
    /// The time is the run's.
    Absolute,
}

impl Quirk {
    /// All, in the order of their numbers.
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

/// The quirks by name, in the order of their numbers.
pub(crate) const QUIRKS: &[Meaning] = &[
    Meaning {
        name: "discards",
        doc: "Each evaluation removes the five packets behind the one to be sent and discards them.",
    },
    Meaning { name: "literal", doc: "The number 40 replaces the queue length Q." },
    Meaning { name: "interval", doc: "The interval is always 2 ms." },
    Meaning {
        name: "whole-ms",
        doc: "Waits lose their fractions of a millisecond before S1 to S3.",
    },
    Meaning {
        name: "behind",
        doc: "S and its derivatives are of the packets behind the one to be sent, and only those count as queued.",
    },
    Meaning {
        name: "tumbling",
        doc: "Q1 to Q3 are taken of each five new samples, not of the last five at each sample.",
    },
    Meaning {
        name: "doubled",
        doc: "No periodic samples: a packet sent at t asks for one at 2 t + sampling.",
    },
    Meaning {
        name: "wall-clock",
        doc: "A sample sooner than wall-period after the one before is left out; it was 10 ms of the host's clock.",
    },
    Meaning { name: "shared", doc: "S1's rate and duration replace every feature's." },
    Meaning {
        name: "defaults",
        doc: "A feature that is off keeps the code's own threshold: S 2500ms, Q 200p, derivatives 50.",
    },
    Meaning {
        name: "flag",
        doc: "The next packet to leave after a hit is not evaluated, even if the phase is over.",
    },
    Meaning {
        name: "absolute",
        doc: "target is compared with the run's time, not with the time since the queue was made.",
    },
];

/// Any quirks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Quirk>", into = "Vec<Quirk>")]
pub struct Quirks(u16);

impl Quirks {
    /// Returns whether `quirk` is among them.
    #[inline]
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

/// Number used instead of the queue length ([`Quirk::Literal`]).
pub(crate) const LITERAL_LENGTH: f64 = 40.0;
/// The interval that is never set ([`Quirk::Interval`]).
pub(crate) const INTERVAL: Nanos = 2 * MILLISECOND;

/// Returns the threshold that a feature has if none is set ([`Quirk::Defaults`]).
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
