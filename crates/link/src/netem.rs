//! Impairments in netem's words.

use crate::params::{
    Chance, Impairments, Jitter, JitterDistribution, LONGEST, Loss, Params, Reorder, Slot, WireRate,
};
use sojourn_units::clocking::rounded;
use sojourn_units::declare::Choices;
use sojourn_units::quantity::{
    format_rate, format_size, format_time, parse_rate, parse_size, parse_time,
};
use sojourn_units::words::{Kind, Table, Text, Token, WordError};
use sojourn_units::{Nanos, words};

/// The words, for help. The values after a word are those of netem's manual page.
pub const TABLE: Table = Table {
    name: "netem",
    summary: "delay and impairments of packets on a link, behind its queue",
    source: "Linux sch_netem.c, tc-netem(8)",
    words: words! {
        "delay", Kind::Time, "0",
            "TIME [JITTER [CORRELATION]] [distribution uniform|normal|pareto|paretonormal]: propagation delay and its variation; variation may reorder packets, unless there is `rate` or `keeporder`.";
        "loss", Kind::Name, "0%",
            "[random] PERCENT [CORRELATION], gemodel P [R [1-H [1-K]]], or state P13 [P31 [P32 [P23 [P14]]]]: packets lost on the wire, after the queue.";
        "duplicate", Kind::Name, "0%", "PERCENT [CORRELATION]: packets that arrive twice.";
        "corrupt", Kind::Name, "0%",
            "PERCENT [CORRELATION]: packets that arrive with one bit flipped.";
        "reorder", Kind::Name, "0%",
            "PERCENT [CORRELATION]: packets that skip the delay and overtake others; needs a delay.";
        "gap", Kind::Integer { min: 1, max: u32::MAX as u64 }, "1",
            "Least distance, in packets, between two packets that overtake.";
        "ecn", Kind::Flag, "", "ECN-capable packets are marked instead of lost by `loss`.";
        "keeporder", Kind::Flag, "", "Variation of the delay never reorders (not in netem).";
        "rate", Kind::Rate, "",
            "RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]: a transmitter on the wire, behind delay and queue; packets wait there for the packets before them, up to `limit`, by default 1000 packets.";
        "limit", Kind::Integer { min: 1, max: u32::MAX as u64 }, "",
            "Maximum number of packets on the wire; further packets are lost. No limit by default; 1000 with `rate`.";
        "slot", Kind::Name, "",
            "MIN [MAX], or distribution NAME DELAY JITTER; [packets N] [bytes SIZE]: packets that are due wait for the next slot and arrive together.";
    },
};

/// Default of `limit` with `rate`, in packets, as in `tc`.
const LIMIT: u32 = 1000;

const RATE_NOTICE: &str = "netem's `rate` holds packets on the wire, where no queue discipline acts; \
                           for a bottleneck with a queue give the link's `rate`";

/// Words that are allowed only after another word, and where to write them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("state", "write the loss model after `loss`"),
    ("gemodel", "write the loss model after `loss`"),
    ("distribution", "write `distribution` after `delay TIME JITTER`"),
];

