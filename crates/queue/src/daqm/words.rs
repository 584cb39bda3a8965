//! Parameters of dAQM, and the reading of their words.

use super::feature::{Feature, Interval, PerFeature, millis};
use super::lengths::Schedule;
use super::params::{PRESET_NAMES, PRESETS, Setting};
use super::published::{self, QUIRKS, Quirk, Quirks};
use crate::device::Device;
use crate::kinds::packets;
use crate::tc::{probability_q32, q32_text};
use sojourn_units::declare::{Param, group, time};
use sojourn_units::quantity::parse_time;
use sojourn_units::words::{Given, Kind, Meaning, Text, Value, Word, WordError};
use sojourn_units::{MILLISECOND, Nanos, meanings, params, words};

/// Names and descriptions of the features, in the order of their numbers.
const FEATURES: &[Meaning] = meanings! {
    "s", "Sojourn time of the oldest packet.";
    "s1", "First derivative of the sojourn time over the oldest packets, in ms per ms.";
    "s2", "Second derivative of the sojourn time, in ms per ms².";
    "s3", "Third derivative of the sojourn time, in ms per ms³.";
    "q", "Queue length, in packets.";
    "q1", "First derivative of the queue length, in packets per sample.";
    "q2", "Second derivative of the queue length, in packets per sample².";
    "q3", "Third derivative of the queue length, in packets per sample³.";
};

/// Kind of the thresholds of derivatives.
const DERIVATIVE: Kind = Kind::Real { min: 0.0, max: 1e9 };

params! {
    "daqm": "dAQM: drops packets depending on derivatives of sojourn time and queue length",
    from "Saleh, Shu, Koldehofe 2024; Shu, thesis, Groningen 2023; not in Linux";

    /// Parameters of dAQM.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Params on Device {
        /// Maximum number of packets in the queue; packets that arrive at a full queue are dropped.
        limit: u32 = packets("2000p").above_zero(),
        /// Age of the queue up to which features are not evaluated.
        target: Nanos = time("5ms"),
        /// Time between arrivals that S1 to S3 assume; `measured` uses the mean over the queued
        /// packets.
        interval: Interval = Param::word(Kind::Name, "2ms", interval, |interval| {
            Some(Value::Text(match interval {
                Interval::Measured => "measured".to_owned(),
                Interval::Constant(span) => format!("{span}ns"),
            }))
        }),
        /// Time between two samples of the queue length, for Q1 to Q3.
        sampling: Nanos = time("15ms").above_zero(),
        /// Settings of the features.
        features: PerFeature<Setting> =
            group(
                FEATURE_WORDS,
                |_| PRESETS[0].features(),
                |features, given| {
                    set_features(features, given);
                    Ok(())
                },
                write_features,
            ),
        /// Quirks of the published code.
        published: Quirks = group(QUIRK_WORDS, |_| Quirks::default(), set_quirks, write_quirks),
        /// Simulated time that corresponds to 10 ms of the host's clock, for `published
        /// wall-clock`.
        wall_period as "wall-period": Nanos = time("10ms"),
    }
}

/// Lists the words that apply to all features, then three words for each feature: threshold, drop
/// probability, duration.
macro_rules! feature_words {
    (all { $($all:tt)* } each { $($name:literal $kind:expr, $default:literal $hit:literal;)* }) => {
        words! {
            $($all)*
            $(
                concat!($name, "-threshold"), $kind, $default, concat!("Threshold: a hit if ", $hit, ".");
                concat!($name, "-rate"), Kind::Probability, "0.05",
                    concat!("Drop probability of arrivals after a hit of ", $name, ".");
                concat!($name, "-duration"), Kind::Time, "400ms",
                    concat!("Duration of the dropping phase after a hit of ", $name, ".");
            )*
        }
    };
}

const FEATURE_WORDS: &[Word] = feature_words! {
    all {
        "preset", Kind::Named { of: PRESET_NAMES }, "c1",
            "Sets all thresholds, drop probabilities and durations, and which features are on.";
        "features", Kind::List { of: FEATURES }, "all",
            "Features that are on, checked in the order s3, q3, s2, q2, s1, q1, s, q.";
        "rate", Kind::Probability, "0.05",
            "Drop probability in dropping phases; a feature's own word takes precedence.";
        "duration", Kind::Time, "400ms",
            "Duration of dropping phases; a feature's own word takes precedence.";
    }
    each {
        "s" Kind::Time, "1s" "the oldest packet's sojourn time is above it";
        "s1" DERIVATIVE, "10" "the absolute value of S1 is above it";
        "s2" DERIVATIVE, "10" "the absolute value of S2 is above it";
        "s3" DERIVATIVE, "10" "the absolute value of S3 is above it";
        "q" Kind::Packets, "120p" "the queue length is above it";
        "q1" DERIVATIVE, "1" "the absolute value of Q1 is above it";
        "q2" DERIVATIVE, "10" "the absolute value of Q2 is above it";
        "q3" DERIVATIVE, "10" "the absolute value of Q3 is above it";
    }
};

