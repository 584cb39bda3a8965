//! Kinds of parameters that several applications use.

use sojourn_random::{Distribution, Unit};
use sojourn_units::declare::{Param, group};
use sojourn_units::words;
use sojourn_units::words::{Given, Kind, Value, Word, WordError};

/// Returns a parameter that is a distribution of times.
pub(crate) const fn time(default: &'static str) -> Param<Distribution> {
    let from = |value: &Value| Distribution::parse(value.text(), Unit::Time);
    Param::nested(Kind::Name, default, from, |law| Some(Value::Text(law.format(Unit::Time))))
}

/// Returns a parameter that is a distribution of times; `None` by default.
pub(crate) const fn optional_time() -> Param<Option<Distribution>> {
    let from = |value: &Value| Distribution::parse(value.text(), Unit::Time).map(Some);
    let to = |law: &Option<Distribution>| law.map(|law| Value::Text(law.format(Unit::Time)));
    Param::nested(Kind::Name, "", from, to).initially(|()| None)
}

/// Returns a parameter that is a distribution of sizes.
pub(crate) const fn size(default: &'static str) -> Param<Distribution> {
    let from = |value: &Value| Distribution::parse(value.text(), Unit::Size);
    Param::nested(Kind::Name, default, from, |law| Some(Value::Text(law.format(Unit::Size))))
}

/// Returns a parameter that is a distribution of numbers.
pub(crate) const fn number(default: &'static str) -> Param<Distribution> {
    let from = |value: &Value| Distribution::parse(value.text(), Unit::Number);
    Param::nested(Kind::Name, default, from, |law| Some(Value::Text(law.format(Unit::Number))))
}

/// Rejects a distribution whose mean is not above 0.
pub(crate) fn positive(law: &Distribution) -> Result<(), &'static str> {
    if law.mean() > 0.0 { Ok(()) } else { Err("must be above 0") }
}

/// Returns the distribution that the description sets by `word`, whose mean must be above 0; `None`
/// if the description does not contain `word`.
pub(crate) fn given_law(
    given: &Given,
    word: &str,
    unit: Unit,
) -> Result<Option<Distribution>, WordError> {
    let Some(text) = given.text(word) else { return Ok(None) };
    let law = Distribution::parse(text, unit).map_err(|error| given.nested(word, error))?;
    positive(&law).map_err(|why| given.error(word, format!("`{word}` {why}")))?;
    Ok(Some(law))
}

/// Returns a parameter that is a length from `MIN` to `MAX` bytes.
pub(crate) const fn bytes<const MIN: u32, const MAX: u32>(default: &'static str) -> Param<u32> {
    let from = |value: &Value| within::<MIN, MAX>(value.integer());
    Param::word(Kind::Size, default, from, |bytes| Some(Value::Integer((*bytes).into())))
}

/// Returns a parameter that is a length from `MIN` to `MAX` bytes; `None` by default.
pub(crate) const fn optional_bytes<const MIN: u32, const MAX: u32>() -> Param<Option<u32>> {
    let from = |value: &Value| within::<MIN, MAX>(value.integer()).map(Some);
    Param::word(Kind::Size, "", from, |_| None).initially(|()| None)
}

/// Returns `bytes` if it is from `MIN` to `MAX`; otherwise an error text without the word, which
/// the caller puts before it.
pub(crate) fn within<const MIN: u32, const MAX: u32>(bytes: u64) -> Result<u32, String> {
    let fits = |bytes: &u32| (MIN..=MAX).contains(bytes);
    let bytes = u32::try_from(bytes).ok().filter(fits);
    bytes.ok_or_else(|| format!("must be from {MIN} to {MAX} bytes"))
}

const REPEAT: &[Word] = words! {
    "repeat", Kind::Integer { min: 1, max: u32::MAX as u64 }, "1", "";
    "forever", Kind::Flag, "", "";
};

/// Returns the parameter `repeat N`, by default 1, or `forever`, which is `None`.
pub(crate) const fn repeat() -> Param<Option<u32>> {
    let set = |repeat: &mut Option<u32>, given: &Given| {
        match (given.integer("repeat"), given.has("forever")) {
            (Some(_), true) => {
                return Err(given.error("forever", "`repeat` and `forever` exclude each other"));
            }
            (None, true) => *repeat = None,
            (Some(times), false) => *repeat = Some(times as u32),
            (None, false) => {}
        }
        Ok(())
    };
    group(
        REPEAT,
        |()| Some(1),
        set,
        |repeat, text| match repeat {
            Some(times) => text.value("repeat", times),
            None => text.flag("forever"),
        },
    )
}

/// Implements [`Choices`](sojourn_units::declare::Choices) for the rows of a list by their `name`.
macro_rules! named_rows {
    ($Row:ident in $ROWS:ident) => {
        impl sojourn_units::declare::Choices for $Row {
            const NAMES: &'static [&'static str] = &{
                let mut names = [""; $ROWS.len()];
                let mut at = 0;
                while at < names.len() {
                    names[at] = $ROWS[at].name;
                    at += 1;
                }
                names
            };
            const ALL: &'static [Self] = $ROWS;
        }
    };
}

pub(crate) use named_rows;
