//! Times of changes, and the parameters of a link after changes.

use proptest::prelude::*;
use sojourn_link::{Cells, Impairments, Loss, Params};
use sojourn_plan::{Change, Schedule, Wire};
use sojourn_queue::Device;
use sojourn_units::{Nanos, Rate};

const MBIT: u64 = 1_000_000;

fn params() -> Params {
    Params {
        rate: Rate::new(10 * MBIT),
        trace: None,
        overhead: 7,
        cells: Cells::None,
        delay: 1_000,
        impairments: Impairments::default(),
        queue: sojourn_queue::Params::parse("codel", &Device::default()).unwrap(),
    }
}

fn rate(at: Nanos, every: Nanos, mbit: u64) -> Change {
    Change { at, every, rate: Rate::new(mbit * MBIT), wire: None }
}

/// Returns the times and parameters of the changes before `end`.
fn until(changes: &[Change], end: Nanos) -> Vec<(Nanos, Params)> {
    let mut schedule = Schedule::new(&params(), changes);
    let mut found = Vec::new();
    while let Some(at) = schedule.next_at().filter(|at| *at < end) {
        let (taken, params) = schedule.take_next().unwrap();
        assert_eq!(taken, at);
        found.push((at, params.clone()));
    }
    found
}

fn rates(changes: &[Change], end: Nanos) -> Vec<(Nanos, u64)> {
    let mbit = |params: &Params| params.rate.unwrap().bits() / MBIT;
    until(changes, end).iter().map(|(at, params)| (*at, mbit(params))).collect()
}

#[test]
fn parameters_that_a_change_omits_keep_their_values() {
    let loss = Loss::Random { probability: 0.1, correlation: 0.0 };
    let wire = Wire { delay: 5, impairments: Impairments { loss, ..Impairments::default() } };
    let wired = |at, wire| Change { wire: Some(wire), rate: None, ..rate(at, 0, 1) };
    let changes = [rate(30, 0, 1), wired(10, wire), wired(40, Wire::default())];
    let found = until(&changes, 100);
    let first = Params { delay: 5, impairments: wire.impairments, ..params() };
    let second = Params { rate: Rate::new(MBIT), ..first.clone() };
    let third = Params { delay: 0, impairments: Impairments::default(), ..second.clone() };
    assert_eq!(found, [(10, first), (30, second), (40, third)]);
}

#[test]
fn periods_alternate() {
    let changes = [rate(20, 40, 1), rate(40, 40, 2)];
    assert_eq!(rates(&changes, 121), [(20, 1), (40, 2), (60, 1), (80, 2), (100, 1), (120, 2)]);
}

#[test]
fn the_last_word_wins_at_one_time() {
    // Of simultaneous changes, the last one in the list applies, regardless of which one repeats.
    let changes = [rate(0, 10, 1), rate(20, 0, 2), rate(5, 5, 3)];
    assert_eq!(rates(&changes, 26), [(0, 1), (5, 3), (10, 3), (15, 3), (20, 3), (25, 3)]);
    let changes = [rate(5, 5, 3), rate(20, 0, 2), rate(0, 10, 1)];
    assert_eq!(rates(&changes, 26), [(0, 1), (5, 3), (10, 1), (15, 3), (20, 1), (25, 3)]);
}

#[test]
fn the_end_of_time_is_no_trouble() {
    let changes = [rate(Nanos::MAX - 1, Nanos::MAX, 1), rate(Nanos::MAX, 1, 2)];
    assert_eq!(rates(&changes, Nanos::MAX), [(Nanos::MAX - 1, 1)]);
    assert_eq!(changes[0].times(Nanos::MAX), 1);
    assert_eq!(changes[1].times(Nanos::MAX), 0);
}

fn any_changes() -> impl Strategy<Value = Vec<Change>> {
    let change = (0..50u64, 0..20u64, 1..10u64);
    proptest::collection::vec(change.prop_map(|(at, every, mbit)| rate(at, every, mbit)), 0..8)
}

proptest! {
    #[test]
    fn periods_are_the_same_written_out(changes in any_changes(), end in 1..200u64) {
        let mut written = Vec::new();
        for at in 0..end {
            for change in &changes {
                let since = at.checked_sub(change.at);
                let happens = match since {
                    Some(since) if change.every > 0 => since % change.every == 0,
                    since => since == Some(0),
                };
                if happens {
                    written.push(Change { at, every: 0, ..change.clone() });
                }
            }
        }
        let times: u64 = changes.iter().map(|change| change.times(end)).sum();
        prop_assert_eq!(times, written.len() as u64);
        prop_assert_eq!(until(&changes, end), until(&written, end));
    }
}
