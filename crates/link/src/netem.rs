//! Impairments in netem's words.

use crate::params::{Chance, Impairments, Jitter, JitterDistribution, Loss, Params, Reorder};
use sojourn_units::Nanos;
use sojourn_units::quantity::{format_time, parse_time};
use sojourn_units::words::{self, Kind, Table, Token, Word, WordError};

/// The words, for help; values may follow each other as netem's manual page says.
pub const TABLE: Table = Table {
    name: "netem",
    summary: "what the wire does to packets",
    source: "Linux sch_netem.c, tc-netem(8)",
    words: &[
        Word {
            name: "delay",
            kind: Kind::Time,
            default: "0",
            doc: "TIME [JITTER [CORRELATION]] [distribution uniform|normal|pareto|paretonormal]: \
                  propagation delay and its variation; variation may reorder packets.",
        },
        Word {
            name: "loss",
            kind: Kind::Name,
            default: "0%",
            doc: "[random] PERCENT [CORRELATION], or gemodel P [R [1-H [1-K]]]: packets lost on the \
                  wire, after the queue.",
        },
        Word {
            name: "duplicate",
            kind: Kind::Name,
            default: "0%",
            doc: "PERCENT [CORRELATION]: packets that arrive twice.",
        },
        Word {
            name: "corrupt",
            kind: Kind::Name,
            default: "0%",
            doc: "PERCENT [CORRELATION]: packets that arrive with one bit flipped.",
        },
        Word {
            name: "reorder",
            kind: Kind::Name,
            default: "0%",
            doc: "PERCENT [CORRELATION]: packets that skip the delay and overtake; needs a delay.",
        },
        Word {
            name: "gap",
            kind: Kind::Integer { min: 1, max: u32::MAX as u64 },
            default: "1",
            doc: "Only every so many packets is a candidate for reordering.",
        },
        Word {
            name: "keeporder",
            kind: Kind::Flag,
            default: "",
            doc: "Variation of the delay never reorders (not in netem).",
        },
    ],
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
        parse_time(token.text).ok().filter(|&t| t <= Nanos::MAX / 4).ok_or_else(|| {
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
        let known = JitterDistribution::ALL.iter().find(|(name, _)| *name == token.text);
        let names = || JitterDistribution::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
        let Some((_, distribution)) = known else {
            return Err(token.error(format!("unknown distribution `{}`", token.text), names()));
        };
        let Some(jitter) = &mut jitter else {
            let why = "`distribution` needs the variation's span: delay TIME JITTER".to_owned();
            return Err(word.error(why, Vec::new()));
        };
        jitter.distribution = *distribution;
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
        Some(token)
            if !named && !token.text.starts_with(|c: char| c.is_ascii_digit() || c == '.') =>
        {
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

    /// Delay and impairments in netem's words, empty if there are none. `keeporder` is our own word.
    pub fn to_netem(&self) -> String {
        Netem { delay: self.delay, impairments: self.impairments }.to_string()
    }
}

impl std::fmt::Display for Netem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let i = &self.impairments;
        let mut words: Vec<String> = Vec::new();
        let chance = |word: &str, probability: f64, correlation: f64| {
            let mut text = format!("{word} {}", format_percent(probability));
            if correlation > 0.0 {
                text.push(' ');
                text.push_str(&format_percent(correlation));
            }
            text
        };
        if self.delay > 0 || i.jitter.is_some() {
            let mut text = format!("delay {}", format_time(self.delay));
            if let Some(jitter) = i.jitter {
                text.push(' ');
                text.push_str(&format_time(jitter.span));
                if jitter.correlation > 0.0 {
                    text.push(' ');
                    text.push_str(&format_percent(jitter.correlation));
                }
                let name = JitterDistribution::ALL.iter().find(|(_, d)| *d == jitter.distribution);
                match name {
                    Some((name, _)) if *name != "uniform" => {
                        text.push_str(" distribution ");
                        text.push_str(name);
                    }
                    _ => {}
                }
            }
            words.push(text);
        }
        match i.loss {
            Loss::None => {}
            Loss::Random { probability, correlation } => {
                words.push(chance("loss", probability, correlation));
            }
            Loss::Gemodel { p, r, bad_loss, good_loss } => {
                let numbers = [p, r, bad_loss, good_loss].map(format_percent).join(" ");
                words.push(format!("loss gemodel {numbers}"));
            }
        }
        for (word, what) in [("duplicate", i.duplicate), ("corrupt", i.corrupt)] {
            if what.probability > 0.0 {
                words.push(chance(word, what.probability, what.correlation));
            }
        }
        if let Some(Reorder { probability, correlation, gap }) = i.reorder {
            words.push(chance("reorder", probability, correlation));
            words.push(format!("gap {gap}"));
        }
        if i.keep_order {
            words.push("keeporder".to_owned());
        }
        f.write_str(&words.join(" "))
    }
}
