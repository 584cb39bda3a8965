use super::*;
use crate::facts::mix;
use proptest::prelude::*;
use sojourn_units::{MILLISECOND, Nanos, Rate, SECOND};

const ALL: [&str; 20] = [
    "random",
    "round-robin",
    "weighted-round-robin",
    "hash",
    "maglev table 251",
    "least-bandwidth",
    "least-packets period 10ms",
    "least-connections",
    "iqlb",
    "iqlb full random period 1s",
    "iqlb full refuse",
    "qtm",
    "qtm weight 0.1 period 100ms",
    "jsq",
    "power-of-d",
    "power-of-d d 3 memory 2 period 1s",
    "power-of-d d 1 memory 0",
    "queue-delay",
    "peak-ewma",
    "jiq",
];

fn params(text: &str) -> Params {
    Params::parse(text).unwrap()
}

fn servers(weights: &[u32]) -> Vec<Server> {
    let name = |(i, &weight)| Server::new(&format!("server{i}"), weight);
    weights.iter().enumerate().map(name).collect()
}

fn balancer(text: &str, weights: &[u32]) -> Balancer {
    Balancer::new(&params(text), &servers(weights), 0)
}

/// A small random number generator, such as a driver passes to a policy.
fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |n| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        assert!(n > 1, "a draw that can only be 0 is none");
        ((u128::from(mix(state)) * u128::from(n)) >> 64) as u64
    }
}

fn queue(packets: u64) -> Reading {
    limited(packets, 100)
}

fn limited(packets: u64, limit: u64) -> Reading {
    let backlog = Backlog {
        packets,
        bytes: packets * 1514,
        limit: Some(Limit::Packets(limit)),
        rate: Rate::new(10_000_000),
    };
    Reading { backlog: Some(backlog), counters: None }
}

fn sent(bytes: u64, packets: u64) -> Reading {
    Reading { backlog: None, counters: Some(Counters { bytes, packets }) }
}

/// Packets and bytes in a queue, and the counter of sent bytes; `None` if the port cannot be read.
type Seen = (Option<(u64, u64)>, Option<u64>);

#[derive(Clone, Debug)]
enum Step {
    Choose(u64),
    Finish(usize, Option<Nanos>),
    Observe(Vec<Seen>),
    Up(usize, bool),
}

fn step(n: usize) -> impl Strategy<Value = Step> {
    let backlog = proptest::option::of((0..200u64, 0..300_000u64));
    let counted = proptest::option::of(0..u64::MAX);
    prop_oneof![
        6 => any::<u64>().prop_map(Step::Choose),
        3 => (0..n, proptest::option::of(0..20 * SECOND)).prop_map(|(i, l)| Step::Finish(i, l)),
        2 => proptest::collection::vec((backlog, counted), n).prop_map(Step::Observe),
        2 => (0..n, any::<bool>()).prop_map(|(i, up)| Step::Up(i, up)),
    ]
}

fn steps() -> impl Strategy<Value = (Vec<u32>, Vec<(Nanos, Step)>)> {
    proptest::collection::vec(1..20u32, 1..9).prop_flat_map(|weights| {
        let n = weights.len();
        let dt = prop_oneof![0..10 * MILLISECOND, 0..30 * SECOND];
        (Just(weights), proptest::collection::vec((dt, step(n)), 1..150))
    })
}

