//! Statements of a description, which correspond to separate commands of `tc`.

use sojourn_units::words::{Token, WordError, tokens};

/// The word that separates statements.
pub const END: &str = ";";

/// The first words of statements.
pub const OBJECTS: [&str; 3] = ["class", "qdisc", "filter"];

/// Name of a class or discipline, such as `1:10`: the number of the discipline and of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Number of the discipline; `None` if it is omitted, as in `:10`.
    pub major: Option<u16>,
    /// Number of the class; 0 means the discipline itself.
    pub minor: u16,
}

impl Name {
    /// Reads a name such as `1:10`, `1:` or `:10`; numbers are hexadecimal.
    pub fn read(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        let number = |text: &str| match text {
            "" => Some(None),
            digits if digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                u16::from_str_radix(digits, 16).ok().map(Some)
            }
            _ => None,
        };
        let (major, minor) = (number(major)?, number(minor)?);
        (major.is_some() || minor.is_some())
            .then(|| Self { major, minor: minor.unwrap_or_default() })
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    /// First word, one of [`OBJECTS`].
    pub object: Token<'a>,
    /// Whether the statement deletes its object.
    pub deletes: bool,
    /// Class or discipline given by `parent`, and its word; `None` if omitted.
    pub parent: Option<(Name, Token<'a>)>,
    /// Class that the statement names, and its word.
    pub class: Option<(Name, Token<'a>)>,
    /// Number of the discipline that the statement creates.
    pub handle: Option<u16>,
    /// Words after object, parent, class and handle.
    pub words: Vec<Token<'a>>,
    /// All words of the statement.
    pub all: Vec<Token<'a>>,
}

impl<'a> Statement<'a> {
    /// Returns the byte position after the statement's last word.
    pub fn end(&self) -> usize {
        self.all.last().map_or(0, |token| token.range().end)
    }

    /// Returns an error whose position is the whole statement.
    pub fn error(&self, message: impl Into<String>) -> WordError {
        let mut error = self.object.error(message.into(), Vec::new());
        error.at.end = self.end();
        error
    }

    fn read(all: Vec<Token<'a>>) -> Result<Self, WordError> {
        let object = all[0];
        if !OBJECTS.contains(&object.text) {
            let message = format!(
                "`{}` cannot begin a statement; begin with class, qdisc or filter",
                object.text
            );
            return Err(object.error(message, OBJECTS.map(str::to_owned).to_vec()));
        }
        let text = |n: usize| all.get(n).map_or("", |token| token.text);
        let (mut n, deletes) = match text(1) {
            "add" | "replace" | "change" => (2, false),
            "del" | "delete" => (2, true),
            _ => (1, false),
        };
        let (mut parent, mut class, mut handle) = (None, None, None);
        while let Some(token) = all.get(n) {
            let value = |what: &str| {
                let Some(value) = all.get(n + 1) else {
                    return Err(token.error(format!("`{}` needs a value", token.text), Vec::new()));
                };
                let name = Name::read(value.text).ok_or_else(|| {
                    let message = format!("`{}` is not a {what}, such as 1:10", value.text);
                    value.error(message, vec!["1:10".to_owned()])
                })?;
                Ok((name, *value))
            };
            n += match token.text {
                "dev" => 2,
                "root" => 1,
                "parent" => {
                    parent = Some(value("class")?);
                    2
                }
                "classid" if object.text != "filter" => {
                    class = Some(value("class")?);
                    2
                }
                "handle" if object.text == "qdisc" => {
                    handle = value("number of a discipline")?.0.major;
                    2
                }
                name if object.text == "class" && class.is_none() && Name::read(name).is_some() => {
                    class = Name::read(name).map(|name| (name, *token));
                    1
                }
                _ => break,
            };
        }
        let words = all.get(n..).unwrap_or_default().to_vec();
        // `handle N` may also follow the discipline's name.
        if object.text != "filter" && handle.is_none() {
            let own = words.iter().position(|word| word.text == "handle");
            let name = own.and_then(|at| words.get(at + 1)).and_then(|word| Name::read(word.text));
            handle = name.and_then(|name| name.major);
        }
        Ok(Self { object, deletes, parent, class, handle, words, all })
    }
}

/// Splits `text` into statements.
///
/// # Errors
/// A statement with an unknown first word, or a class name that cannot be read.
pub fn read(text: &str) -> Result<Vec<Statement<'_>>, WordError> {
    tokens(text)
        .split(|token| token.text == END)
        .filter(|words| !words.is_empty())
        .map(|words| Statement::read(words.to_vec()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hexadecimal() {
        let name = |major, minor| Some(Name { major, minor });
        for (text, expected) in [
            ("1:10", name(Some(1), 16)),
            ("1:", name(Some(1), 0)),
            (":1f", name(None, 31)),
            ("ffff:ffff", name(Some(65_535), 65_535)),
            (":", None),
            ("1", None),
            ("1:10000", None),
            ("1:+1", None),
        ] {
            assert_eq!(Name::read(text), expected, "{text}");
        }
    }

    #[test]
    fn statements_are_those_of_tc() {
        let text = "class add dev eth0 parent 1: classid 1:10 rate 5mbit ; ; class 1:10 \
                    parent 1:1 ceil 3mbit ; qdisc parent 1:10 handle 20: codel ; class del 1:3";
        let parsed = read(text).unwrap();
        let words = |n: usize| parsed[n].words.iter().map(|t| t.text).collect::<Vec<_>>().join(" ");
        assert_eq!(parsed.len(), 4);
        assert_eq!([words(0), words(1), words(2)], ["rate 5mbit", "ceil 3mbit", "codel"]);
        assert_eq!((parsed[2].handle, parsed[3].deletes), (Some(32), true));
        assert!(parsed.iter().all(|s| s.class.is_some() == (s.object.text == "class")));
        let wrong = "class 1:1 parent x";
        let error = read(wrong).unwrap_err();
        assert_eq!(
            (&wrong[error.at], error.message.as_str()),
            ("x", "`x` is not a class, such as 1:10")
        );
        assert_eq!(read("clas 1:1").unwrap_err().nearest.as_deref(), Some("class"));
    }
}
