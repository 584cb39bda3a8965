//! Impairments in netem's words.

use crate::params::{
    Chance, Impairments, Jitter, JitterDistribution, LONGEST, Loss, Params, Reorder,
};
use sojourn_units::declare::Choices;
use sojourn_units::quantity::{format_time, parse_time};
use sojourn_units::words::{Kind, Table, Text, Token, WordError};
use sojourn_units::{Nanos, words};

/// The words, for help; values may follow each other as netem's manual page says.
pub const TABLE: Table = Table {
    name: "netem",
    summary: "what the wire does to packets",
    source: "Linux sch_netem.c, tc-netem(8)",
    words: words! {
        "delay", Kind::Time, "0",
            "TIME [JITTER [CORRELATION]] [distribution uniform|normal|pareto|paretonormal]: propagation delay and its variation; variation may reorder packets.";
        "loss", Kind::Name, "0%",
            "[random] PERCENT [CORRELATION], or gemodel P [R [1-H [1-K]]]: packets lost on the wire, after the queue.";
        "duplicate", Kind::Name, "0%", "PERCENT [CORRELATION]: packets that arrive twice.";
        "corrupt", Kind::Name, "0%",
            "PERCENT [CORRELATION]: packets that arrive with one bit flipped.";
        "reorder", Kind::Name, "0%",
            "PERCENT [CORRELATION]: packets that skip the delay and overtake; needs a delay.";
        "gap", Kind::Integer { min: 1, max: u32::MAX as u64 }, "1",
            "Only every so many packets is a candidate for reordering.";
        "keeporder", Kind::Flag, "", "Variation of the delay never reorders (not in netem).";
    },
};

/// Words of netem that mean something else here.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "rate",
        "a link's rate is set by its own key `rate`, before the queue; netem's would be after it",
    ),
    ("limit", "packets on the wire are not limited; the queue's limit is set in `queue`"),
    ("slot", "slots are not emulated"),
    ("ecn", "lost packets are not marked instead; for ECN choose a queue with `ecn`"),
    ("seed", "the seed is the run's"),
    ("state", "write the loss model after `loss`"),
    ("gemodel", "write the loss model after `loss`"),
    ("distribution", "write `distribution` after `delay TIME JITTER`"),
];

