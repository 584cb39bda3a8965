//! Names of differentiated services code points.

use sojourn_units::words::{WordError, nearest};

/// Names and code points (RFC 2474, 2597, 3246, 5865, 8622).
pub const NAMES: [(&str, u8); 24] = [
    ("be", 0),
    ("le", 1),
    ("va", 44),
    ("ef", 46),
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
];

/// Returns the code point with this name, which may be in upper or lower case.
///
/// # Errors
/// If the name is unknown.
pub fn parse(text: &str) -> Result<u8, WordError> {
    let name = text.trim().to_lowercase();
    let names = || NAMES.iter().map(|(name, _)| *name);
    if let Some((_, point)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Ok(*point);
    }
    Err(WordError {
        message: format!("unknown code point `{text}`"),
        at: 0..text.len(),
        found: text.to_owned(),
        allowed: names().map(str::to_owned).collect(),
        nearest: nearest(&name, names()).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_code_points() {
        assert_eq!(parse("EF").unwrap(), 46);
        // RFC 2597: the code point of class c with drop precedence d is 8c + 2d.
        for (class, drop) in (1..=4).flat_map(|class| (1..=3).map(move |drop| (class, drop))) {
            assert_eq!(parse(&format!("af{class}{drop}")).unwrap(), 8 * class + 2 * drop);
        }
        assert!((0..8).all(|class| parse(&format!("cs{class}")).unwrap() == 8 * class));
        assert_eq!(parse("eff").unwrap_err().nearest.as_deref(), Some("ef"));
    }
}
