//! Random plans: dumbbells and shared media with all features of links.

use crate::common::{Dumbbell, MS, app, lan, tcp, with_clients};
use proptest::prelude::*;
use sojourn_link::{
    Chance, Impairments, Jitter, JitterDistribution, Loss, Reorder, Slot, Trace, WireRate, csma,
};
use sojourn_plan::{Bottleneck, Change, Medium, Plan, Transport, Wire};
use sojourn_units::{Rate, SECOND};

fn impairments() -> impl Strategy<Value = Impairments> {
    let chance = || (0.0..0.2f64, 0.0..0.9f64);
    let slot = (0..5 * MS, 0..5 * MS, proptest::option::of(1..4u32)).prop_map(
        |(delay, spread, packets)| Slot {
            delay: delay + 1,
            spread,
            distribution: None,
            packets,
            bytes: None,
        },
    );
    let rate = (1_000_000..100_000_000u64).prop_map(|bits| WireRate {
        rate: Rate::new(bits).unwrap(),
        overhead: 0,
        cell: 48,
        cell_overhead: 5,
    });
    let wire = (
        proptest::option::of(rate),
        proptest::option::of(1..50u32),
        proptest::option::of(slot),
        any::<bool>(),
    );
    (chance(), chance(), chance(), chance(), 0..20 * MS, any::<[bool; 2]>(), wire).prop_map(
        |(loss, copy, flip, overtake, span, [on, keep_order], (rate, limit, slot, ecn))| {
            if !on {
                return Impairments::default();
            }
            let chance = |(probability, correlation)| Chance { probability, correlation };
            Impairments {
                jitter: Some(Jitter {
                    span,
                    correlation: 0.0,
                    distribution: JitterDistribution::Normal,
                }),
                loss: Loss::Random { probability: loss.0, correlation: loss.1 },
                duplicate: chance(copy),
                corrupt: chance(flip),
                reorder: (!keep_order).then_some(Reorder {
                    probability: overtake.0,
                    correlation: overtake.1,
                    gap: 2,
                }),
                keep_order,
                ecn,
                limit,
                rate,
                slot,
            }
        },
    )
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let rate =
        proptest::option::of((100_000..100_000_000u64).prop_map(|bits| Rate::new(bits).unwrap()));
    let wire = (0..50 * MS, impairments());
    let change = (0..5 * SECOND, prop_oneof![Just(0), MS..SECOND], rate, wire).prop_map(
        |(at, every, rate, (delay, impairments))| {
            let wire = rate.is_none().then_some(Wire { delay, impairments });
            Change { at, every, rate, wire }
        },
    );
    prop_oneof![Just(Vec::new()), prop::collection::vec(change, 1..5)]
}

fn trace() -> impl Strategy<Value = Option<Trace>> {
    let times = prop::collection::vec(0..100u32, 1..200).prop_map(|mut times| {
        times.push(100);
        times.sort_unstable();
        Trace::new(&times, 1500).unwrap()
    });
    prop::option::weighted(0.3, times)
}

fn queue_text() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..200u32).prop_map(|n| format!("pfifo limit {n}p")),
        (2000..200_000u32).prop_map(|n| format!("bfifo limit {n}")),
        Just("codel ecn".to_owned()),
        Just("choke limit 100 min 5 max 30 burst 10 ecn".to_owned()),
        Just("sfb limit 100 increment 0.01 rehash 500 db 200".to_owned()),
        Just("fq_codel limit 100p".to_owned()),
        Just("pie ecn".to_owned()),
        Just("fq_pie limit 100p ecn".to_owned()),
        Just("fq_cobalt limit 100p blue_threshold 20ms".to_owned()),
        Just("daqm preset c2 limit 100p interval measured".to_owned()),
        Just("daqm limit 100p as-published".to_owned()),
        Just("pi2 ecn".to_owned()),
        Just("dualpi2".to_owned()),
        Just("prio txqueuelen 50p; qdisc parent 1:2 codel ecn".to_owned()),
        Just("drr; class 1:1; class 1:2 pie; filter flow divisor 2 to 1:1".to_owned()),
        Just("ets strict 1 quanta 3000 1514 priomap 1 2 0 txqueuelen 60p".to_owned()),
        Just("mq numtxqueues 3 default_qdisc fq_codel; qdisc parent 1:2 red limit 90kb min 9kb max 30kb avpkt 1500 ecn".to_owned()),
        Just(
            "htb default 2; class 1:1 rate 20mbit; class 1:2 parent 1:1 rate 3mbit ceil 20mbit \
             fq_codel limit 90p; class 1:3 parent 1:1 rate 9mbit; filter protocol udp to 1:3"
                .to_owned()
        ),
        Just(
            "hfsc default 2 txqueuelen 90p; class 1:2 sc rate 9mbit ul rate 20mbit; class 1:3 rt m1 \
             9mbit d 5ms m2 2mbit; filter src 1 to 1:3"
                .to_owned()
        ),
        Just("sfq limit 100p perturb 1".to_owned()),
        Just("skbprio limit 60p".to_owned()),
        Just("hhf limit 100p admit_bytes 9kb".to_owned()),
        Just("fq limit 100p maxrate 5mbit ce_threshold 5ms".to_owned()),
        Just(
            "red limit 150000 min 15000 max 45000 avpkt 1500 burst 20 bandwidth 20mbit ecn"
                .to_owned()
        ),
    ]
}

