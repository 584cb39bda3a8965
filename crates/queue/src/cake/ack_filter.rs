//! CAKE's filter of acknowledgements that are redundant after a later one.
//!
//! A pure acknowledgement is redundant if a later segment of the same connection acknowledges the
//! same data and more, by its number or SACK blocks, and has equal ECE and CWR flags. The filter
//! drops the older of two redundant acknowledgements, so that the sender still receives
//! acknowledgements frequently. In aggressive mode it also drops a single redundant acknowledgement
//! directly before the arriving segment.

use crate::packet::TcpView;
use sojourn_units::choices;
use std::cmp::Ordering;

choices! {
    /// Mode of the acknowledgement filter.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[serde(rename_all = "snake_case")]
    pub enum AckFilter {
        /// No filter.
        #[default]
        Off = "no-ack-filter",
        /// Leaves one redundant acknowledgement in the queue.
        On = "ack-filter",
        /// Also drops a single redundant acknowledgement directly before the arriving segment.
        Aggressive = "ack-filter-aggressive",
    }
}

impl AckFilter {
    /// Returns the index in `waiting` of the packet to drop after the arrival of `arrived`.
    /// `waiting` has the other packets of the queue from its head; packets that are not TCP are
    /// `None`.
    pub fn redundant(
        self,
        arrived: &TcpView,
        waiting: impl ExactSizeIterator<Item = Option<TcpView>>,
    ) -> Option<usize> {
        if arrived.flags & (TcpView::ACK | TcpView::SYN) != TcpView::ACK {
            return None;
        }
        let last = waiting.len().checked_sub(1)?;
        let mut first: Option<(usize, u8)> = None;
        let mut candidates = 0;
        for (place, view) in waiting.enumerate() {
            let Some(view) = view.filter(|view| view.is_with(arrived)) else {
                continue;
            };
            if first.is_some_and(|(_, marks)| marks != view.flags & MARKS) {
                first = None;
                candidates -= 1;
            }
            if !is_covered(&view, arrived) {
                continue;
            }
            let (oldest, _) = *first.get_or_insert((place, view.flags & MARKS));
            candidates += 1;
            if candidates > 1 {
                return Some(oldest);
            }
        }
        first
            .filter(|&(place, marks)| {
                self == Self::Aggressive && place == last && marks == arrived.flags & MARKS
            })
            .map(|(place, _)| place)
    }
}

/// TCP flags that report congestion.
const MARKS: u8 = TcpView::ECE | TcpView::CWR;

/// Returns whether `older` has no information that `newer` lacks.
fn is_covered(older: &TcpView, newer: &TcpView) -> bool {
    let (value, echo) = newer.timestamps.unwrap_or_default();
    let is_bare = older.flags & !MARKS == TcpView::ACK
        && !older.other_options
        && older.payload == 0
        && !older.timestamps.is_some_and(|(v, e)| is_after(v, value) || is_after(e, echo));
    if !is_bare || is_after(older.ack, newer.ack) {
        return false;
    }
    match compare_sack(older, newer) {
        Ordering::Less => true,
        Ordering::Equal => older.ack != newer.ack,
        Ordering::Greater => false,
    }
}

/// Compares the SACK blocks of two segments: `Less` if `newer` covers all blocks of `older` and
/// more, `Equal` if it covers the same bytes, `Greater` if it does not cover them. A D-SACK block
/// is never covered.
fn compare_sack(older: &TcpView, newer: &TcpView) -> Ordering {
    let (olds, news) = (older.sack.as_slice(), newer.sack.as_slice());
    if olds.is_empty() || news.is_empty() {
        return olds.len().min(1).cmp(&news.len().min(1));
    }
    for &(start, end) in olds {
        let is_dsack = is_after(older.ack, start);
        let covers = |&(left, right): &(u32, u32)| !is_after(left, start) && !is_after(end, right);
        if is_dsack || !news.iter().any(covers) {
            return Ordering::Greater;
        }
    }
    let bytes = |blocks: &[(u32, u32)]| {
        blocks.iter().fold(0u32, |sum, (start, end)| sum.wrapping_add(end.wrapping_sub(*start)))
    };
    if bytes(news) > bytes(olds) { Ordering::Less } else { Ordering::Equal }
}

