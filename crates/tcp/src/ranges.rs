//! A set of sequence numbers, kept as sorted, disjoint ranges.
//!
//! A receiver keeps in such a set the data that arrived out of order, a sender the data that was
//! acknowledged selectively. An insertion finds its position by bisection and changes only the
//! ranges that it joins.

use std::collections::VecDeque;

/// A half-open range: its first number, and the number after its last.
pub type Range = (u64, u64);

/// A set of numbers as sorted ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    list: VecDeque<Range>,
}

impl Ranges {
    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the number of ranges.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the lowest range.
    pub fn first(&self) -> Option<Range> {
        self.list.front().copied()
    }

    /// Returns the highest range.
    pub fn last(&self) -> Option<Range> {
        self.list.back().copied()
    }

    /// Removes and returns the lowest range.
    pub fn pop_first(&mut self) -> Option<Range> {
        self.list.pop_front()
    }

    /// Removes all numbers.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Returns the ranges in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range> + '_ {
        self.list.iter().copied()
    }

    /// Returns the range that holds `number`.
    #[inline]
    pub fn holding(&self, number: u64) -> Option<Range> {
        let last = self.list.back()?;
        if number >= last.0 {
            return (number < last.1).then_some(*last);
        }
        let at = self.list.partition_point(|r| r.1 <= number);
        self.list.get(at).copied().filter(|r| r.0 <= number)
    }

    /// Returns whether all of `start..end` is in the set.
    pub fn covers(&self, start: u64, end: u64) -> bool {
        start >= end || self.holding(start).is_some_and(|r| end <= r.1)
    }

    /// Removes all numbers below `bound`.
    #[inline]
    pub fn remove_below(&mut self, bound: u64) {
        while let Some(first) = self.list.front_mut() {
            if first.0 >= bound {
                break;
            }
            if first.1 > bound {
                first.0 = bound;
                break;
            }
            self.list.pop_front();
        }
    }

    /// Adds `start..end`; calls `gap(from, to)` for each part that was not in the set. Returns the
    /// range that now holds `start..end`.
    pub fn insert(&mut self, start: u64, end: u64, mut gap: impl FnMut(u64, u64)) -> Range {
        debug_assert!(start < end);
        // Usually the numbers arrive in order: they follow the last range or extend it.
        let low = match self.list.back_mut() {
            Some(last) if last.1 < start => {
                gap(start, end);
                self.list.push_back((start, end));
                return (start, end);
            }
            Some(last) if last.0 <= start => {
                if end > last.1 {
                    gap(last.1.max(start), end);
                    last.1 = end;
                }
                return *last;
            }
            None => {
                gap(start, end);
                self.list.push_back((start, end));
                return (start, end);
            }
            Some(_) => self.list.partition_point(|r| r.1 < start),
        };
        let mut joined = (start, end);
        let mut cursor = start;
        let mut high = low;
        while let Some(&(s, e)) = self.list.get(high) {
            if s > end {
                break;
            }
            if cursor < s {
                gap(cursor, s);
            }
            cursor = cursor.max(e);
            joined = (joined.0.min(s), joined.1.max(e));
            high += 1;
        }
        if cursor < end {
            gap(cursor, end);
        }
        if low == high {
            self.list.insert(low, joined);
        } else {
            self.list[low] = joined;
            if high > low + 1 {
                self.list.drain(low + 1..high);
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_bitmap(
            steps in prop::collection::vec((0u64..60, 1u64..12, 0u64..70), 1..60)
        ) {
            let mut ranges = Ranges::default();
            let mut bits = [false; 128];
            let mut floor = 0;
            for (start, len, query) in steps {
                let start = start.max(floor);
                let end = start + len;
                let mut gaps = Vec::new();
                let holding = ranges.insert(start, end, |a, b| gaps.extend(a..b));
                let new: Vec<u64> = (start..end).filter(|&n| !bits[n as usize]).collect();
                prop_assert_eq!(gaps, new);
                bits[start as usize..end as usize].fill(true);
                prop_assert!(holding.0 <= start && holding.1 >= end);
                prop_assert_eq!(ranges.holding(query).is_some(), bits[query as usize]);
                if query % 7 == 0 {
                    floor = query;
                    ranges.remove_below(query);
                    bits[..query as usize].fill(false);
                }
                let numbers: Vec<u64> = ranges.iter().flat_map(|(a, b)| a..b).collect();
                let expected: Vec<u64> = (0..128).filter(|&n| bits[n as usize]).collect();
                prop_assert_eq!(numbers, expected);
                prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0));
            }
        }
    }
}
