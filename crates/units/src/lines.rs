//! Lines that users paste from `tc`: commands, and the output of `tc qdisc show`.
//!
//! Both contain a discipline and its words, preceded by device, handle and parent, which are
//! ignored. [`Line::read`] extracts the description and records the positions of its words.

use crate::words::{Token, WordError, tokens};
use std::ops::Range;

/// Form of the text from which a description was extracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The text is a description.
    Plain,
    /// The text is one or more commands of `tc`.
    Command,
    /// The text is output of `tc qdisc show`.
    Shown,
}

/// A description extracted from a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Form of the text.
    pub source: Source,
    /// Words of the description, each with its byte range in the text.
    pub words: Vec<(String, Range<usize>)>,
    /// Notices about ignored parts that have an effect in Linux.
    pub notices: Vec<String>,
}

/// Disciplines that hold no packets themselves: they have child disciplines or no queue.
const HOLDERS: &[&str] = &["noqueue", "mq", "ingress", "clsact"];

impl Line {
    /// Extracts the description from `text`. A text that is neither a command nor output of `tc` is
    /// taken as a description.
    ///
    /// # Errors
    /// If a command names no discipline, or if several disciplines remain.
    pub fn read(text: &str) -> Result<Self, WordError> {
        let tokens = tokens(text);
        let found = match kind(&tokens) {
            Source::Plain => return Ok(Self::of(Source::Plain, &tokens)),
            Source::Command => commands(&separated(&tokens))?,
            Source::Shown => shown(&tokens),
        };
        one_of(found)
    }

