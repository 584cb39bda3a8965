//! Descriptions as users wrote them: their words, and changes to them.

use crate::words::{Kind, Table, Word, tokens};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Setting of a word in a description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// For a word without a value: whether it is set.
    Switch(bool),
    /// Value of the word; for a choice of one of several words, the word that was written.
    Value(String),
}

/// Words of a description in the order of their first occurrence. Each occurs once.
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    #[serde(skip)]
    table: &'static [Word],
    /// Name of the component.
    pub name: &'static str,
    /// Words of the description with their settings.
    pub words: Vec<(&'static str, Setting)>,
}

impl Written {
    /// Parses a description that belongs to `table`. Unknown words are ignored.
    pub fn read(table: &'static Table, text: &str) -> Self {
        let mut written = Self { table: table.words, name: table.name, words: Vec::new() };
        let mut tokens = tokens(text).into_iter().skip(1).map(|token| token.text).peekable();
        while let Some(token) = tokens.next() {
            let Some(word) = table.words.iter().find(|word| word.spellings().any(|s| s == token))
            else {
                continue;
            };
            let setting = match word.kind {
                Kind::Flag | Kind::Switch { .. } => Setting::Switch(token == word.name),
                Kind::OneOf { .. } => Setting::Value(token.to_owned()),
                Kind::Numbers { .. } => {
                    let is_number = |token: &&str| token.bytes().all(|b| b.is_ascii_digit());
                    let numbers: Vec<_> =
                        std::iter::from_fn(|| tokens.next_if(is_number)).collect();
                    Setting::Value(numbers.join(" "))
                }
                Kind::Rest => Setting::Value(tokens.by_ref().collect::<Vec<_>>().join(" ")),
                _ => Setting::Value(tokens.next().unwrap_or_default().to_owned()),
            };
            written.put(word.name, setting);
        }
        written
    }

    fn put(&mut self, name: &'static str, setting: Setting) {
        match self.words.iter_mut().find(|(word, _)| *word == name) {
            Some((_, old)) => *old = setting,
            None => self.words.push((name, setting)),
        }
    }

    /// Sets a word. If the setting is `None` or empty, the word is removed, so that its default
    /// applies. The value is checked only when the resulting text is parsed.
    ///
    /// # Errors
    /// If the component does not have the word.
    pub fn set(&mut self, name: &str, setting: Option<Setting>) -> Result<(), String> {
        let word = self.table.iter().find(|word| word.name == name);
        let word = word.ok_or_else(|| format!("`{}` has no word `{name}`", self.name))?;
        match setting.filter(|setting| *setting != Setting::Value(String::new())) {
            Some(setting) => self.put(word.name, setting),
            None => self.words.retain(|(other, _)| *other != name),
        }
        Ok(())
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        let kind = |name: &str| {
            let word = self.table.iter().find(|word| word.name == name);
            word.expect("a word of the table").kind
        };
        // A word whose value is the description of another component must be the last one.
        let (last, first): (Vec<_>, Vec<_>) =
            self.words.iter().partition(|(name, _)| kind(name) == Kind::Rest);
        for (name, setting) in first.into_iter().chain(last) {
            let kind = kind(name);
            let on = *setting == Setting::Switch(true);
            let value = match setting {
                Setting::Switch(on) => &on.to_string(),
                Setting::Value(text) => text,
            };
            match kind {
                Kind::Flag if !on => {}
                Kind::Switch { off } if !on => write!(f, " {off}")?,
                Kind::Flag | Kind::Switch { .. } => write!(f, " {name}")?,
                Kind::OneOf { .. } => write!(f, " {value}")?,
                Kind::Numbers { .. } | Kind::Rest => write!(f, " {name} {value}")?,
                _ if value.contains(char::is_whitespace) => write!(f, " {name} \"{value}\"")?,
                _ => write!(f, " {name} {value}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table = Table {
        name: "example",
        summary: "An example.",
        source: "",
        words: crate::words! {
            "limit", Kind::Packets, "10p", "Room.";
            "ecn", Kind::Switch { off: "noecn" }, "noecn", "Marks.";
            "adaptive", Kind::Flag, "", "Adapts.";
            "mode", Kind::OneOf { of: &["slow", "fast"] }, "slow", "Pace.";
            "note", Kind::Name, "", "A text.";
            "map", Kind::Numbers { most: 3, max: 9 }, "0 1", "Numbers.";
            "child", Kind::Rest, "", "Another component.";
        },
    };

    fn read(text: &str) -> Written {
        static PLACE: Table = TABLE;
        Written::read(&PLACE, text)
    }

    fn value(text: &str) -> Setting {
        Setting::Value(text.to_owned())
    }

    #[test]
    fn a_read_text_is_written_unchanged() {
        for text in [
            "example",
            "example limit 5p noecn fast",
            "example ecn adaptive",
            "example note \"two words\" limit 1",
            "example map 1 2 3 limit 5p child other limit 4",
        ] {
            assert_eq!(read(text).to_string(), text);
        }
    }

    #[test]
    fn a_repeated_word_is_written_once() {
        assert_eq!(
            read("example limit 5p ecn limit 6p noecn").to_string(),
            "example limit 6p noecn"
        );
    }

    #[test]
    fn words_are_set_and_removed() {
        let mut written = read("example limit 5p noecn adaptive");
        written.set("limit", Some(value("7p"))).unwrap();
        written.set("ecn", Some(Setting::Switch(true))).unwrap();
        written.set("adaptive", Some(Setting::Switch(false))).unwrap();
        written.set("mode", Some(value("fast"))).unwrap();
        written.set("note", Some(value("a b"))).unwrap();
        assert_eq!(written.to_string(), "example limit 7p ecn fast note \"a b\"");
        for word in ["limit", "ecn", "mode"] {
            written.set(word, None).unwrap();
        }
        written.set("note", Some(value(""))).unwrap();
        assert_eq!(written.to_string(), "example");
        assert_eq!(written.set("fast", None).unwrap_err(), "`example` has no word `fast`");
    }
}
