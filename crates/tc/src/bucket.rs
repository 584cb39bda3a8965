//! Filters in the hash tables of `u32` as filters that also test their bucket.
//!
//! Source: `u32_classify` of Linux.

use crate::filter::{Filter, Match, header_word};
use crate::place::{Fault, Place};
use crate::table::{ROOT, seat};
use std::collections::BTreeMap;

/// Largest number of tables that lead to one another, as in Linux.
const DEPTH: usize = 8;
/// Largest number of filters that replace those in tables.
const FILTERS: usize = 65_536;

/// The filters of each bucket that is in use, with the number of buckets, by table.
type Tables<'a> = BTreeMap<u32, (u32, Vec<(u32, &'a Filter)>)>;
/// A fault, with the line of its filter.
type Failure = Box<(Place, Fault)>;

/// Returns filters without hash tables that match the same packets, in the order of evaluation;
/// `None` if the filters use no table.
pub(crate) fn flattened(filters: &[&Filter]) -> Result<Option<Vec<Filter>>, Failure> {
    if !filters.iter().any(|filter| filter.table.is_used()) {
        return Ok(None);
    }
    let mut tables = Tables::new();
    for filter in filters {
        if let Some(divisor) = filter.table.divisor {
            let word = filter.handle.as_ref().ok_or_else(|| {
                let why = "a hash table needs a number, such as `handle 2:`";
                Box::new((filter.line, filter.kind.fault(why)))
            })?;
            let (number, _) = seat(word).map_err(|fault| Box::new((filter.line, fault)))?;
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
                return Err(Box::new((filter.line, filter.kind.fault(why))));
            }
            None if table >= ROOT => first.push(filter),
            None => return Err(Box::new((filter.line, missing(filter, table)))),
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
    tables: &Tables<'_>,
    depth: usize,
    found: &mut Vec<Filter>,
) -> Result<(), Failure> {
    let tests = [before, &filter.tests].concat();
    let Some(link) = filter.table.link else {
        found.push(Filter { tests, ..filter.clone() });
        return Ok(());
    };
    let (divisor, own) =
        tables.get(&link).ok_or_else(|| Box::new((filter.line, missing(filter, link))))?;
    if depth == 0 || found.len() > FILTERS {
        let why = format!("the hash tables lead to one another more than {DEPTH} times");
        return Err(Box::new((filter.line, filter.kind.fault(why))));
    }
    let (bits, offset) = filter.table.key.unwrap_or((0, 0));
    // As in Linux, the lowest bits of the masked word number the bucket.
    let shift = if bits == 0 { 0 } else { bits.trailing_zeros() };
    let mask = bits & ((divisor - 1) << shift);
    for (bucket, inner) in own {
        let value = bucket << shift;
        if value & !mask == 0 {
            let test = header_word(false, value, mask, offset);
            let lead = [tests.as_slice(), &[test]].concat();
            reached(inner, &lead, tables, depth - 1, found)?;
        }
    }
    Ok(())
}
