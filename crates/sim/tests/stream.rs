//! Packet sources over TCP: each packet is a write into a stream.

#![allow(clippy::float_cmp, reason = "counts are exact")]

use crate::common::*;
use sojourn_link::Loss;
use sojourn_plan::{Plan, Transport};
use sojourn_units::SECOND;

/// Returns a plan with one flow over a bottleneck of 10 Mbit/s, with a one-way delay of 20 ms and
/// access links of 100 Mbit/s.
fn plan(transport: Transport, app: &str) -> Plan {
    Dumbbell::new(1, 10_000_000, 20 * MS, "pfifo limit 1000p").group("s", 1, transport, app).plan
}

fn of(record: &sojourn_sim::Record, name: &str) -> f64 {
    metric(record, &format!("s.{name}"))
}

#[test]
fn an_idle_network_carries_each_write_at_once() {
    let record = run(&plan(tcp("reno"), "cbr rate 1mbit payload 1000"), 1).unwrap();
    // The measured time is 8 s, with a write every 8 ms; frames have 1066 bytes with timestamps.
    let expected = 0.02 + 1066.0 * 8.0 * (2.0 / 100e6 + 1.0 / 10e6);
    assert!(
        (of(&record, "delay_p50") / expected - 1.0).abs() < 0.005,
        "{}",
        of(&record, "delay_p50")
    );
    assert!((of(&record, "delay_p99") / expected - 1.0).abs() < 0.005);
    assert!((of(&record, "packet_delay_mean") / of(&record, "delay_mean") - 1.0).abs() < 1e-6);
    assert_eq!((of(&record, "writes"), of(&record, "refused")), (1000.0, 0.0));
    assert!((of(&record, "goodput") / 1e6 - 1.0).abs() < 1e-3);
    assert_eq!(of(&record, "udp_goodput"), 0.0);
}

/// A packet source sends the same payload over TCP and over UDP.
#[test]
fn tcp_and_udp_carry_the_same_bytes() {
    for app in
        ["packets interval exp(5ms) payload uniform(40,1400)", "voip talk exp(1s) silence exp(1s)"]
    {
        let bytes = |transport| {
            let mut plan = plan(transport, app);
            plan.warmup = 0;
            plan.groups[0].stop = Some(9 * SECOND);
            of(&run(&plan, 4).unwrap(), "bytes")
        };
        assert_eq!(bytes(tcp("cubic")), bytes(Transport::Udp), "{app}");
    }
}

#[test]
fn the_first_writes_wait_for_the_handshake() {
    let mut plan = plan(tcp("reno"), "cbr rate 1mbit payload 1000");
    plan.warmup = 0;
    plan.duration = SECOND;
    let record = run(&plan, 1).unwrap();
    // One round-trip time for the handshake, and half of one for the data.
    let longest = of(&record, "delay_p999");
    assert!((0.058..0.064).contains(&longest), "{longest}");
    let packet = real(&record.flows, "packet_delay_mean", 0);
    assert!(packet < real(&record.flows, "delay_mean", 0));
}

/// A full send buffer refuses writes that the network cannot carry, which bounds the delay.
#[test]
fn a_full_send_buffer_refuses() {
    let record = run(&plan(tcp("reno sndbuf 100kb"), "cbr rate 20mbit payload 1400"), 1).unwrap();
    let goodput = of(&record, "goodput");
    assert!(goodput > 9.3e6, "{goodput}");
    // The bytes accepted in 8 s equal those delivered, except for a change of the buffer's content.
    let accepted = (of(&record, "writes") - of(&record, "refused")) * 1400.0;
    assert!((accepted - of(&record, "bytes")).abs() <= 102_400.0);
    let share = of(&record, "refused") / of(&record, "writes");
    assert!((share - (1.0 - goodput / 20e6)).abs() < 0.01, "{share}");
    // The time to transmit a full buffer; the acknowledgement takes half a round-trip time of it.
    let delay = of(&record, "delay_mean");
    let bound = 102_400.0 * 8.0 / goodput;
    assert!(delay <= bound && delay > bound - 0.045, "{delay} {bound}");
}

/// A blocking application makes all writes, but with ever growing delays.
#[test]
fn a_blocking_application_waits() {
    let mut plan = plan(tcp("reno sndbuf 100kb blocking on"), "cbr rate 20mbit payload 1400");
    plan.warmup = 0;
    let record = run(&plan, 1).unwrap();
    assert_eq!(of(&record, "refused"), 0.0);
    let goodput = of(&record, "goodput");
    assert!(goodput > 9.0e6, "{goodput}");
    // The backlog grows at the offered rate minus the goodput, so a write that is delivered at t
    // was due at t * share.
    let share = goodput / 20e6;
    let delay = of(&record, "delay_p999") / (10.0 * (1.0 - share));
    assert!((delay - 1.0).abs() < 0.03, "{delay}");
    // The writes that were made exceed the delivered bytes at most by the send buffer.
    assert!((of(&record, "writes") * 1400.0 - of(&record, "bytes")).abs() <= 102_400.0);
}