proptest! {
    /// The contract of all policies. A policy chooses only servers that are up, and none if all are
    /// down. If one server is up, the policy chooses it, unless the policy may refuse. The same
    /// draws give the same choices, and the counters of open flows are correct.
    #[test]
    fn every_policy_keeps_the_contract(
        which in 0..ALL.len(),
        seed in any::<u64>(),
        (weights, steps) in steps(),
    ) {
        let text = ALL[which];
        let mut balancer = balancer(text, &weights);
        let mut twin = balancer.clone();
        let (mut draws, mut same) = (dice(seed), dice(seed));
        let needs = balancer.needs();
        let mut open = vec![0u32; weights.len()];
        let mut now = 0;
        for (dt, step) in steps {
            now += dt;
            match step {
                Step::Choose(hash) => {
                    let flow = Flow { hash };
                    let choice = balancer.choose(now, &flow, &mut draws);
                    prop_assert_eq!(choice, twin.choose(now, &flow, &mut same));
                    let up = (0..weights.len()).filter(|&i| balancer.is_up(i)).count();
                    match choice {
                        None => prop_assert!(up == 0 || text.contains("refuse")),
                        Some(choice) => {
                            prop_assert!(balancer.is_up(choice.server));
                            open[choice.server] += 1;
                            let read = !matches!(needs.freshness, Freshness::Unread);
                            prop_assert!(!(needs.signal == Signal::Nothing && choice.age.is_some()));
                            prop_assert!(!read || choice.age.is_none_or(|age| age <= now));
                        }
                    }
                }
                Step::Finish(i, latency) => {
                    if open[i] > 0 {
                        open[i] -= 1;
                        balancer.finished(now, i, latency);
                        twin.finished(now, i, latency);
                    }
                }
                Step::Observe(seen) => {
                    let readings: Vec<Reading> = seen
                        .into_iter()
                        .map(|(backlog, counted)| Reading {
                            backlog: backlog.map(|(packets, bytes)| Backlog {
                                packets, bytes,
                                limit: (bytes % 3 > 0).then_some(Limit::Packets(100)),
                                rate: Rate::new(bytes),
                            }),
                            counters: counted.map(|bytes| Counters { bytes, packets: bytes / 99 }),
                        })
                        .collect();
                    balancer.observe(now, &readings);
                    twin.observe(now, &readings);
                }
                Step::Up(i, up) => {
                    balancer.set_up(i, up);
                    twin.set_up(i, up);
                }
            }
            for (i, &count) in open.iter().enumerate() {
                prop_assert_eq!(balancer.open(i), count);
            }
            let mut kept = 0;
            balancer.state(&mut |i, _, _| {
                assert!(i < weights.len());
                kept += 1;
            });
            prop_assert!(kept <= weights.len());
        }
    }

    #[test]
    fn every_description_reads_back(
        thousandths in 0..=1000u32,
        period in 1..3600 * SECOND,
        small in (1..=16u64, 0..=16u64),
        which in 0..8usize,
    ) {
        let share = f64::from(thousandths) / 1000.0;
        let params = match which {
            0 => Params::Iqlb(iqlb::Params { threshold: share, full: iqlb::Full::Refuse, period }),
            1 => Params::Qtm(qtm::Params { weight: share, period }),
            2 => Params::PowerOfD(power_of_d::Params { d: small.0, memory: small.1, period }),
            3 => Params::QueueDelay(queue_delay::Params { period }),
            4 => Params::PeakEwma(peak_ewma::Params { decay: period, default: period, d: small.0 }),
            5 => Params::LeastBandwidth(least_bandwidth::Params { period }),
            6 => Params::LeastPackets(least_packets::Params { period }),
            _ => Params::Jsq(jsq::Params { period }),
        };
        prop_assert_eq!(params.check(), Ok(()));
        prop_assert_eq!(Params::parse(&params.to_string()).unwrap(), params);
    }

    /// No text makes the parser panic. A text that the parser accepts is equal after writing and
    /// parsing again.
    #[test]
    fn any_text_is_read_or_refused(
        text in "(iqlb|qtm|maglev|jiq|power-of-d|x)?( (threshold|full|period|d|memory|table|weight))?( [0-9a-z.%µ-]{0,6}){0,3}",
    ) {
        if let Ok(params) = Params::parse(&text) {
            prop_assert_eq!(Params::parse(&params.to_string()).unwrap(), params);
        }
    }
}

#[test]
fn every_table_reads_the_same_with_its_defaults_written() {
    assert_eq!(tables().len(), 15);
    for table in tables() {
        let default = params(table.name);
        assert_eq!(default.name(), table.name);
        let mut written = table.name.to_owned();
        for word in table.words.iter().filter(|word| !word.default.is_empty()) {
            written = format!("{written} {} {}", word.name, word.default);
        }
        assert_eq!(params(&written), default, "{written}");
        assert_eq!(params(&default.to_string()), default);
        assert_eq!(default.check(), Ok(()));
    }
}

