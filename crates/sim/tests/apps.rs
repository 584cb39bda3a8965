//! Transfers, calls and Web sessions.

#![allow(clippy::float_cmp, reason = "counts are exact")]

use crate::common::*;
use sojourn_plan::Transport;

#[test]
fn a_transfer_takes_its_time() {
    let plan = Dumbbell::new(1, 100_000_000, 50 * MS, "pfifo limit 1000p")
        .group("job", 1, tcp("reno"), "transfer size 14600 repeat 5 think 1s")
        .seconds(0, 20)
        .plan;
    let record = run(&plan, 1).unwrap();
    assert_eq!(metric(&record, "job.finished"), 5.0);
    assert_eq!(metric(&record, "job.unfinished"), 0.0);
    // The handshake takes 100 ms. Of the eleven segments of 1448 bytes, ten arrive 50 ms later;
    // the last one is sent after their acknowledgement and arrives another 100 ms later.
    let fct = metric(&record, "job.fct_p50");
    assert!((fct - 0.25).abs() < 0.01, "{fct}");
    assert_eq!(metric(&record, "job.bytes"), 5.0 * 14_600.0);
    assert!((metric(&record, "job.active_mean") - 5.0 * fct / 20.0).abs() < 0.01);
}

#[test]
fn transfers_that_have_not_ended_count_with_their_age() {
    let plan = |rate| {
        Dumbbell::new(2, rate, 10 * MS, "pfifo limit 50p")
            .group("job", 2, tcp("reno"), "transfer size 400kb repeat 99 think 1s")
            .group("page", 2, tcp("reno"), "web pages 9 interpage exp(1s) objects 2 size 100")
            .seconds(2, 30)
            .plan
    };
    // The second link needs more than the run for one transfer.
    let [good, bad] = [50_000_000, 60_000].map(|rate| run(&plan(rate), 1).unwrap());
    for name in ["job.fct_mean", "job.fct_p95", "page.page_p95", "page.fct_p50"] {
        let all = format!("{name}_all");
        let [ended, whole] = [name, &all].map(|name| metric(&good, name));
        assert!(whole >= ended && whole < 1.3 * ended, "{name}: {ended} {whole}");
        assert!(metric(&bad, &all) > 10.0, "{all}: {}", metric(&bad, &all));
    }
    assert!(metric(&bad, "job.fct_mean").is_nan());
    assert!(metric(&bad, "job.fct_mean_all") > 28.0);
}

#[test]
fn a_clear_call_sounds_well_and_a_choked_one_does_not() {
    let call = |background: u32| {
        let mut net = Dumbbell::new(2, 2_000_000, 20 * MS, "pfifo limit 100p")
            .group("call", 2, Transport::Udp, "voip")
            .seconds(5, 30);
        if background > 0 {
            net = net.group("ftp", background, tcp("cubic"), "bulk");
        }
        run(&net.plan, 3).unwrap()
    };
    let (clear, choked) = (call(0), call(4));
    assert!(metric(&clear, "call.mos") > 4.3, "{}", metric(&clear, "call.mos"));
    assert!(metric(&clear, "call.packet_loss") == 0.0);
    assert!(metric(&clear, "call.jitter") < 1e-3);
    assert!(metric(&choked, "call.mos") < 3.5, "{}", metric(&choked, "call.mos"));
    assert!(metric(&choked, "call.jitter") > metric(&clear, "call.jitter"));
    assert!(metric(&choked, "call.mos_min") <= metric(&choked, "call.mos"));
}

#[test]
fn web_sessions_browse() {
    let words =
        "web pages 5 interpage exp(1s) objects 3 interobject exp(50ms) size pareto2(12,1.2)";
    let plan = Dumbbell::new(4, 10_000_000, 20 * MS, "pfifo limit 100p")
        .group("web", 20, tcp("reno"), words)
        .seconds(10, 120)
        .plan;
    let record = run(&plan, 1).unwrap();
    let (pages, objects) = (metric(&record, "web.pages"), metric(&record, "web.objects"));
    assert!(pages > 500.0, "{pages}");
    // Three objects for each page, except pages at the start and end of the measured time.
    assert!((objects / pages - 3.0).abs() < 0.2, "{objects} {pages}");
    let time = metric(&record, "web.page_mean");
    // A session alternates between thinking and loading; a new session follows at once.
    let expected = 20.0 * 110.0 / (0.8 + time);
    assert!((pages / expected - 1.0).abs() < 0.1, "{pages} {expected}");
    assert!(metric(&record, "web.fct_p50") > 0.08);
    assert!(metric(&record, "web.active_mean") > 0.5);
    assert_eq!(record.flows.rows(), 20);
    // Little's law: the mean number of active objects is their rate times their mean duration.
    let little = objects / 110.0 * metric(&record, "web.fct_mean");
    assert!((metric(&record, "web.active_mean") / little - 1.0).abs() < 0.1);
}
