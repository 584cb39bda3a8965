//! dAQM's words and how they are read.

use super::feature::{Feature, Interval, PerFeature, millis};
use super::lengths::Schedule;
use super::params::{PRESET_NAMES, PRESETS, Setting};
use super::published::{self, QUIRKS, Quirk, Quirks};
use crate::device::Device;
use crate::kinds::packets;
use crate::tc::probability_q32;
use serde::{Deserialize, Serialize};
use sojourn_units::declare::{Param, Parameters, group, time};
use sojourn_units::quantity::parse_time;
use sojourn_units::words::{Given, Kind, Meaning, Table, Value, Word, WordError};
use sojourn_units::{Nanos, params, words};

/// The features by name, in the order of their numbers.
const FEATURES: &[Meaning] = &[
    Meaning { name: "s", doc: "Wait of the oldest packet." },
    Meaning {
        name: "s1",
        doc: "First derivative of the wait along the oldest packets, in ms per ms.",
    },
    Meaning { name: "s2", doc: "Second derivative of the wait, in ms per ms²." },
    Meaning { name: "s3", doc: "Third derivative of the wait, in ms per ms³." },
    Meaning { name: "q", doc: "Packets queued." },
    Meaning { name: "q1", doc: "First derivative of the queue length, in packets a sample." },
    Meaning { name: "q2", doc: "Second derivative of the queue length, in packets a sample²." },
    Meaning { name: "q3", doc: "Third derivative of the queue length, in packets a sample³." },
];

/// A threshold of a derivative.
const DERIVATIVE: Kind = Kind::Real { min: 0.0, max: 1e9 };

/// The words of `daqm`.
pub const TABLE: Table = Table {
    name: "daqm",
    summary: "dAQM: drops by derivatives of sojourn time and queue length",
    source: "Saleh, Shu, Koldehofe 2024; Shu, thesis, Groningen 2023; not in Linux",
    words: Params::WORDS,
};

params! {
    /// Parameters of dAQM.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Params on Device {
        /// Packets that fit; more are dropped on arrival.
        limit: u32 = packets("2000p").above_zero(),
        /// Age of the queue before which nothing is evaluated.
        target: Nanos = time("5ms"),
        /// Time between arrivals for S1 to S3; `measured`: the mean over the packets queued.
        interval: Interval = Param::word(Kind::Name, "2ms", interval, |_| None),
        /// Time between two samples of the queue length, for Q1 to Q3.
        sampling: Nanos = time("15ms").above_zero(),
        /// The features.
        features: PerFeature<Setting> =
            group(
                FEATURE_WORDS,
                |_| PRESETS[0].features(),
                |features, given| {
                    set_features(features, given);
                    Ok(())
                },
                |_, text| text,
            ),
        /// Quirks of the published code.
        published: Quirks = group(QUIRK_WORDS, |_| Quirks::default(), set_quirks, |_, text| text),
        /// Simulated time in which the host's clock shows 10 ms, for `published wall-clock`.
        wall_period as "wall-period": Nanos = time("10ms"),
    }
}

/// Lists the words that apply to all features, then three words of each feature: threshold, rate,
/// duration.
macro_rules! feature_words {
    (all { $($all:tt)* } each { $($name:literal $kind:expr, $default:literal $hit:literal;)* }) => {
        words! {
            $($all)*
            $(
                concat!($name, "-threshold"), $kind, $default, concat!("Hit if ", $hit, ".");
                concat!($name, "-rate"), Kind::Probability, "0.05",
                    concat!("Drop probability after a hit of ", $name, ".");
                concat!($name, "-duration"), Kind::Time, "400ms",
                    concat!("Dropping phase after a hit of ", $name, ".");
            )*
        }
    };
}

const FEATURE_WORDS: &[Word] = feature_words! {
    all {
        "preset", Kind::Named { of: PRESET_NAMES }, "c1",
            "All thresholds, rates and durations, and which features are on.";
        "features", Kind::List { of: FEATURES }, "all",
            "Features that are on, checked in the order s3, q3, s2, q2, s1, q1, s, q.";
        "rate", Kind::Probability, "0.05",
            "Drop probability in dropping phases; a feature's own word goes before it.";
        "duration", Kind::Time, "400ms",
            "Length of dropping phases; a feature's own word goes before it.";
    }
    each {
        "s" Kind::Time, "1s" "the oldest packet has waited longer";
        "s1" DERIVATIVE, "10" "S1 is beyond this, up or down";
        "s2" DERIVATIVE, "10" "S2 is beyond this, up or down";
        "s3" DERIVATIVE, "10" "S3 is beyond this, up or down";
        "q" Kind::Packets, "120p" "more packets are queued";
        "q1" DERIVATIVE, "1" "Q1 is beyond this, up or down";
        "q2" DERIVATIVE, "10" "Q2 is beyond this, up or down";
        "q3" DERIVATIVE, "10" "Q3 is beyond this, up or down";
    }
};

const QUIRK_WORDS: &[Word] = words! {
    "as-published", Kind::Flag, "", "All quirks of the published code, as `published all`.";
    "published", Kind::List { of: QUIRKS }, "none", "Quirks of the published code to reproduce.";
};