    fn of(source: Source, tokens: &[Token<'_>]) -> Self {
        let words = tokens.iter().map(|token| (quoted(token), token.range())).collect();
        Self { source, words, notices: Vec::new() }
    }

    /// Returns the description as one line.
    pub fn text(&self) -> String {
        self.words.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Converts the byte range of an error in [`Line::text`] to the range in the original text.
    #[must_use]
    pub fn placed(&self, error: WordError) -> WordError {
        let mut begin = 0;
        let mut at: Option<Range<usize>> = None;
        for (word, place) in &self.words {
            let end = begin + word.len();
            if begin < error.at.end.max(error.at.start + 1) && error.at.start < end {
                at = Some(at.map_or(place.clone(), |at| at.start..place.end));
            }
            begin = end + 1;
        }
        let end = self.words.last().map_or(0, |(_, place)| place.end);
        WordError { at: at.unwrap_or(end..end), ..error }
    }
}

/// Returns a word, in quotation marks if it is empty or contains white space.
fn quoted(token: &Token<'_>) -> String {
    if token.text.is_empty() || token.text.contains(char::is_whitespace) {
        return format!("\"{}\"", token.text);
    }
    token.text.to_owned()
}

fn is_tc(word: &str) -> bool {
    word == "tc" || word.ends_with("/tc")
}

/// Returns whether the word is a handle or class in `tc`'s syntax: `8001:`, `1:10`.
fn is_handle(word: &str) -> bool {
    word.split_once(':').is_some_and(|(major, minor)| {
        [major, minor].iter().all(|part| part.bytes().all(|b| b.is_ascii_hexdigit()))
    })
}

fn kind(tokens: &[Token<'_>]) -> Source {
    let word = |n: usize| tokens.get(n).map_or("", |token| token.text);
    let first = usize::from(word(0) == "sudo");
    if is_tc(word(first)) || word(0) == "qdisc" && verb(word(1)).is_some() {
        Source::Command
    } else if word(0) == "qdisc" || is_handle(word(1)) {
        Source::Shown
    } else {
        Source::Plain
    }
}

/// Returns the words of commands. A semicolon at the end of a word is split off as a word of its
/// own.
fn separated<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut all = Vec::new();
    for token in tokens {
        match token.text.strip_suffix(';') {
            Some(text) if !text.is_empty() => {
                all.push(Token { text, ..*token });
                all.push(Token { text: ";", at: token.at + text.len() });
            }
            _ => all.push(*token),
        }
    }
    all
}

#[derive(Clone, Copy, PartialEq)]
enum Verb {
    Set,
    Delete,
    Show,
}

/// Returns the kind of the command that `word` abbreviates: the first one in the list below that
/// begins with `word`, as in `do_qdisc` of `tc_qdisc.c`.
fn verb(word: &str) -> Option<Verb> {
    let commands = [
        ("add", Verb::Set),
        ("change", Verb::Set),
        ("replace", Verb::Set),
        ("link", Verb::Set),
        ("delete", Verb::Delete),
        ("list", Verb::Show),
        ("show", Verb::Show),
        ("ls", Verb::Show),
    ];
    let begins = |(name, _): &(&str, Verb)| !word.is_empty() && name.starts_with(word);
    commands.into_iter().find(begins).map(|(_, verb)| verb)
}

/// Returns whether a word is `qdisc` or one of its abbreviations, as in `tc`.
fn is_qdisc(word: &str) -> bool {
    !word.is_empty() && "qdisc".starts_with(word)
}

fn error(token: &Token<'_>, message: &str) -> WordError {
    let found = token.text.to_owned();
    WordError {
        message: message.to_owned(),
        at: token.range(),
        found,
        allowed: Vec::new(),
        nearest: None,
    }
}

/// Returns the disciplines that the commands set.
fn commands(tokens: &[Token<'_>]) -> Result<Vec<Line>, WordError> {
    let begins = |token: &Token<'_>| is_tc(token.text) || matches!(token.text, "sudo" | "&&" | ";");
    let mut found = Vec::new();
    for command in tokens.split(begins) {
        // In a file for `tc -batch`, commands are not separated by `;` or `&&`.
        for command in batch(command) {
            let options = command.iter().take_while(|token| token.text.starts_with('-')).count();
            // Commands for classes and filters are ignored, since their disciplines are not
            // supported in this form.
            let Some((object, rest)) = command[options..].split_first() else { continue };
            if !is_qdisc(object.text) {
                continue;
            }
            match rest.split_first().map(|(word, rest)| (word, verb(word.text), rest)) {
                Some((word, Some(Verb::Set), rest)) => found.push(set(rest, word)?),
                Some((_, Some(Verb::Delete), _)) => {}
                Some((word, Some(Verb::Show), _)) => {
                    let message = "this command prints disciplines: paste its output";
                    return Err(error(word, message));
                }
                Some((word, None, _)) => {
                    let allowed = ["add", "replace", "change", "del"].map(str::to_owned).to_vec();
                    let message = format!("unknown command `{}` for `tc qdisc`", word.text);
                    return Err(word.error(message, allowed));
                }
                None => return Err(error(object, "`tc qdisc` needs a command, such as `add`")),
            }
        }
    }
    if found.is_empty() {
        return Err(error(&tokens[0], "this command sets no discipline"));
    }
    Ok(found)
}

/// Splits a sequence of commands without separators. Each command begins with `qdisc` and a verb.
fn batch<'t, 'a>(tokens: &'t [Token<'a>]) -> impl Iterator<Item = &'t [Token<'a>]> {
    let is_start = |n: usize| {
        n == 0
            || tokens[n].text == "qdisc"
                && tokens.get(n + 1).is_some_and(|t| verb(t.text).is_some())
    };
    // Options of `tc` precede the first command.
    let options = tokens.iter().take_while(|token| token.text.starts_with('-')).count();
    let starts: Vec<_> =
        (0..tokens.len()).filter(|n| is_start(*n) && (*n == 0 || *n > options)).collect();
    let ends: Vec<_> = starts.iter().skip(1).copied().chain([tokens.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| &tokens[start..end])
}

/// Returns the discipline and words of a command after `verb`, without device, handle and parent.
fn set(tokens: &[Token<'_>], verb: &Token<'_>) -> Result<Line, WordError> {
    let mut n = 0;
    let mut notices = Vec::new();
    while let Some(token) = tokens.get(n) {
        n += match token.text {
            "root" => 1,
            "dev" | "handle" | "parent" | "ingress_block" | "egress_block" => 2,
            "estimator" => 3,
            "stab" => {
                let why = "the size table `stab` has no effect here: give the link's `overhead`";
                notices.push(why.to_owned());
                let is_pair = |pair: &&[Token<'_>]| {
                    matches!(pair[0].text, "mtu" | "mpu" | "overhead" | "tsize" | "linklayer")
                };
                1 + 2 * tokens[n + 1..].chunks(2).take_while(is_pair).count()
            }
            _ => break,
        };
    }
    match tokens.get(n..) {
        Some(rest) if !rest.is_empty() => Ok(Line { notices, ..Line::of(Source::Command, rest) }),
        _ => Err(error(verb, "this command names no discipline, such as `cake`")),
    }
}

/// Returns the disciplines in the output of `tc qdisc show`.
fn shown(tokens: &[Token<'_>]) -> Vec<Line> {
    let is_start = |n: usize| {
        n == 0
            || tokens[n].text == "qdisc"
                && tokens.get(n + 2).is_some_and(|token| is_handle(token.text))
    };
    let starts: Vec<_> = (0..tokens.len()).filter(|n| is_start(*n)).collect();
    let ends = starts.iter().skip(1).copied().chain([tokens.len()]);
    let entries = starts.iter().zip(ends).map(|(&start, end)| &tokens[start..end]);
    entries.filter_map(entry).collect()
}

/// Returns the discipline of one entry of the output: name and words, without handle, device,
/// parent and counters.
fn entry(tokens: &[Token<'_>]) -> Option<Line> {
    let (name, rest) = tokens[usize::from(tokens[0].text == "qdisc")..].split_first()?;
    let mut n = usize::from(rest.first().is_some_and(|token| is_handle(token.text)));
    while let Some(token) = rest.get(n) {
        n += match token.text {
            "root" | "offloaded" => 1,
            "dev" | "parent" | "refcnt" | "ingress_block" | "egress_block" => 2,
            _ => break,
        };
    }
    let options = rest.get(n..).unwrap_or(&[]);
    let counters = |pair: &[Token<'_>]| {
        pair[0].text == "Sent" && pair[1].text.bytes().all(|b| b.is_ascii_digit())
    };
    let end = options.windows(2).position(counters).unwrap_or(options.len());
    let words: Vec<_> = std::iter::once(*name).chain(options[..end].iter().copied()).collect();
    Some(Line::of(Source::Shown, &words))
}

/// Returns the only discipline in `found` that holds packets, or the first one if none does.
fn one_of(found: Vec<Line>) -> Result<Line, WordError> {
    let mut different: Vec<Line> = Vec::new();
    for line in &found {
        let same = different.iter().any(|other| other.text() == line.text());
        if !same && !HOLDERS.contains(&line.words[0].0.as_str()) {
            different.push(line.clone());
        }
    }
    if let [_, second, ..] = different.as_slice() {
        let names: Vec<_> = different.iter().map(|line| format!("`{}`", line.words[0].0)).collect();
        let message = format!(
            "the text contains {} disciplines, {}: keep one",
            names.len(),
            names.join(", ")
        );
        let (found, at) = second.words[0].clone();
        return Err(WordError { message, at, found, allowed: Vec::new(), nearest: None });
    }
    let holder = found.into_iter().next();
    let plain = || Line { source: Source::Plain, words: Vec::new(), notices: Vec::new() };
    Ok(different.into_iter().next().or(holder).unwrap_or_else(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str) -> String {
        Line::read(line).unwrap_or_else(|why| panic!("{line}: {why}")).text()
    }

    fn error(line: &str) -> WordError {
        Line::read(line).expect_err(line)
    }

    #[test]
    fn a_description_stays_as_it_is() {
        for plain in
            ["cake bandwidth 20mbit nat", "", "replay file \"a b.pcap\"", "mine.py:Mine limit 9p"]
        {
            assert_eq!(text(plain), plain);
            assert_eq!(Line::read(plain).unwrap().source, Source::Plain);
        }
    }

    #[test]
    fn a_command_gives_its_discipline() {
        for command in [
            "tc qdisc add dev eth0 root cake bandwidth 20mbit",
            "sudo tc qdisc replace dev eth0 root handle 1: cake bandwidth 20mbit",
            "/sbin/tc -s qdisc change dev pppoe-wan parent 1:10 handle 8001: cake bandwidth 20mbit",
            "qdisc add dev eth0 root cake bandwidth 20mbit",
            "tc qdisc del dev eth0 root; tc qdisc add dev eth0 root cake bandwidth 20mbit",
            "tc qdisc del dev eth0 root ; tc qdisc add dev eth0 root cake bandwidth 20mbit",
            "tc q a dev eth0 root cake bandwidth 20mbit",
            "tc qd del dev eth0 root; tc qd repl dev eth0 root cake bandwidth 20mbit",
            "qdisc del dev eth0 root\nqdisc add dev eth0 root estimator 1sec 4sec cake bandwidth 20mbit",
        ] {
            assert_eq!(text(command), "cake bandwidth 20mbit", "{command}");
        }
        let stab = "tc qdisc add dev eth0 root stab linklayer atm overhead 44 fq_codel";
        let line = Line::read(stab).unwrap();
        assert_eq!(line.text(), "fq_codel");
        assert!(line.notices[0].contains("`overhead`"));
    }

    #[test]
    fn printed_output_gives_its_discipline() {
        let output = "qdisc noqueue 0: dev lo root refcnt 2\n\
            \x20Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)\n\
            \x20backlog 0b 0p requeues 0\n\
            qdisc mq 0: dev eth0 root\n\
            \x20Sent 9 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)\n\
            qdisc fq_codel 0: dev eth0 parent :2 limit 10240p flows 1024\n\
            \x20Sent 9 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)\n\
            \x20 maxpacket 0 drop_overlimit 0 new_flow_count 0 ecn_mark 0\n\
            qdisc fq_codel 0: dev eth0 parent :1 limit 10240p flows 1024\n";
        assert_eq!(text(output), "fq_codel limit 10240p flows 1024");
        assert_eq!(text("codel 8001: root refcnt 2 limit 1000p"), "codel limit 1000p");
        assert_eq!(text("qdisc noqueue 0: dev lo root refcnt 2"), "noqueue");
        let two = "qdisc codel 1: dev a root limit 9p qdisc pie 2: dev b root";
        let error = error(two);
        assert_eq!(error.message, "the text contains 2 disciplines, `codel`, `pie`: keep one");
        assert_eq!(&two[error.at], "pie");
    }

    #[test]
    fn commands_that_set_nothing_are_refused() {
        for (line, at, why) in [
            ("tc qdisc show dev eth0", "show", "paste its output"),
            ("tc qdisc del dev eth0 root", "tc", "sets no discipline"),
            ("tc class add dev eth0 classid 1:1 htb rate 1mbit", "tc", "sets no discipline"),
            ("tc qdisc add dev eth0 root", "add", "names no discipline"),
            ("tc qdisc adn dev eth0 root cake", "adn", "unknown command `adn`"),
            ("tc qdisc", "qdisc", "needs a command"),
        ] {
            let error = error(line);
            assert!(error.message.contains(why), "{line}: {error}");
            assert_eq!(&line[error.at], at, "{line}");
        }
    }

    #[test]
    fn errors_point_into_the_line() {
        let pasted = "tc qdisc add dev eth0 root codel traget 5ms";
        let line = Line::read(pasted).unwrap();
        let at = |at: Range<usize>| {
            let error = WordError {
                message: String::new(),
                at,
                found: String::new(),
                allowed: Vec::new(),
                nearest: None,
            };
            &pasted[line.placed(error).at]
        };
        assert_eq!(at(0..5), "codel");
        assert_eq!(at(6..12), "traget");
        assert_eq!(at(6..16), "traget 5ms");
        assert_eq!(at(16..16), "");
    }

    proptest::proptest! {
        #[test]
        fn never_panics(
            text in "\\PC{0,60}",
            words in "((tc|qdisc|sudo|add|show|del|dev|root|8001:|stab|mtu|cake|Sent|9|;|estimator|-s) ){0,9}",
        ) {
            for text in [text, words] {
                let _ = Line::read(&text).map(|line| line.text());
            }
        }
    }
}
