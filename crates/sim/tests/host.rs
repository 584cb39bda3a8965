//! Late hosts in a network: how much of its rate a shaper loses, and that other queues lose
//! nothing.

use crate::common::*;
use sojourn_link::host;

/// Returns a plan with a shaper of 90 Mbit/s on a port of 100 Mbit/s, whose host is late as in
/// `late`.
fn shaped(burst: u32, late: &str) -> sojourn_plan::Plan {
    let queue = format!(
        "htb default 1; class 1:1 parent 1: rate 90mbit burst {burst} cburst {burst}; \
         qdisc parent 1:1 fq_codel"
    );
    let mut plan = Dumbbell::new(2, 100_000_000, 10 * MS, &queue)
        .group("ftp", 4, tcp("cubic"), "bulk")
        .seconds(3, 12)
        .plan;
    plan.links[0].ring = 256;
    plan.links[0].host = (!late.is_empty()).then(|| host::Params::parse(late).unwrap());
    plan
}

fn utilisation(burst: u32, late: &str) -> f64 {
    metric(&run(&shaped(burst, late), 1).unwrap(), "utilisation")
}

#[test]
fn a_shaper_keeps_its_rate_if_its_burst_holds_what_a_stall_brings() {
    // 90 Mbit/s are 11250 bytes per millisecond.
    for late in ["late 1ms", "grain 1ms", "stall 1ms every 20ms"] {
        let (enough, small) = (utilisation(14_000, late), utilisation(1600, late));
        assert!((enough - 0.9).abs() < 0.005, "{late}: {enough}");
        assert!(small < 0.88, "{late}: {small}");
    }
}

#[test]
fn a_punctual_host_leaves_no_trace() {
    let hash = |late| run(&shaped(1600, late), 1).unwrap().trace_hash;
    let hosted = |late: &str| {
        let mut plan = shaped(1600, late);
        plan.links[0].ring = 0;
        run(&plan, 1).unwrap().trace_hash
    };
    assert_eq!(hash(""), hash("rx 3"));
    assert_eq!(hosted(""), hosted("grain 0s late 0s"));
    assert_ne!(hash(""), hash("late 1us"));
    assert_eq!(hash("late exp(1ms)"), hash("late exp(1ms)"));
}