/// The delay and the impairments that a description in netem's words gives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Netem {
    /// Propagation delay.
    pub delay: Nanos,
    /// The rest.
    pub impairments: Impairments,
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    end: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        let (&first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn next_if(&mut self, wanted: impl FnOnce(&str) -> bool) -> Option<Token<'a>> {
        let first = self.tokens.first()?;
        if wanted(first.text) { self.next() } else { None }
    }

    fn needed(&mut self, after: &str, what: &str, example: &str) -> Result<Token<'a>, WordError> {
        self.next().ok_or_else(|| WordError {
            message: format!("`{after}` needs {what}, such as {example}"),
            at: self.end..self.end,
            found: String::new(),
            allowed: vec![example.to_owned()],
            nearest: None,
        })
    }

    fn time(&mut self, word: &str) -> Result<Nanos, WordError> {
        let token = self.needed(word, "a time", "15ms")?;
        parse_time(token.text).ok().filter(|&t| t <= LONGEST).ok_or_else(|| {
            complaint(token, &format!("`{word}` needs a time with its unit, such as 15ms"), "15ms")
        })
    }

    fn percent(&mut self, word: &str) -> Result<f64, WordError> {
        let token = self.needed(word, "percent", "1%")?;
        parse_percent(token.text).ok_or_else(|| {
            let why = format!("`{word}` needs percent from 0% to 100%, such as 1%");
            complaint(token, &why, "1%")
        })
    }

    /// A percentage, if one follows.
    fn more(&mut self, word: &str) -> Result<Option<f64>, WordError> {
        match self.tokens.first() {
            Some(token) if token.text.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                self.percent(word).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn chance(&mut self, word: &str) -> Result<Chance, WordError> {
        let probability = self.percent(word)?;
        Ok(Chance { probability, correlation: self.more(word)?.unwrap_or(0.0) })
    }
}

fn complaint(token: Token<'_>, why: &str, example: &str) -> WordError {
    let mut error = token.error(format!("{why}; found `{}`", token.text), vec![example.to_owned()]);
    error.nearest = None;
    error
}

/// A percentage as a fraction of one. The sign must be there: netem itself takes `1` for 1 %, other
/// programs for 100 %.
fn parse_percent(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%')?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    // Two places are shifted in the text, not divided off: so every probability has a text.
    format!("{number}e-2").parse().ok().filter(|&p: &f64| p <= 1.0)
}

/// The text that [`parse_percent`] reads back as exactly `probability`.
fn format_percent(probability: f64) -> String {
    let text = format!("{probability}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = format!("{fraction:0<2}");
    let (shifted, rest) = fraction.split_at(2);
    let whole = format!("{whole}{shifted}");
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let rest = rest.trim_end_matches('0');
    if rest.is_empty() { format!("{whole}%") } else { format!("{whole}.{rest}%") }
}

impl Netem {
    /// Reads a description such as `delay 15ms 2ms 25% distribution normal loss 1%`; the leading
    /// word `netem` may be there.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let tokens = words::tokens(text);
        let mut reader = Reader { tokens: &tokens, end: text.len() };
        reader.next_if(|word| word == "netem");
        let mut netem = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        let (mut gap, mut reorder_at) = (None, None);
        while let Some(token) = reader.next() {
            if seen.contains(&token.text) {
                return Err(token.error(format!("`{}` is given twice", token.text), Vec::new()));
            }
            seen.push(token.text);
            match token.text {
                "delay" => read_delay(&mut netem, &mut reader)?,
                "loss" => netem.impairments.loss = read_loss(&mut reader)?,
                "duplicate" => netem.impairments.duplicate = reader.chance("duplicate")?,
                "corrupt" => netem.impairments.corrupt = reader.chance("corrupt")?,
                "reorder" => {
                    let Chance { probability, correlation } = reader.chance("reorder")?;
                    netem.impairments.reorder = Some(Reorder { probability, correlation, gap: 1 });
                    reorder_at = Some(token);
                }
                "gap" => {
                    let value = reader.needed("gap", "a number of packets", "5")?;
                    let number = value.text.parse::<u32>().ok().filter(|&gap| gap > 0);
                    gap = Some((
                        token,
                        number.ok_or_else(|| {
                            complaint(value, "`gap` needs a number of packets above 0", "5")
                        })?,
                    ));
                }
                "keeporder" => netem.impairments.keep_order = true,
                _ => return Err(unknown(token)),
            }
        }
        match (gap, &mut netem.impairments.reorder) {
            (Some((_, gap)), Some(reorder)) => reorder.gap = gap,
            (Some((token, _)), None) => {
                return Err(token.error("`gap` needs `reorder PERCENT`".to_owned(), Vec::new()));
            }
            (None, _) => {}
        }
        if let Some(token) = reorder_at {
            let no_delay = netem.delay == 0 && netem.impairments.jitter.is_none();
            let why = match (no_delay, netem.impairments.keep_order) {
                (true, _) => "`reorder` needs `delay TIME`: without delay nobody is overtaken",
                (_, true) => "`reorder` and `keeporder` exclude each other",
                _ => return Ok(netem),
            };
            return Err(token.error(why.to_owned(), Vec::new()));
        }
        Ok(netem)
    }
}

fn read_delay(netem: &mut Netem, reader: &mut Reader<'_>) -> Result<(), WordError> {
    netem.delay = reader.time("delay")?;
    let number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let mut jitter = None;
    if reader.tokens.first().is_some_and(|token| number(token.text)) {
        let span = reader.time("delay")?;
        let correlation = reader.more("delay")?.unwrap_or(0.0);
        jitter = Some(Jitter { span, correlation, distribution: JitterDistribution::Uniform });
    }
    if let Some(word) = reader.next_if(|word| word == "distribution") {
        let token = reader.needed("distribution", "a name", "normal")?;
        let Some(distribution) = JitterDistribution::named(token.text) else {
            let names = JitterDistribution::NAMES.iter().map(|name| (*name).to_owned()).collect();
            return Err(token.error(format!("unknown distribution `{}`", token.text), names));
        };
        let Some(jitter) = &mut jitter else {
            let why = "`distribution` needs the variation's span: delay TIME JITTER".to_owned();
            return Err(word.error(why, Vec::new()));
        };
        jitter.distribution = distribution;
    }
    // A variation of nothing is none, and must not cost a heap.
    netem.impairments.jitter = jitter.filter(|jitter| jitter.span > 0);
    Ok(())
}

fn read_loss(reader: &mut Reader<'_>) -> Result<Loss, WordError> {
    if reader.next_if(|word| word == "gemodel").is_some() {
        let p = reader.percent("loss gemodel")?;
        let r = reader.more("loss gemodel")?.unwrap_or(1.0 - p);
        let bad_loss = reader.more("loss gemodel")?.unwrap_or(1.0);
        let good_loss = reader.more("loss gemodel")?.unwrap_or(0.0);
        return Ok(Loss::Gemodel { p, r, bad_loss, good_loss });
    }
    let named = reader.next_if(|word| word == "random").is_some();
    match reader.tokens.first() {
        Some(token) if !named && token.text.starts_with(char::is_alphabetic) => {
            let allowed = ["random", "gemodel", "1%"].map(str::to_owned).to_vec();
            Err(token.error(
                format!("unknown loss model `{}`; known: random, gemodel", token.text),
                allowed,
            ))
        }
        _ => {
            let Chance { probability, correlation } = reader.chance("loss")?;
            Ok(if probability > 0.0 {
                Loss::Random { probability, correlation }
            } else {
                Loss::None
            })
        }
    }
}

fn unknown(token: Token<'_>) -> WordError {
    let allowed: Vec<String> = TABLE.words.iter().map(|word| word.name.to_owned()).collect();
    if let Some((_, why)) = ELSEWHERE.iter().find(|(word, _)| *word == token.text) {
        let mut error = token.error(format!("`{}`: {why}", token.text), allowed);
        error.nearest = None;
        return error;
    }
    let list = allowed.join(", ");
    let mut error = token.error(format!("unknown word `{}` for `netem`", token.text), allowed);
    if error.nearest.is_none() {
        error.message.push_str("; it takes ");
        error.message.push_str(&list);
    }
    error
}

impl Params {
    /// Takes delay and impairments from a description in netem's words.
    ///
    /// # Errors
    /// See [`Netem::parse`]; nothing has changed then.
    pub fn set_netem(&mut self, text: &str) -> Result<(), WordError> {
        let Netem { delay, impairments } = Netem::parse(text)?;
        self.delay = delay;
        self.impairments = impairments;
        Ok(())
    }
}

impl std::fmt::Display for Netem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let i = &self.impairments;
        let correlated = |text: Text, correlation: f64| {
            if correlation > 0.0 { text.flag(&format_percent(correlation)) } else { text }
        };
        let chance = |text: Text, word: &str, probability: f64, correlation: f64| {
            correlated(text.value(word, format_percent(probability)), correlation)
        };
        let mut text = Text::new("");
        if self.delay > 0 || i.jitter.is_some() {
            text = text.value("delay", format_time(self.delay));
        }
        if let Some(Jitter { span, correlation, distribution }) = i.jitter {
            text = correlated(text.flag(&format_time(span)), correlation);
            if distribution != JitterDistribution::default() {
                text = text.value("distribution", distribution.name());
            }
        }
        text = match i.loss {
            Loss::None => text,
            Loss::Random { probability, correlation } => {
                chance(text, "loss", probability, correlation)
            }
            Loss::Gemodel { p, r, bad_loss, good_loss } => {
                let numbers = [p, r, bad_loss, good_loss].map(format_percent).join(" ");
                text.value("loss gemodel", numbers)
            }
        };
        for (word, Chance { probability, correlation }) in
            [("duplicate", i.duplicate), ("corrupt", i.corrupt)]
        {
            if probability > 0.0 {
                text = chance(text, word, probability, correlation);
            }
        }
        if let Some(Reorder { probability, correlation, gap }) = i.reorder {
            text = chance(text, "reorder", probability, correlation).value("gap", gap);
        }
        if i.keep_order {
            text = text.flag("keeporder");
        }
        f.write_str(text.done().trim_start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sojourn_units::MILLISECOND;

    fn parse(text: &str) -> Netem {
        Netem::parse(text).unwrap()
    }

    #[test]
    fn reads_what_netem_reads() {
        let all = parse(
            "delay 15ms 2ms 25% distribution normal loss 1% duplicate 0.1% reorder 25% 50% gap 5",
        );
        assert_eq!(all.delay, 15 * MILLISECOND);
        assert_eq!(
            all.impairments,
            Impairments {
                jitter: Some(Jitter {
                    span: 2 * MILLISECOND,
                    correlation: 0.25,
                    distribution: JitterDistribution::Normal
                }),
                loss: Loss::Random { probability: 0.01, correlation: 0.0 },
                duplicate: Chance { probability: 0.001, correlation: 0.0 },
                corrupt: Chance::default(),
                reorder: Some(Reorder { probability: 0.25, correlation: 0.5, gap: 5 }),
                keep_order: false,
            }
        );
        assert_eq!(
            parse("loss random 1% 20%").impairments.loss,
            Loss::Random { probability: 0.01, correlation: 0.2 }
        );
        assert_eq!(
            parse("netem loss gemodel 1% 10% 70% 0.1%").impairments.loss,
            Loss::Gemodel { p: 0.01, r: 0.1, bad_loss: 0.7, good_loss: 0.001 }
        );
        assert_eq!(
            parse("loss gemodel 1%").impairments.loss,
            Loss::Gemodel { p: 0.01, r: 0.99, bad_loss: 1.0, good_loss: 0.0 }
        );
        assert_eq!(parse(""), Netem::default());
        assert_eq!(parse("delay 0 loss 0%"), Netem::default());
        assert_eq!(parse("delay 10ms 0ms 25%").impairments.jitter, None);
        assert!(parse("delay 10ms 1ms keeporder").impairments.keep_order);
        assert_eq!(parse("delay 10ms reorder 5%").impairments.reorder.unwrap().gap, 1);
    }

    #[test]
    fn errors_say_where_what_and_what_instead() {
        let error = |text: &str| Netem::parse(text).unwrap_err();
        let says = |text: &str, at: std::ops::Range<usize>, message: &str| {
            let error = error(text);
            assert_eq!((error.to_string().as_str(), error.at), (message, at), "{text}");
        };
        says("dealy 15ms", 0..5, "unknown word `dealy` for `netem`: did you mean `delay`?");
        says("delay 15", 6..8, "`delay` needs a time with its unit, such as 15ms; found `15`");
        says("loss 0.3", 5..8, "`loss` needs percent from 0% to 100%, such as 1%; found `0.3`");
        says("loss 101%", 5..9, "`loss` needs percent from 0% to 100%, such as 1%; found `101%`");
        says("loss", 4..4, "`loss` needs percent, such as 1%");
        says(
            "loss gemodle 1%",
            5..12,
            "unknown loss model `gemodle`; known: random, gemodel: did you mean `gemodel`?",
        );
        says(
            "delay 1ms 2ms distribution norml",
            27..32,
            "unknown distribution `norml`: did you mean `normal`?",
        );
        says("loss 1% loss 2%", 8..12, "`loss` is given twice");
        says("gap 5", 0..3, "`gap` needs `reorder PERCENT`");
        says(
            "delay 1ms reorder 5% gap 0",
            25..26,
            "`gap` needs a number of packets above 0; found `0`",
        );
        says("reorder 5%", 0..7, "`reorder` needs `delay TIME`: without delay nobody is overtaken");
        assert!(
            error("rate 10mbit").message.contains("a link's rate is set by its own key `rate`")
        );
        assert!(error("limit 1000").message.contains("queue"));
        assert!(error("loss state 1%").message.contains("known: random, gemodel"));
        assert!(error("delay 1ms distribution normal").message.contains("delay TIME JITTER"));
        assert!(error("delay 1ms 1ms reorder 5% keeporder").message.contains("exclude"));
        assert!(error("xyzzy").message.contains("it takes delay, loss"));
    }

    fn chance() -> impl Strategy<Value = Chance> {
        (1e-9f64..=1.0, prop_oneof![Just(0.0), 0.0f64..=1.0])
            .prop_map(|(probability, correlation)| Chance { probability, correlation })
    }

    fn any_netem() -> impl Strategy<Value = Netem> {
        let span = || 1u64..1 << 50;
        let jitter = (span(), 0.0f64..=1.0, 0usize..4).prop_map(|(span, correlation, index)| {
            Jitter { span, correlation, distribution: JitterDistribution::ALL[index] }
        });
        let loss = prop_oneof![
            Just(Loss::None),
            chance().prop_map(|Chance { probability, correlation }| {
                Loss::Random { probability, correlation }
            }),
            (0.0f64..=1.0, 0.0f64..=1.0, 0.0f64..=1.0, 0.0f64..=1.0).prop_map(
                |(p, r, bad_loss, good_loss)| Loss::Gemodel { p, r, bad_loss, good_loss }
            ),
        ];
        let reorder = (chance(), 1u32..100).prop_map(|(c, gap)| Reorder {
            probability: c.probability,
            correlation: c.correlation,
            gap,
        });
        let maybe = || prop_oneof![Just(Chance::default()), chance()];
        (
            span(),
            proptest::option::of(jitter),
            loss,
            maybe(),
            maybe(),
            proptest::option::of(reorder),
            any::<bool>(),
        )
            .prop_map(|(delay, jitter, loss, duplicate, corrupt, reorder, keep)| Netem {
                delay,
                impairments: Impairments {
                    jitter,
                    loss,
                    duplicate,
                    corrupt,
                    reorder,
                    keep_order: keep && reorder.is_none(),
                },
            })
    }

    proptest! {
        #[test]
        fn texts_read_back(netem in any_netem()) {
            let text = netem.to_string();
            prop_assert_eq!(Netem::parse(&text).unwrap(), netem, "{}", text);
            let queue = sojourn_queue::Params::parse("pfifo", &sojourn_queue::Device::default());
            let Netem { delay, impairments } = netem;
            let mut params =
                Params { rate: None, trace: None, overhead: 0, delay, impairments, queue: queue.unwrap() };
            prop_assert_eq!(params.check(), Ok(()));
            params.impairments.duplicate.probability = 1.5;
            prop_assert!(params.check().is_err());
        }

        #[test]
        fn percentages_read_back_exactly(p in prop_oneof![0.0f64..=1.0, 0.0f64..1e-6]) {
            prop_assert_eq!(parse_percent(&format_percent(p)), Some(p));
        }

        #[test]
        fn never_panics(
            text in "\\PC{0,60}",
            words in "((delay|loss|gemodel|random|reorder|gap|distribution|normal|1%|5ms|0|7) ){0,8}",
        ) {
            let _ = Netem::parse(&text);
            let _ = Netem::parse(&words);
        }
    }
}