#[test]
fn errors_name_place_found_and_allowed() {
    let error = |text: &str| Params::parse(text).unwrap_err();
    let unknown = error("iqbl");
    assert_eq!(unknown.to_string(), "unknown balancing policy `iqbl`: did you mean `iqlb`?");
    assert_eq!((unknown.at, unknown.found.as_str()), (0..4, "iqbl"));
    assert!(unknown.allowed.contains(&"queue-delay".to_owned()));
    assert!(error("jsq d 2").to_string().contains("`d`"));
    assert_eq!(error("qtm period 0s").to_string(), "`period` must be above 0s and at most 1h");
    let prime = error("maglev table 1000");
    assert_eq!(prime.at, 13..17);
    assert!(prime.to_string().contains("the next prime is 1009"));
    let full = error("iqlb full sometimes");
    assert!(full.allowed.contains(&"refuse".to_owned()), "{full:?}");
    assert!(error("iqlb threshold 180%").to_string().contains("`threshold`"));
}

/// Returns how often each server is chosen for `n` flows that never end.
fn counts(balancer: &mut Balancer, n: u64, seed: u64) -> Vec<u64> {
    let mut draws = dice(seed);
    let mut counts = vec![0; balancer.len()];
    for i in 0..n {
        let flow = Flow { hash: mix(i) };
        counts[balancer.choose(0, &flow, &mut draws).unwrap().server] += 1;
    }
    counts
}

/// Policies with weights distribute flows in proportion to them; all others distribute flows
/// evenly.
#[test]
fn weights_are_kept() {
    for table in tables() {
        let mut balancer = balancer(table.name, &[1, 2, 5]);
        if table.name == "peak-ewma" {
            continue; // Its weights divide a cost; a separate test checks this.
        }
        balancer.observe(0, &[queue(1); 3]);
        let counts = counts(&mut balancer, 80_000, 7);
        let expected = match table.name {
            "queue-delay" | "jsq" | "power-of-d" | "iqlb" | "qtm" | "least-bandwidth"
            | "least-packets" => [1.0; 3],
            _ if balancer.needs().weights => [0.375, 0.75, 1.875],
            _ => [1.0; 3],
        };
        for (count, share) in counts.iter().zip(expected) {
            let ratio = *count as f64 / (80_000.0 / 3.0 * share);
            assert!((ratio - 1.0).abs() < 0.03, "{}: {counts:?}", table.name);
        }
    }
}

#[test]
fn readings_age() {
    let mut qtm = balancer("qtm", &[1, 1]);
    let flow = Flow::default();
    let unread = qtm.choose(SECOND, &flow, &mut dice(1)).unwrap();
    assert_eq!((unread.reason, unread.age), (Reason::Unread, None));
    qtm.observe(2 * SECOND, &[queue(3), queue(1)]);
    let choice = qtm.choose(2 * SECOND + 7, &flow, &mut dice(1)).unwrap();
    assert_eq!(choice, Choice { server: 1, reason: Reason::Least, age: Some(7) });
    // If a port cannot be read, its previous reading remains, and becomes older.
    qtm.observe(3 * SECOND, &[queue(2), Reading::default()]);
    let choice = qtm.choose(3 * SECOND, &flow, &mut dice(1)).unwrap();
    assert_eq!((choice.server, choice.age), (1, Some(SECOND)));
    // A server that is up again has no reading, and is not preferred for this reason.
    qtm.set_up(1, false);
    qtm.set_up(1, true);
    assert_eq!(qtm.choose(3 * SECOND, &flow, &mut dice(1)).unwrap().server, 0);
}

mod queue_lb {
    use super::*;

    fn iqlb(text: &str, lengths: &[u64]) -> Option<(usize, Reason)> {
        let mut balancer = balancer(text, &vec![1; lengths.len()]);
        let readings: Vec<Reading> = lengths.iter().map(|&n| queue(n)).collect();
        balancer.observe(0, &readings);
        balancer.choose(0, &Flow::default(), &mut dice(3)).map(|c| (c.server, c.reason))
    }

    /// Equation 1 of the paper.
    #[test]
    fn iqlb_takes_the_shortest_below_the_threshold() {
        assert_eq!(iqlb("iqlb", &[30, 20, 25]), Some((1, Reason::Least)));
        assert_eq!(iqlb("iqlb", &[79, 85, 80]), Some((0, Reason::Least)));
        assert!(matches!(iqlb("iqlb", &[30, 20, 20]), Some((1 | 2, Reason::Tie))));
        assert_eq!(iqlb("iqlb", &[90, 80, 85]), Some((1, Reason::Full)));
        assert_eq!(iqlb("iqlb full refuse", &[90, 80, 85]), None);
        assert!(matches!(iqlb("iqlb full random", &[90, 80, 85]), Some((_, Reason::Full))));
        assert_eq!(iqlb("iqlb threshold 0.5", &[51, 50, 49]), Some((2, Reason::Least)));
    }