/// Losses only delay writes: each is delivered once and in order.
#[test]
fn losses_delay_writes() {
    let mut plan = plan(tcp("reno"), "cbr rate 1mbit payload 1000");
    let clear = run(&plan, 1).unwrap();
    plan.links[0].params.impairments.loss = Loss::Random { probability: 0.01, correlation: 0.0 };
    let lossy = run(&plan, 1).unwrap();
    assert!(of(&lossy, "packet_loss") > 0.005);
    assert!(of(&lossy, "delay_mean") > 1.05 * of(&clear, "delay_mean"));
    // The delays of packets themselves are nearly the same.
    assert!(of(&lossy, "packet_delay_mean") < 1.1 * of(&clear, "packet_delay_mean"));
    assert!((of(&lossy, "bytes") / of(&clear, "bytes") - 1.0).abs() < 0.03);
}

#[test]
fn the_last_write_closes_the_connection() {
    let mut plan = plan(tcp("reno"), "cbr rate 1mbit payload 1000");
    plan.warmup = 0;
    plan.groups[0].start_spread = 0;
    plan.groups[0].stop = Some(5 * SECOND);
    let record = run(&plan, 1).unwrap();
    assert_eq!(of(&record, "writes"), 625.0);
    assert_eq!(of(&record, "bytes"), 625_000.0);
    let end = real(&record.flows, "end", 0);
    assert!((4.99..5.1).contains(&end), "{end}");
    assert!((of(&record, "active_mean") - 0.5).abs() < 0.01);
}

/// If the connection fails, the writes in its send buffer are lost.
#[test]
fn a_broken_connection_ends_the_flow() {
    let mut plan = plan(
        tcp("reno syn_linear_timeouts 0 syn_retries 1 sndbuf 4000"),
        "cbr rate 1mbit payload 1000",
    );
    plan.warmup = 0;
    plan.links[0].params.impairments.loss = Loss::Random { probability: 1.0, correlation: 0.0 };
    let record = run(&plan, 1).unwrap();
    // SYNs are sent at 0 and 1 s, and the connection fails 2 s after the second one.
    let end = real(&record.flows, "end", 0) - real(&record.flows, "start", 0);
    assert!((end - 3.0).abs() < 1e-6, "{end}");
    assert_eq!(of(&record, "bytes"), 0.0);
    // One write every 8 ms, the last one at the flow's end; the send buffer holds four writes.
    assert_eq!(of(&record, "writes"), 376.0);
    assert_eq!(of(&record, "refused"), 372.0);
}

/// The quality of a call over TCP is computed as over UDP: packets that arrive too late for the
/// jitter buffer count as lost.
#[test]
fn a_call_over_tcp_has_a_quality() {
    let mos = |app, loss: f64| {
        let mut plan = plan(tcp("cubic"), app);
        plan.links[0].params.impairments.loss =
            Loss::Random { probability: loss, correlation: 0.0 };
        let record = run(&plan, 2).unwrap();
        (of(&record, "mos"), of(&record, "jitter"))
    };
    for (app, costs) in [("voip", false), ("voip playout 60ms", true)] {
        let ((clear, still), (lossy, shaky)) = (mos(app, 0.0), mos(app, 0.05));
        assert!(clear > 4.3 && still < 1e-6, "{app}: {clear} {still}");
        assert!(lossy < clear && shaky > still, "{app}: {lossy} {shaky}");
        assert_eq!(lossy < clear - 0.5, costs, "{app}: {lossy} {clear}");
    }
}

#[test]
fn clients_start_one_by_one() {
    for (transport, app) in [(Transport::Udp, "cbr rate 100kbit"), (tcp("reno"), "bulk")] {
        let mut plan = Dumbbell::new(2, 10_000_000, 20 * MS, "pfifo limit 100p")
            .group("s", 15, transport, app)
            .seconds(0, 10)
            .plan;
        plan.groups[0].start = 3 * SECOND;
        plan.groups[0].start_spread = 0;
        plan.groups[0].start_every = SECOND;
        let record = run(&plan, 1).unwrap();
        for i in 0..15 {
            let start = real(&record.flows, "start", i);
            let bytes = real(&record.flows, "bytes", i);
            if i < 7 {
                assert_eq!(start, 3.0 + i as f64);
                assert!(bytes > 0.0);
            } else {
                // The run ends at 10 s.
                assert!(start.is_nan() && bytes == 0.0);
            }
        }
        assert_eq!(of(&record, "flows"), 7.0);
    }
}

/// A flow whose application has stopped is complete when all its writes have been delivered.
#[test]
fn flows_complete_when_all_is_delivered() {
    let mut plan = plan(tcp("reno sndbuf 100mb"), "cbr rate 20mbit payload 1448");
    plan.warmup = 0;
    plan.duration = 20 * SECOND;
    plan.groups[0].stop = Some(4 * SECOND);
    let record = run(&plan, 1).unwrap();
    assert_eq!((of(&record, "finished"), of(&record, "unfinished")), (1.0, 0.0));
    // The data offered in 4 s take 8 s on a link with half of the rate, plus the time of headers.
    let expected = 8.0 * 1514.0 / 1448.0;
    assert!((of(&record, "fct_mean") / expected - 1.0).abs() < 0.1, "{}", of(&record, "fct_mean"));
    plan.duration = 6 * SECOND;
    let record = run(&plan, 1).unwrap();
    assert_eq!((of(&record, "finished"), of(&record, "unfinished")), (0.0, 1.0));
    assert!(of(&record, "fct_mean").is_nan());
}