fn interval(value: &Value) -> Result<Interval, String> {
    let text = value.text();
    match (text, parse_time(text)) {
        ("measured", _) => Ok(Interval::Measured),
        (_, Ok(span)) if span > 0 => Ok(Interval::Constant(span)),
        _ => Err(format!("needs a time above 0, such as 2ms, or `measured`; found `{text}`")),
    }
}

/// Returns the names of a feature's own words.
fn own(feature: Feature) -> [String; 3] {
    ["threshold", "rate", "duration"].map(|what| format!("{}-{what}", feature.name()))
}

fn set_features(features: &mut PerFeature<Setting>, given: &Given) {
    if let Some(name) = given.text("preset")
        && let Some(preset) = PRESETS.iter().find(|preset| preset.name == name)
    {
        *features = preset.features();
    }
    if let Some(on) = given.list("features") {
        for feature in Feature::ALL {
            features.of_mut(feature).on = on.contains(&(feature as usize));
        }
    }
    for feature in Feature::ALL {
        set_feature(feature, features.of_mut(feature), given);
    }
}

fn set_feature(feature: Feature, setting: &mut Setting, given: &Given) {
    let [threshold, rate, duration] = own(feature);
    let threshold = match feature {
        Feature::S => given.time(&threshold).map(millis),
        Feature::Q => given.integer(&threshold).map(|packets| packets as f64),
        _ => given.real(&threshold),
    };
    let rate = given.real(&rate).or(given.real("rate")).map(probability_q32);
    let duration = given.time(&duration).or(given.time("duration"));
    setting.threshold = threshold.unwrap_or(setting.threshold);
    setting.rate = rate.unwrap_or(setting.rate);
    setting.duration = duration.unwrap_or(setting.duration);
}

fn set_quirks(published: &mut Quirks, given: &Given) -> Result<(), WordError> {
    if given.has("as-published") && given.has("published") {
        return Err(given.error("published", "`as-published` and `published` exclude each other"));
    }
    if given.has("as-published") {
        *published = Quirk::ALL.into_iter().collect();
    }
    if let Some(quirks) = given.list("published") {
        *published = quirks.iter().map(|&number| Quirk::ALL[number]).collect();
    }
    Ok(())
}

impl Params {
    /// Returns when queue lengths are taken.
    pub(crate) fn schedule(&self) -> Schedule {
        let wall = self.published.has(Quirk::WallClock);
        Schedule {
            period: self.sampling,
            doubled: self.published.has(Quirk::Doubled),
            gap: if wall { self.wall_period } else { 0 },
        }
    }

    /// Returns the interval in force.
    pub(crate) fn interval(&self) -> Interval {
        if self.published.has(Quirk::Interval) {
            Interval::Constant(published::INTERVAL)
        } else {
            self.interval
        }
    }

    /// Returns the threshold in force; none of a feature that is off.
    #[inline]
    pub(crate) fn threshold(&self, feature: Feature) -> Option<f64> {
        let setting = self.features.of(feature);
        if setting.on {
            Some(setting.threshold)
        } else {
            self.published.has(Quirk::Defaults).then(|| published::threshold(feature))
        }
    }

    /// Returns the rate and duration in force for the dropping phase of `feature`.
    pub(crate) fn phase(&self, feature: Feature) -> (u32, Nanos) {
        let shared = self.published.has(Quirk::Shared);
        let Setting { rate, duration, .. } =
            self.features.of(if shared { Feature::S1 } else { feature });
        (*rate, *duration)
    }

    /// Returns the words that have no effect with the others.
    pub(super) fn without_effect(&self, given: &Given) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut idle = |word: &str, because: &str| {
            if given.has(word) {
                warnings.push(format!("`{word}` has no effect: {because}"));
            }
        };
        let has = |quirk| self.published.has(quirk);
        if has(Quirk::Interval) {
            idle("interval", "as published it is 2 ms");
        }
        if !has(Quirk::WallClock) {
            idle("wall-period", "it is for `published wall-clock`");
        }
        for feature in Feature::ALL {
            let [threshold, rate, duration] = own(feature);
            if !self.features.of(feature).on {
                let because = format!("{} is off", feature.name());
                idle(&threshold, &because);
                idle(&rate, &because);
                idle(&duration, &because);
            } else if has(Quirk::Shared) && feature != Feature::S1 {
                let because = "as published all features have s1's";
                idle(&rate, because);
                idle(&duration, because);
            }
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_have_one_name_everywhere() {
        let names: Vec<_> = Feature::ALL.iter().map(|feature| feature.name()).collect();
        assert_eq!(FEATURES.iter().map(|meaning| meaning.name).collect::<Vec<_>>(), names);
        for feature in Feature::ALL {
            assert_eq!(serde_json::to_string(&feature).unwrap(), format!("{:?}", feature.name()));
            for word in own(feature) {
                assert!(TABLE.words.iter().any(|w| w.name == word), "{word}");
            }
        }
    }
}
