//! Values that are distributions, and lengths.

use sojourn_random::{Distribution, Unit};
use sojourn_units::words::{Given, WordError};

/// The distribution that `word` was given, if it was.
pub fn distribution(
    given: &Given,
    word: &str,
    unit: Unit,
) -> Result<Option<Distribution>, WordError> {
    let Some(text) = given.text(word) else { return Ok(None) };
    Distribution::parse(text, unit).map(Some).map_err(|error| {
        let mut at_value = given.error(word, format!("`{word}`: {}", error.message));
        at_value.found = error.found;
        at_value.allowed = error.allowed;
        at_value.nearest = error.nearest;
        at_value
    })
}

/// As [`distribution`], of values that must be above 0 on the mean.
pub fn positive(given: &Given, word: &str, unit: Unit) -> Result<Option<Distribution>, WordError> {
    let value = distribution(given, word, unit)?;
    if value.is_some_and(|d| d.mean() <= 0.0) {
        return Err(given.error(word, format!("`{word}` must be above 0")));
    }
    Ok(value)
}