const QUIRK_WORDS: &[Word] = words! {
    "as-published", Kind::Flag, "", "Enables all quirks of the published code, as `published all`.";
    "published", Kind::List { of: QUIRKS }, "none", "Quirks of the published code to enable.";
};

fn interval(value: &Value) -> Result<Interval, String> {
    let text = value.text();
    match (text, parse_time(text)) {
        ("measured", _) => Ok(Interval::Measured),
        (_, Ok(span)) if span > 0 => Ok(Interval::Constant(span)),
        _ => Err(format!("needs a time above 0, such as 2ms, or `measured`; found `{text}`")),
    }
}

/// Returns the names of the words for one feature.
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

fn write_features(features: &PerFeature<Setting>, text: Text) -> Text {
    let on = Feature::ALL.into_iter().filter(|feature| features.of(*feature).on);
    Feature::ALL.into_iter().fold(
        text.value("features", list(on.map(Feature::name))),
        |text, feature| {
            let [threshold, rate, duration] = own(feature);
            let setting = features.of(feature);
            let limit = match feature {
                Feature::S => format!("{}ns", (setting.threshold * MILLISECOND as f64).round()),
                Feature::Q => format!("{}p", setting.threshold),
                _ => setting.threshold.to_string(),
            };
            text.value(&threshold, limit)
                .value(&rate, q32_text(setting.rate))
                .value(&duration, format_args!("{}ns", setting.duration))
        },
    )
}

/// Returns names as the value of a word of kind [`Kind::List`].
fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join("+") }
}

fn set_quirks(published: &mut Quirks, given: &Given) -> Result<(), WordError> {
    given.exclude("as-published", "published")?;
    if given.has("as-published") {
        *published = Quirk::ALL.into_iter().collect();
    }
    if let Some(quirks) = given.list("published") {
        *published = quirks.iter().map(|&number| Quirk::ALL[number]).collect();
    }
    Ok(())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "a parameter's writer takes a reference")]
fn write_quirks(published: &Quirks, text: Text) -> Text {
    let quirks = Quirk::ALL.into_iter().filter(|quirk| published.has(*quirk));
    text.value("published", list(quirks.map(|quirk| QUIRKS[quirk as usize].name)))
}

impl Params {
    /// Returns the schedule on which queue lengths are sampled.
    pub(crate) fn schedule(&self) -> Schedule {
        let wall = self.published.has(Quirk::WallClock);
        Schedule {
            period: self.sampling,
            doubled: self.published.has(Quirk::Doubled),
            gap: if wall { self.wall_period } else { 0 },
        }
    }

    /// Returns the effective interval between arrivals.
    pub(crate) fn interval(&self) -> Interval {
        if self.published.has(Quirk::Interval) {
            Interval::Constant(published::INTERVAL)
        } else {
            self.interval
        }
    }

    /// Returns the effective threshold; `None` if the feature is not evaluated.
    #[inline]
    pub(crate) fn threshold(&self, feature: Feature) -> Option<f64> {
        let setting = self.features.of(feature);
        if setting.on {
            Some(setting.threshold)
        } else {
            self.published.has(Quirk::Defaults).then(|| published::threshold(feature))
        }
    }

    /// Returns the effective drop probability and duration of the dropping phase of `feature`.
    pub(crate) fn phase(&self, feature: Feature) -> (u32, Nanos) {
        let shared = self.published.has(Quirk::Shared);
        let Setting { rate, duration, .. } =
            self.features.of(if shared { Feature::S1 } else { feature });
        (*rate, *duration)
    }

    /// Returns warnings about given words that have no effect.
    pub(super) fn without_effect(&self, given: &Given) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut idle = |word: &str, because: &str| {
            if given.has(word) {
                warnings.push(format!("`{word}` has no effect: {because}"));
            }
        };
        let has = |quirk| self.published.has(quirk);
        if has(Quirk::Interval) {
            idle("interval", "with the quirk `interval` it is always 2 ms");
        }
        if !has(Quirk::WallClock) {
            idle("wall-period", "it is used only with `published wall-clock`");
        }
        for feature in Feature::ALL {
            let [threshold, rate, duration] = own(feature);
            if !self.features.of(feature).on {
                let because = format!("{} is off", feature.name());
                idle(&threshold, &because);
                idle(&rate, &because);
                idle(&duration, &because);
            } else if has(Quirk::Shared) && feature != Feature::S1 {
                let because = "with the quirk `shared` all features use s1's";
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
    use sojourn_units::declare::Parameters;

    #[test]
    fn features_have_one_name_everywhere() {
        let names: Vec<_> = Feature::ALL.iter().map(|feature| feature.name()).collect();
        assert_eq!(FEATURES.iter().map(|meaning| meaning.name).collect::<Vec<_>>(), names);
        for feature in Feature::ALL {
            assert_eq!(serde_json::to_string(&feature).unwrap(), format!("{:?}", feature.name()));
            for word in own(feature) {
                assert!(Params::TABLE.words.iter().any(|w| w.name == word), "{word}");
            }
        }
    }
}
