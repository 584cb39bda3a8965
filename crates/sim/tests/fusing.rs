//! Links without events of their own change no result: all tables, series and hashes are equal to
//! those of runs in which every link has events of its own.

use crate::common::*;
use crate::plans::{dumbbells, lans};
use proptest::prelude::*;
use sojourn_link::Impairments;
use sojourn_plan::{Bottleneck, Plan, Transport};
use sojourn_sim::{Control, Options, Record, run_with};
use sojourn_units::{Rate, SECOND};

/// Returns a run's record, and the number of events that the event loop processed.
fn counted(plan: &Plan, seed: u64, fused: bool) -> (Record, u64) {
    let monitor = plan.observe.monitor;
    let options = Options { trace: true, probes: true, monitor, adjustable: false, fused };
    let mut processed = 0;
    let record = run_with(plan, seed, options, &mut |progress| {
        processed = progress.processed;
        Control::Continue
    });
    (record.unwrap(), processed)
}

fn record(plan: &Plan, seed: u64, fused: bool) -> Record {
    counted(plan, seed, fused).0
}

fn assert_same(plan: &Plan, seed: u64) {
    let (with, without) = (record(plan, seed, true), record(plan, seed, false));
    assert_eq!(with.trace_hash, without.trace_hash);
    assert_eq!(with.events, without.events);
    let tables = |r: &Record| {
        [&r.summary, &r.flows, &r.queues, &r.series, &r.distributions, &r.flow_series]
            .map(|table| format!("{table:?}"))
    };
    for (with, without) in tables(&with).into_iter().zip(tables(&without)) {
        assert_eq!(with, without);
    }
    assert!(with.captures == without.captures);
}

#[test]
fn about_half_of_the_events_take_no_turn() {
    for queue in ["pfifo limit 100p", "fq_codel"] {
        let net = Dumbbell::new(4, 10_000_000, 20 * MS, queue);
        let plan = net.group("bulk", 4, tcp("cubic"), "bulk").seconds(0, 5).plan;
        let ((with, few), (without, many)) = (counted(&plan, 1, true), counted(&plan, 1, false));
        assert_eq!(with.events, without.events);
        assert!(few * 4 < many * 3, "{queue}: {few} turns of {many}");
    }
}

/// Measurements and stops at any time give the same results.
#[test]
fn a_run_that_stops_early_is_as_it_was_then() {
    let net = Dumbbell::new(2, 10_000_000, 20 * MS, "pfifo limit 100p");
    let plan = net.group("bulk", 4, tcp("cubic"), "bulk").seconds(0, 5).plan;
    let stopped = |fused| {
        let options =
            Options { trace: true, probes: true, monitor: false, adjustable: false, fused };
        let mut stop = |progress: sojourn_sim::Progress| {
            if progress.now > 1_234 * MS { Control::Stop } else { Control::Continue }
        };
        let record = run_with(&plan, 1, options, &mut stop).unwrap();
        assert!(!record.complete);
        format!("{record:?}")
    };
    assert_eq!(stopped(true), stopped(false));
}

/// Queues of the bottleneck. Several of the choices are FIFOs, since only FIFOs can be deferred.
fn queue_text() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..60u32).prop_map(|n| format!("pfifo limit {n}p")),
        (1500..60_000u32).prop_map(|n| format!("bfifo limit {n}")),
        Just("pfifo limit 1000p".to_owned()),
        Just("codel ecn".to_owned()),
        Just("fq_codel limit 100p".to_owned()),
        Just("pie ecn".to_owned()),
        Just("pfifo_head_drop limit 20p".to_owned()),
        Just("tbf rate 3mbit burst 5000 limit 50000".to_owned()),
        Just("fq limit 100p maxrate 5mbit".to_owned()),
    ]
}

/// Rates of links. The fixed ones make transmissions on several links end at the same nanosecond.
fn rates() -> impl Strategy<Value = u64> {
    prop_oneof![Just(8_000_000), Just(16_000_000), Just(40_000_000), 1_000_000..60_000_000u64]
}

fn delays() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1000), Just(1_000_000), 0..20 * MS]
}

fn traffic() -> impl Strategy<Value = Vec<(&'static str, &'static str, u32)>> {
    let group = prop_oneof![
        Just(("cubic", "bulk")),
        Just(("reno", "transfer size pareto2(30kb,1.5) forever think exp(100ms)")),
        Just(("bbr", "bulk")),
        Just(("dctcp", "transfer size 100kb repeat 3")),
        Just(("reno", "web pages 2 interpage exp(200ms) objects exp(3) interobject exp(20ms)")),
        Just(("", "cbr rate 2mbit size 1000")),
        Just(("", "cbr rate 1mbit size 500 jitter 20%")),
        Just(("", "packets interval exp(1ms) size uniform(60,1514)")),
    ];
    prop::collection::vec((group, 1..5u32).prop_map(|((tcp, app), n)| (tcp, app, n)), 1..4)
}

