//! A run in steps equals a run at once, and its log contains the packet events.

use crate::common::*;
use crate::plans::dumbbells;
use proptest::prelude::*;
use sojourn_link::Event;
use sojourn_plan::Plan;
use sojourn_sim::{Record, Stepwise};
use sojourn_units::SECOND;

fn in_steps(plan: &Plan, seed: u64, steps: &[u64]) -> Record {
    let mut run = Stepwise::new(plan, seed).unwrap();
    for (i, &step) in steps.iter().enumerate() {
        // From here on all links have events of their own.
        if i == steps.len() / 2 {
            run.log(&plan.observe.bottleneck.links);
        }
        run.advance(run.now() + step).unwrap();
    }
    run.advance(plan.duration).unwrap();
    run.into_record()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]
    #[test]
    fn steps_change_nothing(
        plan in dumbbells(),
        seed: u64,
        steps in prop::collection::vec(0..SECOND, 0..20),
    ) {
        let whole = run(&plan, seed).unwrap();
        let stepped = in_steps(&plan, seed, &steps);
        prop_assert!(stepped.complete);
        prop_assert_eq!(format!("{whole:?}"), format!("{stepped:?}"));
    }
}

fn full_queue() -> Plan {
    let net = Dumbbell::new(1, 10_000_000, 20 * MS, "pfifo limit 20p");
    net.group("bulk", 2, tcp("cubic"), "bulk").seconds(0, 5).plan
}

#[test]
fn a_step_ends_at_its_time() {
    let plan = full_queue();
    let mut run = Stepwise::new(&plan, 1).unwrap();
    run.advance(1500 * MS).unwrap();
    assert_eq!(run.now(), 1500 * MS);
    assert!(!run.is_complete());
    run.advance(100 * MS).unwrap();
    assert_eq!(run.now(), 1500 * MS, "time does not go back");
    run.advance(u64::MAX).unwrap();
    assert_eq!(run.now(), plan.duration);
    assert!(run.is_complete());
}

#[test]
fn the_log_has_every_packet_of_the_link() {
    let plan = full_queue();
    let mut run = Stepwise::new(&plan, 1).unwrap();
    run.log(&[0]);
    let mut log = Vec::new();
    for end in (0..=50).map(|i| i * 100 * MS) {
        run.advance(end).unwrap();
        let events = run.take_log();
        assert!(events.iter().all(|event| event.at <= end));
        log.extend(events);
    }
    let count = |wanted: fn(Event) -> bool| log.iter().filter(|e| wanted(e.event)).count();
    let record = run.into_record();
    let dropped = count(|event| matches!(event, Event::Dropped { .. }));
    assert!(dropped > 0);
    assert_eq!(real(&record.queues, "drops", 0) as usize, dropped);
    let (offered, departed) =
        (count(|event| event == Event::Offered), count(|event| event == Event::Departed));
    assert!(offered >= dropped + departed);
    assert!(offered <= dropped + departed + 20, "no more than the queue holds");
    assert!(log.iter().all(|event| event.link == 0 && event.direction % 2 == 0));
}

#[test]
fn the_log_begins_and_ends_between_steps() {
    let plan = full_queue();
    let mut run = Stepwise::new(&plan, 1).unwrap();
    run.advance(1000 * MS).unwrap();
    assert!(run.take_log().is_empty());
    run.log(&[0]);
    run.advance(1200 * MS).unwrap();
    run.log(&[]);
    run.advance(1400 * MS).unwrap();
    let log = run.take_log();
    assert!(log.len() > 100);
    assert!(log.iter().all(|event| (1000 * MS..=1200 * MS).contains(&event.at)));
}