    /// The threshold is a share of the limit of each queue. A queue without a limit is never above
    /// the threshold.
    #[test]
    fn iqlb_knows_each_queues_limit() {
        let mut balancer = balancer("iqlb", &[1, 1]);
        balancer.observe(0, &[limited(9, 10), limited(40, 1000)]);
        assert_eq!(balancer.choose(0, &Flow::default(), &mut dice(1)).unwrap().server, 1);
        let unlimited = Backlog { packets: 50, ..Backlog::default() };
        let unlimited = Reading { backlog: Some(unlimited), counters: None };
        balancer.observe(0, &[limited(80, 100), unlimited]);
        assert_eq!(balancer.choose(0, &Flow::default(), &mut dice(1)).unwrap().server, 1);
    }

    /// The policy breaks ties with equal probabilities: chi-square test with 2 degrees of freedom,
    /// 99.9 %.
    #[test]
    fn iqlb_breaks_ties_evenly() {
        let mut balancer = balancer("iqlb", &[1, 1, 1]);
        balancer.observe(0, &[queue(5); 3]);
        let counts = counts(&mut balancer, 30_000, 5);
        let chi: f64 = counts.iter().map(|&c| (c as f64 - 1e4) * (c as f64 - 1e4) / 1e4).sum();
        assert!(chi < 13.8, "{counts:?}");
    }

    /// Equation 2 of the paper, calculated by hand.
    #[test]
    fn qtm_averages() {
        let mut balancer = balancer("qtm weight 0.5", &[1, 1]);
        let averages = |balancer: &Balancer| {
            let mut averages = vec![];
            balancer.state(&mut |_, _, value| averages.push(value));
            averages
        };
        for (t, lengths, expected) in [
            (1, [40, 8], [20.0, 4.0]),
            (2, [0, 20], [10.0, 12.0]),
            (3, [0, 0], [5.0, 6.0]),
            (4, [0, 0], [2.5, 3.0]),
        ] {
            balancer.observe(t * SECOND, &[queue(lengths[0]), queue(lengths[1])]);
            assert_eq!(averages(&balancer), expected);
        }
        // All queues are empty, so only the earlier readings decide.
        assert_eq!(balancer.choose(4 * SECOND, &Flow::default(), &mut dice(1)).unwrap().server, 0);
    }

    /// With old queue lengths, all flows of a period go to one server (herding); with random
    /// servers they do not.
    #[test]
    fn old_lengths_herd_and_drawn_ones_do_not() {
        for (text, least, most) in
            [("jsq period 1s", 1000, 1000), ("qtm", 1000, 1000), ("power-of-d memory 0", 150, 250)]
        {
            let mut balancer = balancer(text, &[1; 10]);
            let readings: Vec<Reading> = (0..10).map(|n| queue(30 + n)).collect();
            balancer.observe(0, &readings);
            let fullest = *counts(&mut balancer, 1000, 3).iter().max().unwrap();
            assert!((least..=most).contains(&fullest), "{text}: {fullest}");
        }
    }
}

#[test]
fn counters_are_compared_by_their_growth() {
    for (text, expected) in [("least-bandwidth", 0), ("least-packets", 1)] {
        let mut balancer = balancer(text, &[1, 1]);
        let flow = Flow::default();
        balancer.observe(SECOND, &[sent(9_000_000, 9_000), sent(10, 1)]);
        let first = balancer.choose(SECOND, &flow, &mut dice(1)).unwrap();
        assert_eq!(first.reason, Reason::Unread, "one reading is no rate");
        balancer.observe(2 * SECOND, &[sent(9_001_000, 9_020), sent(1_510, 11)]);
        assert_eq!(balancer.choose(2 * SECOND, &flow, &mut dice(1)).unwrap().server, expected);
        // A switch that restarts counts from 0. Its previous rate remains valid until a new one is
        // known.
        balancer.observe(3 * SECOND, &[sent(0, 0), sent(3_010, 21)]);
        assert_eq!(balancer.choose(3 * SECOND, &flow, &mut dice(1)).unwrap().server, expected);
        balancer.observe(4 * SECOND, &[sent(90_000, 90), sent(4_510, 31)]);
        assert_eq!(balancer.choose(4 * SECOND, &flow, &mut dice(1)).unwrap().server, 1);
    }
}

