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
            match without_exponent(text) {
                Some(plain) => {
                    format!("`{text}` has an exponent, which is not read: write {plain}")
                }
                None => {
                    format!("unknown unit in `{text}`: {what} is written like {example}{units}")
                }
            }
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

/// Returns a quantity with all digits in place of an exponent; `None` if it has no exponent.
fn without_exponent(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (digits, rest) = lower.split_once('e')?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && !"+-".contains(c)).unwrap_or(rest.len());
    let (exponent, unit) = rest.split_at(end);
    let number: f64 = format!("{digits}e{exponent}").parse().ok()?;
    (number < 1e15 && number > 1e-9).then(|| format!("{number}{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_an_exponent_is_shown_with_all_digits() {
        let said =
            |text| quantity_error(text, &QuantityError::UnknownUnit, "a time", "5ms").message;
        assert_eq!(said("1e9s"), "`1e9s` has an exponent, which is not read: write 1000000000s");
        assert_eq!(said("5E-1ms"), "`5E-1ms` has an exponent, which is not read: write 0.5ms");
        assert!(said("5mes").starts_with("unknown unit in `5mes`"));
        assert!(said("1e999s").starts_with("unknown unit in `1e999s`"));
    }
}
