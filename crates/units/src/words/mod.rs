//! One-line descriptions in the style of `tc`: a name, followed by words, most of which have a
//! value.
//!
//! A description such as `codel limit 1000p target 5ms ecn` is parsed according to the [`Table`]
//! that the component declares. An error states the position, the text found, the allowed words,
//! and the nearest of them.

use crate::quantity;

mod given;
mod table;
mod text;
mod token;
mod value;

pub use given::Given;
pub use table::{Kind, Meaning, Table, Word};
pub use text::Text;
pub use token::{Token, WordError, nearest, tokens, untouched};
pub use value::Value;
pub(crate) use value::read_value;

/// Parses `tokens`, the words after the component's name, according to `table`. `end` is the length
/// of the whole text.
///
/// # Errors
/// If a word is unknown or repeated, or a value is missing or of the wrong kind.
pub fn read(table: &Table, tokens: &[Token<'_>], end: usize) -> Result<Given, WordError> {
    let mut given = Given { values: Vec::new(), end };
    let mut rest = tokens.iter();
    let mut before = None;
    while let Some(&token) = rest.next() {
        let word = table.words.iter().find(|w| w.spellings().any(|s| s == token.text));
        let Some(word) = word else {
            return Err(unknown_word(table, before, token));
        };
        if let Some(earlier) = given.find(word.name) {
            let message = match earlier {
                Value::Text(earlier) if !word.takes_value() && earlier != token.text => {
                    format!("`{earlier}` and `{}` exclude each other", token.text)
                }
                Value::Text(_) if !word.takes_value() => {
                    format!("`{}` is given twice", token.text)
                }
                _ => format!("`{}` is given twice", word.name),
            };
            return Err(token.error(message, Vec::new()));
        }
        let value_token = if word.takes_value() {
            *rest.next().ok_or_else(|| WordError {
                message: format!("`{}` needs a value", word.name),
                at: token.range(),
                found: token.text.to_owned(),
                allowed: Vec::new(),
                nearest: None,
            })?
        } else {
            token
        };
        if word.kind == Kind::Rest {
            let (text, at) = untouched(value_token, rest.as_slice());
            given.values.push((word.name, Value::Text(text), at));
            break;
        }
        if matches!(word.kind, Kind::Numbers { .. }) {
            let is_number = |token: &&Token<'_>| token.text.bytes().all(|b| b.is_ascii_digit());
            let more = rest.as_slice().iter().take_while(is_number).count();
            let (numbers, others) = rest.as_slice().split_at(more);
            let (text, at) = untouched(value_token, numbers);
            let value = read_value(word, Token { text: &text, at: at.start })?;
            given.values.push((word.name, value, at));
            rest = others.iter();
            continue;
        }
        let value = read_value(word, value_token)?;
        given.values.push((word.name, value, value_token.range()));
        before = word.takes_value().then_some(value_token.text);
    }
    Ok(given)
}

/// Returns the error about a word that `table` does not have; `before` is the value before it.
fn unknown_word(table: &Table, before: Option<&str>, token: Token<'_>) -> WordError {
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let value = before.unwrap_or("");
    let (number, unit) = value.split_at(value.find(|c| !is_digit(c)).unwrap_or(value.len()));
    // The reader of tc's words adds these units to bare numbers.
    if !number.is_empty() && matches!(unit, "" | "us" | "b" | "p") && quantity::is_unit(token.text)
    {
        let text = token.text;
        let message = format!("`{number} {text}` is one word: write `{number}{text}`");
        return token.error(message, Vec::new());
    }
    let allowed: Vec<String> =
        table.words.iter().flat_map(Word::spellings).map(str::to_owned).collect();
    token
        .error(format!("unknown word `{}` for `{}`", token.text, table.name), allowed)
        .listing("allowed")
}

/// Parses a description: its first word selects one of `tables`, and the rest is parsed according
/// to this table.
///
/// `what` is the kind of component in error messages, such as "queue".
///
/// # Errors
/// If the text is empty or the name is unknown, or as for [`read`].
pub fn describe<'t>(
    what: &str,
    tables: &[&'t Table],
    text: &str,
) -> Result<(&'t Table, Given), WordError> {
    let tokens = tokens(text);
    let names = || tables.iter().map(|t| t.name.to_owned()).collect::<Vec<_>>();
    let Some((first, rest)) = tokens.split_first() else {
        return Err(WordError {
            message: format!("empty {what}: expected one of {}", names().join(", ")),
            at: 0..text.len(),
            found: String::new(),
            allowed: names(),
            nearest: None,
        });
    };
    let Some(table) = tables.iter().find(|t| t.name == first.text) else {
        let error = first.error(format!("unknown {what} `{}`", first.text), names());
        return Err(error.listing("known"));
    };
    Ok((table, read(table, rest, text.len())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CODEL: Table = Table {
        name: "codel",
        summary: "",
        source: "",
        words: &[
            Word { name: "limit", kind: Kind::Packets, default: "1000p", doc: "" },
            Word { name: "target", kind: Kind::Time, default: "5ms", doc: "" },
            Word { name: "ecn", kind: Kind::Switch { off: "noecn" }, default: "noecn", doc: "" },
        ],
    };

    #[test]
    fn reads_a_description() {
        let (table, given) =
            describe("queue", &[&CODEL], "codel limit 300p target 2.5ms noecn").unwrap();
        assert_eq!(table.name, "codel");
        assert_eq!(given.integer("limit"), Some(300));
        assert_eq!(given.time("target"), Some(2_500_000));
        assert_eq!(given.flag("ecn"), Some(false));
    }

    #[test]
    fn quotes_hold_a_word_together() {
        let words = |text| tokens(text).iter().map(|t| (t.text, t.at)).collect::<Vec<_>>();
        assert_eq!(words(" a  bc "), [("a", 1), ("bc", 4)]);
        assert_eq!(words("file \"a b.pcap\" x"), [("file", 0), ("a b.pcap", 6), ("x", 16)]);
        assert_eq!(words("\"\" \"ü\""), [("", 1), ("ü", 4)]);
        // A quotation mark without a counterpart, or within a word, is an ordinary character.
        assert_eq!(words("\"a b"), [("\"a", 0), ("b", 3)]);
        assert_eq!(words("\"a\"b c"), [("\"a\"b", 0), ("c", 5)]);
    }

    #[test]
    fn errors_name_place_and_nearest_word() {
        let error = describe("queue", &[&CODEL], "codle limit 3").unwrap_err();
        assert_eq!(error.to_string(), "unknown queue `codle`: did you mean `codel`?");
        let error = describe("queue", &[&CODEL], "codel traget 5ms").unwrap_err();
        assert_eq!(error.at, 6..12);
        assert_eq!(error.nearest.as_deref(), Some("target"));
        let error = describe("queue", &[&CODEL], "codel limit 5p target 7 ms").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`target` needs a time with its unit, such as 5ms; found `7`"
        );
        let error = describe("queue", &[&CODEL], "codel limit 5 p").unwrap_err();
        assert_eq!(error.to_string(), "`5 p` is one word: write `5p`");
        let error = describe("queue", &[&CODEL], "codel target 5ms s").unwrap_err();
        assert!(error.to_string().starts_with("unknown word `s`"), "{error}");
        let error = describe("queue", &[&CODEL], "codel target 5").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`target` needs a time with its unit, such as 5ms; found `5`"
        );
        assert!(describe("queue", &[&CODEL], "codel target").is_err());
        assert!(describe("queue", &[&CODEL], "codel ecn noecn").is_err());
        assert!(describe("queue", &[&CODEL], " ").is_err());
    }

    #[test]
    fn some_words_need_no_name() {
        const TABLE: Table = Table {
            name: "cake",
            summary: "",
            source: "",
            words: &[
                Word {
                    name: "tins",
                    kind: Kind::OneOf { of: &["besteffort", "diffserv3"] },
                    default: "diffserv3",
                    doc: "",
                },
                Word {
                    name: "overhead",
                    kind: Kind::Signed { min: -64, max: 256 },
                    default: "",
                    doc: "",
                },
            ],
        };
        let read = |text| describe("queue", &[&TABLE], text).map(|(_, given)| given);
        let given = read("cake besteffort overhead -20").unwrap();
        assert_eq!(given.text("tins"), Some("besteffort"));
        assert_eq!(given.signed("overhead"), Some(-20));
        let error = |text| read(text).unwrap_err().to_string();
        assert_eq!(
            error("cake besteffort diffserv3"),
            "`besteffort` and `diffserv3` exclude each other"
        );
        assert_eq!(error("cake besteffort besteffort"), "`besteffort` is given twice");
        assert_eq!(
            error("cake tins"),
            "unknown word `tins` for `cake`; allowed: besteffort, diffserv3, overhead"
        );
        assert_eq!(
            error("cake diffserv"),
            "unknown word `diffserv` for `cake`: did you mean `diffserv3`?"
        );
        assert_eq!(
            error("cake overhead -65"),
            "`overhead` needs a whole number from -64 to 256; found `-65`"
        );
    }

    #[test]
    fn of_words_as_near_the_one_that_begins_alike_is_meant() {
        let words = ["loss", "mos", "mos_min"];
        assert_eq!(nearest("moss", words.into_iter()), Some("mos"));
        assert_eq!(nearest("lods", words.into_iter()), Some("loss"));
        assert_eq!(nearest("jitter", words.into_iter()), None);
    }

    const NAMES: &[Meaning] = &[
        Meaning { name: "first", doc: "" },
        Meaning { name: "second", doc: "" },
        Meaning { name: "third", doc: "" },
    ];
    const LISTS: Table = Table {
        name: "lists",
        summary: "",
        source: "",
        words: &[
            Word { name: "one", kind: Kind::Named { of: NAMES }, default: "first", doc: "" },
            Word { name: "some", kind: Kind::List { of: NAMES }, default: "all", doc: "" },
            Word { name: "map", kind: Kind::Numbers { most: 3, max: 9 }, default: "", doc: "" },
        ],
    };

    #[test]
    fn names_are_of_their_list() {
        let read = |text: &str| describe("thing", &[&LISTS], text).map(|(_, given)| given);
        assert_eq!(read("lists one second").unwrap().text("one"), Some("second"));
        let some = |text: &str| {
            read(&format!("lists some {text}")).unwrap().list("some").map(<[_]>::to_vec)
        };
        assert_eq!(some("third+first"), Some(vec![0, 2]));
        assert_eq!(some("second"), Some(vec![1]));
        assert_eq!(some("all"), Some(vec![0, 1, 2]));
        assert_eq!(some("none"), Some(vec![]));
        assert_eq!(read("lists").unwrap().list("some"), None);
        let error = read("lists some first+secnd").unwrap_err();
        assert_eq!(error.to_string(), "`some` has no value `secnd`: did you mean `second`?");
        assert_eq!(error.at, 17..22);
        assert_eq!(error.allowed, ["first", "second", "third"]);
        let error = read("lists one fourth").unwrap_err();
        assert_eq!(error.to_string(), "`one` has no value `fourth`; known: first, second, third");
        let error = read("lists some first+first").unwrap_err();
        assert_eq!((error.to_string().as_str(), error.at), ("`first` is given twice", 17..22));
        assert!(read("lists some first+").is_err());
        let map = |text: &str| read(text).map(|given| given.find("map").cloned());
        assert_eq!(map("lists map 1  2 one first"), Ok(Some(Value::Numbers(vec![1, 2]))));
        for wrong in ["map", "map x", "map 1 2 3 4", "map 10"] {
            assert!(map(&format!("lists {wrong}")).is_err(), "{wrong}");
        }
        assert!(read("lists some all+first").is_err());
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,60}") {
            let _ = describe("thing", &[&LISTS], &format!("lists some {text}"));
            let _ = describe("queue", &[&CODEL], &text);
            let _ = describe("queue", &[&CODEL], &format!("codel {text}"));
        }
    }
}
