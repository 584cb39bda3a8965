//! Conversion of errors of quantities to errors of descriptions.

use crate::quantity::QuantityError;
use crate::words::WordError;

/// The largest values of quantities, in whole units, of those that 64 bits hold.
const LARGEST: &[(&str, &str)] = &[
    ("a time", "18446744073s"),
    ("a rate", "18446744tbit"),
    ("a size", "17179869183gb"),
    ("a probability", "1"),
];

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
        QuantityError::TooLarge => {
            let most = LARGEST.iter().find(|(name, _)| what.starts_with(name));
            let most = most.map(|(_, most)| format!("; the largest is {most}")).unwrap_or_default();
            format!("`{text}` is too large for {what}{most}")
        }
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
    use crate::dimension::Dimension;

    #[test]
    fn a_number_with_an_exponent_is_shown_with_all_digits() {
        let said =
            |text| quantity_error(text, &QuantityError::UnknownUnit, "a time", "5ms").message;
        assert_eq!(said("1e9s"), "`1e9s` has an exponent, which is not read: write 1000000000s");
        assert_eq!(said("5E-1ms"), "`5E-1ms` has an exponent, which is not read: write 0.5ms");
        assert!(said("5mes").starts_with("unknown unit in `5mes`"));
        assert!(said("1e999s").starts_with("unknown unit in `1e999s`"));
    }

    #[test]
    fn the_largest_value_is_read_and_the_error_for_the_next_one_states_it() {
        for (dimension, most, next) in [
            ("time", "18446744073s", "18446744074s"),
            ("rate", "18446744tbit", "18446745tbit"),
            ("size", "17179869183gb", "17179869184gb"),
            ("probability", "1", "1.1"),
        ] {
            let dimension = Dimension::named(dimension).unwrap();
            assert!(dimension.read(most).is_ok(), "{most}");
            let message = dimension.read(next).unwrap_err().message;
            assert!(message.ends_with(&format!("; the largest is {most}")), "{message}");
        }
    }
}