#[test]
fn loads_of_ports_are_relative_to_the_weights() {
    for (weight, expected) in [(1, 0), (3, 1)] {
        let mut balancer = balancer("least-bandwidth", &[1, weight]);
        balancer.observe(SECOND, &[sent(0, 0), sent(0, 0)]);
        balancer.observe(2 * SECOND, &[sent(1_000, 1), sent(2_000, 2)]);
        let chosen = balancer.choose(2 * SECOND, &Flow::default(), &mut dice(1)).unwrap();
        assert_eq!(chosen.server, expected);
    }
}

#[test]
fn turns_are_spread_out() {
    let mut balancer = balancer("weighted-round-robin", &[5, 1, 1]);
    let mut draws = |_| -> u64 { panic!("no draws") };
    let turns: Vec<usize> =
        (0..14).map(|_| balancer.choose(0, &Flow::default(), &mut draws).unwrap().server).collect();
    assert_eq!(turns, [0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0]);
}

#[test]
fn round_robin_skips_those_that_are_down() {
    let mut balancer = balancer("round-robin", &[1; 4]);
    balancer.set_up(1, false);
    let mut draws = |_| -> u64 { panic!("no draws") };
    let mut turn = || balancer.choose(0, &Flow::default(), &mut draws).unwrap().server;
    assert_eq!([turn(), turn(), turn(), turn(), turn()], [0, 2, 3, 0, 2]);
}

mod maglev_table {
    use super::*;

    fn table(size: u64, weights: &[u32], down: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let params = params(&format!("maglev table {size}"));
        let mut balancer = Balancer::new(&params, &servers(weights), 0);
        for &i in down {
            balancer.set_up(i, false);
        }
        let owners: Vec<usize> = (0..size)
            .map(|hash| {
                balancer.choose(0, &Flow { hash }, &mut |_| panic!("no draws")).unwrap().server
            })
            .collect();
        let share = |i| owners.iter().filter(|&&owner| owner == i).count();
        let shares = (0..weights.len()).map(share).collect();
        (owners, shares)
    }

    /// Each server has floor(M/N) or ceil(M/N) entries of the table.
    #[test]
    fn shares_differ_by_one_at_most() {
        for (size, n) in [(251, 7), (65_537, 5), (65_537, 100), (1009, 1), (13, 13)] {
            let (_, shares) = table(size, &vec![1; n], &[]);
            let floor = size as usize / n;
            let fits = |&share: &usize| share == floor || share == floor + 1;
            assert!(shares.iter().all(fits), "{size} over {n}: {shares:?}");
        }
    }

    #[test]
    fn shares_follow_weights() {
        let (_, shares) = table(65_537, &[1, 2, 5], &[]);
        for (share, weight) in shares.iter().zip([1.0, 2.0, 5.0]) {
            let expected = 65_537.0 * weight / 8.0;
            assert!((*share as f64 / expected - 1.0).abs() < 0.001, "{shares:?}");
        }
    }

    /// If one of ten servers goes down, few flows of the other servers change their server.
    #[test]
    fn few_places_change_hands() {
        let (before, _) = table(65_537, &[1; 10], &[]);
        let (after, shares) = table(65_537, &[1; 10], &[4]);
        assert_eq!(shares[4], 0);
        let moved = before.iter().zip(&after).filter(|(a, b)| **a != 4 && a != b).count();
        assert!(moved < 65_537 / 50, "{moved} places");
        let (modulo, _) = (0..65_537usize).fold((0, 0), |(moved, all), hash| {
            let (a, b) = (hash % 10, [0, 1, 2, 3, 5, 6, 7, 8, 9][hash % 9]);
            (moved + usize::from(a != 4 && a != b), all + 1)
        });
        assert!(modulo > 65_537 / 2, "by the remainder nearly all move: {modulo}");
    }
}

mod theory {
    use super::*;