/// The delay and the impairments that a description in netem's words gives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Netem {
    /// Propagation delay.
    pub delay: Nanos,
    /// All other effects of the wire.
    pub impairments: Impairments,
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    end: usize,
    notices: Vec<String>,
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
        if token.text.starts_with('-') {
            return Err(complaint(token, &format!("`{word}` needs a time of 0 or more"), "15ms"));
        }
        let parsed = match (token.text, parse_time(token.text)) {
            // Unlike other disciplines, netem reads a number without a unit as nanoseconds.
            (bare, Err(_)) if is_number(bare) => parse_time(&format!("{bare}ns")).inspect(|span| {
                self.bare(word, bare, &format_time(*span), "a time in nanoseconds");
            }),
            (_, parsed) => parsed,
        };
        parsed.ok().filter(|&t| t <= LONGEST).ok_or_else(|| {
            complaint(token, &format!("`{word}` needs a time with its unit, such as 15ms"), "15ms")
        })
    }

    fn percent(&mut self, word: &str) -> Result<f64, WordError> {
        let token = self.needed(word, "percent", "1%")?;
        let mut parsed = parse_percent(token.text);
        if parsed.is_none() && is_number(token.text) {
            let text = format!("{}%", token.text);
            parsed = parse_percent(&text);
            if parsed.is_some_and(|p| p > 0.0) {
                self.bare(word, token.text, &text, "percent");
            }
        }
        parsed.ok_or_else(|| {
            let why = format!("`{word}` needs percent from 0% to 100%, such as 1%");
            complaint(token, &why, "1%")
        })
    }

    /// Adds a notice of the unit in which `tc` reads a number without a unit.
    fn bare(&mut self, word: &str, value: &str, read: &str, takes: &str) {
        self.notices
            .push(format!("`{word} {value}` is read as {read}: without a unit `tc` takes {takes}"));
    }

    fn whole(&mut self, word: &str, what: &str, example: &str) -> Result<u32, WordError> {
        let token = self.needed(word, what, example)?;
        let number = token.text.parse().ok().filter(|&number| number > 0);
        number.ok_or_else(|| complaint(token, &format!("`{word}` needs {what} above 0"), example))
    }

    /// Returns a whole number of bytes that may be below zero, if one follows; `tc` prints `label`
    /// before it.
    fn bytes(&mut self, label: &str) -> Result<Option<i32>, WordError> {
        let is_labelled = self.next_if(|word| word == label).is_some();
        let is_value =
            |word: &str| word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        match self.next_if(is_value) {
            Some(token) => token.text.parse().map(Some).map_err(|_| {
                complaint(token, &format!("`rate` needs a whole number for its {label}"), "0")
            }),
            None if is_labelled => Err(self.needed(label, "a number", "0").map_or_else(
                |missing| missing,
                |token| complaint(token, &format!("`{label}` needs a whole number"), "0"),
            )),
            None => Ok(None),
        }
    }

    /// Returns the percentage that follows, if any, with or without `label` before it.
    fn labelled(&mut self, word: &str, label: &str) -> Result<Option<f64>, WordError> {
        match self.next_if(|word| word == label) {
            Some(_) => self.percent(word).map(Some),
            None => self.more(word),
        }
    }

    /// Returns a percentage, if one follows.
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

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && text.bytes().any(|b| b.is_ascii_digit())
}

fn complaint(token: Token<'_>, why: &str, example: &str) -> WordError {
    let mut error = token.error(format!("{why}; found `{}`", token.text), vec![example.to_owned()]);
    error.nearest = None;
    error
}

/// Returns a percentage as a fraction of one.
fn parse_percent(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%')?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    // The decimal point is moved in the text, without a division, so that every probability has an
    // exact text.
    format!("{number}e-2").parse().ok().filter(|&p: &f64| p <= 1.0)
}

