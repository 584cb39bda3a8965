//! The options of a `u32` filter that create and name hash tables.
//!
//! Source: tc-u32(8).

use crate::place::{Fault, Word, Words};

/// Number of the first table, which Linux creates itself.
pub(crate) const ROOT: u32 = 0x800;

/// The hash table of a filter of `u32`, and the table to which it leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// Table and bucket that hold the filter; `None` for the first table.
    pub seat: Option<(u32, u32)>,
    /// Number of buckets, if the command creates a table.
    pub divisor: Option<u32>,
    /// Table whose filters follow.
    pub link: Option<u32>,
    /// Mask and byte offset of the word of the header that selects the bucket.
    pub key: Option<(u32, u32)>,
}

impl Table {
    /// Reads an option of `u32` and its values.
    pub fn read(&mut self, word: &Word, given: &mut Words<'_>) -> Result<(), Fault> {
        match word.text.as_str() {
            "ht" => self.seat = Some(seat(given.value(word)?)?),
            "link" => self.link = Some(seat(given.value(word)?)?.0),
            "divisor" => {
                let value = given.value(word)?;
                let count = value.text.parse().ok().filter(|n: &u32| n.is_power_of_two());
                let why = "`divisor` needs a power of two up to 256";
                self.divisor = Some(count.filter(|n| *n <= 256).ok_or_else(|| value.fault(why))?);
            }
            "hashkey" => {
                let (mut bits, mut at) = (0, 0);
                while let Some(key) = given.next_if(|word| matches!(word, "mask" | "at")) {
                    let value = given.value(key)?;
                    if key.is("mask") {
                        bits = crate::name::mask(value)?;
                    } else {
                        at = crate::name::number(value)?;
                    }
                }
                if at % 4 != 0 {
                    return Err(word.fault("`hashkey` needs `at` with a multiple of 4"));
                }
                self.key = Some((bits, at));
            }
            // The header that follows an IP header of any length, as `nexthdr` finds it.
            "offset" => {
                let keys = ["at", "mask", "shift", "plus"];
                let mut found = Vec::new();
                while let Some(key) = given.next_if(|word| keys.contains(&word)) {
                    let value = given.value(key)?.text.trim_start_matches("0x");
                    found.push(format!("{} {}", key.text, value.trim_start_matches('0')));
                }
                let usual = ["at ", "mask f00", "shift 6", "plus "];
                let is_usual = found.iter().all(|one| usual.contains(&one.as_str()));
                if !is_usual || given.peek().is_some_and(|word| word.is("eat")) {
                    let why = "only `offset at 0 mask 0f00 shift 6` is supported";
                    return Err(word.fault(why));
                }
            }
            _ => {
                return Err(word.fault(format!(
                    "`{}` of a hash table is not supported: write its bucket, such as `ht 2:a:`",
                    word.text
                )));
            }
        }
        Ok(())
    }

    /// Returns whether the filter leads to a table, or is in a table other than the first.
    pub fn is_used(&self) -> bool {
        self.link.is_some() || self.seat.is_some_and(|(table, _)| table < ROOT)
    }
}

/// Reads a table and a bucket, such as `2:`, `2:a:` or `2:a:800`.
pub(crate) fn seat(word: &Word) -> Result<(u32, u32), Fault> {
    let mut parts = word.text.trim_start_matches("0x").split(':');
    let mut part = |most| {
        let text = parts.next().filter(|text| !text.is_empty()).unwrap_or("0");
        u32::from_str_radix(text, 16).ok().filter(|number| *number <= most)
    };
    part(0xfff).zip(part(0xff)).ok_or_else(|| {
        word.fault(format!("`{}` is not a hash table of `u32`, such as `2:` or `2:a:`", word.text))
    })
}