    /// Simulates the queues of servers with rate 1 under Poisson arrivals of rate `load` per
    /// server, as a chain of events. An event is an arrival, or a departure at a random server,
    /// which has no effect if the server is idle. Returns for each k the share of queues with at
    /// least k jobs, averaged over time.
    fn tails(text: &str, n: usize, load: f64, events: u64) -> Vec<f64> {
        let mut balancer = balancer(text, &vec![1; n]);
        let mut lengths = vec![0u64; n];
        let mut readings = vec![queue(0); n];
        let (mut draws, mut chance) = (dice(11), dice(12));
        let mut tails = [0.0; 12];
        let mut samples = 0.0;
        for event in 0..events {
            let arrival = chance(1 << 32) as f64 / (1u64 << 32) as f64 * (1.0 + load) < load;
            if arrival {
                for (reading, &length) in readings.iter_mut().zip(&lengths) {
                    *reading = queue(length);
                }
                balancer.observe(event, &readings);
                let choice = balancer.choose(event, &Flow { hash: event }, &mut draws).unwrap();
                lengths[choice.server] += 1;
            } else {
                let i = chance(n as u64) as usize;
                if lengths[i] > 0 {
                    lengths[i] -= 1;
                    balancer.finished(event, i, None);
                }
            }
            if event > events / 5 && event.is_multiple_of(n as u64) {
                samples += 1.0;
                for (k, tail) in tails.iter_mut().enumerate() {
                    let with = lengths.iter().filter(|&&length| length >= k as u64).count();
                    *tail += with as f64 / n as f64;
                }
            }
        }
        tails.iter().map(|tail| tail / samples).collect()
    }

    /// In theory the shares are `s_k = rho^((d^k - 1)/(d - 1))`, or rho^k for one choice.
    #[test]
    fn power_of_d_has_its_tails() {
        let (n, load) = (50, 0.8f64);
        for d in [1u32, 2, 3] {
            let found = tails(&format!("power-of-d d {d} memory 0"), n, load, 400_000);
            for k in 1..=3u32 {
                let exponent = if d == 1 { k } else { (d.pow(k) - 1) / (d - 1) };
                let expected = libm::pow(load, f64::from(exponent));
                let error = (found[k as usize] - expected).abs();
                assert!(error < 0.03, "d {d} k {k}: {} for {expected}", found[k as usize]);
            }
        }
    }

    /// The mean queue decreases in this order: random, two choices, two choices and memory, the
    /// shortest of all. An idle server if available is nearly as good as the shortest of all.
    #[test]
    fn knowing_more_makes_shorter_queues() {
        let mean = |text: &str| tails(text, 30, 0.9, 300_000)[1..].iter().sum::<f64>();
        let order = ["random", "power-of-d memory 0", "power-of-d", "jsq"].map(mean);
        assert!(order.windows(2).all(|pair| pair[0] > pair[1] * 1.02), "{order:?}");
        let jiq = mean("jiq");
        assert!(jiq > order[3] && jiq < order[1], "{jiq} {order:?}");
    }
}

#[test]
fn peak_ewma_believes_bad_news_at_once() {
    let mut balancer = balancer("peak-ewma decay 10s", &[1, 1]);
    let latency = |balancer: &Balancer| {
        let mut all = vec![];
        balancer.state(&mut |_, _, value| all.push(value));
        all[0]
    };
    let mut sample = |at: Nanos, latency: Nanos| {
        balancer.finished(at, 0, Some(latency));
    };
    sample(0, 100 * MILLISECOND);
    sample(SECOND, 500 * MILLISECOND);
    sample(11 * SECOND, 100 * MILLISECOND);
    // The latency of 500 ms has the weight 1/e after the decay time; the new latency has the
    // remaining weight.
    let left = libm::exp(-1.0);
    let expected = 1e6 * (500.0 * left + 100.0 * (1.0 - left));
    assert!((latency(&balancer) / expected - 1.0).abs() < 1e-12);
    // Each server has one open request, so the slower server is avoided.
    balancer.finished(11 * SECOND, 1, Some(10 * MILLISECOND));
    let choice = balancer.choose(11 * SECOND, &Flow::default(), &mut |_| panic!()).unwrap();
    assert_eq!((choice.server, choice.reason), (1, Reason::Least));
}

#[test]
fn jiq_takes_idle_servers_in_the_order_they_became_so() {
    let mut balancer = balancer("jiq", &[1; 3]);
    let flow = Flow::default();
    let take = |balancer: &mut Balancer| balancer.choose(0, &flow, &mut dice(1)).unwrap();
    let first: Vec<usize> = (0..3).map(|_| take(&mut balancer).server).collect();
    assert_eq!(first, [0, 1, 2]);
    assert_eq!(take(&mut balancer).reason, Reason::Drawn);
    let busy = (0..3).find(|&i| balancer.open(i) == 2).unwrap();
    let [a, b] = [(busy + 1) % 3, (busy + 2) % 3];
    balancer.finished(1, busy, None);
    balancer.finished(2, b, None);
    balancer.finished(3, a, None);
    assert_eq!([take(&mut balancer).server, take(&mut balancer).server], [b, a]);
    assert_eq!(take(&mut balancer).reason, Reason::Drawn);
}

