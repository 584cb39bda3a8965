//! The journal of a link that changes during the run is replayed with the same changes.

use sojourn_link::{Event, Link, Observer, Params};
use sojourn_network::journal::{Journal, replay};
use sojourn_network::{Class, Packet, node};
use sojourn_plan::{Bottleneck, Change, Node, Observe, Plan};
use sojourn_queue::{Device, DropReason, Headers, Packet as _, Sender, TcpView};
use sojourn_random::Key;
use sojourn_units::{EPOCH, MILLISECOND, Nanos, Rate, SECOND};

struct Scribe(Journal);

/// Returns the TCP header of a TCP packet: an acknowledgement number 1000 above that of the packet
/// before.
fn header(packet: &Packet) -> Option<TcpView> {
    let (hosts, ports, flags) = (packet.hosts(), (4000, 80), TcpView::ACK);
    let view = TcpView { hosts, ports, ack: packet.slot * 1000, flags, ..TcpView::default() };
    (packet.class() == Class::Tcp).then_some(view)
}

/// Returns a packet's headers; every third packet has the firewall mark 1, the others 0.
fn headers(packet: &Packet) -> Headers {
    let protocol = packet.class().protocol();
    Headers { protocol, ports: (4000, 80), mark: u32::from(packet.slot.is_multiple_of(3)) }
}

impl Observer<Packet> for Scribe {
    fn on_event(&mut self, at: Nanos, packet: &Packet, event: Event) {
        self.0.record(at, packet, event, || (headers(packet), header(packet)));
    }
    fn tcp(&self, packet: &Packet) -> Option<TcpView> {
        header(packet)
    }
    fn headers(&self, packet: &Packet) -> Headers {
        headers(packet)
    }

    fn sender(&self, _: &Packet) -> Sender {
        Sender::default()
    }
}

fn plan() -> Plan {
    let change = |at, mbit: u64| Change {
        at: at * MILLISECOND,
        every: 200 * MILLISECOND,
        rate: Rate::new(mbit * 1_000_000),
        wire: None,
    };
    Plan {
        sources: std::collections::BTreeMap::default(),
        duration: SECOND,
        warmup: 0,
        nodes: ["a", "b"].map(|name| Node { name: name.into() }).to_vec(),
        media: Vec::new(),
        links: vec![sojourn_plan::Link {
            name: "ab".into(),
            from: 0,
            to: Some(1),
            medium: None,
            ring: 0,
            host: None,
            host_queue: false,
            offload: None,
            params: Params::parse("10mbit", "", "codel").unwrap(),
            changes: vec![change(100, 1), change(200, 10)],
        }],
        balancers: Vec::new(),
        groups: Vec::new(),
        apps: Vec::new(),
        observe: Observe {
            bottleneck: Bottleneck { name: "ab".into(), links: vec![0] },
            series_interval: 0,
            per_flow_histograms: false,
            monitor: false,
            capture: Vec::new(),
            qlog: Vec::new(),
            snaplen: 128,
            trace_hash: false,
        },
    }
}

/// Returns the journal of the plan's link, with the arrivals of 1000 packets in one second.
fn journal(plan: &Plan, seed: u64, acknowledgements: bool) -> Journal {
    let planned = &plan.links[0];
    let mut schedule = sojourn_plan::Schedule::new(&planned.params, &planned.changes);
    let mut link = Link::new(&planned.params, Key::new(seed, "ab"), EPOCH);
    let mut scribe = Scribe(Journal::default());
    for number in 0..1000u32 {
        let now = EPOCH + u64::from(number) * MILLISECOND;
        while schedule.next_at().is_some_and(|at| EPOCH + at <= now) {
            let (at, params) = schedule.take_next().unwrap();
            link.set_wire(EPOCH + at, params, &mut scribe);
        }
        let class = if acknowledgements { Class::Tcp } else { Class::Udp };
        let hash = if acknowledgements { 1 } else { number };
        let mut packet = Packet::new(class, (node(0), node(1)), 0, hash, 1000, 0);
        packet.slot = number;
        link.send(now, packet, &mut scribe);
    }
    scribe.0
}

#[test]
fn a_replay_makes_the_changes_too() {
    let plan = plan();
    let journal = journal(&plan, 7, false);
    let agreement = replay(&plan, 7, 0, &journal).unwrap();
    assert_eq!(agreement.arrivals, 1000);
    assert!(agreement.drops > 10, "{agreement:?}");
    let mut unchanged = plan.clone();
    unchanged.links[0].changes.clear();
    assert!(replay(&unchanged, 7, 0, &journal).is_err());
}

#[test]
fn a_replay_reads_the_tcp_headers_of_arrivals() {
    let mut plan = plan();
    let device = Device::default();
    plan.links[0].params.queue =
        sojourn_queue::Params::parse("cake unlimited ack-filter", &device).unwrap();
    let journal = journal(&plan, 7, true);
    let dropped =
        |event: Event| matches!(event, Event::Dropped { reason: DropReason::AckFilter, .. });
    assert!(journal.entries().iter().filter(|entry| dropped(entry.what)).count() > 10);
    let agreement = replay(&plan, 7, 0, &journal).unwrap_or_else(|e| panic!("{e}"));
    assert!(agreement.drops > 10, "{agreement:?}");
}

#[test]
fn no_other_seed_decides_the_same() {
    let mut plan = plan();
    let red = "red limit 60kb min 3kb max 30kb avpkt 1000 bandwidth 10mbit";
    plan.links[0].params.queue = sojourn_queue::Params::parse(red, &Device::default()).unwrap();
    let journal = journal(&plan, 7, false);
    assert!(replay(&plan, 7, 0, &journal).unwrap().drops > 10);
    for other in 8..12 {
        let difference = replay(&plan, other, 0, &journal).unwrap_err();
        assert!(difference.journal != difference.replay, "{difference}");
    }
}

#[test]
fn a_replay_filters_by_what_the_journal_says() {
    let mut plan = plan();
    let text =
        "prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1; filter mark 1 dport 80 to 1:1";
    plan.links[0].params.queue = sojourn_queue::Params::parse(text, &Device::default()).unwrap();
    let journal = journal(&plan, 7, false);
    let left = journal.entries().iter().filter(|e| e.what == Event::Departed);
    let order: Vec<u32> = left.map(|e| e.packet).collect();
    let place = |number: u32| order.iter().position(|packet| *packet == number);
    // While the rate is low, packets with mark 1 overtake earlier packets.
    let ahead = (3..999).step_by(3).filter(|&n| place(n).is_some() && place(n) < place(n - 1));
    assert!(ahead.count() > 50);
    assert_eq!(replay(&plan, 7, 0, &journal).unwrap().arrivals, 1000);
    let mut other = plan;
    let text = text.replace("mark 1 dport 80", "mark 2");
    other.links[0].params.queue = sojourn_queue::Params::parse(&text, &Device::default()).unwrap();
    assert!(replay(&other, 7, 0, &journal).is_err());
}