/// Returns the text that [`parse_percent`] reads back as exactly `probability`.
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
    /// word `netem` is optional.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        Self::read(text).map(|(netem, _)| netem)
    }

    /// Returns notices about a description that [`Netem::parse`] reads.
    pub fn warnings(text: &str) -> Vec<String> {
        Self::read(text).map(|(_, notices)| notices).unwrap_or_default()
    }

    fn read(text: &str) -> Result<(Self, Vec<String>), WordError> {
        let tokens = words::tokens(text);
        let mut reader = Reader { tokens: &tokens, end: text.len(), notices: Vec::new() };
        reader.next_if(|word| word == "netem");
        let netem = Self::read_words(&mut reader)?;
        Ok((netem, reader.notices))
    }

    fn read_words(reader: &mut Reader<'_>) -> Result<Self, WordError> {
        let mut netem = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        let (mut gap, mut reorder_at, mut ecn_at) = (None, None, None);
        while let Some(token) = reader.next() {
            if seen.contains(&token.text) {
                return Err(token.error(format!("`{}` is given twice", token.text), Vec::new()));
            }
            seen.push(token.text);
            match token.text {
                "delay" | "latency" => read_delay(&mut netem, reader)?,
                "loss" | "drop" => netem.impairments.loss = read_loss(reader)?,
                "duplicate" => netem.impairments.duplicate = reader.chance("duplicate")?,
                "corrupt" => netem.impairments.corrupt = reader.chance("corrupt")?,
                "reorder" => {
                    let Chance { probability, correlation } = reader.chance("reorder")?;
                    netem.impairments.reorder = Some(Reorder { probability, correlation, gap: 1 });
                    reorder_at = Some(token);
                }
                "gap" => {
                    gap = Some((token, reader.whole("gap", "a number of packets", "5")?));
                }
                "rate" => netem.impairments.rate = Some(read_rate(reader)?),
                "limit" => {
                    let limit = reader.whole("limit", "a number of packets", "1000")?;
                    netem.impairments.limit = Some(limit);
                }
                "slot" => netem.impairments.slot = read_slot(reader)?,
                "seed" => {
                    reader.needed("seed", "a number", "1")?;
                    reader.notices.push("`seed` has no effect: the seed is the run's".to_owned());
                }
                "keeporder" => netem.impairments.keep_order = true,
                "ecn" => {
                    netem.impairments.ecn = true;
                    ecn_at = Some(token);
                }
                _ => return Err(unknown(token)),
            }
        }
        if let Some(token) = ecn_at.filter(|_| netem.impairments.loss == Loss::None) {
            return Err(token.error("`ecn` needs `loss`".to_owned(), Vec::new()));
        }
        if netem.impairments.rate.is_some() {
            netem.impairments.limit.get_or_insert(LIMIT);
            reader.notices.push(RATE_NOTICE.to_owned());
            let rate = netem.impairments.rate.map(|rate| WireRate { overhead: 0, cell: 0, ..rate });
            reader.notices.extend(rate.and_then(|wire| {
                rounded("rate", wire.rate.bits(), |length| wire.transmission_time(length))
            }));
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
                (true, _) => "`reorder` needs `delay TIME`: without delay no packet is overtaken",
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
        let distribution = read_distribution(reader)?;
        let Some(jitter) = &mut jitter else {
            let why = "`distribution` needs the variation's span: delay TIME JITTER".to_owned();
            return Err(word.error(why, Vec::new()));
        };
        jitter.distribution = distribution;
    }
    // A jitter of 0 is no jitter: packets keep their order and need no heap.
    netem.impairments.jitter = jitter.filter(|jitter| jitter.span > 0);
    Ok(())
}

/// `RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`.
fn read_rate(reader: &mut Reader<'_>) -> Result<WireRate, WordError> {
    let token = reader.needed("rate", "a rate", "10mbit")?;
    let parsed = match parse_rate(token.text) {
        Err(_) if is_number(token.text) => {
            parse_rate(&format!("{}bit", token.text)).inspect(|rate| {
                let read = format_rate(*rate);
                reader.bare("rate", token.text, &read, "a rate in bits per second");
            })
        }
        parsed => parsed,
    };
    let rate = parsed.map_err(|_| {
        complaint(token, "`rate` needs a rate above zero with its unit, such as 10mbit", "10mbit")
    })?;
    let overhead = reader.bytes("packetoverhead")?.unwrap_or(0);
    let cell = reader.bytes("cellsize")?.unwrap_or(0);
    let cell_overhead = reader.bytes("celloverhead")?.unwrap_or(0);
    let cell = u32::try_from(cell)
        .map_err(|_| complaint(token, "`rate` needs a size of cells of 0 or more", "48"))?;
    Ok(WireRate { rate, overhead, cell, cell_overhead })
}

