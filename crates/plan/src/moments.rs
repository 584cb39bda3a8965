//! Start times of flows and times of repeated events, parsed from a scenario's texts.

use sojourn_units::Nanos;
use sojourn_units::quantity::parse_time;
use sojourn_units::quantity_error;
use sojourn_units::words::{Token, WordError, nearest, tokens};

/// Start times of flows in nanoseconds after the run's start. Flow `i` starts at `first`, plus a
/// random delay of up to `spread`, plus `i` times `every`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// Earliest start.
    pub first: Nanos,
    /// Range of the random delay.
    pub spread: Nanos,
    /// Interval between the starts of consecutive flows.
    pub every: Nanos,
}

impl Starts {
    /// Parses a text such as `2s`, `uniform 0s 10s`, `every 1s` or `every 1s from 3s`.
    ///
    /// # Errors
    /// If the text has none of these forms.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let words = tokens(text);
        let named: Vec<&str> = words.iter().map(|word| word.text).collect();
        match named[..] {
            ["uniform", first, last] => {
                let (begin, end) = (time(words[1])?, time(words[2])?);
                let Some(spread) = end.checked_sub(begin) else {
                    let message = format!("the second time, {last}, is before the first, {first}");
                    return Err(words[2].error(message, Vec::new()));
                };
                Ok(Self { first: begin, spread, every: 0 })
            }
            ["uniform", ..] => {
                let message = "\"uniform\" needs two times, such as \"uniform 0s 10s\"";
                Err(all(text, message, &[], None))
            }
            ["every", _] => Ok(Self { every: time(words[1])?, ..Self::default() }),
            ["every", _, "from", _] => {
                Ok(Self { first: time(words[3])?, spread: 0, every: time(words[1])? })
            }
            ["every", ..] => {
                let message =
                    "\"every\" needs a time, such as \"every 1s\", or two: \"every 1s from 3s\"";
                Err(all(text, message, &[], None))
            }
            [word]
                if parse_time(word).is_ok() || word.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                Ok(Self { first: time(words[0])?, ..Self::default() })
            }
            _ => {
                let near = nearest(named.first().unwrap_or(&""), ["uniform", "every"].into_iter());
                let message = format!(
                    "needs a time such as \"2s\", a span such as \"uniform 0s 10s\", or an interval \
                     such as \"every 1s\"; found \"{text}\""
                );
                let allowed = ["2s", "uniform 0s 10s", "every 1s", "every 1s from 3s"];
                Err(all(text, &message, &allowed, near))
            }
        }
    }
}

/// Times of an event in nanoseconds after the run's start: `first`, and if `every` is not 0, again
/// after each `every`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// First time.
    pub first: Nanos,
    /// Interval between consecutive times; 0 for a single time.
    pub every: Nanos,
}

impl Moments {
    /// Parses a text such as `20s`, `every 40s` or `every 40s from 20s`.
    ///
    /// # Errors
    /// If the text has none of these forms.
    pub fn parse(text: &str) -> Result<Self, WordError> {
        let words = tokens(text);
        let named: Vec<&str> = words.iter().map(|word| word.text).collect();
        let moments = match named[..] {
            ["every", _] => Self { first: 0, every: time(words[1])? },
            ["every", _, "from", _] => Self { first: time(words[3])?, every: time(words[1])? },
            [word] if word != "every" => return Ok(Self { first: time(words[0])?, every: 0 }),
            _ => {
                let message = format!(
                    "needs a time such as \"20s\", or \"every 40s from 20s\"; found \"{text}\""
                );
                let allowed = ["20s", "every 40s", "every 40s from 20s"];
                return Err(all(text, &message, &allowed, None));
            }
        };
        if moments.every == 0 {
            return Err(all(text, "\"every\" needs a time above zero", &[], None));
        }
        Ok(moments)
    }
}

fn time(word: Token<'_>) -> Result<Nanos, WordError> {
    parse_time(word.text).map_err(|error| {
        let found = quantity_error(word.text, &error, "a time", "5ms");
        WordError { at: word.range(), ..found }
    })
}

/// Returns an error whose range is the whole text.
fn all(text: &str, message: &str, allowed: &[&str], nearest: Option<&str>) -> WordError {
    WordError {
        message: message.to_owned(),
        at: 0..text.len(),
        found: text.to_owned(),
        allowed: allowed.iter().map(|&word| word.to_owned()).collect(),
        nearest: nearest.map(str::to_owned),
    }
}
