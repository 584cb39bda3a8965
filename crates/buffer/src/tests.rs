use super::*;
use proptest::prelude::*;
use sojourn_units::{Bytes, MILLISECOND, Nanos, SECOND};

fn policy(text: &str) -> (Params, Policy) {
    let params = Params::parse(text).unwrap();
    let policy = Policy::new(&params);
    (params, policy)
}

const ALL: [&str; 6] = [
    "static size 1mb",
    "on-demand floor 10kb budget 50mb",
    "rrda ceiling 50mb",
    "rrda alpha 0.2 k 1 ceiling 50mb epoch 7ms earlier stored",
    "elastic floor 10kb ceiling 50mb",
    "elastic target 1ms patience 5ms window 20ms",
];

prop_compose! {
    fn step()(
        dt in prop_oneof![0..50 * MILLISECOND, 0..20 * SECOND],
        needed in prop_oneof![Just(0u64), 1..100_000u64],
        occupied in prop_oneof![0..60_000_000u64, 0..2000u64, Just(GREATEST)],
        discarded in prop_oneof![Just(0u64), 0..50_000_000u64],
        processed in prop_oneof![Just(0u64), 0..50_000_000u64],
        memory in proptest::option::of((0..u64::MAX, 0..u64::MAX)),
        granted in prop_oneof![3 => Just(1.0), 1 => 0.1..3.0f64],
        back in prop_oneof![9 => Just(false), 1 => Just(true)],
    ) -> (Nanos, Observation, f64, bool) {
        let memory = memory.map(|(total, available)| Memory { total, available });
        let seen = Observation {
            needed, occupied, discarded, processed: Some(processed), memory,
            ..Observation::default()
        };
        (dt, seen, granted, back)
    }
}

proptest! {
    /// The contract of all policies: sizes are within the bounds and never below the occupied
    /// bytes. This is also true if times or counters decrease, or if the kernel grants another
    /// size. The same observations give the same decisions.
    #[test]
    fn every_policy_keeps_the_contract(
        which in 0..ALL.len(),
        start in 0..u64::MAX / 2,
        known in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let (params, mut policy) = policy(ALL[which]);
        let mut twin = policy.clone();
        let (least, most) = params.bounds();
        let mut size = params.initial();
        prop_assert!((least..=most).contains(&size));
        let (mut now, mut discarded, mut processed) = (start, 0u64, 0u64);
        for (dt, mut seen, granted, back) in steps {
            now = if back { now - dt.min(now) } else { now + dt };
            discarded = if back { discarded / 2 } else { discarded + seen.discarded };
            processed += seen.processed.unwrap_or(0);
            seen = Observation {
                now, size, discarded, processed: known.then_some(processed), ..seen
            };
            let decision = policy.observe(&seen);
            prop_assert_eq!(decision, twin.observe(&seen));
            prop_assert!(decision.size >= least.max(seen.occupied), "{:?} {:?}", seen, decision);
            prop_assert!(decision.size <= most.max(seen.occupied), "{:?} {:?}", seen, decision);
            size = (decision.size as f64 * granted) as Bytes;
        }
    }

    #[test]
    fn every_description_reads_back(
        which in 0..3usize,
        sizes in (1..1u64 << 30, 1..1u64 << 30, 1..1u64 << 30),
        times in (1..3600 * SECOND, 1..3600 * SECOND),
        thousandths in (0..=1000u32, proptest::option::of(0..=1000u32)),
        k in 1..1000u32,
        flags in any::<(bool, bool)>(),
    ) {
        let part = |n: u32| f64::from(n) / 1000.0;
        let real = (part(thousandths.0), thousandths.1.map(part));
        let mut s = [sizes.0, sizes.1, sizes.2];
        s.sort_unstable();
        let params = match which {
            0 => Params::OnDemand(on_demand::Params { floor: s[0], budget: s[1] }),
            1 => Params::Rrda(rrda::Params {
                initial: s[1], floor: s[0], ceiling: s[2], epoch: times.0, k,
                beta: f64::from(thousandths.0), omega: real.0, alpha: real.1,
                earlier: flags.0, stored: flags.1,
            }),
            _ => Params::Elastic(elastic::Params {
                floor: s[0], ready: s[2], ceiling: s[1], share: real.0,
                target: times.0, patience: times.1, window: times.0,
            }),
        };
        prop_assert_eq!(Params::parse(&params.to_string()).unwrap(), params);
    }
}