/// `MIN [MAX]` or `distribution NAME DELAY JITTER`, then `[packets N] [bytes SIZE]`. If the time
/// between slots is 0, there are no slots, as in netem.
fn read_slot(reader: &mut Reader<'_>) -> Result<Option<Slot>, WordError> {
    let starts_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let mut slot = Slot { delay: 0, spread: 0, distribution: None, packets: None, bytes: None };
    if let Some(word) = reader.next_if(|word| word == "distribution") {
        // `tc` does not print the distribution's name, so its pasted output lacks the name.
        if reader.tokens.first().is_some_and(|token| !starts_number(token.text)) {
            slot.distribution = Some(read_distribution(reader)?);
        } else {
            return Err(word.error(
                "`tc` does not print the distribution of slots: add its name".to_owned(),
                JitterDistribution::NAMES.iter().map(|name| (*name).to_owned()).collect(),
            ));
        }
        slot.delay = reader.time("slot")?;
        reader.next_if(|word| word == "jitter");
        slot.spread = reader.time("slot")?;
    } else {
        slot.delay = reader.time("slot")?;
        if reader.tokens.first().is_some_and(|token| starts_number(token.text)) {
            let token = reader.tokens[0];
            let most = reader.time("slot")?;
            slot.spread = most.checked_sub(slot.delay).ok_or_else(|| {
                complaint(token, "`slot` needs a longest time not below its shortest", "20ms")
            })?;
        }
    }
    if reader.next_if(|word| word == "packets").is_some() {
        slot.packets = Some(reader.whole("packets", "a number of packets", "5")?);
    }
    if reader.next_if(|word| word == "bytes").is_some() {
        let token = reader.needed("bytes", "a size", "15kb")?;
        let bytes = parse_size(token.text).ok().and_then(|bytes| u32::try_from(bytes).ok());
        let bytes = bytes.filter(|bytes| *bytes > 0);
        slot.bytes = Some(bytes.ok_or_else(|| {
            complaint(token, "`bytes` needs a size above 0, such as 15kb", "15kb")
        })?);
    }
    Ok((slot.delay > 0 || slot.spread > 0).then_some(slot))
}

fn read_distribution(reader: &mut Reader<'_>) -> Result<JitterDistribution, WordError> {
    let token = reader.needed("distribution", "a name", "normal")?;
    JitterDistribution::named(token.text).ok_or_else(|| {
        let names = JitterDistribution::NAMES.iter().map(|name| (*name).to_owned()).collect();
        token.error(format!("unknown distribution `{}`", token.text), names).listing("known")
    })
}

