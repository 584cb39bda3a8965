//! Hash tables of `u32`: filters in a table are replaced by filters that also test its bucket.
//!
//! Source: tc-u32(8); `u32_classify` of Linux.

use crate::filter::{Filter, Match};
use crate::place::{Fault, Place, Word, Words};
use std::collections::BTreeMap;

/// Number of the first table, which Linux creates itself.
const ROOT: u32 = 0x800;
/// Largest number of tables that lead to one another, as in Linux.
const DEPTH: usize = 8;
/// Largest number of filters that replace those in tables.
const FILTERS: usize = 65_536;

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

    fn is_used(&self) -> bool {
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

/// Returns filters without hash tables that match the same packets, in the order of evaluation;
/// `None` if the filters use no table.
pub(crate) fn flattened(filters: &[&Filter]) -> Result<Option<Vec<Filter>>, (Place, Fault)> {
    if !filters.iter().any(|filter| filter.table.is_used()) {
        return Ok(None);
    }
    let mut tables = BTreeMap::<u32, (u32, Vec<(u32, &Filter)>)>::new();
    for filter in filters {
        if let Some(divisor) = filter.table.divisor {
            let word = filter.handle.as_ref().ok_or_else(|| {
                let why = "a hash table needs a number, such as `handle 2:`";
                (filter.line, filter.kind.fault(why))
            })?;
            let (number, _) = seat(word).map_err(|fault| (filter.line, fault))?;
            tables.insert(number, (divisor, Vec::new()));
        }
    }
    let mut first = Vec::new();
    for &filter in filters.iter().filter(|filter| filter.table.divisor.is_none()) {
        let (table, bucket) = filter.table.seat.unwrap_or((ROOT, 0));
        match tables.get_mut(&table) {
            Some((divisor, own)) if bucket < *divisor => own.push((bucket, filter)),
            Some((divisor, _)) => {
                let why = format!("the hash table `{table:x}:` has only {divisor} buckets");
                return Err((filter.line, filter.kind.fault(why)));
            }
            None if table >= ROOT => first.push(filter),
            None => return Err((filter.line, missing(filter, table))),
        }
    }
    let mut found = Vec::new();
    for filter in first {
        reached(filter, &[], &tables, DEPTH, &mut found)?;
    }
    Ok(Some(found))
}

fn missing(filter: &Filter, table: u32) -> Fault {
    filter.kind.fault(format!(
        "the hash table `{table:x}:` does not exist: `handle {table:x}: u32 divisor 256` creates it"
    ))
}

/// Adds a filter with the tests that lead to it, or the filters of the table to which it leads.
fn reached(
    filter: &Filter,
    before: &[Match],
    tables: &BTreeMap<u32, (u32, Vec<(u32, &Filter)>)>,
    depth: usize,
    found: &mut Vec<Filter>,
) -> Result<(), (Place, Fault)> {
    let tests = [before, &filter.tests].concat();
    let Some(link) = filter.table.link else {
        found.push(Filter { tests, ..filter.clone() });
        return Ok(());
    };
    let (divisor, own) = tables.get(&link).ok_or_else(|| (filter.line, missing(filter, link)))?;
    if depth == 0 || found.len() > FILTERS {
        let why = format!("the hash tables lead to one another more than {DEPTH} times");
        return Err((filter.line, filter.kind.fault(why)));
    }
    let (bits, offset) = filter.table.key.unwrap_or((0, 0));
    // As in Linux, the lowest bits of the masked word number the bucket.
    let shift = if bits == 0 { 0 } else { bits.trailing_zeros() };
    let mask = bits & ((divisor - 1) << shift);
    for (bucket, inner) in own {
        let value = bucket << shift;
        if value & !mask == 0 {
            let test = crate::filter::header_word(false, value, mask, offset);
            let lead = [tests.as_slice(), &[test]].concat();
            reached(inner, &lead, tables, depth - 1, found)?;
        }
    }
    Ok(())
}