fn host() -> impl Strategy<Value = Option<sojourn_link::host::Params>> {
    let late = [
        "grain 4ms",
        "late exp(2ms)",
        "stall exp(10ms) every exp(40ms) rx 20",
        "grain 1ms late pareto2(100us,1.5) stall 1ms every 7ms",
    ];
    let parsed = prop::sample::select(late.to_vec())
        .prop_map(|text| Some(sojourn_link::host::Params::parse(text).unwrap()));
    prop_oneof![2 => Just(None), 1 => parsed]
}

fn groups() -> impl Strategy<Value = Vec<(String, u32)>> {
    let app = prop_oneof![
        Just("bulk"),
        Just("transfer size pareto2(30kb,1.5) forever think exp(100ms)"),
        Just("transfer size 1 repeat 3"),
        Just("web pages 2 interpage exp(200ms) objects exp(3) interobject exp(20ms)"),
        Just("responsiveness interval 100ms mad 2 probes 200"),
        Just("responsiveness interval 50ms mad 2 tolerance 50% once"),
        Just("cbr rate 2mbit jitter 50%"),
        Just("packets interval exp(2ms) size uniform(60,1514)"),
        Just("voip talk exp(1s) silence exp(1s)"),
    ];
    prop::collection::vec((app.prop_map(str::to_owned), 1..6u32), 1..4)
}

/// Returns the transport of a group: UDP for packet sources in groups with an odd number of flows,
/// TCP for all others.
fn transport(text: &str, count: u32, words: &str) -> Transport {
    let packets = app(text).sends_packets();
    if packets && count % 2 == 1 { Transport::Udp } else { tcp(words) }
}

prop_compose! {
    /// Random dumbbells.
    pub fn dumbbells()(
        hosts in 1..4usize,
        rate in 1_000_000..50_000_000u64,
        delay in 0..50 * MS,
        queue in queue_text(),
        groups in groups(),
        words in prop::sample::select(vec!["reno", "cubic ecn classic", "bbr", "bbr3 ecn classic", "dctcp", "prague", "reno sack off timestamps off", "reno profile sack-2001", "reno sndbuf 5000", "cubic sndbuf 5000 blocking on"]),
        there in impairments(),
        back in impairments(),
        [infinite, stop, shared, joint] in any::<[bool; 4]>(),
        (ring, host) in (prop_oneof![2 => Just(0u32), 1 => 1..50u32], host()),
        (mut changes, back_changes) in (changes(), changes()),
        trace in trace(),
    ) -> Plan {
        let mut net = Dumbbell::new(hosts, rate, delay, &queue);
        for (i, (app, count)) in groups.iter().enumerate() {
            net = net.group(&format!("g{i}"), *count, transport(app, *count, words), app);
        }
        let mut plan = net.seconds(1, 4).plan;
        plan.links[0].params.impairments = there;
        plan.links[1].params.impairments = back;
        if infinite {
            plan.links[2].params.rate = None;
            plan.links[2].params.delay = 0;
        }
        if stop {
            plan.groups[0].stop = Some(2000 * MS);
        }
        if shared {
            plan.media = vec![Medium { name: "air".into(), access: csma::Params::default() }];
            plan.links[0].medium = Some(0);
            plan.links[1].medium = Some(0);
        } else {
            plan.links[0].host = host;
            if let Some(trace) = trace.filter(|_| ring == 0 && plan.links[0].host.is_none()) {
                plan.links[0].params.rate = None;
                plan.links[0].params.trace = Some(trace);
                changes.retain(|change| change.rate.is_none());
            }
            plan.links[0].changes = changes;
            plan.links[1].changes = back_changes;
        }
        plan.links[0].ring = ring;
        if joint {
            plan.observe.bottleneck = Bottleneck { name: "both".into(), links: vec![0, 1] };
        }
        plan.observe.series_interval = 100 * MS;
        plan.observe.capture = vec![0];
        plan
    }
}

prop_compose! {
    fn access()(
        slot in 100..100_000u64,
        max_slots in 1..2000u32,
        ceiling in 1..12u32,
        retries in 0..200u32,
        gap in 0..200u32,
    ) -> csma::Params {
        csma::Params { slot, max_slots, ceiling, retries, gap }
    }
}

prop_compose! {
    /// Random shared media.
    pub fn lans()(
        (clients, servers) in (1..6usize, 1..3usize),
        rate in 1_000_000..2_000_000_000u64,
        delay in 0..2 * MS,
        queue in queue_text(),
        groups in groups(),
        access in access(),
        wire in impairments(),
        ring in prop_oneof![2 => Just(0u32), 1 => 1..50u32],
    ) -> Plan {
        let mut plan = lan(clients, servers, delay, &queue);
        plan.media[0].access = access;
        for link in &mut plan.links {
            link.ring = ring;
            link.params.rate = Rate::new(rate);
            link.params.impairments = wire;
        }
        for (i, (app, count)) in groups.iter().enumerate() {
            plan = with_clients(plan, &format!("g{i}"), transport(app, *count, "cubic"), app);
            plan.groups[i].count = *count;
        }
        plan.duration = 4 * SECOND;
        plan.observe.series_interval = 100 * MS;
        plan.observe.capture = vec![0];
        plan
    }
}
