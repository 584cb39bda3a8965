//! Memory: none is asked for on the packet path, and a flow takes little.
#![allow(unsafe_code, reason = "a counting allocator")]

mod common;
use common::*;
use sojourn_plan::{Link, Transport};
use sojourn_sim::Control;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
/// The counters are the process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

// SAFETY: everything is handed on to the system's allocator.
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

/// Allocations and events in the second half of a run.
fn second_half(plan: &sojourn_plan::Plan) -> (u64, u64) {
    let _alone = ALONE.lock().unwrap();
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
        assert!(events > 500_000);
        // Rings grow when a maximum is exceeded; that becomes rarer and rarer.
        assert!(calls * 50_000 < events, "{queue}: {calls} allocations in {events} events");
    }
}

/// The senders' own queues pace them.
#[test]
fn no_allocation_behind_a_host_s_fq() {
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

#[test]
fn a_flow_takes_few_kilobytes() {
    let held = |flows: u32| {
        let _alone = ALONE.lock().unwrap();
        let mut plan = Dumbbell::new(1, 1_000_000_000, 10 * MS, "pfifo limit 10p")
            .group("ftp", flows, tcp("cubic"), "bulk")
            .seconds(1, 10)
            .plan;
        // Every flow has its connection, and very little in the network.
        plan.links[0].params.impairments.loss =
            sojourn_link::Loss::Random { probability: 1.0, correlation: 0.0 };
        let before = BYTES.load(Relaxed);
        let mut most = 0;
        sojourn_sim::run(&plan, 1, &mut |_| {
            most = BYTES.load(Relaxed).max(most);
            Control::Continue
        })
        .unwrap();
        most - before
    };
    let each = (held(11_000) - held(1_000)) / 10_000;
    println!("{each} bytes a flow");
    assert!(each <= 5000, "{each} bytes a flow");
}
