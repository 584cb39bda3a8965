//! dAQM's words and how they are read.

use super::feature::{Feature, Interval, millis};
use super::params::{PRESET_NAMES, PRESETS, Params};
use super::published::{QUIRKS, Quirk};
use crate::tc::{above_zero, packets, probability, set};
use sojourn_units::Nanos;
use sojourn_units::quantity::parse_time;
use sojourn_units::words::{Given, Kind, Meaning, Table, Word, WordError};

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

/// Words before and after those of the features, three for each feature.
macro_rules! words {
    (
        before { $($before:expr,)* }
        features { $($name:literal $kind:expr, $default:literal $hit:literal;)* }
        after { $($after:expr,)* }
    ) => {
        &[
            $($before,)*
            $(
                Word {
                    name: concat!($name, "-threshold"),
                    kind: $kind,
                    default: $default,
                    doc: concat!("Hit if ", $hit, "."),
                },
                Word {
                    name: concat!($name, "-rate"),
                    kind: Kind::Probability,
                    default: "0.05",
                    doc: concat!("Drop probability after a hit of ", $name, "."),
                },
                Word {
                    name: concat!($name, "-duration"),
                    kind: Kind::Time,
                    default: "400ms",
                    doc: concat!("Dropping phase after a hit of ", $name, "."),
                },
            )*
            $($after,)*
        ]
    };
}

/// The words of `daqm`.
pub const TABLE: Table = Table {
    name: "daqm",
    summary: "dAQM: drops by derivatives of sojourn time and queue length",
    source: "Saleh, Shu, Koldehofe 2024; Shu, thesis, Groningen 2023; not in Linux",
    words: words! {
        before {
            Word {
                name: "preset",
                kind: Kind::Named { of: PRESET_NAMES },
                default: "c1",
                doc: "All thresholds, rates and durations, and which features are on.",
            },
            Word {
                name: "limit",
                kind: Kind::Packets,
                default: "2000p",
                doc: "Packets that fit; more are dropped on arrival.",
            },
            Word {
                name: "target",
                kind: Kind::Time,
                default: "5ms",
                doc: "Age of the queue before which nothing is evaluated.",
            },
            Word {
                name: "interval",
                kind: Kind::Name,
                default: "2ms",
                doc: "Time between arrivals that S1 to S3 reckon with; `measured`: the mean over the packets queued.",
            },
            Word {
                name: "sampling",
                kind: Kind::Time,
                default: "15ms",
                doc: "Time between two samples of the queue length, for Q1 to Q3.",
            },
            Word {
                name: "features",
                kind: Kind::List { of: FEATURES },
                default: "all",
                doc: "Features that are on, checked in the order s3, q3, s2, q2, s1, q1, s, q.",
            },
            Word {
                name: "rate",
                kind: Kind::Probability,
                default: "0.05",
                doc: "Drop probability in dropping phases; a feature's own word goes before it.",
            },
            Word {
                name: "duration",
                kind: Kind::Time,
                default: "400ms",
                doc: "Length of dropping phases; a feature's own word goes before it.",
            },
        }
        features {
            "s" Kind::Time, "1s" "the oldest packet has waited longer";
            "s1" DERIVATIVE, "10" "S1 is beyond this, up or down";
            "s2" DERIVATIVE, "10" "S2 is beyond this, up or down";
            "s3" DERIVATIVE, "10" "S3 is beyond this, up or down";
            "q" Kind::Packets, "120p" "more packets are queued";
            "q1" DERIVATIVE, "1" "Q1 is beyond this, up or down";
            "q2" DERIVATIVE, "10" "Q2 is beyond this, up or down";
            "q3" DERIVATIVE, "10" "Q3 is beyond this, up or down";
        }
        after {
            Word {
                name: "as-published",
                kind: Kind::Flag,
                default: "",
                doc: "All quirks of the published code, as `published all`.",
            },
            Word {
                name: "published",
                kind: Kind::List { of: QUIRKS },
                default: "none",
                doc: "Quirks of the published code to reproduce.",
            },
            Word {
                name: "wall-period",
                kind: Kind::Time,
                default: "10ms",
                doc: "Simulated time in which the host's clock shows 10 ms, for `published wall-clock`.",
            },
        }
    },
};

/// A time above 0.
fn span(given: &Given, word: &str) -> Result<Option<Nanos>, WordError> {
    match given.time(word) {
        Some(0) => Err(given.error(word, format!("`{word}` must be above 0"))),
        span => Ok(span),
    }
}

fn interval(given: &Given) -> Result<Option<Interval>, WordError> {
    match given.text("interval") {
        None => Ok(None),
        Some("measured") => Ok(Some(Interval::Measured)),
        Some(text) => match parse_time(text) {
            Ok(span) if span > 0 => Ok(Some(Interval::Constant(span))),
            _ => Err(given.error(
                "interval",
                format!(
                    "`interval` needs a time above 0, such as 2ms, or `measured`; found `{text}`"
                ),
            )),
        },
    }
}

/// The names of a feature's own words.
fn own(feature: Feature) -> [String; 3] {
    ["threshold", "rate", "duration"].map(|what| format!("{}-{what}", feature.name()))
}

impl Params {
    pub(crate) fn set(&mut self, given: &Given) -> Result<(), WordError> {
        set(&mut self.limit, above_zero(given, "limit", packets)?);
        set(&mut self.target, given.time("target"));
        set(&mut self.interval, interval(given)?);
        set(&mut self.sampling, span(given, "sampling")?);
        set(&mut self.wall_period, given.time("wall-period"));
        if let Some(name) = given.text("preset")
            && let Some(preset) = PRESETS.iter().find(|preset| preset.name == name)
        {
            self.features = preset.features();
        }
        if let Some(on) = given.list("features") {
            for feature in Feature::ALL {
                self.features.of_mut(feature).on = on.contains(&(feature as usize));
            }
        }
        for feature in Feature::ALL {
            self.set_feature(feature, given);
        }
        if given.has("as-published") && given.has("published") {
            return Err(
                given.error("published", "`as-published` and `published` exclude each other")
            );
        }
        if given.has("as-published") {
            self.published = Quirk::ALL.into_iter().collect();
        }
        if let Some(quirks) = given.list("published") {
            self.published = quirks.iter().map(|&number| Quirk::ALL[number]).collect();
        }
        Ok(())
    }

    fn set_feature(&mut self, feature: Feature, given: &Given) {
        let [threshold, rate, duration] = own(feature);
        let setting = self.features.of_mut(feature);
        set(
            &mut setting.threshold,
            match feature {
                Feature::S => given.time(&threshold).map(millis),
                Feature::Q => given.integer(&threshold).map(|packets| packets as f64),
                _ => given.real(&threshold),
            },
        );
        set(&mut setting.rate, probability(given, &rate).or(probability(given, "rate")));
        set(&mut setting.duration, given.time(&duration).or(given.time("duration")));
    }

    /// Words that have no effect beside the others.
    pub(crate) fn warnings(&self, given: &Given) -> Vec<String> {
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