prop_compose! {
    /// Dumbbells with fed access links, or with chains of links after the bottleneck.
    fn plain()(
        hosts in 1..4usize,
        (rate, one_way, queue) in (rates(), delays(), queue_text()),
        groups in traffic(),
        access in prop::collection::vec((prop::option::of(rates()), delays(), 0..20u32, 0..8u8), 16),
        (overhead, split) in (prop_oneof![3 => Just(0), 1 => 0..40i32], 0..3usize),
        [joint, captured, monitored, lossy, stop] in any::<[bool; 5]>(),
        (interval, warmup) in (1..300u64, 0..1000u64),
    ) -> Plan {
        let mut net = Dumbbell::new(hosts, rate, one_way, &queue);
        for (i, &(words, app, count)) in groups.iter().enumerate() {
            let transport = if words.is_empty() { Transport::Udp } else { tcp(words) };
            net = net.group(&format!("g{i}"), count, transport, app);
        }
        let mut plan = net.seconds(0, 2).plan;
        plan.warmup = warmup * MS;
        for (link, &(rate, delay, limit, kind)) in plan.links.iter_mut().skip(2).zip(&access) {
            match kind {
                0 => link.params.rate = rate.and_then(Rate::new),
                1 => (link.params.rate, link.params.delay) = (None, delay),
                2 => link.params.queue = crate::common::queue(&format!("pfifo limit {}p", limit + 1)),
                3 => link.params.delay = delay,
                4 => link.params.queue = crate::common::queue("fq_codel"),
                _ => {}
            }
        }
        plan.links.iter_mut().for_each(|link| link.params.overhead = overhead);
        // Replace the bottleneck by several links in sequence.
        for i in 0..split {
            let (to, name) = (plan.links[0].to, format!("more{i}"));
            let node = plan.nodes.len();
            plan.nodes.push(sojourn_plan::Node { name: name.clone() });
            let mut more = plan.links[2].clone();
            (more.from, more.to, more.name) = (node, to, name);
            plan.links[0].to = Some(node);
            plan.links.push(more);
        }
        if joint {
            plan.observe.bottleneck = Bottleneck { name: "both".into(), links: vec![0, 3] };
        }
        if captured {
            plan.observe.capture = vec![1, 2];
        }
        if lossy {
            plan.links[1].params.impairments = Impairments {
                loss: sojourn_link::Loss::Random { probability: 0.01, correlation: 0.0 },
                ..Impairments::default()
            };
        }
        if stop {
            plan.groups[0].stop = Some(SECOND);
        }
        plan.observe.monitor = monitored;
        plan.observe.series_interval = interval * MS;
        plan
    }
}

prop_compose! {
    /// Chains of links so fast that frames take fractions of a nanosecond, for some microseconds.
    fn fast()(
        rates in prop::collection::vec((1_000_000_000u64..1_600_000_000_001, 0..3u64), 8),
        limit in 2..60u32,
        sources in prop::collection::vec((1_000_000_000u64..800_000_000_000, 64..1515u32), 1..3),
        equal: bool,
    ) -> Plan {
        let mut net = Dumbbell::new(2, rates[0].0, 0, &format!("pfifo limit {limit}p"));
        for (i, (rate, size)) in sources.into_iter().enumerate() {
            let source = format!("cbr rate {rate}bit size {size}");
            net = net.group(&format!("g{i}"), 2, Transport::Udp, &source);
        }
        let mut plan = net.plan;
        (plan.warmup, plan.duration) = (1000, 20_000);
        plan.observe.series_interval = 700;
        plan.groups.iter_mut().for_each(|group| group.start_spread = 500);
        for (link, &(rate, delay)) in plan.links.iter_mut().zip(rates.iter().cycle()) {
            link.params.rate = Rate::new(if equal { rates[0].0 } else { rate });
            link.params.delay = delay;
        }
        plan
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn fast_networks_are_the_same(plan in fast(), seed: u64) {
        assert_same(&plan, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]
    #[test]
    fn plain_networks_are_the_same(plan in plain(), seed: u64) {
        assert_same(&plan, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]
    #[test]
    fn dumbbells_are_the_same(plan in dumbbells(), seed: u64) {
        assert_same(&plan, seed);
    }

    #[test]
    fn lans_are_the_same(plan in lans(), seed: u64) {
        assert_same(&plan, seed);
    }
}
