//! Statements of a description: what `tc` says in commands of their own.

use sojourn_units::words::{Token, WordError, tokens};

/// The word that ends a statement.
pub const END: &str = ";";

/// The subject of a statement.
pub const OBJECTS: [&str; 3] = ["class", "qdisc", "filter"];

/// The number of a discipline and that of a class of it, as in `1:10`; 0 is the discipline itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The discipline's; none where it is left out, as in `:10`.
    pub major: Option<u16>,
    /// The class's.
    pub minor: u16,
}

impl Name {
    /// Reads `1:10`, `1:` or `:10`, in hexadecimal.
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

/// One statement.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    /// Its first word, one of [`OBJECTS`].
    pub object: Token<'a>,
    /// Whether it takes away.
    pub deletes: bool,
    /// Where it belongs; none if that is left out.
    pub parent: Option<(Name, Token<'a>)>,
    /// The class that it is about.
    pub class: Option<(Name, Token<'a>)>,
    /// The number that it gives a discipline.
    pub handle: Option<u16>,
    /// All other words.
    pub words: Vec<Token<'a>>,
    /// All of its words.
    pub all: Vec<Token<'a>>,
}

impl<'a> Statement<'a> {
    /// Returns the end of its text.
    pub fn end(&self) -> usize {
        self.all.last().map_or(0, |token| token.range().end)
    }

    /// Returns an error about the whole of it.
    pub fn error(&self, message: impl Into<String>) -> WordError {
        let mut error = self.object.error(message.into(), Vec::new());
        error.at.end = self.end();
        error
    }

    fn read(all: Vec<Token<'a>>) -> Result<Self, WordError> {
        let object = all[0];
        if !OBJECTS.contains(&object.text) {
            let message = format!(
                "`{}` begins no statement: they begin with class, qdisc or filter",
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
                    let message = format!("`{}` is no {what}, such as 1:10", value.text);
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
        // A discipline may give its number in its own words, too.
        if object.text != "filter" && handle.is_none() {
            let own = words.iter().position(|word| word.text == "handle");
            let name = own.and_then(|at| words.get(at + 1)).and_then(|word| Name::read(word.text));
            handle = name.and_then(|name| name.major);
        }
        Ok(Self { object, deletes, parent, class, handle, words, all })
    }
}

/// Returns the statements of `text`.
///
/// # Errors
/// One that does not begin as a statement does, or a class that cannot be read.
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
        let found = read(text).unwrap();
        let words = |n: usize| found[n].words.iter().map(|t| t.text).collect::<Vec<_>>().join(" ");
        assert_eq!(found.len(), 4);
        assert_eq!([words(0), words(1), words(2)], ["rate 5mbit", "ceil 3mbit", "codel"]);
        assert_eq!((found[2].handle, found[3].deletes), (Some(32), true));
        assert!(found.iter().all(|s| s.class.is_some() == (s.object.text == "class")));
        let wrong = "class 1:1 parent x";
        let error = read(wrong).unwrap_err();
        assert_eq!(
            (&wrong[error.at], error.message.as_str()),
            ("x", "`x` is no class, such as 1:10")
        );
        assert_eq!(read("clas 1:1").unwrap_err().nearest.as_deref(), Some("class"));
    }
}