#[test]
fn queue_delay_weighs_by_rate() {
    let mut balancer = balancer("queue-delay", &[1, 1]);
    let at = |packets: u64, mbit: u64| Reading {
        backlog: Some(Backlog {
            packets,
            bytes: packets * 1514,
            limit: None,
            rate: Rate::new(mbit * 1_000_000),
        }),
        counters: None,
    };
    let flow = Flow::default();
    let mut choose = |readings: [Reading; 2]| {
        balancer.observe(0, &readings);
        balancer.choose(0, &flow, &mut |_| panic!("no draws")).unwrap().server
    };
    assert_eq!(choose([at(20, 10), at(50, 100)]), 1);
    assert_eq!(choose([at(3, 10), at(50, 100)]), 0);
    assert_eq!(choose([at(0, 10), at(0, 100)]), 1);
}

mod outside {
    use super::*;
    use crate::external::{self, Factory, ServerInfo};
    use sojourn_units::external::Fault;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Chooses a server by the flow's hash, even if the server is down; counts the faults that are
    /// reported.
    #[derive(Clone)]
    struct Careless(Arc<AtomicU32>);

    impl external::Policy for Careless {
        fn observe(&mut self, _now: Nanos, _servers: &[ServerInfo]) -> Result<(), Fault> {
            Ok(())
        }

        fn choose(
            &mut self,
            _now: Nanos,
            flow: Flow,
            servers: &[ServerInfo],
        ) -> Result<Option<usize>, Fault> {
            assert!(servers.iter().all(|server| server.open.is_some() && server.backlog.is_none()));
            Ok(Some(flow.hash as usize))
        }

        fn finished(
            &mut self,
            _now: Nanos,
            _server: usize,
            _latency: Option<Nanos>,
            _servers: &[ServerInfo],
        ) -> Result<(), Fault> {
            Ok(())
        }

        fn changed(&mut self, _servers: &[ServerInfo]) -> Result<(), Fault> {
            Ok(())
        }

        fn state(&self, _visit: &mut dyn FnMut(usize, &str, f64)) {}

        fn copy(&self) -> Box<dyn external::Policy> {
            Box::new(self.clone())
        }

        fn on_fault(&mut self, _now: Nanos, _fault: &Fault) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Factory for Careless {
        fn create(
            &self,
            _params: &external::Params,
            _servers: usize,
            _key: u64,
        ) -> Result<Box<dyn external::Policy>, Fault> {
            Ok(Box::new(self.clone()))
        }

        fn on_fault(&self, _fault: &Fault) {}
    }

    /// The policy chooses until its first fault. Afterwards the servers that are up take turns.
    #[test]
    fn a_faulty_policy_is_not_asked_again() {
        let faults = Arc::new(AtomicU32::new(0));
        let factory = Arc::new(Careless(faults.clone()));
        let params = external::Params::bound("careless", Signal::Connections, factory);
        let mut balancer = Balancer::new(&Params::External(params), &servers(&[1; 3]), 0);
        balancer.set_up(1, false);
        let mut choose = |hash| {
            let choice = balancer.choose(0, &Flow { hash }, &mut |_| panic!("no draws")).unwrap();
            (choice.server, choice.reason)
        };
        assert_eq!([choose(2), choose(2)], [(2, Reason::Policy); 2]);
        assert_eq!([choose(1), choose(2), choose(2)], [0, 2, 0].map(|i| (i, Reason::Turn)));
        assert_eq!(faults.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn bounds_are_checked() {
        let params = |look, period| {
            let factory = Arc::new(Careless(Arc::default()));
            let bound = external::Params::bound("careless", look, factory);
            Params::External(external::Params { period, ..bound })
        };
        assert_eq!(params(Signal::Backlog, 0).check(), Ok(()));
        assert_eq!(params(Signal::Backlog, 0).needs().freshness, Freshness::Now);
        assert!(params(Signal::Counters, 0).check().unwrap_err().contains("above 0s"));
        assert!(params(Signal::Backlog, 7200 * SECOND).check().unwrap_err().contains("1h"));
        assert!(Params::parse("external").is_err());
    }
}
