//! A path, the interface of links for other programs, is the simulator's network: the same packets
//! with the same draws arrive at the same times.

use crate::common::*;
use proptest::prelude::*;
use sojourn_link::{Direction, Params, Path};
use sojourn_network::{Body, Class, Copies, Network, Options, Packet, node};
use sojourn_plan::{Node, Plan};
use sojourn_units::{EPOCH, Nanos, SECOND};

/// Packets with their times: length, flow and TOS byte.
type Given = Vec<(Nanos, u32, u32, u8)>;

fn packet(place: u32, &(_, bytes, flow, tos): &(Nanos, u32, u32, u8)) -> Packet {
    Packet::new(Class::Udp, (node(0), node(2)), place, flow.wrapping_mul(0x9e37_79b9), bytes, tos)
}

/// Returns the arrivals of a network with `hops` in a row: time, number and TOS byte.
fn by_network(hops: &[Params], given: &Given, seed: u64) -> Vec<(Nanos, u64, u8)> {
    let mut plan: Plan = Dumbbell::new(1, 1_000_000, 0, "pfifo").plan;
    plan.nodes = ["a", "b", "c"].map(|name| Node { name: name.into() }).to_vec();
    plan.links.truncate(hops.len());
    for (number, (link, params)) in plan.links.iter_mut().zip(hops).enumerate() {
        link.name = format!("forward{number}");
        (link.from, link.to, link.params) = (number, Some(number + 1), params.clone());
    }
    let options =
        Options { trace: true, probes: true, monitor: false, adjustable: false, fused: false };
    let mut network: Network<u64, ()> = Network::new(&plan, seed, options, ());
    let flow = network.open_account();
    let place = network.routes.path(0, hops.len() as u32).unwrap();
    let (mut arrivals, mut taken) = (Vec::new(), 0);
    let mut run = |network: &mut Network<u64, ()>, until: Nanos| {
        while let Some((at, id)) = network.due.first().filter(|due| due.0 <= until) {
            network.run(at, id);
            while let Some(packet) = network.next_arrival(&mut taken) {
                let body = network.receive(at, &packet);
                arrivals.push((at - EPOCH, body.load, packet.tos));
            }
        }
    };
    for (number, one) in given.iter().enumerate() {
        run(&mut network, EPOCH + one.0);
        let body = Body {
            number: 0,
            sent_at: EPOCH + one.0,
            endpoint: 0,
            connection: 0,
            flow,
            copies: Copies::ONE,
            load: number as u64,
        };
        network.send(EPOCH + one.0, packet(place, one), body);
    }
    run(&mut network, EPOCH + 30 * SECOND);
    network.audit().unwrap();
    arrivals
}

fn by_path(hops: &[Params], given: &Given, seed: u64) -> Vec<(Nanos, u64, u8)> {
    let mut path = Path::new(hops, &[], seed);
    for (number, one) in given.iter().enumerate() {
        let mut packet = packet(0, one);
        packet.slot = number as u32;
        path.send(one.0, Direction::Forward, packet);
    }
    std::iter::from_fn(|| path.poll(30 * SECOND))
        .map(|arrival| (arrival.at, u64::from(arrival.packet.slot), arrival.packet.tos))
        .collect()
}

proptest! {
    #[test]
    fn a_path_is_the_simulator_s_network(
        queues in proptest::sample::subsequence(vec![
            "pfifo limit 20p", "codel ecn", "fq_codel limit 30p", "pie limit 30p ecn", "sfq", "dualpi2",
            "tbf rate 4mbit burst 10kb limit 30kb", "cake bandwidth 5mbit", "hhf", "sfb", "red limit 60kb min 5kb max 15kb avpkt 1000 ecn",
        ], 2),
        netem in proptest::sample::select(vec![
            "", "delay 3ms 2ms", "delay 2ms 1ms keeporder loss 3%", "delay 1ms slot 2ms",
            "delay 2ms reorder 10% duplicate 5% corrupt 2% loss gemodel 2% 30%",
        ]),
        steps in proptest::collection::vec((0u64..2_500_000, 40u32..1514, 0u32..5, 0u8..4), 1..300),
        seed: u64,
    ) {
        let mut now = 0;
        let given: Given = steps.into_iter().map(|(gap, bytes, flow, tos)| {
            now += gap;
            (now, bytes, flow, tos)
        }).collect();
        let hops = [
            Params::parse("6mbit", netem, queues[0]).unwrap(),
            Params::parse("5mbit", "delay 4ms", queues[1]).unwrap(),
        ];
        prop_assert_eq!(by_network(&hops, &given, seed), by_path(&hops, &given, seed));
    }
}
