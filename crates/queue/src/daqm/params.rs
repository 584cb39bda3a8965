//! Settings of the features, and the paper's presets.

use super::feature::{Feature, PerFeature};
use crate::tc::probability_q32;
use sojourn_units::words::Meaning;
use sojourn_units::{MILLISECOND, Nanos, data, meanings};

/// Settings of a feature.
#[data]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Whether the feature is evaluated.
    pub on: bool,
    /// Threshold in the feature's unit (see [`Feature`]), compared with the absolute value.
    pub threshold: f64,
    /// Drop probability of arrivals in the feature's dropping phase, in units of 2^-32.
    pub rate: u32,
    /// Duration of the feature's dropping phase, in nanoseconds.
    pub duration: Nanos,
}

/// A preset of the paper (Table 2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preset {
    pub name: &'static str,
    /// The only feature that is on; `None` if all are on.
    only: Option<Feature>,
    /// Threshold of S, in milliseconds.
    s: f64,
    /// Threshold of Q, in packets.
    q: f64,
    /// Threshold of all derivatives except Q1.
    derivatives: f64,
    q1: f64,
    rate: f64,
    duration: Nanos,
}

impl Preset {
    /// Returns a preset with one feature on; all presets of this kind have the same numbers.
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

    /// Returns the settings of all features.
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

/// The paper's presets: three with all features, eight with one feature.
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

/// Names and descriptions of the presets, in the order of `PRESETS`.
pub(crate) const PRESET_NAMES: &[Meaning] = meanings! {
    "c1",
        "All features: S 1s, Q 120p, Q1 1, other derivatives 10; drop probability 0.05 for 400ms.";
    "c2", "All features: S 600ms, Q 80p, derivatives 0.1; drop probability 0.5 for 400ms.";
    "c3", "All features: S 100ms, Q 20p, derivatives 0.01; drop probability 0.98 for 400ms.";
    "f1", "Only S: 200ms; drop probability 0.9 for 200ms.";
    "f2", "Only S1: 0.01; drop probability 0.9 for 200ms.";
    "f3", "Only S2: 0.01; drop probability 0.9 for 200ms.";
    "f4", "Only S3: 0.01; drop probability 0.9 for 200ms.";
    "f5", "Only Q: 20p; drop probability 0.9 for 200ms.";
    "f6", "Only Q1: 0.01; drop probability 0.9 for 200ms.";
    "f7", "Only Q2: 0.01; drop probability 0.9 for 200ms.";
    "f8", "Only Q3: 0.01; drop probability 0.9 for 200ms.";
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_its_name() {
        let names: Vec<_> = PRESETS.iter().map(|p| p.name).collect();
        let documented: Vec<_> = PRESET_NAMES.iter().map(|m| m.name).collect();
        assert_eq!(names, documented);
    }
}