/// Returns whether sequence number or timestamp `one` is after `other`, modulo 2^32.
fn is_after(one: u32, other: u32) -> bool {
    (other.wrapping_sub(one) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(ack: u32) -> TcpView {
        TcpView { ack, flags: TcpView::ACK, ..TcpView::default() }
    }

    fn redundant(filter: AckFilter, waiting: &[TcpView], arrived: &TcpView) -> Option<usize> {
        filter.redundant(arrived, waiting.iter().map(|view| Some(*view)))
    }

    #[test]
    fn the_first_of_two_goes() {
        let on = |waiting: &[TcpView], arrived| redundant(AckFilter::On, waiting, &arrived);
        assert_eq!(on(&[], ack(3)), None);
        assert_eq!(on(&[ack(1)], ack(3)), None);
        assert_eq!(on(&[ack(1), ack(2)], ack(3)), Some(0));
        // A duplicate acknowledgement is information; an acknowledgement of later data is not
        // redundant.
        assert_eq!(on(&[ack(3), ack(3)], ack(3)), None);
        assert_eq!(on(&[ack(4), ack(5), ack(1), ack(2)], ack(3)), Some(2));
        // Sequence numbers wrap.
        assert_eq!(on(&[ack(u32::MAX - 1), ack(u32::MAX)], ack(3)), Some(0));
        // Data segments may be between them, but are not dropped.
        let data = TcpView { payload: 100, ..ack(2) };
        assert_eq!(on(&[ack(1), data, ack(2)], TcpView { payload: 9, ..ack(3) }), Some(0));
        assert_eq!(on(&[ack(1), data], ack(3)), None);
    }

    #[test]
    fn other_connections_and_flags_are_left_alone() {
        let other = TcpView { ports: (7, 8), ..ack(1) };
        assert_eq!(redundant(AckFilter::On, &[other, ack(1), other], &ack(3)), None);
        for flag in [TcpView::FIN, TcpView::SYN, TcpView::RST, TcpView::PSH, TcpView::URG] {
            let odd = TcpView { flags: TcpView::ACK | flag, ..ack(1) };
            assert_eq!(redundant(AckFilter::On, &[odd, odd], &ack(3)), None);
        }
        let odd = TcpView { other_options: true, ..ack(1) };
        assert_eq!(redundant(AckFilter::On, &[odd, odd], &ack(3)), None);
        for flags in [0, TcpView::ACK | TcpView::SYN] {
            let arrived = TcpView { flags, ..ack(3) };
            assert_eq!(redundant(AckFilter::On, &[ack(1), ack(2)], &arrived), None);
        }
        let none = [None, None].into_iter();
        assert_eq!(AckFilter::On.redundant(&ack(3), none), None);
    }

    #[test]
    fn news_of_congestion_is_kept() {
        let marked = |n| TcpView { flags: TcpView::ACK | TcpView::ECE, ..ack(n) };
        // The filter keeps the first marked acknowledgement after an unmarked one, and the unmarked
        // one.
        assert_eq!(redundant(AckFilter::On, &[ack(1), marked(2)], &ack(9)), None);
        let run = [ack(1), marked(2), marked(3)];
        assert_eq!(redundant(AckFilter::On, &run, &ack(9)), Some(1));
        assert_eq!(redundant(AckFilter::Aggressive, &[ack(1)], &ack(9)), Some(0));
        assert_eq!(redundant(AckFilter::Aggressive, &[marked(1)], &ack(9)), None);
        let other = TcpView { hosts: (7, 8), ..ack(1) };
        assert_eq!(redundant(AckFilter::Aggressive, &[ack(1), other], &ack(9)), None);
    }

    #[test]
    fn times_never_run_back() {
        let at = |value, echo, n| TcpView { timestamps: Some((value, echo)), ..ack(n) };
        let aggressive =
            |waiting, arrived| redundant(AckFilter::Aggressive, &[waiting], &arrived).is_some();
        assert!(aggressive(at(5, 5, 1), at(5, 6, 2)));
        assert!(!aggressive(at(6, 5, 1), at(5, 6, 2)));
        assert!(!aggressive(at(5, 7, 1), at(5, 6, 2)));
        assert!(aggressive(ack(1), at(5, 6, 2)));
        assert!(!aggressive(at(5, 6, 1), ack(2)));
    }

    #[test]
    fn blocks_must_be_covered() {
        let with =
            |n, blocks: &[(u32, u32)]| TcpView { sack: blocks.iter().copied().collect(), ..ack(n) };
        let compare = |a: &[(u32, u32)], b: &[(u32, u32)]| compare_sack(&with(10, a), &with(10, b));
        assert_eq!(compare(&[], &[]), Ordering::Equal);
        assert_eq!(compare(&[(20, 30)], &[]), Ordering::Greater);
        assert_eq!(compare(&[], &[(20, 30)]), Ordering::Less);
        assert_eq!(compare(&[(20, 30)], &[(20, 30)]), Ordering::Equal);
        assert_eq!(compare(&[(20, 30)], &[(15, 35)]), Ordering::Less);
        assert_eq!(compare(&[(20, 30)], &[(40, 50), (20, 30)]), Ordering::Less);
        assert_eq!(compare(&[(20, 30)], &[(21, 40)]), Ordering::Greater);
        assert_eq!(compare(&[(5, 9)], &[(5, 9), (20, 30)]), Ordering::Greater);
        // An acknowledgement with more SACK blocks replaces one with the same number; one with
        // equal blocks does not.
        let replaces = |a: &[(u32, u32)], b: &[(u32, u32)]| is_covered(&with(10, a), &with(10, b));
        assert!(replaces(&[(20, 30)], &[(20, 40)]));
        assert!(!replaces(&[(20, 30)], &[(20, 30)]));
    }
}