fn read_loss(reader: &mut Reader<'_>) -> Result<Loss, WordError> {
    if reader.next_if(|word| word == "gemodel").is_some() {
        reader.next_if(|word| word == "p");
        let p = reader.percent("loss gemodel")?;
        let r = reader.labelled("loss gemodel", "r")?.unwrap_or(1.0 - p);
        let bad_loss = reader.labelled("loss gemodel", "1-h")?.unwrap_or(1.0);
        let good_loss = reader.labelled("loss gemodel", "1-k")?.unwrap_or(0.0);
        return Ok(Loss::Gemodel { p, r, bad_loss, good_loss });
    }
    if reader.next_if(|word| word == "state").is_some() {
        reader.next_if(|word| word == "p13");
        let p13 = reader.percent("loss state")?;
        let p31 = reader.labelled("loss state", "p31")?.unwrap_or(1.0 - p13);
        let p32 = reader.labelled("loss state", "p32")?.unwrap_or(0.0);
        let p23 = reader.labelled("loss state", "p23")?.unwrap_or(1.0);
        let p14 = reader.labelled("loss state", "p14")?.unwrap_or(0.0);
        return Ok(Loss::State { p13, p31, p32, p23, p14 });
    }
    let named = reader.next_if(|word| word == "random").is_some();
    match reader.tokens.first() {
        Some(token) if !named && token.text.starts_with(char::is_alphabetic) => {
            let allowed = ["random", "gemodel", "state", "1%"].map(str::to_owned).to_vec();
            Err(token.error(
                format!("unknown loss model `{}`; known: random, gemodel, state", token.text),
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
    /// See [`Netem::parse`]; then the parameters are unchanged.
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
            Loss::State { p13, p31, p32, p23, p14 } => {
                let numbers = [p13, p31, p32, p23, p14].map(format_percent).join(" ");
                text.value("loss state", numbers)
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
        for (word, is_set) in [("ecn", i.ecn), ("keeporder", i.keep_order)] {
            if is_set {
                text = text.flag(word);
            }
        }
        if let Some(WireRate { rate, overhead, cell, cell_overhead }) = i.rate {
            text = text.value("rate", format_rate(rate));
            text = text.flag(&format!("{overhead} {cell} {cell_overhead}"));
        }
        text = text.optional("limit", i.limit);
        if let Some(Slot { delay, spread, distribution, packets, bytes }) = i.slot {
            text = match distribution {
                Some(distribution) => text
                    .value("slot distribution", distribution.name())
                    .flag(&format_time(delay))
                    .flag(&format_time(spread)),
                None => text.value("slot", format_time(delay)).flag(&format_time(delay + spread)),
            };
            text = text
                .optional("packets", packets)
                .optional("bytes", bytes.map(|b| format_size(b.into())));
        }
        f.write_str(text.done().trim_start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sojourn_units::{MILLISECOND, Rate};

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
                ..Impairments::default()
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
    fn reads_rate_limit_slots_and_states() {
        let rate = |bits| Rate::new(bits).unwrap();
        let wire = |text| parse(text).impairments;
        let plain = WireRate { rate: rate(1_000_000), overhead: 0, cell: 0, cell_overhead: 0 };
        assert_eq!(wire("rate 1mbit").rate, Some(plain));
        assert_eq!(
            (wire("rate 1mbit").limit, wire("rate 1mbit limit 9").limit),
            (Some(1000), Some(9))
        );
        assert_eq!((wire("delay 1ms").limit, wire("delay 1ms limit 9").limit), (None, Some(9)));
        let cells = WireRate { rate: rate(5_000_000), overhead: -20, cell: 48, cell_overhead: 5 };
        assert_eq!(wire("rate 5mbit -20 48 5").rate, Some(cells));
        let slot = Slot {
            delay: 800_000,
            spread: 200_000,
            distribution: None,
            packets: None,
            bytes: None,
        };
        assert_eq!(wire("slot 800us 1ms").slot, Some(slot));
        assert_eq!(
            wire("slot distribution pareto 1ms 2ms packets 5 bytes 9kb").slot,
            Some(Slot {
                delay: MILLISECOND,
                spread: 2 * MILLISECOND,
                distribution: Some(JitterDistribution::Pareto),
                packets: Some(5),
                bytes: Some(9216),
            })
        );
        assert_eq!(wire("slot 0").slot, None);
        assert_eq!(
            wire("loss state 1% 10% 5% 50% 2%").loss,
            Loss::State { p13: 0.01, p31: 0.1, p32: 0.05, p23: 0.5, p14: 0.02 }
        );
        assert_eq!(
            wire("loss state 1%").loss,
            Loss::State { p13: 0.01, p31: 0.99, p32: 0.0, p23: 1.0, p14: 0.0 }
        );
    }

    /// Lines as iproute2 7.2 accepts and prints them.

    #[test]
    fn numbers_without_a_unit_are_as_tc_reads_them() {
        for (bare, meant, notice) in [
            ("delay 15000000", "delay 15ms", "`delay 15000000` is read as 15ms"),
            ("loss 0.3", "loss 0.3%", "`loss 0.3` is read as 0.3%"),
            ("rate 1000", "rate 1kbit", "`rate 1000` is read as 1kbit"),
            ("loss 1% seed 9", "loss 1%", "`seed` has no effect"),
        ] {
            assert_eq!(parse(bare), parse(meant));
            let notices = Netem::warnings(bare);
            assert!(notices.iter().any(|text| text.starts_with(notice)), "{notices:?}");
        }
        assert!(Netem::warnings("rate 1mbit")[0].contains("the link's `rate`"));
        assert!(Netem::warnings("delay 15ms 0 loss 0").is_empty());
    }

    #[test]
    fn errors_say_where_what_and_what_instead() {
        let error = |text: &str| Netem::parse(text).unwrap_err();
        let says = |text: &str, at: std::ops::Range<usize>, message: &str| {
            let error = error(text);
            assert_eq!((error.to_string().as_str(), error.at), (message, at), "{text}");
        };
        says("dealy 15ms", 0..5, "unknown word `dealy` for `netem`: did you mean `delay`?");
        says("delay 15h", 6..9, "`delay` needs a time with its unit, such as 15ms; found `15h`");
        says("delay -5ms", 6..10, "`delay` needs a time of 0 or more; found `-5ms`");
        says("loss 0.3x", 5..9, "`loss` needs percent from 0% to 100%, such as 1%; found `0.3x`");
        says("ecn", 0..3, "`ecn` needs `loss`");
        says(
            "rate 0mbit",
            5..10,
            "`rate` needs a rate above zero with its unit, such as 10mbit; found `0mbit`",
        );
        says("limit 0", 6..7, "`limit` needs a number of packets above 0; found `0`");
        says(
            "slot 20ms 10ms",
            10..14,
            "`slot` needs a longest time not below its shortest; found `10ms`",
        );
        says("slot 1ms bytes 0", 15..16, "`bytes` needs a size above 0, such as 15kb; found `0`");
        says("loss 101%", 5..9, "`loss` needs percent from 0% to 100%, such as 1%; found `101%`");
        says("loss", 4..4, "`loss` needs percent, such as 1%");
        says(
            "loss gemodle 1%",
            5..12,
            "unknown loss model `gemodle`; known: random, gemodel, state: did you mean `gemodel`?",
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
        says(
            "reorder 5%",
            0..7,
            "`reorder` needs `delay TIME`: without delay no packet is overtaken",
        );
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
            [0.0f64..=1.0, 0.0f64..=1.0, 0.0f64..=1.0, 0.0f64..=1.0, 0.0f64..=1.0]
                .prop_map(|[p13, p31, p32, p23, p14]| Loss::State { p13, p31, p32, p23, p14 }),
        ];
        let rate = (1u64..1 << 40, any::<i32>(), 0u32..99, any::<i32>()).prop_map(
            |(bits, overhead, cell, cell_overhead)| WireRate {
                rate: Rate::new(bits).unwrap(),
                overhead,
                cell,
                cell_overhead,
            },
        );
        let slot = (
            span(),
            span(),
            proptest::option::of(0usize..4),
            proptest::option::of(1u32..99),
            proptest::option::of(1u32..99_999),
        )
            .prop_map(|(delay, spread, index, packets, bytes)| {
                let distribution = index.map(|index| JitterDistribution::ALL[index]);
                Slot { delay, spread, distribution, packets, bytes }
            });
        let more = (
            proptest::option::of(rate),
            proptest::option::of(1u32..99),
            proptest::option::of(slot),
            any::<bool>(),
        );
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
            more,
        )
            .prop_map(|(delay, jitter, loss, duplicate, corrupt, reorder, keep, more)| {
                Netem {
                    delay,
                    impairments: Impairments {
                        jitter,
                        loss,
                        duplicate,
                        corrupt,
                        reorder,
                        keep_order: keep && reorder.is_none(),
                        ecn: more.3 && loss != Loss::None,
                        limit: more.1.or(more.0.map(|_| LIMIT)),
                        rate: more.0,
                        slot: more.2,
                    },
                }
            })
    }

    proptest! {
        #[test]
        fn texts_read_back(netem in any_netem()) {
            let text = netem.to_string();
            prop_assert_eq!(Netem::parse(&text).unwrap(), netem, "{}", text);
            let mut impairments = netem.impairments;
            impairments.check(|keys, why| panic!("{keys:?}: {why}"));
            impairments.duplicate.probability = 1.5;
            let mut wrong = Vec::new();
            impairments.check(|keys, _| wrong.extend_from_slice(keys));
            prop_assert_eq!(wrong, ["duplicate"]);
        }

        #[test]
        fn percentages_read_back_exactly(p in prop_oneof![0.0f64..=1.0, 0.0f64..1e-6]) {
            prop_assert_eq!(parse_percent(&format_percent(p)), Some(p));
        }

        #[test]
        fn never_panics(
            text in "\\PC{0,60}",
            words in "((delay|loss|gemodel|state|p13|random|reorder|gap|distribution|normal|rate|slot|limit|bytes|packets|ecn|seed|packetoverhead|tc|qdisc|netem|1%|5ms|0|7|-7) ){0,8}",
        ) {
            let _ = Netem::parse(&text);
            let _ = Netem::parse(&words);
        }
    }
}
