//! A recorded state. Rows state only changed fields, but the complete state is compared after each
//! row.

use crate::read::{self, Json, Object};
use crate::report::Outcome;
use std::collections::BTreeMap;
use std::fmt::Display;

type Result<T> = std::result::Result<T, Outcome>;

/// The queue's fields at one moment, by the kernel's names.
pub type Fields<'a> = BTreeMap<&'a str, i128>;
/// The recorded fields at one moment, by the kernel's names.
pub type Known = BTreeMap<String, i128>;

/// Returns the fields that `visit` reports.
pub fn fields(visit: impl FnOnce(&mut dyn FnMut(&'static str, i128))) -> Fields<'static> {
    let mut fields = Fields::new();
    visit(&mut |name, value| _ = fields.insert(name, value));
    fields
}

/// Compares the recorded state after creation with the queue's, and stores it in `known`.
pub fn begin(
    line: usize,
    what: impl Display + Copy,
    names: &[String],
    recorded: &Object,
    now: &Fields<'_>,
    known: &mut Known,
) -> Result<()> {
    for name in names {
        if !now.contains_key(name.as_str()) {
            return Err(Outcome::malformed(line, format!("unknown field `{name}` of {what}")));
        }
        let value = recorded.get(name).ok_or_else(|| {
            Outcome::malformed(line, format!("`{name}` of {what} is missing in `init`"))
        })?;
        known.insert(name.clone(), read::integer(line, name, value)?);
    }
    if let Some(name) = recorded.keys().find(|name| !known.contains_key(*name)) {
        return Err(unknown(line, what, name));
    }
    compare(line, what, None, now, known)
}

fn unknown(line: usize, what: impl Display, name: &str) -> Outcome {
    Outcome::malformed(line, format!("unknown field `{name}` of {what}"))
}

/// Updates `known` with the changed fields of a row, and compares it with the queue's fields. A row
/// that states an unchanged field is an error.
pub fn compare(
    line: usize,
    what: impl Display + Copy,
    changed: Option<&Json>,
    now: &Fields<'_>,
    known: &mut Known,
) -> Result<()> {
    if let Some(changed) = changed {
        for (name, value) in read::map(line, &what.to_string(), changed)? {
            let Some(field) = known.get_mut(name) else {
                return Err(unknown(line, what, name));
            };
            let value = read::integer(line, name, value)?;
            if *field == value {
                let what = format!("{what} `{name}`");
                return Err(Outcome::differs(line, what, "a change", format!("{value} as before")));
            }
            *field = value;
        }
    }
    for (name, expected) in known {
        let found = now.get(name.as_str()).copied().unwrap_or_default();
        if *expected != found {
            return Err(Outcome::differs(line, format!("{what} `{name}`"), expected, found));
        }
    }
    Ok(())
}
