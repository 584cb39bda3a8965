//! The settings of a feature, and the paper's presets.

use super::feature::{Feature, PerFeature};
use crate::tc::probability_q32;
use serde::{Deserialize, Serialize};
use sojourn_units::words::Meaning;
use sojourn_units::{MILLISECOND, Nanos};

/// The settings of one feature.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Whether it is looked at.
    pub on: bool,
    /// Threshold, in the feature's unit (see [`Feature`]); for derivatives in both directions.
    pub threshold: f64,
    /// Probability at which arrivals are dropped in its dropping phase; one is 2^32.
    pub rate: u32,
    /// How long its dropping phase lasts.
    pub duration: Nanos,
}

/// A setting of the paper (its Table 2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preset {
    pub name: &'static str,
    /// The only feature that is on, or all.
    only: Option<Feature>,
    /// In milliseconds.
    s: f64,
    /// In packets.
    q: f64,
    /// Of the derivatives, but for Q1.
    derivatives: f64,
    q1: f64,
    rate: f64,
    duration: Nanos,
}

impl Preset {
    /// Returns one feature alone; the others have the same numbers and are off.
    const fn single(name: &'static str, only: Feature) -> Self {
        Self {
            name,
            only: Some(only),
            s: 200.0,
            q: 20.0,
            derivatives: 0.01,
            q1: 0.01,
            rate: 0.9,
            duration: 200 * MILLISECOND,
        }
    }

    /// Returns the features as it sets them.
    pub fn features(&self) -> PerFeature<Setting> {
        let of = |feature, threshold| Setting {
            on: self.only.is_none_or(|only| only == feature),
            threshold,
            rate: probability_q32(self.rate),
            duration: self.duration,
        };
        PerFeature {
            s: of(Feature::S, self.s),
            s1: of(Feature::S1, self.derivatives),
            s2: of(Feature::S2, self.derivatives),
            s3: of(Feature::S3, self.derivatives),
            q: of(Feature::Q, self.q),
            q1: of(Feature::Q1, self.q1),
            q2: of(Feature::Q2, self.derivatives),
            q3: of(Feature::Q3, self.derivatives),
        }
    }
}

/// The paper's settings: three with all features, eight with one.
pub(crate) const PRESETS: &[Preset] = &[
    Preset {
        name: "c1",
        only: None,
        s: 1000.0,
        q: 120.0,
        derivatives: 10.0,
        q1: 1.0,
        rate: 0.05,
        duration: 400 * MILLISECOND,
    },
    Preset {
        name: "c2",
        only: None,
        s: 600.0,
        q: 80.0,
        derivatives: 0.1,
        q1: 0.1,
        rate: 0.5,
        duration: 400 * MILLISECOND,
    },
    Preset {
        name: "c3",
        only: None,
        s: 100.0,
        q: 20.0,
        derivatives: 0.01,
        q1: 0.01,
        rate: 0.98,
        duration: 400 * MILLISECOND,
    },
    Preset::single("f1", Feature::S),
    Preset::single("f2", Feature::S1),
    Preset::single("f3", Feature::S2),
    Preset::single("f4", Feature::S3),
    Preset::single("f5", Feature::Q),
    Preset::single("f6", Feature::Q1),
    Preset::single("f7", Feature::Q2),
    Preset::single("f8", Feature::Q3),
];

/// The presets by name, in the same order.
pub(crate) const PRESET_NAMES: &[Meaning] = &[
    Meaning {
        name: "c1",
        doc: "All: S 1s, Q 120p, Q1 1, other derivatives 10; rate 0.05 for 400ms.",
    },
    Meaning { name: "c2", doc: "All: S 600ms, Q 80p, derivatives 0.1; rate 0.5 for 400ms." },
    Meaning { name: "c3", doc: "All: S 100ms, Q 20p, derivatives 0.01; rate 0.98 for 400ms." },
    Meaning { name: "f1", doc: "S alone: 200ms; rate 0.9 for 200ms." },
    Meaning { name: "f2", doc: "S1 alone: 0.01; rate 0.9 for 200ms." },
    Meaning { name: "f3", doc: "S2 alone: 0.01; rate 0.9 for 200ms." },
    Meaning { name: "f4", doc: "S3 alone: 0.01; rate 0.9 for 200ms." },
    Meaning { name: "f5", doc: "Q alone: 20p; rate 0.9 for 200ms." },
    Meaning { name: "f6", doc: "Q1 alone: 0.01; rate 0.9 for 200ms." },
    Meaning { name: "f7", doc: "Q2 alone: 0.01; rate 0.9 for 200ms." },
    Meaning { name: "f8", doc: "Q3 alone: 0.01; rate 0.9 for 200ms." },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_its_name() {
        let names: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
        let told: Vec<_> = PRESET_NAMES.iter().map(|m| m.name).collect();
        assert_eq!(names, told);
    }
}