#[test]
fn defaults_are_those_of_the_tables() {
    let defaults = [
        Params::Static(r#static::Params::default()),
        Params::OnDemand(on_demand::Params::default()),
        Params::Rrda(rrda::Params::default()),
        Params::Elastic(elastic::Params::default()),
    ];
    for (table, default) in tables().iter().zip(defaults) {
        assert_eq!(Params::parse(table.name).unwrap(), default);
        assert_eq!(default.name(), table.name);
        let mut written = table.name.to_owned();
        for word in table.words.iter().filter(|word| !word.default.is_empty()) {
            written = format!("{written} {} {}", word.name, word.default);
        }
        assert_eq!(Params::parse(&written).unwrap(), default);
    }
}

#[test]
fn errors_name_the_word() {
    let error = |text: &str| Params::parse(text).unwrap_err().to_string();
    assert_eq!(error("elastik"), "unknown buffer policy `elastik`: did you mean `elastic`?");
    assert_eq!(error("static size 0"), "`size` must be above 0 and at most 1048576mb");
    assert_eq!(
        error("elastic floor 2mb ceiling 1mb"),
        "`floor` (2mb) must not be above `ceiling` (1mb)"
    );
    assert_eq!(error("rrda epoch 0ms"), "`epoch` must be above 0 and at most 1h");
    assert!(error("rrda alpha 1.5").contains("`alpha`"));
}

/// A policy and the state of its buffer, which the test changes step by step.
struct Bench {
    policy: Policy,
    seen: Observation,
}

impl Bench {
    fn new(text: &str) -> Self {
        let (params, policy) = policy(text);
        let seen =
            Observation { size: params.initial(), processed: Some(0), ..Observation::default() };
        Self { policy, seen }
    }

    fn observe(&mut self) -> Decision {
        let decision = self.policy.observe(&self.seen);
        self.seen.size = decision.size;
        decision
    }

    /// Offers a packet, which is stored or discarded; returns the reason of the decision.
    fn packet(&mut self, at: Nanos, bytes: Bytes) -> Reason {
        (self.seen.now, self.seen.needed) = (at, bytes);
        let decision = self.observe();
        self.seen.needed = 0;
        if self.seen.occupied + bytes <= decision.size {
            self.seen.occupied += bytes;
        } else {
            self.seen.discarded += bytes;
        }
        decision.reason
    }

    fn process(&mut self, most: Bytes) {
        let taken = most.min(self.seen.occupied);
        self.seen.occupied -= taken;
        self.seen.processed = self.seen.processed.map(|p| p + taken);
    }
}

mod rrda_equations {
    use super::*;

    /// Returns the sizes after epochs with these differences, which are changes of the occupied
    /// bytes.
    fn sizes(text: &str, memory: Option<Memory>, differences: &[i64]) -> Vec<Bytes> {
        let mut bench = Bench::new(text);
        bench.seen.occupied = 1 << 20;
        bench.seen.memory = memory;
        bench.observe();
        let mut sizes = Vec::new();
        for difference in differences {
            bench.seen.now += 100 * MILLISECOND;
            bench.seen.occupied = bench.seen.occupied.checked_add_signed(*difference).unwrap();
            bench.observe();
            sizes.push(bench.seen.size);
        }
        sizes
    }

    const M: Bytes = 100 << 20;

    /// Equations 1 to 4, calculated by hand with omega 1/2, k 3, beta 16 and alpha 1/4.
    #[test]
    fn one_to_four() {
        let text = "rrda initial 100mb alpha 0.25";
        // v' is 500, 750, 875 and 937.5; from the third epoch on, L grows by 0.75 x 16 x v'.
        let grown = M + 12 * 875;
        assert_eq!(
            sizes(text, None, &[1000, 1000, 1000, 1000]),
            [M, M, grown, grown + 12 * 937 + 6]
        );
        // v' is -500, -750 and -875; L falls by 0.25 x 16 x 875.
        assert_eq!(sizes(text, None, &[-1000, -1000, -1000]), [M, M, M - 4 * 875]);
        // v' is 500, -250, 375, ..., so no three successive values have the same sign.
        assert_eq!(sizes(text, None, &[1000, -1000, 1000, -1000, 1000]), [M; 5]);
        // One epoch with a large increase, followed by epochs with small decreases: the average
        // stays positive and L grows (scenario 3 of the paper becomes scenario 2).
        let after = sizes(text, None, &[100_000, -1000, -1000, -1000]);
        assert!(after[2] > M && after[3] > after[2]);
    }

    /// Equation 5: without free memory L does not grow, and shrinks by beta |v'|.
    #[test]
    fn five() {
        let full = Some(Memory { total: 1 << 32, available: 0 });
        let text = "rrda initial 100mb";
        assert_eq!(sizes(text, full, &[1000; 6]), [M; 6]);
        assert_eq!(sizes(text, full, &[-1000, -1000, -1000])[2], M - 16 * 875);
    }

    /// Equation 6: if all memory is free, L grows by beta |v'|, and never shrinks.
    #[test]
    fn six() {
        let free = Some(Memory { total: 1 << 32, available: 1 << 32 });
        let text = "rrda initial 100mb";
        assert_eq!(sizes(text, free, &[1000, 1000, 1000])[2], M + 16 * 875);
        assert_eq!(sizes(text, free, &[-1000; 6]), [M; 6]);
    }

    /// Discarded bytes also count as arrived, except with `stored`.
    #[test]
    fn discards_count_as_arrivals() {
        for (text, grown) in [("rrda alpha 0", 16 * 875), ("rrda alpha 0 stored", 0)] {
            let mut bench = Bench::new(text);
            bench.observe();
            for _ in 0..3 {
                bench.seen.now += 100 * MILLISECOND;
                bench.seen.discarded += 1000;
                bench.observe();
            }
            assert_eq!(bench.seen.size, (1 << 20) + grown);
        }
    }

    /// With `earlier`, the k epochs end before the one whose average gives the step.
    #[test]
    fn two_as_printed() {
        let text = "rrda initial 100mb alpha 0.25 earlier";
        let grown = M + 12 * 937 + 6;
        assert_eq!(sizes(text, None, &[1000, 1000, 1000, 1000]), [M, M, M, grown]);
        // v' is 875, then -562.5: the direction is that of the k epochs before.
        assert_eq!(sizes(text, None, &[1000, 1000, 1000, -2000])[3], M + 12 * 562 + 6);
    }

    /// After a late observation, its differences are divided equally among the epochs that have
    /// passed.
    #[test]
    fn late_observations() {
        let (mut late, mut punctual) = (Bench::new("rrda alpha 0"), Bench::new("rrda alpha 0"));
        late.observe();
        punctual.observe();
        for _ in 0..5 {
            punctual.seen.now += 100 * MILLISECOND;
            punctual.seen.discarded += 1000;
            punctual.observe();
        }
        late.seen.now = 500 * MILLISECOND;
        late.seen.discarded = 5000;
        late.observe();
        assert_eq!(late.seen.size, punctual.seen.size);
        late.seen.now = u64::MAX;
        late.observe();
    }

    /// If alpha is below 1/2, equal increases and decreases leave the buffer larger than before.
    #[test]
    fn drifts_up_where_memory_is_free() {
        let cycle = [1000i64; 6].into_iter().chain([-1000; 6]);
        let differences: Vec<i64> = cycle.clone().chain(cycle.clone()).chain(cycle).collect();
        let last =
            |alpha| *sizes(&format!("rrda alpha {alpha}"), None, &differences).last().unwrap();
        assert!(last(0.2) > 1_048_576 && last(0.2) > last(0.5) && last(0.5) > last(0.8));
    }
}

mod elastic_behaviour {
    use super::*;

    /// Simulates `ms` milliseconds with one packet of 1000 bytes per millisecond. In millisecond i,
    /// `work(i)` bytes are processed. Returns the greatest size.
    fn drive(bench: &mut Bench, ms: u64, work: impl Fn(u64) -> Bytes) -> Bytes {
        let start = bench.seen.now / MILLISECOND;
        let mut most = 0;
        for i in 1..=ms {
            bench.process(work(start + i));
            bench.packet((start + i) * MILLISECOND, 1000);
            most = most.max(bench.seen.size);
        }
        most
    }

    const TEXT: &str = "elastic floor 10kb ceiling 50mb";

    #[test]
    fn a_pause_loses_nothing_and_is_forgotten() {
        let mut bench = Bench::new(TEXT);
        // The handler pauses for two of every eight seconds.
        let peak = drive(&mut bench, 16_000, |i| if i % 8000 < 2000 { 0 } else { 2000 });
        assert_eq!(bench.seen.discarded, 0);
        assert!((2_000_000..3_000_000).contains(&peak), "{peak}");
        // First the handler is idle at times, then the buffer stays empty: the size returns to the
        // floor.
        drive(&mut bench, 120_000, |_| 2000);
        assert_eq!(bench.seen.size, 10 << 10);
    }

    #[test]
    fn a_standing_queue_is_cut_down_to_its_target() {
        let mut bench = Bench::new(TEXT);
        // Half of the arriving bytes are processed: 500 bytes per millisecond, which is 50 kB in
        // 100 ms.
        let peak = drive(&mut bench, 20_000, |_| 500);
        // The backlog grows by 500 bytes per millisecond during the three seconds of patience; a
        // quarter is added.
        assert!(peak < 2_500_000, "{peak}");
        assert!(bench.seen.size <= 51_000, "{}", bench.seen.size);
        assert!(bench.seen.occupied <= bench.seen.size);
        // After the handler has caught up, the buffer grows again for the next pause.
        drive(&mut bench, 2_000, |_| 3000);
        let before = bench.seen.discarded;
        drive(&mut bench, 2_000, |_| 0);
        drive(&mut bench, 2_000, |_| 3000);
        assert_eq!(bench.seen.discarded, before);
    }

    #[test]
    fn a_dead_handler_is_given_the_ceiling_of_its_patience() {
        let mut bench = Bench::new(TEXT);
        drive(&mut bench, 60_000, |_| 0);
        assert!(bench.seen.size <= 4_000_000, "{}", bench.seen.size);
    }

    /// Silence does not count as slowness: after a minute with hardly any work, the buffer still
    /// has space for a burst.
    #[test]
    fn a_burst_after_silence_is_met() {
        let mut bench = Bench::new(TEXT);
        drive(&mut bench, 10_000, |_| 1000);
        bench.process(u64::MAX);
        bench.seen.now += 60 * SECOND;
        let at = bench.seen.now;
        for i in 0..2000 {
            bench.packet(at + i, 1000);
        }
        assert_eq!(bench.seen.discarded, 0);
    }

    /// Outside the server, with an observation every 10 ms: the size stays ahead of the observed
    /// occupancy, and doubles after a loss.
    #[test]
    fn from_outside_it_keeps_ahead() {
        let mut bench = Bench::new(TEXT);
        bench.seen.processed = None;
        bench.observe();
        let mut lost = Vec::new();
        for i in 1..=600u64 {
            bench.seen.now = i * 10 * MILLISECOND;
            // 10 kB arrive in each 10 ms. The handler pauses for 50 of every 200 ms, and then
            // empties the buffer.
            if i % 20 >= 5 {
                bench.seen.occupied = 0;
            } else {
                let room = bench.seen.size - bench.seen.occupied;
                bench.seen.occupied += room.min(10_000);
                bench.seen.discarded += 10_000 - room.min(10_000);
                if room < 10_000 {
                    lost.push(i);
                }
            }
            bench.observe();
        }
        assert!(lost.len() <= 2, "{lost:?}");
        assert!(bench.seen.size < 100_000, "{}", bench.seen.size);
    }

    #[test]
    fn memory_bounds_it() {
        let mut bench = Bench::new(TEXT);
        bench.seen.memory = Some(Memory { total: 1_000_000, available: 500_000 });
        drive(&mut bench, 1_000, |_| 0);
        assert_eq!(bench.seen.size, 100_000, "a tenth");
        bench.process(u64::MAX);
        bench.seen.memory = Some(Memory { total: 1_000_000, available: 10_000 });
        drive(&mut bench, 25_000, |_| 1000);
        bench.seen.now += MILLISECOND;
        let decision = bench.observe();
        assert_eq!(decision.reason, Reason::Pressure);
        assert!(decision.size <= 20_000, "{decision:?}");
    }
}

#[test]
fn on_demand_doubles_within_its_budget() {
    let mut bench = Bench::new("on-demand floor 10kb budget 100kb");
    for i in 0..50 {
        bench.packet(i, 1000);
    }
    assert_eq!((bench.seen.size, bench.seen.discarded), (80 << 10, 0));
    for i in 50..150 {
        bench.packet(i, 1000);
    }
    assert_eq!((bench.seen.size, bench.seen.discarded), (100 << 10, 48_000));
    bench.process(u64::MAX);
    assert_eq!(bench.observe().size, 100 << 10);
    // Outside the server, the policy grows if the buffer is more than half full, or after discards.
    let mut bench = Bench::new("on-demand floor 10kb budget 100kb");
    bench.seen.occupied = 6000;
    assert_eq!(bench.observe(), Decision { size: 20 << 10, reason: Reason::Demand });
    bench.seen.discarded = 1;
    assert_eq!(bench.observe(), Decision { size: 40 << 10, reason: Reason::Discards });
    assert_eq!(bench.observe().reason, Reason::Hold);
}

mod outside {
    use super::*;
    use crate::external::{self, Factory};
    use sojourn_units::external::Fault;
    use std::sync::Arc;

    /// Returns the bytes that are needed next as the size; fails for a packet of one byte.
    #[derive(Clone)]
    struct Echo;

    impl external::Policy for Echo {
        fn observe(&mut self, seen: &Observation) -> Result<Bytes, Fault> {
            if seen.needed == 1 { Err(Fault("one".to_owned())) } else { Ok(seen.needed) }
        }

        fn state(&self, _visit: &mut dyn FnMut(&str, f64)) {}

        fn copy(&self) -> Box<dyn external::Policy> {
            Box::new(self.clone())
        }

        fn on_fault(&mut self, now: Nanos, fault: &Fault) {
            assert_eq!((now, fault.0.as_str()), (7, "one"));
        }
    }

    impl Factory for Echo {
        fn create(&self, _params: &external::Params) -> Result<Box<dyn external::Policy>, Fault> {
            Ok(Box::new(self.clone()))
        }

        fn on_fault(&self, fault: &Fault) {
            panic!("{fault}");
        }
    }

    #[test]
    fn sizes_stay_within_their_bounds_and_after_a_fault_as_they_are() {
        let params = Params::External(external::Params::bound("echo", Arc::new(Echo)));
        let (least, most) = params.bounds();
        let mut policy = Policy::new(&params);
        let mut ask = |needed, occupied| {
            let seen = Observation { now: 7, size: least, needed, occupied, ..Default::default() };
            let Decision { size, reason } = policy.observe(&seen);
            (size, reason)
        };
        assert_eq!(ask(100_000, 0), (100_000, Reason::Policy));
        assert_eq!(ask(least, 0), (least, Reason::Hold));
        assert_eq!(ask(5, 0), (least, Reason::Bound));
        assert_eq!(ask(GREATEST, 0), (most, Reason::Bound));
        assert_eq!(ask(5, 80_000), (80_000, Reason::Bound));
        assert_eq!(ask(1, 0), (least, Reason::Hold));
        assert_eq!(ask(100_000, 70_000), (70_000, Reason::Hold));
        assert!(Params::parse("external").is_err());
    }
}

/// The buffer has space for a first burst. If the handler does not catch up, the buffer shrinks.
#[test]
fn elastic_is_ready_unless_the_queue_persists() {
    let params = Params::parse("elastic ready 8mb").unwrap();
    assert_eq!(params.initial(), 8 << 20);
    let mut policy = Policy::new(&params);
    let look = |now, size, occupied, discarded, processed| Observation {
        now,
        size,
        occupied,
        discarded,
        processed: Some(processed),
        ..Observation::default()
    };
    let first = policy.observe(&look(SECOND, 212_992, 0, 0, 0));
    assert_eq!(first.size, 8 << 20);
    // The buffer is full for ten seconds, while 100 kB/s are processed.
    let mut cut = Policy::new(&params);
    let mut last = 8 << 20;
    for step in 1..=1000 {
        let held = u64::min(last, 2 << 20);
        let seen = look(SECOND + step * 10 * MILLISECOND, last, held, 5000 * step, 1000 * step);
        last = cut.observe(&seen).size;
    }
    assert!(last <= 2 << 20, "{last}");
    assert_eq!(cut.observe(&look(12 * SECOND, last, 0, 5_000_000, 2_000_000)).size, 8 << 20);
}
