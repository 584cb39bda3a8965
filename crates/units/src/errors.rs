//! Conversion of errors of quantities to errors of descriptions.

use crate::quantity::QuantityError;
use crate::words::WordError;

/// Returns the error for a text that is not the quantity `what`. The range of the error is the
/// whole text.
pub fn quantity_error(text: &str, error: &QuantityError, what: &str, example: &str) -> WordError {
    let message = match error {
        QuantityError::NoUnit => {
            format!("{what} needs its unit, such as {example}; found `{text}`")
        }
        QuantityError::UnknownUnit => {
            let units = match what {
                "a time" => "; units are s, ms, us and ns",
                "a rate above zero" => "; units are kbit, mbit and gbit, or kbps, ... for bytes",
                "a size" => "; units are b, kb, mb and gb",
                _ => "",
            };
            format!("unknown unit in `{text}`: {what} is written like {example}{units}")
        }
        QuantityError::TooLarge => format!("`{text}` is too large for {what}"),
        QuantityError::NotANumber => {
            format!("expected {what}, such as {example}; found `{text}`")
        }
    };
    WordError {
        message,
        at: 0..text.len(),
        found: text.to_owned(),
        allowed: vec![example.to_owned()],
        nearest: None,
    }
}
