//! Memory: no allocation on the packet path, and few bytes for each flow.
#![allow(unsafe_code, reason = "a counting allocator")]

mod common;
use common::*;
use sojourn_link::{Direction, Params, Path};
use sojourn_network::{Class, Packet, node};
use sojourn_plan::{Link, Plan, Transport};
use sojourn_sim::Control;
use sojourn_units::Nanos;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
/// Held by the running test from its beginning to its end: the counters count the allocations of the
/// whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

// SAFETY: all calls are passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        BYTES.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations and of events in the second half of a run.
fn second_half(plan: &Plan) -> (u64, u64) {
    let (mut half, mut end) = (None, (0, 0));
    sojourn_sim::run(plan, 1, &mut |progress| {
        let now = (CALLS.load(Relaxed), progress.events);
        if progress.fraction() >= 0.5 {
            half.get_or_insert(now);
        }
        end = now;
        Control::Continue
    })
    .unwrap();
    let half = half.unwrap();
    (end.0 - half.0, end.1 - half.1)
}

#[test]
fn no_allocation_in_steady_state() {
    let _alone = alone();
    for queue in [
        "pfifo limit 300p",
        "codel",
        "fq_codel",
        "pie",
        "fq_pie",
        "fq_cobalt",
        "choke limit 300",
        "sfb",
        "daqm",
        "cake bandwidth 90mbit memlimit 200kb",
        "cake unlimited besteffort ack-filter",
        "dualpi2",
        "sfq",
        "skbprio",
        "hhf",
        "mq default_qdisc fq_codel",
        "fq",
        "fq maxrate 9mbit",
    ] {
        let plan = Dumbbell::new(10, 100_000_000, 10 * MS, queue)
            .group("ftp", 10, tcp("cubic"), "bulk")
            .group("cbr", 2, Transport::Udp, "cbr rate 5mbit")
            .group("writes", 2, tcp("cubic"), "cbr rate 5mbit payload 500")
            .seconds(1, 40)
            .plan;
        let (calls, events) = second_half(&plan);
        println!("{queue}: {calls} allocations in {events} events");
        assert!(events > 250_000);
        // Ring buffers grow when a maximum is exceeded, which happens ever more rarely.
        assert!(calls * 50_000 < events, "{queue}: {calls} allocations in {events} events");
    }
}

/// The interface for other programs: two links in a row, with every effect of the wire that makes no
/// copy.
#[test]
fn no_allocation_on_a_path() {
    let _alone = alone();
    for queue in ["pfifo limit 300p", "codel ecn", "fq_codel", "pie", "dualpi2", "sfq"] {
        let first = Params::parse("100mbit", "delay 5ms 1ms loss 1% corrupt 1%", queue).unwrap();
        let second = Params::parse("90mbit", "delay 5ms", queue).unwrap();
        let mut path = Path::new(&[first.clone(), second], &[first], 1);
        let (mut before, mut arrived) = (0, 0u32);
        for number in 0..400_000u32 {
            let now = u64::from(number) * 110_000;
            let packet =
                Packet::new(Class::Udp, (node(0), node(1)), 0, (number % 9) << 28, 1514, 2);
            path.send(now, Direction::Forward, packet);
            path.send(now, Direction::Reverse, packet);
            while path.poll(now).is_some() {
                arrived += 1;
            }
            if number == 200_000 {
                before = CALLS.load(Relaxed);
            }
        }
        let calls = CALLS.load(Relaxed) - before;
        assert!(
            arrived > 500_000 && calls < 10,
            "{queue}: {calls} allocations, {arrived} arrivals"
        );
    }
}

/// The hosts' own `fq` queues pace the senders.
#[test]
fn no_allocation_behind_a_host_s_fq() {
    let _alone = alone();
    let mut plan = Dumbbell::new(10, 100_000_000, 10 * MS, "pfifo limit 300p")
        .group("ftp", 10, tcp("cubic"), "bulk")
        .group("cbr", 2, Transport::Udp, "cbr rate 5mbit")
        .seconds(1, 40)
        .plan;
    let (left, right) = (plan.links[0].from, plan.links[0].to);
    let own = |link: &&mut Link| link.to == Some(left) && Some(link.from) != right;
    for link in plan.links.iter_mut().filter(own) {
        link.params.queue = queue("fq");
        link.host_queue = true;
    }
    let (calls, events) = second_half(&plan);
    assert!(events > 500_000 && calls * 50_000 < events, "{calls} allocations in {events} events");
}

/// Returns the peak memory in bytes of one flow between two hosts over links that drop nothing, in
/// a run of `milliseconds`. It is the difference of two runs with different numbers of flows,
/// divided by the difference of the numbers. Tables that double their capacity are equally full in
/// both runs: eleven packets of each flow fill the network's tables.
fn bytes_a_flow(one_way: Nanos, transport: &Transport, app: &str, milliseconds: u64) -> u64 {
    let held = |flows: u32| {
        let mut plan = Dumbbell::new(0, 100_000_000_000, 2 * one_way, "pfifo limit 1000000p")
            .group("flows", flows, transport.clone(), app)
            .plan;
        plan.groups[0].pairs = vec![(plan.links[0].from, plan.links[1].from)];
        (plan.warmup, plan.duration) = (0, milliseconds * MS);
        let before = BYTES.load(Relaxed);
        let mut most = 0;
        sojourn_sim::run(&plan, 1, &mut |_| {
            most = BYTES.load(Relaxed).max(most);
            Control::Continue
        })
        .unwrap();
        most - before
    };
    let (few, many) = (1u32 << 14, 1u32 << 17);
    (held(many / 11) - held(few / 11)) / u64::from(many / 11 - few / 11)
}

/// The memory of a connection is that of a TCP flow minus that of a UDP flow that sends the same
/// data.
#[test]
fn an_idle_connection_takes_little() {
    let _alone = alone();
    let write = "cbr rate 800bit payload 1000";
    let [tcp, udp] = [tcp("cubic initial_rto 10s"), Transport::Udp]
        .map(|transport| bytes_a_flow(MS, &transport, write, 3_000));
    println!("{tcp} bytes a flow of TCP, {udp} of UDP, so {} a connection", tcp - udp);
    assert!(tcp - udp <= 2_500, "{} bytes a connection", tcp - udp);
}

/// The handshake ends after 4 s, and the initial window arrives after 6 s.
#[test]
fn a_flow_with_ten_packets_in_flight_takes_few_kilobytes() {
    let _alone = alone();
    let each = bytes_a_flow(2_000 * MS, &tcp("cubic initial_rto 10s"), "bulk", 5_500);
    println!("{each} bytes a flow");
    assert!(each <= 4_700, "{each} bytes a flow");
}
